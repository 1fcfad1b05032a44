/* How a cap walks to its target: up at once; down to the first cap at once, a
 * stay there until the job is seen to progress, then gradually; for a hard
 * claim at once all the way.  Pure: time is an argument.
 */
#ifndef CORE_CAP_RAMP_H
#define CORE_CAP_RAMP_H

#include <stdbool.h>
#include <stdint.h>

struct ramp {
    uint32_t at_mw; /* the cap that should be in force now */
    uint32_t target_mw;
    uint32_t first_mw; /* no lower at the first step down; 0: no such stay */
    uint32_t grain_mw; /* caps on the way are multiples of this (the target is kept) */
    double rate_mw_s;  /* on the way down; 0: at once */
    bool waiting;      /* at first_mw until ramp_checked() */
    double left_mw;    /* lowering that is due but smaller than a grain */
    uint64_t at_ns;
};

/* A board at cap_mw, nothing to do. */
void ramp_init(struct ramp *r, uint32_t cap_mw, uint32_t grain_mw, uint64_t now_ns);

/* A new target.  urgent: a hard claim, no gradual way. */
void ramp_to(struct ramp *r, uint32_t target_mw, uint32_t first_mw, double rate_mw_s,
             bool urgent, uint64_t now_ns);

/* The job has progressed at first_mw: go on down. */
void ramp_checked(struct ramp *r, uint64_t now_ns);

/* Time passes; the cap that should be in force at now_ns. */
uint32_t ramp_at(struct ramp *r, uint64_t now_ns);

/* As ramp_to(), for who asks all the time: what is due by now is walked first, and
 * while the way goes on down neither a part of a grain nor a stay that has begun is
 * lost.  Nothing happens when nothing has changed, or first_mw alone (it is a stay at
 * the first step; one that becomes known on the way is taken up once).
 */
void ramp_follow(struct ramp *r, uint32_t target_mw, uint32_t first_mw, double rate_mw_s,
                 bool urgent, uint64_t now_ns);

/* Down to most_mw at once where the ramp is above it; the way on is walked as it was.
 */
void ramp_bound(struct ramp *r, uint32_t most_mw);

/* When ramp_at() will be lower than now, if nothing else happens; UINT64_MAX: never. */
uint64_t ramp_next_ns(const struct ramp *r);

bool ramp_arrived(const struct ramp *r);

#endif
