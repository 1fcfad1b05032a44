#include "tuner/pause.h"

#include <math.h>

#include "base/auto.h"
#include "base/units.h"

/* Time without a step after which the originals are restored: the largest of the three.
 */
#define HALT_S 60.0
#define HALT_WALL_S 8.0 /* real time, for a simulation that runs faster */
#define HALT_STEPS 16.0
/* The same while the cap is being lowered. */
#define LATE_S 2.0
#define LATE_WALL_S 0.2
#define LATE_STEPS 3.0
#define RAN_STEPS 8 /* steps until pause_ran_well() */
#define RAN_PART 20 /* a cap is similar if lower by at most 1 / RAN_PART */

void pause_on_cap(struct pause *p, uint32_t mw, const struct step_mark *now)
{
    uint32_t was = p->ran[0].mw;

    if (mw > was) {
        p->ran[0].mw = mw;
    } else if (mw < was - was / RAN_PART) {
        p->ran[1] = p->ran[0];
        p->ran[0].mw = mw;
        p->ran[0].since = *now;
        if (mw < was - 2 * (was / RAN_PART))
            p->ran[1] = p->ran[0];
    }
}

bool pause_ran_well(const struct pause *p, const struct step_mark *now)
{
    const struct step_mark *since = &p->ran[1].since;

    return now->generation == since->generation && now->steps >= since->steps + RAN_STEPS;
}

double pause_late_s(const struct pause *p, const struct steps *steps, uint64_t now_ns,
                    double speed)
{
    double least_s = fmax(LATE_S, LATE_WALL_S * speed);

    return pause_ran_well(p, &steps->mark)
               ? steps_late_s(steps, now_ns, LATE_STEPS, least_s)
               : 0;
}

void pause_forgive(struct pause *p, struct steps *steps, uint64_t now_ns)
{
    steps->phase_ns = p->forgiven_ns = now_ns;
}

bool pause_on_steps(struct pause *p, struct steps *steps, uint64_t now_ns)
{
    const struct step_mark *mark = &steps->mark;
    bool goes_on = mark->generation != p->last.generation || mark->steps > p->last.steps;

    p->phase = steps->phase;
    if (goes_on)
        pause_forgive(p, steps, now_ns);
    else
        steps->phase = UW_PHASE_VALIDATE; /* no stretch of steps includes a pause */
    return goes_on;
}

void pause_mend(const struct pause *p, struct steps *steps)
{
    if (p->forgiven_ns > steps->phase_ns)
        steps->phase_ns = p->forgiven_ns;
}

uint64_t pause_long_ns(const struct pause *p, const struct steps *steps, double speed)
{
    bool told = p->phase != UW_PHASE_TRAIN && p->phase != UW_PHASE_UNKNOWN;
    double most_s = fmax(HALT_S, fmax(HALT_WALL_S * speed, HALT_STEPS * steps->step_s));

    return told ? UINT64_MAX : p->last.at_ns + ns_of_s(most_s);
}
