#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"

void text_free(struct text *t)
{
    free(t->at);
    *t = (struct text){0};
}

void text_clear(struct text *t)
{
    t->len = 0;
    t->failed = 0;
    if (t->at)
        t->at[0] = '\0';
}

/* Room for len more bytes and the NUL; false: t->failed. */
static bool grow(struct text *t, size_t len)
{
    void *items = t->at;
    int r = array_reserve(&items, &t->cap, t->len + len + 1, 1, TEXT_MAX);

    t->at = items;
    t->failed = r < 0 ? r : 0;
    return r >= 0;
}

void text_add(struct text *t, const char *bytes, size_t len)
{
    if (t->failed || (len >= t->cap - t->len && !grow(t, len)))
        return;
    memcpy(t->at + t->len, bytes, len);
    t->len += len;
    t->at[t->len] = '\0';
}

void text_put(struct text *t, const char *string)
{
    text_add(t, string, strlen(string));
}

/* Length of the prefix of p that needs no escape. */
static size_t plain(const char *p, size_t len)
{
    size_t n = 0;

    while (n < len) {
        if (p[n] >= ' ' && p[n] <= '~' && p[n] != '\\' && p[n] != '"') {
            n++;
            continue;
        }
        size_t wide = utf8_plain_char(p + n, len - n);
        if (wide == 0 || p[n] == '\\' || p[n] == '"')
            break;
        n += wide;
    }
    return n;
}

void text_put_label(struct text *t, const char *value)
{
    size_t len = strlen(value);

    for (size_t i = 0; i < len;) {
        size_t n = plain(value + i, len - i);
        text_add(t, value + i, n);
        i += n;
        if (i >= len)
            break;
        switch (value[i]) {
        case '\\':
            text_put(t, "\\\\");
            break;
        case '"':
            text_put(t, "\\\"");
            break;
        case '\n':
            text_put(t, "\\n");
            break;
        default:
            text_put(t, "\xef\xbf\xbd");
        }
        i++;
    }
}

void text_put_u64(struct text *t, uint64_t v)
{
    char digits[20];
    size_t i = sizeof digits;

    do {
        digits[--i] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    text_add(t, digits + i, sizeof digits - i);
}

void text_put_fixed(struct text *t, double v, unsigned places)
{
    static const uint64_t scales[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    uint64_t scale = scales[places < 6 ? places : 6];
    double scaled = fabs(v) * (double)scale;
    char digits[6];

    if (scaled >= 9e15) { /* beyond the exact integers of a double */
        char text[40];
        (void)snprintf(text, sizeof text, "%.17g", v);
        text_put(t, text);
        return;
    }
    uint64_t whole = (uint64_t)(scaled + 0.5);
    if (v < 0 && whole > 0)
        text_add(t, "-", 1);
    text_put_u64(t, whole / scale);
    size_t n = 0;
    for (uint64_t rest = whole % scale, at = scale / 10; rest > 0; at /= 10) {
        digits[n++] = (char)('0' + rest / at);
        rest %= at;
    }
    if (n > 0) {
        text_add(t, ".", 1);
        text_add(t, digits, n);
    }
}
