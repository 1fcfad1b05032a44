#include "signal/fetch.h"

#include "base/units.h"

enum { JITTER = 10 }; /* a tenth */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Up to a tenth of n. */
static uint64_t jitter(struct fetch *f, uint64_t ns)
{
    return rng_below(&f->rng, ns / JITTER + 1);
}

uint64_t fetch_ago_ns(int64_t asked_utc_s, int64_t utc_s)
{
    return asked_utc_s == 0 || asked_utc_s > utc_s
               ? UINT64_MAX
               : (uint64_t)(utc_s - asked_utc_s) * NS_PER_S;
}

void fetch_begin(struct fetch *f, uint64_t every_ns, uint64_t seed, uint64_t now_ns,
                 uint64_t ago_ns, uint64_t rest_ns)
{
    uint64_t spread_ns = least(every_ns / JITTER, FETCH_FIRST_S * NS_PER_S);
    uint64_t wait_ns = ago_ns < every_ns ? every_ns - ago_ns : 0;

    *f = (struct fetch){.every_ns = every_ns};
    rng_init(&f->rng, seed);
    if (rest_ns > wait_ns)
        wait_ns = rest_ns;
    f->due_ns = now_ns + wait_ns + rng_below(&f->rng, spread_ns + 1);
}

int fetch_next(struct fetch *f, const struct source_config *c, const char *secret,
               struct source_state *s, int64_t utc_s, struct source_request *ret,
               uw_error *err)
{
    if (f->asked == FETCH_REQUESTS)
        return SOURCE_E_DONE;
    f->asked++;
    return source_next(c, secret, s, utc_s, ret, err);
}

/* The time until the next round after f->failures failures. */
static uint64_t back_off(const struct fetch *f)
{
    uint64_t most_ns = FETCH_AGAIN_MAX_S * NS_PER_S;
    uint64_t wait_ns = least(FETCH_AGAIN_S * NS_PER_S, f->every_ns);

    if (most_ns < f->every_ns)
        most_ns = f->every_ns;
    for (unsigned i = 1; i < f->failures && wait_ns < most_ns; i++)
        wait_ns *= 2;
    return least(wait_ns, most_ns);
}

void fetch_over(struct fetch *f, struct source_state *s, bool good, uint64_t rest_ns,
                uint64_t now_ns)
{
    s->step = 0;
    s->logged_in = false;
    f->asked = 0;
    f->failures = good ? 0 : f->failures + 1;
    uint64_t wait_ns = good ? f->every_ns : back_off(f);
    if (rest_ns > wait_ns)
        wait_ns = rest_ns;
    f->due_ns = now_ns + wait_ns + jitter(f, wait_ns);
}
