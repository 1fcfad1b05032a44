/* Internals of searches.h: searches.c runs the searches, searches-state.c saves and reads
 * the state of one, searches-view.c shows it.
 */
#ifndef TUNER_SEARCHES_INSIDE_H
#define TUNER_SEARCHES_INSIDE_H

#include "core/policy/cap.h"
#include "core/progress/launches.h"
#include "tuner/searches.h"

/* "edp", "cap 250 W", "cap 85% (balanced)". */
void searches_ask_text(const struct searches_ask *ask, char *ret, size_t size);

/* State that outlives a tuner, for other boards or after a restart of the daemon. */
struct searches_memory {
    struct savings regime[TUNER_REGIMES_MAX];
    struct tuner_cap cap[TUNER_CAPS_MAX];
    struct tuner_known known;  /* points at the two above */
    uint32_t held_mw;          /* 0: no cap was held */
    char uuid[BOARDS_MAX][96]; /* boards of cap and held_mw */
    size_t n_uuids;
};

/* Copies the state from a tuner's report. */
void searches_memory_take(struct searches_memory *m, const struct tuner_report *report);

/* *ret: one line of JSON, freed by the caller. */
int searches_state_write(const struct searches_ask *ask, const struct searches_memory *m,
                         char **ret, uw_error *err);
/* Writes the results on success only; ret_ask->cls points to *ret_cls or is NULL. */
int searches_state_read(const char *text, struct searches_ask *ret_ask,
                        struct cap_class *ret_cls, struct searches_memory *ret,
                        uw_error *err);

struct job_search {
    struct job_search *next; /* in order of begin */
    struct searches *all;
    uint64_t job;
    uid_t uid;
    pid_t pid;
    struct searches_ask ask;
    struct cap_class cls;
    struct job_progress *page;
    uint32_t phase;                  /* that the page told last, enum uw_phase */
    struct launches_budget launches; /* for all of its pages */
    uint64_t began_ns;
    uint64_t seen_ns; /* when steps were last seen */

    uint64_t had;       /* mask of the job's boards in the roster, … */
    uint64_t passed;    /* … and of those that are others' to search, see to */
    uint64_t wanted;    /* those without these */
    uint64_t wanted_ns; /* last change of wanted or barred */
    uint64_t boards;    /* mask of the boards of the tuner or claims; 0: none */
    uint64_t barred;    /* mask of boards on which another user computes */
    struct board *board[BOARDS_MAX];
    uint32_t original_mw[BOARDS_MAX];
    struct actuator_range range[BOARDS_MAX];
    size_t n;
    struct tuner *tuner;
    struct tuner_claims *claims;
    uint64_t asked_ns; /* since when ask_originals() is under way; 0: it is not */
    struct energy_sum *meters;
    struct progress_period *period;
    char preset[POLICY_PRESET_NAME]; /* of a cap by name; "": none */
    bool off;                        /* no goal is given for now: no tuner */
    bool other_goal;                 /* the tuner under way has another goal */
    bool closing, closed;            /* tuner_finish() was called; has called back */
    bool refused;    /* no tuner could be made for these boards, see why */
    uint64_t behind; /* job whose search must end first (noted); 0: none */
    bool silent;     /* it was noted that the job reports no steps */
    bool back;       /* its boards were lost or controlled by others */
    bool ended;      /* the job is over */
    bool final;      /* the job and its tuner are over */
    char why[200];
    char to[SEARCHES_TO]; /* of searches_pass() */

    struct searches_memory memory;
    struct tuner_report report; /* of the last tuner, which was freed */
    unsigned saved_windows;
    double saved_s; /* training time booked at the last save */
    uint32_t saved_held_mw;
    uint64_t saved_ns;
    uint64_t down_steps; /* steps done when a cap or a lock last went down */
    uint32_t in_force_mw[BOARDS_MAX], in_force_mhz[BOARDS_MAX]; /* 0: no lock */
};

struct searches {
    struct searches_opts o;
    struct job_search *first;
    struct loop_timer *timer;
    struct loop_worker *worker;      /* for all progress periods */
    struct launches_budget launches; /* for all jobs */
    struct touches *touches;         /* of their pages; NULL: not heard */
    bool ticks;                      /* the timer is set */
    uint64_t ticked_ns;              /* the last tick; 0: none since it was set */
    uint64_t stood_ns;               /* the last tick before which this process did not
                                      * run for long; 0: none */
};

struct job_search *searches_find(const struct searches *ts,
                                 uint64_t job); /* NULL: none */

#endif
