/* The tuner as a table: a state is what the tuner waits for, an event is what has
 * happened, and a row has the action of the tuner and the next state.  The first row that
 * applies is used.  An event without a row is ignored and counted; test-tuner-table.c
 * covers all pairs.  The current activity and the progress source are members of struct
 * tuner, not states.
 *
 * tuner-table.c has the rows, the conditions and the dispatcher; tuner.c turns outside
 * occurrences into events, tuner-boards.c those of the caps; tuner-go.c, tuner-windows.c
 * and tuner-progress.c have the actions: caps, windows, progress. tuner-report.c shows
 * the result.
 */
#ifndef TUNER_TUNER_TABLE_H
#define TUNER_TUNER_TABLE_H

#include "core/optimum/change.h"
#include "core/progress/window.h"
#include "tuner/activity.h"
#include "tuner/board-caps.h"
#include "tuner/gap-check.h"
#include "tuner/lock-search.h"
#include "tuner/notes.h"
#include "tuner/pause.h"
#include "tuner/progress-source.h"
#include "tuner/reference-check.h"
#include "tuner/rest.h"
#include "tuner/safe-cap.h"
#include "tuner/slack-search.h"
#include "tuner/trials.h"
#include "tuner/tuner.h"
#include "tuner/window-energy.h"

enum { LEAST_STEPS = 5 }; /* of a window */
enum { VOID_MOST = 8 };   /* successive windows without a result */

/* name, what the tuner waits for */
#define TUNER_STATES(X)                                                        \
    X(BOARDS, "its boards, whose leases ran out, to be held again")            \
    X(WAIT, "progress that is certain; at the original or at a resumed cap")   \
    X(WALK, "the cap to be in force")                                          \
    X(MEASURE, "the end of a window")                                          \
    X(ENERGY, "the energy of that window")                                     \
    X(LATE, "the next step, which is late for no fault of the cap; cap stays") \
    X(PAUSED, "the next step, or SIGCONT; the originals are in force")         \
    X(LEFT, "the job's end; boards are released, the job is only measured")    \
    X(OVER, "nothing; the last replies are still pending")

#define TUNER_STATE_ENUM(name, text) TUNER_##name,
enum tuner_state { TUNER_STATES(TUNER_STATE_ENUM) TUNER_STATES_N };

/* name, what has happened (and the action's argument, if any) */
#define TUNER_EVENTS(X)                                                         \
    /* of the job's progress: */                                                \
    X(TOLD, "the job reports steps that were inferred so far")                  \
    X(SURE, "progress is certain")                                              \
    X(SILENT, "the job reports no steps from its start")                        \
    X(LATE, "the next step is late")                                            \
    X(GOES_ON, "a step after one that was late")                                \
    X(LOST, "progress cannot be followed any more")                             \
    X(DEAF, "no period or rate in a window")                                    \
    X(SPENT, "the time that slowdown:F leaves is spent")                        \
    X(WINDOW, "a window is over")                                               \
    /* of the boards and their caps: */                                         \
    X(MET, "the cap, and the lock with it, is in force")                        \
    X(MOVED, "others have moved the cap or the reference (struct tuner_moved)") \
    X(UNMET, "no caps any more: report.ended says why")                         \
    X(BOARDS_LOST, "all leases ran out")                                        \
    X(BOARDS, "all boards are held again")                                      \
    /* of the meters: */                                                        \
    X(JOULES, "the window's energy is known (struct search_window)")            \
    X(VOID, "a window without a result")                                        \
    X(PEAK, "the boards' peak power is known (struct energy_sum_window)")       \
    /* of the activity at work: */                                              \
    X(GO, "the activity requests another step")                                 \
    X(STAY, "the activity requests another window at the same cap")             \
    /* of the clock, the job's processes and the caller: */                     \
    X(DUE, "the time of the state or the activity is over")                     \
    X(STOPPED, "the job's processes are stopped (SIGSTOP)")                     \
    X(CONTINUED, "the job's processes continue")                                \
    X(END, "the job is over, or is not to be capped any more")

#define TUNER_EVENT_ENUM(name, text) ON_##name,
enum tuner_event { TUNER_EVENTS(TUNER_EVENT_ENUM) TUNER_EVENTS_N };

/* Argument of ON_MOVED. */
struct tuner_moved {
    bool limit; /* the limit in force has changed */
    uint32_t was_mw, enforced_mw;
};

/* Why caps ended early, for the creator of the next tuner. */
enum tuner_left_for {
    TUNER_LEFT_FOR_CAPS = 0, /* they cannot be set, or the job stalls under them */
    TUNER_LEFT_FOR_BOARDS, /* a board is lost or controlled by others; it may come back */
};

struct tuner {
    struct tuner_opts o;
    enum tuner_state state;      /* changed by tuner_event() alone */
    enum tuner_state from;       /* the state that LATE, PAUSED or BOARDS interrupted */
    enum activity_id at, out_of; /* the current activity; the one before the next hold */
    enum tuner_left_for left_for;
    unsigned left_alone; /* events without a row */
    uint64_t counted_ns; /* until when report.stopped_s and .waited_s are counted */
    bool stopped;        /* the job's processes are stopped, whatever its steps show */
    bool started;        /* steps, reported or inferred, were certain at some time */
    bool holding;        /* a cap was chosen or resumed, report.held_mw */
    struct tuner_notes notes;
    struct trials trials; /* what is noted of them */
    struct loop_timer *timer;
    struct search *search; /* NULL: a cap asked for by name */
    struct search_step step;

    /* Caps: */
    struct board_caps caps;
    uint32_t at_mw;    /* last noted position of the lowest board on its ramp */
    uint32_t reach_mw; /* the held cap of which report.reached and .lowest_mw tell */
    bool lowers;       /* to the held cap, whose hold is noted when it is in force */
    uint32_t
        enforced_mw;   /* the lowest limit in force, when the claims were met; 0: none */
    uint32_t aside_mw; /* that limit, while a rule is in force for a phase of the job
                          other than training; 0: no such rule */
    uint32_t ceiling_mw; /* highest cap that others' claims allow; UINT32_MAX: any */
    bool other;          /* a cap by name: another claim is lower */
    bool first_seen;     /* the walk stops at the first cap since first_ns */
    struct step_mark
        first; /* the job's work at the first cap was reported up to this mark */
    uint64_t first_ns;
    bool lost; /* boards are lost since lost_ns and not all held again */
    uint64_t lost_ns, began_ns;

    struct progress progress; /* what counts as a step, and the window under way */
    struct pause pause;

    bool priced; /* the step may cost time, which the bound of slowdown:F must allow */

    /* Windows and accounts: */
    struct window_energy energy; /* of the last closed window */
    unsigned void_windows;       /* successive windows without a result */
    bool told_lost;              /* what a lost window means */
    struct change change;
    uint32_t hold_at_mw; /* cap in force in the windows of the hold so far */
    struct regimes regimes;
    unsigned peaks_asked;

    /* The state of each activity: */
    void *activity[ACTIVITIES_N]; /* in the order of enum activity_id */
    struct safe_cap safe;
    struct rest rest;
    struct reference_check check;
    struct gap_check gap;
    struct slack_search slack;
    struct lock_search lock;

    struct tuner_report report;
    tuner_done_fn done;
    void *done_user;
};

/* ---- the table ---- */

/* An action may raise a further event; the state is already the row's next state. */
typedef int tuner_do(struct tuner *t, const void *what);
typedef bool tuner_if(const struct tuner *t);

struct tuner_row {
    uint32_t in; /* mask of states */
    enum tuner_event on;
    tuner_if *only; /* NULL: always */
    tuner_do *then; /* NULL: nothing */
    enum tuner_state to;
    const char *only_name, *then_name;
};
const struct tuner_row *tuner_rows(size_t *ret_n);
/* The only way to another state.  what: see TUNER_EVENTS. */
int tuner_event(struct tuner *t, enum tuner_event event, const void *what);

/* ---- tuner-go.c: caps ---- */

/* Takes the next step of the activity at work and claims its cap. */
tuner_do do_go;
/* Other claims have moved the cap: repeats the step.  Goes to the named cap and holds it
 * without known progress.
 */
tuner_do do_force, do_named;
/* A pause begins, lasts, is forgotten.  Restores the original caps at once. */
tuner_do do_late, do_pause, do_forget_pause, do_halt;
/* No progress under the cap: raises the cap; gives up the named cap.  The reference check
 * takes too long, or has no period.
 */
tuner_do do_stall, do_stuck, do_give_up;
/* The cap costs more time than the goal's bound allows: goes to a higher one. */
tuner_do do_spent;
tuner_do do_rehold, do_leave, do_end, do_end_left;

int tuner_maybe_done(struct tuner *t);
/* tuner.c: sets the timer to what the state waits for. */
void tuner_arm(struct tuner *t);
/* The reference cap: the highest cap that is possible now. */
uint32_t tuner_reference_mw(const struct tuner *t);
/* Counts the time since the last call; call it before the job's state changes. */
void tuner_count_away(struct tuner *t);
/* Whether the job has no boards to be capped or measured on now, but may have again. */
bool tuner_lacks_boards(const struct tuner *t);
/* Goes to the cap of a step and holds it, without known progress. */
int tuner_hold_unseen(struct tuner *t, const struct search_step *step, const char *why);
/* Collects the input of the activities' decisions. */
void tuner_look(struct tuner *t, struct activity_now *ret);
/* Claims the caps of all boards, of which mw is the highest. */
int tuner_command(struct tuner *t, uint32_t mw, const struct claim_way *way);
/* The cap of the claims has changed: notes it for pauses and launches. */
void tuner_note_cap(struct tuner *t);
/* Ends a ramp if the claims have settled and the activities are ready. */
int tuner_arrive(struct tuner *t);
/* Claims the original cap. */
int tuner_to_original(struct tuner *t);
double tuner_ramp_rate(const struct tuner *t);
/* slowdown:F: the seconds that the bound of the whole job allows; INFINITY: another goal.
 */
double tuner_left_s(const struct tuner *t);
/* In a hold: whether the search has waited for that time, and takes another step now. */
bool tuner_goes_on(struct tuner *t);
/* Ends a reference check, if one is under way. */
void tuner_end_check(struct tuner *t);
/* Ends a reference or a gap check: the hold is the next step.  False: none is under way.
 */
bool tuner_end_visit(struct tuner *t);
/* A rule that took effect in a pause of training has not ended with the pause, or its
 * limit stays: no window continues after the pause.
 */
int tuner_late_aside(struct tuner *t);
/* Whether the step is a hold, without a reference check, and the job runs. */
bool tuner_holds(const struct tuner *t);
/* Whether the tuner waits for a step that is late. */
static inline bool tuner_is_late(const struct tuner *t)
{
    enum tuner_state s = t->state == TUNER_BOARDS ? t->from : t->state;
    return !t->stopped && (s == TUNER_LATE || s == TUNER_PAUSED);
}

/* ---- tuner-boards.c: what the caps tell ---- */

/* Ends the caps; text: the reason. */
int tuner_unmet(struct tuner *t, const char *text);
/* Notes how far the held cap has come. */
void tuner_note_held(struct tuner *t);
/* Processes reports on the boards: taken, lost, held again. */
int tuner_hear_boards(struct tuner *t, uint64_t now);
/* When that changes without a report; UINT64_MAX: never. */
uint64_t tuner_boards_due_ns(const struct tuner *t);
/* At the first cap: reports the job's work since the last call to the caps. */
void tuner_check_first(struct tuner *t, uint64_t now);
/* When to call it if steps are inferred; UINT64_MAX: no stop. */
uint64_t tuner_check_due_ns(const struct tuner *t);

/* ---- tuner-windows.c ---- */

/* The cap is in force, or stays: begins a window.  The window is over: queries its
 * energy; books the window and passes it to the current activity.
 */
tuner_do do_measure, do_joules, do_judge;
/* Repeats a window without a result.  Nothing can be measured at this cap: restores the
 * original cap for a while.
 */
tuner_do do_void, do_again, do_rest;

/* See window_energy.on_piece. */
int tuner_on_piece(const char *lost, void *user);
/* The cost of the job's steps has changed permanently: begins a new regime.  now: the
 * hold's window that shows the change; NULL: none, or the unit of a step has changed.
 */
void tuner_new_regime(struct tuner *t, const struct search_window *now);
/* The held caps have changed: discards the hold's windows. */
void tuner_hold_anew(struct tuner *t);
/* Whether the original cap is in force for a while because windows had no result. */
bool tuner_rests(const struct tuner *t);

/* ---- tuner-progress.c ---- */

/* Listens for any unit; in samples from now on, if the original cap is or will be in
 * force; if the unit of a resumed hold does not appear.
 */
tuner_do do_listen, do_listen_again, do_unresume;
/* Queries the peak power that determines the safe cap; holds the safe cap; a unit is
 * certain, and the safe cap is no longer needed.
 */
tuner_do do_ask_peak, do_safe, do_unsafe;
/* Progress is certain: takes the first step. */
tuner_do do_begin;
/* Nothing was found in a window: continues to listen; raises the cap; gives the unit up.
 * The job's steps cannot be followed any more.
 */
tuner_do do_listen_on, do_deaf_stall, do_unheard, do_blind;
/* The job reports steps: before the search; instead of inferred ones; instead of the safe
 * cap.
 */
tuner_do do_told, do_told_better, do_told_safe;

/* Turns news of the progress source into events; no other function does. */
int tuner_on_progress(struct tuner *t, enum progress_news news);
/* See progress.on_power. */
int tuner_on_power(const struct progress_period_heard *h, void *user);
/* Whether MISSED_MOST successive windows had no period. */
bool tuner_missed_many(const struct tuner *t);
/* Discards the unit of inferred steps and listens for a new one. */
tuner_do tuner_infer_no_more;

#endif
