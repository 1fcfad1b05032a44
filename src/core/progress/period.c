#include "core/progress/period.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/progress/alias.h"
#include "core/progress/repeat.h"
#include "core/progress/ticks.h"

enum { LEVELS = 7, WINDOWS = 32, FAST_SAMPLES = 96, BLOCKS = 64, BLOCK_SAMPLES = 16 };
enum { REACH_KNOTS = 16, REACH_SAMPLES = 4, REACH_TURNS = 3, HARMONICS = 8 };
#define SHRINK 0.7        /* each span relative to the one before */
#define MOST_CYCLES 100.0 /* cycles in a span of the finest level, at most */
#define MOST_CYCLES_UP 45.0
#define REPEATED_S 0.09
#define ALIAS_SAMPLES 8.0
/* the same where it is not known what a board may draw */
#define ALIAS_SAMPLES_UNTOLD 12.0
#define ALIAS_TRUST 0.65
/* the same for a fast sensor that is read at uneven times */
#define ALIAS_SAMPLES_FINE 6.0
#define ALIAS_MARGIN 1.3
#define FINE_S 0.025 /* sensors updated this often sample faster than any step */
/* least scatter of the times between readings that tells aliases: a sixth of a turn */
#define JITTER 0.15
#define MOST_READING 1e6
/* finer samples of this many cycles are preferred to a longer span */
#define ENOUGH_CYCLES 40.0
#define BLOCK_S 1.0
#define ALIKE 0.1
/* peaks may exceed the mean power that a board may draw */
#define REACH_PEAK 1.25
#define REACH_MARGIN 1.1
#define REACH_ERRORS 3.0
#define CLEAR_TONE 3.0 /* least size for a board, relative to all else taken as noise */
#define TICKS_S 0.05   /* readings of slower sensors are placed at their ticks */
#define CLOSEST_S 0.01 /* samples closer than this are left out */

struct sample {
    uint64_t at_ns;
    float power, sm, mem, busy; /* NAN unknown */
    double energy; /* energy of the counter since the first sample; NAN unknown */
};

/* Level 0 holds samples as fed; each further level holds means of two samples of the one
 * before.
 */
struct level {
    struct sample ring[FOLD_MOST];
    unsigned first, n;
    struct sample half;
    bool has_half;
    double gap_s, off_s; /* smoothed: time between samples; deviation from it */
};

/* The regularity of a board's readings, including those left out of the samples. */
struct pace {
    uint64_t last_ns;
    double gap_s, off_s; /* smoothed: time between readings; deviation from it */
};

struct board {
    struct ticks ticks; /* once known, samples are placed at them */
    struct pace pace;
    double counted_j, before_j; /* last value of the counter; sum before its resets */
    struct level level[LEVELS];
};

struct period {
    unsigned boards;
    struct period_sensor sensor;
    double mhz_most;
    struct board board[];
};

int period_new(unsigned boards, struct period **ret)
{
    if (boards < 1 || boards > PERIOD_BOARDS)
        return -EINVAL;
    struct period *p = calloc(1, sizeof *p + boards * sizeof *p->board);
    if (!p)
        return -ENOMEM;
    p->boards = boards;
    *ret = p;
    return 0;
}

int period_copy(const struct period *p, struct period **ret)
{
    size_t size = sizeof *p + p->boards * sizeof *p->board;
    struct period *copy = malloc(size);

    if (!copy)
        return -ENOMEM;
    memcpy(copy, p, size);
    *ret = copy;
    return 0;
}

void period_free(struct period *p)
{
    free(p);
}

static bool has_ticks(const struct period *p)
{
    return p->sensor.update_s >= TICKS_S;
}

static void begin_ticks(struct period *p)
{
    for (unsigned b = 0; b < p->boards && has_ticks(p); b++)
        ticks_init(&p->board[b].ticks, p->sensor.update_s);
}

void period_sensor(struct period *p, const struct period_sensor *sensor)
{
    p->sensor = *sensor;
    begin_ticks(p);
}

void period_forget(struct period *p)
{
    for (unsigned b = 0; b < p->boards; b++) /* keep the sensor's ticks */
        memset(p->board[b].level, 0, sizeof p->board[b].level);
    p->mhz_most = 0;
}

/* ---- samples ---- */

static const struct sample *sample_at(const struct level *l, unsigned i)
{
    return &l->ring[(l->first + i) % FOLD_MOST];
}

static float mean_of(float a, float b)
{
    return isnan(a) ? b : isnan(b) ? a : (a + b) / 2;
}

static void push(struct level *l, const struct sample *s)
{
    if (l->n > 0) {
        double gap = s_between(sample_at(l, l->n - 1)->at_ns, s->at_ns);
        if (l->n > 1)
            l->off_s += 0.05 * (fmin(fabs(gap - l->gap_s), l->gap_s) - l->off_s);
        l->gap_s =
            l->n == 1 ? gap : l->gap_s + 0.1 * (fmin(gap, 4 * l->gap_s) - l->gap_s);
    }
    if (l->n == FOLD_MOST)
        l->first = (l->first + 1) % FOLD_MOST;
    else
        l->n++;
    l->ring[(l->first + l->n - 1) % FOLD_MOST] = *s;
}

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Whether the sensor has no new value yet (the slowest update every 100 ms). */
static bool is_repeated(const struct sample *last, const struct sample *s)
{
    return s_between(last->at_ns, s->at_ns) < REPEATED_S && same(last->power, s->power) &&
           same(last->sm, s->sm) && same(last->mem, s->mem);
}

/* As a float; NAN if not a plausible reading. */
static float believable(double x)
{
    return x >= 0 && x <= MOST_READING ? (float)x : NAN;
}

/* Updates the pace.  A missed reading does not shift the others. */
static void keep_pace(struct pace *p, uint64_t at_ns)
{
    double gap = s_between(p->last_ns, at_ns);

    if (p->last_ns > 0 && p->gap_s > 0) {
        double turns = fmax(1, round(gap / p->gap_s));
        p->off_s += 0.05 * (fmin(fabs(gap - turns * p->gap_s), p->gap_s) - p->off_s);
        p->gap_s += 0.1 * (gap / turns - p->gap_s);
    } else if (p->last_ns > 0) {
        p->gap_s = gap;
    }
    p->last_ns = at_ns;
}

/* Whether readings are so regular that their times cannot distinguish a period from a
 * much shorter one.
 */
static bool is_even(const struct board *b)
{
    return b->pace.off_s <= JITTER * b->pace.gap_s;
}

/* The total energy of a counter, which may be reset. */
static double counted(struct board *b, double energy_j)
{
    if (!(energy_j >= 0))
        return NAN;
    if (energy_j < b->counted_j)
        b->before_j += b->counted_j;
    b->counted_j = energy_j;
    return b->before_j + energy_j;
}

void period_feed(struct period *p, unsigned board, const struct activity *a)
{
    struct level *l = p->board[board].level;

    keep_pace(&p->board[board].pace, a->at_ns);
    if (has_ticks(p))
        ticks_see(&p->board[board].ticks, a->at_ns, a->power_w);
    if (l->n > 0 && s_between(sample_at(l, l->n - 1)->at_ns, a->at_ns) < CLOSEST_S)
        return;
    p->mhz_most = fmax(p->mhz_most, a->sm_mhz);
    struct sample s = {a->at_ns,
                       believable(a->power_w),
                       believable(a->sm_util),
                       believable(a->mem_util),
                       believable(a->sm_util / 100 * a->sm_mhz),
                       counted(&p->board[board], a->energy_j)};
    if (l->n > 0 && is_repeated(sample_at(l, l->n - 1), &s))
        return;
    push(l, &s);
    for (unsigned k = 1; k < LEVELS; k++, l++) {
        struct sample half = l->half;
        if (!l->has_half) {
            l->half = s;
            l->has_half = true;
            return;
        }
        if (s_between(half.at_ns, s.at_ns) > 3 * l->gap_s) {
            /* a gap between the two: keep them apart */
            l->half = s;
            s = half;
        } else {
            l->has_half = false;
            s = (struct sample){half.at_ns + (s.at_ns - half.at_ns) / 2,
                                mean_of(half.power, s.power),
                                mean_of(half.sm, s.sm),
                                mean_of(half.mem, s.mem),
                                mean_of(half.busy, s.busy),
                                (half.energy + s.energy) / 2};
        }
        push(l + 1, &s);
    }
}

/* ---- views ---- */

static float signal_of(const struct sample *s, unsigned signal)
{
    return signal == 0 ? s->power : signal == 1 ? s->sm : s->mem;
}

/* One signal of one board; false: too few samples, or nearly constant. */
static bool gather(const struct level *l, unsigned signal, uint64_t from_ns,
                   uint64_t to_ns, struct series *ret)
{
    double sum = 0, sq = 0;

    ret->n = 0;
    for (unsigned i = 0; i < l->n; i++) {
        const struct sample *s = sample_at(l, i);
        float x = signal_of(s, signal);
        if (s->at_ns < from_ns || s->at_ns > to_ns || isnan(x))
            continue;
        ret->t[ret->n] = s->at_ns - from_ns;
        ret->x[ret->n++] = x;
        sum += x;
    }
    if (ret->n < VIEW_LEAST)
        return false;
    double mean = sum / (double)ret->n;
    for (size_t i = 0; i < ret->n; i++) {
        ret->x[i] -= (float)mean;
        sq += (double)ret->x[i] * ret->x[i];
    }
    double rms = sqrt(sq / (double)ret->n);
    return signal == 0 ? rms > fmax(0.3, 0.001 * mean) : rms > 0.5;
}

/* Power of as many boards as fit, then utilisation. */
static void view_of(const struct period *p, unsigned level, uint64_t from_ns,
                    uint64_t to_ns, struct view *v)
{
    v->n = 0;
    for (unsigned signal = 0; signal < 3; signal++)
        for (unsigned b = 0; b < p->boards && v->n < VIEW_SERIES - (signal == 0 ? 2 : 0);
             b++)
            if (gather(&p->board[b].level[level], signal, from_ns, to_ns, &v->s[v->n]))
                v->n++;
    view_finish(v);
}

struct span {
    unsigned level;
    uint64_t from_ns, to_ns;
    double most_hz;
};

/* Spans to search, the longest first; all end at the newest sample. */
static unsigned spans(const struct period *p, struct span *ret)
{
    const struct level *all = p->board[0].level;
    unsigned n = 0;

    for (unsigned k = LEVELS; k-- > 0;) {
        const struct level *l = &all[k];
        if (l->n < VIEW_LEAST || (k > 0 && all[k - 1].n < FOLD_MOST))
            continue;
        uint64_t to = all[0].ring[(all[0].first + all[0].n - 1) % FOLD_MOST].at_ns;
        double s = s_between(sample_at(l, 0)->at_ns, to);
        if (k > 0 && s_between(sample_at(&all[k - 1], 0)->at_ns, to) > PERIOD_MOST_S * 4)
            continue;
        double shorter = k > 0 ? s_between(sample_at(&all[k - 1], 0)->at_ns, to) : 0;
        double least = VIEW_LEAST * fmax(l->gap_s, 1e-3);
        while (n < WINDOWS && s > least && s > shorter * 1.1) {
            ret[n++] = (struct span){k, to - ns_of_s(s), to,
                                     (k > 0 ? MOST_CYCLES_UP : MOST_CYCLES) / s};
            s *= SHRINK;
        }
    }
    return n;
}

/* ---- findings ---- */

/* Fitted by hand to the results of bench/period --self. */
static double confidence_of(const struct repeat *r)
{
    double sure = 1 - exp(-(r->surprise - 3) / 4);
    double enough = 1 - exp(-(r->cycles - 1) / 1.1);
    double sharp = exp(-pow(r->rse / 0.025, 2));

    return fmax(0.05, fmin(0.99, sure * enough * sharp));
}

static void tell(const struct repeat *r, const struct span *s, struct period_found *ret)
{
    *ret = (struct period_found){.why = r->why, .from_ns = s->from_ns, .to_ns = s->to_ns};
    if (r->why != PERIOD_FOUND)
        return;
    ret->period_s = 1 / r->hz;
    ret->rse = r->rse;
    ret->confidence = confidence_of(r);
    ret->periods = r->cycles;
}

/* The longest span with a period whose pattern is as clean as in the shorter ones.  If it
 * is less clean and the periods are nearly the same, cycles drift against each other in
 * it.  Spans are in order of length, the longest first.
 */
static unsigned choose(const struct repeat *r, unsigned n)
{
    unsigned at = 0;

    while (r[at].why != PERIOD_FOUND)
        at++;
    for (unsigned i = at + 1; i < n; i++) {
        if (r[i].why != PERIOD_FOUND || r[i].cycles < 5 || r[i].surprise < 9)
            continue;
        double ratio = r[i].hz / r[at].hz;
        double left = 1 - r[at].explained, better = 1 - r[i].explained;
        if ((ratio < 1.2 || ratio > PERIOD_PARTS + 0.7) && left > 2 * better + 0.05)
            at = i;
    }
    return at;
}

/* Whether the newest samples at full rate contradict the period hz. */
static bool is_too_fast(const struct period *p, const struct span *span, double hz)
{
    const struct level *l = p->board[0].level;
    unsigned n = l->n < FAST_SAMPLES ? l->n : FAST_SAMPLES;
    uint64_t newest = sample_at(l, l->n - 1)->at_ns;
    struct view v;

    if (n < FAST_SAMPLES / 4)
        return false;
    view_of(p, 0, sample_at(l, l->n - n)->at_ns, newest, &v);
    if (v.n > 0 && v.span_s < 4 * n * v.dt_s && repeat_is_too_fast(&v))
        return true;
    if (span->level == 0)
        return false;
    view_of(p, 0, sample_at(l, 0)->at_ns, newest, &v);
    return v.n > 0 && v.span_s * hz > 3 && repeat_has_fraction(&v, hz);
}

/* ---- aliases of a sensor's sampling ---- */

/* The amplitude of hz in one board's power, and the mean power. */
static double amplitude(const struct level *l, uint64_t from_ns, uint64_t to_ns,
                        double hz, double *ret_mean)
{
    double sum = 0, re = 0, im = 0, n = 0;

    for (int pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < l->n; i++) {
            const struct sample *s = sample_at(l, i);
            if (s->at_ns < from_ns || s->at_ns > to_ns || isnan(s->power))
                continue;
            double turn = 2 * M_PI * hz * s_between(from_ns, s->at_ns);
            if (pass == 0) {
                sum += s->power;
                n++;
            } else {
                re += (s->power - sum / n) * cos(turn);
                im += (s->power - sum / n) * sin(turn);
            }
        }
    *ret_mean = n > 0 ? sum / n : 0;
    return n > 0 ? 2 * hypot(re, im) / n : 0;
}

/* The largest amplitude at hz of an alias of anything faster than the sensor's updates:
 * of all loads with this mean, one that switches between 0 and the most it may draw has
 * the largest amplitude, and the sensor's window attenuates it.
 */
static double most_as_alias(const struct period_sensor *s, double mean_w, double hz)
{
    double top = fmax(s->most_w, mean_w), turn = M_PI * hz * s->window_s;
    double weak = 1 / (M_PI * s->window_s / s->update_s - turn);

    double ratio = s->window_s / s->update_s;
    if (fabs(ratio - round(ratio)) < 0.05) /* the zeros of the window's response */
        weak *= fabs(sin(turn));
    return 2 / M_PI * top * sin(M_PI * mean_w / top) * weak;
}

/* Mean power of a board in a span. */
static double mean_of_span(const struct level *l, uint64_t from_ns, uint64_t to_ns)
{
    double sum = 0, n = 0;

    for (unsigned i = 0; i < l->n; i++) {
        const struct sample *s = sample_at(l, i);
        if (s->at_ns < from_ns || s->at_ns > to_ns || isnan(s->power))
            continue;
        sum += s->power;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

/* One board's power, each reading placed at its tick where ticks are known. */
static bool gather_at_ticks(const struct board *b, unsigned level,
                            const struct period_found *f, struct series *ret)
{
    uint64_t last = 0;
    size_t n = 0;

    if (!gather(&b->level[level], 0, f->from_ns, f->to_ns, ret))
        return false;
    if (level > 0 || !b->ticks.known)
        return true;
    for (size_t i = 0; i < ret->n; i++) {
        double tick_s = ticks_before(&b->ticks, s_of_ns(f->from_ns + ret->t[i]));
        double since_s = tick_s - s_of_ns(f->from_ns) + b->ticks.period_s;
        uint64_t t = ns_of_s(fmax(0, since_s)); /* a tick later: never before the span */
        if (n > 0 && t <= last + ns_of_s(b->ticks.period_s / 2))
            continue;
        ret->t[n] = last = t;
        ret->x[n++] = ret->x[i];
    }
    ret->n = n;
    return n >= VIEW_LEAST;
}

/* Whether the folded pattern deviates from its mean by more than an alias could, given
 * the sensor's window.
 */
static bool goes_too_far(const struct period_sensor *sensor, const struct series *s,
                         double mean_w, double hz)
{
    unsigned knots = (unsigned)fmin(REACH_KNOTS, (double)s->n / REACH_SAMPLES);
    struct fold f;

    if (knots < FOLD_KNOTS_LEAST)
        return false;
    fold_fit(s, hz, knots, &f);
    double sum = 0, over = 0, under = 0;
    for (unsigned k = 0; k < knots; k++)
        sum += f.w[k] / knots;
    for (unsigned k = 0; k < knots; k++) {
        over = fmax(over, f.w[k] - sum);
        under = fmax(under, sum - f.w[k]);
    }
    double se = sqrt(f.within / ((double)s->n - knots) * knots / (double)s->n);
    over -= REACH_ERRORS * se;
    under -= REACH_ERRORS * se;
    for (unsigned k = 1; k <= REACH_TURNS; k++)
        for (int sign = -1; sign <= 1; sign += 2) {
            struct reach r = reach_of(k / sensor->update_s + sign * hz, sensor->window_s,
                                      mean_w + sum, REACH_PEAK * sensor->most_w);
            if (over <= REACH_MARGIN * r.over_w && under <= REACH_MARGIN * r.under_w)
                return false;
        }
    return true;
}

static bool any_goes_too_far(const struct period *p, const struct period_found *f,
                             unsigned level)
{
    struct series s;

    for (unsigned b = 0; b < p->boards; b++) {
        const struct level *l = &p->board[b].level[level];
        if (gather_at_ticks(&p->board[b], level, f, &s) &&
            goes_too_far(&p->sensor, &s, mean_of_span(l, f->from_ns, f->to_ns),
                         1 / f->period_s))
            return true;
    }
    return false;
}

/* Whether the pattern's strongest harmonic, on any board, is too large for an alias. */
static bool is_surely_real(const struct period *p, const struct period_found *f,
                           unsigned level)
{
    for (unsigned b = 0; b < p->boards; b++) {
        const struct level *l = &p->board[b].level[level];
        double top = 0, at_hz = 0, at_mean_w = 0;
        double most_hz = fmin(0.4 / p->sensor.update_s, 0.45 / fmax(1e-3, l->gap_s));
        for (unsigned h = 1; h / f->period_s < most_hz; h++) {
            double hz = h / f->period_s, mean_w;
            double seen = amplitude(l, f->from_ns, f->to_ns, hz, &mean_w);
            if (seen <= top)
                continue;
            top = seen;
            at_hz = hz;
            at_mean_w = mean_w;
        }
        if (top > 0 && top > ALIAS_MARGIN * most_as_alias(&p->sensor, at_mean_w, at_hz))
            return true;
    }
    return false;
}

/* The finest level that reaches back to from_ns. */
static unsigned level_of(const struct level *all, uint64_t from_ns)
{
    unsigned k = 0;

    while (k + 1 < LEVELS && all[k].n == FOLD_MOST &&
           sample_at(&all[k], 0)->at_ns > from_ns)
        k++;
    return k;
}

/* The strongest harmonic, over all boards, below half of the sensor's update rate. */
static double strongest_hz(const struct period *p, const struct period_found *f,
                           unsigned level)
{
    double top = 0, at_hz = 0, most_hz = 0.45 / p->sensor.update_s;
    struct series s;

    for (unsigned h = 1; h / f->period_s < most_hz; h++) {
        double hz = h / f->period_s, sum = 0;
        for (unsigned b = 0; b < p->boards; b++)
            if (gather_at_ticks(&p->board[b], level, f, &s)) {
                struct tone t = tone_of(&s, hz);
                sum += tone_size(&t);
            }
        if (sum > top) {
            top = sum;
            at_hz = hz;
        }
    }
    return at_hz;
}

/* Decides by the phases on boards whose sensors sample at different times. */
static enum alias alias_by_boards(const struct period *p, const struct period_found *f,
                                  unsigned level)
{
    struct tone_board board[PERIOD_BOARDS];
    double middle_s = s_of_ns(f->from_ns + (f->to_ns - f->from_ns) / 2);
    unsigned n = 0;
    struct series s;

    if (!has_ticks(p) || p->boards < 2)
        return ALIAS_OPEN;
    double hz = strongest_hz(p, f, level);
    for (unsigned b = 0; b < p->boards && hz > 0; b++) {
        const struct ticks *k = &p->board[b].ticks;
        if (!k->known || !gather_at_ticks(&p->board[b], level, f, &s))
            continue;
        struct tone t = tone_of(&s, hz);
        double noise = sqrt(2 * series_total(&s)) / (double)s.n;
        if (tone_size(&t) < CLEAR_TONE * noise)
            continue;
        board[n++] =
            (struct tone_board){t, ticks_late(k, middle_s), k->error_s / k->period_s};
    }
    return alias_of(board, n);
}

/* A counter's energy less its trend.  at_ticks: only where it has moved. */
static bool gather_energy(const struct level *l, bool at_ticks,
                          const struct period_found *f, struct series *ret)
{
    double e[FOLD_MOST], last = NAN, st = 0, se = 0, stt = 0, ste = 0;
    size_t n = 0;

    for (unsigned i = 0; i < l->n; i++) {
        const struct sample *s = sample_at(l, i);
        bool moved = s->energy != last;
        last = s->energy;
        if (s->at_ns < f->from_ns || s->at_ns > f->to_ns || isnan(s->energy) ||
            (at_ticks && !moved))
            continue;
        ret->t[n] = s->at_ns - f->from_ns;
        e[n++] = s->energy;
    }
    ret->n = n;
    if (n < VIEW_LEAST)
        return false;
    for (size_t i = 0; i < n; i++) {
        st += s_of_ns(ret->t[i]) / (double)n;
        se += e[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        double t = s_of_ns(ret->t[i]) - st;
        stt += t * t;
        ste += t * (e[i] - se);
    }
    for (size_t i = 0; i < n; i++)
        ret->x[i] = (float)(e[i] - se - ste / stt * (s_of_ns(ret->t[i]) - st));
    return true;
}

/* The strongest harmonic in a board's power. */
static double loudest_hz(const struct series *s, double period_s, double gap_s)
{
    double top = 0, at_hz = 1 / period_s;

    for (unsigned h = 1; h <= HARMONICS && h / period_s < 0.45 / fmax(1e-3, gap_s); h++) {
        struct tone t = tone_of(s, h / period_s);
        if (tone_size(&t) <= top)
            continue;
        top = tone_size(&t);
        at_hz = h / period_s;
    }
    return at_hz;
}

/* Whether a board's samples contain readings at two rates that both show hz. */
static bool rates_agree(const struct level *all, unsigned level, double hz)
{
    struct series s;

    for (; level < LEVELS && all[level].gap_s * hz < 0.45; level++)
        if (gather(&all[level], 0, 0, UINT64_MAX, &s) && rates_have_tone(&s, hz))
            return true;
    return false;
}

/* Whether the period also shows on any board in the counter or, for an unknown sensor,
 * at a second rate of reading.  A known sensor samples at its own times, whatever the
 * rate of reading.
 */
static bool is_witnessed(const struct period *p, const struct period_found *f)
{
    for (unsigned b = 0; b < p->boards; b++) {
        const struct level *all = p->board[b].level;
        unsigned level = level_of(all, f->from_ns);
        struct series power, energy, even;
        if (!gather(&all[level], 0, f->from_ns, f->to_ns, &power))
            continue;
        double hz = loudest_hz(&power, f->period_s, all[level].gap_s);
        if (p->sensor.update_s <= 0 && rates_agree(all, level, hz))
            return true;
        if (!gather_energy(&all[level], level == 0, f, &energy))
            continue;
        series_detrend(&energy, 2 / hz, &even);
        if (counter_has_tone(&power, &even, hz))
            return true;
    }
    return false;
}

/* Whether the period may be an alias of a much shorter one, which a sensor with fixed
 * update times shows whatever the times of reading; it is likelier with fewer samples a
 * cycle.  For an unknown sensor, readings at regular times cannot distinguish a period
 * from much shorter ones.
 */
static bool may_be_alias(const struct period *p, const struct period_found *f,
                         const struct view *v)
{
    const struct period_sensor *s = &p->sensor;
    const struct level *all = p->board[0].level;

    if (s->update_s <= 0) {
        if (is_witnessed(p, f))
            return false;
        return is_even(&p->board[0]) || f->period_s < ALIAS_SAMPLES * v->dt_s;
    }
    if (s->update_s <= FINE_S && s->update_s < 0.6 * all[0].gap_s &&
        all[0].off_s > JITTER * all[0].gap_s)
        return f->period_s <
               ALIAS_SAMPLES_FINE * all[0].gap_s; /* else repeat_is_alias() decides */
    enum alias boards = alias_by_boards(p, f, level_of(all, f->from_ns));
    if (boards != ALIAS_OPEN)
        return boards == ALIAS_SEEN;
    double moment_s = fmax(s->update_s, all[0].gap_s);
    if (s->window_s < 0.9 * s->update_s)
        return !is_witnessed(p, f);
    if (s->most_w <= 0)
        return f->period_s < ALIAS_SAMPLES_UNTOLD * moment_s;
    unsigned level = level_of(all, f->from_ns);
    return !is_surely_real(p, f, level) && !any_goes_too_far(p, f, level);
}

void period_find(const struct period *p, struct period_found *ret)
{
    struct span span[WINDOWS];
    struct repeat r[WINDOWS];
    unsigned n = spans(p, span), found = 0;
    struct view v;

    *ret = (struct period_found){.why = PERIOD_FEW};
    for (unsigned i = 0; i < n; i++) {
        r[i] = (struct repeat){.why = PERIOD_FLAT};
        view_of(p, span[i].level, span[i].from_ns, span[i].to_ns, &v);
        if (v.n > 0)
            repeat_find(&v, 1 / PERIOD_MOST_S, fmin(span[i].most_hz, 1 / PERIOD_LEAST_S),
                        &r[i]);
        found += r[i].why == PERIOD_FOUND;
        if (i == 0)
            ret->why = r[i].why;
    }
    if (found == 0)
        return;
    unsigned at = choose(r, n);
    view_of(p, span[at].level, span[at].from_ns, span[at].to_ns, &v);
    if (is_too_fast(p, &span[at], r[at].hz) || repeat_is_alias(&v, r[at].hz))
        r[at].why = PERIOD_ALIAS;
    else if (repeat_is_mixture(&v, r[at].hz))
        r[at].why = PERIOD_MIXED;
    tell(&r[at], &span[at], ret);
    if (ret->period_s > 0 && may_be_alias(p, ret, &v))
        ret->confidence *= ALIAS_TRUST;
}

/* The finest level that reaches back to from_ns, or holds enough cycles. */
static unsigned level_for(const struct level *all, uint64_t from_ns, uint64_t to_ns,
                          double period_s)
{
    unsigned k = 0;

    while (k + 1 < LEVELS && all[k].n == FOLD_MOST) {
        uint64_t first_ns = sample_at(&all[k], 0)->at_ns;
        if (first_ns <= from_ns || s_between(first_ns, to_ns) > ENOUGH_CYCLES * period_s)
            break;
        k++;
    }
    return k;
}

void period_between(const struct period *p, uint64_t from_ns, uint64_t to_ns,
                    double least_s, double most_s, struct period_found *ret)
{
    const struct level *all = p->board[0].level;
    struct span span = {level_for(all, from_ns, to_ns, most_s), from_ns, to_ns, 0};
    struct view v;
    struct repeat r;

    if (all[span.level].n > 0 && sample_at(&all[span.level], 0)->at_ns > from_ns)
        span.from_ns = sample_at(&all[span.level], 0)->at_ns;
    view_of(p, span.level, span.from_ns, to_ns, &v);
    repeat_find(&v, 1 / most_s, 1 / least_s, &r);
    if (r.why == PERIOD_FOUND && repeat_is_part(&v, r.hz))
        r.why = PERIOD_NONE;
    tell(&r, &span, ret);
}

/* ---- runs of equal cycles ---- */

struct blocks { /* each of whole cycles */
    unsigned n;
    double s; /* a block's length */
    double mean_w[BLOCKS], samples[BLOCKS];
};

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void fill_blocks(const struct level *l, uint64_t from_ns, uint64_t to_ns,
                        struct blocks *ret)
{
    for (unsigned i = 0; i < l->n; i++) {
        const struct sample *s = sample_at(l, i);
        if (s->at_ns < from_ns || s->at_ns >= to_ns || isnan(s->power))
            continue;
        unsigned k = (unsigned)(s_between(from_ns, s->at_ns) / ret->s);
        if (k >= ret->n)
            continue;
        ret->samples[k]++;
        ret->mean_w[k] += (s->power - ret->mean_w[k]) / ret->samples[k];
    }
}

/* Median of the blocks' mean power; 0: no block has a sample. */
static double typical_w(const struct blocks *b)
{
    double w[BLOCKS];
    unsigned n = 0;

    for (unsigned k = 0; k < b->n; k++)
        if (b->samples[k] > 0)
            w[n++] = b->mean_w[k];
    if (n == 0)
        return 0;
    qsort(w, n, sizeof *w, by_value);
    return w[n / 2];
}

bool period_run(const struct period *p, uint64_t from_ns, uint64_t to_ns, double period_s,
                uint64_t *ret_from_ns, uint64_t *ret_to_ns)
{
    struct blocks b = {0};
    unsigned run = 0, best = 0, end = 0;
    double dt_s = p->board[0].level[0].gap_s, span_s = s_between(from_ns, to_ns);

    double cycles = ceil(
        fmax(fmax(BLOCK_SAMPLES * dt_s, BLOCK_S), 1.01 * span_s / BLOCKS) / period_s);
    b.s = fmax(1, cycles) * period_s;
    b.n = (unsigned)fmin(BLOCKS, span_s / b.s);
    for (unsigned i = 0; i < p->boards; i++)
        fill_blocks(
            &p->board[i].level[level_for(p->board[i].level, from_ns, to_ns, period_s)],
            from_ns, to_ns, &b);
    double typical = typical_w(&b);
    for (unsigned k = 0; k < b.n; k++) {
        bool alike = b.samples[k] > 0 && fabs(b.mean_w[k] - typical) <= ALIKE * typical;
        run = alike ? run + 1 : 0;
        if (run > best) {
            best = run;
            end = k + 1;
        }
    }
    if (best == 0)
        return false;
    *ret_from_ns = from_ns + ns_of_s((end - best) * b.s);
    *ret_to_ns = from_ns + ns_of_s(end * b.s);
    return true;
}

double period_busy(const struct period *p, uint64_t from_ns, uint64_t to_ns)
{
    double sum = 0;
    unsigned n = 0;

    for (unsigned b = 0; b < p->boards; b++) {
        unsigned k = 0;
        while (k + 1 < LEVELS && p->board[b].level[k].n == FOLD_MOST &&
               sample_at(&p->board[b].level[k], 0)->at_ns > from_ns)
            k++;
        const struct level *l = &p->board[b].level[k];
        for (unsigned i = 0; i < l->n; i++) {
            const struct sample *s = sample_at(l, i);
            if (s->at_ns < from_ns || s->at_ns > to_ns || isnan(s->busy))
                continue;
            sum += s->busy;
            n++;
        }
    }
    return n > 0 && p->mhz_most > 0 ? sum / n / p->mhz_most : NAN;
}
