/* Parses request lines.  Refuses everything that two parsers could read differently, so
 * that no later code has to check it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "io/http-request.h"

static const struct {
    const char *name;
    enum http_method method;
} METHODS[] = {
    {"GET", HTTP_GET},     {"POST", HTTP_POST},     {"PUT", HTTP_PUT},
    {"PATCH", HTTP_PATCH}, {"DELETE", HTTP_DELETE},
};

const char *http_method_name(enum http_method method)
{
    for (size_t i = 0; i < n_elements(METHODS); i++)
        if (METHODS[i].method == method)
            return METHODS[i].name;
    return "?";
}

enum http_method http_method_parse(const char *name, bool *ret_head)
{
    *ret_head = strcmp(name, "HEAD") == 0;
    if (*ret_head)
        return HTTP_GET;
    for (size_t i = 0; i < n_elements(METHODS); i++)
        if (strcmp(METHODS[i].name, name) == 0)
            return METHODS[i].method;
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* %XX at text, or -1. */
static int escape(const char *text)
{
    int high = hex_digit(text[1]);
    int low = high < 0 ? -1 : hex_digit(text[2]);

    return low < 0 ? -1 : high * 16 + low;
}

/* Characters that need no escape in a path or a query (RFC 3986: pchar and "/", "?"). */
static bool plain(char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    return c != '\0' && strchr("-._~!$&'()*+,;=:@/?", c);
}

/* Decodes in place; false: a broken escape, or a byte that is not allowed.  In a path,
 * refuses an escaped separator or dot: it would change the path if it were decoded
 * again.
 */
static bool decode(char *text, bool path)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++) {
        if (*from != '%') {
            if (!plain(*from))
                return false;
            *to++ = *from;
            if (*from == '+' && !path)
                to[-1] = ' ';
            continue;
        }
        int c = escape(from);
        if (c < 0x20 || c == 0x7f)
            return false;
        if (path && (c == '/' || c == '\\' || c == '.' || c == '%' || c >= 0x80))
            return false;
        *to++ = (char)(unsigned char)c;
        from += 2;
    }
    *to = '\0';
    return true;
}

/* Refuses empty, "." and ".." segments, and a "/" at the end of any path but "/". */
static bool segments_good(const char *path)
{
    if (strcmp(path, "/") == 0)
        return true;
    for (const char *at = path; *at == '/';) {
        size_t n = strcspn(at + 1, "/");
        const char *segment = at + 1;
        if (n == 0 || (n == 1 && segment[0] == '.') ||
            (n == 2 && segment[0] == '.' && segment[1] == '.'))
            return false;
        at = segment + n;
    }
    return true;
}

static const char *parse_query(char *text, struct http_target *t)
{
    while (text && *text != '\0') {
        char *pair = strsep(&text, "&");
        if (*pair == '\0')
            continue;
        if (t->n_query == HTTP_QUERY_MAX)
            return "too many keys in the query";
        char *value = strchr(pair, '=');
        if (value)
            *value++ = '\0';
        else
            value = pair + strlen(pair);
        if (*pair == '\0' || !decode(pair, false) || !decode(value, false))
            return "the query is broken";
        for (size_t i = 0; i < t->n_query; i++)
            if (strcmp(t->query[i].key, pair) == 0)
                return "the query has a key twice";
        t->query[t->n_query++] = (struct http_pair){pair, value};
    }
    return NULL;
}

void http_target_fini(struct http_target *t)
{
    free(t->text);
    *t = (struct http_target){0};
}

unsigned http_target_parse(const char *target, struct http_target *ret,
                           const char **ret_why)
{
    auto_(http_target_fini) struct http_target t = {0};

    if (target[0] != '/') {
        *ret_why = "the target is not a path";
        return 400;
    }
    t.text = strdup(target);
    if (!t.text) {
        *ret_why = "out of memory";
        return 503;
    }
    char *query = strchr(t.text, '?');
    if (query)
        *query++ = '\0';
    if (strlen(t.text) > HTTP_PATH_MAX) {
        *ret_why = "the path is too long";
        return 414;
    }
    if (!decode(t.text, true) || !segments_good(t.text)) {
        *ret_why = "the path is not one that is served";
        return 400;
    }
    t.path = t.text;
    *ret_why = query ? parse_query(query, &t) : NULL;
    if (*ret_why)
        return 400;
    *ret = t;
    t.text = NULL;
    return 0;
}
