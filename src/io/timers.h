/* The timers of a loop: a binary heap by due time, then by the order of arming.  Used on
 * the loop's thread.
 */
#ifndef IO_TIMERS_H
#define IO_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"
#include "io/ring.h"

#define LOOP_NEVER UINT64_MAX

struct loop_timer {
    struct loop_link link;
    struct loop *loop;
    loop_timer_fn fn;
    void *user;
    uint64_t due_ns, period_ns;
    uint64_t slack_ns; /* see loop_timer_slack() */
    uint64_t seq;      /* order among equal times: first armed, first fired */
    size_t at;         /* place in the heap + 1; 0: not armed */
    bool weak;         /* does not keep loop_run() waiting */
};

struct timer_heap {
    struct loop_timer **timer;
    size_t n, cap, n_reserved;
    size_t n_counting; /* timers that keep loop_run() waiting */
    uint64_t next_seq;
    struct loop_link all; /* timers made by loop_timer_new() */
};

/* Timers inside other structs: init reserves memory, so that arming cannot fail. */
int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_fn fn,
                    void *user);
void loop_timer_fini(struct loop_timer *timer); /* also for an all-zero struct */
void loop_timer_disarm(struct loop_timer *timer);
/* The earliest, or NULL. */
struct loop_timer *loop_timer_first(struct loop *loop);
/* The latest time that no armed timer of h minds to be woken at: the least due time plus
 * slack; LOOP_NEVER: none is armed.
 */
uint64_t timer_heap_wake_ns(const struct timer_heap *h);
/* Disarms it, or arms it for its next period, and calls fn. */
void loop_timer_fire(struct loop_timer *timer, uint64_t now_ns);

/* ---- what timers need of their loop (loop-common.c) ---- */

struct timer_heap *loop_heap(struct loop *loop);
/* The earliest due time or the number of counting timers has changed. */
void loop_rearm(struct loop *loop);
/* After a callback: a negative result ends loop_run(). */
void loop_took(struct loop *loop, int r);

#endif
