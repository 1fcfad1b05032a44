#include "core/slack/slack.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/optimum/change.h"
#include "core/slack/balance.h"

enum {
    LEAST_WINDOWS = 2,   /* windows of a step before it is judged */
    BALANCE_MOST = 12,   /* most windows of a BALANCE step */
    REFERENCE_MOST = 16, /* most windows at the first caps before the first step */
    CONFIRM_MOST = 24,   /* most windows of a CONFIRM or SPEND step */
    SPENDS = 3,          /* most SPEND steps */
    VISIT_EVERY = 20,    /* windows of a hold between visits to the first caps */
    VISIT_LATER = 50,    /* same after VISITS_EARLY visits */
    VISITS_EARLY = 10,
    FADE_WINDOWS = 64,   /* memory of the time of a hold, in windows */
    FADE_REFERENCE = 24, /* memory of the time at the first caps, in windows */
    FADE_POWER = 12,     /* memory of powers, in windows */
    BALANCES_MOST = 40,  /* most BALANCE steps */
};
#define RSE_LEAST 0.001 /* smaller errors of a window count as this */
#define REFERENCE_SE 0.0025
#define CONFIRM_SE 0.0035
#define GAIN 0.8
#define GAIN_LEAST 0.15
#define CUT_MOST 0.15 /* of a cap, in one step */
#define DEAD 0.012
#define STEEP 0.6 /* prior of d log(time) / -d log(cap) */
#define STEEP_LEAST 0.2
#define STEEP_MOST 2.0
#define STEEP_FROM 0.03 /* least change of log(cap) from which it is estimated */
/* Standard errors added to a measured log ratio before it is compared with its limit. */
#define SURE_STEP 1.0   /* BALANCE without a budget */
#define SURE_MOVE 0.5   /* BALANCE under a budget */
#define SURE 1.5        /* SPEND */
#define SURE_HOLD 0.0   /* HOLD */
#define NO_SLOWER 0.004 /* limit of a BALANCE step under a budget */
#define SPEND_SHARE 0.8
#define SPEND_LEAST 0.001
#define BACK_TO 0.6 /* of the allowance, after caps were raised */
#define ANEW 0.05   /* increase of a board's waiting share that ends a hold */
#define CAP_SAME_W 0.5

enum phase { REFERENCE, BALANCE, CONFIRM, SPEND, HOLD, VISIT };

/* Windows at one set of caps. */
struct mean {
    unsigned n;
    double w, wt; /* sums of the weights 1 / variance and of weight x log time */
    double power_n, power_w[SLACK_BOARDS_MAX], low_w[SLACK_BOARDS_MAX],
        util[SLACK_BOARDS_MAX];
};

struct slack {
    struct slack_range board[SLACK_BOARDS_MAX];
    size_t n;
    double allowance;
    uint64_t budget_mw;
    uint32_t grain_mw;

    enum phase phase;
    struct slack_step step;
    uint32_t kept_mw[SLACK_BOARDS_MAX];
    uint32_t floor_mw[SLACK_BOARDS_MAX]; /* a lower cap has slowed the job too much */
    double steep[SLACK_BOARDS_MAX], common_steep;
    double waits_then[SLACK_BOARDS_MAX]; /* step.waits when the hold began */
    struct mean first, kept, now;
    double gain;
    unsigned spends, visits, since_visit, balances;
    double spend;
    struct change change;
    struct slack_result result;
};

/* ---- means ---- */

static double mean_log(const struct mean *m)
{
    return m->wt / m->w;
}

static double mean_se(const struct mean *m)
{
    return m->n > 0 ? sqrt(1 / m->w) : INFINITY;
}

static void mean_add(struct mean *m, const struct slack_window *w, size_t n)
{
    double rse = fmax(w->time_rse, RSE_LEAST), weight = 1 / (rse * rse);

    m->n++;
    m->w += weight;
    m->wt += weight * log(w->time_s);
    m->power_n++;
    for (size_t i = 0; i < n; i++) {
        double share = 1 / m->power_n;
        m->power_w[i] += share * (w->board[i].power_w - m->power_w[i]);
        m->low_w[i] += share * (w->board[i].low_w - m->low_w[i]);
        m->util[i] += share * (w->board[i].util - m->util[i]);
    }
}

/* Gives the mean an exponential memory of so many windows. */
static void mean_fade(struct mean *m, double windows)
{
    double keep = 1 - 1 / windows;

    m->w *= keep;
    m->wt *= keep;
    m->power_n = fmin(m->power_n, FADE_POWER);
}

/* ---- busy shares ---- */

static void busy_of(const struct slack *s, const struct mean *m, const uint32_t *cap_mw,
                    double *ret)
{
    for (size_t i = 0; i < s->n; i++) {
        struct slack_seen seen = {w_of_mw(cap_mw[i]), m->power_w[i], m->low_w[i],
                                  m->util[i]};
        ret[i] = waits_busy(&seen, waits_power(&seen, w_of_mw(s->board[i].start_mw)));
    }
}

static double busiest(const double *busy, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, busy[i]);
    return most;
}

static void say_roles(struct slack *s, const double *busy)
{
    double most = busiest(busy, s->n);

    for (size_t i = 0; i < s->n; i++) {
        s->step.waits[i] = 1 - busy[i] / most;
        s->step.role[i] = s->step.waits[i] <= DEAD ? SLACK_PACE
                          : s->kept_mw[i] < s->board[i].least_mw + s->grain_mw
                              ? SLACK_LEAST
                              : SLACK_WAITS;
    }
}

/* ---- steps ---- */

static uint64_t sum_of(const uint32_t *mw, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += mw[i];
    return sum;
}

static void go(struct slack *s, enum phase phase, const uint32_t *cap_mw,
               enum slack_did did)
{
    s->phase = phase;
    s->step.kind = phase == HOLD || phase == VISIT ? SLACK_HOLD : SLACK_MEASURE;
    s->step.did = did;
    s->step.visit = phase == VISIT;
    s->step.reference = true;
    for (size_t i = 0; i < s->n; i++) {
        s->step.cap_mw[i] = cap_mw[i];
        s->step.reference &= cap_mw[i] == s->board[i].start_mw;
    }
    s->now = (struct mean){0};
}

static void first_caps(const struct slack *s, uint32_t *ret)
{
    for (size_t i = 0; i < s->n; i++)
        ret[i] = s->board[i].start_mw;
}

static void why(struct slack *s, const char *what)
{
    double sum_w = (double)sum_of(s->step.cap_mw, s->n) * 1e-3;

    (void)snprintf(s->step.why, sizeof s->step.why, "slack: %s, %.0f W in all", what,
                   sum_w);
}

static void hold(struct slack *s, enum slack_did did)
{
    double busy[SLACK_BOARDS_MAX];

    if (s->result.hold_windows == 0)
        s->result.hold_windows = s->result.windows;
    busy_of(s, &s->kept, s->kept_mw, busy);
    say_roles(s, busy);
    memcpy(s->waits_then, s->step.waits, sizeof s->waits_then);
    change_init(&s->change, 0);
    s->since_visit = 0;
    go(s, HOLD, s->kept_mw, did);
    why(s, "holds");
}

/* ---- the ratio of times ---- */

static double ratio_log(const struct mean *m, const struct mean *to)
{
    return mean_log(m) - mean_log(to);
}

static double ratio_se(const struct mean *m, const struct mean *to)
{
    return hypot(mean_se(m), mean_se(to));
}

enum verdict { OPEN, KEEP, UNDO };

static enum verdict verdict(double d, double se, double sure, double limit, unsigned n,
                            unsigned most)
{
    if (n < LEAST_WINDOWS && se > CONFIRM_SE / 2)
        return OPEN;
    if (d + sure * se <= limit)
        return KEEP;
    return d - se > limit || n >= most ? UNDO : OPEN;
}

/* ---- moving watts ---- */

static void boards_of(const struct slack *s, const double *busy,
                      struct balance_board *ret)
{
    for (size_t i = 0; i < s->n; i++)
        ret[i] = (struct balance_board){
            .cap_mw = s->kept_mw[i],
            .least_mw = s->floor_mw[i],
            .most_mw = s->budget_mw ? s->board[i].most_mw : s->kept_mw[i],
            .busy = busy[i],
            .steep = s->steep[i],
        };
}

static void confirm(struct slack *s, enum slack_did did)
{
    struct mean kept = s->kept;

    go(s, CONFIRM, s->kept_mw, did);
    s->now = kept;
    why(s, "no waiting board can be lowered further, measures on");
}

/* The next BALANCE step from the kept caps; if there is none, HOLD or CONFIRM. */
static void balance(struct slack *s, enum slack_did did)
{
    struct balance_board b[SLACK_BOARDS_MAX];
    double busy[SLACK_BOARDS_MAX];
    uint32_t next[SLACK_BOARDS_MAX];
    struct balance_rule rule = {s->gain, CUT_MOST, DEAD, s->grain_mw};
    size_t differ;

    busy_of(s, &s->kept, s->kept_mw, busy);
    say_roles(s, busy);
    boards_of(s, busy, b);
    double most = busiest(busy, s->n), least = most;
    for (size_t i = 0; i < s->n; i++)
        least = fmin(least, busy[i]);
    if (s->budget_mw)
        differ = log(most / least) <= DEAD || s->gain < GAIN_LEAST
                     ? 0
                     : balance_within(b, s->n, s->budget_mw, &rule, next);
    else
        differ = balance_down(b, s->n, most, &rule, next);
    if (differ == 0 || ++s->balances > BALANCES_MOST) {
        if (s->budget_mw)
            hold(s, did);
        else
            confirm(s, did);
        return;
    }
    s->result.tried++;
    go(s, BALANCE, next, did);
    why(s, s->budget_mw ? "moves watts to the busiest boards"
                        : "lowers the caps of boards that wait");
}

/* Updates each board's steepness from the change of its busy share in a step. */
static void learn(struct slack *s)
{
    double before[SLACK_BOARDS_MAX], after[SLACK_BOARDS_MAX];

    busy_of(s, &s->kept, s->kept_mw, before);
    busy_of(s, &s->now, s->step.cap_mw, after);
    for (size_t i = 0; i < s->n; i++) {
        double way = log((double)s->step.cap_mw[i] / s->kept_mw[i]);
        if (fabs(way) < STEEP_FROM)
            continue;
        double steep = -log(after[i] / before[i]) / way;
        steep = fmin(STEEP_MOST, fmax(STEEP_LEAST, steep));
        s->steep[i] = (s->steep[i] + steep) / 2;
    }
}

/* After a step that slowed the job too much: raises the floors of the lowered boards
 * that are busiest now or, if there are none, of all lowered boards.
 */
static void blame(struct slack *s)
{
    double busy[SLACK_BOARDS_MAX];
    bool found = false;

    busy_of(s, &s->now, s->step.cap_mw, busy);
    double most = busiest(busy, s->n);
    for (int pass = 0; pass < 2 && !found; pass++)
        for (size_t i = 0; i < s->n; i++) {
            bool top = log(most / busy[i]) <= DEAD;
            if (s->step.cap_mw[i] >= s->kept_mw[i] || (pass == 0 && !top))
                continue;
            double half = sqrt((double)s->step.cap_mw[i] * s->kept_mw[i]);
            uint32_t mw = (uint32_t)(half / s->grain_mw + 0.999) * s->grain_mw;
            s->floor_mw[i] = mw < s->kept_mw[i] ? mw : s->kept_mw[i];
            found = true;
        }
}

static void keep(struct slack *s)
{
    memcpy(s->kept_mw, s->step.cap_mw, s->n * sizeof *s->kept_mw);
    s->kept = s->now;
}

static void judge_balance(struct slack *s)
{
    const struct mean *to = s->budget_mw ? &s->kept : &s->first;
    double limit = s->budget_mw ? NO_SLOWER : s->allowance;
    double d = ratio_log(&s->now, to), se = ratio_se(&s->now, to);
    double sure = s->budget_mw ? SURE_MOVE : SURE_STEP;
    enum verdict v = verdict(d, se, sure, limit, s->now.n, BALANCE_MOST);

    if (v == OPEN)
        return;
    learn(s);
    if (v == KEEP) {
        keep(s);
        balance(s, SLACK_KEPT);
        return;
    }
    s->result.undone++;
    if (s->budget_mw)
        s->gain /= 2;
    else
        blame(s);
    balance(s, SLACK_UNDONE);
}

/* ---- the rest of the allowance ---- */

static uint32_t scaled(const struct slack *s, size_t i, double factor)
{
    double mw = s->kept_mw[i] * factor;
    uint32_t v = (uint32_t)(mw / s->grain_mw + 0.5) * s->grain_mw;

    if (v < s->floor_mw[i] && factor < 1)
        v = s->floor_mw[i] < s->kept_mw[i] ? s->floor_mw[i] : s->kept_mw[i];
    if (v < s->board[i].least_mw)
        v = s->board[i].least_mw;
    return v > s->board[i].start_mw ? s->board[i].start_mw : v;
}

static void spend(struct slack *s, enum slack_did did)
{
    uint32_t next[SLACK_BOARDS_MAX];
    bool differ = false;

    double room = s->allowance - ratio_log(&s->kept, &s->first) -
                  SURE * ratio_se(&s->kept, &s->first);
    s->spend = SPEND_SHARE * room / s->common_steep;
    if (room >= SPEND_LEAST && s->spends < SPENDS)
        for (size_t i = 0; i < s->n; i++) {
            s->floor_mw[i] = s->board[i].least_mw; /* the job's time decides instead */
            next[i] = scaled(s, i, exp(-s->spend));
            differ |= next[i] != s->kept_mw[i];
        }
    if (!differ) {
        hold(s, did);
        return;
    }
    s->spends++;
    s->result.tried++;
    go(s, SPEND, next, did);
    why(s, "lowers all caps to spend the rest of the allowance");
}

static void give_back(struct slack *s, double d)
{
    uint32_t next[SLACK_BOARDS_MAX], first[SLACK_BOARDS_MAX];
    double up = fmax(0.002, d - BACK_TO * s->allowance) / STEEP_LEAST;

    first_caps(s, first);
    for (size_t i = 0; i < s->n; i++) {
        next[i] = scaled(s, i, exp(up));
        s->floor_mw[i] = next[i];
    }
    if (memcmp(first, s->kept_mw, s->n * sizeof *first) == 0) {
        slack_restart(s, "the job is slower than before at its first caps");
        return;
    }
    s->result.gave_back++;
    memcpy(s->kept_mw, next, s->n * sizeof *next);
    s->kept = (struct mean){0};
    s->spends = SPENDS;
    go(s, CONFIRM, s->kept_mw, SLACK_GAVE_BACK);
    why(s, "raises caps, as the job is slower than allowed");
}

static void judge_confirm(struct slack *s)
{
    double d = ratio_log(&s->now, &s->first), se = ratio_se(&s->now, &s->first);

    s->kept = s->now;
    if (d - se > s->allowance && s->now.n >= LEAST_WINDOWS)
        give_back(s, d);
    else if (se <= CONFIRM_SE || s->now.n >= CONFIRM_MOST)
        spend(s, s->step.did);
}

static void judge_spend(struct slack *s)
{
    double d = ratio_log(&s->now, &s->first), se = ratio_se(&s->now, &s->first);
    double was = ratio_log(&s->kept, &s->first);
    enum verdict v = verdict(d, se, SURE, s->allowance, s->now.n, CONFIRM_MOST);

    if (v == OPEN)
        return;
    double steep = (d - was) / s->spend;
    s->common_steep = fmin(STEEP_MOST, fmax(STEEP_LEAST, (s->common_steep + steep) / 2));
    if (v == KEEP) {
        keep(s);
        confirm(s, SLACK_KEPT);
        return;
    }
    s->result.undone++;
    s->common_steep = fmin(STEEP_MOST, 2 * s->common_steep);
    spend(s, SLACK_UNDONE);
}

/* ---- holding ---- */

static bool waits_anew(const struct slack *s, const double *busy)
{
    double most = busiest(busy, s->n);

    for (size_t i = 0; i < s->n; i++)
        if (1 - busy[i] / most > s->waits_then[i] + ANEW)
            return true;
    return false;
}

static void visit(struct slack *s)
{
    uint32_t first[SLACK_BOARDS_MAX];

    first_caps(s, first);
    s->since_visit = 0;
    s->visits++;
    go(s, VISIT, first, SLACK_KEPT);
    why(s, "measures at the first caps again");
}

static void judge_hold(struct slack *s, const struct slack_window *w)
{
    double busy[SLACK_BOARDS_MAX];
    const double no_energy = 1;

    mean_fade(&s->kept, FADE_WINDOWS);
    mean_add(&s->kept, w, s->n);
    if (change_on_window(&s->change, w->time_s, no_energy, w->time_rse, 0)) {
        slack_restart(s, "the job's pace has changed");
        return;
    }
    double d = ratio_log(&s->kept, &s->first), se = ratio_se(&s->kept, &s->first);
    double limit = s->budget_mw ? 0 : s->allowance;
    if (d + SURE_HOLD * se > limit && !s->step.reference) {
        if (s->budget_mw)
            slack_restart(s, "slower than at the first caps");
        else
            give_back(s, d);
        return;
    }
    busy_of(s, &s->kept, s->kept_mw, busy);
    say_roles(s, busy);
    unsigned every = s->visits < VISITS_EARLY ? VISIT_EVERY : VISIT_LATER;
    if (++s->since_visit >= FADE_POWER && waits_anew(s, busy)) {
        for (size_t i = 0; i < s->n; i++)
            s->floor_mw[i] = s->board[i].least_mw;
        s->gain = GAIN;
        s->spends = s->balances = 0;
        balance(s, SLACK_KEPT);
    } else if (s->since_visit >= every && !s->step.reference) {
        visit(s);
    }
}

static void judge_visit(struct slack *s, const struct slack_window *w)
{
    mean_fade(&s->first, FADE_REFERENCE);
    mean_add(&s->first, w, s->n);
    go(s, HOLD, s->kept_mw, SLACK_KEPT);
    why(s, "holds");
}

static void judge_reference(struct slack *s)
{
    if (s->now.n < LEAST_WINDOWS ||
        (mean_se(&s->now) > REFERENCE_SE && s->now.n < REFERENCE_MOST))
        return;
    s->first = s->kept = s->now;
    balance(s, SLACK_KEPT);
}

/* ---- windows ---- */

static int check_window(const struct slack *s, const struct slack_window *w,
                        uw_error *err)
{
    if (!isfinite(w->time_s) || w->time_s <= 0)
        return fail(err, -EINVAL, "time %g s is not positive", w->time_s);
    if (!isfinite(w->time_rse) || w->time_rse < 0)
        return fail(err, -EINVAL, "relative error %g is negative or not finite",
                    w->time_rse);
    for (size_t i = 0; i < s->n; i++) {
        const struct slack_seen *b = &w->board[i];
        if (!isfinite(b->power_w) || b->power_w <= 0)
            return fail(err, -EINVAL, "board %zu: power %g W is not positive", i,
                        b->power_w);
        if (!(fabs(b->cap_w - w_of_mw(s->step.cap_mw[i])) <= CAP_SAME_W))
            return fail(err, -EINVAL, "board %zu: its cap was %g W, not %g W", i,
                        b->cap_w, w_of_mw(s->step.cap_mw[i]));
    }
    return 0;
}

int slack_on_window(struct slack *s, const struct slack_window *w, uw_error *err)
{
    int r = check_window(s, w, err);
    if (r < 0)
        return r;
    s->result.windows++;
    if (s->phase != HOLD && s->phase != VISIT)
        mean_add(&s->now, w, s->n);
    switch (s->phase) {
    case REFERENCE:
        judge_reference(s);
        break;
    case BALANCE:
        judge_balance(s);
        break;
    case CONFIRM:
        judge_confirm(s);
        break;
    case SPEND:
        judge_spend(s);
        break;
    case HOLD:
        judge_hold(s, w);
        break;
    case VISIT:
        judge_visit(s, w);
        break;
    }
    return 0;
}

static void begin(struct slack *s, const char *what)
{
    uint32_t first[SLACK_BOARDS_MAX];

    first_caps(s, first);
    memcpy(s->kept_mw, first, s->n * sizeof *first);
    for (size_t i = 0; i < s->n; i++) {
        s->floor_mw[i] = s->board[i].least_mw;
        s->steep[i] = STEEP;
        s->step.waits[i] = 0;
        s->step.role[i] = SLACK_UNKNOWN;
    }
    s->common_steep = STEEP;
    s->gain = GAIN;
    s->spends = s->visits = s->since_visit = s->balances = 0;
    s->first = s->kept = (struct mean){0};
    go(s, REFERENCE, first, SLACK_BEGAN);
    (void)snprintf(s->step.why, sizeof s->step.why,
                   "slack: %s, measures at the first caps", what);
}

void slack_restart(struct slack *s, const char *what)
{
    unsigned restarts = s->result.restarts + 1;

    s->result = (struct slack_result){.restarts = restarts};
    begin(s, what);
}

/* ---- life ---- */

static int check_setup(const struct slack_setup *o, uw_error *err)
{
    uint64_t sum = 0;

    if (o->n < 2 || o->n > SLACK_BOARDS_MAX)
        return fail(err, -EINVAL, "slack needs 2..%d boards, not %zu", SLACK_BOARDS_MAX,
                    o->n);
    if (!(o->allowance >= 0 && o->allowance <= SLACK_ALLOWANCE_MOST))
        return fail(err, -ERANGE, "an allowance of %g is outside 0..%g", o->allowance,
                    SLACK_ALLOWANCE_MOST);
    for (size_t i = 0; i < o->n; i++) {
        const struct slack_range *b = &o->board[i];
        uint32_t most = o->budget_mw ? b->most_mw : b->start_mw;
        if (b->least_mw == 0 || b->start_mw < b->least_mw || b->start_mw > most)
            return fail(err, -ERANGE,
                        "board %zu: a first cap of %" PRIu32 " mW is outside %" PRIu32
                        "..%" PRIu32,
                        i, b->start_mw, b->least_mw, most);
        sum += b->start_mw;
    }
    if (o->budget_mw && sum > o->budget_mw)
        return fail(err, -ERANGE,
                    "the first caps sum up to %" PRIu64
                    " mW, above the budget of %" PRIu64 " mW",
                    sum, o->budget_mw);
    return 0;
}

int slack_new(const struct slack_setup *setup, struct slack **ret, uw_error *err)
{
    int r = check_setup(setup, err);
    if (r < 0)
        return r;

    struct slack *s = calloc(1, sizeof *s);
    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    memcpy(s->board, setup->board, setup->n * sizeof *setup->board);
    s->n = setup->n;
    s->allowance = log1p(setup->allowance);
    s->budget_mw = setup->budget_mw;
    s->grain_mw = setup->grain_mw ? setup->grain_mw : MW_PER_W;
    begin(s, "begins");
    *ret = s;
    return 0;
}

void slack_free(struct slack *s)
{
    free(s);
}

const struct slack_step *slack_step(const struct slack *s)
{
    return &s->step;
}

void slack_result(const struct slack *s, struct slack_result *ret)
{
    uint32_t first[SLACK_BOARDS_MAX];

    *ret = s->result;
    first_caps(s, first);
    ret->watts_mw = (int64_t)sum_of(s->kept_mw, s->n) - (int64_t)sum_of(first, s->n);
    ret->known = s->first.n > 0 && s->kept.n > 0;
    if (!ret->known)
        return;
    ret->time_ratio = exp(ratio_log(&s->kept, &s->first));
}
