/* A stream's queue: bounded; when it is full the oldest whole event is dropped. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/http-stream.h"

enum { EVENTS = 64, BYTES = 64 * 1024 };

struct http_stream *stream_new(struct http_exchange *x,
                               const struct http_stream_opts *opts)
{
    struct http_stream *stream = calloc(1, sizeof *stream);

    if (!stream)
        return NULL;
    stream->x = x;
    if (opts)
        stream->opts = *opts;
    if (stream->opts.events == 0)
        stream->opts.events = EVENTS;
    if (stream->opts.bytes == 0)
        stream->opts.bytes = BYTES;
    stream->last = &stream->first;
    return stream;
}

static void pop(struct http_stream *stream)
{
    struct stream_event *event = stream->first;

    stream->first = event->next;
    if (!stream->first)
        stream->last = &stream->first;
    stream->n--;
    stream->bytes -= event->len;
    stream->offset = 0;
    free(event);
}

void stream_free(struct http_stream *stream)
{
    if (!stream)
        return;
    while (stream->first)
        pop(stream);
    free(stream);
}

/* Drops the oldest event of which no byte has been sent; false: there is none. */
static bool drop_oldest(struct http_stream *stream)
{
    struct stream_event **at = &stream->first;

    if (*at && stream->offset > 0)
        at = &(*at)->next;
    struct stream_event *event = *at;
    if (!event)
        return false;
    *at = event->next;
    if (!*at)
        stream->last = at;
    stream->n--;
    stream->bytes -= event->len;
    stream->dropped++;
    stream->untold++;
    free(event);
    return true;
}

static size_t put(char *to, const char *bytes, size_t n)
{
    memcpy(to, bytes, n);
    return n;
}

/* "event: …", then each line of data as "data: …", then an empty line. */
static size_t format(char *to, const char *event, const char *data)
{
    size_t at = 0;

    if (event) {
        at += put(to + at, "event: ", 7);
        at += put(to + at, event, strcspn(event, "\r\n"));
        at += put(to + at, "\n", 1);
    }
    for (bool more = true; more;) {
        size_t n = strcspn(data, "\r\n");
        at += put(to + at, "data: ", 6);
        at += put(to + at, data, n);
        at += put(to + at, "\n", 1);
        more = data[n] != '\0';
        data += n + more;
        if (more && data[-1] == '\r' && *data == '\n')
            data++;
    }
    return at + put(to + at, "\n", 1);
}

int stream_push(struct http_stream *stream, const char *event, const char *data)
{
    size_t lines = 1;

    for (const char *p = data; *p != '\0'; p++)
        lines += *p == '\n' || *p == '\r';
    size_t most = (event ? strlen(event) + 8 : 0) + strlen(data) + lines * 7 + 1;
    if (most > stream->opts.bytes)
        return -E2BIG;
    struct stream_event *item = malloc(sizeof *item + most);
    if (!item)
        return -ENOMEM;
    item->next = NULL;
    item->len = format(item->text, event, data);
    while (stream->n + 1 > stream->opts.events ||
           stream->bytes + item->len > stream->opts.bytes)
        if (!drop_oldest(stream))
            break;
    *stream->last = item;
    stream->last = &item->next;
    stream->n++;
    stream->bytes += item->len;
    return 0;
}

void stream_beat(struct http_stream *stream)
{
    if (stream->n > 0 || stream->note_len > 0)
        return;
    stream->note_len = 3;
    memcpy(stream->note, ":\n\n", 4);
}

bool stream_empty(const struct http_stream *stream)
{
    return stream->n == 0 && stream->note_len == 0;
}

/* The note of dropped events, sent before the next event. */
static void take_note(struct http_stream *stream)
{
    if (stream->note_len > 0 || stream->untold == 0 || stream->offset > 0)
        return;
    int n =
        snprintf(stream->note, sizeof stream->note,
                 "event: dropped\ndata: {\"dropped\": %" PRIu64 "}\n\n", stream->untold);
    stream->note_len = (size_t)n;
    stream->untold = 0;
}

size_t stream_pull(struct http_stream *stream, char *buf, size_t max)
{
    size_t done = 0;

    while (done < max) {
        const char *from;
        size_t left;
        if (stream->offset == 0)
            take_note(stream);
        if (stream->offset == 0 && stream->note_len > 0) {
            from = stream->note + stream->note_offset;
            left = stream->note_len - stream->note_offset;
        } else if (stream->first) {
            from = stream->first->text + stream->offset;
            left = stream->first->len - stream->offset;
        } else {
            break;
        }
        size_t n = left < max - done ? left : max - done;
        memcpy(buf + done, from, n);
        done += n;
        if (stream->offset == 0 && stream->note_len > 0) {
            stream->note_offset += n;
            if (n == left)
                stream->note_len = stream->note_offset = 0;
        } else {
            stream->offset += n;
            if (n == left)
                pop(stream);
        }
    }
    return done;
}
