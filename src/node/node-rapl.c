/* Energy of processors and their memory, beside the boards: counters, sampled once a
 * second, booked as boards are, and shown in whole joules and long means to all but
 * administrators.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "gpu/counters.h"
#include "node/node-inside.h"

enum {
    LOOK_MS = 1000,
    RETRY_S = 60, /* after a look that failed */
    FRESH_S = 5,
    HISTORY_S = 60, /* of a meter: windows are asked for sooner */
};

struct domain {
    struct node_cpu *cpu;
    char name[32];            /* "package-0", "dram-0" */
    struct sampler *sampler;  /* NULL: it could not be read yet … */
    bool busy;                /* … and is looked at now … */
    uint64_t wait_ns;         /* … or then */
    struct attribution *book; /* NULL: nobody writes it down */

    bool has_first, has_power;
    uint64_t last_mj, last_ns; /* of the counter */
    double energy_j, power_w;  /* since the first look; of the last second */
    bool shown_power;
    uint64_t shown_ns, shown_at_ns; /* when (0: not yet), and of which sample */
    double shown_j, shown_w;
};

struct node_cpu {
    struct node *node;
    struct boards *set;
    struct loop_timer *timer;
    struct domain domain[LEDGER_DOMAINS];
    struct view_rapl view[LEDGER_DOMAINS];
    size_t n;
    bool said, booking;
};

/* ---- what is shown ---- */

static void take_sample(struct domain *d, const struct gpu_sample *s)
{
    double dt = s_between(d->last_ns, s->energy_at_ns);

    if (!(s->has & GPU_HAS_ENERGY) || (d->has_first && s->energy_at_ns <= d->last_ns))
        return;
    if (d->has_first && dt < LOOK_MS * 1e-3 / 2)
        return;
    d->has_power = d->has_first && s->energy_mj >= d->last_mj; /* else it began anew */
    if (d->has_power) {
        double j = (double)(s->energy_mj - d->last_mj) * 1e-3;
        d->energy_j += j;
        d->power_w = j / dt;
    }
    d->has_first = true;
    d->last_mj = s->energy_mj;
    d->last_ns = s->energy_at_ns;
}

/* Made of whole joules alone, so that nothing finer can be had out of it. */
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
}

const struct view_rapl *node_rapl_look(struct node *node, size_t *ret_n)
{
    struct node_cpu *c = node->cpu;
    uint64_t now = loop_now_ns(node->loop);
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

/* ---- the books ---- */

static void on_row(const struct attribution_row *row, void *user)
{
    struct domain *d = user;
    struct attribution_row mine = *row;

    mine.board = LEDGER_DOMAIN((size_t)(d - d->cpu->domain));
    node_ledger_energy(d->cpu->node, &mine);
}

static void on_total(const struct attribution_total *total, void *user)
{
    struct domain *d = user;
    struct attribution_total mine = *total;

    mine.board = LEDGER_DOMAIN((size_t)(d - d->cpu->domain));
    node_ledger_total(d->cpu->node, &mine);
}

/* Who has the node: a job alone, on all of its boards, with nobody else there. */
static uint64_t who_has_node(void *user)
{
    const struct domain *d = user;
    const struct node *node = d->cpu->node;
    uint64_t all = node->n >= 64 ? UINT64_MAX : (UINT64_C(1) << node->n) - 1;
    const struct job_entry *job = NULL;

    if (!node->roster || roster_count(node->roster) > 1)
        return ATTRIBUTION_SOMEBODY;
    if (roster_count(node->roster) == 1)
        job = roster_at(node->roster, 0);
    for (size_t i = 0; i < node->n && !job; i++)
        if (roster_in_use(node->roster, i))
            return ATTRIBUTION_SOMEBODY;
    if (!job)
        return ATTRIBUTION_NOBODY;
    return job->boards == all && !job->foreign ? job->id : ATTRIBUTION_SOMEBODY;
}

static void begin_book(struct domain *d)
{
    struct node *node = d->cpu->node;
    struct attribution_opts opts = {.loop = node->loop,
                                    .sampler = &d->sampler,
                                    .n = 1,
                                    .interval_ns = node->config.node.interval_ns,
                                    .who = who_has_node,
                                    .on_row = on_row,
                                    .on_total = on_total,
                                    .user = d};
    uw_error err = {""};

    if (d->book || !d->sampler || !d->cpu->booking)
        return;
    if (attribution_new(&opts, &d->book, &err) < 0) /* tried again with the next look */
        log_event(LOG_LEVEL_WARNING, "no-cpu-energy", "domain=%s reason=%s", d->name,
                  log_quote(err.text).text);
}

void node_rapl_books_start(struct node *node)
{
    struct node_cpu *c = node->cpu;

    for (size_t i = 0; c && i < c->n; i++) {
        c->booking = true;
        begin_book(&c->domain[i]);
    }
}

void node_rapl_books_stop(struct node *node)
{
    struct node_cpu *c = node->cpu;

    for (size_t i = 0; c && i < c->n; i++) {
        c->booking = false;
        attribution_free(take(c->domain[i].book));
    }
}

unsigned node_rapl_books_end(struct node *node,
                             int (*fn)(struct attribution *b, void *user))
{
    struct node_cpu *c = node->cpu;
    unsigned n = 0;

    for (size_t i = 0; c && i < c->n; i++)
        n += c->domain[i].book && attribution_end(c->domain[i].book, fn, node) == 0;
    if (c)
        c->booking = false;
    return n;
}

void node_rapl_turn(struct node *node)
{
    struct node_cpu *c = node->cpu;

    for (size_t i = 0; c && i < c->n; i++)
        if (c->domain[i].book)
            attribution_turn(c->domain[i].book, 0);
}

void node_rapl_forget(struct node *node, uint64_t job)
{
    struct node_cpu *c = node->cpu;

    for (size_t i = 0; c && i < c->n; i++)
        if (c->domain[i].book)
            attribution_forget(c->domain[i].book, job);
}

/* ---- the counters ---- */

/* It can be read: from now on a sampler does. */
static void begin_sampling(struct domain *d, struct board *board)
{
    struct node *node = d->cpu->node;
    struct sampler_opts opts = {.rest_ns = LOOK_MS * NS_PER_MS,
                                .seed = (uint64_t)(d - d->cpu->domain) + 1,
                                .history_s = HISTORY_S};
    uw_error err = {""};

    if (sampler_new(node->loop, &board, 1, &opts, &d->sampler, &err) < 0) {
        log_event(LOG_LEVEL_WARNING, "no-cpu-energy", "domain=%s reason=%s", d->name,
                  log_quote(err.text).text);
        return;
    }
    sampler_rate(d->sampler, 0, SAMPLER_REST, false);
    begin_book(d);
}

static int on_sample(struct board *b, int r, const struct gpu_sample *s,
                     const uw_error *err, void *user)
{
    struct node_cpu *c = user;
    size_t i = board_view(b)->at;

    if (r == -ECANCELED || i >= c->n)
        return 0;
    c->domain[i].busy = false;
    if (r == 0) {
        take_sample(&c->domain[i], s);
        begin_sampling(&c->domain[i], b);
        return 0;
    }
    c->domain[i].wait_ns = loop_now_ns(c->node->loop) + RETRY_S * NS_PER_S;
    if (!c->said) /* once for all of them: it is one right that is missing */
        log_event(LOG_LEVEL_INFO, "no-cpu-energy", "reason=%s",
                  log_quote(err->text).text);
    c->said = true;
    return 0;
}

static void look_at(struct domain *d, size_t i, uint64_t now_ns)
{
    struct node_cpu *c = d->cpu;

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
    struct node_cpu *c = user;
    (void)timer;

    for (size_t i = 0; i < c->n; i++) {
        look_at(&c->domain[i], i, now_ns);
        renew_shown(&c->domain[i], now_ns, c->node->config.boards.rapl_ns);
    }
    return 0;
}

static void take_domains(struct node_cpu *c, struct boards *set)
{
    c->n = boards_count(set) < LEDGER_DOMAINS ? boards_count(set) : LEDGER_DOMAINS;
    for (size_t i = 0; i < c->n; i++) {
        struct domain *d = &c->domain[i];
        d->cpu = c;
        memcpy(d->name, board_view(boards_at(set, i))->info->domain, sizeof d->name);
    }
    if (c->n > 0)
        loop_timer_set(c->timer, loop_now_ns(c->node->loop), LOOK_MS * NS_PER_MS);
}

static int on_open(struct boards *set, int r, const uw_error *err, void *user)
{
    struct node_cpu *c = user;
    struct node *node = c->node;
    uw_error why = {""};

    if (r < 0)
        log_event(LOG_LEVEL_INFO, "no-cpu-energy", "reason=%s",
                  log_quote(err->text).text);
    if (r == 0)
        take_domains(c, set);
    r = node_boards_begin(node, &why);
    return r < 0 ? node->opts.on_ready(node, r, &why, node->opts.user) : 0;
}

int node_rapl_start(struct node *node, uw_error *err)
{
    struct gpu_open_opts opts = {.clock = node->opts.gpu.clock,
                                 .source = node->opts.cpu_source,
                                 .given = node->opts.cpu_given};

    node->cpu = calloc(1, sizeof *node->cpu);
    if (!node->cpu)
        return fail(err, -ENOMEM, "out of memory");
    node->cpu->node = node;
    int r = loop_timer_new(node->loop, UINT64_MAX, 0, on_look, node->cpu,
                           &node->cpu->timer, err);
    if (r < 0)
        return r;
    return boards_open(node->loop, node->opts.cpu, &opts, on_open, node->cpu,
                       &node->cpu->set, err);
}

void node_rapl_stop(struct node *node)
{
    struct node_cpu *c = node->cpu;

    if (!c)
        return;
    node_rapl_books_stop(node);
    node->cpu = NULL;
    loop_timer_free(c->timer);
    for (size_t i = 0; i < c->n; i++)
        sampler_free(c->domain[i].sampler);
    boards_free(c->set);
    free(c);
}

size_t node_rapl_domains(const struct node *node,
                         struct ledger_domain ret[LEDGER_DOMAINS])
{
    struct node_cpu *c = node->cpu;

    for (size_t i = 0; c && i < c->n; i++) {
        const char *name = c->domain[i].name;
        ret[i] =
            (struct ledger_domain){.uuid = board_view(boards_at(c->set, i))->info->uuid,
                                   .name = name,
                                   .memory = strncmp(name, "package-", 8) != 0};
    }
    return c ? c->n : 0;
}

/* One of the counters; what could not be read is tried again at once. */
static int on_counter(struct actuator *act, const char *zone, int fd, void *user)
{
    struct node *node = user;
    struct node_cpu *c = node->cpu;
    (void)act;

    if (zone && gpu_given_put(node->opts.cpu_given, zone, fd) < 0)
        log_event(LOG_LEVEL_WARNING, "no-cpu-energy", "zone=%s reason=refused", zone);
    for (size_t i = 0; c && i < c->n; i++)
        c->domain[i].wait_ns = 0;
    return 0;
}

void node_rapl_ask(struct node *node, struct actuator *act)
{
    if (node->cpu && node->opts.cpu_given)
        (void)actuator_counters(act, on_counter, node);
}
