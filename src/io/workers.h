/* Workers: the queue, deadlines and results that both kinds of loop share.  Used on the
 * loop's thread; a worker's own thread (lanes.h) holds one call at a time.
 */
#ifndef IO_WORKERS_H
#define IO_WORKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"
#include "io/ring.h"
#include "io/timers.h"

enum { WORKER_QUEUE = 64 };

struct loop_worker {
    struct loop_link link;
    struct loop *loop;
    char name[16];
    struct loop_work queue[WORKER_QUEUE]; /* the running call first */
    size_t head, n;
    bool runs;  /* queue[head] has been started */
    bool hangs; /* `hung` timed out and has not returned */
    struct loop_work hung;
    struct loop_timer deadline; /* of the running call */
    struct loop_timer refuse;   /* answers what is queued behind a hang */
    unsigned calling;           /* callbacks on the stack that still use this */
    bool freed;
    bool shared;               /* shares a thread while its calls return soon */
    struct worker_call *call;  /* real */
    struct lane *lane;         /* real: its thread makes the calls */
    unsigned in_time;          /* real: calls in a row in a lane of its own, in time */
    struct loop_timer begins;  /* virtual: when queue[head] begins */
    struct loop_timer returns; /* virtual: when the call returns */
    int r;                     /* virtual: its result */
    uint64_t ends_ns;          /* virtual: LOOP_NEVER: never returns */
};

/* How the calls of a worker are made. */
struct worker_ops {
    int (*open)(struct loop_worker *worker, uw_error *err);
    /* queue[head], at its time at the earliest */
    void (*start)(struct loop_worker *worker);
    /* Take queue[head] back, or start it now, if it waits for its time.  False: it does
     * not, or it has run; it does not run again.
     */
    bool (*withdraw)(struct loop_worker *worker);
    void (*hasten)(struct loop_worker *worker);
    void (*deadline)(struct loop_worker *worker); /* has come */
    /* The result of the running call, or -ETIMEDOUT; may wait for the call. */
    int (*finish)(struct loop_worker *worker);
    void (*close)(struct loop_worker *worker);
};

/* From the kinds: the call of queue[head] (or the hung one) has returned. */
void loop_worker_returned(struct loop_worker *worker, int r);
/* It has returned and will run again. */
void loop_worker_part(struct loop_worker *worker, int r);
/* The call of queue[head] has passed its deadline. */
void loop_worker_timed_out(struct loop_worker *worker);

/* ---- what workers need of their loop (loop-common.c) ---- */

const struct worker_ops *loop_worker_ops(const struct loop *loop);
struct loop_link *loop_workers(struct loop *loop); /* the ring of all */

#endif
