/* Energy of processors and their memory, beside the boards: counters, looked at once a
 * second, shown as they count and as means of a second or more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "gpu/rapl/rapl.h"
#include "node/node-inside.h"

enum {
    DOMAINS_MAX = 16,
    LOOK_MS = 1000,
    RETRY_S = 60, /* after a look that failed */
    FRESH_S = 5,
};

struct domain {
    bool has_first, has_power, busy;
    uint64_t first_mj, last_mj, last_ns, wait_ns;
    double power_w;
};

struct node_cpu {
    struct node *node;
    struct boards *set;
    struct loop_timer *timer;
    struct domain domain[DOMAINS_MAX];
    struct view_rapl view[DOMAINS_MAX];
    size_t n;
    bool said;
};

static void take_sample(struct domain *d, const struct gpu_sample *s)
{
    double dt = s_between(d->last_ns, s->energy_at_ns);

    if (!(s->has & GPU_HAS_ENERGY))
        return;
    if (!d->has_first) {
        d->has_first = true;
        d->first_mj = s->energy_mj;
    } else {
        if (dt < LOOK_MS * 1e-3 / 2)
            return;
        d->has_power = true;
        d->power_w = (double)(s->energy_mj - d->last_mj) * 1e-3 / dt;
    }
    d->last_mj = s->energy_mj;
    d->last_ns = s->energy_at_ns;
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
        return 0;
    }
    c->domain[i].wait_ns = loop_now_ns(c->node->loop) + RETRY_S * NS_PER_S;
    if (!c->said) /* once for all of them: it is one right that is missing */
        log_event(LOG_LEVEL_INFO, "no-cpu-energy", "reason=%s",
                  log_quote(err->text).text);
    c->said = true;
    return 0;
}

static int on_look(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct node_cpu *c = user;
    (void)timer;

    for (size_t i = 0; i < c->n; i++) {
        struct domain *d = &c->domain[i];
        if (!d->busy && now_ns >= d->wait_ns)
            d->busy =
                board_sample(boards_at(c->set, i), GPU_HAS_ENERGY, on_sample, c) == 0;
    }
    return 0;
}

static int on_open(struct boards *set, int r, const uw_error *err, void *user)
{
    struct node_cpu *c = user;

    if (r < 0)
        log_event(LOG_LEVEL_INFO, "no-cpu-energy", "reason=%s",
                  log_quote(err->text).text);
    if (r != 0)
        return 0;
    c->n = boards_count(set) < DOMAINS_MAX ? boards_count(set) : DOMAINS_MAX;
    if (c->n > 0)
        loop_timer_set(c->timer, loop_now_ns(c->node->loop), LOOK_MS * NS_PER_MS);
    return 0;
}

int node_rapl_start(struct node *node, uw_error *err)
{
    struct gpu_open_opts opts = {.clock = node->opts.gpu.clock,
                                 .backend_user = node->opts.cpu_user};

    if (!node->opts.cpu)
        return 0;
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
    struct node_cpu *c = take(node->cpu);

    if (!c)
        return;
    loop_timer_free(c->timer);
    boards_free(c->set);
    free(c);
}

/* One of the counters; what could not be read is tried again at once. */
static int on_counter(struct actuator *act, const char *zone, int fd, void *user)
{
    struct node *node = user;
    struct node_cpu *c = node->cpu;
    (void)act;

    if (zone && rapl_given_put(node->opts.cpu_given, zone, fd) < 0)
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

const struct view_rapl *node_rapl_look(struct node *node, size_t *ret_n)
{
    struct node_cpu *c = node->cpu;
    uint64_t now = loop_now_ns(node->loop);
    size_t n = 0;

    *ret_n = 0;
    for (size_t i = 0; c && i < c->n; i++) {
        const struct domain *d = &c->domain[i];
        const char *name = board_view(boards_at(c->set, i))->info->uuid;
        if (!d->has_first)
            continue;
        c->view[n++] = (struct view_rapl){
            .name = strncmp(name, "rapl:", 5) == 0 ? name + 5 : name,
            .energy_j = (double)(d->last_mj - d->first_mj) * 1e-3,
            .power_w = {.known = d->has_power && s_between(d->last_ns, now) < FRESH_S,
                        .v = d->power_w}};
    }
    *ret_n = n;
    return c ? c->view : NULL;
}
