/* The guard of all boards: holders, leases, the rate of writes, checks of the limit in
 * force, and restoring.  It knows no socket and no process: the program passes it
 * requests from its socket; in virtual time the client passes them directly.  All
 * functions run in the thread of one loop.
 */
#ifndef ACTUATOR_GUARD_H
#define ACTUATOR_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "actuator/journal.h"
#include "actuator/proto.h"
#include "base/auto.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct guard;
struct guard_session;

enum {
    GUARD_BOARDS_MAX = 64,
    GUARD_WRITING_MS = 5, /* a driver refuses a write within this time */
};

struct guard_opts {
    struct loop *loop; /* its clock must be kernel time, or virtual */
    /* How long a board stays held with its cap in force after its client has
     * disconnected; a client of the same uid may take the board over meanwhile.  0: no
     * grace.
     */
    uint64_t grace_ns;
    const struct gpu_backend *backend;
    void *lib;                      /* open; borrowed */
    const struct journal *journal;  /* or NULL */
    const struct core_rules *rules; /* from root's configuration; or NULL */
    /* For a service, which is not restarted: retry to restore an original limit for as
     * long as the service runs; else 20 times (76 s).
     */
    bool keep_trying;
    /* The process has the right that drivers require: the guard reports to the holder
     * when the driver processes its write (PROTO_WRITING).
     */
    bool privileged;
    /* Receives one line for people; or NULL. */
    void (*say)(const char *text, void *user);
    /* A job of a board has ended: query the functions below; or NULL. */
    void (*on_change)(void *user);
    /* The driver was closed to detach a board and cannot be opened again: this process
     * can restore nothing, and the next one recovers from the journal; or NULL.
     */
    void (*on_broken)(const char *text, void *user);
    void *user;
};

int guard_new(const struct guard_opts *opts, struct guard **ret, uw_error *err);
/* Leaves real boards as they are: end the sessions and wait until the guard is idle
 * first.  On a virtual loop it restores what is held.
 */
void guard_free(struct guard *guard);
DEFINE_AUTO(struct guard *, guard_free);

/* Begins to undo the entries of holders that have ended. */
int guard_recover(struct guard *guard, uw_error *err);
/* Whether some entry has not been processed yet (boards that hang excepted). */
bool guard_is_recovering(const struct guard *guard);

/* The program is about to end: no more grace; boards that clients have left, or leave
 * from now on, are restored at once; boards that could not be restored so far are
 * retried, at most 20 times.
 */
void guard_end(struct guard *guard);
/* The time for the shutdown has passed: reports the limit in force and the reason for
 * each board that is not restored.
 */
void guard_give_up(struct guard *guard);

/* Whether no board is held, being restored or recovered.  Boards that hang in the driver
 * count as idle, and as not restored.
 */
bool guard_is_idle(const struct guard *guard);
/* Boards with a call that hangs in the driver. */
unsigned guard_hanging(const struct guard *guard);
/* Whether a job runs in a worker: memory and driver are in use. */
bool guard_is_busy(const struct guard *guard);
/* The number of boards whose original limit could not be restored so far. */
unsigned guard_unrestored(const struct guard *guard);
/* The outcome of the recovery or, after guard_end(), of the shutdown: of the boards that
 * had something to undo, all are restored (or have another program's limit), none, or
 * some.
 */
enum core_status guard_status(const struct guard *guard);

typedef void (*guard_send_fn)(const struct proto_answer *answer, void *user);
struct guard_client {
    pid_t pid; /* reported to other clients that request the same board */
    uid_t uid;
};
/* -EMFILE: too many sessions. */
int guard_session_new(struct guard *guard, const struct guard_client *client,
                      guard_send_fn send, void *user, struct guard_session **ret,
                      uw_error *err);
/* The answer comes through send, possibly at once. */
void guard_request(struct guard_session *session, const struct proto_request *request);
/* The client has disconnected: its boards are restored, at once or after the grace. send
 * is not called any more.
 */
void guard_session_free(struct guard_session *session);

#endif
