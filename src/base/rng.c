#include "base/rng.h"

#include <assert.h>
#include <math.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void rng_init(struct rng *g, uint64_t seed)
{
    *g = (struct rng){0};
    for (int i = 0; i < 4; i++)
        g->s[i] = splitmix(&seed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t rng_u64(struct rng *g)
{
    uint64_t *s = g->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double rng_uniform(struct rng *g)
{
    return (double)(rng_u64(g) >> 11) * 0x1p-53;
}

uint64_t rng_below(struct rng *g, uint64_t n)
{
    assert(n > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t v;
    do
        v = rng_u64(g);
    while (v >= limit);
    return v % n;
}

double rng_normal(struct rng *g)
{
    if (g->has_spare) {
        g->has_spare = false;
        return g->spare;
    }
    double u, v, q;
    do {
        u = 2 * rng_uniform(g) - 1;
        v = 2 * rng_uniform(g) - 1;
        q = u * u + v * v;
    } while (q >= 1 || q == 0);
    double f = sqrt(-2 * log(q) / q);
    g->spare = v * f;
    g->has_spare = true;
    return u * f;
}
