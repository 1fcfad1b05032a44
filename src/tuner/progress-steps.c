/* Steps that the job reports. */
#include <stdio.h>

#include "base/units.h"
#include "tuner/progress-source.h"

enum { WARM_STEPS = 3 };
#define UNSEEN_S 120.0 /* longest time without steps while a cap is in force */

/* Steps are certain once training is past its warm-up. */
static enum progress_news waits(struct progress *p, uint64_t now)
{
    struct progress_steps *s = &p->told;
    const struct step_mark *mark = &p->steps.mark;

    if (!steps_known(&p->steps) || !steps_training(&p->steps))
        return PROGRESS_GOES_ON;
    if (s->begun_ns < s->waits_ns || s->begun.generation != mark->generation) {
        s->begun = *mark;
        s->begun_ns = now;
    }
    bool warm = mark->steps >= s->begun.steps + WARM_STEPS &&
                s_between(s->begun_ns, now) >= s->warm_s;
    return warm ? PROGRESS_SURE : PROGRESS_GOES_ON;
}

static enum progress_news on_steps(struct progress *p, uint64_t now)
{
    struct window *w = &p->window;
    enum window_state was = w->state;
    size_t pieces = w->n_pieces;
    enum window_state is = window_feed(w, &p->steps, now);

    if (is == WINDOW_OPEN && was != WINDOW_OPEN)
        energy_sum_mark(p->meters, w->from.at_ns);
    if (w->n_pieces > pieces)
        energy_sum_mark(p->meters, w->piece[w->n_pieces - 1].to.at_ns);
    return is == WINDOW_CLOSED ? PROGRESS_WINDOW : PROGRESS_GOES_ON;
}

static uint64_t lost_ns(const struct progress *p)
{
    return steps_seen(&p->steps) ? UINT64_MAX : p->told.seen_ns + ns_of_s(UNSEEN_S);
}

void progress_awaits(const struct progress *p, char *ret, size_t size)
{
    if (p->by != TUNER_BY_STEPS || !steps_known(&p->steps))
        (void)snprintf(ret, size, "waits for training steps");
    else if (!steps_training(&p->steps))
        (void)snprintf(ret, size, "waits for training to go on");
    else
        (void)snprintf(ret, size, "waits for %d steps and %.0f s of training", WARM_STEPS,
                       p->told.warm_s);
}

const struct progress_source progress_by_steps = {
    .missing = "steps",
    .lost = "steps are no longer seen",
    .found = "steps are seen now",
    .waits = waits,
    .on_steps = on_steps,
    .late_s = steps_late_s,
    .lost_ns = lost_ns,
};
