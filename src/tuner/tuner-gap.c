/* A job that makes no steps.  Pauses that it does not tell of (a validation, a
 * checkpoint, a wait for data) are kept out of windows and books; a long one has the
 * original caps.
 */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-inside.h"

/* Without a step for so long the originals are in force, whatever the reason. */
#define GAP_MOST_S 60.0
#define GAP_WALL_S 8.0 /* of the wall's clock, where simulated time is faster */
#define GAP_STEPS 16.0
/* On a way down this is a gap already. */
#define LATE_S 2.0
#define LATE_WALL_S 0.2
#define LATE_STEPS 3.0
/* So many steps under a cap that is lower by no more than this part of it. */
#define RAN_STEPS 8
#define RAN_PART 20

void tuner_ran_at(struct tuner *t, uint32_t mw)
{
    uint32_t was = t->ran[0].mw;

    if (mw > was) {
        t->ran[0].mw = mw;
    } else if (mw < was - was / RAN_PART) {
        t->ran[1] = t->ran[0];
        t->ran[0].mw = mw;
        t->ran[0].since = t->steps.mark;
        if (mw < was - 2 * (was / RAN_PART))
            t->ran[1] = t->ran[0];
    }
}

void tuner_ran_from_now(struct tuner *t, uint32_t mw)
{
    for (size_t i = 0; i < n_elements(t->ran); i++)
        if (t->ran[i].mw == mw)
            t->ran[i].since = t->steps.mark;
}

bool tuner_ran_well(const struct tuner *t)
{
    const struct step_mark *since = &t->ran[1].since;

    return t->steps.mark.generation == since->generation &&
           t->steps.mark.steps >= since->steps + RAN_STEPS;
}

/* Steps of before and after a gap are no stretch. */
static void see(struct tuner *t, uint64_t now)
{
    t->gap_told = !steps_training(&t->steps);
    t->gap_goes_on = t->steps.mark.generation != t->last.generation ||
                     t->steps.mark.steps > t->last.steps;
    if (t->gap_goes_on)
        t->steps.phase_ns = t->anew_ns = now;
    else
        t->steps.phase = UW_PHASE_VALIDATE;
}

void tuner_see_gap(struct tuner *t, uint64_t now)
{
    if (t->gap)
        see(t, now);
    if (t->anew_ns > t->steps.phase_ns)
        t->steps.phase_ns = t->anew_ns;
}

bool tuner_is_late(const struct tuner *t, uint64_t now)
{
    double least_s = fmax(LATE_S, LATE_WALL_S * loop_speed(t->o.loop));

    return tuner_ran_well(t) && t->ramp.at_mw < t->report.original_mw &&
           steps_late_s(&t->steps, now, LATE_STEPS, least_s) > 0;
}

int tuner_gap(struct tuner *t)
{
    t->gap = true;
    t->gap_goes_on = false;
    t->last = t->steps.mark;
    window_cancel(&t->window);
    return 0;
}

int tuner_halt(struct tuner *t, uint64_t now)
{
    reference_check_over(t);
    window_cancel(&t->window);
    if (t->state == TUNER_ENERGY) /* told later, it would count as the original's */
        t->state = TUNER_WALK;
    tuner_turn(t, STRETCH_SEARCH);
    tuner_lock_off(t);
    ramp_to(&t->ramp, t->report.original_mw, 0, 0, true, now);
    return tuner_command(t, t->report.original_mw);
}

int tuner_gap_lasts(struct tuner *t, uint64_t now)
{
    double most_s = fmax(GAP_MOST_S, fmax(GAP_WALL_S * loop_speed(t->o.loop),
                                          GAP_STEPS * t->steps.step_s));

    if (t->paused || t->gap_told || s_between(t->last.at_ns, now) < most_s)
        return 0;
    t->paused = true;
    tuner_note(t, true, "no step for %.0f s: the original cap until one is told", most_s);
    return tuner_halt(t, now);
}

int tuner_gap_over(struct tuner *t)
{
    bool paused = t->paused;

    t->gap = t->paused = false;
    if (paused)
        tuner_note(t, true, "the job goes on");
    if (t->stopped || !t->report.started)
        return 0;
    if (t->state == TUNER_WALK || (paused && t->state == TUNER_WINDOW))
        return tuner_next(t);
    return t->state == TUNER_WINDOW ? tuner_useless(t) : 0;
}

int tuner_unseen(struct tuner *t)
{
    window_cancel(&t->window);
    t->gap = t->paused = false;
    if (!t->search)
        return tuner_hold_unseen(t, t->asked_mw, "asked for");
    tuner_note(t, true, "its steps are seen no more: back to the original cap");
    reference_check_over(t);
    tuner_turn(t, STRETCH_SEARCH);
    t->report.holding = false;
    t->looking = false;
    t->report.by = TUNER_BY_NOTHING;
    (void)snprintf(t->report.unknown, sizeof t->report.unknown,
                   "its steps are seen no more");
    t->has_begun = false;
    t->state = TUNER_WAIT;
    int r = tuner_to_original(t);
    (void)tuner_listen(t);
    return r;
}
