#include "tuner/tuner-table.h"

#include "base/auto.h"

/* clang-format off */

/* ---- conditions ---- */

#define IF(name, condition) \
    static bool if_##name(const struct tuner *t) { return (condition); }

IF(stopped,  t->stopped)
IF(started,  t->started) /* steps, or an inferred unit, were certain once */
IF(capped,   t->started || t->holding) /* by the tuner, or at a resumed cap */
IF(walked,   t->started || t->step.cap_mw > 0)
IF(unbegun,  t->search && !t->started)
IF(named,    !t->search)
IF(safe,     t->at == ACTIVITY_SAFE)
IF(checks,   t->at == ACTIVITY_CHECK)
IF(priced,   t->priced) /* the step may cost time that slowdown:F must have left */
IF(listens,  t->progress.by == TUNER_BY_NOTHING)
IF(inferred, progress_is_inferred(&t->progress))
/* The effect of a resumed cap on the job's progress is not known. */
IF(resumed,  t->holding && t->at != ACTIVITY_SAFE)
/* The limit in force can be compared with the limit that others allow. */
IF(compares, t->started && t->at != ACTIVITY_SAFE)
IF(ran_well, pause_ran_well(&t->pause, &t->progress.steps.mark))
IF(ruled,    t->report.ruled) /* a cap that is not the tuner's is in force */
IF(late,     tuner_is_late(t))
IF(measured, t->from == TUNER_MEASURE)
IF(asked,    t->energy.pending > 0) /* for pieces of an abandoned window */
IF(few_void, t->report.ruled || t->void_windows + 1 < VOID_MOST)
IF(few_deaf, !tuner_missed_many(t))
/* Measures the reference of a cap by name, which is otherwise set without one. */
IF(named_reference, !t->search && t->step.kind != SEARCH_HOLD)
/* There is no higher cap to try: the cap is a user's, or the reference. */
IF(no_higher, !t->search ||
              (t->step.kind != SEARCH_HOLD && t->step.cap_mw >= tuner_reference_mw(t)))
/* The search's cap below the reference may be what hides the period. */
IF(below,    t->step.kind != SEARCH_HOLD &&
             board_caps_in_force_mw(&t->caps) + MW_PER_W < tuner_reference_mw(t))

/* ---- the rows ---- */

#define S(x) (1u << TUNER_##x)
#define RUNS (S(WALK) | S(MEASURE))
#define WORKS (RUNS | S(ENERGY))
#define LIVE (S(BOARDS) | S(WAIT) | WORKS | S(LATE) | S(PAUSED))
#define ALWAYS NULL
#define NOTHING NULL
#define ROW(in, on, only, then, to) {in, ON_##on, only, then, TUNER_##to, #only, #then}

static const struct tuner_row rows[] = {
    /*  in                    on            only                then             to */
    ROW(LIVE,                 END,          ALWAYS,             do_end,          OVER),
    ROW(S(LEFT),              END,          ALWAYS,             do_end_left,     OVER),
    ROW(LIVE,                 UNMET,        ALWAYS,             do_leave,        LEFT),
    ROW(LIVE,                 BOARDS_LOST,  if_walked,          do_rehold,       BOARDS),
    ROW(S(WAIT),              BOARDS_LOST,  ALWAYS,             do_rehold,       WAIT),
    ROW(S(BOARDS),            BOARDS,       if_listens,         do_listen_again, WAIT),
    ROW(S(BOARDS),            BOARDS,       if_unbegun,         NOTHING,         WAIT),
    ROW(S(BOARDS),            BOARDS,       if_stopped,         NOTHING,         PAUSED),
    ROW(S(BOARDS),            BOARDS,       if_late,            NOTHING,         PAUSED),
    ROW(S(BOARDS),            BOARDS,       if_started,         do_go,           WALK),
    ROW(S(BOARDS),            BOARDS,       ALWAYS,             do_named,        WALK),

    ROW(WORKS | S(LATE) | S(PAUSED), STOPPED, ALWAYS,           do_halt,         PAUSED),
    ROW(S(WAIT),              STOPPED,      if_capped,          do_halt,         WAIT),
    ROW(S(BOARDS),            CONTINUED,    ALWAYS,             do_forget_pause, BOARDS),
    ROW(S(PAUSED),            CONTINUED,    if_listens,         do_listen_again, WAIT),
    ROW(S(PAUSED),            CONTINUED,    if_started,         do_go,           WALK),
    ROW(S(PAUSED),            CONTINUED,    ALWAYS,             do_named,        WALK),

    ROW(S(WAIT),              SILENT,       if_named,           do_named,        WALK),
    ROW(S(WAIT),              SILENT,       ALWAYS,             do_listen,       WAIT),
    ROW(S(WAIT),              TOLD,         ALWAYS,             do_told,         WAIT),
    ROW(S(WAIT),              SURE,         ALWAYS,             do_begin,        WALK),
    ROW(S(WAIT),              DUE,          if_resumed,         do_unresume,     WAIT),
    ROW(S(WAIT),              DUE,          ALWAYS,             do_ask_peak,     WAIT),
    ROW(S(WAIT),              PEAK,         if_listens,         do_safe,         WALK),
    ROW(S(MEASURE),           SURE,         if_safe,            do_unsafe,       WAIT),
    ROW(WORKS,                TOLD,         if_inferred,        do_told_better,  WALK),
    ROW(WORKS,                TOLD,         ALWAYS,             do_told_safe,    WAIT),

    ROW(RUNS | S(LATE) | S(PAUSED), LOST,   if_named,           do_named,        WALK),
    ROW(S(MEASURE),           LOST,         if_inferred,        do_unheard,      WAIT),
    ROW(RUNS | S(LATE) | S(PAUSED), LOST,   ALWAYS,             do_blind,        WAIT),
    ROW(RUNS,                 LATE,         if_ran_well,        do_late,         LATE),
    ROW(RUNS,                 LATE,         if_ruled,           do_late,         LATE),
    ROW(RUNS,                 LATE,         if_named,           do_stuck,        LEFT),
    ROW(RUNS,                 LATE,         ALWAYS,             do_stall,        WALK),
    ROW(S(LATE),              DUE,          ALWAYS,             do_pause,        PAUSED),
    ROW(S(LATE),              GOES_ON,      if_measured,        do_void,         MEASURE),
    ROW(S(LATE) | S(PAUSED),  GOES_ON,      if_started,         do_go,           WALK),
    ROW(S(LATE) | S(PAUSED),  GOES_ON,      ALWAYS,             do_named,        WALK),
    ROW(S(BOARDS),            GOES_ON,      ALWAYS,             do_forget_pause, BOARDS),

    ROW(WORKS,                MOVED,        if_compares,        do_force,        WALK),
    ROW(S(LATE),              MOVED,        if_compares,        do_force,        LATE),
    ROW(S(WALK),              MET,          ALWAYS,             do_measure,      MEASURE),
    ROW(RUNS,                 DUE,          if_checks,          do_give_up,      WALK),
    ROW(RUNS,                 SPENT,        if_priced,          do_spent,        WALK),
    ROW(S(WALK) | S(ENERGY),  GO,           ALWAYS,             do_go,           WALK),
    ROW(S(ENERGY),            STAY,         ALWAYS,             do_measure,      MEASURE),

    ROW(S(MEASURE),           WINDOW,       if_asked,           do_measure,      MEASURE),
    ROW(S(MEASURE),           WINDOW,       ALWAYS,             do_joules,       ENERGY),
    ROW(S(ENERGY),            JOULES,       ALWAYS,             do_judge,        ENERGY),
    ROW(S(MEASURE) | S(ENERGY), VOID,       if_few_void,        do_again,        MEASURE),
    ROW(S(MEASURE) | S(ENERGY), VOID,       if_named_reference, do_named,        WALK),
    ROW(S(MEASURE) | S(ENERGY), VOID,       if_no_higher,       do_again,        MEASURE),
    ROW(S(MEASURE) | S(ENERGY), VOID,       ALWAYS,             do_rest,         WAIT),
    ROW(S(MEASURE),           DEAF,         if_checks,          do_give_up,      WALK),
    ROW(S(MEASURE),           DEAF,         if_few_deaf,        do_listen_on,    MEASURE),
    ROW(S(MEASURE),           DEAF,         if_below,           do_deaf_stall,   WALK),
    ROW(S(MEASURE),           DEAF,         ALWAYS,             do_unheard,      WAIT),
};
/* clang-format on */

const struct tuner_row *tuner_rows(size_t *ret_n)
{
    *ret_n = n_elements(rows);
    return rows;
}

/* ---- the dispatcher ---- */

static bool is_interruption(enum tuner_state state)
{
    return state == TUNER_LATE || state == TUNER_PAUSED || state == TUNER_BOARDS;
}

static void enter(struct tuner *t, enum tuner_state to)
{
    enum tuner_state was = t->state;

    tuner_count_away(t);
    t->state = to;
    if (!is_interruption(to) || was == to)
        return;
    if (to == TUNER_PAUSED && was == TUNER_LATE)
        return; /* the same interruption goes on */
    /* A window that has ended and boards that were away are not resumed. */
    t->from = to == TUNER_BOARDS || was == TUNER_MEASURE ? was : TUNER_WALK;
}

int tuner_event(struct tuner *t, enum tuner_event event, const void *what)
{
    for (size_t i = 0; i < n_elements(rows); i++) {
        const struct tuner_row *row = &rows[i];
        if (!(row->in & (1u << t->state)) || row->on != event ||
            (row->only && !row->only(t)))
            continue;
        enter(t, row->to);
        int r = row->then ? row->then(t, what) : 0;
        tuner_arm(t);
        return r;
    }
    t->left_alone++;
    return 0;
}
