#include "energy/processors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"

enum { FRESH_S = 5 }; /* power is shown if the last sample is not older */
_Static_assert((int)DOMAINS_MAX == (int)LEDGER_DOMAINS, "the ledger has room for all");

struct domain {
    struct processors *of;
    struct sampler *sampler;  /* NULL: the counter was not readable yet */
    struct attribution *book; /* NULL: not attributed */
};

struct processors {
    struct processors_opts opts;
    const struct roster *roster; /* NULL: nothing is attributed */
    size_t n_boards;
    uint64_t interval_ns;
    struct domains *domains;
    struct domain domain[LEDGER_DOMAINS];
    struct view_rapl view[LEDGER_DOMAINS];
    bool logged; /* the failure to read a counter was logged */
    bool ending;
};

static size_t count(const struct processors *c)
{
    return c ? domains_count(c->domains) : 0;
}

static const char *name_of(const struct processors *c, size_t i)
{
    return domains_at(c->domains, i)->name;
}

/* ---- shown values ---- */

size_t processors_between(const struct processors *c, bool exact, uint64_t begin_ns,
                          uint64_t end_ns, struct processors_energy ret[LEDGER_DOMAINS])
{
    for (size_t i = 0; i < count(c); i++) {
        struct processors_energy e = {.name = name_of(c, i)};
        e.known = domains_between(c->domains, i, exact, begin_ns, end_ns, &e.energy_j,
                                  &e.half_j);
        ret[i] = e;
    }
    return count(c);
}

const struct view_rapl *processors_look(struct processors *c, size_t *ret_n)
{
    uint64_t now = c ? loop_now_ns(c->opts.loop) : 0;
    size_t n = 0;

    for (size_t i = 0; i < count(c); i++) {
        const struct domain_view *d = domains_at(c->domains, i);
        bool fresh = s_between(d->last_ns, now) < FRESH_S;
        if (!d->shown_ns)
            continue;
        c->view[n++] = (struct view_rapl){
            .name = d->name,
            .energy_j = d->shown_j,
            .power_w = {d->shown_w.known && fresh, d->shown_w.v},
            .exact = {d->energy_j, {d->power_w.known && fresh, d->power_w.v}}};
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
 * process of another user is on them.
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
    if (attribution_new(&opts, &d->book, &err) < 0) /* the next poll tries again */
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NO_CPU_ENERGY, "domain=%s reason=%s",
                  name_of(d->of, (size_t)(d - d->of->domain)), log_quote(err.text).text);
}

void processors_start(struct processors *c, const struct roster *roster, size_t n_boards,
                      uint64_t interval_ns)
{
    if (!c)
        return;
    c->roster = roster;
    c->n_boards = n_boards;
    c->interval_ns = interval_ns;
    for (size_t i = 0; i < count(c); i++)
        begin_book(&c->domain[i]);
}

void processors_stop(struct processors *c)
{
    if (!c)
        return;
    c->roster = NULL;
    for (size_t i = 0; i < count(c); i++)
        attribution_free(take(c->domain[i].book));
}

unsigned processors_end(struct processors *c,
                        int (*fn)(struct attribution *b, void *user), void *user)
{
    unsigned n = 0;

    for (size_t i = 0; i < count(c); i++)
        n += c->domain[i].book && attribution_end(c->domain[i].book, fn, user) == 0;
    if (c)
        c->ending = true;
    return n;
}

void processors_turn(struct processors *c)
{
    for (size_t i = 0; i < count(c); i++)
        if (c->domain[i].book)
            attribution_turn(c->domain[i].book, 0);
}

void processors_forget(struct processors *c, uint64_t job)
{
    for (size_t i = 0; i < count(c); i++)
        if (c->domain[i].book)
            attribution_forget(c->domain[i].book, job);
}

/* ---- the counters ---- */

static void on_look(size_t i, void *user)
{
    struct processors *c = user;
    struct domain *d = &c->domain[i];

    d->sampler = domains_at(c->domains, i)->sampler;
    begin_book(d);
    if (d->book)
        attribution_see(d->book);
}

static void on_refused(const uw_error *err, void *user)
{
    struct processors *c = user;

    if (!c->logged) /* one message: all counters need the same permission */
        log_event(LOG_LEVEL_INFO, LOG_EVENT_NO_CPU_ENERGY, "reason=%s",
                  log_quote(err->text).text);
    c->logged = true;
}

static int on_open(int r, const uw_error *err, void *user)
{
    struct processors *c = user;

    if (r < 0)
        log_event(LOG_LEVEL_INFO, LOG_EVENT_NO_CPU_ENERGY, "reason=%s",
                  log_quote(err->text).text);
    return c->opts.on_open(c->opts.user);
}

int processors_new(const struct processors_opts *opts, struct processors **ret,
                   uw_error *err)
{
    auto_(processors_free) struct processors *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->opts = *opts;
    for (size_t i = 0; i < n_elements(c->domain); i++)
        c->domain[i].of = c;
    struct domains_opts domains = {.loop = opts->loop,
                                   .backend = opts->backend,
                                   .gpu = opts->gpu,
                                   .shown_ns = opts->shown_ns,
                                   .on_open = on_open,
                                   .on_look = on_look,
                                   .on_refused = on_refused,
                                   .user = c};
    int r = domains_new(&domains, &c->domains, err);
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
    domains_free(c->domains);
    free(c);
}

void processors_period(struct processors *c, uint64_t shown_ns)
{
    if (c)
        domains_period(c->domains, shown_ns);
}

void processors_retry(struct processors *c)
{
    if (c)
        domains_retry(c->domains);
}

size_t processors_domains(const struct processors *c,
                          struct ledger_domain ret[LEDGER_DOMAINS])
{
    for (size_t i = 0; i < count(c); i++) {
        const struct domain_view *d = domains_at(c->domains, i);
        ret[i] = (struct ledger_domain){.uuid = d->uuid,
                                        .name = d->name,
                                        .memory = strncmp(d->name, "package-", 8) != 0};
    }
    return count(c);
}
