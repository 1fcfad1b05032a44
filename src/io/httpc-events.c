/* Server-sent events: bytes in any portions to events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "io/httpc-inside.h"

void events_init(struct events *e, size_t max, httpc_event_fn fn, void *user)
{
    *e = (struct events){.fn = fn, .user = user, .max = max};
}

void events_fini(struct events *e)
{
    free(e->line);
    free(e->data);
    e->line = e->data = NULL;
}

static int append(char **text, size_t *len, size_t *cap, const char *more, size_t n,
                  size_t max)
{
    void *items = *text;

    if (n > max || *len + n + 1 > max)
        return -EFBIG;
    int r = array_reserve(&items, cap, *len + n + 1, 1, max);
    *text = items;
    if (r < 0)
        return r;
    memcpy(*text + *len, more, n);
    *len += n;
    (*text)[*len] = '\0';
    return 0;
}

/* An empty line: the event is complete. */
static int dispatch(struct events *e)
{
    int r = 0;

    if (e->has_data) {
        if (e->data_len > 0)
            e->data[--e->data_len] = '\0'; /* the last line's end */
        r = e->fn(*e->event ? e->event : "message", e->data_len > 0 ? e->data : "",
                  e->user);
    }
    e->has_data = false;
    e->data_len = 0;
    e->event[0] = '\0';
    return r;
}

static int take_line(struct events *e)
{
    char *line = e->line_len > 0 ? e->line : (char[1]){""};
    size_t len = e->line_len;
    int r = 0;

    e->line_len = 0;
    if (len == 0)
        return dispatch(e);
    char *value = memchr(line, ':', len);
    if (value == line)
        return 0; /* a comment */
    size_t name = value ? (size_t)(value - line) : len;
    value = value ? value + 1 : line + len;
    if (*value == ' ')
        value++;
    if (name == 4 && memcmp(line, "data", 4) == 0) {
        e->has_data = true;
        r = append(&e->data, &e->data_len, &e->data_cap, value,
                   len - (size_t)(value - line), e->max);
        if (r == 0)
            r = append(&e->data, &e->data_len, &e->data_cap, "\n", 1, e->max);
    } else if (name == 5 && memcmp(line, "event", 5) == 0) {
        size_t n = len - (size_t)(value - line);
        n = n < sizeof e->event ? n : sizeof e->event - 1;
        memcpy(e->event, value, n);
        e->event[n] = '\0';
    }
    return r;
}

int events_feed(struct events *e, const char *text, size_t len)
{
    while (len > 0) {
        size_t n = 0;
        if (e->after_cr && *text == '\n') {
            text++;
            len--;
            e->after_cr = false;
            continue;
        }
        e->after_cr = false;
        while (n < len && text[n] != '\n' && text[n] != '\r')
            n++;
        int r = append(&e->line, &e->line_len, &e->line_cap, text, n, e->max);
        if (r == 0 && n < len) {
            e->after_cr = text[n] == '\r';
            r = take_line(e);
            n++;
        }
        if (r != 0)
            return r;
        text += n;
        len -= n;
    }
    return 0;
}
