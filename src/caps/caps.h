/* The caps of all boards of the node: who claims what, the arbiter, the ramp, what the
 * actuator and other writers do.  In the daemon no other code brings about a cap.
 *
 * Owns the claims, the verdict and the ramp of each board, and the shares of the node's
 * budget.  Uses src/board for what a board is and actuator/client.h for every write;
 * reads and writes no file.  Runs on the loop's thread.  Explained in docs/caps.md; the
 * files of this room: budget.h (shares), clock-lock.h (the SM clock), other-writers.h
 * (causes).
 *
 * A board is held (by the actuator) only while something asks for less than its original
 * limit (or a search is at work on it), or where boards are always held; else it is left
 * alone.  The original is the limit that the actuator found, or, while nobody holds the
 * board, the limit that is set.
 *
 * No callback may call into caps, but for caps_look(); caps_done_fn may call anything.
 * caps_free() is allowed from the callback of caps_end() alone.
 */
#ifndef CAPS_CAPS_H
#define CAPS_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "caps/types.h"
#include "io/loop.h"

struct caps;

/* What happened to a board's cap, for ledger, log and live views. */
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
    const char *text; /* "" nothing to say */
};
typedef void (*caps_event_fn)(const struct caps_what *what, void *user);

struct caps_opts {
    struct loop *loop;
    struct boards *boards;
    struct caps_conf conf;
    uint64_t first_id;      /* of the claims made here: new ones count up from it, and go
                             * on above any that is given; 0: 1 */
    caps_event_fn on_event; /* mandatory */
    void *user;
};

int caps_new(const struct caps_opts *opts, struct caps **ret, uw_error *err);
/* Forgets all; boards are given back by caps_end() before, else by the actuator.
 * Free the actuator first: what it was asked and has not answered points here.
 */
void caps_free(struct caps *c);
DEFINE_AUTO(struct caps *, caps_free);

/* The actuator to use from now on (it is ready), or NULL when it is gone: claims stay,
 * boards are held again as soon as there is one.  A new one is asked to hold every
 * board with a claim: where it still holds it for us (after a restart of the daemon)
 * the ramp goes on from the cap in force.  So make known the claims first.  Borrowed,
 * from now until the next call.  Its on_event goes to caps_on_actuator().
 */
void caps_use_actuator(struct caps *c, struct actuator *act);
void caps_on_actuator(struct caps *c, enum actuator_event event,
                      const struct actuator_reply *what);
/* New settings, in force from now on. */
void caps_configure(struct caps *c, const struct caps_conf *conf);

/* A claim on a board.  id 0: a new one is given; made_ns 0: now.  *ret_id (may be NULL).
 * -EINVAL, -E2BIG, -ERANGE (under the board's minimum and kind is not hard, or above its
 * maximum: text names board, value and range), -ENODEV (no such board), -ENOTSUP (it
 * cannot be capped; its clocks cannot be locked, or may not: conf.clocks).  Nothing
 * changed on failure.
 */
int caps_claim(struct caps *c, size_t board, const struct claim *claim, uint64_t *ret_id,
               uw_error *err);
/* -ENOENT: no such claim on that board.  -EPERM: its source may not be ended by others
 * (claim-sources.h): the budget, a rule, a grant.
 */
int caps_withdraw(struct caps *c, size_t board, uint64_t id, uw_error *err);
/* Every claim of this job, on all boards. */
void caps_withdraw_job(struct caps *c, uint64_t job);

/* As caps_withdraw(), by the claim's own claimant: any claim. */
int caps_drop(struct caps *c, size_t board, uint64_t id, uw_error *err);
/* Who is called when anything about a board's caps may have changed, and when a claim is
 * over.  Neither may call into caps but caps_look().  The caller's, until
 * caps_unlisten().
 */
struct caps_listener {
    struct caps_listener *next;
    void (*moved)(size_t board, void *user);
    void (*over)(size_t board, uint64_t claim, void *user);
    void *user;
};
void caps_listen(struct caps *c, struct caps_listener *l);
void caps_unlisten(struct caps *c, struct caps_listener *l);

/* What is known of the work on a board: for floor and first cap. 0: unknown. */
struct caps_work {
    double demand_w, peak_w;
    const struct cap_class *cls; /* copied; NULL: the configured one */
    bool counted;     /* its steps are counted: the stay at the first cap ends when they
                       * are seen to go on, else after 30 s */
    bool progressing; /* steps were seen since the last step down */
};
void caps_work(struct caps *c, size_t board, const struct caps_work *work);
/* What the sampler read: the limit in force, reasons, and while caps_watches_clock() the
 * clock with the utilisation.  Each cycle.
 */
void caps_seen(struct caps *c, size_t board, const struct gpu_sample *sample);

/* A lock is there (does the board obey?), or somebody asks: its clock is wanted with the
 * limits.
 */
bool caps_watches_clock(const struct caps *c, size_t board);
void caps_watch_clock(struct caps *c, size_t board, bool watch);

/* Let go of a board so that it can be reset; original back first.  fn (may be NULL) is
 * called once, later, when it is let go (r < 0: it is out of our hands, but the original
 * is not confirmed: text).  After hold_off_ns (0: until asked) or caps_take_back() it is
 * held again if claims want it.  -ENODEV, -EBUSY (is released already).
 */
typedef void (*caps_done_fn)(int r, const char *text, void *user);
int caps_release(struct caps *c, size_t board, uint64_t hold_off_ns, caps_done_fn fn,
                 void *user, uw_error *err);
/* A released board is taken back so long from now; 0: when asked for. */
void caps_back_after(struct caps *c, size_t board, uint64_t hold_off_ns);
/* -ENODEV, -ENOENT: it is not released. */
int caps_take_back(struct caps *c, size_t board, uw_error *err);

/* All boards back to their originals, confirmed; fn when done or after 5 s (r < 0: text
 * says which are not).  Nothing is held from then on.  -EBUSY: asked already.
 */
int caps_end(struct caps *c, caps_done_fn fn, void *user);

/* ---- the budget of the node (caps/budget.h) ---- */

/* -ERANGE: boards cannot do with so little (text: both values). */
int caps_budget_check(const struct caps *c, uint32_t budget_mw, uw_error *err);

void caps_budget_look(const struct caps *c, struct caps_budget_view *ret);

/* These boards share out the sum of their shares in another way (mw, one a board); NULL:
 * no more.  group: of these boards alone, not 0.  Done, lower first, as long as it fits
 * the sum of their equal shares and each board's range: see caps_view.
 */
void caps_budget_want(struct caps *c, const size_t *board, const uint32_t *mw, size_t n,
                      unsigned group);

/* All about one board, for `explain`, API and metrics. */
struct caps_view {
    enum caps_state state;
    bool can_cap, dry_run;
    bool let_go;       /* released, and nothing of ours is in force there */
    bool unrestored;   /* not held any more, but nobody has confirmed that limit and clock
                        * are as they were found */
    uint64_t back_ns;  /* … until then; CLAIM_FOREVER: until it is taken back */
    uint64_t retry_ns; /* nobody holds it for us: not asked for before then */
    struct gpu_limits limits;    /* the board's own … */
    struct actuator_range range; /* … and what root's configuration leaves of them, where
                                  * the actuator has said so since it is there */
    struct cap_bounds bounds;
    bool
        original_known; /* bounds.original_mw is the actuator's word, or was seen while
                         * nobody held the board; else an earlier daemon's cap, perhaps */
    struct cap_verdict verdict;
    uint32_t ramp_mw;      /* where the ramp is: the cap that should be in force now */
    uint32_t enforced_mw;  /* last read back; 0 unknown */
    bool ramping;          /* on the way down to verdict.target_mw … */
    bool waiting;          /* … at the first cap, until the job is seen to go on */
    uint32_t share_mw;     /* an equal share of the budget; 0: there is none … */
    uint32_t plan_mw;      /* … and what it gets when all answers have come */
    uint64_t budget_claim; /* the budget's; 0: none */
    bool failed;           /* the limit asked for last was not set: text */
    double rate_mw_s;      /* of the way down; 0: at once */
    struct caps_clock_view clock;
    const struct claims *claims; /* borrowed until the loop turns */
    struct cap_class cls;
    uint64_t writes, failures, changes[CAPS_CAUSES];
    char text[200]; /* why the state is what it is; "" */
};
void caps_look(const struct caps *c, size_t board, struct caps_view *ret);

/* Counts go on from those of an earlier set of caps. */
void caps_count_on(struct caps *c, size_t board, const struct caps_view *was);

/* What became of a claim of the view's. */
enum caps_unmet { CLAIM_REASONS(NAME_ENUM) };
struct caps_claim_look {
    enum caps_met met;
    enum caps_unmet why;
    char text[240]; /* for people: "in force", "on the way", "not in force: WHY" */
};
void caps_claim_look(const struct caps_view *v, const struct claim *claim,
                     struct caps_claim_look *ret);

#endif
