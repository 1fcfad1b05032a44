/* One class in three files: caps.c (all boards, what caps.h offers), caps-board.c (one
 * board, from its claims and samples to what is asked of the actuator), caps-answers.c
 * (what the actuator says).  No other file includes this.
 */
#ifndef CAPS_CAPS_INSIDE_H
#define CAPS_CAPS_INSIDE_H

#include "caps/budget.h"
#include "caps/caps.h"
#include "caps/clock-lock.h"
#include "caps/other-writers.h"
#include "caps/times.h"

enum { ASKS_MAX = 3 }; /* limits of one board that may be asked for at once */

#define GRAIN_MW 1000u
#define SETTLING_NS                                                      \
    (30 * 1000000000ull) /* after a start others' changes of free boards \
                          * are what an earlier daemon has left */
#define END_NS (5 * 1000000000ull)

struct caps_board;

/* A limit that the actuator was asked for. */
struct ask {
    struct caps_board *board;
    uint32_t mw; /* 0: free */
};

/* Between us and the actuator. */
enum link { LINK_NONE, LINK_HOLDING, LINK_HELD, LINK_RELEASING };

struct caps_board {
    struct caps *caps;
    size_t at;
    const struct gpu_info *info;
    bool can_cap;
    bool silent; /* it did not answer: whether it takes a limit is not known */
    struct gpu_limits limits;    /* the board's own */
    struct actuator_range range; /* the actuator's word on it; 0, 0: not known yet */
    struct claims claims;
    struct cap_bounds bounds;
    struct cap_verdict verdict;
    struct clock_lock clock;
    struct ramp ramp;
    struct loop_timer *timer;

    struct cap_class cls; /* of its work, where has_cls */
    bool has_cls, counted;
    uint32_t demand_mw, peak_mw;
    uint64_t stay_ns; /* waits at its first cap since then; 0: does not */

    enum caps_state state;
    char text[200];
    enum link link;
    struct ask ask[ASKS_MAX];
    uint32_t asked_mw;    /* the last limit asked for, or found by hold */
    uint64_t asked_ns;    /* when that was */
    uint32_t set_mw;      /* what is set, by our last write; 0: not known */
    uint32_t enforced_mw; /* read back; 0: unknown */
    uint32_t seen_mw;     /* set, by the last sample or answer: above enforced_mw where
                           * something holds that down; 0: not seen since */
    uint32_t told_mw;     /* of the last event CAP */
    uint32_t dry_mw;      /* the target last told in a dry run */
    uint64_t settled_ns;  /* of the last answer: older samples say nothing */
    bool unrestored;      /* something of ours may be in force */
    bool sure;            /* bounds.original_mw is the actuator's word, or seen free */

    /* Trying again: the hold (LINK_NONE), the limit (LINK_HELD and failed). */
    bool failed;
    enum actuator_result failed_with; /* told once; DONE: nothing has failed */
    unsigned attempts;
    uint64_t retry_ns;

    struct other_writers others;

    /* Released on request. */
    bool released;
    bool keeps;       /* … and is held until others have made room in the budget */
    uint64_t back_ns; /* CLAIM_FOREVER: until asked */
    caps_done_fn release_fn;
    void *release_user;

    struct budget_share share;
    uint64_t writes, failures;
};

struct caps {
    struct loop *loop;
    struct caps_conf conf;
    caps_event_fn on_event;
    void *user;
    struct actuator *act;
    uint64_t last_id, began_ns;
    bool ending;
    caps_done_fn end_fn; /* NULL: not asked, or called */
    void *end_user;
    uint64_t end_ns;
    struct loop_timer *end_timer;
    struct loop_timer *budget_timer;
    struct caps_budget_view budget;  /* of the last step */
    struct caps_listener *listeners; /* a list; each is its owner's */
    bool budgeting;
    size_t n;
    struct caps_board board[];
};

/* ---- caps-board.c ---- */

/* The limit that should be set now: where the ramp is, or the original as long as that is
 * above the range's end.
 */
uint32_t caps_due(const struct caps_board *b);
/* Where the board may be set, as far as the actuator has said. */
struct actuator_range caps_range(const struct caps_board *b);
const struct cap_class *caps_class(const struct caps_board *b);
struct clock_lock_now caps_clock_now(const struct caps_board *b);

/* Does what is due now: expiry, verdict, ramp, requests; sets the timer for what is next.
 */
void caps_step(struct caps_board *b);
/* The claims of people or budgets have changed: nothing waits for a second try. */
void caps_hurry(struct caps_board *b);
/* Its job has done steps since the last step down. */
void caps_progress(struct caps_board *b);
void caps_on_sample(struct caps_board *b, const struct gpu_sample *sample);
/* What the board is to the budget; *ret_most_mw: the highest limit that it can come to,
 * by whomever; 0: nobody tells of any.
 */
struct grant_board caps_board_grant(const struct caps_board *b, uint64_t now,
                                    uint32_t *ret_most_mw);

/* To those who listen. */
void caps_moved(const struct caps_board *b);
void caps_over(const struct caps_board *b, uint64_t claim);
void caps_set_state(struct caps_board *b, enum caps_state state, const char *text);
void caps_tell(const struct caps_board *b, enum caps_event event,
               const struct claim *claim, const char *text);
/* The limit in force is this now, read back. */
void caps_tell_cap(struct caps_board *b, uint32_t enforced_mw, const char *text);
/* An event about the lock of its clock. */
void caps_tell_clock(const struct caps_board *b, enum caps_event event, const char *text);
/* Another's limit, counted once however often it is seen; mw 0: the next sample tells it.
 */
enum caps_cause caps_note_other(struct caps_board *b, uint32_t mw, enum actuator_why why);

/* ---- caps-answers.c ---- */

int caps_on_hold(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_set(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_release(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_clocks(struct actuator *act, const struct actuator_reply *reply, void *user);
void caps_on_lost(struct caps_board *b, const struct actuator_reply *what, bool at_once);
/* The actuator says that another's limit is left alone there. */
void caps_on_yield(struct caps_board *b, const struct actuator_reply *what);
/* The actuator is another, or gone: what it was asked is void. */
void caps_cut(struct caps_board *b);
/* Not before so long a time. */
void caps_try_again(struct caps_board *b, uint64_t wait_ns);

/* ---- caps.c ---- */

/* Calls what waits for a board's release; for the end of all. */
void caps_tell_done(struct caps_board *b, int r, const char *text);
void caps_check_end(struct caps *c);
/* What may be in force, or what boards can use, is another. */
void caps_budget_kick(struct caps *c);
bool caps_budget_is_on(const struct caps *c);

#endif
