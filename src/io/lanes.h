/* Workers of the real loop: lanes, a thread each and the calls that wait for it.
 *
 * A worker of its own has a lane of its own; shared workers have the common one.  A
 * call that outlasts LOOP_PATIENCE_NS there keeps its thread and makes that lane its
 * worker's own, while the others' go over to a fresh one.  One lock a loop guards
 * calls and lanes; the queue behind a call is the loop's own (workers.h).
 */
#ifndef IO_LANES_H
#define IO_LANES_H

#include <pthread.h>

#include "io/workers.h"

/* A call of a worker on its way through a lane's thread; under the loop's lock. */
struct worker_call {
    struct worker_call *next;   /* among those that wait, or have returned */
    struct loop_worker *worker; /* NULL: freed meanwhile, the thread frees the call */
    struct loop_work work;
    enum { CALL_NONE, CALL_WAITING, CALL_RUNS, CALL_RETURNED } state;
    bool told; /* among those that are told now, by the loop's thread alone */
    int r;
    uint64_t took_ns; /* the kernel's time, as began_ns */
};

struct call_list {
    struct worker_call *first, *last;
};

struct lanes {
    pthread_mutex_t lock;    /* of all lanes */
    pthread_cond_t answered; /* a call has returned and `awaited` is set */
    bool awaited;
    int returned_fd;            /* an eventfd: calls have returned */
    size_t n_calls;             /* running ones: keep loop_run() waiting */
    struct call_list answers;   /* calls that have returned and were not told yet */
    struct call_list telling;   /* … and are told now */
    struct lane *common;        /* of the workers that share a thread; NULL: none do */
    struct loop_timer patience; /* … when its call should have returned */
    uint64_t patience_ns;       /* LOOP_PATIENCE_NS, but in tests */
};

extern const struct worker_ops lane_ops;

void lanes_init(struct lanes *lanes);
/* The last reference to the loop is gone. */
void lanes_destroy(struct lanes *lanes);
void lanes_start(
    struct loop *loop); /* before the loop waits: calls that were handed over */
void lanes_look(struct loop *loop); /* tell what has returned */
void lanes_fini(struct loop *loop);

/* ---- what lanes need of their loop (loop-common.c, loop-real.c) ---- */

struct lanes *loop_lanes(struct loop *loop);
void loop_ref(struct loop *loop); /* of a worker's thread: the clock outlives the loop */
void loop_unref(struct loop *loop);
uint64_t loop_kernel_ns(void); /* CLOCK_BOOTTIME */
/* Calls run, or none does: whether loop_run() waits for them. */
void loop_wait_for_calls(struct loop *loop, bool wait);

#endif
