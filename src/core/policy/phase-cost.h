/* The cost of changing the cap for one phase: the measured latencies of the board, and
 * the length from which a change of cap pays.  Pure; explained in docs/policies.md.
 */
#ifndef CORE_POLICY_PHASE_COST_H
#define CORE_POLICY_PHASE_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From the request until the limit is in force, and from then until the power has
 * settled.
 */
struct phase_latency {
    double call_s, down_s, up_s;
};
/* Defaults until latencies are measured: those of a V100, whose NVML set call takes 32 ms
 * and whose limit acts within 50 ms when lowered, and in steps over 340 ms when raised
 * (plant/gpu.h).
 */
#define PHASE_LATENCY_DEFAULT ((struct phase_latency){0.032, 0.050, 0.340})

/* The shortest phase for which a change of cap pays.  notice_s: from a phase's begin
 * until the request.
 */
double phase_break_even_s(const struct phase_latency *l, double notice_s);

/* ---- returns ---- */

#define PHASE_LATE_S 0.1 /* a raise that takes longer than its call and this is late */
#define PHASE_LOST_MOST 0.01 /* share of a job's time that raises may cost */

/* A phase under a rule's cap has ended, and the limit is raised again. */
struct phase_return {
    double took_s; /* time since the end of the phase was noticed */
    double depth;  /* depth of the cap: 0.4 is a cap of 60 % of the present limit */
    struct phase_latency l; /* of the board */
};
struct phase_returns {
    uint64_t began_ns; /* of the job, as far as it was watched */
    unsigned n, late;
    uint32_t lately; /* bit i: the i-th last raise was late */
    double lost_s;   /* training time lost */
    double worst_s;  /* longest time from the notice until the limit was in force */
    bool off; /* phases of this job are no longer capped: the raises cost too much */
};
/* Sets off if two of the last eight raises were late, or if all raises have cost more
 * than PHASE_LOST_MOST of the time so far (at least of a minute).
 */
void phase_returned(struct phase_returns *r, const struct phase_return *one,
                    uint64_t now_ns);
/* The share of the time so far that all raises have cost. */
double phase_returns_lost(const struct phase_returns *r, uint64_t now_ns);

/* ---- learnt ---- */

enum { PHASE_LAGS = 8, PHASE_SAMPLES = 128 };

/* The median of the last few. */
struct phase_lag {
    double s[PHASE_LAGS];
    unsigned n;
};
void phase_lag_add(struct phase_lag *lag, double s);
/* Returns unknown_s if nothing was measured. */
double phase_lag_s(const struct phase_lag *lag, double unknown_s);

/* Of one board: how its power follows a limit. */
struct phase_settling {
    struct {
        uint64_t at_ns;
        double w;
    } sample[PHASE_SAMPLES]; /* a ring */
    unsigned n;              /* seen so far */
    bool open, up;
    uint64_t changed_ns; /* open: when the limit came into force */
    struct phase_lag call, down_lag, up_lag;
};
/* A power sample, in the order of time. */
void phase_settling_sample(struct phase_settling *s, uint64_t at_ns, double w);
/* Another limit is in force, set by a call of call_s (0: unknown).  Two changes within 2
 * s cannot be separated: neither is measured.
 */
void phase_settling_cap(struct phase_settling *s, uint32_t was_mw, uint32_t mw,
                        double call_s, uint64_t now_ns);
void phase_settling_latency(const struct phase_settling *s, struct phase_latency *ret);

#endif
