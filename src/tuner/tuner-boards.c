/* Turns the reports of the caps on the job's boards (taken by others, lost, held again,
 * on the way to a claim, claim in force) into the tuner's events.
 */
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-table.h"

enum { FIRST_S = 10 }; /* the actuator may still be starting */
#define AWAY_S 600.0   /* longest wait for boards that were lost */

/* ---- boards that are taken or lost ---- */

/* Until when a search waits for the actuator's first answer: a cap of an earlier session
 * may still be in force.
 */
static uint64_t first_due_ns(const struct tuner *t)
{
    return t->search && !t->started ? t->began_ns + FIRST_S * NS_PER_S : 0;
}

/* When boards that do not answer count as lost, or are no longer waited for. */
uint64_t tuner_boards_due_ns(const struct tuner *t)
{
    if (t->state == TUNER_BOARDS)
        return t->lost_ns + ns_of_s(AWAY_S);
    for (size_t i = 0; i < t->caps.n && t->state < TUNER_LEFT && !t->lost; i++)
        if (t->caps.told[i].why == UNMET_LOST)
            return first_due_ns(t);
    return UINT64_MAX;
}

int tuner_unmet(struct tuner *t, const char *text)
{
    (void)snprintf(t->report.ended, sizeof t->report.ended, "%s", text);
    return tuner_event(t, ON_UNMET, NULL);
}

static int leave_for(struct tuner *t, size_t board, bool boards)
{
    char text[TUNER_TEXT];

    const struct claim_told *told = &t->caps.told[board];

    if (boards)
        t->left_for = TUNER_LEFT_FOR_BOARDS;
    t->report.released_ns = told->why == UNMET_RELEASED ? told->released_ns : 0;
    board_caps_text(&t->caps, board, text, sizeof text);
    return tuner_unmet(t, text);
}

/* The originals, or another Underwatt's limits, are in force.  Holds the boards again and
 * repeats the step.
 */
static int lose(struct tuner *t, size_t board, uint64_t now)
{
    char text[TUNER_TEXT];

    t->lost = true;
    t->lost_ns = now;
    board_caps_text(&t->caps, board, text, sizeof text);
    if (t->holding && !t->report.reached)
        tuner_note(&t->notes, true,
                   "%s: the cap of %.0f W is set when the board can be held", text,
                   w_of_mw(t->report.held_mw));
    else if (t->caps.told[board].taken)
        tuner_note(&t->notes, true, "%s: the job is measured when the board is free",
                   text);
    else
        tuner_note(&t->notes, true,
                   "%s: the caps were lost: %s the cap from the original limit again",
                   text, t->search ? "the search lowers" : "the job lowers");
    t->lowers = t->holding;
    return tuner_event(t, ON_BOARDS_LOST, NULL);
}

/* Whether the board was lost, or is another Underwatt's, which concerns a tuner that sets
 * or measures caps.
 */
static bool is_lost(const struct tuner *t, const struct claim_told *told)
{
    return told->why == UNMET_LOST || (told->taken && t->state != TUNER_WAIT);
}

/* Handles the reports on the boards: taken by others, lost, held again. */
int tuner_hear_boards(struct tuner *t, uint64_t now)
{
    size_t n = t->caps.n, away = n;
    /* Not if it has begun a step since the loss. */
    bool waits = t->lost && (t->state == TUNER_WAIT || t->state == TUNER_BOARDS);

    for (size_t i = 0; i < n && t->state < TUNER_LEFT; i++) {
        const struct claim_told *told = &t->caps.told[i];
        enum claim_unmet why = told->why;
        if (why == UNMET_YIELDED || why == UNMET_RELEASED || why == UNMET_DENIED)
            return leave_for(t, i, why != UNMET_DENIED);
        if (is_lost(t, told) && !waits && now >= first_due_ns(t))
            return lose(t, i, now);
        if (!told->answers || told->taken)
            away = i;
    }
    if (t->state >= TUNER_LEFT || !t->lost)
        return 0;
    if (away == n) {
        t->lost = false;
        if (t->holding) /* the claim's reason was the loss */
            tuner_note(&t->notes, false, "lowers the cap to %.0f W: %s",
                       w_of_mw(t->report.held_mw), t->report.why);
        return t->state == TUNER_BOARDS ? tuner_event(t, ON_BOARDS, NULL) : 0;
    }
    bool late = t->state == TUNER_BOARDS && s_between(t->lost_ns, now) >= AWAY_S;
    return late ? leave_for(t, away, true) : 0;
}

/* ---- claims ---- */

/* The held cap is in force. */
static void note_hold(struct tuner *t, bool important)
{
    if (!t->lowers)
        return;
    t->lowers = false;
    tuner_note(&t->notes, important, "holds %.0f W: %s", w_of_mw(t->report.held_mw),
               t->report.why);
    board_caps_explain(&t->caps);
}

void tuner_note_held(struct tuner *t)
{
    struct tuner_report *r = &t->report;
    uint32_t low = board_caps_lowest_mw(&t->caps);

    if (!t->holding || t->caps.commanded_mw != r->held_mw)
        return;
    if (t->reach_mw != r->held_mw) {
        r->reached = false;
        r->lowest_mw = 0;
    }
    t->reach_mw = r->held_mw;
    if (board_caps_stand(&t->caps)) {
        note_hold(t, !r->reached);
        r->reached = true;
    }
    if (low && low < (r->lowest_mw ? r->lowest_mw : r->original_mw))
        r->lowest_mw = low;
}

/* Notes the limit in force while the tuner is suspended by a rule or limit of the
 * policy.
 */
static int note_force(struct tuner *t, const struct tuner_moved *moved)
{
    if (!moved->limit)
        return 0;
    pause_on_cap(&t->pause, moved->enforced_mw, &t->progress.steps.mark);
    progress_moved(&t->progress, moved->was_mw, moved->enforced_mw);
    t->enforced_mw = moved->enforced_mw;
    return 0;
}

static bool is_ruled(const struct tuner *t)
{
    for (size_t i = 0; i < t->caps.n; i++)
        if (t->caps.told[i].ruled)
            return true;
    return false;
}

/* Whether the window continues after the rule, in a further piece: a rule that begins
 * while the job reports a pause of its training ends together with that pause.
 */
static bool steps_aside(const struct tuner *t)
{
    bool measures = t->state == TUNER_MEASURE || t->state == TUNER_ENERGY;

    return measures && t->progress.unit == TUNER_BY_STEPS && t->enforced_mw &&
           steps_known(&t->progress.steps) && !steps_training(&t->progress.steps);
}

/* Whether the rule has ended and the former limit is not in force yet. */
static bool comes_back(const struct tuner *t)
{
    return t->aside_mw && t->caps.commanded_mw == t->aside_mw &&
           board_caps_enforced_mw(&t->caps) < t->aside_mw;
}

/* Whether the former limit is in force again and the window continues. */
static bool is_back(struct tuner *t)
{
    uint32_t was_mw = t->aside_mw;

    t->aside_mw = 0;
    if (!was_mw || board_caps_enforced_mw(&t->caps) != was_mw)
        return false;
    t->enforced_mw = was_mw;
    window_settle(&t->progress.window, loop_now_ns(t->o.loop));
    return true;
}

static int rest(struct tuner *t)
{
    struct tuner_moved same = {.was_mw = t->enforced_mw, .enforced_mw = t->enforced_mw};

    tuner_note(&t->notes, true,
               "a rule or limit of the policy is below the cap: the search pauses");
    if (tuner_end_visit(t))
        return tuner_event(t, ON_MOVED, &same);
    progress_forget(&t->progress);
    return 0;
}

/* Handles a rule or limit of the policy that lowers the boards below the tuner's cap,
 * and its end.  Meanwhile the tuner measures nothing and keeps its claims; then it
 * resumes the state of before, or the hold if a check was under way.  Steps in that time
 * are booked separately and not compared.
 */
static int hear_rules(struct tuner *t)
{
    struct tuner_moved same = {.was_mw = t->enforced_mw, .enforced_mw = t->enforced_mw};
    bool ruled = is_ruled(t) || comes_back(t);

    if (ruled == t->report.ruled)
        return 0;
    t->report.ruled = ruled;
    regimes_rest(&t->regimes, ruled);
    if (ruled && steps_aside(t)) {
        t->aside_mw = t->enforced_mw;
        return 0;
    }
    if (ruled)
        return rest(t);
    if (is_back(t))
        return 0;
    tuner_note(&t->notes, true,
               "no rule or limit of the policy is below the cap: the search goes on");
    return tuner_event(t, ON_MOVED, &same);
}

int tuner_late_aside(struct tuner *t)
{
    t->aside_mw = 0;
    return is_ruled(t) ? rest(t) : hear_rules(t);
}

/* Whether a share of the node's budget, which may change often, limits a board. */
static bool is_shared(const struct tuner *t)
{
    for (size_t i = 0; t->caps.table->share && i < t->caps.n; i++)
        if (t->caps.table->share(t->caps.of, i))
            return true;
    return false;
}

/* Notes when another's claim below the cap by name begins and ends. */
static void hear_other(struct tuner *t)
{
    uint32_t mw = board_caps_other_mw(&t->caps);
    double cap_w = w_of_mw(t->report.held_mw);

    if (t->search || !t->holding || t->state >= TUNER_LEFT || t->report.ruled ||
        t->caps.commanded_mw != t->report.held_mw || t->other == (mw > 0))
        return;
    t->other = mw > 0;
    if (t->other)
        tuner_note(&t->notes, !is_shared(t),
                   "another claim is lower than the cap of %.0f W: the limit goes to "
                   "%.0f W",
                   cap_w, w_of_mw(mw));
    else
        tuner_note(&t->notes, !is_shared(t),
                   "no other claim is lower than the cap of %.0f W any more", cap_w);
}

/* Handles a change of the cap that others' claims allow, or of the limit in force. */
static int hear_force(struct tuner *t)
{
    uint32_t ceiling_mw = board_caps_ceiling_mw(&t->caps, false);
    uint32_t reference_mw = tuner_reference_mw(t);
    struct tuner_moved moved = {
        .was_mw = t->enforced_mw ? t->enforced_mw : t->caps.commanded_mw,
        .enforced_mw = board_caps_enforced_mw(&t->caps),
    };
    bool other = false;

    moved.limit =
        !t->caps.pending && moved.enforced_mw && moved.enforced_mw != moved.was_mw;
    if (ceiling_mw != t->ceiling_mw) {
        t->ceiling_mw = ceiling_mw;
        if (t->search)
            search_on_hard_limit(t->search, ceiling_mw >= t->report.original_mw
                                                ? SEARCH_NO_LIMIT
                                                : ceiling_mw);
        other = (t->search && search_step(t->search)->cap_mw != t->step.cap_mw) ||
                (t->step.kind == SEARCH_MEASURE && tuner_reference_mw(t) != reference_mw);
    }
    if (t->report.ruled)
        return note_force(t, &moved);
    return moved.limit || other ? tuner_event(t, ON_MOVED, &moved) : 0;
}

/* The job's claim on board i has been withdrawn. */
static void hear_release(struct tuner *t, size_t i)
{
    const struct claim_told *told = &t->caps.told[i];
    bool taken = told->why == UNMET_YIELDED || told->why == UNMET_RELEASED;

    t->report.unsure |= told->why == UNMET_LOST;
    if (taken || told->why == UNMET_LOST ||
        (told->progress == CLAIM_MET && !told->unrestored))
        return;
    t->report.restored = false;
    board_caps_text(&t->caps, i, t->report.restore, sizeof t->report.restore);
}

/* The claims are in force, or cannot be met. */
static void hear_settled(struct tuner *t, size_t i)
{
    const struct claim_told *told = &t->caps.told[i];
    const char *text = t->caps.told_text[i];

    if (text[0] && (told->progress == CLAIM_CLAMPED || told->progress == CLAIM_OVER))
        tuner_note(&t->notes, true, "%s", text);
    if (told->why == UNMET_DRY_RUN || told->why == UNMET_LATE) {
        t->caps.refused = true;
        board_caps_text(&t->caps, i, t->caps.text, sizeof t->caps.text);
    }
    if (!t->caps.pending)
        t->enforced_mw = board_caps_enforced_mw(&t->caps);
}

/* ---- the first cap ---- */

/* Time at the first cap, where steps are inferred. */
static double check_s(const struct tuner *t)
{
    const struct progress_source *source = progress_source(&t->progress);
    unsigned more = t->step.check_steps + 1;

    return source->check_s > 0 ? source->check_s : more * t->progress.inferred.period_s;
}

/* At the first cap: reports to the caps the units of work done there since the last
 * call.
 */
void tuner_check_first(struct tuner *t, uint64_t now)
{
    const struct step_mark *mark = &t->progress.steps.mark;
    bool inferred = progress_is_inferred(&t->progress);

    if (t->state != TUNER_WALK || !board_caps_stop(&t->caps))
        return;
    bool anew = !inferred && mark->generation != t->first.generation;
    if (!t->first_seen || anew) {
        t->first_seen = true;
        t->first = *mark;
        t->first_ns = now;
        return;
    }
    uint64_t units = steps_known(&t->progress.steps) ? mark->steps - t->first.steps : 0;
    if (inferred)
        units = s_between(t->first_ns, now) >= check_s(t) ? t->step.check_steps + 1 : 0;
    if (!units)
        return;
    t->caps.table->progressed(t->caps.of, (unsigned)units);
    t->first = *mark;
    t->first_ns = now;
}

uint64_t tuner_check_due_ns(const struct tuner *t)
{
    bool waits =
        progress_is_inferred(&t->progress) && t->first_seen && board_caps_stop(&t->caps);

    return waits ? t->first_ns + ns_of_s(check_s(t)) : UINT64_MAX;
}

/* ---- all reports ---- */

int tuner_on_told(struct tuner *t, size_t board, const struct claim_told *told,
                  const char *text)
{
    uint64_t now = loop_now_ns(t->o.loop);
    bool pends = t->caps.pending != 0;
    bool settled = board_caps_hear(&t->caps, board, told, text);
    int r = 0;

    if (t->state >= TUNER_LEFT) {
        if (settled)
            hear_release(t, board);
        return t->state == TUNER_OVER ? tuner_maybe_done(t) : 0;
    }
    tuner_note_held(t);
    if (pends)
        tuner_note_cap(t);
    if (settled)
        hear_settled(t, board);
    r = tuner_hear_boards(t, now);
    if (r >= 0)
        r = hear_rules(t);
    hear_other(t);
    if (r >= 0)
        r = hear_force(t);
    tuner_check_first(t, now);
    if (r >= 0)
        r = tuner_arrive(t);
    tuner_arm(t);
    return r;
}
