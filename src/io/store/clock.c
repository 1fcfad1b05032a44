#include "io/store/clock.h"

static bool near(int64_t a_ms, int64_t b_ms)
{
    return a_ms - b_ms <= TIDY_NEAR_MS && b_ms - a_ms <= TIDY_NEAR_MS;
}

static bool went_on(int64_t from_ms, int64_t utc_ms)
{
    return utc_ms >= from_ms && utc_ms - from_ms <= TIDY_OFF_MS;
}

/* The first check of a run.  UTC is trusted if it advanced by at most a day since the
 * last check of the previous run; otherwise it may have been set, and the seven days
 * start again.
 */
static void begin(struct tidy_clock *c, int64_t utc_ms)
{
    if (!went_on(c->utc_ms, utc_ms))
        c->stood_ms = 0;
    if (c->at_ms == 0 || went_on(c->at_ms, utc_ms))
        c->at_ms = utc_ms;
}

void tidy_clock_look(struct tidy_clock *c, uint64_t now_ns, int64_t utc_ms)
{
    int64_t passed_ms = 0;

    if (!c->seen) {
        begin(c, utc_ms);
    } else {
        passed_ms = now_ns > c->seen_ns ? (int64_t)((now_ns - c->seen_ns) / 1000000) : 0;
        c->at_ms += passed_ms;
        c->stood_ms = near(utc_ms, c->utc_ms + passed_ms) ? c->stood_ms + passed_ms : 0;
    }
    c->seen = true;
    c->seen_ns = now_ns;
    c->utc_ms = utc_ms;
    if (near(utc_ms, c->at_ms) || c->stood_ms >= TIDY_STOOD_MS)
        c->at_ms = utc_ms;
}
