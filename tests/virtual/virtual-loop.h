/* The virtual kind of io/loop.h, for tests and benchmarks: an event queue, where time
 * jumps from event to event; deterministic.
 *
 * A worker's fn runs in the loop's thread, at once when the worker is idle, and done is
 * called after the virtual time that fn spent with loop_spend(), or with -ETIMEDOUT past
 * its deadline.  No descriptor can be waited for (-ENOTSUP).
 */
#ifndef VIRTUAL_VIRTUAL_LOOP_H
#define VIRTUAL_VIRTUAL_LOOP_H

#include "io/loop.h"

/* Time starts at start_ns; UTC is start_utc_s at that moment. */
int loop_new_virtual(uint64_t start_ns, int64_t start_utc_s, struct loop **ret,
                     uw_error *err);

/* ---- of a virtual loop alone ---- */

/* Shifts UTC, as setting the clock does. */
void loop_shift_utc(struct loop *loop, int64_t by_ns);
/* From outside loop_run(): time goes on by ns, and nothing happens meanwhile, as in a
 * process that is stopped.
 */
void loop_virtual_stand(struct loop *loop, uint64_t ns);
/* Nothing else raises a signal there. */
void loop_virtual_raise(struct loop *loop, int signo);

/* What loop_child_new() starts there; pids are above any real one.  start: starts the
 * program with this pid; it ends when it calls loop_virtual_exit(loop, pid, status), also
 * inside start; the child's fn is called from the loop after that.  kill: gets the
 * signals sent to it.
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

/* ---- of both kinds ---- */

/* Within a loop_work_fn: this call takes ns of the loop's time.  Sleeps on a real loop,
 * counts on a virtual one: there loop_now_ns() shows it until fn returns, so another
 * worker's call may then see an earlier time than this one did.  UINT64_MAX on a virtual
 * loop: the call never returns.
 */
void loop_spend(struct loop *loop, uint64_t ns);

#endif
