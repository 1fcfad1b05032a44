#include "savingsplay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "capplay.h"
#include "tuner/tuner-table.h"
#include "virtual/virtual-loop.h"

enum { ANSWERS = 64, LOG_MAX = 1 << 22 };
#define STEP_S 1.0 /* at the reference cap */
#define LOOK_S 0.25
#define WINDOW_S 10.0
#define PEAK 1.1
#define COOL_S 40.0 /* a board's time constant */
#define WARM_S 1800.0
#define AT_REST 0.2 /* share of its power */
#define START_NS NS_PER_S

/* The only board of the tuner: limits, and none of the other values. */
struct board {
    struct board_view view;
};

/* Totals up to a moment, and the totals of the same steps at the original cap. */
struct spent {
    uint64_t at_ns;
    double steps, j, would_j, would_s;
};

struct answer {
    bool used;
    struct energy_sum_window window;
    energy_sum_fn fn;
    void *user;
};

struct world {
    const struct savings_play *p;
    struct loop *loop;
    struct tuner *tuner;
    struct loop_timer *answers, *walk, *look;
    struct answer answer[ANSWERS];
    struct board board;
    struct gpu_info info;
    struct rng rng;
    struct cap_play cap;
    double warmth; /* of the board, as the power that would hold its temperature */
    /* The current step, and its completed share. */
    uint64_t step, steps;
    double part, slow_time, slow_energy, slow_own, time_f, energy_f;
    struct curve_value now, ref; /* of a step of mean cost, at the cap and the original */
    struct spent *log;
    size_t n_log, log_cap;
    struct steps told;
    uint64_t last_step_ns, first_ns;
    bool lost; /* out of memory or space */
    bool done;
};

/* ---- what steps cost ---- */

static double grown(const struct world *w, double by)
{
    return pow(1 + by, (double)w->step / (double)w->steps);
}

/* The curve's value, with the changes of the job so far. */
static struct curve_value at_cap(const struct world *w, double cap_w)
{
    const struct record *rec = w->p->rec;
    double shape = w->p->job.shape * (double)w->step / (double)w->steps;
    struct curve_value v = curve_at(rec->curve, cap_w);

    v.time_s *= pow(v.time_s / rec->reference.time_s, shape);
    v.energy_j *= pow(v.energy_j / rec->reference.energy_j, shape);
    v.time_s *= STEP_S / rec->reference.time_s;
    v.energy_j *= STEP_S / rec->reference.time_s;
    v.power_w = v.energy_j / v.time_s;
    return v;
}

static double wander(struct rng *rng, double *slow, double sd, double memory_s)
{
    if (memory_s <= 0)
        return sd * sqrt(WINDOW_S / STEP_S) * rng_normal(rng);
    double keeps = exp(-STEP_S / memory_s);
    *slow = keeps * *slow + sd * sqrt(1 - keeps * keeps) * rng_normal(rng);
    return *slow;
}

/* Draws the factors of a new step. */
static void begin_step(struct world *w)
{
    const struct savings_job *job = &w->p->job;
    double warm_s = (double)w->step * STEP_S;
    double jump = 2 * w->step >= w->steps ? 1 + job->jump : 1;
    double t = wander(&w->rng, &w->slow_time, job->noise, job->memory_s);
    double e = wander(&w->rng, &w->slow_energy, job->noise, job->memory_s);
    double own = wander(&w->rng, &w->slow_own, job->energy_noise, job->memory_s);

    w->time_f = fmax(1 + t, 0.05) * jump * grown(w, job->drift_time);
    w->energy_f = fmax(1 + e + own, 0.05) * jump * grown(w, job->drift_energy) *
                  (1 + job->warm_energy * fmin(warm_s / WARM_S, 1));
    w->ref = at_cap(w, w->p->rec->max_w);
    w->now = at_cap(w, w_of_mw(w->cap.in_force_mw));
}

static struct spent *last(struct world *w)
{
    return &w->log[w->n_log - 1];
}

/* Runs for so long at this cap, inside one step. */
static void spend(struct world *w, double seconds, uint64_t until_ns)
{
    const struct savings_job *job = &w->p->job;
    double step_s = w->now.time_s * w->time_f;
    double power_w = w->now.energy_j * w->energy_f / step_s;
    double part = seconds / step_s, off_w = w->warmth - w->now.power_w;
    double keeps = exp(-seconds / COOL_S);
    struct spent s = *last(w);

    if (array_grow(&w->log, &w->log_cap, w->n_log, LOG_MAX) < 0) {
        w->lost = true;
        return;
    }
    s.at_ns = until_ns;
    s.steps += part;
    s.j += power_w * seconds + job->cool * off_w * COOL_S * (1 - keeps);
    s.would_j += part * w->ref.energy_j * w->energy_f;
    s.would_s += part * w->ref.time_s * w->time_f;
    w->log[w->n_log++] = s;
    w->warmth = w->now.power_w + off_w * keeps;
    w->part += part;
}

static void advance(struct world *w, uint64_t now)
{
    while (!w->lost && w->step < w->steps && last(w)->at_ns < now) {
        uint64_t at = last(w)->at_ns;
        double step_s = w->now.time_s * w->time_f;
        uint64_t end = at + ns_of_s((1 - w->part) * step_s) + 1;
        if (end > now) {
            spend(w, s_between(at, now), now);
            return;
        }
        spend(w, (1 - w->part) * step_s, end);
        w->part = 0;
        w->step++;
        w->last_step_ns = end;
        begin_step(w);
    }
}

static struct spent spent_at(const struct world *w, uint64_t at_ns)
{
    size_t low = 0, high = w->n_log - 1;

    while (low + 1 < high) {
        size_t mid = (low + high) / 2;
        if (w->log[mid].at_ns <= at_ns)
            low = mid;
        else
            high = mid;
    }
    const struct spent *a = &w->log[low], *b = &w->log[high];
    double f = b->at_ns > a->at_ns
                   ? s_between(a->at_ns, at_ns) / s_between(a->at_ns, b->at_ns)
                   : 0;
    f = fmin(fmax(f, 0), 1);
    return (struct spent){at_ns, a->steps + f * (b->steps - a->steps),
                          a->j + f * (b->j - a->j),
                          a->would_j + f * (b->would_j - a->would_j),
                          a->would_s + f * (b->would_s - a->would_s)};
}

/* ---- interface of the tuner ---- */

static struct answer *later(struct world *w)
{
    for (size_t i = 0; i < ANSWERS; i++)
        if (!w->answer[i].used) {
            w->answer[i] = (struct answer){.used = true};
            loop_timer_set(w->answers, loop_now_ns(w->loop) + NS_PER_MS, 0);
            return &w->answer[i];
        }
    return NULL;
}

static int on_answers(struct loop_timer *timer, uint64_t now, void *user)
{
    struct world *w = user;
    (void)timer;
    (void)now;

    for (size_t i = 0; i < ANSWERS; i++) {
        struct answer a = w->answer[i];
        if (!a.used)
            continue;
        w->answer[i].used = false;
        int r = a.fn(&a.window, a.user);
        if (r < 0)
            return r;
    }
    return 0;
}

static void walk_soon(struct world *w)
{
    loop_timer_set(w->walk, loop_now_ns(w->loop) + NS_PER_MS, 0);
}

static int on_walk(struct loop_timer *timer, uint64_t now, void *user)
{
    struct world *w = user;
    struct claim_told told;

    advance(w, now);
    loop_timer_set(timer, cap_play_step(&w->cap, now), 0);
    w->now = at_cap(w, w_of_mw(w->cap.in_force_mw));
    cap_play_told(&w->cap, &told);
    return tuner_on_told(w->tuner, 0, &told, "");
}

static int cap_state(void *caps, size_t board, uint32_t mw, const struct claim_way *way,
                     uw_error *err)
{
    struct world *w = caps;
    (void)board;
    (void)err;

    cap_play_state(&w->cap, mw, way, loop_now_ns(w->loop));
    walk_soon(w);
    return 0;
}

static void cap_drop(void *caps, size_t board)
{
    struct world *w = caps;
    (void)board;

    cap_play_drop(&w->cap, loop_now_ns(w->loop));
    walk_soon(w);
}

static void cap_progressed(void *caps, unsigned units)
{
    struct world *w = caps;

    cap_play_progressed(&w->cap, units, loop_now_ns(w->loop));
    walk_soon(w);
}

static void cap_look(const void *caps, size_t board, struct claim_told *ret)
{
    const struct world *w = caps;
    (void)board;

    cap_play_told(&w->cap, ret);
}

static const struct tuner_caps world_caps = {
    .state = cap_state,
    .drop = cap_drop,
    .progressed = cap_progressed,
    .look = cap_look,
};

/* The linker replaces those of node/ with these for the tuner (meson.build). */
struct board_view *__wrap_board_view(struct board *b);
void __wrap_energy_sum_mark(struct energy_sum *m, uint64_t at_ns);
int __wrap_energy_sum_window(struct energy_sum *m, uint64_t begin_ns, uint64_t end_ns,
                             energy_sum_fn fn, void *user);
bool __wrap_energy_sum_hides(const struct energy_sum *m, double step_s, double length_s);

struct board_view *__wrap_board_view(struct board *b)
{
    return &b->view;
}

void __wrap_energy_sum_mark(struct energy_sum *m, uint64_t at_ns)
{
    (void)m;
    (void)at_ns;
}

bool __wrap_energy_sum_hides(const struct energy_sum *m, double step_s, double length_s)
{
    (void)m;
    (void)step_s;
    (void)length_s;
    return false; /* the meter misses nothing */
}

/* The meter's error in J at one moment; equal for every caller. */
static double off_j(const struct world *w, uint64_t at_ns, double sd_j)
{
    struct rng rng;

    rng_init(&rng, w->p->seed * 0x9e3779b97f4a7c15ull + at_ns);
    return sd_j * rng_normal(&rng);
}

int __wrap_energy_sum_window(struct energy_sum *m, uint64_t begin_ns, uint64_t end_ns,
                             energy_sum_fn fn, void *user)
{
    struct world *w = (struct world *)m;
    struct answer *a = later(w);
    double ref_w = w->p->rec->reference.power_w;
    double end_sd_j = w->p->job.meter * WINDOW_S * ref_w / sqrt(2);

    if (!a)
        return -EAGAIN;
    advance(w, loop_now_ns(w->loop));
    double true_j = spent_at(w, end_ns).j - spent_at(w, begin_ns).j;
    double seconds = s_between(begin_ns, end_ns);
    double cap_w = w_of_mw(w->cap.in_force_mw);
    a->window = (struct energy_sum_window){
        .begin_ns = begin_ns,
        .end_ns = end_ns,
        .energy_j = true_j + off_j(w, end_ns, end_sd_j) - off_j(w, begin_ns, end_sd_j),
        .half_j = 1.96 * sqrt(2) * end_sd_j,
        .peak_w = fmin(PEAK * true_j / seconds, cap_w),
    };
    a->window.board_j[0] = a->window.energy_j;
    a->fn = fn;
    a->user = user;
    return 0;
}

/* ---- the job ---- */

static int on_look(struct loop_timer *timer, uint64_t now, void *user)
{
    struct world *w = user;
    (void)timer;

    advance(w, now);
    if (w->lost)
        return -ENOMEM;
    struct step_slot slot = {.pid = 1,
                             .steps = w->step,
                             .last_step_ns = w->last_step_ns,
                             .phase = UW_PHASE_TRAIN,
                             .live = true};
    (void)steps_feed(&w->told, &slot, 1, now);
    int r = tuner_on_steps(w->tuner, &w->told, now);
    if (!w->first_ns && w->tuner->regimes.stretch.open)
        w->first_ns = w->tuner->regimes.stretch.from.at_ns;
    if (r >= 0 && w->step >= w->steps) {
        loop_timer_set(w->look, UINT64_MAX, 0);
        loop_stop(w->loop, 0);
    }
    return r;
}

static int on_done(struct tuner *t, void *user)
{
    struct world *w = user;
    (void)t;

    w->done = true;
    loop_stop(w->loop, 0);
    return 0;
}

static void on_note(const char *text, bool important, void *user)
{
    struct world *w = user;

    if (w->p->trace)
        (void)fprintf(w->p->trace, "%9.1f s %c %s\n",
                      s_between(START_NS, loop_now_ns(w->loop)), important ? '*' : ' ',
                      text);
}

static void world_fini_p(struct world *w)
{
    tuner_free(w->tuner);
    loop_timer_free(w->look);
    loop_timer_free(w->walk);
    loop_timer_free(w->answers);
    loop_free(w->loop);
    free(w->log);
}

static int world_init(struct world *w, const struct savings_play *p, uw_error *err)
{
    uint32_t max_mw = mw_of_w(p->rec->max_w);

    w->p = p;
    cap_play_init(&w->cap, max_mw, MW_PER_W, START_NS);
    w->steps = (uint64_t)fmax(ceil(p->length_s / STEP_S), 1);
    rng_init(&w->rng, p->seed);
    steps_init(&w->told);
    (void)snprintf(w->info.uuid, sizeof w->info.uuid, "GPU-savings");
    w->board.view = (struct board_view){
        .info = &w->info,
        .has_limits = true,
        .limits = {mw_of_w(p->rec->min_w), max_mw, max_mw},
    };
    int r = array_grow(&w->log, &w->log_cap, 0, LOG_MAX);
    if (r < 0)
        return fail(err, r, "out of memory");
    w->log[w->n_log++] = (struct spent){.at_ns = START_NS};
    w->last_step_ns = START_NS;
    begin_step(w);
    w->warmth = AT_REST * w->now.power_w;
    return loop_new_virtual(START_NS, 1700000000, &w->loop, err);
}

static int start(struct world *w, uw_error *err)
{
    const struct savings_play *p = w->p;
    struct board *boards[] = {&w->board};
    struct tuner_opts opts = {
        .loop = w->loop,
        .caps = &world_caps,
        .caps_of = w,
        .meters = (struct energy_sum *)w,
        .boards = boards,
        .original_mw = &w->board.view.limits.max_mw,
        .n = 1,
        .search = true,
        .goal = p->goal,
        .checks_share = p->checks_share,
        .note = on_note,
        .user = w,
    };
    int r = tuner_new(&opts, &w->tuner, err);

    if (r >= 0)
        r = loop_timer_new(w->loop, UINT64_MAX, 0, on_answers, w, &w->answers, err);
    if (r >= 0)
        r = loop_timer_new(w->loop, UINT64_MAX, 0, on_walk, w, &w->walk, err);
    if (r >= 0)
        r = loop_timer_new(w->loop, START_NS + ns_of_s(LOOK_S), ns_of_s(LOOK_S), on_look,
                           w, &w->look, err);
    if (r >= 0)
        r = loop_run(w->loop, err);
    if (r >= 0)
        r = tuner_finish(w->tuner, on_done, w);
    if (r >= 0 && !w->done)
        r = loop_run(w->loop, err);
    return r;
}

/* The saving of all steps by the first regime's reference, as if nothing had changed
 * since.
 */
static struct savings_word by_the_start(const struct savings *a, double steps, double j)
{
    double would_j = steps * savings_mean_energy(&a->reference);

    if (a->reference.windows == 0)
        return (struct savings_word){0};
    return (struct savings_word){true, 1 - j / would_j,
                                 1.96 * savings_mean_energy_rse(&a->reference)};
}

static void score(struct world *w, struct savings_score *ret)
{
    const struct tuner_report *t = tuner_report(w->tuner);
    const struct savings_saved *s = &t->saved;
    uint64_t first_ns = w->first_ns ? w->first_ns : START_NS;
    struct spent a = spent_at(w, first_ns), b = spent_at(w, w->last_step_ns);
    double job_s = s_between(START_NS, w->last_step_ns);
    double took_s = s_between(first_ns, w->last_step_ns);

    *ret = (struct savings_score){
        .saved = {s->known, s->fraction, s->half},
        .slower = {s->known, s->slowdown, s->slowdown_half},
        .start_saved = by_the_start(t->account, s->steps, b.j - a.j),
        .model_saved = {t->modelled, t->model_saving, 0},
        .true_saved = 1 - (b.j - a.j) / (b.would_j - a.would_j),
        .true_slower = took_s / (b.would_s - a.would_s),
        .job_s = job_s,
        .visits_s = t->checks.spent_s,
        .start_s = t->account[0].sum[STRETCH_REFERENCE].time_s,
        .visits = t->checks.n,
        .used_j = b.j - a.j,
        .would_j = b.would_j - a.would_j,
        .told_part = s->steps / fmax(b.steps - a.steps, 1),
    };
}

int savings_play(const struct savings_play *p, struct savings_score *ret, uw_error *err)
{
    __attribute__((cleanup(world_fini_p))) struct world w = {0};
    int r = world_init(&w, p, err);

    if (r >= 0)
        r = start(&w, err);
    if (r < 0)
        return fail_in(err, r, "%s", p->rec->name);
    score(&w, ret);
    return 0;
}
