/* The loop: the only place that reads a clock, waits, or starts a program.
 *
 * One thread runs it.  There are two kinds behind one interface: the real one
 * (libuv; simulated time = t0 + speed x (BOOTTIME - t0), speed 1 unless a
 * simulated world says otherwise) and the virtual one of tests
 * (tests/virtual/virtual-loop.h: time jumps from event to event).  Callers cannot tell
 * them apart.
 *
 * Callbacks run in the loop's thread and never block.  A callback returns 0, or
 * a negative result that ends loop_run(), which returns it.  Every source may
 * be freed from any callback, its own included; NULL is fine for every free.
 */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "underwatt/error.h"

struct loop;

/* How fast the loop's clock runs against CLOCK_BOOTTIME.  {0, 1} is real time. */
struct loop_clock {
    uint64_t t0_ns; /* CLOCK_BOOTTIME at which both clocks agree */
    double speed;   /* simulated seconds a real second, > 0 */
};

/* "T0_NS:SPEED", as UNDERWATT_CLOCK carries it.  NULL or "" is real time. */
int loop_clock_parse(const char *text, struct loop_clock *ret, uw_error *err);

int loop_new_real(struct loop_clock clock, struct loop **ret, uw_error *err);
/* Frees every source still there, workers first (see loop_worker_free()).  Threads
 * that hang in a call are left: they may go on using the loop's clock.  Not from a
 * callback.
 */
void loop_free(struct loop *loop);
DEFINE_AUTO(struct loop *, loop_free);

/* The loop's CLOCK_BOOTTIME.  Any thread may ask. */
uint64_t loop_now_ns(const struct loop *loop);
/* The loop's time when CLOCK_BOOTTIME showed boot_ns; a virtual loop's is that. */
uint64_t loop_at_ns(const struct loop *loop, uint64_t boot_ns);
/* UTC in ns since 1970, for what goes to disk or over the wire. */
int64_t loop_utc_ns(const struct loop *loop);
double loop_speed(const struct loop *loop); /* 1 for real and virtual ones */
bool loop_is_virtual(const struct loop *loop);

/* Runs until loop_stop(), a callback's failure, or nothing is left to wait for (0):
 * signals, idle workers, calls past their deadline and forgotten children do not keep it
 * running; on a virtual loop neither does a program that waits for nothing.  May be
 * called again; an earlier loop_stop() counts.  -EBUSY from inside a callback.  *err only
 * names the -errno: the failed callback knows the details.
 */
int loop_run(struct loop *loop, uw_error *err);
/* From the loop's thread; the first result given counts. */
void loop_stop(struct loop *loop, int result);

/* ---- timers ---- */

struct loop_timer;
typedef int (*loop_timer_fn)(struct loop_timer *timer, uint64_t now_ns, void *user);

/* Fires once at at_ns (loop's time; the past means at once), then, where
 * period_ns > 0, each period after that: due times do not drift, and periods
 * that were missed altogether are skipped.  Equal times fire in the order in which
 * they were set.  Never early; a suspended machine's time counts.
 */
int loop_timer_new(struct loop *loop, uint64_t at_ns, uint64_t period_ns,
                   loop_timer_fn fn, void *user, struct loop_timer **ret, uw_error *err);
/* Arms the timer again, whether it has fired or not; also from its own callback. */
void loop_timer_set(struct loop_timer *timer, uint64_t at_ns, uint64_t period_ns);
/* The timer may fire up to slack_ns later than it is due, so that the loop need not wake
 * up for it alone: it fires when the loop is awake anyway, or slack_ns late.  0 at first.
 * A virtual loop fires it when it is due.
 */
void loop_timer_slack(struct loop_timer *timer, uint64_t slack_ns);
void loop_timer_free(struct loop_timer *timer);
/* Whether a wait of wait_ns that ends at *until_ns is over.  Where the loop comes later
 * than that by half of wait_ns, the process stood still (SIGSTOP, a suspended machine)
 * and what it waits for had no time to come: the wait begins again.
 */
bool loop_waited(uint64_t *until_ns, uint64_t now_ns, uint64_t wait_ns);

/* ---- descriptors, signals ---- */

enum { LOOP_READ = 1, LOOP_WRITE = 2 };
struct loop_fd;
typedef int (*loop_fd_fn)(struct loop_fd *source, int fd, int events, void *user);
/* The descriptor stays the caller's, but becomes non-blocking; one source a
 * descriptor; level-triggered.  An error or hang-up comes as the events waited for.
 * -EPERM for what needs no waiting (files), -ENOTSUP on a virtual loop.
 */
int loop_fd_new(struct loop *loop, int fd, int events, loop_fd_fn fn, void *user,
                struct loop_fd **ret, uw_error *err);
void loop_fd_free(struct loop_fd *source);

struct loop_signal;
typedef int (*loop_signal_fn)(struct loop_signal *source, int signo, void *user);
int loop_signal_new(struct loop *loop, int signo, loop_signal_fn fn, void *user,
                    struct loop_signal **ret, uw_error *err);
void loop_signal_free(struct loop_signal *source);

/* ---- children ---- */

struct loop_child;
/* status: as from waitpid().  Called once; the caller must still free the child. */
typedef int (*loop_child_fn)(struct loop_child *child, int status, void *user);
struct loop_child_opts {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *const *env;  /* "NAME=value" added to or replacing ours; or NULL */
    bool env_alone;          /* … without ours; argv[0] is looked up in our PATH */
    const int *pass_fds;     /* descriptors beyond 0..2 to keep open, same numbers */
    size_t n_pass_fds;
    bool inherit; /* pass on descriptors of our caller: loop_child_keep_inherited() */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: ours */
    bool own_group; /* a process group of its own; loop_child_kill() means all of it */
};
/* To be called first in main(): the descriptors now open beyond 0..2 are the caller's and
 * are passed to children with inherit (a make's job server, an MPI's PMI).
 */
void loop_child_keep_inherited(void);
/* -ENOENT, -EACCES, -EISDIR or -ENOEXEC (127 and 126 in a shell) as from program_find()
 * and program_exec(), with argv[0] in *err.  The child gets no other descriptors of this
 * process than those above, whatever library opened them.  Signals that we handle have
 * their default there, those that our caller ignores (nohup) stay ignored, except
 * SIGPIPE.
 */
int loop_child_new(struct loop *loop, const struct loop_child_opts *opts,
                   loop_child_fn fn, void *user, struct loop_child **ret, uw_error *err);
pid_t loop_child_pid(const struct loop_child *child);
int loop_child_kill(struct loop_child *child, int signo); /* 0, or -ESRCH after its end */
/* Forgets the child, which continues and is still reaped while the loop runs. */
void loop_child_free(struct loop_child *child);

/* ---- workers: calls that may block or hang ---- */

struct loop_worker;
/* Runs in the worker's thread; the result is handed to done. */
typedef int (*loop_work_fn)(struct loop *loop, void *work);
/* Runs in the loop's thread.  r: result of fn, -ETIMEDOUT when the deadline passed first
 * (fn may still run: work must stay valid until late is called), -EBUSY when the worker
 * hangs in an earlier call, -ECANCELED when the worker was freed before fn was started.
 */
typedef int (*loop_done_fn)(struct loop *loop, void *work, int r);
/* Runs in the worker's thread after fn, which has not failed: loop's time at which fn is
 * to run again; 0: the call is over.
 */
typedef uint64_t (*loop_again_fn)(struct loop *loop, void *work);
/* Runs in the loop's thread when a call that had timed out has returned. */
typedef void (*loop_late_fn)(struct loop *loop, void *work, int r);

struct loop_work {
    loop_work_fn fn;
    loop_done_fn done;
    loop_late_fn late; /* or NULL */
    void *work;
    uint64_t deadline_ns; /* kernel time from fn's start; 0: no limit */
    uint64_t at_ns; /* loop's time before which fn is not started, and calls without a
                     * time come first; 0: at once */
    /* Or NULL: only done is told, of the last run.  A call of a shared worker runs up to
     * LOOP_RUNS times.  The loop does not wake up for the results of the runs before the
     * last one: each is told to part when the loop is awake next, before done, in order
     * with those of other workers.  Another call of the worker and loop_worker_withdraw()
     * end the call between two runs, done gets 0 then; on a virtual loop and in a thread
     * of its own there is one run.  deadline_ns counts for each run.
     */
    loop_again_fn again;
    loop_done_fn part;
};
enum { LOOP_RUNS = 16 };

/* A worker with a thread and a queue of its own (64 calls at most, including the running
 * one).  On a virtual loop fn runs in the loop's thread.  Only the first 15 bytes of name
 * are kept.
 */
int loop_worker_new(struct loop *loop, const char *name, struct loop_worker **ret,
                    uw_error *err);
/* The same, but these workers share one thread, in the order of submission, and their
 * results are delivered together: for many short calls that may hang nevertheless.  A
 * call that takes longer than LOOP_PATIENCE_NS (kernel time) keeps the thread for itself,
 * and the other workers move to a new one: no call delays another worker for longer than
 * that. After 64 calls in time a worker shares again.  loop_worker_free() cancels a call
 * that has not begun even where nothing is ahead of it; a deadline is LOOP_PATIENCE_NS at
 * least, or 0.
 */
#define LOOP_PATIENCE_NS 50000000ull
int loop_worker_new_shared(struct loop *loop, const char *name, struct loop_worker **ret,
                           uw_error *err);
/* -EAGAIN (the queue is full) or -ECANCELED (the worker is being freed): done is not
 * called.  done is never called from inside submit.
 */
int loop_worker_submit(struct loop_worker *worker, const struct loop_work *work);
/* Takes back the first call that waits for its time: *ret, done is not called.  False: no
 * call waits for its time, or that call has begun; it does not run again then.
 */
bool loop_worker_withdraw(struct loop_worker *worker, struct loop_work *ret);
/* The calls that wait for their time do so no longer. */
void loop_worker_hasten(struct loop_worker *worker);
/* Whether a call has passed its deadline and not returned. */
bool loop_worker_hangs(const struct loop_worker *worker);
/* Calls done for every submitted call before it returns: waits for the running call until
 * its deadline, 2 s at most, then passes -ETIMEDOUT (late is never called, so its work
 * must never be freed); the rest get -ECANCELED.
 */
void loop_worker_free(struct loop_worker *worker);

#endif
