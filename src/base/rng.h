/* A small deterministic generator of random numbers (xoshiro256**, seeded by
 * splitmix64; Blackman and Vigna 2018).  The seed is the whole state's source,
 * so a printed seed repeats a run.
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
