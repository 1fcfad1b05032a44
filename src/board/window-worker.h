/* A thread that computes windows for all samplers of a process, on copies of their
 * meters: folding one may take a second where a sensor looks part of the time, and a
 * daemon's loop must not wait that long.  One copy at a time.
 */
#ifndef BOARD_WINDOW_WORKER_H
#define BOARD_WINDOW_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/meter/meter.h"
#include "io/loop.h"

struct window_worker;

int window_worker_new(struct loop *loop, struct window_worker **ret, uw_error *err);
/* After everybody who asks. */
void window_worker_free(struct window_worker *f);
DEFINE_AUTO(struct window_worker *, window_worker_free);

/* A window of one meter; the asker's own, from window_worker_add() until done or
 * forgotten. */
struct window_ask {
    const struct meter *meter;
    uint64_t begin_ns, end_ns;
    int (*done)(struct window_ask *ask, void *user); /* called once, never from inside */
    void *user;
    /* The answer: */
    int r; /* as meter_window() has it, or -ENOMEM */
    uw_error error;
    struct meter_result result;
    double peak_w;           /* 0 unknown */
    struct window_ask *next; /* for window-worker.c */
};
void window_worker_add(struct window_worker *f, struct window_ask *ask);
void window_worker_forget(struct window_worker *f,
                          const struct window_ask *ask); /* none of f's: fine */

#endif
