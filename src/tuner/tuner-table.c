#include "tuner/tuner-table.h"

#include "base/auto.h"

/* ---- conditions ---- */

static bool if_stopped(const struct tuner *t)
{
    return t->stopped;
}

/* Steps, or what stands for them, were certain once. */
static bool if_started(const struct tuner *t)
{
    return t->started;
}

/* The tuner has set a cap, or was at one that it resumed. */
static bool if_capped(const struct tuner *t)
{
    return t->started || t->holding;
}

static bool if_walked(const struct tuner *t)
{
    return t->started || t->step.cap_mw > 0;
}

/* A search that has had no step that counts. */
static bool if_unbegun(const struct tuner *t)
{
    return t->search && !t->started;
}

static bool if_named(const struct tuner *t)
{
    return !t->search;
}

static bool if_safe(const struct tuner *t)
{
    return t->at == ACTIVITY_SAFE;
}

static bool if_checks(const struct tuner *t)
{
    return t->at == ACTIVITY_CHECK;
}

/* Neither steps nor what stands for them is known. */
static bool if_listens(const struct tuner *t)
{
    return t->progress.by == TUNER_BY_NOTHING;
}

static bool if_inferred(const struct tuner *t)
{
    return progress_is_inferred(&t->progress);
}

/* A resumed cap, whose effect on the job's progress is not known. */
static bool if_resumed(const struct tuner *t)
{
    return t->holding && t->at != ACTIVITY_SAFE;
}

/* What is in force can be compared with what others allow. */
static bool if_compares(const struct tuner *t)
{
    return t->started && t->at != ACTIVITY_SAFE;
}

static bool if_ran_well(const struct tuner *t)
{
    return pause_ran_well(&t->pause, &t->progress.steps.mark);
}

static bool if_late(const struct tuner *t)
{
    return tuner_is_late(t);
}

static bool if_measured(const struct tuner *t)
{
    return t->from == TUNER_MEASURE;
}

/* Pieces of an abandoned window are still asked for. */
static bool if_asked(const struct tuner *t)
{
    return t->energy.pending > 0;
}

static bool if_few_void(const struct tuner *t)
{
    return t->void_windows + 1 < VOID_MOST;
}

/* The reference of a cap by name, which is then set without one. */
static bool if_named_reference(const struct tuner *t)
{
    return !t->search && t->step.kind != SEARCH_HOLD;
}

/* There is no higher cap to go to: that of a person, or the reference. */
static bool if_no_higher(const struct tuner *t)
{
    return !t->search ||
           (t->step.kind != SEARCH_HOLD && t->step.cap_mw >= tuner_reference_mw(t));
}

static bool if_few_deaf(const struct tuner *t)
{
    return !tuner_missed_many(t);
}

/* A cap of the search below the reference may be what hides the period. */
static bool if_below(const struct tuner *t)
{
    return t->step.kind != SEARCH_HOLD &&
           board_caps_in_force_mw(&t->caps) + MW_PER_W < tuner_reference_mw(t);
}

/* ---- the rows ---- */

/* clang-format off */
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
    ROW(S(WALK) | S(ENERGY),  GO,           ALWAYS,             do_go,           WALK),
    ROW(S(ENERGY),            SPLIT,        ALWAYS,             do_split,        WALK),
    ROW(S(ENERGY),            STAY,         ALWAYS,             do_measure,      MEASURE),

    ROW(S(MEASURE),           WINDOW,       if_asked,           do_measure,      MEASURE),
    ROW(S(MEASURE),           WINDOW,       ALWAYS,             do_joules,       ENERGY),
    ROW(S(ENERGY),            JOULES,       ALWAYS,             do_judge,        ENERGY),
    ROW(S(MEASURE) | S(ENERGY), VOID,       if_few_void,        do_again,        MEASURE),
    ROW(S(MEASURE) | S(ENERGY), VOID,       if_named_reference, do_named,        WALK),
    ROW(S(MEASURE) | S(ENERGY), VOID,       if_no_higher,       do_again_anew,   MEASURE),
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

    t->state = to;
    if (!is_interruption(to) || was == to)
        return;
    if (to == TUNER_PAUSED && was == TUNER_LATE)
        return; /* the same interruption goes on */
    /* A window that was over, or boards that were away, are not gone back to. */
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
        return row->then ? row->then(t, what) : 0;
    }
    t->left_alone++;
    return 0;
}
