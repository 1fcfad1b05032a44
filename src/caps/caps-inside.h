/* One class in three files: caps.c (all boards, the functions of caps.h), caps-board.c
 * (one board, from claims and samples to requests to the actuator), caps-answers.c (the
 * actuator's answers).  No other file includes this.
 */
#ifndef CAPS_CAPS_INSIDE_H
#define CAPS_CAPS_INSIDE_H

#include "caps/caps.h"
#include "caps/clock-lock.h"
#include "caps/other-writers.h"
#include "caps/times.h"
#include "core/cap/stop.h"

enum { ASKS_MAX = 3 }; /* limit requests of one board in flight at once */

#define GRAIN_MW 1000u
#define SETTLING_NS                                                       \
    (30 * 1000000000ull) /* after a start, changes of free boards in this \
                          * time are the work of an earlier daemon */
#define END_NS (5 * 1000000000ull)

struct caps_board;

/* A limit requested from the actuator. */
struct ask {
    struct caps_board *board;
    uint32_t mw; /* 0: free */
    uint64_t at_ns;
};

/* State of a board's hold at the actuator. */
enum link { LINK_NONE, LINK_HOLDING, LINK_HELD, LINK_RELEASING };

struct caps_board {
    struct caps *caps;
    size_t at;
    const struct gpu_info *info;
    bool can_cap;
    bool silent;              /* did not answer: it is unknown whether it takes a limit */
    struct gpu_limits limits; /* the board's own */
    struct actuator_range range; /* in the last answer about a hold; 0, 0: none yet */
    bool told;                   /* the actuator has reported root's configuration … */
    struct actuator_rule from, to; /* … of the range */
    struct claims claims;
    struct cap_bounds bounds;
    struct cap_verdict verdict;
    struct clock_lock clock;
    struct ramp ramp;
    struct cap_stop stop; /* of the ramp */
    struct loop_timer *timer;

    struct cap_class cls; /* of its job, where has_cls */
    bool has_cls, counted;
    uint32_t demand_mw, peak_mw;

    enum caps_state state;
    char text[200];
    pid_t taken_by; /* by the answer to a hold: another Underwatt holds it; 0: none */
    struct {        /* another Underwatt that holds it, as the actuator reports */
        bool there;
        pid_t pid; /* 0: unknown */
        char text[160];
    } holder;
    uint32_t
        look_mw; /* seen while not held: the actuator looks who has set it; 0: none */
    enum link link;
    struct ask ask[ASKS_MAX];
    uint32_t asked_mw;    /* the last limit requested, or found by the hold */
    uint64_t asked_ns;    /* time of that request */
    uint32_t set_mw;      /* set by our last write; 0: unknown */
    uint32_t enforced_mw; /* read back; 0: unknown */
    uint32_t seen_mw;     /* set, by the last sample or answer: above enforced_mw where
                           * something lowers that; 0: not sampled since */
    uint32_t told_mw;     /* of the last event CAP */
    uint32_t dry_mw;      /* the last target reported in a dry run */
    double call_s;        /* duration of the last call that set a limit; 0: unknown */
    uint64_t settled_ns;  /* time of the last answer: older samples are ignored */
    bool writing;         /* LINK_HOLDING: the driver has not refused its write at once */
    bool unrestored;      /* our limit or lock may still be in force */
    bool unanswered; /* a hold's write may be in flight: the driver has not answered */
    bool sure;       /* bounds.original_mw is from the actuator, or seen free */

    /* Retries: of the hold (LINK_NONE), of the limit (LINK_HELD and failed). */
    bool failed;
    enum actuator_result failed_with; /* last failure reported; DONE: none */
    unsigned attempts;
    uint64_t retry_ns;

    struct other_writers others;

    /* Released on request. */
    bool released;
    bool keeps;           /* stays held for now, as a listener wants */
    uint64_t released_ns; /* when */
    uint64_t back_ns;     /* CLAIM_FOREVER: until asked */
    caps_done_fn release_fn;
    void *release_user;

    struct {
        uint32_t share_mw, plan_mw; /* as the budget told */
        uint32_t want_mw;
        unsigned group;
    } share;
    uint64_t writes, failures;
};

struct caps {
    struct loop *loop;
    struct caps_conf conf;
    caps_event_fn on_event;
    void *user;
    struct actuator *act;
    char absent[200]; /* why there is none; "": unknown */
    uint64_t last_id, began_ns;
    bool ending;
    caps_done_fn end_fn; /* NULL: caps_end() not called, or finished */
    void *end_user;
    uint64_t end_ns;
    struct loop_timer *end_timer;
    struct caps_listener *listeners; /* a list; each is its owner's */
    size_t n;
    struct caps_board board[];
};

/* ---- caps-board.c ---- */

/* The limit that should be set now: the ramp's, or the original while the ramp is above
 * the end of the settable range.
 */
uint32_t caps_due(const struct caps_board *b);
/* The settable range, as far as the actuator has reported it. */
struct actuator_range caps_range(const struct caps_board *b);
/* The limit to restore.  Also called after a change of the range: adjusts the bounds. */
void caps_set_original(struct caps_board *b, uint32_t mw);
const struct cap_class *caps_class(const struct caps_board *b);
struct clock_lock_now caps_clock_now(const struct caps_board *b);

/* Does what is due now: expiry, verdict, ramp, requests; then sets the timer. */
void caps_step(struct caps_board *b);
/* Claims of people or budgets have changed: cancels the delay of retries. */
void caps_hurry(struct caps_board *b);
/* The job has done work since the last step of the ramp: this claim's units; 0: the steps
 * of caps_work().
 */
void caps_progress(struct caps_board *b, uint64_t claim, unsigned units);
/* Not held: another program has set this limit, which is the original from now on. */
void caps_take_other(struct caps_board *b, uint32_t mw);
void caps_on_sample(struct caps_board *b, const struct gpu_sample *sample);
/* To those who listen. */
void caps_moved(const struct caps_board *b);
void caps_over(const struct caps_board *b, uint64_t claim);
void caps_set_state(struct caps_board *b, enum caps_state state, const char *text);
void caps_tell(const struct caps_board *b, enum caps_event event,
               const struct claim *claim, const char *text);
/* Reports that this limit, read back, is in force. */
void caps_tell_cap(struct caps_board *b, uint32_t enforced_mw, const char *text);
/* An event about the lock of its clock. */
void caps_tell_clock(const struct caps_board *b, enum caps_event event, const char *text);
/* Counts another program's limit once; mw 0: the next sample will report it.  Returns the
 * cause.
 */
enum caps_cause caps_note_other(struct caps_board *b, uint32_t mw, enum actuator_why why);

/* ---- caps-answers.c ---- */

int caps_on_hold(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_set(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_release(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_clocks(struct actuator *act, const struct actuator_reply *reply, void *user);
/* The actuator reports root's range and who else holds the board. */
void caps_on_holder(struct caps_board *b, const struct actuator_reply *what);
/* The actuator has looked for another holder of the board. */
int caps_on_looked(struct actuator *act, const struct actuator_reply *reply, void *user);
void caps_on_lost(struct caps_board *b, const struct actuator_reply *what, bool at_once);
/* The actuator reports that it leaves another program's limit alone. */
void caps_on_yield(struct caps_board *b, const struct actuator_reply *what);
/* The actuator has changed or gone: pending requests are void. */
void caps_cut(struct caps_board *b);
/* Delays the next attempt by wait_ns. */
void caps_try_again(struct caps_board *b, uint64_t wait_ns);

/* ---- caps.c ---- */

/* Calls the callback of a board's release. */
void caps_tell_done(struct caps_board *b, int r, const char *text);
void caps_check_end(struct caps *c);

#endif
