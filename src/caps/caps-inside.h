/* What the files of caps share; nobody else includes it. */
#ifndef CAPS_CAPS_INSIDE_H
#define CAPS_CAPS_INSIDE_H

#include "caps/caps.h"

enum { ASKS_MAX = 3 }; /* limits of one board that may be asked for at once */

#define GRAIN_MW 1000u
#define TICK_NS (100 * 1000000ull)     /* between two steps of a ramp, at least */
#define STAY_NS (30 * 1000000000ull)   /* at a first cap, where no steps are counted */
#define DENIED_NS (30 * 1000000000ull) /* until a missing right is asked for again … */
#define DENIED_MOST_NS (300 * 1000000000ull) /* … doubled up to */
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

/* The lock of a board's SM clock. */
struct caps_clock {
    bool can;
    struct clock_bounds bounds;
    struct clock_verdict verdict;
    struct ramp ramp; /* its numbers are MHz */
    uint64_t stay_ns;
    uint32_t asked_mhz;  /* of the actuator last; 0: no lock */
    uint32_t locked_mhz; /* its word */
    uint32_t told_mhz;   /* of the last event CLOCK */
    uint32_t seen_mhz;   /* last seen while the board was at work … */
    uint64_t seen_ns;    /* … then; 0: never */
    bool watched;        /* somebody asks for it */
    bool asking;         /* its answer is due */
    bool failed;         /* the last one, until retry_ns */
    bool given_up;       /* not obeyed: not asked for again until the claims change */
    bool too_low; /* the lock in force is lower than what is wanted, which was refused:
                   * it is given back */
    enum actuator_result failed_with;
    unsigned attempts, bad;
    uint64_t retry_ns, asked_ns, settled_ns;
    uint64_t writes, failures, disobeyed;
    char text[200];
};

/* A board's part in the budget (caps-budget.c). */
struct caps_share {
    uint64_t claim;             /* ours; 0: none stands */
    uint32_t share_mw, plan_mw; /* equal, and with what was wanted */
    uint32_t want_mw;           /* 0: an equal one … */
    unsigned group;             /* … else with whom it is shared out */
    uint64_t over_ns;           /* above its limit since then; 0: is not */
    uint64_t leaving_ns;        /* to be let go since then, once there is room … */
    bool out;                   /* … which there is */
    bool failed;                /* the claim was refused: told */
};

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
    struct caps_clock clock;
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

    /* Other writers. */
    bool again;         /* this session has yielded there */
    uint32_t other_mw;  /* another's limit that was told; 0: none */
    unsigned reasserts; /* in a row */
    uint64_t held_ns;   /* held since */
    uint64_t forgot_ns; /* persistence mode had been off then; 0: never */
    bool bounded;       /* enforced is under what we set: heat, board's management */
    uint64_t reasons;   /* of the last sample, enum gpu_reason */
    bool told;          /* the driver tells what was asked of it */
    uint64_t energy_mj; /* of the last sample: falls when the driver is loaded anew */
    bool reloaded;      /* it has fallen since we last wrote */

    /* Released on request. */
    bool released;
    bool keeps;       /* … and is held until others have made room in the budget */
    uint64_t back_ns; /* CLAIM_FOREVER: until asked */
    caps_done_fn release_fn;
    void *release_user;

    struct caps_share share;
    uint64_t writes, failures, changes[CAPS_CAUSES];
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
    struct caps_budget_view budget; /* of the last step */
    bool budgeting;
    size_t n;
    struct caps_board board[];
};

/* caps-board.c: one board, from its claims to the limit. */

/* The limit that should be set now: where the ramp is, or the original as long as that is
 * above the range's end.
 */
uint32_t caps_due(const struct caps_board *b);

/* Whatever is due now: expiry, verdict, ramp, requests, the next time to look. */
void caps_step(struct caps_board *b);
/* The claims of people or budgets have changed: no waiting for a second try. */
void caps_hurry(struct caps_board *b);
/* Its job has done steps since the last step down. */
void caps_progress(struct caps_board *b);
/* Calls what waits for a board's release, or for the end of all; the end last. */
void caps_tell_done(struct caps_board *b, int r, const char *text);
void caps_check_end(struct caps *c);
const struct cap_class *caps_class(const struct caps_board *b);
void caps_set_state(struct caps_board *b, enum caps_state state, const char *text);
void caps_tell(const struct caps_board *b, enum caps_event event,
               const struct claim *claim, const char *text);
/* The limit in force is this now, read back. */
void caps_tell_cap(struct caps_board *b, uint32_t enforced_mw, const char *text);

/* caps-answers.c: what the actuator answers. */

/* Where the board may be set, as far as the actuator has said. */
struct actuator_range caps_range(const struct caps_board *b);

int caps_on_hold(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_set(struct actuator *act, const struct actuator_reply *reply, void *user);
int caps_on_release(struct actuator *act, const struct actuator_reply *reply, void *user);
void caps_on_lost(struct caps_board *b, const struct actuator_reply *what, bool at_once);
/* The actuator is another, or gone: what it was asked is void. */
void caps_cut(struct caps_board *b);
/* Not before so long a time. */
void caps_try_again(struct caps_board *b, uint64_t wait_ns);

/* caps-budget.c: the node's budget. */

int caps_on_budget(struct loop_timer *timer, uint64_t now_ns, void *user);
/* What may be in force, or what boards can use, is another. */
void caps_budget_kick(struct caps *c);
/* There is an actuator again: boards have time to answer it. */
void caps_budget_anew(struct caps *c);
/* A board that is to be let go has to wait until others have made room. */
bool caps_budget_keeps(struct caps_board *b);
bool caps_budget_owns(const struct caps_board *b, uint64_t id);

/* caps-clock.c: the lock of its SM clock. */

void caps_clock_init(struct caps_board *b);
bool caps_clock_wanted(const struct caps_board *b);
void caps_clock_decide(struct caps_board *b, uint64_t now);
void caps_clock_step(struct caps_board *b, uint64_t now); /* of a held board */
uint64_t caps_clock_next_ns(const struct caps_board *b, uint64_t now);
void caps_clock_progress(struct caps_board *b); /* as caps_progress() */
void caps_clock_hurry(struct caps_board *b);    /* the claims on it have changed */
int caps_on_clocks(struct actuator *act, const struct actuator_reply *reply, void *user);
/* The actuator's word on the lock: with a hold, with any other answer; and the hold is
 * over, by its word with the lock reset, or who knows.
 */
void caps_clock_held(struct caps_board *b, uint32_t locked_mhz);
void caps_clock_told(struct caps_board *b, uint32_t locked_mhz);
void caps_clock_unlinked(struct caps_board *b, bool reset);
void caps_clock_sample(struct caps_board *b, const struct gpu_sample *sample);
void caps_clock_look(const struct caps_board *b, struct caps_clock_view *ret);
void caps_clock_count_on(struct caps_board *b, const struct caps_clock_view *was);

/* caps-others.c: what others write. */

/* The actuator says that another's limit is left alone there. */
void caps_on_yield(struct caps_board *b, const struct actuator_reply *what);
void caps_on_sample(struct caps_board *b, const struct gpu_sample *sample);

#endif
