/* The sweep's state machine, in the files sweeper*.c. */
#ifndef SWEEP_SWEEPER_INSIDE_H
#define SWEEP_SWEEPER_INSIDE_H

#include "actuator/client.h"
#include "board/boards.h"
#include "board/sampler.h"
#include "jobs/job.h"
#include "local/final-read.h"
#include "sweep/sweep-state.h"
#include "sweep/sweeper.h"

enum sweeper_stage {
    SWEEPER_S_OPEN,    /* the boards answer their first questions */
    SWEEPER_S_RIGHT,   /* the actuator starts and proves that caps can be set */
    SWEEPER_S_FEED,    /* every meter has its first samples */
    SWEEPER_S_CHECK,   /* nobody else is on the boards */
    SWEEPER_S_CAP,     /* the next cap is written */
    SWEEPER_S_SETTLE,  /* … and takes hold */
    SWEEPER_S_RUN,     /* CMD runs */
    SWEEPER_S_ENERGY,  /* its energy is asked for */
    SWEEPER_S_HOLD,    /* boards that were found, or lost by a pause, are held */
    SWEEPER_S_RELEASE, /* boards are given back */
    SWEEPER_S_REREAD,  /* … not all confirmed: what is in force is read */
    SWEEPER_S_OVER,
};

struct sweeper {
    struct sweeper_opts o;
    sweeper_done_fn done;
    enum sweeper_stage stage;
    struct boards *boards;
    struct board *all[BOARDS_MAX];
    bool use[BOARDS_MAX];  /* CMD's */
    bool held[BOARDS_MAX]; /* by our actuator */
    uint32_t original_mw[BOARDS_MAX];
    struct actuator_range allowed; /* by root, on all that were held; 0, 0: not known */
    size_t n;
    bool named;       /* use[] is known */
    size_t asking;    /* answers still to come in this stage */
    size_t probe;     /* the board that proved the right */
    bool right_known; /* the actuator has started, or said why not */
    size_t looking;   /* answers of process lists still to come */

    struct actuator *act;
    struct final_read *reread; /* at the end, where a release was not confirmed … */
    bool final_read_over;
    struct sampler *sampler; /* of the boards below: CMD's, or all until they are known */
    struct board *sampled[BOARDS_MAX];
    struct job *job;
    struct loop_timer *timer; /* of the stage */
    struct loop_timer *kill;  /* CMD does not end */

    struct sweep_state *state; /* what is asked for, and done */
    uint32_t *plan;
    size_t n_plan;
    uint64_t start_ns;  /* loop's time at which this part of the sweep began … */
    double at_offset_s; /* … and how long after the sweep's own beginning */
    uint64_t begin_ns, end_ns;
    bool spoilt;       /* the run under way does not count */
    unsigned failures; /* runs in a row whose energy is unknown */
    bool stop;         /* end as soon as nothing is under way */
    bool started;      /* CMD has been started at least once */
    bool found_run;    /* the last run has shown CMD's boards */

    struct sweeper_result result;
};

/* What comes next in each part; a failure of the sweep is not one of the loop. */
int sweeper_make_plan(struct sweeper *s, bool must, uw_error *err);
/* Once the boards are held: the plan within what root's configuration allows there. */
int sweeper_fit_plan(struct sweeper *s, uw_error *err);
int sweeper_next_run(struct sweeper *s);
int sweeper_settle(struct sweeper *s);
void sweeper_begin_looking(struct sweeper *s);
int sweeper_start_sampling(struct sweeper *s);
/* Give the boards back, then call done.  The first end that is set stands. */
int sweeper_end_with(struct sweeper *s, enum sweeper_end end);
/* The same once nothing is under way any more; CMD is asked to end. */
int sweeper_stop(struct sweeper *s, enum sweeper_end end);
int sweeper_released(struct sweeper *s);

/* sweeper-caps.c */
int sweeper_start_right(struct sweeper *s);
int sweeper_hold_used(struct sweeper *s);
int sweeper_set_caps(struct sweeper *s, uint32_t mw);
void sweeper_release(struct sweeper *s);

/* sweeper-run.c */
int sweeper_check_foreign(struct sweeper *s);
int sweeper_look(struct sweeper *s);
int sweeper_start_cmd(struct sweeper *s);
int sweeper_after_hold(struct sweeper *s);

void sweeper_note(struct sweeper *s, const char *text);
const char *sweeper_uuid(const struct sweeper *s, size_t i);
uint32_t sweeper_cap(const struct sweeper *s); /* of the run that is due; 0: none */

#endif
