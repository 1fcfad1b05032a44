/* What a change of cap for one phase costs: the board's latencies, learnt, and the length
 * from which a phase pays for it.  Pure; explained in docs/policies.md.
 */
#ifndef CORE_POLICY_PHASE_COST_H
#define CORE_POLICY_PHASE_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From the request to a limit in force, and from there until the power has settled. */
struct phase_latency {
    double call_s, down_s, up_s;
};
/* Until they are measured.  A V100's: NVML's set call takes 32 ms, its limit acts within
 * 50 ms downwards, and in steps over 340 ms upwards (plant/gpu.h).
 */
#define PHASE_LATENCY_DEFAULT ((struct phase_latency){0.032, 0.050, 0.340})

/* Phases that are shorter do not pay for their change of cap.  notice_s: from a phase's
 * begin until the request.
 */
double phase_break_even_s(const struct phase_latency *l, double notice_s);

/* ---- returns ---- */

#define PHASE_LATE_S 0.1 /* besides the call and the settling, a return takes at most */
#define PHASE_LOST_MOST 0.01 /* of a job's time that returns may cost its training */

/* A phase under a rule's cap has ended, and the limit is up again. */
struct phase_return {
    double took_s;          /* from the notice of its end */
    double depth;           /* of the cap: 0.4 is a cap of 60 % of the limit now */
    struct phase_latency l; /* of the board */
};
struct phase_returns {
    uint64_t began_ns; /* of the job, as far as it was watched */
    unsigned n, late;
    uint32_t lately; /* bit i: the i-th last one was late */
    double lost_s;   /* of training */
    double worst_s;  /* longest time from a notice to the limit */
    bool off;        /* phases of this job are not capped any more: they cost too much */
};
/* Off: two of the last eight were late, or all have cost more than PHASE_LOST_MOST of the
 * time so far (of a minute, at first).
 */
void phase_returned(struct phase_returns *r, const struct phase_return *one,
                    uint64_t now_ns);
/* The part of the time so far that they have cost. */
double phase_returns_lost(const struct phase_returns *r, uint64_t now_ns);

/* ---- learnt ---- */

enum { PHASE_LAGS = 8, PHASE_SAMPLES = 128 };

/* The median of the last few. */
struct phase_lag {
    double s[PHASE_LAGS];
    unsigned n;
};
void phase_lag_add(struct phase_lag *lag, double s);
/* unknown_s: where there is none. */
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
/* Another limit is in force, by a call of call_s (0: unknown).  Two changes within 2 s
 * are not told apart: neither is measured.
 */
void phase_settling_cap(struct phase_settling *s, uint32_t was_mw, uint32_t mw,
                        double call_s, uint64_t now_ns);
void phase_settling_latency(const struct phase_settling *s, struct phase_latency *ret);

#endif
