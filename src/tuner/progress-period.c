#include "tuner/progress-period.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/units.h"
#include "tuner/progress-source.h"

#define WIDE 1.7

struct analysis { /* used by the worker, which may outlive progress_period */
    struct progress_period *period; /* not used by the worker; NULL: freed */
    struct period *copy;
    struct progress_period_want want;
    struct progress_period_heard heard;
    uint64_t serial;
};

struct progress_period {
    struct loop *loop;
    struct loop_worker *worker, *own;
    struct loop_timer *timer;
    struct period *period;
    struct progress_period_want want;
    uint64_t serial;           /* counts calls to progress_period_listen() and _rest() */
    struct analysis *analysis; /* under way */
    double util_sum;           /* percent, since listening began */
    unsigned util_n;           /* number of readings in util_sum */
    size_t n;
    struct progress_period_board board[PERIOD_BOARDS];
    struct sampler_ear ear[PERIOD_BOARDS];
};

/* The energy of a counter that misses nothing, in J; NAN: there is no such counter, or
 * it is not known to be one.
 */
static double counted_j(const struct progress_period *p, size_t board,
                        const struct gpu_sample *s)
{
    const struct progress_period_board *b = &p->board[board];
    struct meter_state state;

    if (!(s->has & GPU_HAS_ENERGY))
        return NAN;
    meter_state(sampler_meter(b->sampler, b->at), &state);
    return state.counter_true ? (double)s->energy_mj * 1e-3 : NAN;
}

static void hear(size_t board, const struct gpu_sample *s, void *user)
{
    struct progress_period *p = user;
    struct activity a = {.at_ns = s->began_ns + (s->at_ns - s->began_ns) / 2,
                         .power_w = NAN,
                         .sm_util = NAN,
                         .mem_util = NAN,
                         .sm_mhz = NAN,
                         .energy_j = counted_j(p, board, s)};

    if (s->has & GPU_HAS_INSTANT)
        a.power_w = s->instant_w;
    else if (s->has & GPU_HAS_POWER)
        a.power_w = s->power_w;
    else
        return;
    if (s->has & GPU_HAS_UTIL && a.at_ns >= p->want.from_ns) {
        p->util_sum += s->util_gpu;
        p->util_n++;
    }
    if (s->has & GPU_HAS_UTIL) {
        a.sm_util = s->util_gpu;
        a.mem_util = s->util_mem;
    }
    if (s->has & GPU_HAS_CLOCKS)
        a.sm_mhz = s->sm_mhz;
    period_feed(p->period, (unsigned)board, &a);
}

/* ---- analysis ---- */

static bool is_sure(const struct period_found *f)
{
    return f->why == PERIOD_FOUND && f->confidence >= PROGRESS_PERIOD_SURE;
}

/* Finds the period within the bounds.  If they include the double of a period, prefers
 * the shorter one.
 */
static void find_between(const struct analysis *l, uint64_t to_ns, double least_s,
                         double most_s, struct period_found *ret)
{
    double middle_s = least_s * WIDE;

    if (most_s > middle_s) {
        period_between(l->copy, l->want.from_ns, to_ns, least_s, middle_s, ret);
        if (is_sure(ret))
            return;
        least_s = middle_s / 1.1;
    }
    period_between(l->copy, l->want.from_ns, to_ns, least_s, most_s, ret);
}

/* Determines the period within the bounds from even cycles only. */
static void analyse_between(const struct analysis *l, double least_s, double most_s,
                            struct progress_period_heard *ret)
{
    struct period_found f;
    uint64_t from, to;

    find_between(l, ret->at_ns, least_s, most_s, &f);
    ret->why = f.why;
    ret->best = f.confidence;
    if (!is_sure(&f) || !period_run(l->copy, f.from_ns, f.to_ns, f.period_s, &from, &to))
        return;
    if (to - from < (f.to_ns - f.from_ns) / 10 * 9) { /* repeat it for even cycles */
        period_between(l->copy, from, to, f.period_s / 1.1, f.period_s * 1.1, &f);
        ret->why = f.why;
        ret->best = f.confidence;
        if (!is_sure(&f))
            return;
    }
    ret->cycles = floor(s_between(from, to) / f.period_s * (1 + 1e-9));
    if (ret->cycles < 1)
        return;
    ret->known = true;
    ret->period_s = f.period_s;
    ret->rse = f.rse;
    ret->confidence = f.confidence;
    ret->from_ns = from;
    ret->to_ns = from + ns_of_s(ret->cycles * f.period_s);
}

static int analysis_work(struct loop *loop, void *work)
{
    struct analysis *l = work;
    struct progress_period_heard *h = &l->heard;
    struct period_found f;
    (void)loop;

    h->busy = period_busy(l->copy, l->want.from_ns, h->at_ns);
    if (l->want.most_s > 0) {
        analyse_between(l, l->want.least_s, l->want.most_s, h);
        return 0;
    }
    period_find(l->copy, &f);
    h->why = f.why;
    h->best = f.confidence;
    if (is_sure(&f)) {
        if (f.from_ns > l->want.from_ns)
            l->want.from_ns = f.from_ns;
        analyse_between(l, 0.9 * f.period_s, 1.1 * f.period_s, h);
        h->confidence = fmin(h->confidence, f.confidence);
    }
    return 0;
}

static void analysis_free(struct analysis *l)
{
    if (!l)
        return;
    period_free(l->copy);
    free(l);
}
DEFINE_AUTO(struct analysis *, analysis_free);

static int analysis_done(struct loop *loop, void *work, int r)
{
    struct analysis *l = work;
    struct progress_period *p = l->period;
    struct progress_period_heard heard = l->heard;
    (void)loop;

    if (r == -ETIMEDOUT) /* the thread still uses *l: leak it */
        return 0;
    bool told = p && r >= 0 && l->serial == p->serial;
    if (p)
        p->analysis = NULL;
    analysis_free(l);
    return told ? p->want.fn(&heard, p->want.user) : 0;
}

static int progress_period_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct progress_period *p = user;
    auto_(analysis_free) struct analysis *l = calloc(1, sizeof *l);
    struct loop_work work = {.fn = analysis_work, .done = analysis_done, .work = l};

    loop_timer_set(timer, now_ns + ns_of_s(p->want.every_s), 0);
    if (!l || p->analysis || period_copy(p->period, &l->copy) < 0)
        return 0; /* retried by the next analysis */
    l->period = p;
    l->want = p->want;
    l->serial = p->serial;
    l->heard.at_ns = now_ns;
    l->heard.busy = NAN;
    l->heard.util = p->util_n > 0 ? p->util_sum / p->util_n / 100 : NAN;
    if (loop_worker_submit(p->worker, &work) == 0)
        p->analysis = take(l);
    return 0;
}

/* Boards are read often until steps are reported, and while periods of their power are
 * the unit of work.
 */
static void set_listening(struct progress_period *p, bool listening)
{
    p->serial++;
    for (size_t i = 0; i < p->n; i++)
        sampler_listen(p->board[i].sampler, p->board[i].at, &p->ear[i], listening);
}

void progress_period_listen(struct progress_period *p,
                            const struct progress_period_want *want)
{
    if (!p)
        return;
    uint64_t first = want->from_ns + ns_of_s(want->first_s), now = loop_now_ns(p->loop);
    if (want->anew)
        period_forget(p->period);
    p->want = *want;
    set_listening(p, true);
    p->util_sum = 0;
    p->util_n = 0;
    loop_timer_set(p->timer, first > now ? first : now, 0);
}

void progress_period_rest(struct progress_period *p)
{
    if (!p)
        return;
    set_listening(p, false);
    loop_timer_set(p->timer, UINT64_MAX, 0);
}

/* ---- set-up ---- */

/* Sets a sensor model for all boards: the slowest updates and the smallest share of time
 * measured.
 */
static void tell_sensor(struct progress_period *p)
{
    struct period_sensor all = {0};

    for (size_t i = 0; i < p->n; i++) {
        const struct sensor *s = sampler_sensor(p->board[i].sampler, p->board[i].at);
        bool worse = i == 0 || s->window_s / s->update_s < all.window_s / all.update_s;
        if (s->update_s <= 0)
            return; /* unknown sensor: set no model */
        if (worse || s->update_s > all.update_s) {
            all.update_s = fmax(all.update_s, s->update_s);
            all.window_s = worse ? s->window_s : all.window_s;
        }
        all.most_w = fmax(all.most_w, p->board[i].most_w);
    }
    period_sensor(p->period, &all);
}

int progress_period_new(const struct progress_period_opts *opts,
                        struct progress_period **ret, uw_error *err)
{
    auto_(progress_period_free) struct progress_period *p = calloc(1, sizeof *p);

    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    size_t n = opts->n < PERIOD_BOARDS ? opts->n : PERIOD_BOARDS;
    p->loop = opts->loop;
    p->worker = opts->worker;
    int r = period_new((unsigned)n, &p->period);
    if (r < 0)
        return fail(err, r, "out of memory to record the power of %zu boards", n);
    r = loop_timer_new(opts->loop, UINT64_MAX, 0, progress_period_on_timer, p, &p->timer,
                       err);
    if (r >= 0 && !p->worker) {
        r = loop_worker_new(opts->loop, "period", &p->own, err);
        p->worker = p->own;
    }
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        p->board[i] = opts->board[i];
        p->ear[i] =
            (struct sampler_ear){.fn = hear, .user = p, .board = i, .listens = true};
        sampler_hear(p->board[i].sampler, p->board[i].at, &p->ear[i]);
        p->n++;
    }
    tell_sensor(p);
    *ret = take(p);
    return 0;
}

void progress_period_free(struct progress_period *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        sampler_deaf(p->board[i].sampler, p->board[i].at, &p->ear[i]);
    p->serial++;
    loop_worker_free(p->own); /* may call analysis_done(), which then calls no fn */
    if (p->analysis)
        p->analysis->period = NULL;
    loop_timer_free(p->timer);
    period_free(p->period);
    free(p);
}

/* ---- the source ---- */

const char *progress_period_why(const struct progress_period_heard *h)
{
    static const char *const word[] = {
        [PERIOD_FOUND] = "a period is seen in its power, but is not certain",
        [PERIOD_FEW] = "too little power data yet",
        [PERIOD_FLAT] = "its power does not move",
        [PERIOD_NONE] = "no certain repetition in its power",
        [PERIOD_ALIAS] = "its power repeats faster than the boards can be read",
        [PERIOD_MIXED] = "two patterns overlap in its power",
    };

    return word[h->why];
}

static enum progress_news on_power(struct progress *p,
                                   const struct progress_period_heard *h)
{
    p->found = *h;
    return progress_inferred_judge(p, true, progress_period_why(h));
}

static void ask(struct progress *p)
{
    progress_inferred_ask(p, 0);
}

static void begin(struct progress *p)
{
    tuner_note(p->notes, true,
               "the job reports no steps: one period of its power, %.3g s, stands for a "
               "step (confidence %.2f)",
               p->found.period_s, p->found.confidence);
    progress_inferred_begin(p);
}

const struct progress_source progress_by_period = {
    .inferred = true,
    .missing = "period",
    .lost = "period is no longer seen",
    .found = "power has a period now",
    .on_power = on_power,
    .ask = ask,
    .begin = begin,
};
