/* Internals of tuner.h: tuner.c chooses steps and ramps, tuner-windows.c evaluates
 * windows, tuner-period.c measures with inferred progress.
 */
#ifndef TUNER_TUNER_INSIDE_H
#define TUNER_TUNER_INSIDE_H

#include "core/cap/ramp.h"
#include "core/optimum/change.h"
#include "core/progress/window.h"
#include "tuner/board-caps.h"
#include "tuner/gap-check.h"
#include "tuner/launch-rate.h"
#include "tuner/lock-search.h"
#include "tuner/notes.h"
#include "tuner/pause.h"
#include "tuner/period-window.h"
#include "tuner/reference-check.h"
#include "tuner/slack-search.h"
#include "tuner/tuner.h"
#include "tuner/window-energy.h"

enum { LEAST_STEPS = 5 }; /* of a window */

enum tuner_state {
    TUNER_WAIT,   /* for training to begin and warm up */
    TUNER_WALK,   /* the cap ramps to its target */
    TUNER_WINDOW, /* the cap is in force: settling, measuring */
    TUNER_ENERGY, /* the window is over, its energy not yet known */
    TUNER_REHOLD, /* the leases ran out (this process was stopped): holding again */
    TUNER_LEFT,   /* given up: boards released, the job is only measured */
    TUNER_OVER,
};

struct tuner {
    struct tuner_opts o;
    enum tuner_state state;
    struct tuner_notes notes;
    struct loop_timer *timer;
    struct search *search; /* NULL: a cap asked for by name */
    struct search_step step;

    /* Caps: */
    struct board_caps caps;
    struct ramp ramp;    /* of the highest cap of the boards */
    uint32_t ceiling_mw; /* highest cap that others' claims allow; UINT32_MAX: any */
    bool first_seen;     /* the first cap is in force since first, first_ns */
    struct step_mark first;
    uint64_t first_ns;
    size_t leases_over; /* boards whose lease ran out */

    /* Progress: */
    struct steps steps;
    uint64_t seen_ns; /* when steps were last seen */
    bool has_begun;   /* training has begun, at begun and begun_ns */
    struct step_mark begun;
    uint64_t begun_ns;
    bool stopped; /* the job is stopped, the originals are in force */
    struct pause pause;
    bool listening;    /* no steps are reported: listens for a period or launch rate */
    bool inferred;     /* one period, or a number of launches, stands for a step */
    bool was_inferred; /* the measurements so far have inferred steps */
    bool safe;         /* progress is unknown: the safe static cap applies */
    struct launch_rate rate;
    struct period_window period;

    /* Windows and accounts: */
    struct window window;
    struct window_energy energy; /* of the last closed window */
    unsigned void_windows;       /* successive windows without a result */
    double rest_s;               /* length of the last rest() */
    uint64_t rest_ns;            /* its end */
    struct change change;
    uint32_t hold_at_mw; /* in force in the windows of the hold so far */
    struct regimes regimes;
    unsigned peaks_asked;

    /* Measurements during a hold: */
    struct reference_check check;
    struct gap_check gap;
    struct slack_search slack;
    struct lock_search lock;

    struct tuner_report report;
    tuner_done_fn done;
    void *done_user;
};

/* ---- tuner.c ---- */

/* Takes the next step of the reference check or the search and starts the ramp to it. */
int tuner_next(struct tuner *t);
int tuner_maybe_done(struct tuner *t);
/* The highest cap that is possible now, the reference cap. */
uint32_t tuner_reference_mw(const struct tuner *t);
/* Ramps to a cap and holds it, without known progress. */
int tuner_hold_unseen(struct tuner *t, uint32_t mw, const char *why);
/* Requests the caps of all boards for a ramp at mw. */
int tuner_command(struct tuner *t, uint32_t mw);
/* Requests the original cap at once. */
int tuner_to_original(struct tuner *t);
double tuner_ramp_rate(const struct tuner *t);
/* Ends a reference check. */
void tuner_end_check(struct tuner *t);
static inline double tuner_window_s(const struct tuner *t)
{
    return t->o.window_s > 0 ? t->o.window_s : 10;
}
/* Whether the job is stopped or pauses for long; the originals are then in force. */
static inline bool tuner_halted(const struct tuner *t)
{
    return t->stopped || t->pause.halted;
}

/* ---- tuner-windows.c ---- */

/* Queries the energy of the closed t->window, then evaluates the window. */
int tuner_ask_window(struct tuner *t);
/* See window_energy.on_piece. */
int tuner_on_piece(const char *lost, void *user);
/* The cost of the job's steps has changed permanently: begins a new regime.  now: the
 * hold's window that shows the change; NULL: none, or the unit of a step has changed.
 */
void tuner_new_regime(struct tuner *t, const struct search_window *now);
/* The cap is in force: begins a window. */
int tuner_arrived(struct tuner *t, uint64_t now);
/* Repeats a window without a result.  After VOID_MOST of them, restores the original cap
 * for a while: a cap that cannot be measured is not held.
 */
int tuner_on_void_window(struct tuner *t);
/* Handles new steps while a window waits or is open. */
int tuner_on_window(struct tuner *t, uint64_t now);
/* Other caps are held: discards the hold's windows. */
void tuner_hold_anew(struct tuner *t);
/* Whether the original cap is in force for a while because windows had no result. */
bool tuner_rests(const struct tuner *t);

/* ---- tuner-period.c ---- */

/* Listens for the period at this cap, in place of a window of steps. */
void tuner_listen_window(struct tuner *t, uint64_t now);
/* The job reports steps.  True: they replace inferred ones or the safe cap, and the
 * caller must ignore this read.
 */
bool tuner_on_told(struct tuner *t);
/* Discards the unit of inferred steps and listens for a new one. */
void tuner_infer_no_more(struct tuner *t);
/* Listens for any period; the original cap is, or will be, in force. */
void tuner_listen_again(struct tuner *t);

#endif
