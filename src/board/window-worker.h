/* Worker thread that computes windows for all samplers of a process, on copies of their
 * meters, one at a time.  A window may take a second to compute if the sensor sees the
 * board only part of the time, too long for the loop's thread (METER_E_FOLDS); the others
 * take less than the copy does.
 */
#ifndef BOARD_WINDOW_WORKER_H
#define BOARD_WINDOW_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/meter/meter.h"
#include "io/loop.h"

struct window_worker;

int window_worker_new(struct loop *loop, struct window_worker **ret, uw_error *err);
/* Call it after all users have dropped their queries. */
void window_worker_free(struct window_worker *f);
DEFINE_AUTO(struct window_worker *, window_worker_free);

/* A query for a window of one meter; borrowed from window_worker_add() until done() or
 * window_worker_forget().
 */
struct window_ask {
    const struct meter *meter;
    uint64_t begin_ns, end_ns;
    int (*done)(struct window_ask *ask, void *user); /* called once, never from inside */
    void *user;
    /* Set before done(): */
    int r; /* as of meter_window(), or -ENOMEM */
    uw_error error;
    struct meter_result result;
    double peak_w;           /* 0: unknown */
    struct window_ask *next; /* for window-worker.c */
};
void window_worker_add(struct window_worker *f, struct window_ask *ask);
/* Drops a query; ask need not be pending. */
void window_worker_forget(struct window_worker *f, const struct window_ask *ask);

#endif
