#include "core/progress/phases.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/progress/envelope.h"
#include "core/progress/kind.h"
#include "core/progress/onset.h"

enum { REGIMES = 8, STAYS = 16, LEAST_BUCKETS = 5, OWN_PATTERN = 5 };
#define STILL_SD 4.0
#define CROSSING_SD 5.0
#define SETTLE_S 2.0
#define TRIAL_S 8.0
#define FIRST_S 8.0 /* at the start of a trace: no events, a step may be under way */
#define CYCLE_MOST_S 65.0
#define GAP_S 5.0
/* a change found this shortly before a new limit is the limit's effect */
#define RESCALED_S 3.0
/* a change that lasts this long becomes the reference for training */
#define TRAIN_AFTER_S 30.0

struct regime {
    bool used;
    unsigned id;
    struct envelope envelope;
    enum phase_kind kind;
    double cycle_s; /* of a long step that was mistaken for phases; 0 none */
    uint64_t last_ns;
};

/* A stay in a regime. */
struct stay {
    unsigned id; /* of the regime */
    uint64_t onset_ns, fired_ns, event;
    double dwell_s;
    bool plain;     /* without a pattern of its own */
    double level_w; /* mean of the steady readings */
};

struct phases {
    struct history history;
    struct regime regime[REGIMES];
    unsigned ids;
    int now; /* index of the regime */
    bool settling, trial, has_event;
    bool returned;    /* this stay is in a regime seen before */
    int left;         /* regime before, while settling */
    double direction; /* of the shift that is settling */
    uint64_t begin;   /* first sample of this stay that counts */
    uint64_t begin_ns;
    unsigned pending;
    uint64_t pending_ns;
    struct breach breach; /* the largest one while pending */
    uint64_t next_guess_ns;
    struct stay stay[STAYS]; /* newest last */
    unsigned n_stays;
    struct phase_event event[PHASES_EVENTS];
    uint64_t events;
    struct look_back past;
    double cycle_s; /* of the last long step found in any regime */
    double low, high, sum, n, sm_sum, mem_sum; /* of this stay, since begin */
    double rare_sm, rare_n; /* utilisation that is read seldom, in this stay */
    int side;           /* of the mean that the last sample was on: -1, 1; 0 none yet */
    unsigned crossings; /* of the mean, in this stay */
    bool rescaled;      /* learn again from the next sample */
    double still, still_sum; /* readings of this stay that moved by noise only */
    bool corrected;
};

int phases_new(struct phases **ret)
{
    struct phases *p = calloc(1, sizeof *p);

    if (!p)
        return -ENOMEM;
    p->past.floor_w = INFINITY;
    *ret = p;
    return 0;
}

void phases_free(struct phases *p)
{
    free(p);
}

uint64_t phases_events(const struct phases *p)
{
    return p->events;
}

const struct phase_event *phases_event(const struct phases *p, uint64_t no)
{
    if (no >= p->events || no + PHASES_EVENTS < p->events)
        return NULL;
    return &p->event[no % PHASES_EVENTS];
}

enum phase_kind phases_now(const struct phases *p)
{
    return p->history.n ? p->regime[p->now].kind : PHASE_UNKNOWN;
}

uint64_t phases_since(const struct phases *p)
{
    return p->history.n ? p->stay[p->n_stays - 1].onset_ns : 0;
}

static struct stay *newest(struct phases *p)
{
    return &p->stay[p->n_stays - 1];
}

/* Mean SM utilisation; also from readings too rare for an envelope. */
static double sm_now(const struct phases *p)
{
    if (p->history.known[CHANNEL_SM])
        return p->n > 0 ? p->sm_sum / p->n : NAN;
    return p->rare_n > 0 ? p->rare_sm / p->rare_n : NAN;
}

static struct look look_now(const struct phases *p)
{
    const struct history *h = &p->history;
    const struct stay *v = &p->stay[p->n_stays - 1];
    uint64_t now = history_at_ns(h, h->n - 1);
    double level = p->n > 0 ? p->sum / p->n : history_value(h, CHANNEL_POWER, h->n - 1);

    return (struct look){
        .level_w = level,
        .low_w = p->still > 0.5 * p->n ? p->low : 0.5 * level,
        .high_w = p->still > 0.5 * p->n ? p->high : 1.5 * level,
        .noise_w = history_noise(h, CHANNEL_POWER, level),
        .sm = sm_now(p),
        .mem = h->known[CHANNEL_MEM] && p->n > 0 ? p->mem_sum / p->n : NAN,
        .lasted_s = s_of_ns(now - v->onset_ns),
    };
}

static bool is_flat(const struct look *l)
{
    return l->high_w - l->low_w < 10 * l->noise_w + 0.06 * l->level_w;
}

static void name_event(struct phases *p, enum phase_kind kind)
{
    struct regime *g = &p->regime[p->now];
    const struct stay *v = newest(p);

    g->kind = kind;
    if (!p->has_event || v->event + PHASES_EVENTS < p->events)
        return;
    struct phase_event *e = &p->event[v->event % PHASES_EVENTS];
    if (e->kind != kind) {
        e->kind = kind;
        p->corrected = true;
    }
}

/* Guesses the regime's kind from all that was seen of it so far. */
static void guess(struct phases *p, bool ends)
{
    struct look l = look_now(p);
    struct regime *g = &p->regime[p->now];
    bool back = p->has_event && p->event[newest(p)->event % PHASES_EVENTS].back;

    if (p->n == 0 || p->trial)
        return;
    if (p->n_stays == 1 && p->past.first_w <= 0 && l.lasted_s > 1)
        p->past.first_w = l.level_w;
    if (ends || l.lasted_s > 2)
        p->past.floor_w = fmin(p->past.floor_w, l.level_w);
    if (g->kind == PHASE_TRAIN && !ends) {
        p->past.train_w = l.level_w;
        return;
    }
    bool lasting = back && g->kind != PHASE_CHECKPOINT && g->kind != PHASE_LOAD;
    enum phase_kind kind =
        lasting || g->kind == PHASE_TRAIN ? g->kind : phase_guess(&l, &p->past);
    if (p->n_stays == 1 && kind == PHASE_TRAIN && l.lasted_s < 3 && !ends)
        return;
    name_event(p, kind);
    if (kind == PHASE_TRAIN || (kind == PHASE_CHANGE && l.lasted_s >= TRAIN_AFTER_S))
        p->past.train_w = l.level_w;
}

static void count_sample(struct phases *p, uint64_t i)
{
    double v = history_value(&p->history, CHANNEL_POWER, i);

    double before = history_value(&p->history, CHANNEL_POWER, i > 0 ? i - 1 : 0);

    if (fabs(v - before) <= STILL_SD * history_noise(&p->history, CHANNEL_POWER, v)) {
        p->low = p->still > 0 ? fmin(p->low, v) : v;
        p->high = p->still > 0 ? fmax(p->high, v) : v;
        p->still_sum += v;
        p->still++;
    }
    double mean = p->n > 0 ? p->sum / p->n : v;
    double slack =
        CROSSING_SD * history_noise(&p->history, CHANNEL_POWER, mean) + 0.02 * mean;
    if (fabs(v - mean) > slack && (v > mean ? 1 : -1) != p->side) {
        p->side = v > mean ? 1 : -1;
        p->crossings++;
    }
    p->sum += v;
    p->sm_sum += history_value(&p->history, CHANNEL_SM, i);
    p->mem_sum += history_value(&p->history, CHANNEL_MEM, i);
    p->n++;
}

static int regime_slot(struct phases *p)
{
    int oldest = -1;

    for (int i = 0; i < REGIMES; i++) {
        if (!p->regime[i].used)
            return i;
        if (i != p->now && i != p->left &&
            (oldest < 0 || p->regime[i].last_ns < p->regime[oldest].last_ns))
            oldest = i;
    }
    return oldest;
}

/* Begins a new regime, learned from sample `from` on. */
static void begin_fresh(struct phases *p, uint64_t from)
{
    int slot = regime_slot(p);
    struct regime *g = &p->regime[slot];

    *g = (struct regime){.used = true, .id = ++p->ids};
    p->now = slot;
    p->trial = p->returned = false;
    newest(p)->id = g->id;
    if (p->has_event)
        p->event[newest(p)->event % PHASES_EVENTS].back = false;
    envelope_init(&g->envelope, history_at_ns(&p->history, from));
    for (uint64_t i = from; i < p->history.n; i++)
        envelope_learn(&g->envelope, &p->history, i);
}

/* Training is preferred, then the regime seen last. */
static bool likelier(const struct regime *a, const struct regime *b)
{
    bool a_trains = a->kind == PHASE_TRAIN, b_trains = b->kind == PHASE_TRAIN;

    return a_trains != b_trains ? a_trains : a->last_ns > b->last_ns;
}

/* A regime other than `but` that fits the samples since `from`; -1: none. */
static int find_known(const struct phases *p, uint64_t from, int but)
{
    int best = -1;

    for (int i = 0; i < REGIMES; i++) {
        const struct regime *g = &p->regime[i];
        if (!g->used || i == but ||
            g->envelope.watch[CHANNEL_POWER][0].bucket < LEAST_BUCKETS)
            continue;
        if (best >= 0 && !likelier(g, &p->regime[best]))
            continue;
        if (envelope_fits(&g->envelope, &p->history, from, p->history.n))
            best = i;
    }
    return best;
}

static void restart_sums(struct phases *p, uint64_t from)
{
    p->begin = from;
    p->begin_ns = history_at_ns(&p->history, from);
    p->side = 0;
    p->crossings = 0;
    p->n = p->still = p->still_sum = p->sum = p->sm_sum = p->mem_sum = 0;
    p->rare_sm = p->rare_n = 0;
    for (uint64_t i = from; i < p->history.n; i++)
        count_sample(p, i);
}

static bool alike(double a, double b, double slack_s)
{
    return fabs(a - b) <= 0.2 * fmax(a, b) + slack_s;
}

static double slack_w(const struct phases *p, double level_w)
{
    return STILL_SD * history_noise(&p->history, CHANNEL_POWER, level_w) + 0.03 * level_w;
}

static bool same_level(const struct phases *p, const struct stay *a, const struct stay *b)
{
    return fabs(a->level_w - b->level_w) <= slack_w(p, fmax(a->level_w, b->level_w));
}

/* If the last levels repeat in the same order, they are parts of a long step: returns how
 * many, 0 if not.
 */
static unsigned cycle_of(const struct phases *p)
{
    unsigned n = p->n_stays - 1;
    double level = history_value(&p->history, CHANNEL_POWER, p->history.n - 1);
    double slack = 2 * p->history.step_s;

    for (unsigned q = 2; q <= 4 && q + 1 <= n; q++) {
        const struct stay *v = p->stay;
        bool regular = alike(v[n - 1].dwell_s, v[n - 1 - q].dwell_s, slack);
        bool again = q + 2 <= n && alike(v[n - 2].dwell_s, v[n - 2 - q].dwell_s, slack);
        bool levels = same_level(p, &v[n - 1], &v[n - 1 - q]) &&
                      fabs(level - v[n - q].level_w) <= slack_w(p, level);
        bool same = regular && (levels || again);
        double period = s_between(v[n - q].onset_ns, v[n].onset_ns);
        for (unsigned i = n - q; i < n; i++)
            same = same && v[i].plain;
        if (same && period <= CYCLE_MOST_S)
            return q;
    }
    return 0;
}

static struct regime *regime_of(struct phases *p, unsigned id)
{
    for (int i = 0; i < REGIMES; i++)
        if (p->regime[i].used && p->regime[i].id == id)
            return &p->regime[i];
    return NULL;
}

/* Merges regimes that are parts of one long step; their events are withdrawn. */
static void merge_cycle(struct phases *p, unsigned q)
{
    unsigned n = p->n_stays - 1, from = n - q;
    uint64_t now = history_at_ns(&p->history, p->history.n - 1);

    double cycle_s = s_between(p->stay[n - q].onset_ns, p->stay[n].onset_ns);
    while (from > 1 && p->stay[from - 2].plain &&
           same_level(p, &p->stay[from - 2], &p->stay[from - 2 + q])) {
        double dwell = p->stay[from - 2].dwell_s, whole = p->stay[from - 2 + q].dwell_s;
        double slack = 2 * p->history.step_s;
        /* the trace may begin inside a part */
        if (!alike(dwell, whole, slack) && (from > 2 || dwell > whole + slack))
            break;
        from--;
    }
    for (unsigned i = from; i <= n; i++)
        if (p->stay[i].event + PHASES_EVENTS >= p->events)
            p->event[p->stay[i].event % PHASES_EVENTS].withdrawn_ns = now;
    for (unsigned i = n - q; i < n; i++) {
        struct regime *g = regime_of(p, p->stay[i].id);
        /* a part of a step is no reference for training */
        if (g && g->kind == PHASE_TRAIN)
            p->past.train_w = 0;
        if (g)
            g->used = false;
    }
    p->n_stays = from;
    p->has_event = from > 1;
    p->corrected = true;
    uint64_t begin = history_seek(&p->history, newest(p)->onset_ns);
    p->left = -1;
    p->now = -1;
    begin_fresh(p, begin);
    p->regime[p->now].cycle_s = p->cycle_s = cycle_s;
    restart_sums(p, begin);
    p->regime[p->now].kind = PHASE_UNKNOWN;
    guess(p, false);
}

/* The shift has settled: resumes a known regime, on trial, or begins a new one. */
static void begin_stay(struct phases *p)
{
    uint64_t from = p->history.n - 1;
    int known = find_known(p, from, p->left);

    p->settling = false;
    p->pending = 0;
    p->next_guess_ns = 0;
    if (known >= 0) {
        p->now = known;
        p->trial = p->returned = true;
        newest(p)->id = p->regime[known].id;
        envelope_resume(&p->regime[known].envelope, history_at_ns(&p->history, from));
        p->event[newest(p)->event % PHASES_EVENTS].back = true;
        name_event(p, p->regime[known].kind);
    } else {
        begin_fresh(p, from);
    }
    p->left = -1;
    restart_sums(p, from);
    unsigned q = cycle_of(p);
    if (q > 0)
        merge_cycle(p, q);
    else
        guess(p, false);
}

/* Ends the stay; another one begins at onset_ns, with an event of its own. */
static struct phase_event *leave(struct phases *p, uint64_t onset_ns)
{
    uint64_t now = history_at_ns(&p->history, p->history.n - 1);

    guess(p, true);
    struct stay *v = newest(p);
    struct look l = look_now(p);
    p->past.after_train =
        p->regime[p->now].kind == PHASE_TRAIN || p->regime[p->now].kind == PHASE_CHANGE;
    v->dwell_s = s_between(v->onset_ns, onset_ns);
    v->plain = p->crossings < OWN_PATTERN;
    v->level_w = p->still > 0 ? p->still_sum / p->still : l.level_w;
    p->regime[p->now].last_ns = now;
    if (p->n_stays == STAYS)
        memmove(p->stay, p->stay + 1, sizeof *p->stay * --p->n_stays);
    p->stay[p->n_stays++] =
        (struct stay){.onset_ns = onset_ns, .fired_ns = now, .event = p->events};
    struct phase_event *e = &p->event[p->events++ % PHASES_EVENTS];
    *e = (struct phase_event){.onset_ns = onset_ns, .fired_ns = now};
    p->has_event = true;
    p->corrected = true;
    p->pending = 0;
    return e;
}

static void fire(struct phases *p, const struct breach *b)
{
    const struct history *h = &p->history;
    struct onset o = onset_find(h, p->begin_ns, b);
    struct phase_event *e = leave(p, o.at_ns);

    struct look l = (struct look){
        .level_w = o.level_w,
        .low_w = o.level_w,
        .high_w = o.level_w,
        .noise_w = history_noise(h, CHANNEL_POWER, o.level_w),
        .sm = h->known[CHANNEL_SM] ? history_value(h, CHANNEL_SM, h->n - 1) : NAN,
        .mem = NAN};
    e->kind = e->first_kind = phase_guess(&l, &p->past);
    p->left = p->now;
    p->settling = true;
    p->direction = o.up ? 1 : -1;
}

/* The regime on trial does not fit: resumes another known one, or begins a new one. */
static void trial_failed(struct phases *p)
{
    int other = find_known(p, p->begin, p->now);

    p->pending = 0;
    p->next_guess_ns = 0;
    if (other >= 0) {
        p->now = other;
        newest(p)->id = p->regime[other].id;
        envelope_resume(&p->regime[other].envelope, p->begin_ns);
        name_event(p, p->regime[other].kind);
    } else {
        begin_fresh(p, p->begin > history_first(&p->history)
                           ? p->begin
                           : history_first(&p->history));
        guess(p, false);
    }
}

/* Whether the board jumped up to a known regime, from a pause too short for settled
 * bounds.
 */
static bool jumped(const struct phases *p, struct breach *ret)
{
    const struct history *h = &p->history;
    struct look l = look_now(p);
    enum phase_kind kind = p->regime[p->now].kind;
    double v = history_value(h, CHANNEL_POWER, h->n - 1);
    double slack = 6 * l.noise_w + 0.1 * l.level_w + 3;

    if (p->trial ||
        (kind != PHASE_LOAD && kind != PHASE_CHECKPOINT && kind != PHASE_IDLE))
        return false;
    if (p->n < 3 || !is_flat(&l) || v <= l.high_w + slack ||
        find_known(p, h->n - 1, p->now) < 0)
        return false;
    *ret = (struct breach){1, CHANNEL_POWER, 0, EDGE_OVER};
    return true;
}

static bool still_moving(const struct phases *p)
{
    const struct history *h = &p->history;
    double step = history_value(h, CHANNEL_POWER, h->n - 1) -
                  history_value(h, CHANNEL_POWER, h->n - 2);
    double since =
        s_between(newest((struct phases *)p)->fired_ns, history_at_ns(h, h->n - 1));

    if (since < 0.9 * h->fresh_s && since < SETTLE_S)
        return true;
    return since < SETTLE_S &&
           p->direction * step >
               3 * history_noise(h, CHANNEL_POWER,
                                 history_value(h, CHANNEL_POWER, h->n - 1));
}

static void watch_sample(struct phases *p)
{
    struct history *h = &p->history;
    uint64_t i = h->n - 1, now = history_at_ns(h, i);
    struct regime *g = &p->regime[p->now];
    bool training = g->kind == PHASE_TRAIN || g->kind == PHASE_CHANGE;
    double period_s = g->cycle_s > 0 ? g->cycle_s : training ? p->cycle_s : 0;
    struct breach b = envelope_test(&g->envelope, h, i, !p->trial, period_s);

    bool early = p->n_stays == 1 && s_of_ns(now - p->begin_ns) < FIRST_S;
    if (early || (b.excess <= 0 && !jumped(p, &b))) {
        p->pending = 0;
        count_sample(p, i);
        if (!p->trial)
            envelope_learn(&g->envelope, h, i);
        return;
    }
    if (p->pending++ == 0)
        p->pending_ns = now;
    if (p->pending == 1 || b.excess > p->breach.excess)
        p->breach = b;
    if (p->pending < 2 || s_of_ns(now - p->pending_ns) < 0.9 * h->fresh_s)
        return;
    /* Scales longer than the time so far could not breach earlier: extend the trial. */
    double trial_s = fmax(fmax(TRIAL_S, 2 * period_s), 2 * scale_s(p->breach.scale));
    if (p->returned && s_of_ns(now - p->begin_ns) < trial_s)
        trial_failed(p);
    else
        fire(p, &p->breach);
}

static void guess_later(struct phases *p, uint64_t now)
{
    double lasted = s_of_ns(now - newest(p)->onset_ns);

    if (now < p->next_guess_ns)
        return;
    guess(p, false);
    p->next_guess_ns = now + (uint64_t)(fmax(0.5, lasted * 0.1) * 1e9);
}

static void first_sample(struct phases *p)
{
    p->n_stays = 1;
    p->stay[0] = (struct stay){.onset_ns = history_at_ns(&p->history, 0)};
    p->left = -1;
    p->now = -1;
    begin_fresh(p, 0);
    restart_sums(p, 0);
}

/* Withdraws an event caused by the new limit. */
static void take_back(struct phases *p)
{
    uint64_t now = history_at_ns(&p->history, p->history.n - 1);
    struct stay *v = newest(p);

    if (p->n_stays < 2 || s_of_ns(now - v->fired_ns) > RESCALED_S)
        return;
    if (v->event + PHASES_EVENTS >= p->events)
        p->event[v->event % PHASES_EVENTS].withdrawn_ns = now;
    const struct regime *g = regime_of(p, (v - 1)->id);
    enum phase_kind kind = g ? g->kind : PHASE_UNKNOWN;
    p->n_stays--;
    p->has_event = p->n_stays > 1;
    p->settling = false;
    p->regime[p->now].kind = kind;
}

void phases_rescale(struct phases *p, double most_w)
{
    if (p->history.n == 0)
        return;
    take_back(p);
    p->rescaled = true;
    p->past.train_w = fmin(p->past.train_w, most_w);
}

static void relearn(struct phases *p)
{
    enum phase_kind kind = p->regime[p->now].kind;
    uint64_t from = p->history.n - 1;

    if (p->settling && p->has_event)
        kind = p->event[newest(p)->event % PHASES_EVENTS].kind;
    for (int i = 0; i < REGIMES; i++)
        p->regime[i].used = false;
    p->rescaled = p->settling = false;
    p->pending = 0;
    p->next_guess_ns = 0;
    p->left = p->now = -1;
    begin_fresh(p, from);
    p->regime[p->now].kind = kind;
    restart_sums(p, from);
}

bool phases_feed(struct phases *p, const struct activity *a)
{
    struct history *h = &p->history;
    uint64_t before = h->n ? history_at_ns(h, h->n - 1) : 0;

    if (!history_add(h, a))
        return false;
    p->corrected = false;
    if (h->n > 1 && !p->settling && !isnan(a->sm_util)) {
        p->rare_sm += a->sm_util;
        p->rare_n++;
    }
    if (h->n == 1) {
        first_sample(p);
        return false;
    }
    if (p->rescaled) {
        relearn(p);
        return false;
    }
    if (s_of_ns(a->at_ns - before) > fmax(GAP_S, 20 * h->step_s))
        envelope_resume(&p->regime[p->now].envelope, a->at_ns);
    if (p->settling) {
        if (still_moving(p))
            return false;
        begin_stay(p);
        return p->corrected;
    }
    watch_sample(p);
    if (p->trial && !p->settling && s_of_ns(a->at_ns - p->begin_ns) >= TRIAL_S)
        p->trial = false;
    if (!p->settling)
        guess_later(p, a->at_ns);
    return p->corrected;
}
