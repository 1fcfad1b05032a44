/* Caps for a command: what the engine of `run` and `sweep` asks the actuator.
 *
 * Asynchronous, on the caller's loop, all callbacks in its thread.  Three kinds
 * behind one interface: a process of its own, started here (through sudo where the
 * boards are real and we are not root); the node's service, at its socket; and a
 * virtual one (the same code inside this process, on a virtual loop, over any
 * backend).
 *
 * The life of a cap: start → ready → hold a board → set, set, set … → release.
 * A timer renews the lease for as long as the loop runs; if the loop dies, hangs or
 * is stopped, the originals come back without it within 5 s (of a service's client
 * that is killed: once its grace is over, see actuator_connect()).  A request is
 * answered exactly once, each through its callback (never from inside the
 * call that asked), unless actuator_free() comes first: then never.
 * A callback returns 0, or a negative result that ends the loop.
 */
#ifndef ACTUATOR_CLIENT_H
#define ACTUATOR_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "actuator/result.h"
#include "base/auto.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct actuator;
struct core_rules;

typedef int (*actuator_reply_fn)(struct actuator *act, const struct actuator_reply *reply,
                                 void *user);

enum actuator_event {
    ACTUATOR_EVENT_YIELDED, /* a board: another's limit was seen and is left alone */
    ACTUATOR_EVENT_LEASE,   /* a board: our lease ran out (we were stopped?), the
                               original is back; hold it again to go on */
    ACTUATOR_EVENT_LOST,    /* a board: it hangs or is gone; restored when it can be */
    ACTUATOR_EVENT_ENDED,   /* uuid "": the actuator is gone, its keeper (a service's
                               unit or starter) restores; no further request can be
                               made: free it, from in here if need be, and connect
                               again after a while */
    ACTUATOR_EVENT_WRITING, /* a board: a hold's write is with the driver, which has not
                               refused it at once; the hold's answer follows */
};
typedef int (*actuator_event_fn)(struct actuator *act, enum actuator_event event,
                                 const struct actuator_reply *what, void *user);
/* r < 0: no caps can be set; text says why in a line: which right or program is
 * missing and the ways to get it.
 */
typedef int (*actuator_ready_fn)(struct actuator *act, int r, const char *text,
                                 void *user);

struct actuator_opts {
    actuator_ready_fn on_ready; /* mandatory */
    actuator_event_fn on_event; /* mandatory */
    void *user;
    /* Of actuator_start_virtual(), borrowed; NULL: none. */
    const struct core_rules *rules;
    /* The rest is for the process that actuator_start_local() starts. */
    const char *library; /* a boards text (gpu/backends.h); NULL: the system's */
    const char *program; /* underwatt-actuator; NULL: beside this program, or installed */
    bool simulated;      /* gpu_info.simulated of the boards: never needs sudo */
};

/* Where actuator_start_local() finds the program: beside this one, where a build has it,
 * or where packages put it.  false: nowhere.
 */
bool actuator_find_program(char *ret, size_t size);
/* Start the actuator.  0: on_ready follows.  Fails when it cannot be started. */
int actuator_start_local(struct loop *loop, const struct actuator_opts *opts,
                         struct actuator **ret, uw_error *err);
/* Connect to the service at this socket (absolute path).  0: on_ready follows, later
 * where the service is only now being started.  -ENOENT, -ECONNREFUSED: nobody is
 * there; -EACCES, -EPERM: not ours to use; -EAGAIN: too many wait.  The socket must be
 * root's or our own uid's.
 *
 * Whoever dies or hangs up holding boards leaves them as they are for the service's
 * grace (root's configuration; 10 s): their caps stay, and one who connects meanwhile
 * as the same uid and holds such a board takes it over.  The answer is that of any
 * hold: DONE with the limit found by the first hold in original_mw, the one in force
 * now in enforced_mw; nothing has been written.  After the grace the originals come
 * back.  Who is connected but does not renew (hangs, is stopped) loses the leases
 * after ACTUATOR_LEASE_MS all the same, without grace.
 */
int actuator_connect(struct loop *loop, const char *path,
                     const struct actuator_opts *opts, struct actuator **ret,
                     uw_error *err);
/* The same as actuator_start_local() in this process, over the boards of an open backend
 * (borrowed). */
int actuator_start_virtual(struct loop *loop, const struct gpu_backend *backend,
                           void *lib, const struct actuator_opts *opts,
                           struct actuator **ret, uw_error *err);

/* A service in this process, on a virtual loop: its guard (actuator/guard.h) outlives who
 * is connected, so that grace and take-over happen in virtual time, too.
 */
struct guard;
struct actuator_virtual {
    struct guard *guard; /* NULL: it does not run */
    uint64_t life;       /* another number for each other guard */
    bool stopped;        /* neither side hears the other, as if a client were stopped:
                          * no renewals, -EAGAIN for requests; answers wait */
};
/* Connect to it; borrowed for longer than *ret lives.  -ECONNREFUSED: nobody is there.
 * When its guard has gone, ACTUATOR_EVENT_ENDED comes with the next renewal.
 */
int actuator_connect_virtual(struct loop *loop, const struct actuator_virtual *service,
                             const struct actuator_opts *opts, struct actuator **ret,
                             uw_error *err);

/* What follows returns 0 (an answer will come) or -EAGAIN (64 requests are
 * waiting), -ENOTCONN (not ready, or ended), -EINVAL (no such uuid form).
 *
 * Hold: locks the board, notes its original limit, proves the right to set
 * limits by writing that very limit.  DONE, REFUSED, DENIED, TAKEN, UNKNOWN, GONE.
 * A board that another actuator restores, after a command that has ended, is waited for.
 */
int actuator_hold(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                  void *user);
/* Hold a board again after another's limit was left alone there (a plain hold is
 * answered YIELDED from then on).  keep_original: the original is what it was before,
 * and comes back at the end (unless the driver was loaded anew: it has forgotten it);
 * else the limit found now is the original.  Results as above.
 */
int actuator_hold_again(struct actuator *act, const char *uuid, bool keep_original,
                        actuator_reply_fn fn, void *user);
/* DONE, CLAMPED, REFUSED, DENIED, YIELDED, UNKNOWN, GONE, BUSY.  Limits of a board are
 * written ACTUATOR_WRITE_GAP_MS apart at least: a set that comes sooner waits, a still
 * newer one replaces it.
 */
int actuator_set_limit(struct actuator *act, const char *uuid, uint32_t mw,
                       actuator_reply_fn fn, void *user);
/* Lock the SM clock to a range; 0, 0 resets a lock of ours (clocks that we never locked
 * are never reset).  Root's configuration must allow it (clocks), else REFUSED.  Results
 * as above; locked_mhz is the lock of ours that is there now.  No driver can be asked for
 * a lock: DONE means written, not seen.  It waits for its turn apart from limits.
 */
int actuator_set_clocks(struct actuator *act, const char *uuid, uint32_t min_mhz,
                        uint32_t max_mhz, actuator_reply_fn fn, void *user);
/* Original back (DONE: confirmed by read-back, in enforced_mw), lock given up.
 * YIELDED: another's limit stays.  UNKNOWN: could not be restored yet, the actuator
 * goes on trying.
 */
int actuator_release(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                     void *user);

/* The actuator has no more handle of this board, which nobody holds and whose original is
 * back: it can be reset.  The next hold takes it back.  DONE, BUSY (held, being restored,
 * or a call hangs in the driver: text names the board), REFUSED (this driver lets go of
 * all boards or none): nothing has changed.
 */
int actuator_detach(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                    void *user);

/* The energy counters of processors and memory (RAPL), which root alone may open, from
 * the service.  fn is called for each, with its zone ("intel-rapl:0:1") and a descriptor
 * of its energy_uj, which is fn's to close; at last with NULL and -1, then never again.
 * Returns 0, -ENOTCONN, -EBUSY (asked already), -EAGAIN.
 */
typedef int (*actuator_counter_fn)(struct actuator *act, const char *zone, int fd,
                                   void *user);
int actuator_counters(struct actuator *act, actuator_counter_fn fn, void *user);

/* Ends the session: what is still held is restored by the actuator (a service's:
 * after its grace), and one that was started for us ends by itself.  To have it
 * confirmed, release each board first.
 */
void actuator_free(struct actuator *act);
DEFINE_AUTO(struct actuator *, actuator_free);

#endif
