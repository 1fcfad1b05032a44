#include "core/progress/repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

enum {
    CANDIDATES = 16,
    SHORTEST = 6,
    ALIASES = 4,
    MOST_FRACTION = 16,
    MOST_MULTIPLE = 4,
    MOST_STEPS = 4096
};
#define LEAST_CYCLES 2.9
#define STEPS_A_TURN 8.0 /* of the scan: the phase at the span's end moves by 1/8 */
#define LEAST_SURPRISE 7.5
#define LEAST_SURPRISE_FEW 10.0 /* for few cycles: slow noise repeats by chance */
#define FEW_CYCLES 4.0

struct candidate {
    double hz, score;
    struct repeat r;
};

static int by_time(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double typical_gap_s(const struct series *s)
{
    uint64_t gap[FOLD_MOST];

    if (s->n < 2)
        return 0;
    for (size_t i = 1; i < s->n; i++)
        gap[i - 1] = s->t[i] - s->t[i - 1];
    qsort(gap, s->n - 1, sizeof *gap, by_time);
    /* count multiples of the median: times may jitter and samples may be missing */
    uint64_t median = gap[(s->n - 1) / 2];
    double sum = 0, times = 0;
    for (size_t i = 0; i + 1 < s->n; i++) {
        double k = round((double)gap[i] / (double)median);
        if (k < 1 || k > 3)
            continue;
        sum += s_of_ns(gap[i]);
        times += k;
    }
    return times > 0 ? sum / times : s_of_ns(median);
}

void view_finish(struct view *v)
{
    v->span_s = v->dt_s = 0;
    for (unsigned c = 0; c < v->n; c++) {
        struct series *s = &v->s[c];
        double dt = typical_gap_s(s);
        v->span_s = fmax(v->span_s, s_between(s->t[0], s->t[s->n - 1]));
        v->dt_s = v->dt_s > 0 ? fmin(v->dt_s, dt) : dt;
    }
    for (unsigned c = 0; c < v->n; c++) {
        struct series plain = v->s[c];
        series_detrend(&plain, v->span_s / LEAST_CYCLES, &v->s[c]);
        v->total[c] = series_total(&v->s[c]);
    }
}

/* ---- candidates ---- */

static double samples_in_cycle(const struct series *s, double hz)
{
    return (double)s->n / (s_between(s->t[0], s->t[s->n - 1]) * hz);
}

/* At most as many knots as samples in a cycle: finer detail would be an alias of
 * components slower than the period, and any drift would make a pattern.
 */
static unsigned knots_of(const struct series *s, double hz, unsigned most)
{
    double k = fmin((double)s->n / 5, samples_in_cycle(s, hz));

    return k < FOLD_KNOTS_LEAST ? FOLD_KNOTS_LEAST : k > most ? most : (unsigned)k;
}

static double scan_at(const struct view *v, double hz)
{
    double sum = 0;

    for (unsigned c = 0; c < v->n; c++) {
        const struct series *s = &v->s[c];
        unsigned knots = knots_of(s, hz, 24);
        double u;
        if (s->n <= 128 || knots < 12) {
            struct fold f;
            fold_fit(s, hz, knots < 16 ? knots : 16, &f);
            u = fold_unexplained(&f);
        } else {
            u = fold_scan(s, hz, knots, v->total[c]);
        }
        sum -= (double)s->n * log(fmin(1.2, u));
    }
    return sum;
}

static double fine_at(const struct view *v, double hz)
{
    double sum = 0;

    for (unsigned c = 0; c < v->n; c++) {
        struct fold f;
        fold_fit(&v->s[c], hz, knots_of(&v->s[c], hz, 32), &f);
        sum -= (double)v->s[c].n * log(fmin(1.2, fold_unexplained(&f)));
    }
    return sum;
}

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

static int by_period(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->hz < y->hz) - (x->hz > y->hz);
}

/* Keeps the CANDIDATES with the highest scores. */
static void keep(struct candidate *c, unsigned *n, double hz, double score)
{
    unsigned worst = 0;

    if (*n < CANDIDATES) {
        c[(*n)++] = (struct candidate){.hz = hz, .score = score};
        return;
    }
    for (unsigned i = 1; i < CANDIDATES; i++)
        if (c[i].score < c[worst].score)
            worst = i;
    if (score > c[worst].score)
        c[worst] = (struct candidate){.hz = hz, .score = score};
}

/* The frequency near hz that explains most. */
static double sharpen(const struct view *v, double hz, double *ret_score)
{
    double best = hz, top = -INFINITY, width = 0.75 / STEPS_A_TURN / v->span_s;

    for (int pass = 0; pass < 2; pass++) {
        double middle = best;
        for (int k = -4; k <= 4; k++) {
            double score = fine_at(v, middle + k * width / 4);
            if (score > top) {
                top = score;
                best = middle + k * width / 4;
            }
        }
        width /= 4;
    }
    *ret_score = top;
    return best;
}

/* Local maxima of the scan.  Multiples of a period score as high as the period itself and
 * may displace it, so fractions of the best one are added.
 */
static unsigned candidates(const struct view *v, double least_hz, double most_hz,
                           struct candidate *c)
{
    double step = 1 / (STEPS_A_TURN * v->span_s);
    double score[3] = {-INFINITY, -INFINITY, -INFINITY};
    unsigned n = 0;

    unsigned steps = (unsigned)fmin(MOST_STEPS, fmax(0, (most_hz - least_hz) / step + 1));
    for (unsigned i = 0; i <= steps; i++) {
        double hz = least_hz + i * step;
        score[0] = score[1];
        score[1] = score[2];
        score[2] = scan_at(v, hz);
        if (score[1] > score[0] && score[1] >= score[2] && score[1] > 0)
            keep(c, &n, hz - step, score[1]);
    }
    if (n == 0)
        return 0;
    qsort(c, n, sizeof *c, by_score);
    struct candidate fractions[SHORTEST];
    unsigned extra = 0;
    double base = sharpen(v, c[0].hz, &c[0].score);
    c[0].hz = base;
    for (unsigned k = 2; k <= 8 && extra < SHORTEST; k++)
        if (base * k <= most_hz) {
            double s = fine_at(v, base * k);
            if (s > 0.1 * c[0].score)
                fractions[extra++] = (struct candidate){.hz = base * k, .score = s};
        }
    for (unsigned i = 0; i < extra; i++)
        c[n < CANDIDATES + SHORTEST ? n++ : n - 1] = fractions[i];
    for (unsigned i = 1; i < n; i++)
        c[i].hz = sharpen(v, c[i].hz, &c[i].score);
    qsort(c, n, sizeof *c, by_period);
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++) {
        if (kept > 0 && fabs(c[i].hz - c[kept - 1].hz) < 0.3 / v->span_s) {
            if (c[i].score > c[kept - 1].score)
                c[kept - 1] = c[i];
            continue;
        }
        c[kept++] = c[i];
    }
    return kept;
}

/* ---- proof ---- */

/* Width of a running mean: one cycle, or several if samples are few. */
static double smooth_s(double hz, double samples)
{
    return ceil(12 / fmax(0.1, samples)) / hz;
}

/* The fold with the number of knots that gives the greatest surprise. */
static void judge(const struct series *s, double hz, struct fold *ret)
{
    static const unsigned most[] = {6, 16, FOLD_KNOTS};
    struct fold f;

    ret->surprise = -1;
    for (size_t i = 0; i < 3; i++) {
        unsigned knots = knots_of(s, hz, most[i]);
        if (i > 0 && knots <= most[i - 1])
            break;
        fold_judge(s, hz, knots, samples_in_cycle(s, hz), &f);
        if (f.surprise > ret->surprise)
            *ret = f;
    }
}

static bool part_is_good(const struct fold_parts *p, unsigned k)
{
    return fabs(p->amp[k] - 1) <= fmax(0.5, 3 * p->amp_se[k]) &&
           fabs(p->turn[k]) <= fmax(0.2, 3 * p->turn_se[k]);
}

/* Removes the parts without the pattern (a pause, a start-up); returns their number. */
static unsigned drop_parts(struct series *s, const struct fold_parts *p)
{
    unsigned dropped = 0;
    size_t n = 0;

    for (unsigned k = 0; k < p->n; k++)
        dropped += !part_is_good(p, k);
    if (dropped == 0)
        return 0;
    unsigned k = 0;
    for (size_t i = 0; i < s->n; i++) {
        while (s->t[i] >= p->from_ns[k + 1])
            k++;
        if (!part_is_good(p, k))
            continue;
        s->t[n] = s->t[i];
        s->x[n++] = s->x[i];
    }
    s->n = n;
    return dropped;
}

static unsigned parts_for(double cycles)
{
    return cycles < 4 ? 3 : cycles >= FOLD_PARTS ? FOLD_PARTS : (unsigned)cycles;
}

/* Folds one signal at hz into s, without the parts that do not show the pattern. */
static void prove_series(const struct series *whole, double hz, struct series *s,
                         struct fold *f, struct fold_parts *parts, double *ret_share)
{
    double cycles = s_between(whole->t[0], whole->t[whole->n - 1]) * hz;
    double samples = samples_in_cycle(whole, hz);
    unsigned n_parts = parts_for(cycles);

    series_detrend(whole, smooth_s(hz, samples), s);
    judge(s, hz, f);
    *ret_share = 1;
    fold_parts(s, f, n_parts, parts);
    unsigned dropped = drop_parts(s, parts);
    if (dropped == 0)
        return;
    if (dropped * 4 > n_parts || s->n < VIEW_LEAST) {
        f->surprise = 0;
        return;
    }
    *ret_share = 1 - (double)dropped / n_parts;
    judge(s, hz, f);
    fold_parts(s, f, n_parts, parts);
    for (unsigned k = 0; k < n_parts; k++)
        if (isfinite(parts->amp_se[k]) && !part_is_good(parts, k))
            f->surprise = 0;
}

/* Regresses the parts' phases on time: the frequency's offset, and its error from their
 * scatter, as independent noise and as a random walk.
 */
static void regress(const struct fold_parts *p, double *ret_off_hz, double *ret_se_hz)
{
    double w[FOLD_PARTS], sw = 0, st = 0, sy = 0, stt = 0, sty = 0, rr = 0, walk = 0;
    double first = 0, last_turn = 0, last_at = 0;
    unsigned n = 0, steps = 0;

    for (unsigned k = 0; k < p->n; k++) {
        w[k] = isfinite(p->turn_se[k]) ? 1 / (p->turn_se[k] * p->turn_se[k] + 1e-4) : 0;
        sw += w[k];
        st += w[k] * p->at_s[k];
        sy += w[k] * p->turn[k];
        n += w[k] > 0;
    }
    double t0 = st / sw, y0 = sy / sw;
    for (unsigned k = 0; k < p->n; k++) {
        double t = p->at_s[k] - t0;
        stt += w[k] * t * t;
        sty += w[k] * t * (p->turn[k] - y0);
    }
    double slope = sty / stt, noise = 0;
    for (unsigned k = 0; k < p->n; k++) {
        if (w[k] <= 0)
            continue;
        double t = p->at_s[k] - t0, e = p->turn[k] - y0 - slope * t;
        rr += w[k] * e * e;
        noise += w[k] * w[k] * t * t * p->turn_se[k] * p->turn_se[k];
        if (steps++ > 0)
            walk += (e - last_turn) * (e - last_turn);
        else
            first = p->at_s[k];
        last_turn = e;
        last_at = p->at_s[k];
    }
    double scatter = n > 2 ? sqrt(rr / (n - 2) / stt) : 0;
    double wander = n > 2 && last_at > first ? sqrt(walk) / (last_at - first) : 0;
    *ret_off_hz = -slope;
    *ret_se_hz = fmax(fmax(scatter, wander), sqrt(noise) / stt);
}

static void prove(const struct view *v, double hz, struct repeat *ret)
{
    struct series s;
    struct fold f;
    struct fold_parts parts;
    double best = -1, sum = 0, weight = 0, off = 0, var = 0;

    *ret = (struct repeat){.why = PERIOD_NONE, .hz = hz};
    for (unsigned c = 0; c < v->n; c++) {
        double share, off_hz, se_hz;
        prove_series(&v->s[c], hz, &s, &f, &parts, &share);
        sum += f.surprise;
        if (f.surprise > best) {
            best = f.surprise;
            ret->explained = 1 - fold_unexplained(&f);
            ret->cycles = v->span_s * hz * share;
            ret->samples = samples_in_cycle(&v->s[c], hz);
        }
        if (f.surprise < 3)
            continue;
        regress(&parts, &off_hz, &se_hz);
        double w = 1 / (se_hz * se_hz + 1e-12);
        off += w * off_hz;
        weight += w;
        var = 1 / weight;
    }
    ret->surprise = best + 0.5 * fmin(best, sum - best);
    if (weight > 0) {
        off /= weight;
        double most = 0.5 / v->span_s;
        ret->hz += fmin(most, fmax(-most, off));
        /* an edge is located only to a part of the time between samples */
        double edge = 0.5 * v->dt_s / (v->span_s * sqrt(fmax(1, ret->cycles)));
        ret->rse = hypot(sqrt(var) / hz, edge);
    }
    double least = ret->cycles < FEW_CYCLES ? LEAST_SURPRISE_FEW : LEAST_SURPRISE;
    if (ret->surprise >= least && ret->cycles >= LEAST_CYCLES - 0.1)
        ret->why = PERIOD_FOUND;
}

/* ---- choice ---- */

/* Whether the longer period explains significantly more than the shorter. */
static bool explains_more(const struct view *v, double hz, double longer_hz)
{
    struct series s;
    struct fold a, b;

    for (unsigned c = 0; c < v->n; c++) {
        double samples = samples_in_cycle(&v->s[c], longer_hz);
        series_detrend(&v->s[c], smooth_s(longer_hz, samples), &s);
        unsigned knots = knots_of(&s, longer_hz, FOLD_KNOTS);
        unsigned fewer = (unsigned)lround(knots * longer_hz / hz);
        fold_judge(&s, longer_hz, knots, samples, &b);
        /* With few samples, detail of the shorter period appears as an alias that a
         * multiple of it would explain.
         */
        double ratio = hz / longer_hz;
        if (fabs(ratio - round(ratio)) < 0.05 && fewer < 12)
            fewer = 12;
        fold_fit(&s, hz, fewer < FOLD_KNOTS_LEAST ? FOLD_KNOTS_LEAST : fewer, &a);
        double more = fmax(1, b.freedom - fmin(a.freedom, b.freedom * longer_hz / hz));
        if (b.rest < 1 || b.within <= 0)
            continue;
        double f = (a.within - b.within) / b.within * b.rest / more;
        double left = fold_unexplained(&b), extra = fold_unexplained(&a) - left;
        if ((extra > 0.06 * (1 - left) || extra > 0.5 * left) &&
            fold_surprise(f, more, b.rest) > 4)
            return true;
    }
    return false;
}

/* Power of the profile's h-th harmonic. */
static double harmonic(const struct fold *f, unsigned h)
{
    double re = 0, im = 0;

    for (unsigned k = 0; k < f->knots; k++) {
        re += f->w[k] * cos(2 * M_PI * h * k / f->knots);
        im += f->w[k] * sin(2 * M_PI * h * k / f->knots);
    }
    return re * re + im * im;
}

/* The harmonic with the most power. */
static unsigned strongest(const struct view *v, double hz)
{
    struct fold f;
    unsigned at = 1;

    fold_fit(&v->s[0], hz, knots_of(&v->s[0], hz, FOLD_KNOTS), &f);
    for (unsigned h = 2; h <= f.knots / 2; h++)
        if (harmonic(&f, h) > harmonic(&f, at))
            at = h;
    return at;
}

/* The first harmonic's share; near 0 for a common multiple of two patterns. */
static double first_share(const struct fold *f)
{
    double sum = 0;

    for (unsigned h = 1; h <= f->knots / 2; h++)
        sum += harmonic(f, h);
    return sum > 0 ? harmonic(f, 1) / sum : 1;
}

/* Knots of a pattern that repeats k times in a period. */
static unsigned knots_of_part(unsigned knots, unsigned k)
{
    return knots / k < 8 ? (knots < 8 ? knots : 8) : knots / k;
}

/* Sum of squares of s without patterns that repeat a and b times in a period. */
static double left_by_two(const struct series *s, double hz, unsigned knots, unsigned a,
                          unsigned b)
{
    struct series rest = *s;
    struct fold part;

    for (int pass = 0; pass < 6; pass++) {
        unsigned k = pass % 2 ? b : a;
        fold_fit(&rest, hz * k, knots_of_part(knots, k), &part);
        for (size_t i = 0; i < rest.n; i++)
            rest.x[i] -= (float)fold_at(&part, rest.t[i]);
    }
    return series_total(&rest);
}

static bool is_sum_of_two(const struct series *s, double hz, unsigned knots,
                          const struct fold *whole)
{
    enum { MOST_A = 16, MOST_B = 40 };
    double explained[MOST_B + 1] = {0}, all = whole->total - whole->within;
    struct fold part;

    /* with fewer than three samples a cycle it may be an alias */
    for (unsigned k = 2; k <= MOST_B && 3 * k <= samples_in_cycle(s, hz); k++) {
        fold_fit(s, hz * k, knots_of_part(knots, k), &part);
        explained[k] = (part.total - part.within) / all;
    }
    for (unsigned a = 2; a <= MOST_A; a++)
        for (unsigned b = a + 1; b <= MOST_B; b++) {
            if (b % a == 0 || explained[b] <= 0 || explained[a] + explained[b] < 0.9)
                continue;
            double left = left_by_two(s, hz, knots, a, b);
            double both = (whole->total - left) / all;
            if (both > 0.98 || (both > 0.95 && left < 1.4 * whole->within) ||
                (both > 0.9 && first_share(whole) < 0.008))
                return true;
        }
    return false;
}

bool repeat_is_mixture(const struct view *v, double hz)
{
    struct series s;
    struct fold whole;

    for (unsigned c = 0; c < v->n; c++) {
        double samples = samples_in_cycle(&v->s[c], hz);
        series_detrend(&v->s[c], smooth_s(hz, samples), &s);
        unsigned knots = knots_of(&s, hz, FOLD_KNOTS);
        fold_judge(&s, hz, knots, samples, &whole);
        if (whole.surprise >= LEAST_SURPRISE / 2 && is_sum_of_two(&s, hz, knots, &whole))
            return true;
    }
    return false;
}

static double score_at(const struct view *v, double hz, unsigned knots)
{
    double sum = 0;

    for (unsigned c = 0; c < v->n; c++) {
        struct fold f;
        fold_fit(&v->s[c], hz, knots, &f);
        sum -= (double)v->s[c].n * log(fmin(1.2, fold_unexplained(&f)));
    }
    return sum;
}

static double explained_at(const struct view *v, double hz)
{
    double best = 0;

    for (unsigned c = 0; c < v->n; c++) {
        struct fold f;
        fold_fit(&v->s[c], hz, knots_of(&v->s[c], hz, FOLD_KNOTS), &f);
        best = fmax(best, 1 - fold_unexplained(&f));
    }
    return best;
}

static bool clearly_above(double score, double base)
{
    return score > base + 15 && score > 1.1 * base;
}

/* The best score near hz, as the sample rate is not known exactly. */
static double top_near(const struct view *v, double hz)
{
    double top = 0;

    for (int i = -8; i <= 8; i++)
        top = fmax(top, score_at(v, fmax(0.1 / v->span_s, hz + i / (6 * v->span_s)), 12));
    return top;
}

/* Whether a frequency that aliases to hz explains more, with a profile as fine.  Only
 * jitter of the sample times tells them apart; without it both score the same.
 */
static bool is_shown_alias(const struct view *v, double hz)
{
    double base = fmax(fine_at(v, hz), top_near(v, hz)), rate = 1 / v->dt_s;

    for (int k = 1; k < ALIASES; k++)
        for (int sign = -1; sign <= 1; sign += 2)
            if (clearly_above(top_near(v, k * rate + sign * hz), base))
                return true;
    return false;
}

bool repeat_is_alias(const struct view *v, double hz)
{
    unsigned h = strongest(v, hz);

    return is_shown_alias(v, hz) || (h > 1 && is_shown_alias(v, h * hz));
}

bool repeat_is_too_fast(const struct view *v)
{
    double base = 0, at = 0, beyond = 0, rate = 1 / v->dt_s, step = 0.25 / v->span_s;

    for (unsigned i = 2; i * step < (ALIASES - 0.5) * rate; i++) {
        double hz = i * step, score = score_at(v, hz, FOLD_KNOTS_LEAST);
        if (hz > 0.55 * rate) {
            beyond = fmax(beyond, score);
        } else if (score > base) {
            base = score;
            at = hz;
        }
    }
    return clearly_above(beyond, base) || (at > 0 && base > 40 && is_shown_alias(v, at));
}

bool repeat_has_fraction(const struct view *v, double hz)
{
    double whole = explained_at(v, hz);

    for (unsigned k = 2; k <= MOST_FRACTION && hz * k < 0.42 / v->dt_s; k++) {
        double score, part = sharpen(v, hz * k, &score);
        if (explained_at(v, part) > 0.7 * whole && !explains_more(v, part, hz))
            return true;
    }
    return false;
}

bool repeat_is_part(const struct view *v, double hz)
{
    for (unsigned k = 2; k <= MOST_MULTIPLE && v->span_s * hz >= LEAST_CYCLES * k; k++)
        if (explains_more(v, hz, hz / k))
            return true;
    return false;
}

/* Multiples of the period repeat as well: goes to the fraction that explains as much.
 * PERIOD_NONE: a fraction nearly does, but is not significant by itself; PERIOD_ALIAS:
 * the fraction is shorter than the periods searched.
 */
static enum period_why shortest(const struct view *v, double most_hz, struct repeat *r)
{
    double whole = explained_at(v, r->hz);

    for (unsigned k = MOST_FRACTION; k >= 2; k--) {
        double hz = r->hz * k, score;
        struct repeat part;
        if (hz > 0.42 / v->dt_s || (k > PERIOD_PARTS && hz <= most_hz))
            continue;
        hz = sharpen(v, hz, &score);
        if (explained_at(v, hz) < 0.7 * whole || explains_more(v, hz, r->hz))
            continue;
        if (hz > most_hz)
            return PERIOD_ALIAS;
        prove(v, hz, &part);
        if (part.surprise < LEAST_SURPRISE - 2.5)
            return PERIOD_NONE;
        part.why = PERIOD_FOUND;
        *r = part;
        return PERIOD_FOUND;
    }
    return PERIOD_FOUND;
}

/* Whether a longer period explains more. */
static bool is_beaten(const struct view *v, const struct candidate *c, unsigned n,
                      unsigned i)
{
    for (unsigned k = i + 1; k < n; k++)
        if (c[k].r.why == PERIOD_FOUND && c[k].score > c[i].score &&
            explains_more(v, c[i].r.hz, c[k].r.hz))
            return true;
    return false;
}

void repeat_find(const struct view *v, double least_hz, double most_hz,
                 struct repeat *ret)
{
    struct candidate c[CANDIDATES + SHORTEST];
    const struct candidate *cur = NULL;

    *ret = (struct repeat){.why = PERIOD_NONE};
    if (v->n == 0 || v->span_s <= 0 || v->dt_s <= 0) {
        ret->why = PERIOD_FEW;
        return;
    }
    least_hz = fmax(least_hz, LEAST_CYCLES / v->span_s);
    most_hz = fmin(most_hz, 0.42 / v->dt_s);
    unsigned n = candidates(v, least_hz, most_hz, c);
    for (unsigned i = 0; i < n; i++)
        prove(v, c[i].hz, &c[i].r);
    for (unsigned i = 0; i < n && !cur; i++)
        if (c[i].r.why == PERIOD_FOUND && !is_beaten(v, c, n, i))
            cur = &c[i];
    if (!cur)
        return;
    struct repeat found = cur->r;
    ret->why = shortest(v, most_hz, &found);
    if (ret->why != PERIOD_FOUND)
        return;
    for (int pass = 0; pass < 2; pass++) {
        prove(v, found.hz, ret);
        if (ret->why == PERIOD_FOUND)
            found = *ret;
    }
    *ret = found;
}
