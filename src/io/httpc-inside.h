/* What the files of the HTTP client share; nobody else includes this. */
#ifndef IO_HTTPC_INSIDE_H
#define IO_HTTPC_INSIDE_H

#include "io/httpc.h"

/* Text of server-sent events into events (the format of the HTML standard: event, data,
 * comments; id and retry are passed over).
 */
struct events {
    httpc_event_fn fn;
    void *user;
    size_t max; /* bytes of one event */
    char *line, *data;
    size_t line_len, line_cap, data_len, data_cap;
    char event[64];
    bool has_data, after_cr;
};
void events_init(struct events *e, size_t max, httpc_event_fn fn, void *user);
void events_fini(struct events *e);
/* 0, what fn returned, -EFBIG or -ENOMEM: then it takes no more. */
int events_feed(struct events *e, const char *text, size_t len);

#endif
