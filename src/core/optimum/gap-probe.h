/* Looks out of a hold: a search of some five caps cannot see a dip between two of them,
 * so while its result is held there is now and then a window in the middle of the widest
 * gap that was never measured (search_look()).  When one is due, and what it may cost.
 * Pure.
 */
#ifndef CORE_OPTIMUM_GAP_PROBE_H
#define CORE_OPTIMUM_GAP_PROBE_H

enum { LOOKS = 4, GAP_PROBES_MAX = 16 }; /* in one regime of a job: by default, at most */
#define GAP_PROBES_FIRST_S 600.0         /* of the regime, until the first … */
#define GAP_PROBES_EVERY_S 600.0         /* … and from one to the next */
#define GAP_PROBES_SHARE 0.001 /* of the regime's time so far: what one may cost */

struct gap_probes {
    unsigned most, n; /* allowed, made in this regime */
    double last_s;    /* what a window of the last one took, way and all; 0: none yet */
};

/* regime_s: trained since the job began or changed; least_s: what a look takes at the
 * least.  0: none is due; else by which part the goal's value may be expected to be worse
 * there than what is held, so that it costs no more than GAP_PROBES_SHARE.
 */
double gap_probes_allow(const struct gap_probes *l, double regime_s, double least_s);
void gap_probes_made(struct gap_probes *l, double took_s, unsigned windows);

struct level;

/* The middle of the widest gap that is wider than GAP_PROBE_LEAST_W and narrower than
 * *wide_w, which becomes its width, between lo_w, hi_w and the levels between them that
 * are not stale; 0: there is none.
 */
#define GAP_PROBE_LEAST_W 8.0
double gap_probe_w(const struct level *levels, unsigned n, double lo_w, double hi_w,
                   double grain_w, double *wide_w);

#endif
