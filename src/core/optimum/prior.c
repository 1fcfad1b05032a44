#include "core/optimum/prior.h"

#include <math.h>
#include <string.h>

#define ROOT5 2.23606797749979
#define U_MOST 4.0 /* limit of |log x|: keeps exp(ROOT5 * u / len) finite */

/* From `bench/learn-prior --curves zeus.csv --source` and the 106 saturated
 * sweeps of ML.ENERGY Zeus (NSDI 2023, SOSP 2024, JIT profiles; V100, A40, RTX
 * 6000, P100, A100) that tools/zeus-curves selects.
 */
const struct prior prior_recorded = {
    .t =
        {
            .mean = {1.4462, 0.99377, 0.6011, 0.33134, 0.17765, 0.09623, 0.053829,
                     0.024577, 0.007609, -0.0046835, -0.011129, -0.014538},
            .log_amp = {-1.0742, -2.0665, -3.5109, -3.5886, -3.5416},
            .len_long = 0.43206,
            .len_mid = 0.30037,
            .len_short = 0.049609,
            .share = 0.15049,
            .rough = {5.9649e-07, 0.0091012, 0.040212},
            .weight = {0.42453, 0.41786, 0.15761},
        },
    .p =
        {
            .mean = {-1.0448, -0.90199, -0.72621, -0.56009, -0.42528, -0.3071, -0.20185,
                     -0.11168, -0.038269, 0.018141, 0.048718, 0.074678},
            .log_amp = {-2.5008, -3.5485, -4.1254, -3.4222, -2.5767},
            .len_long = 0.77567,
            .len_mid = 0.14376,
            .len_short = 0.10162,
            .share = 0.22621,
            .rough = {9.0007e-07, 0.012713, 0.042774},
            .weight = {0.39841, 0.47138, 0.13021},
        },
};

static double clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

void prior_mean_weights(double x, double ret[PRIOR_MEANS])
{
    double at = clamp((x - PRIOR_MEAN_AT) / PRIOR_MEAN_BY, 0, PRIOR_MEANS - 1);
    int i = (int)fmin(at, PRIOR_MEANS - 2);
    double f = at - i, f2 = f * f, f3 = f2 * f;
    /* Catmull-Rom spline; the end knots are repeated. */
    double w[4] = {0.5 * (-f3 + 2 * f2 - f), 0.5 * (3 * f3 - 5 * f2 + 2),
                   0.5 * (-3 * f3 + 4 * f2 + f), 0.5 * (f3 - f2)};

    memset(ret, 0, PRIOR_MEANS * sizeof *ret);
    for (int k = 0; k < 4; k++) {
        int j = i + k - 1;
        j = j < 0 ? 0 : j > PRIOR_MEANS - 1 ? PRIOR_MEANS - 1 : j;
        ret[j] += w[k];
    }
}

double prior_mean(const struct prior_side *s, double x)
{
    double w[PRIOR_MEANS], sum = 0;
    prior_mean_weights(x, w);
    for (int i = 0; i < PRIOR_MEANS; i++)
        sum += w[i] * s->mean[i];
    return sum;
}

struct prior_spot prior_spot(const struct prior_side *s, double x)
{
    const double len[PRIOR_SCALES] = {s->len_long, s->len_mid, s->len_short};
    double at = clamp((x - PRIOR_AMP_AT) / PRIOR_AMP_BY, 0, PRIOR_AMPS - 1);
    int i = (int)fmin(at, PRIOR_AMPS - 2);
    double f = at - i;
    struct prior_spot p = {
        .u = clamp(log(x), -U_MOST, U_MOST),
        .amp = exp((1 - f) * s->log_amp[i] + f * s->log_amp[i + 1]),
    };

    for (int k = 0; k < PRIOR_SCALES; k++) {
        p.up[k] = exp(ROOT5 * p.u / len[k]);
        p.down[k] = 1 / p.up[k];
    }
    return p;
}

/* Matern 5/2 of two points at the k-th length; low.u <= high.u. */
static double matern52(const struct prior_spot *low, const struct prior_spot *high,
                       double len, int k)
{
    double a = ROOT5 * (high->u - low->u) / len;
    return (1 + a + a * a / 3) * high->down[k] * low->up[k];
}

double prior_cov(const struct prior_side *s, double rough, const struct prior_spot *a,
                 const struct prior_spot *b)
{
    const struct prior_spot *low = a->u < b->u ? a : b, *high = a->u < b->u ? b : a;
    return a->amp * b->amp *
               (matern52(low, high, s->len_long, 0) +
                s->share * s->share * matern52(low, high, s->len_mid, 1)) +
           rough * rough * matern52(low, high, s->len_short, 2);
}
