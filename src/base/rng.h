/* A small deterministic random number generator (xoshiro256**, seeded by splitmix64;
 * Blackman and Vigna 2018).  The state depends on the seed only: the same seed repeats a
 * run.
 */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t s[4];
    double spare;
    bool has_spare;
};

void rng_init(struct rng *g, uint64_t seed);
uint64_t rng_u64(struct rng *g);
/* Uniform in [0, 1). */
double rng_uniform(struct rng *g);
/* Uniform integer in [0, n); n > 0. */
uint64_t rng_below(struct rng *g, uint64_t n);
/* Standard normal (Marsaglia's polar method). */
double rng_normal(struct rng *g);

#endif
