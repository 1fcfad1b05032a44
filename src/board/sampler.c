#include "board/sampler.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "board/limited.h"

#define BEYOND_LIMIT 1.1 /* times its highest limit, which a board may exceed briefly */

enum {
    WAITS_MAX = 16,
    FED_MAX_S = 4, /* see sampler_fed(); a board may never answer */
    REST_MS = 1000,
    SEARCH_MS = 100,
    LISTEN_MS = 50, /* to find a period in the power of a job that reports no steps */
    METER_PERIOD_MS = 50,
    GRID_MS = 48,       /* see shared_moment() */
    HEARD_MS = 500,     /* longest interval of the counter with a listener */
    HELD_MS = 2000,     /* longest interval of the limits with a cap in force … */
    HOT_MS = 1000,      /* … and, of the temperature too, under a limit on it */
    RETRY_MS = 1000,    /* after a failed call */
    LEAST_GAP_US = 500, /* between calls on one board */
    HOLD_MS = 1000,     /* longest delay of samples to the loop … */
    HOLD_HELD_MS = 500, /* … with a cap in force or a limit on temperature */
    SOON_GAP_MS = 100,  /* between samples of an idle board with sampler_soon() */
    DENSE_MS = 50,      /* longest period with sampler_dense() */
    LATE_MS = 2000,     /* longest wait for samples after a window; real time */
    COSTS = 8,          /* calls whose shortest is taken as the counter's cost */
    COST_SHARE = 50,    /* least interval of its calls, in costs */
};

/* Groups of values that are read rarely, and their intervals at each rate. */
enum group { GROUP_POWER, GROUP_ENERGY, GROUP_LIMITS, GROUP_STATE, GROUP_CLOCKS, GROUPS };
static const uint32_t group_ms[][GROUPS] = {
    /* GROUP_POWER: if the meter uses the counter; GROUP_ENERGY: if it does not */
    [SAMPLER_ALL] = {0, 0, 1000, 1000, 1000},
    [SAMPLER_REST] = {10000, 10000, 10000, 10000, 30000},
    [SAMPLER_JOB] = {1000, 5000, 2000, 2000, 4000},
    [SAMPLER_SEARCH] = {2000, 5000, 3000, 6000, 12000},
};

struct probe {               /* one board */
    struct sampler *sampler; /* NULL: freed while a call was under way */
    struct board *board;
    struct meter *meter;
    struct loop_timer *timer;
    bool busy; /* a call is under way, or waits for its time in the board's thread */
    bool out;  /* does not count in windows */
    bool rest; /* is not sampled */
    enum sampler_rate rate;
    bool held;
    bool hot;             /* temperature and limits are read each second */
    bool clock;           /* clock and utilisation are read with the limits */
    struct sensor sensor; /* see sampler_sensor() */
    bool instant;         /* the meter uses the instant reading, else the plain one */
    uint64_t due_ns[GROUPS];
    struct plan { /* the rounds of the call under way */
        uint32_t asked;
        uint64_t was_due_ns[GROUPS]; /* before this round and later ones */
    } plan[BOARD_ROUNDS_MAX];
    size_t n_planned, n_taken;
    uint64_t at_ns;          /* time of the first round */
    bool shared;             /* at_ns is a shared moment */
    uint64_t soon_ns;        /* time of sampler_soon() and sampler_around(); 0: none */
    uint64_t then_ns;        /* second time of sampler_around(); 0: none */
    uint64_t dense_ns;       /* end of sampler_dense(); 0: none */
    uint64_t cost_ns[COSTS]; /* costs of the last calls that read the counter */
    unsigned n_costs;
    struct binding_log binding;
    struct sampler_ear *ears;
    struct sampler_now now;
};

struct wait {
    bool used;
    uint64_t begin_ns, end_ns, late_ns;
    sampler_window_fn fn;
    void *user;
    size_t next; /* board whose meter is queried next */
    struct meter_result *results;
    double peak_w;
    int r;
    uw_error error;
};

struct sampler {
    struct loop *loop;
    uint64_t began_ns;
    struct probe **probe;
    size_t n;
    struct wait wait[WAITS_MAX];
    struct loop_timer *late;
    uint64_t wait_ns;       /* LATE_MS in the loop's time */
    struct window_ask fold; /* query of one board for `folding` */
    struct wait *folding;   /* NULL: no query is under way */
    struct sampler_opts opts;
};

static int answer_waits(struct sampler *s);
static int on_folded(struct window_ask *ask, void *user);

static void pace(struct probe *p);

static bool is_heard(const struct probe *p)
{
    bool heard = false;

    for (const struct sampler_ear *e = p->ears; e; e = e->next)
        heard |= !e->overhears;
    return heard;
}

static bool is_listened(const struct probe *p)
{
    bool listened = false;

    for (const struct sampler_ear *e = p->ears; e; e = e->next)
        listened |= e->listens;
    return listened;
}

static uint64_t rate_period(const struct probe *p)
{
    const struct sampler_opts *o = &p->sampler->opts;
    uint64_t search = o->search_ns ? o->search_ns : SEARCH_MS * NS_PER_MS;

    if (p->rate == SAMPLER_REST)
        return o->rest_ns ? o->rest_ns : REST_MS * NS_PER_MS;
    if (p->rate == SAMPLER_SEARCH)
        return is_listened(p) && search > LISTEN_MS * NS_PER_MS ? LISTEN_MS * NS_PER_MS
                                                                : search;
    return o->period_ns ? o->period_ns : METER_PERIOD_MS * NS_PER_MS;
}

static uint64_t period_of(const struct probe *p)
{
    uint64_t period = rate_period(p);

    if (p->dense_ns && period > DENSE_MS * NS_PER_MS)
        period = DENSE_MS * NS_PER_MS;
    return p->hot && period > HOT_MS * NS_PER_MS ? HOT_MS * NS_PER_MS : period;
}

/* A requested sample comes some time after the last one. */
static uint64_t not_before(const struct probe *p, uint64_t last_ns, uint64_t at_ns)
{
    uint64_t gap = p->rate == SAMPLER_REST ? SOON_GAP_MS : DENSE_MS;
    uint64_t soonest = last_ns + gap * NS_PER_MS;

    return at_ns > soonest ? at_ns : soonest;
}

/* Hash of k. */
static uint64_t scatter(uint64_t k)
{
    uint64_t x = (k + 1) * 0x9e3779b97f4a7c15u;

    return (x ^ x >> 31) * 0xbf58476d1ce4e5b9u >> 33;
}

/* The next sampling time that all samplers share, so that the node wakes up once for all
 * boards.  There is one in every n * GRID_MS; the times for any n are a subset of those
 * for n = 1.  Jitter, and a grid out of step with counters of 100 ms, avoid aliasing.
 */
static uint64_t shared_moment(uint64_t at, uint64_t n)
{
    static const uint64_t grid = GRID_MS * NS_PER_MS;
    uint64_t slots = n > 1 ? n * 6 / 10 : 1;

    for (uint64_t k = at / (n * grid);; k++) {
        uint64_t slot = k * n + scatter(k) % slots;
        uint64_t moment = slot * grid + scatter(slot) % (grid / 10 * 6);
        if (moment >= at)
            return moment;
    }
}

/* Whether shared times replace the meter's: it uses the counter, which loses nothing
 * between samples, and does not search for a counter edge.  A listener needs uneven
 * times: the shared ones lie on a grid, against which a sensor's updates beat.
 */
static bool shares(const struct probe *p)
{
    struct meter_state state;

    meter_state(p->meter, &state);
    return p->rate != SAMPLER_ALL && !is_listened(p) && state.counter_used &&
           !state.counter_stuck && !state.intent && period_of(p) >= GRID_MS * NS_PER_MS;
}

static uint64_t next_shared(const struct probe *p, uint64_t now)
{
    uint64_t period = period_of(p), n = period / (GRID_MS * NS_PER_MS);

    return shared_moment(now + period - n * GRID_MS * NS_PER_MS * 11 / 20, n);
}

static void ask(struct probe *p, uint64_t at_ns, bool shared);

/* Passes the next rounds to the board's thread, which waits for their times: the loop
 * wakes up only for the last result.
 */
static void schedule(struct probe *p)
{
    if (p->rest)
        return;
    uint64_t now = loop_now_ns(p->sampler->loop);
    uint64_t at = meter_next(p->meter, now);
    bool shared = shares(p);

    if (shared)
        at = next_shared(p, now);
    if (p->soon_ns && p->soon_ns < at)
        at = p->soon_ns;
    if (at < now + LEAST_GAP_US * NS_PER_US)
        at = now + LEAST_GAP_US * NS_PER_US;
    if (p->now.failures > 0 && at < now + RETRY_MS * NS_PER_MS)
        at = now + RETRY_MS * NS_PER_MS;
    ask(p, at, shared);
}

/* The values that the planned rounds from i on would have read are due again. */
static void unplan(struct probe *p, size_t i)
{
    for (size_t g = 0; g < GROUPS && i < p->n_planned; g++)
        if (p->plan[i].was_due_ns[g] < p->due_ns[g])
            p->due_ns[g] = p->plan[i].was_due_ns[g];
}

/* Withdraws the call that waits for its time.  False: the board is in a call, and
 * schedule() follows when it ends; no other round follows before that.
 */
static bool take_back(struct probe *p)
{
    if (!p->busy)
        return true;
    if (!board_withdraw(p->board))
        return false;
    p->busy = false;
    unplan(p, 0);
    return true;
}

static void plan_again(struct probe *p)
{
    if (take_back(p))
        schedule(p);
}

/* The values of the next round may have changed, or whether more rounds may follow it. */
static void look_again(struct probe *p)
{
    if (p->busy && !p->rest && take_back(p))
        ask(p, p->at_ns, p->shared);
}

/* The cost of reading the counter, 0 until it is known.  The host may delay any call, so
 * it is the shortest of the last ones.
 */
static uint64_t counter_cost_ns(const struct probe *p)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < COSTS; i++)
        least = p->cost_ns[i] < least ? p->cost_ns[i] : least;
    return p->n_costs >= COSTS ? least : 0;
}

static void note_cost(struct probe *p, const struct gpu_sample *g)
{
    if (g->has & GPU_HAS_ENERGY)
        p->cost_ns[p->n_costs++ % COSTS] = g->energy_at_ns - g->energy_began_ns;
}

static void feed(struct probe *p, const struct gpu_sample *g)
{
    struct meter_sample m = {
        .power_began_ns = g->began_ns,
        .power_at_ns = g->at_ns,
        .counter_began_ns = g->energy_began_ns,
        .counter_at_ns = g->energy_at_ns,
        .power_w = g->power_w,
        .instant_w = g->instant_w,
        .average_w = g->average_w,
        .counter = g->energy_mj,
    };
    if (g->has & GPU_HAS_POWER)
        m.has |= METER_HAS_POWER;
    if (g->has & GPU_HAS_INSTANT)
        m.has |= METER_HAS_INSTANT;
    if (g->has & GPU_HAS_AVERAGE)
        m.has |= METER_HAS_AVERAGE;
    if (g->has & GPU_HAS_ENERGY)
        m.has |= METER_HAS_COUNTER;
    uw_error err;
    int r = meter_feed(p->meter, &m, &err);
    if (r < 0) {
        p->now.failures++;
        p->now.error = err;
    }
}

/* Updates now->last; values that this round did not request stay. */
static void merge(struct sampler_now *now, const struct gpu_sample *g, uint32_t asked)
{
    struct gpu_sample *last = &now->last, old = *last;
    uint32_t keep = old.has & ~asked & ~g->has;

    *last = *g;
    if (asked & GPU_HAS_ENFORCED)
        now->limits = *g;
    last->has |= keep;
    if (keep & GPU_HAS_POWER)
        last->power_w = old.power_w;
    if (keep & GPU_HAS_INSTANT)
        last->instant_w = old.instant_w;
    if (keep & GPU_HAS_AVERAGE)
        last->average_w = old.average_w;
    if (keep & GPU_HAS_ENERGY) {
        last->energy_mj = old.energy_mj;
        last->energy_began_ns = old.energy_began_ns;
        last->energy_at_ns = old.energy_at_ns;
    }
    if (keep & GPU_HAS_ENFORCED)
        last->enforced_mw = old.enforced_mw;
    if (keep & GPU_HAS_REQUESTED)
        last->requested_mw = old.requested_mw;
    if (keep & GPU_HAS_UTIL) {
        last->util_gpu = old.util_gpu;
        last->util_mem = old.util_mem;
    }
    if (keep & GPU_HAS_TEMP)
        last->temp_c = old.temp_c;
    if (keep & GPU_HAS_CLOCKS) {
        last->sm_mhz = old.sm_mhz;
        last->mem_mhz = old.mem_mhz;
    }
    if (keep & GPU_HAS_REASONS)
        last->reasons = old.reasons;
}

/* A sample that began at `began_ns` (0: it failed) has been taken. */
static void next_soon(struct probe *p, uint64_t began_ns)
{
    p->soon_ns = 0;
    if (began_ns && p->then_ns > began_ns) {
        p->soon_ns = not_before(p, began_ns, p->then_ns);
        p->due_ns[GROUP_POWER] = p->due_ns[GROUP_ENERGY] = 0;
    }
    p->then_ns = 0;
}

static int probe_on_sample(struct board *b, int r, const struct gpu_sample *g,
                           const uw_error *err, void *user)
{
    struct probe *p = user;
    (void)b;

    if (!p->sampler || r == -ECANCELED)
        return 0;
    uint32_t asked = p->plan[p->n_taken++].asked;
    if (r < 0 || g->began_ns >= p->soon_ns)
        next_soon(p, r == 0 ? g->began_ns : 0);
    if (r < 0) {
        p->now.failures++;
        p->now.error = *err;
    } else {
        p->now.failures = 0;
        merge(&p->now, g, asked);
        note_cost(p, g);
        limited_note(&p->binding, g);
        feed(p, g);
        for (struct sampler_ear *e = p->ears; e; e = e->next)
            e->fn(e->board, g, e->user);
    }
    return answer_waits(p->sampler);
}

static void probe_on_sampled(struct board *b, int r, size_t n, void *user)
{
    struct probe *p = user;
    (void)b;

    p->busy = false;
    if (!p->sampler) {
        free(p);
        return;
    }
    unplan(p, r < 0 ? n + 1 : n); /* the failed round counts as tried */
    if (r != -ECANCELED)
        schedule(p);
}

static bool due(struct probe *p, enum group g, uint64_t now_ns)
{
    if (now_ns < p->due_ns[g])
        return false;
    uint32_t ms = group_ms[p->rate][g];
    if (g == GROUP_LIMITS && p->held && ms > HELD_MS)
        ms = HELD_MS;
    if ((g == GROUP_LIMITS || g == GROUP_STATE) && p->hot && ms > HOT_MS)
        ms = HOT_MS;
    p->due_ns[g] = now_ns + ms * NS_PER_MS;
    return true;
}

/* Whether to read the counter in this round.  rarely: it gives little more information
 * than power does, or power is a call of its own.  calm: the time of no reading matters
 * more than the cost.
 */
static bool counter_due(struct probe *p, bool rarely, bool calm, uint64_t now_ns)
{
    uint64_t ns = calm ? counter_cost_ns(p) * COST_SHARE : 0;

    if (!rarely && ns == 0)
        return true;
    if (now_ns < p->due_ns[GROUP_ENERGY])
        return false;
    if (rarely) {
        uint32_t ms = group_ms[p->rate][GROUP_ENERGY];
        uint64_t rare = (ms > HEARD_MS && is_heard(p) ? HEARD_MS : ms) * NS_PER_MS;
        ns = rare > ns ? rare : ns;
    }
    p->due_ns[GROUP_ENERGY] = now_ns + ns;
    return true;
}

/* The values to read in this round. */
static uint32_t wanted(struct probe *p, uint64_t now_ns)
{
    struct meter_state state;
    uint32_t want = 0;

    if (p->rate == SAMPLER_ALL)
        want = GPU_HAS_POWER | GPU_HAS_INSTANT | GPU_HAS_AVERAGE | GPU_HAS_ENERGY;
    else {
        meter_state(p->meter, &state);
        bool counts = state.counter_used && !state.counter_stuck;
        /* The plain reading is a call per round for listeners: read the counter rarely,
         * except while power stands for steps: windows end where nobody foresaw it.
         */
        bool calm = counts && !state.intent;
        bool spare = calm && is_heard(p) && !is_listened(p) && !p->instant;
        bool rarely = (state.counter_fed || spare) && !p->dense_ns;
        if (counter_due(p, rarely, calm, now_ns))
            want |= GPU_HAS_ENERGY;
        /* Instant and average power cost little; the plain one is a call of its own. */
        if (p->instant && (!counts || p->rate != SAMPLER_REST))
            want |= GPU_HAS_INSTANT | GPU_HAS_AVERAGE;
        else if (!counts || is_heard(p) || due(p, GROUP_POWER, now_ns))
            want |= p->instant ? GPU_HAS_INSTANT | GPU_HAS_AVERAGE : GPU_HAS_POWER;
    }
    if (due(p, GROUP_LIMITS, now_ns))
        want |= GPU_HAS_ENFORCED | GPU_HAS_REQUESTED | GPU_HAS_REASONS |
                (p->rate == SAMPLER_SEARCH ? GPU_HAS_LIMITED : 0) |
                (p->clock ? GPU_HAS_CLOCKS | GPU_HAS_UTIL : 0);
    want |= limited_wants(board_view(p->board)->info, p->rate == SAMPLER_SEARCH);
    if (due(p, GROUP_STATE, now_ns))
        want |= GPU_HAS_UTIL | GPU_HAS_TEMP;
    if (due(p, GROUP_CLOCKS, now_ns))
        want |= GPU_HAS_CLOCKS;
    return want;
}

/* Whether no sample is needed before the loop wakes up anyway. */
static bool may_hold(const struct probe *p)
{
    bool may = !p->dense_ns && !p->soon_ns && !p->then_ns && p->now.failures == 0;

    for (const struct sampler_ear *e = p->ears; e; e = e->next)
        may &= e->patient;
    for (size_t i = 0; i < WAITS_MAX; i++)
        may &= !p->sampler->wait[i].used;
    return may;
}

static size_t plan_round(struct probe *p, struct board_round *round, uint64_t at_ns)
{
    struct plan *plan = &p->plan[p->n_planned];

    memcpy(plan->was_due_ns, p->due_ns, sizeof p->due_ns);
    plan->asked = wanted(p, at_ns);
    round[p->n_planned] = (struct board_round){.at_ns = at_ns, .want = plan->asked};
    return ++p->n_planned;
}

/* shared: at_ns is a shared moment.  The rounds up to the next multiple of HOLD_MS then
 * become one call, so that the loop wakes up once for those of all boards: in the last
 * half of each second, when the node's tick is due.
 */
static void ask(struct probe *p, uint64_t at_ns, bool shared)
{
    const uint64_t hold = (p->held || p->hot ? HOLD_HELD_MS : HOLD_MS) * NS_PER_MS;
    const uint64_t end = (at_ns / hold + 1) * hold;
    struct board_round round[BOARD_ROUNDS_MAX];

    if (p->dense_ns && at_ns >= p->dense_ns) {
        p->dense_ns = 0;
        meter_pace(p->meter, period_of(p));
    }
    p->n_planned = p->n_taken = 0;
    p->at_ns = at_ns;
    p->shared = shared;
    size_t n = plan_round(p, round, at_ns);
    if (shared && may_hold(p))
        while (n < BOARD_ROUNDS_MAX && (at_ns = next_shared(p, at_ns)) < end)
            n = plan_round(p, round, at_ns);
    int r = board_sample_at(p->board, round, n, probe_on_sample, probe_on_sampled, p);
    p->busy = r >= 0;
    loop_timer_set(p->timer, UINT64_MAX, 0);
    if (r >= 0)
        return;
    p->now.failures++;
    (void)fail(&p->now.error, r, "too many calls wait for this board");
    loop_timer_set(p->timer, loop_now_ns(p->sampler->loop) + RETRY_MS * NS_PER_MS, 0);
}

static int probe_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct probe *p = user;
    (void)timer;

    if (!p->rest && take_back(p))
        ask(p, now_ns, false);
    return 0;
}

/* ---- windows ---- */

static bool window_ready(const struct sampler *s, const struct wait *w)
{
    for (size_t i = 0; i < s->n; i++) {
        struct meter_state state;
        if (s->probe[i]->out)
            continue;
        meter_state(s->probe[i]->meter, &state);
        if (state.last_ns < meter_ready(s->probe[i]->meter, w->end_ns))
            return false;
    }
    return true;
}

static int window_answer(struct sampler *s, const struct wait *w)
{
    struct sampler_window out = {
        .begin_ns = w->begin_ns,
        .end_ns = w->end_ns,
        .n = s->n,
        .board = w->results,
        .binding = BINDING_NONE,
    };
    double half2 = 0;

    if (w->r < 0) {
        out.r = w->r;
        out.error = w->error;
        return w->fn(s, &out, w->user);
    }
    for (size_t i = 0; i < s->n; i++) {
        out.energy_j += w->results[i].energy_j;
        half2 += w->results[i].half_j * w->results[i].half_j;
        out.why |= w->results[i].why;
        if (!s->probe[i]->out)
            out.binding =
                binding_both(out.binding, binding_within(&s->probe[i]->binding,
                                                         w->begin_ns, w->end_ns));
    }
    out.peak_w = w->peak_w;
    out.half_j = sqrt(half2);
    out.power_w = out.energy_j / s_between(w->begin_ns, w->end_ns);
    return w->fn(s, &out, w->user);
}

/* Queries the meter of the window's next board, in a worker if the query may take long.
 * The loop runs between two queries.
 */
static void window_step(struct sampler *s, struct wait *w)
{
    struct probe *p = s->probe[w->next++];
    double peak;

    if (p->out)
        return;
    w->r = meter_window_known(p->meter, w->begin_ns, w->end_ns, &w->results[w->next - 1],
                              &w->error);
    if (w->r == METER_E_FOLDS && s->opts.folds) {
        w->r = 0;
        s->fold = (struct window_ask){.meter = p->meter,
                                      .begin_ns = w->begin_ns,
                                      .end_ns = w->end_ns,
                                      .done = on_folded,
                                      .user = s};
        s->folding = w;
        window_worker_add(s->opts.folds, &s->fold);
        return;
    }
    if (w->r == METER_E_FOLDS)
        w->r = meter_window(p->meter, w->begin_ns, w->end_ns, &w->results[w->next - 1],
                            &w->error);
    if (w->r < 0)
        w->r = fail_in(&w->error, w->r, "%s", board_view(p->board)->info->uuid);
    else if (meter_peak(p->meter, w->begin_ns, w->end_ns, &peak, NULL) == 0 &&
             peak > w->peak_w)
        w->peak_w = peak;
}

static int on_folded(struct window_ask *ask, void *user)
{
    struct sampler *s = user;
    struct wait *w = s->folding;
    const struct probe *p = s->probe[w->next - 1];

    s->folding = NULL;
    w->r = ask->r;
    if (ask->r < 0) {
        w->error = ask->error;
        w->r = fail_in(&w->error, w->r, "%s", board_view(p->board)->info->uuid);
    } else {
        w->results[w->next - 1] = ask->result;
        w->peak_w = fmax(w->peak_w, ask->peak_w);
    }
    return answer_waits(s);
}

/* Takes one step for the first window that is ready or late. */
static int answer_one(struct sampler *s, uint64_t now, bool *ret_more)
{
    if (s->folding)
        return 0;
    for (size_t i = 0; i < WAITS_MAX; i++) {
        struct wait *w = &s->wait[i];
        if (!w->used || !(w->next > 0 || loop_waited(&w->late_ns, now, s->wait_ns) ||
                          window_ready(s, w)))
            continue;
        *ret_more = true;
        if (w->next < s->n && w->r >= 0) {
            window_step(s, w);
            *ret_more = !s->folding;
            return 0;
        }
        struct wait done = *w;
        *w = (struct wait){0};
        int r = window_answer(s, &done);
        free(done.results);
        return r;
    }
    return 0;
}

/* Takes one step that is due, and sets the timer for the next one. */
static int answer_waits(struct sampler *s)
{
    uint64_t now = loop_now_ns(s->loop), next = UINT64_MAX;
    bool more = false;

    int r = answer_one(s, now, &more);
    if (r < 0)
        return r;
    for (size_t i = 0; i < WAITS_MAX && !more && !s->folding; i++)
        if (s->wait[i].used && s->wait[i].late_ns < next)
            next = s->wait[i].late_ns;
    loop_timer_set(s->late, more ? now : next, 0);
    return 0;
}

static int sampler_on_late(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns;
    return answer_waits(user);
}

int sampler_window(struct sampler *s, uint64_t begin_ns, uint64_t end_ns,
                   sampler_window_fn fn, void *user)
{
    for (size_t i = 0; i < WAITS_MAX; i++) {
        struct wait *w = &s->wait[i];
        if (w->used)
            continue;
        uint64_t now = loop_now_ns(s->loop), ready = end_ns > now ? end_ns : now;
        for (size_t k = 0; k < s->n; k++) {
            uint64_t at = meter_ready(s->probe[k]->meter, end_ns);
            if (at > ready)
                ready = at;
        }
        struct meter_result *results = calloc(s->n ? s->n : 1, sizeof *results);
        if (!results)
            return -ENOMEM;
        *w = (struct wait){
            .used = true,
            .results = results,
            .begin_ns = begin_ns,
            .end_ns = end_ns,
            .late_ns = ready + s->wait_ns,
            .fn = fn,
            .user = user,
        };
        loop_timer_set(s->late, now, 0);
        for (size_t k = 0; k < s->n; k++)
            look_again(s->probe[k]); /* samples that are delayed are needed now */
        return 0;
    }
    return -EAGAIN;
}

void sampler_forget(struct sampler *s, const void *user)
{
    for (size_t i = 0; i < WAITS_MAX; i++) {
        struct wait *w = &s->wait[i];
        if (!w->used || w->user != user)
            continue;
        if (s->folding == w) {
            window_worker_forget(s->opts.folds, &s->fold);
            s->folding = NULL;
            loop_timer_set(s->late, loop_now_ns(s->loop), 0);
        }
        free(w->results);
        *w = (struct wait){0};
    }
}

void sampler_mark(struct sampler *s, uint64_t at_ns)
{
    for (size_t i = 0; i < s->n; i++) {
        meter_mark(s->probe[i]->meter, at_ns);
        plan_again(s->probe[i]);
    }
}

void sampler_dense(struct sampler *s, uint64_t until_ns)
{
    for (size_t i = 0; i < s->n; i++) {
        struct probe *p = s->probe[i];
        bool begins = !p->dense_ns && p->rate != SAMPLER_REST;
        if (p->dense_ns || begins)
            p->dense_ns = until_ns;
        if (begins)
            pace(p);
    }
}

static void want_soon(struct probe *p, uint64_t at_ns)
{
    if (!p->soon_ns || at_ns < p->soon_ns)
        p->soon_ns = at_ns;
    p->due_ns[GROUP_POWER] = p->due_ns[GROUP_ENERGY] = 0;
    plan_again(p);
}

void sampler_soon(struct sampler *s, uint64_t at_ns)
{
    for (size_t i = 0; i < s->n; i++) {
        struct probe *p = s->probe[i];
        if (p->rate == SAMPLER_REST)
            want_soon(p, not_before(p, p->now.last.at_ns, at_ns));
    }
}

void sampler_around(struct sampler *s, uint64_t at_ns, uint64_t then_ns)
{
    for (size_t i = 0; i < s->n; i++) {
        struct probe *p = s->probe[i];
        if (p->rate == SAMPLER_ALL) /* has the same interval */
            continue;
        want_soon(p, not_before(p, p->now.last.at_ns, at_ns));
        p->then_ns = then_ns > p->then_ns ? then_ns : p->then_ns;
    }
}

/* ---- set-up ---- */

static int probe_new(struct sampler *s, struct board *board,
                     const struct sampler_opts *opts, uw_error *err)
{
    const struct board_view *view = board_view(board);
    const struct gpu_info *info = view->info;
    struct probe *p = calloc(1, sizeof *p);
    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    s->probe[s->n++] = p;
    struct meter_opts m = {.period_ns = opts->period_ns,
                           .seed = opts->seed ^ info->index,
                           .history_s = opts->history_s};
    if (view->has_limits) /* 0 if there are none, as for a processor */
        m.most_w = BEYOND_LIMIT * w_of_mw(view->limits.max_mw);

    p->sampler = s;
    p->board = board;
    board_sensors(board, &m.model);
    if (!(info->abilities & GPU_CAN_INSTANT)) /* older driver: use the plain reading */
        m.model.instant = (struct sensor){0};
    p->instant = m.model.instant.update_s > 0;
    p->sensor = p->instant ? m.model.instant : m.model.power;
    int r = meter_new(&m, &p->meter, err);
    if (r < 0)
        return fail_in(err, r, "%s", info->uuid);
    return loop_timer_new(s->loop, loop_now_ns(s->loop), 0, probe_on_timer, p, &p->timer,
                          err);
}

int sampler_new(struct loop *loop, struct board *const *boards, size_t n,
                const struct sampler_opts *opts, struct sampler **ret, uw_error *err)
{
    auto_(sampler_free) struct sampler *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->loop = loop;
    s->wait_ns = (uint64_t)(LATE_MS * 1e6 * fmax(1, loop_speed(loop)));
    s->opts = *opts;
    s->began_ns = loop_now_ns(loop);
    s->probe = calloc(n ? n : 1, sizeof *s->probe);
    if (!s->probe)
        return fail(err, -ENOMEM, "out of memory");
    int r = loop_timer_new(loop, UINT64_MAX, 0, sampler_on_late, s, &s->late, err);
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = probe_new(s, boards[i], opts, err);
    }
    if (r < 0)
        return r;
    *ret = take(s);
    return 0;
}

void sampler_free(struct sampler *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n; i++) {
        struct probe *p = s->probe[i];
        loop_timer_free(p->timer);
        meter_free(p->meter);
        if (!take_back(p))
            p->sampler = NULL; /* probe_on_sampled() frees p */
        else
            free(p);
    }
    loop_timer_free(s->late);
    if (s->folding)
        window_worker_forget(s->opts.folds, &s->fold);
    for (size_t i = 0; i < WAITS_MAX; i++)
        free(s->wait[i].results);
    free(s->probe);
    free(s);
}

void sampler_count_in(struct sampler *s, size_t i, bool in)
{
    if (i < s->n)
        s->probe[i]->out = !in;
}

/* After a change of rate, periods or listeners. */
static void pace(struct probe *p)
{
    meter_pace(p->meter, period_of(p));
    plan_again(p);
}

void sampler_rate(struct sampler *s, size_t i, enum sampler_rate rate, bool held)
{
    if (i >= s->n || (s->probe[i]->rate == rate && s->probe[i]->held == held))
        return;
    struct probe *p = s->probe[i];
    p->rate = rate;
    p->held = held;
    for (size_t g = 0; g < GROUPS; g++) /* times planned at the old rate may be far off */
        p->due_ns[g] = 0;
    pace(p);
}

void sampler_watch_clock(struct sampler *s, size_t i, bool watch)
{
    if (i >= s->n || s->probe[i]->clock == watch)
        return;
    s->probe[i]->clock = watch;
    look_again(s->probe[i]);
}

void sampler_watch_heat(struct sampler *s, size_t i, bool watch)
{
    if (i >= s->n || s->probe[i]->hot == watch)
        return;
    s->probe[i]->hot = watch;
    pace(s->probe[i]);
}

void sampler_periods(struct sampler *s, uint64_t period_ns, uint64_t rest_ns,
                     uint64_t search_ns)
{
    s->opts.period_ns = period_ns;
    s->opts.rest_ns = rest_ns;
    s->opts.search_ns = search_ns;
    for (size_t i = 0; i < s->n; i++)
        pace(s->probe[i]);
}

void sampler_refresh(struct sampler *s, size_t i)
{
    struct probe *p = i < s->n ? s->probe[i] : NULL;

    if (!p || p->rest)
        return;
    for (size_t g = 0; g < GROUPS; g++)
        p->due_ns[g] = 0;
    if (take_back(p))
        loop_timer_set(p->timer, loop_now_ns(s->loop), 0);
    else
        p->soon_ns = loop_now_ns(s->loop);
}

void sampler_detach(struct sampler *s, size_t i, bool away)
{
    struct probe *p = i < s->n ? s->probe[i] : NULL;

    if (!p || p->rest == away)
        return;
    p->rest = away;
    (void)take_back(p);
    loop_timer_set(p->timer, UINT64_MAX, 0);
    if (away)
        return;
    p->now.failures = 0;
    sampler_refresh(s, i); /* all values may have changed */
}

bool sampler_fed(const struct sampler *s, uint64_t now_ns)
{
    if (s_between(s->began_ns, now_ns) >= FED_MAX_S * loop_speed(s->loop))
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (!s->probe[i]->rest && s->probe[i]->now.last.has == 0)
            return false;
    return true;
}

const struct sensor *sampler_sensor(const struct sampler *s, size_t i)
{
    return &s->probe[i]->sensor;
}

static void heard_anew(struct probe *p)
{
    if (p->rate == SAMPLER_SEARCH)
        pace(p);
    else
        look_again(p);
}

void sampler_hear(struct sampler *s, size_t i, struct sampler_ear *ear)
{
    ear->next = s->probe[i]->ears;
    s->probe[i]->ears = ear;
    heard_anew(s->probe[i]);
}

void sampler_listen(struct sampler *s, size_t i, struct sampler_ear *ear, bool listens)
{
    if (ear->listens == listens)
        return;
    ear->listens = listens;
    heard_anew(s->probe[i]);
}

void sampler_deaf(struct sampler *s, size_t i, struct sampler_ear *ear)
{
    for (struct sampler_ear **e = &s->probe[i]->ears; *e; e = &(*e)->next)
        if (*e == ear) {
            *e = ear->next;
            break;
        }
    heard_anew(s->probe[i]);
}

size_t sampler_count(const struct sampler *s)
{
    return s->n;
}

const struct sampler_now *sampler_board(const struct sampler *s, size_t i)
{
    return i < s->n ? &s->probe[i]->now : NULL;
}

struct meter *sampler_meter(struct sampler *s, size_t i)
{
    return i < s->n ? s->probe[i]->meter : NULL;
}

uint64_t sampler_calls(const struct sampler *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += board_calls(s->probe[i]->board);
    return sum;
}
