/* The guard of all boards: who holds which, leases, the rate of writes, looking
 * after the limit in force, restoring.  Knows no socket and no process: the
 * program feeds it requests from its socket, virtual time from the client itself.
 * All in one loop's thread.
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
    GUARD_WRITING_MS = 5, /* a driver that refuses a write does so sooner */
};

struct guard_opts {
    struct loop *loop; /* its time must be kernel time, or virtual */
    /* How long a board stays held, its cap in force, when its client has gone; one of
     * the same uid may take it over.  0: not at all.
     */
    uint64_t grace_ns;
    const struct gpu_backend *backend;
    void *lib;                      /* open; stays the caller's */
    const struct journal *journal;  /* or NULL */
    const struct core_rules *rules; /* of root's configuration; or NULL */
    /* A service, which is not started anew: an original that cannot be brought back is
     * tried for as long as it runs; else 20 times (76 s).
     */
    bool keep_trying;
    /* The process has the right that drivers ask for: whoever holds a board is told when
     * the driver has its write (PROTO_WRITING).
     */
    bool privileged;
    /* One line for a human; or NULL. */
    void (*say)(const char *text, void *user);
    /* A job of some board has ended: ask below; or NULL. */
    void (*on_change)(void *user);
    /* The driver was let go of for a board's sake and does not come back: nothing can be
     * restored by this process, the next one recovers from the journal; or NULL.
     */
    void (*on_broken)(const char *text, void *user);
    void *user;
};

int guard_new(const struct guard_opts *opts, struct guard **ret, uw_error *err);
/* Leaves real boards as they are: end the sessions and wait for idle before.  On
 * a virtual loop what is held is restored.
 */
void guard_free(struct guard *guard);
DEFINE_AUTO(struct guard *, guard_free);

/* Begin to undo what the journal holds of dead holders. */
int guard_recover(struct guard *guard, uw_error *err);
/* Some entry has not been looked at yet (boards that hang aside). */
bool guard_is_recovering(const struct guard *guard);

/* The program is to end: no more grace, what clients have left, and leave from now on, is
 * restored at once; what could not be restored so far is tried anew, and no longer than
 * 20 times.
 */
void guard_end(struct guard *guard);
/* The time to end is over: report for each board that is not restored the limit it
 * keeps, and why.
 */
void guard_give_up(struct guard *guard);

/* No board is held, being restored or recovered.  Boards that hang in the driver
 * count as idle, and as unrestored.
 */
bool guard_is_idle(const struct guard *guard);
/* Boards with a call that hangs in the driver. */
unsigned guard_hanging(const struct guard *guard);
/* A job is in a worker: memory and driver are in use. */
bool guard_is_busy(const struct guard *guard);
/* Boards whose original could not be brought back (so far). */
unsigned guard_unrestored(const struct guard *guard);
/* Of the recovery, or of the end once guard_end() was called: all that had something to
 * undo were restored (or are another's), none, or some.
 */
enum core_status guard_status(const struct guard *guard);

typedef void (*guard_send_fn)(const struct proto_answer *answer, void *user);
struct guard_client {
    pid_t pid; /* named to others who want the same board */
    uid_t uid;
};
/* -EMFILE: too many sessions. */
int guard_session_new(struct guard *guard, const struct guard_client *client,
                      guard_send_fn send, void *user, struct guard_session **ret,
                      uw_error *err);
/* Answered through send, possibly at once. */
void guard_request(struct guard_session *session, const struct proto_request *request);
/* The client has gone: what it holds is restored, at once or after the grace.  send is
 * not called any more.
 */
void guard_session_free(struct guard_session *session);

#endif
