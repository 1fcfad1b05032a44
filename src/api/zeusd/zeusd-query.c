/* Parses queries as zeusd (serde) does. */
#include "api/zeusd/zeusd-query.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"

static bool say(char error[ZQ_ERROR], const char *text)
{
    (void)snprintf(error, ZQ_ERROR, "%s", text);
    return false;
}

/* The syntax of Rust's u32::from_str: digits, optionally after a "+". */
static const char *read_u32(const char *text, uint32_t *ret)
{
    uint64_t number = 0;

    if (*text == '\0')
        return "cannot parse integer from empty string";
    if (*text == '+' && text[1] != '\0')
        text++;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return "invalid digit found in string";
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > UINT32_MAX) {
            while (*text >= '0' && *text <= '9')
                text++;
            return *text != '\0' ? "invalid digit found in string"
                                 : "number too large to fit in target type";
        }
    }
    *ret = (uint32_t)number;
    return NULL;
}

static bool read_value(const struct zq_field *field, const char *text,
                       struct zq_value *ret, char error[ZQ_ERROR])
{
    const char *why = NULL;

    ret->there = true;
    ret->text = text;
    if (field->type == ZQ_BOOL) {
        ret->truth = strcmp(text, "true") == 0;
        if (!ret->truth && strcmp(text, "false") != 0)
            why = "provided string was not `true` or `false`";
    } else if (field->type == ZQ_U32) {
        why = read_u32(text, &ret->number);
    }
    return why ? say(error, why) : true;
}

static bool unknown(const char *key, const struct zq_field *field, size_t n,
                    char error[ZQ_ERROR])
{
    int at = snprintf(error, ZQ_ERROR, "unknown field `%.100s`, expected %s", key,
                      n > 2 ? "one of " : "");

    for (size_t i = 0; i < n && at > 0 && at < ZQ_ERROR; i++)
        at += snprintf(error + at, (size_t)(ZQ_ERROR - at), "%s`%s`",
                       i == 0   ? ""
                       : n == 2 ? " or "
                                : ", ",
                       field[i].name);
    return false;
}

bool zq_read(const struct http_exchange *x, const struct zq_field *field, size_t n,
             struct zq_value *ret, char error[ZQ_ERROR])
{
    for (size_t i = 0; i < n; i++)
        ret[i] = (struct zq_value){.there = false};
    for (size_t k = 0; k < http_query_count(x); k++) {
        const char *value, *key = http_query_at(x, k, &value);
        size_t i = 0;
        while (i < n && strcmp(field[i].name, key) != 0)
            i++;
        if (i == n)
            return unknown(key, field, n, error);
        if (!read_value(&field[i], value, &ret[i], error))
            return false;
    }
    for (size_t i = 0; i < n; i++)
        if (!ret[i].there && field[i].type != ZQ_MAY_TEXT) {
            (void)snprintf(error, ZQ_ERROR, "missing field `%s`", field[i].name);
            return false;
        }
    return true;
}

/* ---- indices ---- */

static bool blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Inserts id in order, once.  false: the array is full. */
static bool insert(unsigned *ids, size_t *n, unsigned id)
{
    size_t i = 0;

    while (i < *n && ids[i] < id)
        i++;
    if (i < *n && ids[i] == id)
        return true;
    if (*n == ZQ_IDS)
        return false;
    memmove(ids + i + 1, ids + i, (*n - i) * sizeof *ids);
    ids[i] = id;
    (*n)++;
    return true;
}

bool zq_ids(const char *text, const char *device, unsigned ret[ZQ_IDS], size_t *ret_n,
            char error[ZQ_ERROR])
{
    const char *param = device[0] == 'G' ? "gpu" : "cpu";
    const char *end = text + strlen(text);
    size_t n = 0;

    while (text < end && blank(*text))
        text++;
    if (text == end) {
        (void)snprintf(error, ZQ_ERROR, "%s_ids must contain at least one %s index",
                       param, device);
        return false;
    }
    for (const char *next; text <= end; text = next + 1) {
        const char *last;
        char word[32];
        uint32_t id = 0;
        next = memchr(text, ',', (size_t)(end - text));
        next = next ? next : end;
        for (last = next; last > text && blank(last[-1]); last--)
            ;
        while (text < last && blank(*text))
            text++;
        if (text == last) {
            (void)snprintf(error, ZQ_ERROR, "%s_ids contains an empty %s index", param,
                           device);
            return false;
        }
        int cut = snprintf(word, sizeof word, "%.*s", (int)(last - text), text);
        if (cut >= (int)sizeof word || read_u32(word, &id) || !insert(ret, &n, id)) {
            (void)snprintf(error, ZQ_ERROR, "Invalid %s index: %.*s", device,
                           last - text > 200 ? 200 : (int)(last - text), text);
            return false;
        }
    }
    *ret_n = n;
    return true;
}
