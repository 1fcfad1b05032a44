#include "core/slack/balance.h"

#include <math.h>

#define BISECTIONS 60

static uint32_t on_grain(double mw, const struct balance_board *b, uint32_t grain_mw)
{
    uint32_t v = (uint32_t)(mw / grain_mw) * grain_mw;

    if (v < b->least_mw)
        v = b->least_mw;
    return v > b->most_mw ? b->most_mw : v;
}

size_t balance_down(const struct balance_board *b, size_t n, double busiest,
                    const struct balance_rule *rule, uint32_t *ret_mw)
{
    size_t differ = 0;

    for (size_t i = 0; i < n; i++) {
        double gap = log(busiest / b[i].busy);
        double cut = fmin(rule->gain * gap / b[i].steep, -log(1 - rule->most));
        ret_mw[i] = b[i].cap_mw;
        if (gap <= rule->dead)
            continue;
        uint32_t mw = on_grain(b[i].cap_mw * exp(-cut), &b[i], rule->grain_mw);
        if (mw < b[i].cap_mw)
            ret_mw[i] = mw;
        differ += ret_mw[i] != b[i].cap_mw;
    }
    return differ;
}

/* The cap of board b if all boards are to have a log busy share of `level`. */
static double share_mw(const struct balance_board *b, double level,
                       const struct balance_rule *rule)
{
    double move = rule->gain * (log(b->busy) - level) / b->steep;
    double most = -log(1 - rule->most);
    double mw = b->cap_mw * exp(fmin(most, fmax(-most, move)));

    return fmin(b->most_mw, fmax(b->least_mw, mw));
}

static double sum_mw(const struct balance_board *b, size_t n, double level,
                     const struct balance_rule *rule)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += share_mw(&b[i], level, rule);
    return sum;
}

/* Distributes what rounding has left, one grain per board, the busiest first. */
static void hand_out(const struct balance_board *b, size_t n, uint64_t budget_mw,
                     uint32_t grain_mw, uint32_t *mw)
{
    uint64_t sum = 0, seen = 0; /* seen: bit i: board i had its turn */

    for (size_t i = 0; i < n; i++)
        sum += mw[i];
    for (size_t round = 0; round < n; round++) {
        size_t next = n;
        for (size_t i = 0; i < n; i++)
            if (!(seen >> i & 1u) && (next == n || b[i].busy > b[next].busy))
                next = i;
        seen |= 1ull << next;
        if (sum + grain_mw <= budget_mw && mw[next] + grain_mw <= b[next].most_mw) {
            mw[next] += grain_mw;
            sum += grain_mw;
        }
    }
}

size_t balance_within(const struct balance_board *b, size_t n, uint64_t budget_mw,
                      const struct balance_rule *rule, uint32_t *ret_mw)
{
    double low = -20, high = 20;
    size_t differ = 0;

    for (int k = 0; k < BISECTIONS; k++) {
        double mid = (low + high) / 2;
        if (sum_mw(b, n, mid, rule) > (double)budget_mw)
            low = mid;
        else
            high = mid;
    }
    for (size_t i = 0; i < n; i++)
        ret_mw[i] = on_grain(share_mw(&b[i], high, rule), &b[i], rule->grain_mw);
    hand_out(b, n, budget_mw, rule->grain_mw, ret_mw);
    for (size_t i = 0; i < n; i++)
        differ += ret_mw[i] != b[i].cap_mw;
    return differ;
}
