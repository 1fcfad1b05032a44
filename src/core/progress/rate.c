#include "core/progress/rate.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

enum {
    BINS = 720, /* six minutes */
    BLOCK = 4,  /* bins of which a level is the mean */
    DIFFS = 16, /* between blocks, kept for the usual difference */
    DIFFS_LEAST = 4,
    LEAST_BINS = 16,
    PARTS = 8, /* of a stretch, each overlapping the next by half */
};
#define BIN_S 0.5
#define GAP_S 2.0 /* between two feeds: the bin is left out */
#define JUMP 0.04 /* least relative change of the level that is another phase */
/* least change, in standard deviations of the usual difference */
#define JUMP_SIGMA 6.0
#define JUMP_BEFORE 0.3  /* least change while the usual difference is unknown */
#define BACK 0.5         /* share of a jump that counts as a return */
#define OTHER_MOST_S 120 /* after this time the new level is taken as the job's */
#define MOVED_S 1.0      /* longest time until a cap is in force */
#define AT_ONCE 0.015    /* relative change of a cap: smaller ones are steps of a ramp */
#define RAMP_STEEP 8     /* elasticity of the rate allowed in a ramp */
/* elasticity allowed for a change at once (both are high at a floor) */
#define STEEP 3.0
#define FASTER 0.02 /* largest rise of the rate under a lower cap */
#define DRIFT_MOST 0.03
#define BRIDGE_SURE 1.63 /* bound of a Brownian bridge exceeded by 1 in 100 */
#define BRIDGE_SOME 1.36 /* bound exceeded by 5 in 100 */
#define TAPER 1.2        /* factor of the variance from parabolic weights */
#define STUDENT 1.2      /* factor for the error of the error, from a dozen parts */
#define CONFIDENCE_MOST 0.95

struct bin {
    uint64_t begin_ns, end_ns;
    uint32_t kind[RATE_KINDS];
    bool off; /* at another level, or incomplete */
};

struct rate {
    struct rate_process last[RATE_PROCESSES];
    size_t n;
    uint64_t fed_ns, generation;

    struct bin bin[BINS]; /* a ring */
    size_t first, n_bins;
    struct bin open;

    /* level of each block */
    size_t in_block;
    double level[2]; /* of the newest blocks */
    size_t n_levels;
    double diff[DIFFS]; /* |log| of ratios, a ring */
    size_t n_diffs;
    bool other; /* the job is at another level since other_ns */
    uint64_t other_ns;
    double before, there, jump,
        other_ramp; /* other_ramp: log of the caps' change by ramps since then */
    uint64_t moved_ns;
    double moved_by; /* factor of all caps' changes since moved_ns was set */
    double ramp[3];  /* log of the caps' change in small steps, in the newest blocks */
};

int rate_new(struct rate **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : -ENOMEM;
}

void rate_free(struct rate *r)
{
    free(r);
}

static struct bin *bin_at(struct rate *r, size_t i)
{
    return &r->bin[(r->first + i) % BINS];
}

static double length_s(const struct bin *b)
{
    return s_between(b->begin_ns, b->end_ns);
}

static double count_of(const struct bin *b)
{
    double all = 0;

    for (size_t k = 0; k < RATE_KINDS; k++)
        all += b->kind[k];
    return all;
}

/* ---- levels ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Least difference between a block and the mean of the two before that is not usual. */
static double jump_least(const struct rate *r)
{
    size_t n = r->n_diffs < DIFFS ? r->n_diffs : DIFFS;
    double sorted[DIFFS];

    if (n < DIFFS_LEAST)
        return JUMP_BEFORE;
    memcpy(sorted, r->diff, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare);
    double sigma = 1.4826 * sorted[n / 2] / sqrt(1.5);
    return fmax(JUMP, JUMP_SIGMA * sigma);
}

static double apart_log(double a, double b)
{
    const double none = 1e-3; /* launches a second; avoids log(0) */

    return fmin(fmax(log((a + none) / (b + none)), -3), 3);
}

static void mark_off(struct rate *r, size_t bins)
{
    for (size_t i = 0; i < bins && i < r->n_bins; i++)
        bin_at(r, r->n_bins - 1 - i)->off = true;
}

static void start_over(struct rate *r)
{
    r->generation++;
    r->n_bins = r->in_block = r->n_levels = r->n_diffs = 0;
    r->other = false;
    r->moved_ns = 0;
}

/* The level jumped; the block before may hold the start of the jump. */
static void jumped(struct rate *r, double before, double now, double by)
{
    r->other = true;
    r->other_ramp = 0;
    r->other_ns = bin_at(r, r->n_bins - 1)->end_ns;
    r->before = before;
    r->there = now;
    r->jump = by;
    mark_off(r, 2 * (size_t)BLOCK);
}

static void on_usual(struct rate *r, double now, double by)
{
    if (r->n_levels == n_elements(r->level)) {
        r->diff[r->n_diffs++ % DIFFS] = fabs(by);
        r->level[0] = r->level[1];
        r->n_levels--;
    }
    r->level[r->n_levels++] = now;
}

static void on_other(struct rate *r, double now)
{
    double by = apart_log(now, r->there);
    double off = fabs(apart_log(now, r->before)), usual = jump_least(r);
    double moved = RAMP_STEEP * fabs(r->other_ramp);
    bool back =
        by * r->jump < 0 && fabs(by) >= BACK * fabs(r->jump) && off <= usual + moved;

    mark_off(r, BLOCK);
    if (back || off <= usual) {
        r->other = false;
        r->level[0] = r->before;
        r->n_levels = off <= usual; /* else this block may hold a part of the jump back */
        return;
    }
    r->there = now;
    r->jump = apart_log(now, r->before);
    if (s_between(r->other_ns, bin_at(r, r->n_bins - 1)->end_ns) > OTHER_MOST_S)
        start_over(r);
}

static double level_before(const struct rate *r, double now)
{
    if (r->n_levels == 0)
        return now;
    return r->n_levels == 1 ? r->level[0] : (r->level[0] + r->level[1]) / 2;
}

/* Range of the level's change that the caps' changes allow, as logs. */
static void caps_allow(struct rate *r, bool moved, double *ret_least, double *ret_most)
{
    double by = RAMP_STEEP * (r->ramp[0] + r->ramp[1] + r->ramp[2]);

    if (moved)
        by += STEEP * log(r->moved_by);
    *ret_least = fmin(0, by) - (moved ? FASTER : 0);
    *ret_most = fmax(0, by) + (moved ? FASTER : 0);
}

static void on_block(struct rate *r)
{
    double launches = 0, seconds = 0;
    uint64_t begin_ns = bin_at(r, r->n_bins - BLOCK)->begin_ns;

    for (size_t i = r->n_bins - BLOCK; i < r->n_bins; i++) {
        launches += count_of(bin_at(r, i));
        seconds += length_s(bin_at(r, i));
    }
    double now = launches / seconds;
    if (r->moved_ns && begin_ns <= r->moved_ns + ns_of_s(MOVED_S)) {
        mark_off(r, BLOCK);
        return;
    }
    bool moved = r->moved_ns != 0;
    r->moved_ns = 0;
    if (r->other) {
        if (moved) /* the level before is not comparable */
            r->there = now;
        on_other(r, now);
        return;
    }
    double before = level_before(r, now), by = apart_log(now, before);
    double least = 0, most = 0;
    caps_allow(r, moved, &least, &most);
    if (by < least - jump_least(r) || by > most + jump_least(r)) {
        jumped(r, before, now, by);
        return;
    }
    if (moved)
        r->n_levels = 0;
    on_usual(r, now, by);
}

void rate_moved(struct rate *r, uint64_t now_ns, double by)
{
    if (fabs(by - 1) < AT_ONCE) {
        r->ramp[0] += log(by);
        r->other_ramp += log(by);
        return;
    }
    r->moved_by = (r->moved_ns ? r->moved_by : 1) * by;
    r->moved_ns = now_ns;
}

/* ---- feeding ---- */

static void close_bin(struct rate *r, uint64_t now_ns)
{
    r->open.end_ns = now_ns;
    if (r->n_bins == BINS) {
        r->first = (r->first + 1) % BINS;
        r->n_bins--;
    }
    *bin_at(r, r->n_bins++) = r->open;
    r->open = (struct bin){.begin_ns = now_ns};
    if (++r->in_block == BLOCK) {
        r->in_block = 0;
        on_block(r);
        r->ramp[2] = r->ramp[1];
        r->ramp[1] = r->ramp[0];
        r->ramp[0] = 0;
    }
}

/* Whether it is the same process and no count has decreased. */
static bool goes_on(const struct rate_process *was, const struct rate_process *is)
{
    bool same = was->pid == is->pid && was->since_ns == is->since_ns;

    for (size_t k = 0; k < RATE_KINDS; k++)
        same = same && is->kind[k] >= was->kind[k];
    return same;
}

static bool launches(const struct rate_process *p)
{
    uint64_t any = 0;

    for (size_t k = 0; k < RATE_KINDS; k++)
        any |= p->kind[k];
    return any != 0;
}

void rate_feed(struct rate *r, const struct rate_process *p, size_t n, uint64_t now_ns)
{
    struct rate_process now[RATE_PROCESSES];
    size_t n_now = 0;

    assert(n <= RATE_PROCESSES);
    for (size_t i = 0; i < n; i++)
        if (launches(&p[i]))
            now[n_now++] = p[i];
    bool same = n_now == r->n;
    for (size_t i = 0; i < n_now && same; i++)
        same = goes_on(&r->last[i], &now[i]);
    if (!same) {
        start_over(r);
        r->open = (struct bin){.begin_ns = now_ns};
    }
    for (size_t i = 0; i < n_now && same; i++)
        for (size_t k = 0; k < RATE_KINDS; k++)
            r->open.kind[k] += (uint32_t)(now[i].kind[k] - r->last[i].kind[k]);
    memcpy(r->last, now, n_now * sizeof *now);
    r->n = n_now;
    r->open.off = r->open.off || r->other || s_between(r->fed_ns, now_ns) > GAP_S;
    if (n_now > 0 && s_between(r->open.begin_ns, now_ns) >= BIN_S)
        close_bin(r, now_ns);
    r->fed_ns = now_ns;
}

/* ---- a stretch ---- */

struct stretch { /* bins of one level, in order */
    const struct rate *r;
    size_t first, n;
};

static const struct bin *in_stretch(const struct stretch *s, size_t i)
{
    return &s->r->bin[(s->r->first + s->first + i) % BINS];
}

static struct stretch longest(const struct rate *r, uint64_t from_ns)
{
    struct stretch best = {r, 0, 0}, here = {r, 0, 0};

    for (size_t i = 0; i < r->n_bins; i++) {
        const struct bin *b = &r->bin[(r->first + i) % BINS];
        if (b->off || b->begin_ns < from_ns) {
            here.n = 0;
            continue;
        }
        if (here.n == 0)
            here.first = i;
        here.n++;
        if (here.n >= best.n)
            best = here;
    }
    return best;
}

/* The rate of bins first to first + n, weighted to the middle: a cycle cut at the ends
 * matters less.
 */
static double rate_over(const struct stretch *s, size_t first, size_t n)
{
    uint64_t begin = in_stretch(s, first)->begin_ns;
    double span_s = s_between(begin, in_stretch(s, first + n - 1)->end_ns);
    double sum = 0, weights = 0;

    for (size_t i = first; i < first + n; i++) {
        const struct bin *b = in_stretch(s, i);
        double u = (s_between(begin, b->begin_ns) + length_s(b) / 2) / span_s;
        double w = u * (1 - u);
        sum += w * count_of(b);
        weights += w * length_s(b);
    }
    return sum / weights;
}

/* Variance of a bin if bins were independent, estimated from parts of `size` bins. */
static double long_variance(const struct stretch *s, size_t size, double mean)
{
    double sum = 0;
    size_t parts = 0;

    for (size_t i = 0; i + size <= s->n; i += size / 2) {
        double d = rate_over(s, i, size) - mean;
        sum += d * d;
        parts++;
    }
    return (double)size / TAPER * sum / (double)(parts - 1);
}

/* How far the cumulative sum deviates from a straight line: as the relative change of a
 * level that changes half-way; *ret_sure relative to chance.
 */
static double bridge(const struct stretch *s, double sigma, double *ret_sure)
{
    double launches_all = 0, sum = 0, most = 0;
    double span_s =
        s_between(in_stretch(s, 0)->begin_ns, in_stretch(s, s->n - 1)->end_ns);

    for (size_t i = 0; i < s->n; i++)
        launches_all += count_of(in_stretch(s, i));
    double mean = launches_all / span_s;
    for (size_t i = 0; i < s->n; i++) {
        sum += count_of(in_stretch(s, i)) / mean - length_s(in_stretch(s, i));
        most = fmax(most, fabs(sum));
    }
    double bin_s = span_s / (double)s->n;
    *ret_sure = most / bin_s / (sigma * sqrt((double)s->n) + 1e-9);
    return 4 * most / span_s;
}

static void judge(const struct stretch *s, struct rate_found *ret)
{
    size_t size = s->n / PARTS / 2 * 2;
    double mean = rate_over(s, 0, s->n), n = (double)s->n, sure;

    ret->why = RATE_DRIFTS;
    if (!(mean > 0))
        return;
    double slow = long_variance(s, size, mean) / mean / mean;
    double quick = size >= 4 ? long_variance(s, size / 4 * 2, mean) / mean / mean : slow;
    double drift = bridge(s, sqrt(quick), &sure);
    double variance = slow + fmax(0, slow - quick); /* where it still grows with size */
    double rse2 = STUDENT * STUDENT * TAPER * variance / n;
    if (sure > BRIDGE_SOME)
        rse2 += drift * drift / 16;
    ret->rse = sqrt(rse2);
    double span_s =
        s_between(in_stretch(s, 0)->begin_ns, in_stretch(s, s->n - 1)->end_ns);
    ret->needs_s = span_s * rse2 / RATE_RSE_GOOD / RATE_RSE_GOOD;
    if (sure > BRIDGE_SURE && drift > DRIFT_MOST)
        return;
    ret->why = ret->rse <= RATE_RSE_MOST ? RATE_FOUND : RATE_UNEVEN;
    ret->per_s = mean;
    ret->confidence = CONFIDENCE_MOST * fmax(0, 1 - rse2 / RATE_RSE_MOST / RATE_RSE_MOST);
}

static void tell_mix(const struct stretch *s, struct rate_found *ret)
{
    double all = 0;

    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < RATE_KINDS; k++)
            ret->mix[k] += in_stretch(s, i)->kind[k];
    for (size_t k = 0; k < RATE_KINDS; k++)
        all += ret->mix[k];
    for (size_t k = 0; k < RATE_KINDS; k++)
        ret->mix[k] /= all;
}

void rate_find(const struct rate *r, uint64_t from_ns, struct rate_found *ret)
{
    struct stretch s = longest(r, from_ns);

    *ret = (struct rate_found){
        .why = r->n == 0  ? RATE_NOBODY
               : r->other ? RATE_OTHER
                          : RATE_FEW,
        .generation = r->generation,
        .rse = NAN,
        .needs_s = NAN,
        .processes = (unsigned)r->n,
    };
    if (r->n == 0 || s.n < LEAST_BINS)
        return;
    judge(&s, ret);
    if (ret->why != RATE_FOUND)
        return;
    ret->from_ns = in_stretch(&s, 0)->begin_ns;
    ret->to_ns = in_stretch(&s, s.n - 1)->end_ns;
    tell_mix(&s, ret);
}

double rate_apart(const struct rate_found *a, const struct rate_found *b)
{
    double sum = 0;

    for (size_t k = 0; k < RATE_KINDS; k++)
        sum += fabs(a->mix[k] - b->mix[k]);
    return sum / 2;
}

double rate_settle_s(const struct rate_found *f)
{
    double each = f->processes ? f->per_s / f->processes : 0;

    return each > 0 ? fmin(RATE_QUEUE / each, RATE_QUEUE_MOST_S) : RATE_QUEUE_MOST_S;
}
