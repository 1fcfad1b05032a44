/* Checks the configuration of a source. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "signal/kind.h"

static const char *const key_names[SOURCE_KEYS] = {
    "api",  "zone",   "region", "postcode", "location", "url",       "file",
    "path", "column", "unit",   "year",     "key_file", "login_file"};

const char *source_key_name(size_t i)
{
    return i < SOURCE_KEYS ? key_names[i] : NULL;
}

static int check_keys(const struct source_config *c, uw_error *err)
{
    const struct source_kind *k = c->kind;

    for (size_t i = 0; i < SOURCE_KEYS; i++) {
        unsigned bit = 1u << i;
        if ((c->given & bit) && !((k->must | k->may) & bit))
            return fail(err, -EINVAL, "%s: '%s' is not a key of type %s", c->name,
                        key_names[i], k->type);
        if ((k->must & bit) && !(c->given & bit))
            return fail(err, -EINVAL, "%s: '%s' is missing: type %s needs it", c->name,
                        key_names[i], k->type);
    }
    return 0;
}

/* ---- URLs ---- */

/* Length of the host at text, its brackets included. */
static size_t host_length(const char *text)
{
    size_t n = text[0] == '[' ? strcspn(text, "]") : strcspn(text, ":/?");

    if (text[0] != '[')
        return n;
    return text[n] ? n + 1 : 0;
}

static bool is_loopback(const char *host, size_t n)
{
    static const char *const own[] = {"localhost", "[::1]"};
    bool digits = n > 4 && strspn(host, "0123456789.") >= n;

    for (size_t i = 0; i < n_elements(own); i++)
        if (strlen(own[i]) == n && strncmp(host, own[i], n) == 0)
            return true;
    return digits && strncmp(host, "127.", 4) == 0;
}

/* Whether the text may follow a host: nothing, a port, a path or a query. */
static bool is_behind_host(const char *text)
{
    size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;

    if (*text == ':' && (digits == 0 || digits > 5))
        return false;
    text += digits ? digits + 1 : 0;
    return !*text || *text == '/' || *text == '?';
}

static bool is_url_text(const char *url)
{
    for (; *url; url++)
        if (*url <= ' ' || *url > '~' || strchr("\"<>\\^`{|}#", *url))
            return false;
    return true;
}

int url_check(const char *name, const char *url, bool insecure, uw_error *err)
{
    bool tls = strncmp(url, "https://", 8) == 0;
    const char *host;

    if (!tls && strncmp(url, "http://", 7) != 0)
        return fail(err, -EINVAL, "%s: url does not begin with https://", name);
    host = url + (tls ? 8 : 7);
    size_t n = host_length(host);
    if (strchr(host, '@') && strchr(host, '@') < host + strcspn(host, "/?"))
        return fail(err, -EINVAL, "%s: url must not hold a name or a password", name);
    if (n == 0 || !is_url_text(url) || !is_behind_host(host + n))
        return fail(err, -EINVAL, "%s: url is none", name);
    if (!tls && !insecure && !is_loopback(host, n))
        return fail(err, -EINVAL,
                    "%s: url: http://%.*s has no TLS: use https://, or say "
                    "'insecure: true'",
                    name, n > 60 ? 60 : (int)n, host);
    return 0;
}

/* ---- the rest ---- */

static int check_file(const struct source_config *c, uw_error *err)
{
    if ((c->given & KEY_FILE) && c->file[0] != '/')
        return fail(err, -EINVAL, "%s: '%.80s' is not an absolute path", c->name,
                    utf8_is_plain(c->file) ? c->file : "?");
    if ((c->given & KEY_PATH) && !signal_path_check(c->path))
        return fail(err, -EINVAL,
                    "%s: path: '%.80s' is not a path: keys and numbers of items with "
                    "dots between them, as in data.0.kw",
                    c->name, utf8_is_plain(c->path) ? c->path : "?");
    return 0;
}

/* Length of a signal's name without ".forecast". */
static size_t base_length(const char *name)
{
    return strlen(name) - (signal_is_forecast(name) ? strlen(".forecast") : 0);
}

/* `as` replaces one signal and its forecast. */
static int check_signals(const struct source_config *c, uw_error *err)
{
    const struct source_kind *k = c->kind;
    const char *base = NULL;

    for (size_t i = 0; k->gives[i]; i++) {
        const char *name = k->gives[i];
        if (!take_gives(c, (unsigned)i))
            continue;
        if (!c->as[0] && strcmp(name, "value") == 0)
            return fail(err, -EINVAL, "%s: 'as' is missing: the name of the signal",
                        c->name);
        if (c->as[0] && base &&
            (base_length(base) != base_length(name) ||
             strncmp(base, name, base_length(name)) != 0))
            return fail(err, -EINVAL, "%s: 'as' names one signal: it provides two",
                        c->name);
        base = name;
    }
    if (c->as[0] && strlen(c->as) >= SIGNAL_NAME - sizeof ".forecast")
        return fail(err, -EINVAL, "%s: as: longer than %zu bytes", c->name,
                    SIGNAL_NAME - sizeof ".forecast" - 1);
    if (c->as[0]) {
        struct signal_decl d = {.type = POLICY_NUMBER, .age_ns = UINT64_C(60000000000)};
        (void)snprintf(d.name, sizeof d.name, "%s", c->as);
        return signal_declared(&d, "EUR", err);
    }
    return 0;
}

int source_check(struct source_config *c, const char *countries, uw_error *err)
{
    struct source_config own = *c;
    int r = check_keys(c, err);

    if (!own.provides)
        own.provides = 1;
    if (r == 0 && (own.given & KEY_URL))
        r = url_check(own.name, own.url, own.insecure, err);
    if (r == 0)
        r = check_file(&own, err);
    if (r == 0)
        r = check_signals(&own, err);
    if (r == 0 && own.kind->check)
        r = own.kind->check(&own, countries, err);
    if (r == 0)
        *c = own;
    return r;
}
