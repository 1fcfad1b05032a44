/* The state machine of a sweep, shared by sweeper*.c. */
#ifndef SWEEP_SWEEPER_INSIDE_H
#define SWEEP_SWEEPER_INSIDE_H

#include "ask/own-node.h"
#include "board/boards.h"
#include "board/energy-sum.h"
#include "caps/caps.h"
#include "caps/claimant.h"
#include "io/loop.h"
#include "local/final-read.h"
#include "sweep/sweep-state.h"
#include "sweep/sweeper.h"

enum sweeper_stage {
    SWEEPER_S_OPEN,    /* the node opens its boards */
    SWEEPER_S_RIGHT,   /* the actuator starts and proves that caps can be set */
    SWEEPER_S_FEED,    /* meters get their first samples */
    SWEEPER_S_CHECK,   /* checks for other users' processes on the boards */
    SWEEPER_S_CAP,     /* writes the next cap */
    SWEEPER_S_SETTLE,  /* waits until the cap has taken effect */
    SWEEPER_S_RUN,     /* CMD runs */
    SWEEPER_S_ENERGY,  /* waits for the energy of the run */
    SWEEPER_S_HOLD,    /* holds boards that were found, or lost during a pause */
    SWEEPER_S_RELEASE, /* releases boards */
    SWEEPER_S_REREAD,  /* not all releases confirmed: reads the limits in force */
    SWEEPER_S_OVER,
};

struct sweeper {
    struct sweeper_opts o;
    struct loop *loop;
    sweeper_done_fn done;
    enum sweeper_stage stage;
    struct own_node *own;
    struct claimant *claims;
    struct caps_listener listener; /* hears of answers that no claim tells … */
    struct loop_timer *again;      /* … and looks at the boards */
    struct board *all[BOARDS_MAX]; /* the node's */
    bool use[BOARDS_MAX];          /* used by CMD */
    bool held[BOARDS_MAX];         /* for our claim; they are to be given back */
    bool set[BOARDS_MAX];          /* the present cap is in force */
    uint32_t original_mw[BOARDS_MAX];
    uint64_t changes[BOARDS_MAX]; /* by other writers, when it was held */
    struct actuator_range
        allowed; /* root's range, common to all held boards; 0, 0: unknown */
    size_t n;
    bool named;       /* use[] is known */
    size_t asking;    /* pending process lists of SWEEPER_S_CHECK */
    size_t probe;     /* the board used to prove the right */
    bool right_known; /* the actuator has started or failed */
    size_t looking;   /* pending process lists */

    struct final_read *reread; /* at the end, if a release was not confirmed */
    bool final_read_over;
    struct energy_sum *energy; /* of CMD's boards, or of all until those are known */
    struct loop_child *child;  /* CMD; NULL: not started yet */
    bool running;              /* it has not ended */
    uint64_t node_job;         /* its number at the node; 0: none */
    struct loop_timer *timer;  /* of the present stage */
    struct loop_timer *kill;   /* deadline for CMD to end */

    struct sweep_state *state; /* the wanted sweep and its runs so far */
    uint32_t *plan;
    size_t n_plan;
    uint64_t start_ns;  /* loop's time at which this part of the sweep began */
    double at_offset_s; /* its distance from the sweep's own beginning */
    uint64_t begin_ns, end_ns;
    bool spoilt;       /* the present run does not count */
    unsigned failures; /* runs in a row without a known energy */
    bool opening;      /* sweeper_start() runs the loop */
    bool stop;         /* end as soon as no request is pending */
    bool started;      /* CMD was started at least once */
    bool found_run;    /* the last run found CMD's boards */

    struct sweeper_result result;
};

/* The next steps.  A failed sweep ends with a result; it does not fail the loop. */
int sweeper_make_plan(struct sweeper *s, bool must, uw_error *err);
/* With the boards held: fits the plan into the range that root's configuration allows. */
int sweeper_fit_plan(struct sweeper *s, uw_error *err);
int sweeper_next_run(struct sweeper *s);
int sweeper_settle(struct sweeper *s);
void sweeper_begin_looking(struct sweeper *s);
int sweeper_start_sampling(struct sweeper *s);
/* The boards of CMD count, or all while those are not known. */
int sweeper_count(struct sweeper *s, uw_error *err);
/* Gives the boards back, then calls done.  The first end that was set counts. */
int sweeper_end_with(struct sweeper *s, enum sweeper_end end);
/* The same once CMD has ended, which is asked to, and the actuator has started. */
int sweeper_stop(struct sweeper *s, enum sweeper_end end);
/* All boards are back, or the wait for them is over. */
int sweeper_finish(struct sweeper *s);

/* sweeper-caps.c */
int sweeper_start_right(struct sweeper *s);
int sweeper_hold_used(struct sweeper *s);
int sweeper_set_caps(struct sweeper *s, uint32_t mw);
/* Withdraws all claims; sweeper_is_back() says when. */
void sweeper_release(struct sweeper *s);
/* Whether no board is held any more; sets result.restored. */
bool sweeper_is_back(struct sweeper *s);
/* Sets result.restored and its text: a board is still held after wait_s. */
void sweeper_not_back(struct sweeper *s, int wait_s);
/* Before the node is freed. */
void sweeper_forget_caps(struct sweeper *s);

/* sweeper-run.c */
int sweeper_check_foreign(struct sweeper *s);
int sweeper_look(struct sweeper *s);
int sweeper_start_cmd(struct sweeper *s);
int sweeper_after_hold(struct sweeper *s);

void sweeper_note(struct sweeper *s, const char *text);
const char *sweeper_uuid(const struct sweeper *s, size_t i);
uint32_t sweeper_cap(const struct sweeper *s); /* of the next run; 0: none */

#endif
