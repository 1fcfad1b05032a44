#include "core/carbon/account.h"

#include <math.h>

#define UJ_PER_KWH INT64_C(3600000000000)
#define FRACTIONS 1000 /* of a milligram or millionth a kWh, in a factor */
#define FACTOR_MAX 1e12
__extension__ typedef __int128 wide;

bool account_factor(enum account_signal which, double v, int64_t *ret)
{
    double whole = v * (which == ACCOUNT_COST ? 1e6 : 1e3);

    if (!isfinite(whole) || fabs(whole) > FACTOR_MAX)
        return false;
    *ret = (int64_t)llround(whole * FRACTIONS);
    return true;
}

/* The energy of the first `part` of `whole` ns. */
static int64_t energy_until(int64_t energy_uj, uint64_t part, uint64_t whole)
{
    return whole ? (int64_t)((wide)energy_uj * (wide)part / (wide)whole) : energy_uj;
}

static uint64_t clamp(uint64_t at, uint64_t begin, uint64_t end)
{
    return at < begin ? begin : at > end ? end : at;
}

/* Whether a step is in force during some part of the interval.  For an interval of
 * length 0, whether it is in force at that moment.
 */
static bool meets(const struct account_step *step, size_t n, size_t i, uint64_t begin_ns,
                  uint64_t end_ns)
{
    uint64_t next_ns = i + 1 < n ? step[i + 1].from_ns : UINT64_MAX;

    if (begin_ns == end_ns)
        return step[i].from_ns <= begin_ns && begin_ns < next_ns;
    return step[i].from_ns < end_ns && next_ns > begin_ns;
}

void account_interval(const struct account_step *step, size_t n, uint64_t begin_ns,
                      uint64_t end_ns, int64_t energy_uj, int64_t *rest,
                      struct account_amount *ret)
{
    const wide per_unit = (wide)UJ_PER_KWH * FRACTIONS;
    uint64_t whole = end_ns - begin_ns, longest = 0;
    wide sum = *rest;

    *ret = (struct account_amount){0};
    for (size_t i = 0; i < n; i++) {
        if (!step[i].known || !meets(step, n, i, begin_ns, end_ns))
            continue;
        uint64_t next_ns = i + 1 < n ? step[i + 1].from_ns : UINT64_MAX;
        uint64_t from = clamp(step[i].from_ns, begin_ns, end_ns) - begin_ns;
        uint64_t to = clamp(next_ns, begin_ns, end_ns) - begin_ns;
        int64_t uj = energy_until(energy_uj, to, whole);
        if (whole)
            uj -= energy_until(energy_uj, from, whole);
        if (!ret->known || to - from > longest) {
            longest = to - from;
            ret->source = step[i].source;
        }
        ret->known = true;
        ret->covered_uj += uj;
        sum += (wide)uj * step[i].factor;
    }
    if (!ret->known)
        return;
    wide amount = sum / per_unit - (sum % per_unit < 0);
    ret->amount = (int64_t)amount;
    *rest = (int64_t)(sum - amount * per_unit);
}
