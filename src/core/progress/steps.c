#include "core/progress/steps.h"

#include <assert.h>
#include <string.h>

#include "base/units.h"

void steps_init(struct steps *s)
{
    *s = (struct steps){0};
}

static const struct step_slot *find_slot(const struct steps *s, uint64_t pid)
{
    for (size_t i = 0; i < s->n_seen; i++)
        if (s->seen[i].pid == pid)
            return &s->seen[i];
    return NULL;
}

/* Copies the live slots to `live`, with implausible times corrected.  Returns whether
 * they are the same as before and no count has decreased.
 */
static bool take_slots(struct steps *s, const struct step_slot *slots, size_t n,
                       uint64_t now_ns, struct step_slot *live, size_t *n_live)
{
    bool same = true;

    *n_live = 0;
    for (size_t i = 0; i < n; i++) {
        struct step_slot slot = slots[i];
        if (!slot.live || slot.pid == 0)
            continue;
        const struct step_slot *old = find_slot(s, slot.pid);
        if (!old || slot.steps < old->steps)
            same = false;
        bool stepped = !old || slot.steps != old->steps;
        if (!stepped) {
            slot.last_step_ns = old->last_step_ns;
        } else if (slot.last_step_ns > now_ns ||
                   (s->fed_ns && old && slot.last_step_ns <= old->last_step_ns)) {
            slot.last_step_ns = now_ns;
            s->lies++;
        }
        live[(*n_live)++] = slot;
    }
    return same && *n_live == s->n_seen;
}

/* The slot with the fewest steps; among equals, the last one to reach them. */
static const struct step_slot *slowest(const struct step_slot *slots, size_t n)
{
    const struct step_slot *worst = NULL;

    for (size_t i = 0; i < n; i++)
        if (!worst || slots[i].steps < worst->steps ||
            (slots[i].steps == worst->steps &&
             slots[i].last_step_ns > worst->last_step_ns))
            worst = &slots[i];
    return worst;
}

static void smooth_step(struct steps *s, const struct step_mark *from)
{
    double steps, seconds;

    if (!steps_between(from, &s->mark, &steps, &seconds) || seconds <= 0)
        return;
    double step = seconds / steps;
    double weight = steps >= 4 ? 0.5 : 0.125 * steps;
    s->step_s = s->step_s > 0 ? s->step_s + weight * (step - s->step_s) : step;
}

enum steps_outcome steps_feed(struct steps *s, const struct step_slot *slots, size_t n,
                              uint64_t now_ns)
{
    struct step_slot live[STEPS_SLOTS];
    size_t n_live;

    assert(n <= STEPS_SLOTS);
    bool same = take_slots(s, slots, n, now_ns, live, &n_live);
    uint64_t phase_was = s->phase;
    struct step_mark was = s->mark;
    const struct step_slot *worst = slowest(live, n_live);

    memcpy(s->seen, live, n_live * sizeof *live);
    s->n_seen = n_live;
    s->fed_ns = now_ns;
    if (!worst) {
        s->has_mark = false;
        s->phase = UW_PHASE_UNKNOWN;
        return same ? STEPS_SAME : STEPS_RESTARTED;
    }
    s->phase = worst->phase;
    if (s->phase != phase_was || !same)
        s->phase_ns = now_ns;
    bool first = !s->has_mark;
    s->has_mark = worst->steps > 0;
    s->mark = (struct step_mark){worst->steps, worst->last_step_ns, was.generation};
    if (!same || first) {
        s->mark.generation++;
        if (!same)
            s->step_s = 0;
        return same && !s->has_mark ? STEPS_SAME : STEPS_RESTARTED;
    }
    if (s->mark.steps == was.steps)
        return STEPS_SAME;
    if (phase_was == s->phase)
        smooth_step(s, &was);
    return STEPS_ADVANCED;
}

bool steps_known(const struct steps *s)
{
    return s->has_mark;
}

bool steps_seen(const struct steps *s)
{
    return s->has_mark && (!s->guessed || steps_training(s));
}

bool steps_training(const struct steps *s)
{
    return s->phase == UW_PHASE_TRAIN || s->phase == UW_PHASE_UNKNOWN;
}

bool steps_between(const struct step_mark *a, const struct step_mark *b,
                   double *ret_steps, double *ret_s)
{
    if (a->generation != b->generation || b->steps <= a->steps || b->at_ns < a->at_ns)
        return false;
    *ret_steps = (double)(b->steps - a->steps);
    *ret_s = s_between(a->at_ns, b->at_ns);
    return true;
}

double steps_late_s(const struct steps *s, uint64_t now_ns, double factor, double least_s)
{
    if (!s->has_mark || !steps_training(s) || s->step_s <= 0)
        return 0;
    uint64_t since = s->mark.at_ns > s->phase_ns ? s->mark.at_ns : s->phase_ns;
    double allowed = factor * s->step_s;
    if (allowed < least_s)
        allowed = least_s;
    return s_between(since, now_ns) - allowed;
}
