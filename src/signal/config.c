#include "signal/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/secret.h"
#include "io/yaml.h"
#include "signal/kind.h"

enum { SOCKET_MAX = 107, PORT_MAX = 65535, FOLLOW_S = 60 };

void signals_config_fini(struct signals_config *c)
{
    free(c->source);
    yaml_free(c->doc);
    *c = (struct signals_config){.n = 0};
}

/* ---- one source ---- */

/* The values in the file; NULL and 0: not given. */
struct words {
    const char *name, *type, *zone, *region, *postcode, *location, *url, *file, *path,
        *column, *unit, *as, *key_file, *login_file, *ca;
    uint64_t api, year, every_ns, age_ns;
    bool insecure;
    const struct yaml_node *provides;
};

/* clang-format off */
#define WORD(key, type, field) {key, type, offsetof(struct words, field), false, 0, 0, NULL}
static const struct yaml_key source_keys[] = {
    {"name", YAML_TYPE_TEXT, offsetof(struct words, name), true, 0, 0, NULL},
    {"type", YAML_TYPE_TEXT, offsetof(struct words, type), true, 0, 0, NULL},
    WORD("zone", YAML_TYPE_TEXT, zone), WORD("region", YAML_TYPE_TEXT, region),
    WORD("postcode", YAML_TYPE_TEXT, postcode), WORD("location", YAML_TYPE_TEXT, location),
    WORD("url", YAML_TYPE_TEXT, url), WORD("file", YAML_TYPE_TEXT, file),
    WORD("path", YAML_TYPE_TEXT, path), WORD("column", YAML_TYPE_TEXT, column),
    WORD("unit", YAML_TYPE_TEXT, unit), WORD("as", YAML_TYPE_TEXT, as),
    WORD("key_file", YAML_TYPE_TEXT, key_file), WORD("login_file", YAML_TYPE_TEXT, login_file),
    WORD("ca", YAML_TYPE_TEXT, ca),
    {"api", YAML_TYPE_U64, offsetof(struct words, api), false, 1, 99, NULL},
    {"year", YAML_TYPE_U64, offsetof(struct words, year), false, 1990, 2200, NULL},
    WORD("every", YAML_TYPE_DURATION, every_ns),
    {"age", YAML_TYPE_DURATION, offsetof(struct words, age_ns), false, 1, SIGNAL_AGE_MAX_S, NULL},
    WORD("insecure", YAML_TYPE_BOOL, insecure), WORD("provides", YAML_TYPE_NODE, provides),
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

static int copy(const struct yaml_node *map, const char *key, const char *from, char *to,
                size_t size, uw_error *err)
{
    if (from && strlen(from) >= size)
        return yaml_fail(yaml_get(map, key), err, -EINVAL, "%s: longer than %zu bytes",
                         key, size - 1);
    if (from && !utf8_is_plain(from))
        return yaml_fail(yaml_get(map, key), err, -EINVAL,
                         "%s has a control or invisible character", key);
    (void)snprintf(to, size, "%s", from ? from : "");
    return 0;
}

static int copy_all(const struct yaml_node *map, const struct words *w,
                    struct source_config *c, uw_error *err)
{
    const struct {
        const char *key, *from;
        char *to;
        size_t size;
    } all[] = {
        {"name", w->name, c->name, sizeof c->name},
        {"zone", w->zone, c->zone, sizeof c->zone},
        {"region", w->region, c->region, sizeof c->region},
        {"postcode", w->postcode, c->postcode, sizeof c->postcode},
        {"location", w->location, c->location, sizeof c->location},
        {"url", w->url, c->url, sizeof c->url},
        {"file", w->file, c->file, sizeof c->file},
        {"path", w->path, c->path, sizeof c->path},
        {"column", w->column, c->column, sizeof c->column},
        {"unit", w->unit, c->unit, sizeof c->unit},
        {"as", w->as, c->as, sizeof c->as},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < n_elements(all); i++)
        r = copy(map, all[i].key, all[i].from, all[i].to, all[i].size, err);
    return r;
}

static int find_kind(const struct yaml_node *map, const char *type,
                     const struct source_kind **ret, uw_error *err)
{
    const char *known[16] = {NULL}; /* there are fewer kinds */
    char none[NEAREST_NONE];

    *ret = source_kind_find(type);
    if (*ret)
        return 0;
    for (size_t i = 0; i < n_elements(known) - 1 && source_kind_at(i); i++)
        known[i] = source_kind_type(source_kind_at(i));
    return yaml_fail(yaml_get(map, "type"), err, -EINVAL, "type: %s",
                     nearest_none_of(type, known, none));
}

static int take_provided(const struct yaml_node *node, struct source_config *c,
                         uw_error *err)
{
    const char *text = "";
    const char *known[SOURCE_GIVES + 1] = {NULL};
    char none[NEAREST_NONE];
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    for (size_t i = 0; source_kind_gives(c->kind, i); i++) {
        known[i] = source_kind_gives(c->kind, i);
        if (strcmp(known[i], text) == 0) {
            c->provides |= 1u << i;
            return 0;
        }
    }
    return yaml_fail(node, err, -EINVAL, "provides: %s",
                     nearest_none_of(text, known, none));
}

static int take_provides(const struct yaml_node *node, struct source_config *c,
                         uw_error *err)
{
    int r = 0;

    if (!node)
        return 0;
    if (yaml_kind(node) == YAML_SCALAR)
        return take_provided(node, c, err);
    r = yaml_want(node, YAML_SEQ, err);
    for (size_t i = 0; r == 0 && i < yaml_count(node); i++)
        r = take_provided(yaml_at(node, i), c, err);
    return r;
}

/* The keys in the file, as bits; `path` of a CSV source is its file. */
static void find_given(const struct yaml_node *map, struct source_config *c)
{
    for (size_t i = 0; i < SOURCE_KEYS; i++)
        if (yaml_get(map, source_key_name(i)))
            c->given |= 1u << i;
    if (strcmp(source_kind_type(c->kind), "csv") != 0 || !(c->given & KEY_PATH) ||
        (c->given & KEY_FILE))
        return;
    c->given = (c->given & ~(unsigned)KEY_PATH) | KEY_FILE;
    memcpy(c->file, c->path, sizeof c->path);
    c->path[0] = '\0';
}

static int take_every(const struct yaml_node *map, const struct words *w,
                      struct signals_source *s, uw_error *err)
{
    unsigned least_s = 1, usual_s = 1;

    source_kind_every(&s->c, &least_s, &usual_s);
    s->every_ns = w->every_ns ? w->every_ns : usual_s * NS_PER_S;
    s->age_ns = w->age_ns;
    if (s->every_ns < least_s * NS_PER_S || s->every_ns > SOURCE_EVERY_MAX_S * NS_PER_S)
        return yaml_fail(map, err, -ERANGE, "%s: every %g s is outside %u s..%d d",
                         s->c.name, s_of_ns(s->every_ns), least_s,
                         SOURCE_EVERY_MAX_S / 86400);
    if (s->age_ns && s->age_ns < s->every_ns)
        return yaml_fail(
            map, err, -ERANGE,
            "%s: its age limit, %g s, is below every, %g s: it would be unknown "
            "between two rounds",
            s->c.name, s_of_ns(s->age_ns), s_of_ns(s->every_ns));
    return 0;
}

/* Checks a name, which is also the name of a file. */
static int check_name(const struct yaml_node *map, const char *name, uw_error *err)
{
    if (!name[0] || name[0] == '.' || strchr(name, '/'))
        return yaml_fail(
            yaml_get(map, "name"), err, -EINVAL,
            "name: '%s' is not a name: a name does not begin with a dot and has no slash",
            name);
    return 0;
}

static int read_source(const struct yaml_node *map, const char *countries,
                       struct signals_source *ret, uw_error *err)
{
    struct words w = {.name = NULL};
    struct signals_source s = {.line = yaml_line(map)};
    uw_error why = {""};
    int r = yaml_want(map, YAML_MAP, err);

    if (r == 0)
        r = yaml_read_map(map, source_keys, &w, err);
    if (r == 0)
        r = find_kind(map, w.type, &s.c.kind, err);
    if (r == 0)
        r = copy_all(map, &w, &s.c, err);
    if (r == 0)
        r = take_provides(w.provides, &s.c, err);
    if (r == 0)
        r = yaml_check_path(map, "key_file", w.key_file, SIGNALS_CONFIG_PATH - 1, err);
    if (r == 0)
        r = yaml_check_path(map, "login_file", w.login_file, SIGNALS_CONFIG_PATH - 1,
                            err);
    if (r == 0)
        r = yaml_check_path(map, "ca", w.ca, SIGNALS_CONFIG_PATH - 1, err);
    if (r == 0)
        r = check_name(map, s.c.name, err);
    if (r < 0)
        return r;
    s.c.api = (unsigned)w.api;
    s.c.year = (unsigned)w.year;
    s.c.insecure = w.insecure;
    s.ca = w.ca;
    s.secret = w.key_file ? w.key_file : w.login_file;
    find_given(map, &s.c);
    r = source_check(&s.c, countries, &why);
    if (r == 0 && s.ca && (s.c.kind->way != SOURCE_HTTP || s.c.file[0]))
        r = fail(&why, -EINVAL, "%s: 'ca' is for sources that ask a server", s.c.name);
    if (r < 0)
        return yaml_fail(map, err, r, "%s", why.text);
    r = take_every(map, &w, &s, err);
    if (r == 0)
        *ret = s;
    return r;
}

/* ---- the list ---- */

/* A signal that both provide; NULL: there is none. */
static const char *common(const struct source_config *a, const struct source_config *b,
                          char name[SIGNAL_NAME])
{
    char other[SIGNAL_NAME];

    for (unsigned i = 0; source_kind_gives(a->kind, i); i++)
        for (unsigned k = 0; source_kind_gives(b->kind, k); k++)
            if (take_gives(a, i) && take_gives(b, k) &&
                strcmp(source_signal(a, i, name), source_signal(b, k, other)) == 0)
                return name;
    return NULL;
}

static int check_twice(const struct yaml_node *node, const struct signals_config *all,
                       size_t i, uw_error *err)
{
    const struct source_config *c = &all->source[i].c;
    char name[SIGNAL_NAME];

    if (all->follow.url && strcmp(c->name, SIGNALS_FOLLOW) == 0)
        return yaml_fail(node, err, -EINVAL, "name: '%s' is the site's", c->name);
    for (size_t k = 0; k < i; k++) {
        const struct source_config *other = &all->source[k].c;
        if (strcmp(other->name, c->name) == 0)
            return yaml_fail(node, err, -EINVAL, "two sources have the name '%s'",
                             c->name);
        if (common(other, c, name))
            return yaml_fail(node, err, -EINVAL,
                             "%s and %s both give %s: name one of them with 'as'",
                             other->name, c->name, name);
    }
    return 0;
}

static int read_sources(const struct yaml_node *list, const char *countries,
                        struct signals_config *c, uw_error *err)
{
    int r = yaml_want(list, YAML_SEQ, err);
    size_t n = yaml_count(list);

    if (r < 0)
        return r;
    if (n == 0 || n > SIGNALS_CONFIG_SOURCES)
        return yaml_fail(list, err, -EINVAL, "sources: %zu are outside 1..%d", n,
                         SIGNALS_CONFIG_SOURCES);
    c->source = calloc(n, sizeof *c->source);
    if (!c->source)
        return fail(err, -ENOMEM, "out of memory");
    for (; r == 0 && c->n < n; c->n++) {
        const struct yaml_node *node = yaml_at(list, c->n);
        r = read_source(node, countries, &c->source[c->n], err);
        if (r == 0)
            r = check_twice(node, c, c->n, err);
    }
    return r;
}

/* ---- access ---- */

struct serve_words {
    const char *socket;
    const struct yaml_node *tcp;
};

/* "[::]:9446", "127.0.0.1:9446"; no host name */
static bool is_address(const char *text)
{
    const char *port = strrchr(text, ':');
    bool v6 = text[0] == '[';
    char host[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    uint64_t n = 0;

    if (!port || parse_u64(port + 1, &n, NULL) < 0 || n > PORT_MAX ||
        (v6 && (port == text || port[-1] != ']')))
        return false;
    size_t len = (size_t)(port - text) - (v6 ? 2 : 0);
    if (len >= sizeof host)
        return false;
    memcpy(host, text + v6, len);
    host[len] = '\0';
    host[strcspn(host, "%")] = '\0'; /* the interface of a link-local address */
    return inet_pton(v6 ? AF_INET6 : AF_INET, host, address) == 1;
}

static int read_tcp(const struct yaml_node *map, struct signals_config *c, uw_error *err)
{
    static const struct yaml_key keys[] = {
        {"listen", YAML_TYPE_TEXT, offsetof(struct signals_config, listen), true, 0, 0,
         NULL},
        {"cert", YAML_TYPE_TEXT, offsetof(struct signals_config, cert), true, 0, 0, NULL},
        {"key", YAML_TYPE_TEXT, offsetof(struct signals_config, key), true, 0, 0, NULL},
        {"token", YAML_TYPE_TEXT, offsetof(struct signals_config, token), true, 0, 0,
         NULL},
        {NULL, 0, 0, false, 0, 0, NULL}};
    int r = yaml_want(map, YAML_MAP, err);

    if (r == 0)
        r = yaml_read_map(map, keys, c, err);
    if (r == 0 && !is_address(c->listen))
        return yaml_fail(
            yaml_get(map, "listen"), err, -EINVAL,
            "listen: '%.60s' is not a numeric address and port, as in [::]:9446",
            c->listen);
    if (r == 0)
        r = yaml_check_path(map, "cert", c->cert, SIGNALS_CONFIG_PATH - 1, err);
    if (r == 0)
        r = yaml_check_path(map, "key", c->key, SIGNALS_CONFIG_PATH - 1, err);
    if (r == 0)
        r = yaml_check_path(map, "token", c->token, SIGNALS_CONFIG_PATH - 1, err);
    return r;
}

static int read_serve(const struct yaml_node *map, struct signals_config *c,
                      uw_error *err)
{
    static const struct yaml_key keys[] = {
        {"socket", YAML_TYPE_TEXT, offsetof(struct serve_words, socket), false, 0, 0,
         NULL},
        {"tcp", YAML_TYPE_NODE, offsetof(struct serve_words, tcp), false, 0, 0, NULL},
        {NULL, 0, 0, false, 0, 0, NULL}};
    struct serve_words w = {.socket = NULL};
    int r = yaml_want(map, YAML_MAP, err);

    if (r == 0)
        r = yaml_read_map(map, keys, &w, err);
    if (r == 0 && !w.socket && !w.tcp)
        return yaml_fail(map, err, -EINVAL, "serve: give socket, tcp or both");
    if (r == 0)
        r = yaml_check_path(map, "socket", w.socket, SOCKET_MAX, err);
    if (r == 0 && w.tcp)
        r = read_tcp(w.tcp, c, err);
    c->socket = w.socket;
    return r;
}

/* ---- the followed instance ---- */

static bool is_host_alone(const char *text)
{
    const char *rest = text + strcspn(text, "/?");

    return !*rest || strcmp(rest, "/") == 0;
}

/* The program appends the path. */
static int check_site(const struct yaml_node *map, const char *url, uw_error *err)
{
    const struct yaml_node *at = yaml_get(map, "url");
    uw_error why = {""};
    int r = strncmp(url, "https://", 8) == 0
                ? url_check("follow", url, false, &why)
                : fail(&why, -EINVAL, "follow: url does not begin with https://");

    if (r == 0 && (strlen(url) >= SOURCE_BASE || !is_host_alone(url + 8)))
        r = fail(&why, -EINVAL,
                 "follow: url: a host and a port, as in https://site:9446");
    return r < 0 ? yaml_fail(at, err, r, "%s", why.text) : 0;
}

static int read_follow(const struct yaml_node *map, struct signals_config *c,
                       uw_error *err)
{
    static const struct yaml_key keys[] = {
        {"url", YAML_TYPE_TEXT, offsetof(struct signals_follow, url), true, 0, 0, NULL},
        {"token", YAML_TYPE_TEXT, offsetof(struct signals_follow, token), true, 0, 0,
         NULL},
        {"ca", YAML_TYPE_TEXT, offsetof(struct signals_follow, ca), false, 0, 0, NULL},
        {"every", YAML_TYPE_DURATION, offsetof(struct signals_follow, every_ns), false, 1,
         3600, NULL},
        {NULL, 0, 0, false, 0, 0, NULL}};
    struct signals_follow *f = &c->follow;
    int r = yaml_want(map, YAML_MAP, err);

    f->every_ns = FOLLOW_S * NS_PER_S;
    if (r == 0)
        r = yaml_read_map(map, keys, f, err);
    if (r == 0)
        r = check_site(map, f->url, err);
    if (r == 0)
        r = yaml_check_path(map, "token", f->token, SIGNALS_CONFIG_PATH - 1, err);
    if (r == 0)
        r = yaml_check_path(map, "ca", f->ca, SIGNALS_CONFIG_PATH - 1, err);
    return r;
}

/* ---- the file ---- */

struct top_words {
    uint64_t version;
    const char *cache;
    const struct yaml_node *serve, *follow, *sources;
};

static int read_whence(const struct yaml_node *root, const struct top_words *w,
                       const char *countries, struct signals_config *c, uw_error *err)
{
    int r = 0;

    if (!w->sources && !w->follow)
        return yaml_fail(root, err, -EINVAL, "no source: give sources, follow or both");
    if (w->follow)
        r = read_follow(w->follow, c, err);
    return r == 0 && w->sources ? read_sources(w->sources, countries, c, err) : r;
}

static int read_top(const struct yaml_node *root, const char *countries,
                    struct signals_config *c, uw_error *err)
{
    static const struct yaml_key keys[] = {
        {"signals", YAML_TYPE_U64, offsetof(struct top_words, version), true, 0, 0, NULL},
        {"serve", YAML_TYPE_NODE, offsetof(struct top_words, serve), true, 0, 0, NULL},
        {"cache", YAML_TYPE_TEXT, offsetof(struct top_words, cache), false, 0, 0, NULL},
        {"follow", YAML_TYPE_NODE, offsetof(struct top_words, follow), false, 0, 0, NULL},
        {"sources", YAML_TYPE_NODE, offsetof(struct top_words, sources), false, 0, 0,
         NULL},
        {NULL, 0, 0, false, 0, 0, NULL}};
    struct top_words w = {.cache = NULL};
    int r = yaml_want(root, YAML_MAP, err);

    const struct yaml_node *version = yaml_get(root, "signals");
    if (r == 0 && version)
        r = yaml_u64(version, &w.version, err);
    if (r == 0 && version && w.version != 1)
        r = yaml_fail(version, err, -EINVAL,
                      "version %" PRIu64 " is not supported: the supported version is 1",
                      w.version);
    if (r == 0)
        r = yaml_read_map(root, keys, &w, err);
    if (r == 0)
        r = yaml_check_path(root, "cache", w.cache, SIGNALS_CONFIG_PATH - 1, err);
    c->cache = w.cache;
    if (r == 0)
        r = read_serve(w.serve, c, err);
    return r == 0 ? read_whence(root, &w, countries, c, err) : r;
}

/* Frees doc. */
static int take_doc(const char *name, struct yaml *doc, const char *countries,
                    struct signals_config *ret, uw_error *err)
{
    auto_(signals_config_fini) struct signals_config c = {.doc = doc};
    int r = read_top(yaml_root(doc), countries, &c, err);

    if (r < 0)
        return r;
    (void)snprintf(c.name, sizeof c.name, "%s", name);
    *ret = c;
    c = (struct signals_config){.n = 0};
    return 0;
}

int signals_config_read(const char *name, const char *text, size_t len,
                        const char *countries, struct signals_config *ret, uw_error *err)
{
    struct yaml *doc = NULL;
    int r = yaml_read(name, text, len, &doc, err);

    return r < 0 ? r : take_doc(name, doc, countries, ret, err);
}

int signals_config_file(const char *path, const char *countries,
                        struct signals_config *ret, uw_error *err)
{
    struct yaml *doc = NULL;
    bool hidden = false;
    int r = yaml_read_shown(path, &doc, &hidden, err);

    if (r == 0)
        r = take_doc(path, doc, countries, ret, err);
    return r < 0 && hidden ? yaml_not_shown(r, err) : r;
}

bool signals_config_gives(const struct signals_config *c, const char *signal)
{
    char name[SIGNAL_NAME];

    for (size_t i = 0; i < c->n; i++)
        for (unsigned k = 0; source_kind_gives(c->source[i].c.kind, k); k++)
            if (take_gives(&c->source[i].c, k) &&
                strcmp(source_signal(&c->source[i].c, k, name), signal) == 0)
                return true;
    return false;
}

int signals_config_secret(const struct signals_config *c, size_t i, char **ret,
                          uw_error *err)
{
    const struct signals_source *s = &c->source[i];
    bool login = (s->c.given & KEY_LOGIN_FILE) != 0;
    char *text = NULL;
    int r = secret_read(s->secret, login ? "login" : "key", login, &text, err);

    if (r == 0 && login &&
        (text[0] == ':' || !strchr(text, ':') || !strchr(text, ':')[1]))
        r = fail(err, -EINVAL, "%s: its first line is not a login: NAME:PASSWORD",
                 s->secret);
    if (r < 0) {
        secret_free(text);
        return fail_in(err, r, "%s:%u: %s", c->name, s->line, s->c.name);
    }
    *ret = text;
    return 0;
}
