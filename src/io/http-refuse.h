/* The log of refusals, once per cause and peer.  Pure. */
#ifndef IO_HTTP_REFUSE_H
#define IO_HTTP_REFUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http.h"

enum { REFUSE_SLOTS = 64, REFUSE_LINE = 320 };
struct refuse_slot {
    uint64_t key, began_ns, again;
    char line[REFUSE_LINE / 2]; /* "cause=… peer=…" */
};
struct refuse_log {
    struct refuse_slot slot[REFUSE_SLOTS];
    size_t n;
    uint64_t others, others_ns; /* refusals while all slots were taken */
    http_log_fn fn;
    void *user;
};
/* cause and peer identify a refusal; detail is for its first line only. */
struct refuse_what {
    const char *cause, *peer, *detail;
};
void refuse_note(struct refuse_log *log, const struct refuse_what *what, uint64_t now_ns);
/* Logs the counts of a minute ago; true while counts are left. */
bool refuse_tick(struct refuse_log *log, uint64_t now_ns);

#endif
