/* The loop: the only place that reads a clock, waits, or starts a program.
 *
 * One thread runs it.  There are two kinds behind one interface: the real one
 * (libuv; simulated time = t0 + speed x (BOOTTIME - t0), speed 1 unless a
 * simulated world says otherwise) and the virtual one (an event queue: time
 * jumps from event to event, deterministic).  Callers cannot tell them apart.
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
/* Time starts at start_ns; UTC is start_utc_s at that moment. */
int loop_new_virtual(uint64_t start_ns, int64_t start_utc_s, struct loop **ret,
                     uw_error *err);
/* Frees every source still there, workers first (see loop_worker_free()).  Threads
 * that hang in a call are left: they may go on using the loop's clock.  Not from a
 * callback.
 */
void loop_free(struct loop *loop);
DEFINE_AUTO(struct loop *, loop_free);

/* The loop's CLOCK_BOOTTIME.  Any thread may ask. */
uint64_t loop_now_ns(const struct loop *loop);
/* UTC in ns since 1970, for what goes to disk or over the wire. */
int64_t loop_utc_ns(const struct loop *loop);
/* Of a virtual one: somebody sets the clock. */
void loop_shift_utc(struct loop *loop, int64_t by_ns);
double loop_speed(const struct loop *loop); /* 1 for real and virtual ones */
bool loop_is_virtual(const struct loop *loop);

/* Run until loop_stop(), a callback's failure, or nothing is left to wait for
 * (0): signals alone, idle workers, calls past their deadline and forgotten
 * children do not keep it; on a virtual loop neither does a program that waits
 * for nothing.  May be called again; a loop_stop() before it counts.  -EBUSY from
 * inside a callback.  *err says no more than what -errno it was: whoever failed
 * knows more.
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
/* Anew, whether it has fired or not; also from its own callback. */
void loop_timer_set(struct loop_timer *timer, uint64_t at_ns, uint64_t period_ns);
void loop_timer_free(struct loop_timer *timer);

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
/* On a virtual loop nothing raises one but loop_virtual_raise(). */
int loop_signal_new(struct loop *loop, int signo, loop_signal_fn fn, void *user,
                    struct loop_signal **ret, uw_error *err);
void loop_signal_free(struct loop_signal *source);
void loop_virtual_raise(struct loop *loop, int signo);

/* ---- children ---- */

struct loop_child;
/* status: as waitpid() gives it.  Once; the child is still to be freed. */
typedef int (*loop_child_fn)(struct loop_child *child, int status, void *user);
struct loop_child_opts {
    const char *const *argv; /* ends with NULL; argv[0] is looked up in PATH */
    const char *const *env;  /* "NAME=value" added to or replacing ours; or NULL */
    const int *pass_fds;     /* descriptors to keep open beyond 0..2 … */
    size_t n_pass_fds;       /* … under the same numbers */
    bool inherit; /* those that our caller gave us, too: loop_child_keep_inherited() */
    int stdin_fd, stdout_fd, stderr_fd; /* -1: ours */
    bool own_group; /* a process group of its own; loop_child_kill() means all of it */
};
/* First thing in main(): what is open beyond 0..2 now is our caller's, and goes on to
 * children with inherit (a make's job server, an MPI's PMI).
 */
void loop_child_keep_inherited(void);
/* -ENOENT or -EACCES as execvp() says it (127 and 126 to a shell), with argv[0] in
 * *err.  No descriptor of ours is open there but those named above, whatever library
 * opened it.  Signals that we handle are at their default there, those that our caller
 * ignores (nohup) stay ignored, except SIGPIPE.  On a virtual loop the program is
 * what loop_virtual_programs() named; pids there are above any real one.
 */
int loop_child_new(struct loop *loop, const struct loop_child_opts *opts,
                   loop_child_fn fn, void *user, struct loop_child **ret, uw_error *err);
pid_t loop_child_pid(const struct loop_child *child);
int loop_child_kill(struct loop_child *child,
                    int signo); /* 0, or -ESRCH once it is gone */
/* Forgets the child; it runs on, and is still reaped while the loop runs. */
void loop_child_free(struct loop_child *child);

/* A program of a virtual world: start it with this pid; it ends when it calls
 * loop_virtual_exit(loop, pid, status), inside start too; fn is called from the
 * loop after that.  A signal sent to it goes to kill.
 */
struct loop_virtual_programs {
    int (*start)(const struct loop_child_opts *opts, pid_t pid, void *user,
                 uw_error *err);
    int (*kill)(pid_t pid, int signo, void *user);
    void *user;
};
void loop_virtual_programs(struct loop *loop,
                           const struct loop_virtual_programs *programs);
void loop_virtual_exit(struct loop *loop, pid_t pid, int status);

/* ---- workers: calls that may block or hang ---- */

struct loop_worker;
/* Runs in the worker's thread; the result is handed to done. */
typedef int (*loop_work_fn)(struct loop *loop, void *work);
/* Runs in the loop's thread.  r: what fn returned, -ETIMEDOUT when the deadline
 * passed first (fn may still run: work must stay alive until late is called),
 * -EBUSY when the worker hangs in an earlier call, -ECANCELED when the worker was
 * freed before fn was started.
 */
typedef int (*loop_done_fn)(struct loop *loop, void *work, int r);
/* Called in the loop's thread when a call that had timed out returned after all. */
typedef void (*loop_late_fn)(struct loop *loop, void *work, int r);

struct loop_work {
    loop_work_fn fn;
    loop_done_fn done;
    loop_late_fn late; /* or NULL */
    void *work;
    uint64_t deadline_ns; /* kernel time from fn's start; 0: no limit */
};

/* One thread and a queue of its own (bounded: 64 calls, the running one among
 * them).  On a virtual loop fn runs in the loop's thread, at once when the worker is
 * idle, and done is called after the virtual time that fn spent with loop_spend();
 * past its deadline it gets -ETIMEDOUT there too.  Only the first 15 bytes of name
 * are kept.
 */
int loop_worker_new(struct loop *loop, const char *name, struct loop_worker **ret,
                    uw_error *err);
/* A worker as above, but all of these share one thread, in the order of submission,
 * and what they have done together is told together: for calls that are many, short and
 * may hang all the same.  One that takes longer than LOOP_PATIENCE_NS (kernel time)
 * keeps the thread for itself, and the others go on in a fresh one: nobody is delayed
 * longer than that by another's call.  After 64 calls in time it shares again.  A call
 * that has not begun is cancelled by loop_worker_free() even where nothing is ahead of
 * it; a deadline is LOOP_PATIENCE_NS at least, or 0.
 */
#define LOOP_PATIENCE_NS 50000000ull
int loop_worker_new_shared(struct loop *loop, const char *name, struct loop_worker **ret,
                           uw_error *err);
/* 0, -EAGAIN (the queue is full) or -ECANCELED (called while it is being freed):
 * then done is not called.  done is never called from inside submit.
 */
int loop_worker_submit(struct loop_worker *worker, const struct loop_work *work);
/* A call has passed its deadline and not returned. */
bool loop_worker_hangs(const struct loop_worker *worker);
/* Calls done for everything submitted before it returns: the running call is
 * waited for as long as its deadline lets it, 2 s at most, then told -ETIMEDOUT
 * (late never comes, so its work must be left alone for good); the rest -ECANCELED.
 */
void loop_worker_free(struct loop_worker *worker);

/* Within a loop_work_fn: this call takes ns of the loop's time.  Sleeps on a
 * real loop, counts on a virtual one: there loop_now_ns() shows it until fn returns,
 * so another worker's call may then see an earlier time than this one did.
 * UINT64_MAX on a virtual loop: the call never returns.
 */
void loop_spend(struct loop *loop, uint64_t ns);

#endif
