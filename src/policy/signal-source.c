#include "policy/signal-source.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"

enum { EVERY_S = 10, EVERY_MAX_S = 3600 };

void signal_sources_fini(struct signal_sources *s)
{
    free(s->source);
    *s = (struct signal_sources){0};
}

/* ---- one source ---- */

static int check_socket(const struct signal_source *s, uw_error *err)
{
    const char *name = s->decl.name;

    if (s->file[0])
        return fail(err, -EINVAL, "%s: give one of file and socket", name);
    if (s->path[0] || s->column[0])
        return fail(err, -EINVAL, "%s: path and column apply to files, not to sockets",
                    name);
    if (s->decl.type != POLICY_NUMBER)
        return fail(err, -EINVAL, "%s: a socket provides numbers only", name);
    if (s->socket[0] != '/' || !utf8_is_plain(s->socket))
        return fail(err, -EINVAL, "%s: socket: '%.80s' is not an absolute path", name,
                    utf8_is_plain(s->socket) ? s->socket : "?");
    return 0;
}

static int check_file(const struct signal_source *s, uw_error *err)
{
    const char *name = s->decl.name;

    if (s->socket[0])
        return check_socket(s, err);
    if (!s->file[0])
        return s->path[0] || s->column[0] || s->every_ns
                   ? fail(err, -EINVAL, "%s: path, column and every need a file", name)
                   : 0;
    if (s->file[0] != '/')
        return fail(err, -EINVAL, "%s: file: '%.80s' is not an absolute path", name,
                    utf8_is_plain(s->file) ? s->file : "?");
    if (!utf8_is_plain(s->file) || !utf8_is_plain(s->path) || !utf8_is_plain(s->column))
        return fail(err, -EINVAL,
                    "%s: file, path or column has a control or invisible character",
                    name);
    if (s->path[0] && s->column[0])
        return fail(err, -EINVAL, "%s: 'path' is for JSON, 'column' for CSV: not both",
                    name);
    if (!signal_path_check(s->path))
        return fail(err, -EINVAL,
                    "%s: path: '%s' is not a path: keys and numbers of items with dots "
                    "between them, as in data.0.kw",
                    name, s->path);
    return 0;
}

static bool ends_in_csv(const char *file)
{
    size_t n = strlen(file);

    return n > 4 && strcmp(file + n - 4, ".csv") == 0;
}

static int check_times(const struct signal_source *s, uw_error *err)
{
    if (!s->file[0] && !s->socket[0])
        return 0;
    if (s->every_ns < NS_PER_S || s->every_ns > EVERY_MAX_S * NS_PER_S)
        return fail(err, -ERANGE, "%s: every %g s is outside 1 s..1 h", s->decl.name,
                    s_of_ns(s->every_ns));
    if (s->decl.age_ns < s->every_ns)
        return fail(
            err, -ERANGE,
            "%s: the age limit, %g s, is shorter than every, %g s: the signal would be "
            "unknown between two reads",
            s->decl.name, s_of_ns(s->decl.age_ns), s_of_ns(s->every_ns));
    return 0;
}

int signal_source_check(struct signal_source *s, const char *currency, uw_error *err)
{
    struct signal_source own = *s;

    (void)snprintf(own.decl.unit, sizeof own.decl.unit, "%s", s->unit);
    int r = signal_declared(&own.decl, currency, err);
    if (r == 0)
        r = check_file(&own, err);
    if (r < 0)
        return r;
    own.csv = own.column[0] || (!own.path[0] && ends_in_csv(own.file));
    if ((own.file[0] || own.socket[0]) && !own.every_ns)
        own.every_ns =
            own.decl.age_ns < EVERY_S * NS_PER_S ? own.decl.age_ns : EVERY_S * NS_PER_S;
    if (own.file[0] && !own.csv && signal_is_forecast(own.decl.name))
        return fail(err, -EINVAL,
                    "%s: a forecast needs a CSV file with a line for each time",
                    own.decl.name);
    r = check_times(&own, err);
    if (r == 0)
        *s = own;
    return r;
}

/* ---- the list ---- */

/* The values in the file; NULL: not given. */
struct words {
    const char *name, *unit, *file, *path, *column, *socket;
    uint64_t age_ns, every_ns;
    int type;
};

static int copy(const struct yaml_node *node, const char *key, const char *from, char *to,
                size_t size, uw_error *err)
{
    if (from && strlen(from) >= size)
        return yaml_fail(node, err, -EINVAL, "%s: longer than %zu bytes", key, size - 1);
    (void)snprintf(to, size, "%s", from ? from : "");
    return 0;
}

static int read_source(const struct yaml_node *node, const char *currency,
                       struct signal_source *ret, uw_error *err)
{
    static const struct yaml_word types[] = {{"number", POLICY_NUMBER},
                                             {"text", POLICY_TEXT},
                                             {"truth", POLICY_TRUTH},
                                             {NULL, 0}};
    static const struct yaml_key keys[] = {
        {"name", YAML_TYPE_TEXT, offsetof(struct words, name), true, 0, 0, NULL},
        {"unit", YAML_TYPE_TEXT, offsetof(struct words, unit), false, 0, 0, NULL},
        {"type", YAML_TYPE_WORD, offsetof(struct words, type), false, 0, 0, types},
        {"age", YAML_TYPE_DURATION, offsetof(struct words, age_ns), false, 0, 0, NULL},
        {"file", YAML_TYPE_TEXT, offsetof(struct words, file), false, 0, 0, NULL},
        {"path", YAML_TYPE_TEXT, offsetof(struct words, path), false, 0, 0, NULL},
        {"column", YAML_TYPE_TEXT, offsetof(struct words, column), false, 0, 0, NULL},
        {"socket", YAML_TYPE_TEXT, offsetof(struct words, socket), false, 0, 0, NULL},
        {"every", YAML_TYPE_DURATION, offsetof(struct words, every_ns), false, 0, 0,
         NULL},
        {NULL, 0, 0, false, 0, 0, NULL}};
    struct words w = {.type = POLICY_NUMBER};
    struct signal_source s = {0};
    uw_error why = {""};
    int r = yaml_read_map(node, keys, &w, err);

    if (r == 0)
        r = copy(node, "name", w.name, s.decl.name, sizeof s.decl.name, err);
    if (r == 0)
        r = copy(node, "unit", w.unit, s.unit, sizeof s.unit, err);
    if (r == 0)
        r = copy(node, "file", w.file, s.file, sizeof s.file, err);
    if (r == 0)
        r = copy(node, "path", w.path, s.path, sizeof s.path, err);
    if (r == 0)
        r = copy(node, "column", w.column, s.column, sizeof s.column, err);
    if (r == 0)
        r = copy(node, "socket", w.socket, s.socket, sizeof s.socket, err);
    if (r < 0)
        return r;
    s.decl.type = (enum policy_type)w.type;
    s.decl.age_ns = w.age_ns;
    s.every_ns = w.every_ns;
    r = signal_source_check(&s, currency, &why);
    if (r < 0)
        return yaml_fail(node, err, r, "%s", why.text);
    *ret = s;
    return 0;
}

static int read_currency(const struct yaml_node *root, char ret[4], uw_error *err)
{
    const struct yaml_node *facility = yaml_get(root, "facility");
    const struct yaml_node *node = facility ? yaml_get(facility, "currency") : NULL;
    const char *text = "EUR";
    int r = node ? yaml_text(node, &text, err) : 0;

    if (r == 0 && !is_iso_currency(text))
        r = yaml_fail(node, err, -EINVAL,
                      "facility.currency: '%.40s' is not a currency: expected three "
                      "capital letters",
                      text);
    if (r == 0)
        memcpy(ret, text, 4);
    return r;
}

static int check_twice(const struct yaml_node *node, const struct signal_sources *all,
                       size_t i, uw_error *err)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(all->source[k].decl.name, all->source[i].decl.name) == 0)
            return yaml_fail(node, err, -EINVAL, "%s is declared twice",
                             all->source[i].decl.name);
    return 0;
}

int signal_sources_read(const struct yaml_node *root, struct signal_sources *ret,
                        uw_error *err)
{
    auto_(signal_sources_fini) struct signal_sources all = {0};
    const struct yaml_node *list = yaml_get(root, "signals");
    size_t n = list ? yaml_count(list) : 0;
    int r = read_currency(root, all.currency, err);

    if (r == 0 && list)
        r = yaml_want(list, YAML_SEQ, err);
    if (r < 0)
        return r;
    if (n > SIGNAL_SOURCES_MAX)
        return yaml_fail(list, err, -E2BIG, "more than %d signals", SIGNAL_SOURCES_MAX);
    all.source = n ? calloc(n, sizeof *all.source) : NULL;
    if (n && !all.source)
        return fail(err, -ENOMEM, "out of memory");
    for (all.n = 0; all.n < n && r == 0; all.n++) {
        r = read_source(yaml_at(list, all.n), all.currency, &all.source[all.n], err);
        if (r == 0)
            r = check_twice(yaml_at(list, all.n), &all, all.n, err);
    }
    if (r < 0)
        return r;
    *ret = all;
    all.source = NULL;
    return 0;
}
