/* Workers of the real loop: lanes, one thread each with the calls that wait for it.
 *
 * A worker of its own has a lane of its own; shared workers have the common lane.  A call
 * that outlasts LOOP_PATIENCE_NS in the common lane keeps its thread: that lane becomes
 * its worker's own, and the other workers move to a new one.  One lock a loop guards
 * calls and lanes; the queue behind a call belongs to the loop (workers.h).
 */
#ifndef IO_LANES_H
#define IO_LANES_H

#include <pthread.h>

#include "io/workers.h"

/* A worker's call on its way through a lane's thread; guarded by the loop's lock. */
struct worker_call {
    struct worker_call *next;   /* in the list of waiting calls */
    struct loop_worker *worker; /* NULL: freed meanwhile, the thread frees the call */
    struct loop_work work;
    enum { CALL_NONE, CALL_WAITING, CALL_RUNS, CALL_RETURNED } state;
    bool once; /* it does not run again */
    int r;     /* of the last run */
    struct answer {
        struct answer *next; /* in the list of answers */
        struct worker_call *call;
        bool is_part;
        int r;
    } answer, part[LOOP_RUNS - 1]; /* of the last run, and of those before it */
    size_t n_parts;
    uint64_t start_ns; /* kernel time before which it does not begin */
    uint64_t took_ns;  /* kernel time, as began_ns */
};

struct call_list {
    struct worker_call *first, *last;
};

struct answer_list {
    struct answer *first, *last;
};

struct lanes {
    pthread_mutex_t lock;    /* of all lanes */
    pthread_cond_t answered; /* a call has returned and `awaited` is set */
    bool awaited;
    int returned_fd;            /* an eventfd: calls have returned */
    size_t n_calls;             /* running calls, which keep loop_run() waiting */
    struct answer_list answers; /* results not delivered yet */
    struct answer_list telling; /* results being delivered */
    bool news;                  /* a call is over, and returned_fd does not say so yet */
    bool withdrew;              /* the same of withdrawn calls that had run */
    struct lane *common;        /* of shared workers; NULL: none */
    int patience_fd; /* a timer: when the common lane's call should have returned */
    uint64_t
        patient_until_ns; /* time that it is set to; LOOP_NEVER: none, or it has passed */
    uint64_t patience_ns; /* LOOP_PATIENCE_NS, except in tests */
};

extern const struct worker_ops lane_ops;

void lanes_init(struct lanes *lanes);
/* Called with the last reference to the loop. */
void lanes_destroy(struct lanes *lanes);
/* Starts calls that were handed over, before the loop waits. */
void lanes_start(struct loop *loop);
void lanes_look(struct loop *loop); /* delivers the results of returned calls */
/* patience_fd has expired: leaves the common lane to a call that hangs. */
void lanes_on_patience(struct loop *loop);

/* ---- what lanes need of their loop (loop-common.c, loop-real.c) ---- */

struct lanes *loop_lanes(struct loop *loop);
void loop_ref(struct loop *loop); /* for a worker's thread, which uses the clock */
void loop_unref(struct loop *loop);
uint64_t loop_kernel_ns(void); /* CLOCK_BOOTTIME */
/* CLOCK_BOOTTIME at which the loop's clock shows at_ns. */
uint64_t loop_kernel_at(const struct loop *loop, uint64_t at_ns);
/* Whether loop_run() must wait for running calls. */
void loop_wait_for_calls(struct loop *loop, bool wait);

#endif
