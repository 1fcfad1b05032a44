#include "core/optimum/effect.h"

#include <math.h>

#include "base/units.h"

#define SURE 2.33 /* standard errors */
/* Least ratio of the cap and the mean power for a cap without effect, if the driver
 * reports that the cap has no effect, and if it does not report it; largest relative
 * difference from the reference's time and energy.
 */
#define UNBOUND_TOLD 1.05
#define UNBOUND_UNTOLD 1.5
#define EQUAL 0.005

/* Whether time and energy equal the reference's within the errors. */
static bool equal(const struct search_window *w, const struct effect_of *of)
{
    const struct level *r = of->reference;
    double off_t = log(w->time_s) - of->offset_t - r->log_t;
    double off_e = log(w->energy_j / of->gpus) - of->offset_e - r->log_e;
    double var_t = w->time_rse * w->time_rse + r->var_t;
    double var_e = w->energy_rse * w->energy_rse + r->var_e;
    bool told = w->binding != BINDING_UNKNOWN;
    double se_t = sqrt(told ? fmax(var_t, of->var_t) : var_t);
    double se_e = sqrt(told ? fmax(var_e, of->var_e) : var_e);

    if (!told && of->bounded && SURE * se_t > EQUAL)
        return false;
    return fabs(off_t) <= EQUAL + SURE * se_t && fabs(off_e) <= EQUAL + SURE * se_e;
}

enum effect effect_of(const struct search_window *w, const struct effect_of *of)
{
    double room = w->binding == BINDING_UNKNOWN ? UNBOUND_UNTOLD : UNBOUND_TOLD;
    double mean_mw = w->energy_j / w->time_s / of->gpus * MW_PER_W;

    if (w->binding == BINDING_SEEN || w->cap_mw < room * mean_mw || !equal(w, of))
        return EFFECT_ANY;
    bool one = w->binding == BINDING_CLEAR && !of->again && w->length < 2;
    return one ? EFFECT_AGAIN : EFFECT_NONE;
}
