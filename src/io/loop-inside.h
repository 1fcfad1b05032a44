/* What the files of the loop share; nobody else includes this.
 *
 * loop.c holds what both kinds have in common, loop-real.c and loop-virtual.c a
 * table of functions each.  Everything that waits for a time, in either kind, is
 * a struct loop_timer in the loop's heap (timers.c).
 */
#ifndef IO_LOOP_INSIDE_H
#define IO_LOOP_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "io/loop.h"

#define LOOP_NEVER UINT64_MAX

/* A ring of sources, so that whatever is still there can be freed. */
struct loop_link {
    struct loop_link *prev, *next;
};

struct loop_timer {
    struct loop_link link;
    struct loop *loop;
    loop_timer_fn fn;
    void *user;
    uint64_t due_ns, period_ns;
    uint64_t seq; /* order among equal times: first armed, first fired */
    size_t at;    /* place in the heap + 1; 0: not armed */
    bool weak;    /* alone it does not keep loop_run() waiting */
};

struct loop_fd {
    struct loop_link link;
    struct loop *loop;
    loop_fd_fn fn;
    void *user;
    int fd, events;
    uv_poll_t poll;
};

struct loop_signal {
    struct loop_link link;
    struct loop *loop;
    loop_signal_fn fn;
    void *user;
    int signo;
    uv_signal_t signal;       /* real */
    struct loop_timer raised; /* virtual: armed when raised and not yet told */
};

struct loop_child {
    struct loop_link link;
    struct loop *loop;
    loop_child_fn fn; /* NULL once it is forgotten */
    void *user;
    pid_t pid;
    bool ended, own_group;
    int pidfd;                  /* real */
    uv_poll_t poll;             /* real */
    int status;                 /* virtual: what it exited with */
    struct loop_timer ended_at; /* virtual */
};

enum { WORKER_QUEUE = 64 };

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
    bool shared;               /* one thread with others, while its calls return soon */
    struct worker_call *call;  /* real */
    struct lane *lane;         /* real: whose thread makes its calls */
    unsigned in_time;          /* real: calls in a row, in a lane that it did not share */
    struct loop_timer returns; /* virtual: when the call returns */
    int r;                     /* virtual: and what */
    uint64_t ends_ns;          /* virtual: LOOP_NEVER: it does not return */
};

struct loop_ops {
    int (*run)(struct loop *loop, uw_error *err);
    void (*close)(struct loop *loop);
    /* The earliest due time or the number of timers that count has changed. */
    void (*rearm)(struct loop *loop);
    int (*fd_open)(struct loop_fd *source, uw_error *err);
    void (*fd_close)(struct loop_fd *source); /* frees it, now or later */
    int (*signal_open)(struct loop_signal *source, uw_error *err);
    void (*signal_close)(struct loop_signal *source);
    int (*child_open)(struct loop_child *child, const struct loop_child_opts *opts,
                      uw_error *err);
    int (*child_kill)(struct loop_child *child, int signo);
    /* Nobody waits for it any more; the loop still reaps it. */
    void (*child_forget)(struct loop_child *child);
    void (*child_close)(struct loop_child *child); /* frees it, now or later */
    int (*worker_open)(struct loop_worker *worker, uw_error *err);
    void (*worker_start)(struct loop_worker *worker);    /* queue[head] */
    void (*worker_deadline)(struct loop_worker *worker); /* has come */
    /* What the running call returned, or -ETIMEDOUT; it may be waited for. */
    int (*worker_finish)(struct loop_worker *worker);
    void (*worker_close)(struct loop_worker *worker);
};

extern const struct loop_ops loop_real_ops, loop_virtual_ops;

struct loop {
    const struct loop_ops *ops;
    atomic_int refs; /* the owner's and one a worker thread: the clock outlives it */
    struct loop_clock clock;
    bool stopping, running;
    int result;
    struct loop_link timers, fds, signals, children, workers; /* heads of rings */

    struct loop_timer **heap;
    size_t n_heap, cap_heap, n_reserved, n_counting;
    uint64_t next_seq;

    /* real */
    uv_loop_t uv;
    int timer_fd;
    uv_poll_t timer_poll;
    int returned_fd; /* an eventfd: calls of workers have returned */
    uv_poll_t returned_poll;
    size_t n_calls;    /* running ones: keep loop_run() waiting */
    uint64_t armed_ns; /* what timer_fd is set to; LOOP_NEVER: nothing */
    uv_prepare_t before_wait;
    pthread_mutex_t lock;    /* of all lanes */
    pthread_cond_t answered; /* a call has returned and `awaited` is set */
    bool awaited;
    struct call_list answers;   /* calls that have returned and were not told yet */
    struct call_list telling;   /* … and are told now */
    struct lane *common;        /* of the workers that share a thread; NULL: none do */
    struct loop_timer patience; /* … when its call should have returned */
    uint64_t patience_ns;       /* LOOP_PATIENCE_NS, but in tests */

    /* virtual */
    _Atomic uint64_t now_ns;
    uint64_t start_ns;
    int64_t start_utc_ns;
    bool spending; /* inside a loop_work_fn … */
    uint64_t spent_ns;
    struct loop_virtual_programs programs;
    pid_t last_pid;
};

/* Rings. */
void loop_link_init(struct loop_link *head);
void loop_link_add(struct loop_link *head, struct loop_link *link); /* last */
void loop_link_remove(struct loop_link *link);

struct loop *loop_alloc(const struct loop_ops *ops); /* or NULL */
void loop_unref(struct loop *loop);
uint64_t loop_kernel_ns(void); /* CLOCK_BOOTTIME */

/* After a callback: a negative result ends loop_run(). */
void loop_took(struct loop *loop, int r);

/* Timers inside other structs: init reserves room, so that arming cannot fail. */
int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_fn fn,
                    void *user);
void loop_timer_fini(struct loop_timer *timer); /* also of one all zero */
void loop_timer_disarm(struct loop_timer *timer);
/* The earliest, or NULL. */
struct loop_timer *loop_timer_first(const struct loop *loop);
/* Disarm it, or arm it for its next period, and call it. */
void loop_timer_fire(struct loop_timer *timer, uint64_t now_ns);

/* For the kinds: the call of queue[head] has returned (or, with hangs, the hung one). */
void loop_worker_returned(struct loop_worker *worker, int r);
/* … has passed its deadline. */
void loop_worker_timed_out(struct loop_worker *worker);

/* lanes.c: workers of the real loop. */
int lane_worker_open(struct loop_worker *worker, uw_error *err);
void lane_worker_start(struct loop_worker *worker);
void lane_worker_deadline(struct loop_worker *worker);
int lane_worker_finish(struct loop_worker *worker);
void lane_worker_close(struct loop_worker *worker);
void lanes_start(
    struct loop *loop); /* before the loop waits: calls that were handed over */
void lanes_look(struct loop *loop); /* tell what has returned */
void lanes_fini(struct loop *loop);

/* spawn.c: fork and exec. */
int loop_child_spawn(const struct loop_child_opts *opts, pid_t *ret, uw_error *err);

#endif
