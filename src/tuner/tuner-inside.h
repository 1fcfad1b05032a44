/* For the files of tuner.h: tuner.c decides where to go and ramps, tuner-windows.c judges
 * windows, tuner-period.c measures by inferred progress.
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
    TUNER_WALK,   /* the cap is on its way */
    TUNER_WINDOW, /* the cap is in force: settling, measuring */
    TUNER_ENERGY, /* the window is over, its energy not yet known */
    TUNER_REHOLD, /* the leases ran out (we were stopped): boards are taken again */
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
    uint32_t ceiling_mw; /* highest that others allow now; UINT32_MAX: any */
    bool first_seen;     /* the first cap is in force since first */
    struct step_mark first;
    uint64_t first_ns;
    size_t leases_over; /* boards whose lease ran out */

    /* Progress: */
    struct steps steps;
    uint64_t seen_ns; /* when steps were last seen */
    bool has_begun;   /* training has, at: */
    struct step_mark begun;
    uint64_t begun_ns;
    bool stopped; /* the job is: the originals are in force */
    struct pause pause;
    bool listening;    /* no steps are told of: for a period, or a rate of launches */
    bool inferred;     /* one period, or so many launches, stand for a step */
    bool was_inferred; /* … in what is known from before, too */
    bool safe;         /* nothing is sure: the static cap */
    struct launch_rate rate;
    struct period_window period;

    /* Windows and books: */
    struct window window;
    struct window_energy energy; /* of the last that was closed */
    unsigned void_windows;       /* in a row that told nothing */
    double rest_s;    /* … and so the original cap is in force for this long, … */
    uint64_t rest_ns; /* … until then */
    struct change change;
    uint32_t hold_at_mw; /* in force in the windows of the hold so far */
    struct regimes regimes;
    unsigned peaks_asked;

    /* Out of a hold: */
    struct reference_check check;
    struct gap_check gap;
    struct slack_search slack;
    struct lock_search lock;

    struct tuner_report report;
    tuner_done_fn done;
    void *done_user;
};

/* ---- tuner.c ---- */

/* The next step of whoever decides: goes there. */
int tuner_next(struct tuner *t);
int tuner_maybe_done(struct tuner *t);
/* The highest cap that may be had now: a reference. */
uint32_t tuner_reference_mw(const struct tuner *t);
/* Goes to a cap without progress to be seen, and holds it. */
int tuner_hold_unseen(struct tuner *t, uint32_t mw, const char *why);
/* The cap of each board is asked for, on the way to mw. */
int tuner_command(struct tuner *t, uint32_t mw);
/* The original cap, at once. */
int tuner_to_original(struct tuner *t);
double tuner_ramp_rate(const struct tuner *t);
/* What is under way out of a hold ends. */
void tuner_end_check(struct tuner *t);
static inline double tuner_window_s(const struct tuner *t)
{
    return t->o.window_s > 0 ? t->o.window_s : 10;
}
/* The job does nothing that could be measured: the originals are in force. */
static inline bool tuner_halted(const struct tuner *t)
{
    return t->stopped || t->pause.halted;
}

/* ---- tuner-windows.c ---- */

/* t->window is closed: its energy is asked for, then it is judged. */
int tuner_ask_window(struct tuner *t);
/* A piece of it is told; see struct window_energy. */
int tuner_on_piece(const char *lost, void *user);
/* The job's steps cost something else now, for good: what was measured ends here.  now: a
 * window of it in the hold; NULL: a step is another thing now, or none was made.
 */
void tuner_new_regime(struct tuner *t, const struct search_window *now);
/* The cap is in force: a window of its own begins. */
int tuner_arrived(struct tuner *t, uint64_t now);
/* A window that tells nothing is made again, but no cap is left in force for good that
 * nobody can measure.
 */
int tuner_on_void_window(struct tuner *t);
/* New steps while a window waits or is open. */
int tuner_on_window(struct tuner *t, uint64_t now);
/* Another cap, or caps, are held: what the hold's windows showed counts no more. */
void tuner_hold_anew(struct tuner *t);
/* At the original for a while, since what was in force could not be measured. */
bool tuner_rests(const struct tuner *t);

/* ---- tuner-period.c ---- */

/* In place of a window of steps: listens for the period at this cap. */
void tuner_listen_window(struct tuner *t, uint64_t now);
/* Steps are told of after all: true where what was inferred counted so far. */
bool tuner_on_told(struct tuner *t);
/* Nothing that is inferred stands for a step any more: listens as at first. */
void tuner_infer_no_more(struct tuner *t);
/* At the original cap, or on the way there: listens as at first. */
void tuner_listen_again(struct tuner *t);

#endif
