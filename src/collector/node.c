#include "collector/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/json.h"

enum {
    LABEL_MAX = 63,   /* bytes of a label's value */
    HOLDS = 3,        /* periods for which a report is valid */
    AGAIN = 2,        /* … after which it is repeated */
    NAMES = 10,       /* … after which signals are queried again */
    BACKOFF_MAX = 16, /* most periods between two attempts */
};
static const char *const words[NODE_WHATS] = {
    [NODE_DEPTH] = "depth", [NODE_WAIT] = "wait", [NODE_GPUS] = "gpus"};

void node_fini(struct node *node)
{
    free(node->job);
    free(node->signal);
    *node = (struct node){.n_jobs = 0};
}

void node_asks_fini(struct node_asks *asks)
{
    for (size_t i = 0; i < asks->n; i++)
        free(asks->ask[i].body);
    free(asks->ask);
    *asks = (struct node_asks){.n = 0};
}

/* Rounds may be early or late by up to half a period. */
static uint64_t due(const struct node_now *now, unsigned periods)
{
    return now->now_ns + now->config->every_ns * periods - now->config->every_ns / 2;
}

/* A report is repeated after AGAIN periods plus at most a look and a sending. */
static uint64_t hold_ns(const struct node_now *now)
{
    return now->config->every_ns * HOLDS + (NODE_LOOK_S + NODE_SEND_S) * NS_PER_S;
}

/* ---- jobs ---- */

int node_jobs(struct node *node, const struct jobs *jobs, const size_t *at, size_t n)
{
    struct node_job *new = NULL;
    size_t cap = 0;

    if (n > NODE_JOBS)
        n = NODE_JOBS;
    if (array_reserve((void **)&new, &cap, n + 1, sizeof *new, NODE_JOBS + 1) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        new[i] = (struct node_job){.id = jobs->job[at[i]].id};
        for (size_t k = 0; k < node->n_jobs; k++)
            if (node->job[k].id == new[i].id)
                new[i] = node->job[k];
        new[i].at = at[i];
    }
    free(node->job);
    node->job = new;
    node->n_jobs = n;
    node->jobs_cap = cap;
    return 0;
}

/* At most LABEL_MAX bytes of whole, plain characters; "": no label is sent. */
static void label(struct json_out *o, const char *key, const char *value)
{
    char text[LABEL_MAX + 1];
    size_t n = 0;

    for (size_t wide; value[n]; n += wide) {
        wide = utf8_char(value + n, strnlen(value + n, 4));
        if (wide == 0)
            wide = 1;
        if (n + wide > LABEL_MAX)
            break;
    }
    memcpy(text, value, n);
    text[n] = '\0';
    utf8_mend(text);
    if (text[0])
        json_out_text(o, key, text);
}

static void label_number(struct json_out *o, const char *key, uint64_t v)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, v);
    json_out_text(o, key, text);
}

static void duration(struct json_out *o, const char *key, uint64_t s)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRIu64 " s", s);
    json_out_text(o, key, text);
}

char *node_job_body(const struct collector_config *config, const struct slurm_job *job,
                    uint64_t for_ns)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    const char *kind = collector_kind(config, job);
    char *text = NULL;

    json_out_object(o, NULL);
    if (job->has_uid)
        json_out_int(o, "uid", job->uid);
    json_out_object(o, "labels");
    label(o, "slurm.name", job->name);
    label(o, "slurm.partition", job->partition);
    label(o, "slurm.account", job->account);
    label(o, "slurm.qos", job->qos);
    if (job->array_id)
        label_number(o, "slurm.array_job", job->array_id);
    if (job->has_task)
        label_number(o, "slurm.array_task", job->task);
    if (job->het_id) {
        label_number(o, "slurm.het_job", job->het_id);
        label_number(o, "slurm.het_component", job->het_offset);
    }
    if (kind)
        json_out_text(o, "underwatt.kind", kind);
    json_out_end(o);
    if (job->limit_s > 0 && job->limit_s <= DURATION_MAX_S)
        duration(o, "time_limit", (uint64_t)job->limit_s);
    duration(o, "for", for_ns / NS_PER_S);
    json_out_end(o);
    return json_out_string(o, &text, NULL) == 0 ? text : NULL;
}

/* FNV-1a: to detect a body that is unchanged. */
static uint64_t hash_of(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

/* ---- plans ---- */

static struct node_ask *add(struct node_asks *asks, const char *method)
{
    if (array_grow(&asks->ask, &asks->cap, asks->n, NODE_SIGNALS + NODE_JOBS) < 0)
        return NULL;
    struct node_ask *a = &asks->ask[asks->n++];
    *a = (struct node_ask){.method = method};
    return a;
}

/* NULL: Slurm has no such partition. */
static const struct queue_figures *figures_of(const struct queues *q, const char *word)
{
    for (size_t i = 0; i < q->n; i++)
        if (strcmp(q->of[i].word, word) == 0)
            return &q->of[i];
    return NULL;
}

static uint64_t value_of(const struct queue_figures *f, int what)
{
    if (what == NODE_WAIT)
        return (uint64_t)f->wait_s;
    return what == NODE_DEPTH ? f->depth : f->gpus;
}

static int plan_signal(const struct node *node, size_t i, const struct node_now *now,
                       struct node_asks *ret)
{
    const struct node_signal_told *s = &node->signal[i];
    const struct queue_figures *f = figures_of(now->queues, s->word);
    uint64_t v = f ? value_of(f, s->what) : 0;
    uint64_t for_s = hold_ns(now) / NS_PER_S;

    if (!f)
        return 0;
    if (s->value == v && s->due_ns > now->now_ns)
        return 0;
    struct node_ask *a = add(ret, "PUT");
    if (!a)
        return -ENOMEM;
    a->of = NODE_ASK_SIGNAL;
    a->what = s->what;
    memcpy(a->word, s->word, sizeof a->word);
    a->hash = v;
    (void)snprintf(a->path, sizeof a->path, "/v1/signals/queue.%s%s%s", words[s->what],
                   *s->word ? "." : "", s->word);
    if (asprintf(&a->body,
                 "{\"value\": %" PRIu64 ", %s\"for\": \"%" PRIu64
                 " s\", \"source\": \"slurm\"}",
                 v, s->what == NODE_WAIT ? "\"unit\": \"s\", " : "", for_s) < 0)
        a->body = NULL;
    return a->body ? 0 : -ENOMEM;
}

static int plan_job(const struct node *node, size_t i, const struct node_now *now,
                    struct node_asks *ret)
{
    const struct node_job *j = &node->job[i];
    auto_(mem_free) char *body =
        node_job_body(now->config, &now->jobs->job[j->at], hold_ns(now));
    uint64_t hash = body ? hash_of(body) : 0;

    if (!body)
        return -ENOMEM;
    if (j->hash == hash && j->due_ns > now->now_ns)
        return 0;
    struct node_ask *a = add(ret, "PATCH");
    if (!a)
        return -ENOMEM;
    a->of = NODE_ASK_JOB;
    a->id = j->id;
    a->hash = hash;
    a->body = take(body);
    (void)snprintf(a->path, sizeof a->path, "/v1/jobs/slurm:%" PRIu64, j->id);
    return 0;
}

static int plan_those(const struct node *node, bool refused, const struct node_now *now,
                      struct node_asks *ret)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < node->n_signals; i++)
        if ((node->signal[i].refusals > 0) == refused)
            r = plan_signal(node, i, now, ret);
    for (size_t i = 0; r == 0 && i < node->n_jobs; i++)
        if ((node->job[i].refusals > 0) == refused)
            r = plan_job(node, i, now, ret);
    return r;
}

static int plan(const struct node *node, const struct node_now *now,
                struct node_asks *ret)
{
    int r;

    if (node->names_due_ns <= now->now_ns) {
        struct node_ask *a = add(ret, "GET");
        if (!a)
            return -ENOMEM;
        a->of = NODE_ASK_NAMES;
        (void)snprintf(a->path, sizeof a->path, "/v1/signals");
        return 0;
    }
    r = plan_those(node, false, now, ret);
    return r < 0 ? r : plan_those(node, true, now, ret);
}

int node_plan(const struct node *node, const struct node_now *now, struct node_asks *ret)
{
    struct node_asks asks = {.n = 0};
    int r = plan(node, now, &asks);

    if (r < 0)
        node_asks_fini(&asks);
    else
        *ret = asks;
    return r;
}

/* ---- answers ---- */

/* "queue.depth", "queue.depth.gpu_long". */
static bool is_ours(const char *name, struct node_signal_told *ret)
{
    if (strncmp(name, "queue.", 6) != 0)
        return false;
    name += 6;
    for (int what = 0; what < NODE_WHATS; what++) {
        size_t n = strlen(words[what]);
        if (strncmp(name, words[what], n) != 0 || (name[n] && name[n] != '.') ||
            strlen(name) - n > FIGURES_WORD)
            continue;
        *ret = (struct node_signal_told){.what = what};
        (void)snprintf(ret->word, sizeof ret->word, "%s", name[n] ? name + n + 1 : "");
        return true;
    }
    return false;
}

static struct node_signal_told *signal_of(const struct node *node, int what,
                                          const char *word)
{
    for (size_t i = 0; i < node->n_signals; i++)
        if (node->signal[i].what == what && strcmp(node->signal[i].word, word) == 0)
            return &node->signal[i];
    return NULL;
}

static struct node_job *job_of(const struct node *node, uint64_t id)
{
    for (size_t i = 0; i < node->n_jobs; i++)
        if (node->job[i].id == id)
            return &node->job[i];
    return NULL;
}

/* Signals that remain keep the last reported values. */
static int take_names(struct node *node, const struct json_value *list)
{
    struct node_signal_told *new = NULL, s;
    size_t n = 0, cap = 0;

    for (size_t i = 0; i < json_count(list); i++) {
        const char *name = json_as_text(json_get(json_at(list, i), "name"));
        if (!name || !is_ours(name, &s))
            continue;
        if (array_grow(&new, &cap, n, NODE_SIGNALS) < 0) {
            free(new);
            return -ENOMEM;
        }
        const struct node_signal_told *old = signal_of(node, s.what, s.word);
        new[n++] = old ? *old : s;
    }
    free(node->signal);
    node->signal = new;
    node->n_signals = n;
    node->signals_cap = cap;
    return 0;
}

static void on_names(struct node *node, const struct node_now *now, const char *body)
{
    auto_(json_free) struct json *doc = NULL;

    node->names_due_ns = due(now, 1); /* in case the answer is invalid */
    if (!body || json_read("signals", body, strlen(body), &doc, NULL) < 0)
        return;
    if (take_names(node, json_get(json_root(doc), "signals")) == 0)
        node->names_due_ns = due(now, NAMES);
}

/* Periods to wait after n failures in a row. */
static unsigned backoff(unsigned n)
{
    unsigned wait = 1;

    for (unsigned i = 1; i < n && wait < BACKOFF_MAX; i++)
        wait *= 2;
    return wait;
}

void node_answered(struct node *node, const struct node_now *now,
                   const struct node_ask *ask, unsigned status, const char *body)
{
    bool done = status >= 200 && status < 300;
    struct node_signal_told *s =
        ask->of == NODE_ASK_SIGNAL ? signal_of(node, ask->what, ask->word) : NULL;
    struct node_job *j = ask->of == NODE_ASK_JOB ? job_of(node, ask->id) : NULL;

    if (status == 429) /* it stays due */
        return;
    if (ask->of == NODE_ASK_NAMES && status < 500) {
        on_names(node, now, done ? body : NULL);
    } else if (s) {
        s->refusals = status >= 500 ? s->refusals + 1 : 0;
        s->value = ask->hash;
        s->due_ns = due(now, done ? AGAIN : backoff(s->refusals));
        if (status == 400) /* the daemon has a new policy */
            node->names_due_ns = 0;
    } else if (j) {
        j->refusals = status >= 500 ? j->refusals + 1 : 0;
        j->hash = ask->hash;
        /* also as before the job's prolog: next round */
        j->due_ns = due(now, done ? AGAIN : backoff(j->refusals));
    }
}

/* Everything has to be reported again. */
static void forget(struct node *node)
{
    node->names_due_ns = 0;
    for (size_t i = 0; i < node->n_signals; i++)
        node->signal[i].due_ns = 0;
    for (size_t i = 0; i < node->n_jobs; i++)
        node->job[i].due_ns = 0;
}

/* 429 after some requests is no failure: the node names the time for the others. */
static enum node_state refused(struct node *node, const struct node_now *now,
                               const struct node_end *end)
{
    const uint64_t most_ns = now->config->every_ns * BACKOFF_MAX;
    uint64_t wait_ns = end->retry_s * NS_PER_S;

    node->failures = 0;
    node->refusals = end->some ? 0 : node->refusals + 1;
    node->again_ns = now->now_ns + now->config->every_ns * backoff(node->refusals);
    if (wait_ns > most_ns)
        wait_ns = most_ns;
    if (wait_ns > 0 && (end->some || now->now_ns + wait_ns > node->again_ns))
        node->again_ns = now->now_ns + wait_ns;
    return end->some && end->status == 429 ? NODE_ANSWERS : NODE_BUSY;
}

bool node_over(struct node *node, const struct node_now *now, const struct node_end *end)
{
    enum node_state was = node->state;

    node->busy = false;
    node->tried_ns = now->now_ns;
    if (end->r < 0) {
        node->failures++;
        node->refusals = 0;
        node->denied = end->r == -EACCES;
        node->again_ns = due(now, backoff(node->failures));
        if (end->r != -ETIMEDOUT || !end->some)
            forget(node);
        node->state = NODE_SILENT;
    } else if (end->status) {
        node->state = refused(node, now, end);
    } else if (node->denied && end->names && node->n_signals + node->n_jobs > 0) {
        node->again_ns = 0; /* the token is valid again: the next answers decide */
    } else {
        node->failures = node->refusals = 0;
        node->again_ns = 0;
        node->denied = false;
        node->state = NODE_ANSWERS;
    }
    return node->state != was;
}
