/* For the tuner's own files: tuner.c decides and walks, tuner-windows.c measures and
 * keeps the books.
 */
#ifndef TUNER_TUNER_INSIDE_H
#define TUNER_TUNER_INSIDE_H

#include "core/cap/ramp.h"
#include "core/optimum/change.h"
#include "core/optimum/lock.h"
#include "core/progress/window.h"
#include "core/slack/slack.h"
#include "tuner/tuner.h"

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

/* Other caps than the one held, for boards that wait (tuner-slack.c). */
struct tuner_slack {
    struct slack *machine; /* NULL: none under way */
    bool out;              /* not tried again in this hold */
    bool budget;           /* watts move inside the job's part of a budget … */
    bool moving;           /* … and are on their way, since */
    uint64_t moving_ns;
    uint32_t held_mw; /* the cap of all boards that it began at */
    uint32_t cap_mw[BOARDS_MAX];
    uint32_t from_mw[BOARDS_MAX]; /* on the way down: from here */
};

/* Locks of the SM clock, in the held cap's place or beside it (tuner-lock.c). */
struct tuner_lock {
    struct lock *machine; /* NULL: none under way */
    uint32_t out_mw;      /* not tried again where this cap is held; 0: none */
    uint32_t held_mw;     /* the cap that it began at */
    struct ramp ramp;     /* of the lock, in MHz */
    double rate_mhz_s;
    uint32_t asked_mhz; /* last; 0: no lock */
    uint64_t asked_ns;  /* … then; 0: it is in force */
    bool rises;         /* a higher cap waits until the lock is in force */
    bool watched;
    uint64_t seen_ns[BOARDS_MAX]; /* the last that was counted */
    double seen_sum;              /* of the clocks seen in the window under way, … */
    unsigned seen_n;
    uint32_t seen_most_mhz;
};

/* So many launches stand for a step (tuner-rate.c). */
struct tuner_rate {
    bool on;                     /* they do: not a period */
    bool in_regime;              /* … in the regime under way, … */
    struct rate_found regime_of; /* … of these launches */
    bool gone;                   /* at the last look: others, or nobody */
    const char *word;            /* why they tell nothing; NULL: none are counted */
    uint64_t from_ns;            /* what was launched before does not count */
    double unit;                 /* that number; 0: not chosen yet … */
    struct rate_found first;     /* … when these were seen */
};

struct tuner {
    struct tuner_opts o;
    enum tuner_state state;
    struct search *search; /* NULL: a cap asked for by name */
    struct search_step step;
    struct loop_timer *timer;
    struct steps steps;
    uint64_t seen_ns; /* the job's progress last was */

    uint32_t asked_mw;           /* the cap by name; 0: a search */
    struct ramp ramp;            /* of the highest cap of the boards */
    uint32_t commanded_mw;       /* last asked for */
    uint32_t enforced_mw;        /* lowest read back of the last round */
    uint32_t ceiling_mw;         /* highest that others allow now; UINT32_MAX: any */
    uint32_t got_mw[BOARDS_MAX]; /* each board's, last read back */
    struct tuner_slack slack;
    struct tuner_lock lock;
    unsigned pending; /* sets under way */
    bool refused;     /* one of them failed */
    bool stopped;     /* the job is: the originals are in force */
    bool visiting;    /* a hold is left for a look at the reference cap, since … */
    uint64_t visit_ns;
    double visit_takes_s; /* … and should take this long */
    bool quick;           /* … that does not wait until the boards are warm */
    bool warm;            /* … and comes back to it as warm as it was there */
    bool looking;         /* a hold is left for a look into a gap, since … */
    uint64_t look_ns;
    unsigned look_windows; /* made before it */
    bool first_seen;       /* the first cap is in force since first */
    struct step_mark first;
    uint64_t first_ns;

    struct window window;
    struct window closed; /* whose energy is asked, piece by piece */
    size_t pieces_asked;
    double closed_j, closed_half2, closed_peak_w, closed_board_j[BOARDS_MAX];
    bool closed_lost;
    unsigned useless; /* windows in a row that told nothing */
    double rest_s;    /* … and so the original cap is in force for this long, … */
    uint64_t rest_ns; /* … until then */
    struct change change;
    uint32_t hold_at_mw; /* in force in the windows of the hold so far */

    /* Progress without steps, see tuner-period.c: */
    bool known_by_period; /* what is known from before, or by launches */
    bool listening;       /* no steps are told of: for a period */
    bool beat;            /* one period, or so many launches, stand for a step */
    bool safe;            /* none is sure: the static cap */
    uint64_t listen_ns;   /* since when, at this cap */
    double heard_s;       /* a period seen once, to be seen again */
    double beat_s;        /* the last that was sure … */
    uint32_t beat_mw;     /* … at this cap */
    double beat_ref_s;    /* at the reference of this regime; 0: not known yet */
    uint64_t beat_ns;     /* until then stretches are booked; 0: none is */
    unsigned deaf;        /* windows in a row without a period */
    struct tuner_rate rate;

    /* Pauses that the job does not tell of (tuner-gap.c): */
    uint64_t anew_ns; /* what its steps did before counts as no delay; 0: all counts */
    struct {
        uint32_t mw;            /* since then no cap in force was much lower */
        struct step_mark since; /* steps when it came to be */
    } ran[2];                   /* the newer first */
    bool gap;                   /* no step since `last`: a window holds a pause */
    bool gap_told;              /* … which the job tells of by now */
    bool gap_goes_on;           /* a step has been told since */
    bool paused;                /* it lasts: the originals are in force until one is */
    struct step_mark last;

    struct stretch stretch;
    unsigned stretches;       /* whose energy is asked; … */
    struct stretch_ask *asks; /* … of each but the peak's */
    uint64_t begun_ns;
    struct step_mark begun;
    bool has_begun;

    struct tuner_report report;
    struct savings regime[TUNER_REGIMES_MAX];
    size_t merged; /* regimes of before these, in the first of them */
    struct tuner_cap caps[TUNER_CAPS_MAX];
    tuner_done_fn done;
    void *done_user;
    unsigned releasing;
    size_t leases_over; /* boards whose lease ran out */
};

void tuner_note(struct tuner *t, bool important, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The next step of whoever decides: goes there. */
int tuner_next(struct tuner *t);
int tuner_maybe_done(struct tuner *t);
/* The highest cap that may be had now: a reference. */
uint32_t tuner_reference_mw(const struct tuner *t);
/* Goes to a cap without progress to be seen, and holds it. */
int tuner_hold_unseen(struct tuner *t, uint32_t mw, const char *why);
/* The original cap, at once. */
int tuner_to_original(struct tuner *t);
/* The job does nothing that could be measured: the originals are in force. */
static inline bool tuner_halted(const struct tuner *t)
{
    return t->stopped || t->paused;
}

/* At the original for a while, since what was in force could not be measured. */
bool tuner_rests(const struct tuner *t);

/* The cap of each board is asked for, on the way to mw. */
int tuner_command(struct tuner *t, uint32_t mw);
/* A board's limits, from the lowest that may be set; and the highest that may be set
 * under its original.
 */
struct gpu_limits tuner_limits(const struct tuner *t, size_t i);
uint32_t tuner_top_mw(const struct tuner *t, size_t i);
/* What the actuator says, with the board it is about. */
void tuner_of_board(const struct actuator_reply *reply, char *ret, size_t size);
double tuner_ramp_rate(const struct tuner *t);

/* ---- reference-check.c ---- */

/* A board that was capped is cool and leaks less: it takes a minute or two to be as warm
 * as it would have been (time constants of 20 to 60 s).
 */
#define REFERENCE_CHECK_SETTLE_S 60.0

/* A window of a hold is told: a look at the reference cap, if one is due (else 0 and
 * t->visiting stays false).
 */
int reference_check(struct tuner *t);
struct search_step reference_check_step(const struct tuner *t);
/* It takes too long: a pause of the job, or steps that are too long. */
bool reference_check_is_late(const struct tuner *t, uint64_t now);
/* It is over, with or without a window. */
void reference_check_over(struct tuner *t);
/* A window as the books compare it; and at the reference cap, which boards come to cooler
 * than they would be.
 */
struct pair_seen tuner_seen(const struct tuner *t, const struct search_window *w);
struct pair_seen tuner_seen_warming(const struct tuner *t, const struct search_window *w);

/* ---- tuner-slack.c ---- */

/* A window of a hold is told.  *ret_moved: boards are on their way to other caps, or
 * back.
 */
int tuner_slack_on_window(struct tuner *t, const struct search_window *w,
                          bool *ret_moved);
/* What board i gets while the ramp is at mw. */
uint32_t tuner_slack_cap(const struct tuner *t, size_t i, uint32_t mw);
/* Where the ramp has to go for the tuner's step: lower than its cap in a hold with slack.
 * A step that is not that hold ends slack.
 */
uint32_t tuner_slack_target(struct tuner *t);
/* Under a budget: watts are still on their way from board to board. */
bool tuner_slack_walks(struct tuner *t, uint64_t now);
/* Boards have different caps now. */
bool tuner_slack_moved(const struct tuner *t);
/* A look at the reference cap would be in its way. */
bool tuner_slack_measures(const struct tuner *t);
/* The job made no progress.  True: boards had different caps; they will not. */
bool tuner_slack_stall(struct tuner *t);
void tuner_slack_end(struct tuner *t);

/* ---- tuner-lock.c ---- */

/* As tuner_slack_on_window(): to another cap, another lock, or both. */
int tuner_lock_on_window(struct tuner *t, const struct search_window *w, bool *ret_moved);
/* Where the ramp has to go for the tuner's step, which without locks is at mw. */
uint32_t tuner_lock_target(struct tuner *t, uint32_t mw);
/* The cap is where it should be; the lock is not yet.  It is walked to, or given back;
 * *ret_r < 0: that failed.
 */
bool tuner_lock_walks(struct tuner *t, uint64_t now, int *ret_r);
/* What the boards' clocks show now. */
void tuner_lock_see(struct tuner *t);
/* A lock is there, or a cap that only comes with one. */
bool tuner_lock_moved(const struct tuner *t);
/* A look at the reference cap, or into a gap, would be in its way. */
bool tuner_lock_measures(const struct tuner *t);
/* The job made no progress.  True: there was a lock; there is none now. */
bool tuner_lock_stall(struct tuner *t);
/* No lock for now; it comes back with its hold. */
void tuner_lock_off(struct tuner *t);
void tuner_lock_end(struct tuner *t);
/* What was tried before tells nothing any more. */
void tuner_lock_forget(struct tuner *t);

/* ---- tuner-windows.c ---- */

struct savings *tuner_savings(struct tuner *t); /* of the regime under way */
/* One more, of a regime that begins; where all are taken the oldest two become one. */
void tuner_add_savings(struct tuner *t);
/* A stretch that is over: its energy is asked for.  It is left out where its mean power
 * is not between least_w and most_w (0: any).
 */
void tuner_book(struct tuner *t, const struct stretch_done *d, double least_w,
                double most_w);
void tuner_drop_asks(struct tuner *t); /* those under way; its meters go, too */
/* t->window is closed: its energy is asked for, then it is judged. */
int tuner_ask_window(struct tuner *t);
/* The job's steps cost something else now, for good: what was measured ends here.  now: a
 * window of it in the hold; NULL: a step is another thing now, or none was made.
 */
void tuner_new_regime(struct tuner *t, const struct search_window *now);
/* From now on steps are of this kind. */
void tuner_turn(struct tuner *t, enum stretch_kind kind);
/* The cap is in force: a window of its own begins. */
int tuner_arrived(struct tuner *t, uint64_t now);
/* A window that tells nothing is made again, but no cap is left in force for good that
 * nobody can measure.
 */
int tuner_useless(struct tuner *t);
/* New steps while a window waits or is open. */
int tuner_on_window(struct tuner *t, uint64_t now);

/* ---- tuner-gap.c ---- */

/* A cap is commanded, or others set it.  One that is higher, or a little lower, stops no
 * job that runs.
 */
void tuner_ran_at(struct tuner *t, uint32_t mw);
/* … and has come into force. */
void tuner_ran_from_now(struct tuner *t, uint32_t mw);
/* It made steps under caps like those in force. */
bool tuner_ran_well(const struct tuner *t);
/* t->steps was fed, and is not booked yet. */
void tuner_see_gap(struct tuner *t, uint64_t now);
/* No step for long from a job that ran well so far: no cap did that, but a validation, a
 * checkpoint, a wait for data that it does not tell of.  The cap stays for a while, then
 * the original is in force; it goes on where it was with the next step.
 */
bool tuner_is_late(const struct tuner *t, uint64_t now);
int tuner_gap(struct tuner *t);
int tuner_gap_lasts(struct tuner *t, uint64_t now);
int tuner_gap_over(struct tuner *t);
/* The originals, at once; where it was before is gone to when it goes on. */
int tuner_halt(struct tuner *t, uint64_t now);
/* Neither steps nor a period are seen: no cap is left in force blind. */
int tuner_unseen(struct tuner *t);

/* ---- tuner-period.c ---- */

/* In place of a window of steps: listens for the period at this cap. */
void tuner_hear_window(struct tuner *t, uint64_t now);
/* Steps are told of after all: true where the period counted so far. */
bool tuner_on_told(struct tuner *t);
/* No period stands for a step any more: listens as at first. */
void tuner_beat_over(struct tuner *t);
/* At the original cap, or on the way there: listens as at first. */
void tuner_listen_anew(struct tuner *t);

/* ---- tuner-rate.c ---- */

/* What the pulse heard, or what the rate of the launches tells (in *own). */
const struct progress_period_heard *tuner_rate_hear(struct tuner *t,
                                                    const struct progress_period_heard *h,
                                                    struct progress_period_heard *own);
/* A search begins by what was heard: are its units those of the regime under way? */
bool tuner_rate_begins(struct tuner *t);
/* A search that goes by the rate stays with it: steps that only show in the launches
 * later (an epoch's pauses, a clump that comes again) are no better.
 */
bool tuner_rate_beats(const struct tuner *t, const struct steps *steps);
/* After a cap came into force, until launches come at the boards' pace. */
double tuner_rate_settle_s(const struct tuner *t);
/* A cap goes from here to there. */
void tuner_rate_moves(struct tuner *t, uint32_t from_mw, uint32_t to_mw);

#endif
