/* The loop: one class in two files, and the virtual kind that tests have; no other file
 * includes this.
 *
 * loop-common.c has the parts common to both kinds, loop-real.c and the tests'
 * tests/virtual/virtual-loop.c a table of functions each.  Parts of the loop: timers.h
 * (due times of both kinds), workers.h (queues, deadlines and results of calls), lanes.h
 * (threads of the real loop's workers), spawn.h (fork and exec).
 */
#ifndef IO_LOOP_INSIDE_H
#define IO_LOOP_INSIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "io/lanes.h"
#include "io/loop.h"
#include "io/timers.h"
#include "io/workers.h"

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
    struct loop_timer raised; /* virtual: armed while a raised signal is not delivered */
};

struct loop_child {
    struct loop_link link;
    struct loop *loop;
    loop_child_fn fn; /* NULL: forgotten */
    void *user;
    pid_t pid;
    bool ended, own_group;
    int pidfd;                  /* real */
    uv_poll_t poll;             /* real */
    int status;                 /* virtual: exit status */
    struct loop_timer ended_at; /* virtual */
};

struct loop_ops {
    bool is_virtual;
    uint64_t (*now_ns)(const struct loop *loop);
    int64_t (*utc_ns)(const struct loop *loop);
    int (*run)(struct loop *loop, uw_error *err);
    void (*close)(struct loop *loop);
    /* The earliest due time or the number of counting timers has changed. */
    void (*rearm)(struct loop *loop);
    int (*fd_open)(struct loop_fd *source, uw_error *err);
    void (*fd_close)(struct loop_fd *source); /* frees it, now or later */
    int (*signal_open)(struct loop_signal *source, uw_error *err);
    void (*signal_close)(struct loop_signal *source);
    int (*child_open)(struct loop_child *child, const struct loop_child_opts *opts,
                      uw_error *err);
    int (*child_kill)(struct loop_child *child, int signo);
    /* The caller has forgotten the child; the loop still reaps it. */
    void (*child_forget)(struct loop_child *child);
    void (*child_close)(struct loop_child *child); /* frees it, now or later */
    const struct worker_ops *workers;
};

struct loop {
    const struct loop_ops *ops;
    atomic_int refs; /* one of the owner, one a worker thread, which uses the clock */
    struct loop_clock clock;
    bool stopping, running;
    int result;
    struct loop_link timers, fds, signals, children, workers; /* heads of rings */

    struct timer_heap heap;

    /* real */
    uv_loop_t uv;
    int timer_fd;
    uv_poll_t timer_poll;
    uv_poll_t returned_poll;
    uv_poll_t patience_poll;
    uint64_t armed_ns; /* time that timer_fd is set to; LOOP_NEVER: none */
    uv_prepare_t before_wait;
    uv_check_t after_wait;
    struct lanes lanes;
};

/* Of size bytes, which begin with a struct loop; or NULL. */
struct loop *loop_alloc(const struct loop_ops *ops, size_t size);

#endif
