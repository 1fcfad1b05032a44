/* The client side of the actuator.
 *
 * Asynchronous, on the caller's loop, all callbacks in its thread.  There are three kinds
 * of actuator behind one interface: a process started here (through sudo where the boards
 * are real and this process is not root); the node's service, at its socket; and a
 * virtual one (the same code inside this process, on a virtual loop, over any backend).
 *
 * The life of a cap: start, ready, hold a board, set (repeated), release. A timer renews
 * the lease for as long as the loop runs.  If the loop ends, hangs or is stopped, the
 * actuator restores the original limits within 5 s (for a killed client of a service:
 * after its grace, see actuator_connect()).  Each request is answered exactly once
 * through its callback, never from inside the call that made the request; after
 * actuator_free() no callback is called.
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
    ACTUATOR_EVENT_YIELDED, /* a board: another program set the limit, which stays in
                               force */
    ACTUATOR_EVENT_LEASE,   /* a board: the lease expired (this process was stopped?) and
                               the original limit was restored; hold the board again to
                               continue */
    ACTUATOR_EVENT_LOST,    /* a board hangs or is gone; it is restored when possible */
    ACTUATOR_EVENT_ENDED,   /* uuid "": the actuator has ended, and its keeper (of a
                               service: the unit or the starter) restores the limits; no
                               further request is possible: free the client, also from
                               within this callback, and connect again after a while */
    ACTUATOR_EVENT_WRITING, /* a board: the driver is processing the write of a hold and
                               has not refused it at once; the hold's answer follows */
    ACTUATOR_EVENT_BOARD,   /* a board: root's range (from, to); TAKEN: another Underwatt
                               holds the board (pid, original_mw; text without the board's
                               name), DONE: none does.  After on_ready for each board,
                               then when the holder has changed; never from an older
                               actuator */
};
typedef int (*actuator_event_fn)(struct actuator *act, enum actuator_event event,
                                 const struct actuator_reply *what, void *user);
/* r < 0: no caps can be set; text is one line that names the missing right or program and
 * the remedies.
 */
typedef int (*actuator_ready_fn)(struct actuator *act, int r, const char *text,
                                 void *user);

struct actuator_opts {
    actuator_ready_fn on_ready; /* mandatory */
    actuator_event_fn on_event; /* mandatory */
    void *user;
    /* For actuator_start_virtual(); borrowed; NULL: none. */
    const struct core_rules *rules;
    /* The following members are for actuator_start_local(). */
    const char *library; /* a boards text (gpu/backends.h); NULL: the system's */
    const char *program; /* underwatt-actuator; NULL: beside this program, or installed */
    bool simulated;      /* gpu_info.simulated of the boards: never needs sudo */
};

/* Finds the program for actuator_start_local(): beside this one, in the place where a
 * build has it, or where packages install it.  false: not found.
 */
bool actuator_find_program(char *ret, size_t size);
/* Starts the actuator.  0: on_ready follows.  Fails when it cannot be started. */
int actuator_start_local(struct loop *loop, const struct actuator_opts *opts,
                         struct actuator **ret, uw_error *err);
/* Connects to the service at this socket (absolute path).  0: on_ready follows, possibly
 * after the service has started.  -ENOENT, -ECONNREFUSED: no service listens; -EACCES,
 * -EPERM: this user may not connect; -EAGAIN: too many clients wait.  The socket must
 * belong to root or to this uid.
 *
 * When a client that holds boards ends or disconnects, its caps stay in force for the
 * service's grace (root's configuration; 10 s).  A client of the same uid that connects
 * and holds such a board meanwhile takes the board over.  The answer is that of any hold:
 * DONE with the limit found by the first hold in original_mw and the limit in force in
 * enforced_mw; nothing has been written.  After the grace the service restores the
 * original limits.  A client that is connected but does not renew (it hangs or is
 * stopped) loses its leases after ACTUATOR_LEASE_MS, without grace; where the service
 * itself stood still then, ACTUATOR_RENEW_MS after it goes on.
 */
int actuator_connect(struct loop *loop, const char *path,
                     const struct actuator_opts *opts, struct actuator **ret,
                     uw_error *err);
/* As actuator_start_local(), but inside this process, over the boards of an open backend
 * (borrowed).
 */
int actuator_start_virtual(struct loop *loop, const struct gpu_backend *backend,
                           void *lib, const struct actuator_opts *opts,
                           struct actuator **ret, uw_error *err);

/* A service in this process, on a virtual loop.  Its guard (actuator/guard.h) outlives
 * its clients, so that grace and take-over also happen in virtual time.
 */
struct guard;
struct actuator_virtual {
    struct guard *guard; /* NULL: the service does not run */
    uint64_t life;       /* differs for each guard */
    bool stopped; /* no messages pass in either direction, as if the client were stopped:
                     no renewals, -EAGAIN for requests; answers wait */
};
/* Connects to the virtual service, which must outlive *ret.  -ECONNREFUSED: it does not
 * run.  When its guard ends, ACTUATOR_EVENT_ENDED comes with the next renewal.
 */
int actuator_connect_virtual(struct loop *loop, const struct actuator_virtual *service,
                             const struct actuator_opts *opts, struct actuator **ret,
                             uw_error *err);

/* The functions below return 0 (an answer will come), -EAGAIN (64 requests are waiting),
 * -ENOTCONN (not ready, or ended) or -EINVAL (not a valid uuid).
 *
 * Hold: locks the board, records its original limit, and proves the right to set limits
 * by writing that limit.  DONE, REFUSED, DENIED, TAKEN, UNKNOWN, GONE. While another
 * actuator restores the board after a command that has ended, the hold waits.
 */
int actuator_hold(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                  void *user);
/* Holds a board again after the session has yielded to another program's limit there (a
 * plain hold is then answered YIELDED).  keep_original: the original limit stays as it
 * was, and is restored at the end (unless the driver was reloaded since); else the limit
 * found now becomes the original.  Results as above.
 */
int actuator_hold_again(struct actuator *act, const char *uuid, bool keep_original,
                        actuator_reply_fn fn, void *user);
/* DONE, CLAMPED, REFUSED, DENIED, YIELDED, UNKNOWN, GONE, BUSY.  Limits of a board are
 * written at least ACTUATOR_WRITE_GAP_MS apart: a request that comes sooner waits, and a
 * newer request replaces it.
 */
int actuator_set_limit(struct actuator *act, const char *uuid, uint32_t mw,
                       actuator_reply_fn fn, void *user);
/* Locks the SM clock to a range; 0, 0 resets Underwatt's lock (clocks that Underwatt
 * never locked are never reset).  Root's configuration must allow locks (clocks), else
 * REFUSED.  Results as above; locked_mhz is Underwatt's lock after the call.  No driver
 * reports a lock: DONE means written, not verified.  Requests for clocks and for limits
 * are queued separately.
 */
int actuator_set_clocks(struct actuator *act, const char *uuid, uint32_t min_mhz,
                        uint32_t max_mhz, actuator_reply_fn fn, void *user);
/* Restores the original limit (DONE: confirmed by read-back, in enforced_mw) and gives up
 * the lock.  YIELDED: another program's limit stays.  UNKNOWN: the limit could not be
 * restored yet, and the actuator keeps trying.
 */
int actuator_release(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                     void *user);

/* Looks for other holders of the boards now, which happens with each renewal anyway: fn
 * is called after the events of the boards whose holder has changed.
 */
int actuator_look(struct actuator *act, actuator_reply_fn fn, void *user);

/* Closes the driver on this board, so that the board can be reset; it must not be held,
 * and its original limit must be restored.  The next hold attaches the board again.
 * DONE, BUSY (held, being restored, or a call hangs in the driver: text names the board),
 * REFUSED (this driver cannot detach a single board): nothing has changed.
 */
int actuator_detach(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                    void *user);

/* Gets the energy counters of processors and memory (RAPL), which only root may open,
 * from the service.  fn is called once for each counter, with its zone ("intel-rapl:0:1")
 * and a descriptor of its energy_uj, which fn must close, and finally with NULL and -1.
 * Returns 0, -ENOTCONN, -EBUSY (already requested), -EAGAIN.
 */
typedef int (*actuator_counter_fn)(struct actuator *act, const char *zone, int fd,
                                   void *user);
int actuator_counters(struct actuator *act, actuator_counter_fn fn, void *user);

/* Ends the session.  The actuator restores the boards that are still held (a service:
 * after its grace); an actuator that was started here then ends.  For a confirmation,
 * release each board first.
 */
void actuator_free(struct actuator *act);
DEFINE_AUTO(struct actuator *, actuator_free);

#endif
