#include "tuner/gap-check.h"

#include "base/units.h"
#include "core/optimum/search.h"

enum { HOLD_WINDOWS = 8 }; /* windows of the hold from one attempt to the next */

double gap_check_allows(const struct gap_check *g, const struct savings *s,
                        double window_s)
{
    if (s->hold.windows % HOLD_WINDOWS)
        return 0;
    return gap_probes_allow(&g->probes, savings_time_s(s), SEARCH_SETTLE_S + window_s);
}

void gap_check_begin(struct gap_check *g, unsigned windows, uint64_t now_ns)
{
    g->since_ns = now_ns;
    g->windows = windows;
}

void gap_check_end(struct gap_check *g, unsigned windows, uint64_t now_ns)
{
    gap_probes_made(&g->probes, s_between(g->since_ns, now_ns), windows - g->windows);
}

void gap_check_forget(struct gap_check *g)
{
    g->probes.n = 0;
    g->probes.last_s = 0;
}
