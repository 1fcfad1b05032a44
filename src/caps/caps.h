/* The caps of all boards of the node: claims, arbiter, ramp, the actuator's answers and
 * changes by other writers.  In the daemon no other code causes a cap.
 *
 * Owns the claims, the verdict and the ramp of each board.  Touches src/board and, for
 * every write, actuator/client.h; no file.  Runs on the loop's thread.  Explained in
 * docs/caps.md; the parts of this class: clock-lock.h (the SM clock), other-writers.h
 * (causes).
 *
 * The actuator holds a board only while a claim asks for less than its original limit, a
 * search works on it, or boards are always held; other boards are left alone.  The
 * original is the limit that the actuator found or, while the board is not held, the
 * limit that is set.
 *
 * Callbacks may not call caps, except caps_look(); caps_done_fn may call any function.
 * caps_free() is allowed only in the callback of caps_end().
 */
#ifndef CAPS_CAPS_H
#define CAPS_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caps/types.h"
#include "io/loop.h"

struct caps;

/* An event of a board's cap, for ledger, log and live views. */
enum caps_event { CAP_EVENTS(NAME_ENUM) };
struct caps_what {
    enum caps_event event;
    size_t board;
    uint64_t at_ns;
    const struct claim
        *claim; /* borrowed for the call; the winner for CAP; may be NULL */
    uint32_t target_mw, enforced_mw;
    uint32_t clock_mhz; /* of CLOCK */
    enum caps_cause cause;
    const char *text; /* "" none */
};
typedef void (*caps_event_fn)(const struct caps_what *what, void *user);

struct caps_opts {
    struct loop *loop;
    struct boards *boards;
    struct caps_conf conf;
    uint64_t first_id;      /* first id of new claims, which stay above all given ids;
                             * 0: 1 */
    caps_event_fn on_event; /* mandatory */
    void *user;
};

int caps_new(const struct caps_opts *opts, struct caps **ret, uw_error *err);
/* Does not restore limits: call caps_end() first, else the actuator restores them.  Free
 * the actuator first: its pending requests point here.
 */
void caps_free(struct caps *c);
DEFINE_AUTO(struct caps *, caps_free);

/* Sets the actuator, which must be ready, or NULL when it is gone: claims stay, and
 * boards are held again by the next one.  A new actuator is asked to hold every board
 * with a claim; where it still holds the board for us (after a restart of the daemon),
 * the ramp continues from the cap in force.  So make the claims first.  Borrowed until
 * the next call.  Its on_event must call caps_on_actuator().
 */
void caps_use_actuator(struct caps *c, struct actuator *act);
/* Why there is none: the text of boards that claims want held. */
void caps_no_actuator(struct caps *c, const char *text);
void caps_on_actuator(struct caps *c, enum actuator_event event,
                      const struct actuator_reply *what);
/* Asks the actuator now who else holds boards, which it reports by itself within 2 s. */
void caps_look_for_holders(struct caps *c);
/* Applies new settings at once. */
void caps_configure(struct caps *c, const struct caps_conf *conf);

/* Makes a claim on a board.  id 0: a new id, returned in *ret_id (may be NULL); made_ns
 * 0: now.  -EINVAL, -E2BIG, -ERANGE (above the board's maximum, or below its minimum and
 * not hard: text names board, value and range), -ENODEV (no such board), -ENOTSUP (the
 * board takes no limit; its clocks cannot be locked, or may not: conf.clocks).  Nothing
 * changes on failure.
 */
int caps_claim(struct caps *c, size_t board, const struct claim *claim, uint64_t *ret_id,
               uw_error *err);
/* Changes the reason of a claim and nothing else: no event, no new time. */
void caps_explain(struct caps *c, size_t board, uint64_t id, const char *why);
/* -ENOENT: no such claim on that board.  -EPERM: its source may not be ended by others
 * (claim-sources.h).
 */
int caps_withdraw(struct caps *c, size_t board, uint64_t id, uw_error *err);
/* Withdraws all claims of a job, on all boards. */
void caps_withdraw_job(struct caps *c, uint64_t job);

/* As caps_withdraw(), by the claim's own claimant: any claim. */
int caps_drop(struct caps *c, size_t board, uint64_t id, uw_error *err);
/* Who is called when anything about a board's caps may have changed, and when a claim is
 * over.  They may not call into caps but caps_look().  The caller's, until
 * caps_unlisten().
 */
struct caps_listener {
    struct caps_listener *next;
    void (*moved)(size_t board, void *user);
    void (*over)(size_t board, uint64_t claim, void *user);
    void (*anew)(void *user); /* another actuator, or none, is used; may be NULL */
    /* Whether a released board that the actuator holds stays held for now; called with
     * each step of the board; may be NULL.
     */
    bool (*keeps)(size_t board, bool released, bool held, void *user);
    void *user;
};
void caps_listen(struct caps *c, struct caps_listener *l);
void caps_unlisten(struct caps *c, struct caps_listener *l);

/* The work on a board, for the floor and for claims without a way of their own.  0:
 * unknown.
 */
struct caps_work {
    double demand_w, peak_w;
    const struct cap_class *cls; /* copied; NULL: the default class */
    bool counted;     /* steps are counted: the stay at the first cap ends when steps are
                       * seen to continue, else after 30 s */
    bool progressing; /* steps were seen since the last step of the ramp */
};
void caps_work(struct caps *c, size_t board, const struct caps_work *work);
/* The job of a claim with a way of its own has done so many units of work since the last
 * call.  Counted while the claim wins and its first cap is in force.
 */
void caps_progressed(struct caps *c, size_t board, uint64_t claim, unsigned units);
/* Passes a sample: the limit in force, reasons and, while caps_watches_clock(), clock and
 * utilization.  Each cycle.
 */
void caps_seen(struct caps *c, size_t board, const struct gpu_sample *sample);

/* Whether samples must contain the clock: a lock is set, or caps_watch_clock() asked. */
bool caps_watches_clock(const struct caps *c, size_t board);
void caps_watch_clock(struct caps *c, size_t board, bool watch);

/* Restores a board's original limit and lets go of it, so that it can be reset.  fn (may
 * be NULL) is called once, later, when the board is let go (r < 0: it is let go, but the
 * original is not confirmed: text).  After hold_off_ns (0: on request) or
 * caps_take_back() the board is held again if claims want it.  -ENODEV, -EBUSY (released
 * already).
 */
typedef void (*caps_done_fn)(int r, const char *text, void *user);
int caps_release(struct caps *c, size_t board, uint64_t hold_off_ns, caps_done_fn fn,
                 void *user, uw_error *err);
/* Takes a released board back after hold_off_ns; 0: on request only. */
void caps_back_after(struct caps *c, size_t board, uint64_t hold_off_ns);
/* The release began at since_ns, under an earlier daemon of this boot. */
void caps_released_since(struct caps *c, size_t board, uint64_t since_ns);
/* -ENODEV, -ENOENT: not released. */
int caps_take_back(struct caps *c, size_t board, uw_error *err);

/* Restores all originals; fn when all are confirmed or after 5 s (r < 0: text names the
 * boards that are not).  Nothing is held afterwards.  -EBUSY: called before.
 */
int caps_end(struct caps *c, caps_done_fn fn, void *user);

/* ---- for a budget over the boards (caps/budget.h) ---- */

/* The limits that may be in force on a board, and those that it can have. */
struct caps_force {
    unsigned index;       /* of the board */
    uint32_t in_force_mw; /* the highest that may be in force now: read back, or requested
                           * and not answered; unknown: most_mw */
    uint32_t set_mw;      /* set, by what was read back or sampled; 0: unknown */
    uint32_t most_mw; /* the highest that any program can set; 0: no board reports one */
    uint32_t min_mw;  /* the lowest that can be set … */
    uint32_t own_min_mw; /* … without root's range */
    uint32_t use_mw;     /* the highest that the board can use */
    uint32_t top_mw;     /* between this and use_mw none can be set; 0: no such gap */
    uint32_t want_mw;    /* as caps_budget_want() asked; 0: an equal share */
    unsigned group;
    bool fixed;  /* takes no limit, or does not answer */
    bool silent; /* does not answer, and has no known limit */
    bool full;   /* takes no more claims */
    bool released, lost;
    bool dry_run;
};
void caps_force(const struct caps *c, size_t board, struct caps_force *ret);
bool caps_is_ending(const struct caps *c);
/* The board's shares of the budget, for views and claimants; 0: none. */
void caps_share(struct caps *c, size_t board, uint32_t share_mw, uint32_t plan_mw);
/* Does what is due on a board. */
void caps_step_board(struct caps *c, size_t board);
/* An event of a claim that could not be made. */
void caps_say_failed(struct caps *c, size_t board, const char *text);

/* Asks the budget how these boards share the sum of their shares (mw, one a board); NULL:
 * equally.  group: a nonzero number of this set of boards.  Granted, decreases first,
 * within the sum of their equal shares and each board's range: see caps_view.
 */
void caps_budget_want(struct caps *c, const size_t *board, const uint32_t *mw, size_t n,
                      unsigned group);

/* The view of one board, for `explain`, API and metrics. */
struct caps_view {
    enum caps_state state;
    bool can_cap, dry_run;
    bool let_go;          /* released, and no limit or lock of ours is in force */
    bool writing;         /* CAPS_HOLDING: the driver has taken the write that proves the
                           * right to set limits, and has not refused it so far */
    bool unrestored;      /* not held, and the original limit and clock are not confirmed:
                           * a release was not answered, or a write of the last attempt to
                           * hold the board may be in flight */
    uint64_t released_ns; /* begin of the release; 0: not released */
    uint64_t back_ns;     /* end of the release; CLAIM_FOREVER: on request */
    uint64_t retry_ns;    /* not held: next request not before then */
    struct gpu_limits limits;    /* the board's own */
    struct actuator_range range; /* the part that root's configuration permits, as the
                                  * actuator reports it; else limits */
    struct cap_bounds bounds;
    bool original_known; /* bounds.original_mw is from the actuator, or was seen while the
                          * board was not held; else it may be an earlier daemon's cap */
    struct cap_verdict verdict;
    uint32_t ramp_mw;     /* the ramp's cap, which should be in force now */
    uint32_t enforced_mw; /* last read back; 0 unknown */
    bool ramping;         /* on the way down to verdict.target_mw */
    bool waiting;         /* at the first cap, until the job is seen to continue */
    uint32_t share_mw;    /* an equal share of the budget; 0: no budget */
    uint32_t plan_mw;     /* the share granted once all answers have come */
    bool asking;          /* a write of a limit is not answered yet */
    bool failed;          /* the last requested limit was not set: text */
    double rate_mw_s;     /* of the ramp; 0: at once */
    double call_s;        /* duration of the last call that set a limit; 0: unknown */
    struct caps_clock_view clock;
    const struct claims *claims; /* borrowed until the loop turns */
    struct cap_class cls;
    uint64_t writes, failures, changes[CAPS_CAUSES];
    pid_t taken_by; /* the process of another Underwatt that holds it; 0: none, unknown */
    char holder[160]; /* "held by underwatt (pid 12, root), original 300 W"; "": none */
    char text[200];   /* why the state is what it is; "" */
};
void caps_look(const struct caps *c, size_t board, struct caps_view *ret);
/* The decider to show: of a free board that another Underwatt holds, CAP_BY_HOLDER. */
enum cap_by caps_shown_by(const struct caps_view *v);
/* Of that view alone, for what looks each second. */
enum caps_state caps_state(const struct caps *c, size_t board);
bool caps_let_go(const struct caps *c, size_t board);

/* Continues the counters of an earlier struct caps. */
void caps_count_on(struct caps *c, size_t board, const struct caps_view *was);

/* Whether a claim of the view is in force, and why not. */
enum caps_unmet { CLAIM_REASONS(NAME_ENUM) };
struct caps_claim_look {
    enum caps_met met;
    enum caps_unmet why;
    char text[240]; /* for people: "in force", "on the way", "not in force: WHY" */
};
void caps_claim_look(const struct caps_view *v, const struct claim *claim,
                     struct caps_claim_look *ret);

#endif
