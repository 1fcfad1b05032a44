/* Whether the cap of a window below the reference had an effect (search-state.h).  It had
 * none if time and energy are the reference's and the driver says so: by its counter and
 * a cap that is not near the mean power, or by the reasons for the clock in two windows;
 * or if the driver does not say and the cap is 1.5 times the mean power or higher.
 */
#include "core/optimum/search-state.h"

#include <math.h>

#include "base/units.h"

/* Least ratio of the cap and the mean power for a cap without effect, if the driver
 * reports that the cap has no effect, and if it does not report it; largest relative
 * difference from the reference's time and energy.
 */
#define UNBOUND_TOLD 1.05
#define UNBOUND_UNTOLD 1.5
#define EQUAL 0.005

/* Whether time and energy equal the reference's within the errors.  With the driver's
 * word these are at least those of the noise between windows, where it is known.
 */
static bool equal(const struct search *s, const struct search_window *w)
{
    const struct level *r = &s->levels[s->reference];
    double off_t = log(w->time_s) - s->drift.offset_t - r->log_t;
    double off_e = log(w->energy_j / s->setup.gpus) - s->drift.offset_e - r->log_e;
    double var_t = w->time_rse * w->time_rse + r->var_t;
    double var_e = w->energy_rse * w->energy_rse + r->var_e;
    bool told = w->binding != BINDING_UNKNOWN;

    if (told && search_noise_known(s)) {
        double again_t = s->noise.t.again_var[0];
        var_t = fmax(var_t, 2 * again_t);
        var_e = fmax(var_e, 2 * (again_t + s->noise.p.again_var[0]));
    }
    if (!told && s->setup.goal.kind == GOAL_SLOWDOWN && SURE * sqrt(var_t) > EQUAL)
        return false;
    return fabs(off_t) <= EQUAL + SURE * sqrt(var_t) &&
           fabs(off_e) <= EQUAL + SURE * sqrt(var_e);
}

enum effect search_effect(const struct search *s, const struct search_window *w)
{
    double room = w->binding == BINDING_UNKNOWN ? UNBOUND_UNTOLD : UNBOUND_TOLD;
    double mean_mw = w->energy_j / w->time_s / s->setup.gpus * MW_PER_W;
    bool below = s->has_reference && !s->holding &&
                 w->cap_mw < search_effective(s, s->reference_mw);

    if (!below || w->binding == BINDING_SEEN || w->cap_mw < room * mean_mw ||
        !equal(s, w))
        return EFFECT_ANY;
    bool one = w->binding == BINDING_CLEAR && s->again_mw != w->cap_mw && w->length < 2;
    return one ? EFFECT_AGAIN : EFFECT_NONE;
}
