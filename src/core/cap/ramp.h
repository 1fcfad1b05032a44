/* The ramp of a cap to its target: up immediately; down to the first cap immediately,
 * a stop there until the job has made progress, then gradually; for a hard claim down
 * to the target immediately.  Pure: time is an argument.
 */
#ifndef CORE_CAP_RAMP_H
#define CORE_CAP_RAMP_H

#include <stdbool.h>
#include <stdint.h>

struct ramp {
    uint32_t at_mw; /* the cap that should be in force now */
    uint32_t target_mw;
    uint32_t first_mw; /* limit of the first step down; 0: no stop there */
    uint32_t grain_mw; /* each gradual step is a multiple of this, except the last */
    double rate_mw_s;  /* of a gradual descent; 0: immediately */
    bool waiting;      /* stopped at first_mw until ramp_checked() */
    double left_mw;    /* part of the descent that is due but smaller than a grain */
    uint64_t at_ns;
};

/* A ramp that has arrived at cap_mw.  grain_mw 0: 1. */
void ramp_init(struct ramp *r, uint32_t cap_mw, uint32_t grain_mw, uint64_t now_ns);

/* Starts a ramp to a new target.  urgent: a hard claim, no gradual descent. */
void ramp_to(struct ramp *r, uint32_t target_mw, uint32_t first_mw, double rate_mw_s,
             bool urgent, uint64_t now_ns);

/* The job has made progress at first_mw: continues the descent. */
void ramp_checked(struct ramp *r, uint64_t now_ns);

/* Advances the ramp; returns the cap that should be in force at now_ns. */
uint32_t ramp_at(struct ramp *r, uint64_t now_ns);

/* ramp_to() for callers that repeat the target: advances the ramp first, and keeps a
 * fraction of a grain and a stop at first_mw while the descent continues.  No effect if
 * nothing has changed or only first_mw (which limits the first step; a first_mw that
 * becomes known during the descent is applied once).
 */
void ramp_follow(struct ramp *r, uint32_t target_mw, uint32_t first_mw, double rate_mw_s,
                 bool urgent, uint64_t now_ns);

/* Lowers the cap and the target to most_mw immediately if they are above it; the rest of
 * the ramp is unchanged.
 */
void ramp_bound(struct ramp *r, uint32_t most_mw);

/* When ramp_at() decreases next if no other call changes the ramp; UINT64_MAX: never. */
uint64_t ramp_next_ns(const struct ramp *r);

bool ramp_arrived(const struct ramp *r);

#endif
