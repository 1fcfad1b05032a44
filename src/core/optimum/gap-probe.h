/* Gap probes: a search of some five caps cannot see a dip between two of them, so a hold
 * sometimes spends a window in the middle of the widest gap between measured caps
 * (search_probe_gap()).  This file says when a probe is due and what it may cost.  Pure.
 */
#ifndef CORE_OPTIMUM_GAP_PROBE_H
#define CORE_OPTIMUM_GAP_PROBE_H

/* Most probes in one regime of a job, also by default. */
enum { GAP_PROBES_MAX = 16 };
/* From the start of the regime to the first, and between two [recorded, 1 h, edp: caps];
 * after GAP_PROBES_EVEN probes each comes after twice the time of the one before
 * [recorded, 1 h, eds:1.5: mean regret].
 */
#define GAP_PROBES_EVERY_S 600.0
enum { GAP_PROBES_EVEN = 4 };
/* Of the regime's time so far: cost of one probe [recorded, 1 h, eds:2: caps] */
#define GAP_PROBES_SHARE 0.001

struct gap_probes {
    unsigned most, n; /* allowed, made in this regime */
    double last_s;    /* duration per window of the last one with its ramps; 0: none */
};

/* regime_s: training time since the job began or changed; least_s: shortest duration of a
 * probe.  0: none is due; else the fraction by which the expected value of the goal may
 * be worse than the held cap's, so that the probe costs at most GAP_PROBES_SHARE.
 */
double gap_probes_allow(const struct gap_probes *l, double regime_s, double least_s);
void gap_probes_made(struct gap_probes *l, double took_s, unsigned windows);

struct level;

/* The middle of the widest gap between neighbours among lo_w, hi_w and the levels in
 * between that are not stale; 0: none.  Only gaps wider than GAP_PROBE_LEAST_W and
 * narrower than *wide_w, which is set to the gap's width.
 */
#define GAP_PROBE_LEAST_W 8.0 /* [recorded, 1 h, energy: caps] */
double gap_probe_w(const struct level *levels, unsigned n, double lo_w, double hi_w,
                   double grain_w, double *wide_w);

#endif
