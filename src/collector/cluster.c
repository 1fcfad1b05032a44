#include "collector/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "collector/node.h"
#include "collector/slurm.h"
#include "io/http-many.h"

enum {
    LANES = 2,
    AT_ONCE = 64,
    PAIRS_MAX = 4000000,
    URL_MAX = COLLECTOR_PATH + NODE_NAME,
    SOCKET_SIZE = 108,
};

/* One sending thread.  Nodes that have not answered have a lane of their own, so that no
 * other node waits for them.
 */
struct lane {
    struct cluster *c;
    struct loop_worker *worker;
    struct http_many *http;
    bool sick, busy, late;
    struct parcel *parcel;
    struct http_chain *chain;
    size_t n;
};
/* The requests to one node. */
struct parcel {
    struct node *node;
    struct node_asks asks;
    struct http_ask *http; /* one per request */
    char place[URL_MAX];
};
/* A job runs on a node. */
struct pair {
    size_t node, job;
};

struct cluster {
    struct loop *loop;
    const struct collector_config *config;
    struct slurm *slurm;
    struct loop_timer *timer, *later;
    struct node **node; /* sorted by name */
    size_t n_nodes;
    struct pair *pair;
    size_t n_pairs, pairs_cap;
    const struct slurm_seen *seen; /* while it is assigned to nodes */
    size_t job;                    /* … the current job */
    struct node_now now;           /* from the last look; jobs is NULL if it failed */
    struct lane lane[LANES];
    bool looking, fails, empty, left_out;
};

static struct node_now now_of(const struct cluster *c)
{
    struct node_now now = c->now;

    now.now_ns = loop_now_ns(c->loop);
    return now;
}

/* ---- sending ---- */

static void free_parcels(struct lane *l)
{
    for (size_t i = 0; l->parcel && i < l->n; i++) {
        struct parcel *p = &l->parcel[i];
        for (size_t k = 0; p->http && k < p->asks.n; k++)
            free(p->http[k].body);
        free(p->http);
        node_asks_fini(&p->asks);
    }
    free(take(l->parcel));
    free(take(l->chain));
    l->n = 0;
}

static int work(struct loop *loop, void *user)
{
    struct lane *l = user;
    (void)loop;

    http_many_run(l->http, l->chain, l->n);
    return 0;
}

/* How its chain ended, by its answers; why: the error in words, if there is one. */
static struct node_end end_of(const struct parcel *p, const struct http_chain *chain,
                              uw_error *why)
{
    struct node_end end = {
        .r = chain->r,
        .retry_s = chain->retry_s,
        .names = p->asks.n == 1 && p->asks.ask[0].of == NODE_ASK_NAMES,
    };

    *why = end.r < 0 ? chain->why : (uw_error){""};
    for (size_t i = 0; i < p->asks.n; i++) {
        unsigned status = p->http[i].status;
        end.some |= status >= 200 && status < 300;
        if (end.r == 0 && (status == 401 || status == 403))
            end.r = fail(why, -EACCES, "%s: HTTP %u: %s", p->place, status,
                         status == 401 ? "the token is unknown there, or has expired"
                                       : "only administrators may send this");
        if (end.r == 0 && (status == 429 || status >= 500)) {
            end.status = status;
            (void)fail(why, -EAGAIN, "%s: HTTP %u", p->place, status);
        }
    }
    return end;
}

static void take_answers(struct cluster *c, struct parcel *p, struct http_chain *chain)
{
    static const char *const states[] = {
        [NODE_ANSWERS] = "answers", [NODE_BUSY] = "busy", [NODE_SILENT] = "silent"};
    const struct node_now now = now_of(c);
    uw_error why;
    const struct node_end end = end_of(p, chain, &why);

    for (size_t i = 0; i < p->asks.n; i++)
        if (p->http[i].status)
            node_answered(p->node, &now, &p->asks.ask[i], p->http[i].status,
                          p->http[i].body);
    if (node_over(p->node, &now, &end)) {
        bool good = p->node->state == NODE_ANSWERS;
        log_event(good ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARNING, LOG_EVENT_COLLECTOR_NODE,
                  "name=%s state=%s reason=%s", p->node->name, states[p->node->state],
                  log_quote(good ? "" : why.text).text);
    }
}

static void send(struct lane *l);

/* Sets the timer for the first of the nodes that asked for a later request, if that is
 * before the next round.
 */
static void wait_for_busy(struct cluster *c)
{
    const uint64_t now_ns = loop_now_ns(c->loop);
    uint64_t first_ns = now_ns + c->config->every_ns;

    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct node *node = c->node[i];
        if (node->failures == 0 && node->again_ns > now_ns && node->again_ns < first_ns)
            first_ns = node->again_ns;
    }
    if (first_ns < now_ns + c->config->every_ns)
        loop_timer_set(c->later, first_ns, 0);
}

static void send_all(struct cluster *c)
{
    for (size_t i = 0; !c->looking && i < LANES; i++)
        send(&c->lane[i]);
    wait_for_busy(c);
}

static int on_later(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;

    send_all(user);
    return 0;
}

/* left: nodes of the lane that were not reached within a period. */
static void say_late(struct lane *l, size_t left)
{
    uw_error why = {""};

    if ((left > 0) == l->late)
        return;
    l->late = left > 0;
    if (left > 0)
        (void)fail(&why, -ETIME,
                   "%zu of %zu nodes were not reached within %.6g s: they are first in "
                   "the next period",
                   left, l->n, s_of_ns(l->c->config->every_ns));
    log_event(left > 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_COLLECTOR_NODE,
              "name=all state=%s reason=%s", left > 0 ? "late" : "answers",
              log_quote(why.text).text);
}

static int on_sent(struct loop *loop, void *user, int r)
{
    struct lane *l = user;
    struct cluster *c = l->c;
    size_t left = 0;
    (void)loop;

    l->busy = false;
    for (size_t i = 0; i < l->n; i++) {
        bool begun = r == 0 && l->chain[i].r != -ETIME;
        left += !begun;
        if (begun)
            take_answers(c, &l->parcel[i], &l->chain[i]);
        else
            l->parcel[i].node->busy = false;
    }
    if (r == 0)
        say_late(l, left);
    free_parcels(l);
    /* Nodes that have just reported their signals receive the values. */
    if (r == 0)
        send_all(c); /* both lanes: a node that answers again changes its lane */
    return 0;
}

static int wrap(struct lane *l, struct node *node, struct node_asks *asks)
{
    const struct collector_config *config = l->c->config;
    struct parcel *p = &l->parcel[l->n];
    struct http_chain *chain = &l->chain[l->n];
    const char *pattern = config->socket ? config->socket : config->url;
    size_t size = config->socket ? SOCKET_SIZE : sizeof p->place;

    *p = (struct parcel){.node = node, .http = calloc(asks->n, sizeof *p->http)};
    if (!p->http)
        return -ENOMEM;
    p->asks = *asks;
    *asks = (struct node_asks){.n = 0};
    l->n++;
    for (size_t i = 0; i < p->asks.n; i++) {
        const struct node_ask *a = &p->asks.ask[i];
        p->http[i] = (struct http_ask){.method = a->method,
                                       .path = a->path,
                                       .json = a->body,
                                       .keep = a->of == NODE_ASK_NAMES};
    }
    *chain = (struct http_chain){.ask = p->http, .n = p->asks.n};
    if (config->socket)
        chain->socket = p->place;
    else
        chain->url = p->place;
    if (collector_place(pattern, node->name, p->place, size) < 0) {
        chain->n = 0; /* no request is sent */
        chain->r = fail(&chain->why, -ENAMETOOLONG,
                        "%s: with the node's name it has more than %zu bytes", pattern,
                        size - 1);
    }
    node->busy = true;
    return 0;
}

static bool is_due(const struct lane *l, const struct node *node, uint64_t now_ns)
{
    if (node->busy || (node->failures > 0) != l->sick)
        return false;
    return node->again_ns <= now_ns;
}

/* The node that has waited longest comes first: with more nodes than fit into a period,
 * each has its turn.
 */
static int by_turn(const void *a, const void *b)
{
    const struct node *x = *(struct node *const *)a, *y = *(struct node *const *)b;

    if (x->tried_ns != y->tried_ns)
        return x->tried_ns < y->tried_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int pack(struct lane *l)
{
    struct cluster *c = l->c;
    const struct node_now now = now_of(c);
    auto_(mem_free) struct node **due = calloc(c->n_nodes + 1, sizeof(struct node *));
    size_t n = 0;
    int r = 0;

    l->parcel = calloc(c->n_nodes + 1, sizeof *l->parcel);
    l->chain = calloc(c->n_nodes + 1, sizeof *l->chain);
    if (!due || !l->parcel || !l->chain)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_nodes; i++)
        if (is_due(l, c->node[i], now.now_ns))
            due[n++] = c->node[i];
    qsort(due, n, sizeof(struct node *), by_turn);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct node_asks asks = {.n = 0};
        r = node_plan(due[i], &now, &asks);
        if (r == 0 && asks.n > 0)
            r = wrap(l, due[i], &asks);
        node_asks_fini(&asks);
    }
    return r;
}

static void send(struct lane *l)
{
    const struct loop_work todo = {.fn = work, .done = on_sent, .work = l};

    if (l->busy || !l->c->now.jobs)
        return;
    int r = pack(l);
    if (r == 0 && l->n > 0) {
        r = loop_worker_submit(l->worker, &todo);
        l->busy = r == 0;
    }
    if (l->busy)
        return;
    for (size_t i = 0; l->parcel && i < l->n; i++)
        if (l->parcel[i].node)
            l->parcel[i].node->busy = false;
    free_parcels(l);
    if (r < 0)
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_COLLECTOR_NODE,
                  "name=all state=silent reason=%s", log_quote(strerror(-r)).text);
}

/* ---- jobs by node ---- */

static void free_node(struct node *node)
{
    node_fini(node);
    free(node);
}

static struct node *new_node(const char *name)
{
    struct node *node = calloc(1, sizeof *node);

    if (node)
        (void)snprintf(node->name, sizeof node->name, "%s", name);
    return node;
}

/* Both lists are sorted.  A node that has gone stays while a request to it is under way.
 */
static int take_nodes(struct cluster *c, const struct slurm_seen *seen)
{
    struct node **new = calloc(c->n_nodes + seen->n_nodes + 1, sizeof(struct node *));
    size_t n = 0, k = 0;

    if (!new)
        return -ENOMEM;
    for (size_t i = 0; i < seen->n_nodes || k < c->n_nodes;) {
        int order = i == seen->n_nodes ? 1
                    : k == c->n_nodes  ? -1
                                       : strcmp(seen->node[i], c->node[k]->name);
        if (order >= 0) {
            struct node *old = c->node[k++];
            i += order == 0;
            if (order == 0 || old->busy)
                new[n++] = old;
            else
                free_node(old);
        } else if ((new[n] = new_node(seen->node[i++]))) {
            n++;
        }
    }
    free(c->node);
    c->node = new;
    c->n_nodes = n;
    return 0;
}

static int find_node(const struct cluster *c, const char *name, size_t len, size_t *ret)
{
    size_t low = 0, high = c->n_nodes;

    while (low < high) {
        size_t mid = (low + high) / 2;
        const char *at = c->node[mid]->name;
        int order = strncmp(at, name, len);
        if (order == 0 && at[len])
            order = 1;
        if (order == 0) {
            *ret = mid;
            return 0;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -ENOENT;
}

static void on_host(const char *name, size_t len, void *user)
{
    struct cluster *c = user;
    size_t at;

    if (find_node(c, name, len, &at) == 0 &&
        array_grow(&c->pair, &c->pairs_cap, c->n_pairs, PAIRS_MAX) == 0)
        c->pair[c->n_pairs++] = (struct pair){at, c->job};
}

static int by_node(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

static void put_jobs(struct cluster *c, const struct slurm_seen *seen)
{
    size_t at[NODE_JOBS], k = 0;

    c->n_pairs = 0;
    for (c->job = 0; c->job < seen->jobs->n; c->job++) {
        const struct slurm_job *job = &seen->jobs->job[c->job];
        bool plain = false;
        const char *names = job->stage == JOB_IS_RUNNING
                                ? hosts_find(seen->hosts, job->nodes, &plain)
                                : NULL;
        if (names)
            hosts_each(names, plain ? ',' : '\n', on_host, c);
    }
    if (c->n_pairs > 0)
        qsort(c->pair, c->n_pairs, sizeof *c->pair, by_node);
    for (size_t i = 0; i < c->n_nodes; i++) {
        size_t n = 0;
        for (; k < c->n_pairs && c->pair[k].node == i; k++)
            if (n < NODE_JOBS)
                at[n++] = c->pair[k].job;
        if (node_jobs(c->node[i], seen->jobs, at, n) < 0)
            c->node[i]->n_jobs = 0;
    }
}

static void say(struct cluster *c, int r, const uw_error *why)
{
    if ((r < 0) == c->fails)
        return;
    c->fails = r < 0;
    log_event(r < 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_COLLECTOR_SLURM,
              "state=%s reason=%s", r < 0 ? "silent" : "answers",
              log_quote(r < 0 ? why->text : "").text);
}

static void say_empty(struct cluster *c, bool empty)
{
    if (empty == c->empty)
        return;
    c->empty = empty;
    log_event(empty ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_COLLECTOR_SLURM,
              "state=answers reason=%s",
              log_quote(empty ? "sinfo shows no node with GPUs: nothing is sent"
                              : "sinfo shows nodes with GPUs")
                  .text);
}

static void say_left_out(struct cluster *c, size_t left_out)
{
    uw_error why = {""};

    if ((left_out > 0) == c->left_out)
        return;
    c->left_out = left_out > 0;
    (void)(left_out > 0 ? fail(&why, -ETIME,
                               "%zu jobs are not sent: scontrol has not expanded their "
                               "lists of nodes in time",
                               left_out)
                        : fail(&why, 0, "all lists of nodes are known"));
    log_event(left_out > 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE,
              LOG_EVENT_COLLECTOR_SLURM, "state=answers reason=%s",
              log_quote(why.text).text);
}

static void on_seen(int r, const struct slurm_seen *seen, const uw_error *why, void *user)
{
    struct cluster *c = user;

    c->looking = false;
    say(c, r, why);
    c->now = (struct node_now){.config = c->config};
    if (r < 0 || take_nodes(c, seen) < 0)
        return;
    say_empty(c, seen->n_nodes == 0);
    say_left_out(c, seen->left_out);
    c->now.queues = seen->queues;
    c->now.jobs = seen->jobs;
    put_jobs(c, seen);
    send_all(c);
}

static int on_round(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct cluster *c = user;
    (void)timer;
    (void)now_ns;

    if (!c->looking) {
        c->looking = true;
        (void)slurm_look(c->slurm);
    }
    return 0;
}

/* ---- life ---- */

static int open_lane(struct cluster *c, struct lane *l, const char *token, uw_error *err)
{
    const struct http_many_opts opts = {.agent = "underwatt-slurm-collector",
                                        .ca = c->config->ca,
                                        .token = token,
                                        .timeout_ns = NODE_SEND_S * NS_PER_S,
                                        .begin_ns = c->config->every_ns,
                                        .at_once = AT_ONCE,
                                        .body_max = NODE_ANSWER};
    int r = http_many_new(&opts, &l->http, err);

    l->c = c;
    return r < 0 ? r
                 : loop_worker_new(c->loop, l->sick ? "sick" : "nodes", &l->worker, err);
}

int cluster_new(struct loop *loop, const struct collector_config *config,
                const char *token, struct cluster **ret, uw_error *err)
{
    auto_(cluster_free) struct cluster *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->loop = loop;
    c->config = config;
    c->now.config = config;
    c->lane[1].sick = true;
    int r = slurm_new(loop, config, on_seen, c, &c->slurm, err);
    for (size_t i = 0; r == 0 && i < LANES; i++)
        r = open_lane(c, &c->lane[i], token, err);
    if (r == 0)
        r = loop_timer_new(loop, UINT64_MAX, 0, on_later, c, &c->later, err);
    if (r == 0)
        r = loop_timer_new(loop, loop_now_ns(loop), config->every_ns, on_round, c,
                           &c->timer, err);
    if (r == 0)
        *ret = take(c);
    return r;
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    loop_timer_free(c->timer);
    loop_timer_free(c->later);
    slurm_free(c->slurm);
    c->looking = true; /* nothing more is sent */
    for (size_t i = 0; i < LANES; i++) {
        struct lane *l = &c->lane[i];
        if (l->http)
            http_many_cancel(l->http);
        loop_worker_free(l->worker);
        free_parcels(l);
        http_many_free(l->http);
    }
    for (size_t i = 0; i < c->n_nodes; i++)
        free_node(c->node[i]);
    free(c->node);
    free(c->pair);
    free(c);
}
