#include "energy/processors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "core/meter/points.h"

enum {
    LOOK_MS = 1000,
    RETRY_S = 60,   /* after a failed read */
    FRESH_S = 5,    /* power is shown if the last sample is not older */
    HISTORY_S = 60, /* of a meter; stretches are queried sooner */
};

struct domain {
    struct processors *of;
    char name[32];            /* "package-0", "dram-0" */
    struct sampler *sampler;  /* NULL: the counter was not readable yet */
    bool busy;                /* without a sampler: a read is under way */
    uint64_t wait_ns;         /* without a sampler: earliest next read */
    struct attribution *book; /* NULL: not attributed */

    bool has_first, has_power;
    uint64_t last_mj, last_ns; /* last value of the counter and its time */
    double energy_j;           /* since the first sample */
    double power_w;            /* between the last two samples */
    bool shown_power;          /* shown_w is valid */
    uint64_t shown_ns;         /* last update of the shown values; 0: never */
    uint64_t shown_at_ns;      /* time of the sample that they are from */
    double shown_j, shown_w;
    struct points exact, shown; /* their values over time */
};

struct processors {
    struct processors_opts opts;
    const struct roster *roster; /* NULL: nothing is attributed */
    size_t n_boards;
    uint64_t interval_ns;
    struct boards *set;
    struct loop_timer *timer;
    struct domain domain[LEDGER_DOMAINS];
    struct view_rapl view[LEDGER_DOMAINS];
    size_t n;
    bool logged; /* that a counter cannot be read */
    bool ending;
};

/* ---- shown values ---- */

static void take_sample(struct domain *d, const struct gpu_sample *s)
{
    double dt = s_between(d->last_ns, s->energy_at_ns);

    if (!(s->has & GPU_HAS_ENERGY) || (d->has_first && s->energy_at_ns <= d->last_ns))
        return;
    if (d->has_first && dt < LOOK_MS * 1e-3 / 2)
        return;
    d->has_power = d->has_first && s->energy_mj >= d->last_mj; /* else it was reset */
    if (d->has_power) {
        double j = (double)(s->energy_mj - d->last_mj) * 1e-3;
        d->energy_j += j;
        d->power_w = j / dt;
    }
    d->has_first = true;
    d->last_mj = s->energy_mj;
    d->last_ns = s->energy_at_ns;
    points_add(&d->exact, d->last_ns, d->energy_j);
}

/* Computes power from whole joules as well, so that it reveals no finer energy. */
static void renew_shown(struct domain *d, uint64_t now_ns, uint64_t period_ns)
{
    double j = floor(d->energy_j / VIEW_RAPL_STEP_J) * VIEW_RAPL_STEP_J;
    double wait_s = s_of_ns(period_ns) - LOOK_MS * 1e-3 / 4;

    if (!d->has_first || (d->shown_ns && s_between(d->shown_ns, now_ns) < wait_s))
        return;
    double dt = s_between(d->shown_at_ns, d->last_ns);
    d->shown_power = d->shown_ns && dt > 0;
    d->shown_w = d->shown_power ? (j - d->shown_j) / dt : 0;
    d->shown_j = j;
    d->shown_ns = now_ns;
    d->shown_at_ns = d->last_ns;
    points_add(&d->shown, d->last_ns, j);
}

size_t processors_between(const struct processors *c, bool exact, uint64_t begin_ns,
                          uint64_t end_ns, struct processors_energy ret[LEDGER_DOMAINS])
{
    for (size_t i = 0; c && i < c->n; i++) {
        const struct domain *d = &c->domain[i];
        struct processors_energy e = {.name = d->name};
        e.known = points_between(
            exact ? &d->exact : &d->shown, begin_ns, end_ns, exact ? 0 : VIEW_RAPL_STEP_J,
            c->opts.shown_ns + FRESH_S * NS_PER_S, &e.energy_j, &e.half_j);
        ret[i] = e;
    }
    return c ? c->n : 0;
}

const struct view_rapl *processors_look(struct processors *c, size_t *ret_n)
{
    uint64_t now = c ? loop_now_ns(c->opts.loop) : 0;
    size_t n = 0;

    for (size_t i = 0; c && i < c->n; i++) {
        const struct domain *d = &c->domain[i];
        bool fresh = s_between(d->last_ns, now) < FRESH_S;
        if (!d->shown_ns)
            continue;
        c->view[n++] = (struct view_rapl){
            .name = d->name,
            .energy_j = d->shown_j,
            .power_w = {d->shown_power && fresh, d->shown_w},
            .exact = {d->energy_j, {d->has_power && fresh, d->power_w}}};
    }
    *ret_n = n;
    return c ? c->view : NULL;
}

/* ---- attribution ---- */

static void on_row(const struct attribution_row *row, void *user)
{
    struct domain *d = user;
    struct attribution_row mine = *row;

    mine.board = LEDGER_DOMAIN((size_t)(d - d->of->domain));
    d->of->opts.on_row(&mine, d->of->opts.user);
}

static void on_total(const struct attribution_total *total, void *user)
{
    struct domain *d = user;
    struct attribution_total mine = *total;

    mine.board = LEDGER_DOMAIN((size_t)(d - d->of->domain));
    d->of->opts.on_total(&mine, d->of->opts.user);
}

/* attribution_opts.who: a job has the node if it is the only one, has all boards, and no
 * other user's process is on them.
 */
static uint64_t who_has_node(void *user)
{
    const struct domain *d = user;
    const struct roster *roster = d->of->roster;
    size_t n = d->of->n_boards;
    uint64_t all = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
    const struct job_entry *job = NULL;

    if (!roster || roster_count(roster) > 1)
        return ATTRIBUTION_SOMEBODY;
    if (roster_count(roster) == 1)
        job = roster_at(roster, 0);
    for (size_t i = 0; i < n && !job; i++)
        if (roster_in_use(roster, i))
            return ATTRIBUTION_SOMEBODY;
    if (!job)
        return ATTRIBUTION_NOBODY;
    return job->boards == all && !job->foreign ? job->id : ATTRIBUTION_SOMEBODY;
}

static void begin_book(struct domain *d)
{
    struct attribution_opts opts = {.loop = d->of->opts.loop,
                                    .sampler = &d->sampler,
                                    .n = 1,
                                    .interval_ns = d->of->interval_ns,
                                    .who = who_has_node,
                                    .on_row = on_row,
                                    .on_total = on_total,
                                    .user = d};
    uw_error err = {""};

    if (d->book || !d->sampler || !d->of->roster || d->of->ending)
        return;
    if (attribution_new(&opts, &d->book, &err) < 0) /* retried by the next poll */
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NO_CPU_ENERGY, "domain=%s reason=%s",
                  d->name, log_quote(err.text).text);
}

void processors_start(struct processors *c, const struct roster *roster, size_t n_boards,
                      uint64_t interval_ns)
{
    if (!c)
        return;
    c->roster = roster;
    c->n_boards = n_boards;
    c->interval_ns = interval_ns;
    for (size_t i = 0; i < c->n; i++)
        begin_book(&c->domain[i]);
}

void processors_stop(struct processors *c)
{
    if (!c)
        return;
    c->roster = NULL;
    for (size_t i = 0; i < c->n; i++)
        attribution_free(take(c->domain[i].book));
}

unsigned processors_end(struct processors *c,
                        int (*fn)(struct attribution *b, void *user), void *user)
{
    unsigned n = 0;

    for (size_t i = 0; c && i < c->n; i++)
        n += c->domain[i].book && attribution_end(c->domain[i].book, fn, user) == 0;
    if (c)
        c->ending = true;
    return n;
}

void processors_turn(struct processors *c)
{
    for (size_t i = 0; c && i < c->n; i++)
        if (c->domain[i].book)
            attribution_turn(c->domain[i].book, 0);
}

void processors_forget(struct processors *c, uint64_t job)
{
    for (size_t i = 0; c && i < c->n; i++)
        if (c->domain[i].book)
            attribution_forget(c->domain[i].book, job);
}

/* ---- the counters ---- */

/* Starts the sampler, once the counter has proved readable. */
static void begin_sampling(struct domain *d, struct board *board)
{
    struct sampler_opts opts = {.rest_ns = LOOK_MS * NS_PER_MS,
                                .seed = (uint64_t)(d - d->of->domain) + 1,
                                .history_s = HISTORY_S};
    uw_error err = {""};

    if (sampler_new(d->of->opts.loop, &board, 1, &opts, &d->sampler, &err) < 0) {
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NO_CPU_ENERGY, "domain=%s reason=%s",
                  d->name, log_quote(err.text).text);
        return;
    }
    sampler_rate(d->sampler, 0, SAMPLER_REST, false);
    begin_book(d);
}

static int on_sample(struct board *b, int r, const struct gpu_sample *s,
                     const uw_error *err, void *user)
{
    struct processors *c = user;
    size_t i = board_view(b)->at;

    if (r == -ECANCELED || i >= c->n)
        return 0;
    c->domain[i].busy = false;
    if (r == 0) {
        take_sample(&c->domain[i], s);
        begin_sampling(&c->domain[i], b);
        return 0;
    }
    c->domain[i].wait_ns = loop_now_ns(c->opts.loop) + RETRY_S * NS_PER_S;
    if (!c->logged) /* one message: all counters need the same permission */
        log_event(LOG_LEVEL_INFO, LOG_EVENT_NO_CPU_ENERGY, "reason=%s",
                  log_quote(err->text).text);
    c->logged = true;
    return 0;
}

static void look_at(struct domain *d, size_t i, uint64_t now_ns)
{
    struct processors *c = d->of;

    if (!d->sampler) {
        if (!d->busy && now_ns >= d->wait_ns)
            d->busy =
                board_sample(boards_at(c->set, i), GPU_HAS_ENERGY, on_sample, c) == 0;
        return;
    }
    const struct sampler_now *now = sampler_board(d->sampler, 0);
    if (now->failures == 0)
        take_sample(d, &now->last);
    begin_book(d);
    if (d->book)
        attribution_see(d->book);
}

static int on_look(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct processors *c = user;
    (void)timer;

    for (size_t i = 0; i < c->n; i++) {
        look_at(&c->domain[i], i, now_ns);
        renew_shown(&c->domain[i], now_ns, c->opts.shown_ns);
    }
    return 0;
}

static void take_domains(struct processors *c, struct boards *set)
{
    c->n = boards_count(set) < LEDGER_DOMAINS ? boards_count(set) : LEDGER_DOMAINS;
    for (size_t i = 0; i < c->n; i++) {
        struct domain *d = &c->domain[i];
        d->of = c;
        memcpy(d->name, board_view(boards_at(set, i))->info->domain, sizeof d->name);
    }
    if (c->n > 0)
        loop_timer_set(c->timer, loop_now_ns(c->opts.loop), LOOK_MS * NS_PER_MS);
}

static int on_open(struct boards *set, int r, const uw_error *err, void *user)
{
    struct processors *c = user;

    if (r < 0)
        log_event(LOG_LEVEL_INFO, LOG_EVENT_NO_CPU_ENERGY, "reason=%s",
                  log_quote(err->text).text);
    if (r == 0)
        take_domains(c, set);
    return c->opts.on_open(c->opts.user);
}

int processors_new(const struct processors_opts *opts, struct processors **ret,
                   uw_error *err)
{
    auto_(processors_free) struct processors *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->opts = *opts;
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, on_look, c, &c->timer, err);
    if (r == 0)
        r = boards_open(opts->loop, opts->backend, &opts->gpu, on_open, c, &c->set, err);
    if (r < 0)
        return r;
    *ret = take(c);
    return 0;
}

void processors_free(struct processors *c)
{
    if (!c)
        return;
    processors_stop(c);
    loop_timer_free(c->timer);
    for (size_t i = 0; i < c->n; i++)
        sampler_free(c->domain[i].sampler);
    boards_free(c->set);
    free(c);
}

void processors_period(struct processors *c, uint64_t shown_ns)
{
    if (c)
        c->opts.shown_ns = shown_ns;
}

void processors_retry(struct processors *c)
{
    for (size_t i = 0; c && i < c->n; i++)
        c->domain[i].wait_ns = 0;
}

size_t processors_domains(const struct processors *c,
                          struct ledger_domain ret[LEDGER_DOMAINS])
{
    for (size_t i = 0; c && i < c->n; i++) {
        const char *name = c->domain[i].name;
        ret[i] =
            (struct ledger_domain){.uuid = board_view(boards_at(c->set, i))->info->uuid,
                                   .name = name,
                                   .memory = strncmp(name, "package-", 8) != 0};
    }
    return c ? c->n : 0;
}
