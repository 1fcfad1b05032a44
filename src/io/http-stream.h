/* The queue of events of one stream: bounded; a full queue drops its oldest whole event.
 */
#ifndef IO_HTTP_STREAM_H
#define IO_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http.h"

struct stream_event {
    struct stream_event *next;
    size_t len;
    char text[];
};
struct http_stream {
    struct http_exchange *x;
    struct http_stream_opts opts;
    struct stream_event *first, **last;
    size_t n, bytes, offset; /* offset: bytes of first already sent */
    uint64_t dropped, untold;
    char note[64]; /* sent between two events: a count of drops, or a heartbeat */
    size_t note_len, note_offset;
    uint64_t moved_ns; /* last time that bytes were sent */
    bool ended;        /* by the caller, for which it no longer exists */
};
struct http_stream *stream_new(struct http_exchange *x,
                               const struct http_stream_opts *opts);
void stream_free(struct http_stream *stream);
int stream_push(struct http_stream *stream, const char *event, const char *data);
void stream_beat(struct http_stream *stream); /* queues a comment if nothing waits */
/* Up to max bytes into buf; 0: nothing waits. */
size_t stream_pull(struct http_stream *stream, char *buf, size_t max);
bool stream_empty(const struct http_stream *stream);

#endif
