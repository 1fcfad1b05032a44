#include "tuner/progress-source.h"

#include <math.h>
#include <stdio.h>

const struct progress_source *const progress_sources[PROGRESS_SOURCES] = {
    [TUNER_BY_STEPS] = &progress_by_steps,
    [TUNER_BY_LAUNCHES] = &progress_by_launches,
    [TUNER_BY_PERIOD] = &progress_by_period,
    [TUNER_BY_NOTHING] = &progress_by_nothing,
};

void progress_ask(struct progress *p, const struct window_rule *rule)
{
    if (rule)
        window_arm(&p->window, rule, loop_now_ns(p->loop));
    if (progress_source(p)->ask)
        progress_source(p)->ask(p);
}

void progress_forget(struct progress *p)
{
    window_cancel(&p->window);
    p->inferred.booked_ns = 0;
}

void progress_sure(struct progress *p)
{
    p->unknown[0] = '\0';
    p->busy = NAN;
    p->period_s = p->found.period_s;
    p->confidence = p->found.confidence;
}

void progress_unsure(struct progress *p, const char *why, const char *more)
{
    (void)snprintf(p->unknown, sizeof p->unknown, "%s%s%s", why, more ? "; " : "",
                   more ? more : "");
    p->busy = p->found.busy;
}

/* ---- which source replaces which ---- */

/* Chooses the source.  Launches and period do not replace each other: progress-none.c
 * has chosen the more certain one.
 */
enum progress_turn progress_begin(struct progress *p)
{
    enum progress_turn turn = PROGRESS_SAME;

    if (p->by == TUNER_BY_NOTHING)
        p->by = p->none.likely;
    if (p->by != p->unit)
        turn = PROGRESS_OTHER_UNIT;
    else if (progress_source(p)->same && !progress_source(p)->same(p))
        turn = PROGRESS_OTHER_WORK;
    p->unit = p->by;
    if (progress_source(p)->begin)
        progress_source(p)->begin(p);
    return turn;
}

/* A search by launches ignores steps that are later estimated from them (an epoch's
 * pauses, recurring bursts): they are no more accurate.
 */
bool progress_takes(const struct progress *p, const struct steps *steps)
{
    return p->by != TUNER_BY_LAUNCHES || !steps->guessed;
}

/* All other steps replace an inferred unit. */
bool progress_is_told(const struct progress *p, const struct steps *steps)
{
    return p->by != TUNER_BY_STEPS && steps_seen(steps);
}

void progress_count_steps(struct progress *p)
{
    p->by = TUNER_BY_STEPS;
    p->none.likely = TUNER_BY_PERIOD;
    progress_period_rest(p->power);
}
