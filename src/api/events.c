/* Followers, and the text of each event. */
#include "api/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/show.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"
#include "node/node-policy.h"

/* The samples of 64 boards and 256 jobs, each on every board, take 150 KiB. */
enum { QUEUE_BYTES = 256 * 1024 };

struct follower {
    struct follower *next;
    struct events *e;
    struct http_stream *stream;
    uint32_t kinds;
};

struct events {
    struct events_opts opts;
    struct follower *first;
    size_t n;
    struct loop_timer *timer; /* runs while a follower subscribes to samples */
    char *samples;            /* the last text sent */
    uint64_t samples_ns;
    uint64_t newest_job;
};

int events_kinds_parse(const char *text, uint32_t *ret, uw_error *err)
{
    uint32_t got = 0;

    if (!text) {
        *ret = EVENTS_ALL;
        return 0;
    }
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        char word[41], none[NEAREST_NONE];
        (void)snprintf(word, sizeof word, "%.*s", n < 40 ? (int)n : 40, p);
        int bit = names_number(NAMES_STREAM, word);
        if (bit < 0)
            return fail(err, -EINVAL, "what: %s",
                        names_none_of(NAMES_STREAM, word, none));
        got |= 1u << bit;
        p += n;
        if (!*p)
            break;
    }
    *ret = got;
    return 0;
}

/* ---- texts ---- */

/* Renders o as one line and frees o.  NULL: out of memory. */
static char *line(struct json_out *o)
{
    char *text = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&text, &len);
    int r = -ENOMEM;

    if (file) {
        r = json_out_line(o, file, NULL);
        if (fclose(file) != 0)
            r = -ENOMEM;
    }
    json_out_free(o);
    if (r < 0) {
        free(text);
        return NULL;
    }
    text[strcspn(text, "\n")] = '\0';
    return text;
}

static void sample_board(struct json_out *o, const struct view_board *b)
{
    const struct caps_view *c = &b->cap;
    uint32_t has = b->last.has;

    json_out_object(o, NULL);
    json_out_int(o, "gpu", b->info->index);
    json_out_text(o, "uuid", b->info->uuid);
    show_value(o, "power_w", &b->power_w);
    show_mw(o, "enforced_mw", has & GPU_HAS_ENFORCED ? b->last.enforced_mw : 0);
    show_mw(o, "target_mw", c->can_cap ? c->verdict.target_mw : 0);
    show_mw(o, "ramp_mw", c->can_cap ? c->ramp_mw : 0);
    json_out_text(o, "state", names_word(NAMES_CAP_STATE, c->state));
    json_out_known_double(o, "temperature_c", has & GPU_HAS_TEMP, b->last.temp_c);
    json_out_known_double(o, "utilization", has & GPU_HAS_UTIL, b->last.util_gpu / 100.0);
    show_mw(o, "sm_mhz", has & GPU_HAS_CLOCKS ? b->last.sm_mhz : 0);
    json_out_counter(o, "energy_j", b->energy_j);
    json_out_counter(o, "today_j", b->today_j);
    json_out_int(o, "claims", c->claims ? (int64_t)c->claims->n : 0);
    json_out_array(o, "jobs");
    for (size_t k = 0; k < b->n_jobs; k++)
        json_out_int(o, NULL, (int64_t)b->job[k]);
    json_out_end(o);
    json_out_end(o);
}

static void sample_job(struct json_out *o, const struct node_view *v,
                       const struct view_job *j)
{
    const struct searches_view *s = &j->search;

    json_out_object(o, NULL);
    json_out_int(o, "id", (int64_t)j->job->id);
    json_out_text(o, "user", j->job->user[0] ? j->job->user : NULL);
    json_out_int(o, "uid", j->job->uid);
    show_boards(o, "gpus", v, j->job->boards);
    json_out_counter(o, "energy_j", j->energy_j);
    json_out_counter(o, "time_s", j->time_s);
    json_out_int(o, "steps", (int64_t)j->steps);
    json_out_text(o, "state", s->on ? s->state : NULL);
    json_out_text(o, "status", names_word_or_null(NAMES_SEARCH_STATUS, s->status));
    json_out_text(o, "goal", s->on && s->goal[0] ? s->goal : NULL);
    show_mw(o, "cap_mw", s->on ? s->cap_mw : 0);
    json_out_known_double(o, "saved", s->saved.known, s->saved.fraction);
    json_out_known_double(o, "saved_half", s->saved.known, s->saved.half);
    json_out_end(o);
}

static char *samples_text(const struct node_view *v)
{
    struct json_out *o = json_out_new();
    struct maybe power = show_power(v, UINT64_MAX);
    double today_j = 0;

    for (size_t i = 0; i < v->n_boards; i++)
        today_j += v->board[i].today_j;
    json_out_object(o, NULL);
    show_utc(o, "utc", v->utc_ns);
    json_out_bool(o, "simulated", v->simulated);
    show_value(o, "power_w", &power);
    json_out_counter(o, "today_j", today_j);
    json_out_array(o, "gpus");
    for (size_t i = 0; i < v->n_boards; i++)
        sample_board(o, &v->board[i]);
    json_out_end(o);
    json_out_array(o, "jobs");
    for (size_t i = 0; i < v->n_jobs; i++)
        if (!v->job[i].job->ended_ns)
            sample_job(o, v, &v->job[i]);
    json_out_end(o);
    json_out_end(o);
    return line(o);
}

static void head(struct json_out *o, const char *event, const struct node_view *v)
{
    json_out_object(o, NULL);
    json_out_text(o, "event", event);
    show_utc(o, "utc", v->utc_ns);
}

static void head_board(struct json_out *o, const struct node_view *v, size_t i)
{
    json_out_int(o, "gpu", v->board[i].info->index);
    json_out_text(o, "uuid", v->board[i].info->uuid);
}

static void id_or_null(struct json_out *o, const char *key, uint64_t id)
{
    json_out_known_int(o, key, id, (int64_t)id);
}

static char *cap_text(const struct node_view *v, const struct caps_what *what,
                      const char *event)
{
    struct json_out *o = json_out_new();

    head(o, event, v);
    head_board(o, v, what->board);
    show_mw(o, "target_mw", what->target_mw);
    show_mw(o, "enforced_mw", what->enforced_mw);
    show_mw(o, "clock_mhz", what->clock_mhz);
    id_or_null(o, "claim", what->claim ? what->claim->id : 0);
    json_out_text(o, "cause",
                  what->event == CAPS_EVENT_OTHER
                      ? names_word(NAMES_CAP_CAUSE, what->cause)
                      : NULL);
    json_out_text(o, "text", what->text ? what->text : "");
    json_out_end(o);
    return line(o);
}

static char *claim_text(const struct node_view *v, const struct caps_what *what,
                        const char *event)
{
    struct json_out *o = json_out_new();
    const struct claim *c = what->claim;

    head(o, event, v);
    head_board(o, v, what->board);
    json_out_int(o, "id", (int64_t)c->id);
    json_out_text(o, "kind", names_word(NAMES_CLAIM_KIND, c->kind));
    show_mw(o, "cap_mw", c->mw);
    show_mw(o, "clock_mhz", c->mhz);
    json_out_text(o, "who", c->who);
    json_out_text(o, "why", c->why);
    id_or_null(o, "job", c->job);
    json_out_text(o, "how", what->text && *what->text ? what->text : NULL);
    json_out_end(o);
    return line(o);
}

enum job_event { JOB_EVENTS(NAME_ENUM) };

static char *job_text(struct events *e, const struct node_view *v,
                      const struct job_entry *job)
{
    struct json_out *o = json_out_new();
    enum job_event event = JOB_EVENT_CHANGE;

    if (job->ended_ns)
        event = JOB_EVENT_END;
    else if (job->id > e->newest_job)
        event = JOB_EVENT_BEGIN;
    if (job->id > e->newest_job)
        e->newest_job = job->id;
    head(o, names_word(NAMES_JOB_EVENT, event), v);
    json_out_int(o, "id", (int64_t)job->id);
    json_out_text(o, "source", names_word(NAMES_JOB_SOURCE, job->source));
    json_out_text(o, "user", job->user[0] ? job->user : NULL);
    json_out_int(o, "uid", job->uid);
    show_boards(o, "gpus", v, job->boards);
    json_out_end(o);
    return line(o);
}

/* ---- followers ---- */

static char *rule_text(const struct node_view *v, const struct node_rule_event *told)
{
    const struct engine_event *e = told->rule;
    struct json_out *o = json_out_new();

    head(o, e->begins ? "begin" : "end", v);
    head_board(o, v, e->board);
    id_or_null(o, "job", e->job);
    json_out_text(o, "rule", e->rule->name);
    json_out_text(o, "how", e->begins ? NULL : e->how);
    json_out_end(o);
    return line(o);
}

static char *limit_text(const struct node_view *v, const struct limits_event *told)
{
    struct json_out *o = json_out_new();

    head(o, names_word(NAMES_LIMIT_STATE, told->state), v);
    head_board(o, v, told->board);
    json_out_text(o, "limit", limit_word(told->kind));
    show_mw(o, "cap_mw", told->cap_mw);
    json_out_text(o, "text", told->text);
    json_out_end(o);
    return line(o);
}

static void send_to(const struct follower *f, enum events_kind kind, const char *data)
{
    const char *name = names_word(NAMES_STREAM, (unsigned)__builtin_ctz(kind));

    (void)http_stream_send(f->stream, name, data); /* the stream counts dropped events */
}

static void send_all(struct events *e, enum events_kind kind, const char *data)
{
    for (const struct follower *f = e->first; f; f = f->next)
        if (f->kinds & kind)
            send_to(f, kind, data);
}

static bool wanted(const struct events *e, uint32_t kind)
{
    for (const struct follower *f = e->first; f; f = f->next)
        if (f->kinds & kind)
            return true;
    return false;
}

static void forget_samples(struct events *e)
{
    free(take(e->samples));
    loop_timer_free(take(e->timer));
}

/* The newest text, rendered again once it is age_ns old. */
static const char *samples(struct events *e, uint64_t now_ns, uint64_t age_ns)
{
    if (e->samples && now_ns - e->samples_ns < age_ns)
        return e->samples;
    char *text = samples_text(node_look(e->opts.node));
    if (text) {
        free(e->samples);
        e->samples = text;
        e->samples_ns = now_ns;
    }
    return e->samples;
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct events *e = user;
    (void)timer;

    const char *text = samples(e, now_ns, NS_PER_S / 2);
    if (text)
        send_all(e, EVENTS_SAMPLES, text);
    return 0;
}

static void on_closed(struct http_stream *stream, void *user)
{
    struct follower *f = user;
    struct events *e = f->e;
    (void)stream;

    for (struct follower **p = &e->first; *p; p = &(*p)->next)
        if (*p == f) {
            *p = f->next;
            break;
        }
    e->n--;
    free(f);
    if (!wanted(e, EVENTS_SAMPLES))
        forget_samples(e);
}

static int start_timer(struct events *e, uw_error *err)
{
    uint64_t now_ns = loop_now_ns(e->opts.loop);

    return e->timer ? 0
                    : loop_timer_new(e->opts.loop, now_ns + NS_PER_S, NS_PER_S, on_timer,
                                     e, &e->timer, err);
}

int events_follow(struct events *e, struct http_exchange *x, uint32_t kinds,
                  uw_error *err)
{
    struct follower *f = calloc(1, sizeof *f);
    struct http_stream_opts opts = {
        .bytes = QUEUE_BYTES, .on_closed = on_closed, .user = f};

    if (!f)
        return fail(err, -ENOMEM, "no memory to follow events");
    f->e = e;
    f->kinds = kinds;
    int r = kinds & EVENTS_SAMPLES ? start_timer(e, err) : 0;
    if (r == 0)
        r = http_stream_begin(x, &opts, &f->stream, err);
    if (r < 0) {
        free(f);
        if (!wanted(e, EVENTS_SAMPLES))
            forget_samples(e);
        return r;
    }
    f->next = e->first;
    e->first = f;
    e->n++;
    if (kinds & EVENTS_SAMPLES) {
        const char *text = samples(e, loop_now_ns(e->opts.loop), NS_PER_S / 2);
        if (text)
            send_to(f, EVENTS_SAMPLES, text);
    }
    return 0;
}

/* ---- the node's events ---- */

static void tell_caps(struct events *e, const struct caps_what *what)
{
    const struct node_view *v = node_look(e->opts.node);
    bool claim = what->event <= CAPS_EVENT_EXPIRE;
    enum events_kind kind = claim ? EVENTS_CLAIM : EVENTS_CAP;

    if (what->board >= v->n_boards || (claim && !what->claim) || !wanted(e, kind))
        return;
    const char *event = names_word(NAMES_CAP_EVENT, what->event);
    auto_(mem_free) char *text =
        claim ? claim_text(v, what, event) : cap_text(v, what, event);
    if (text)
        send_all(e, kind, text);
}

static void tell_job(struct events *e, const struct job_entry *job)
{
    auto_(mem_free) char *text = job_text(e, node_look(e->opts.node), job);

    if (text)
        send_all(e, EVENTS_JOB, text);
}

static void tell_rule(struct events *e, const struct node_rule_event *told)
{
    const struct node_view *v = node_look(e->opts.node);

    if (told->rule->board >= v->n_boards || !wanted(e, EVENTS_RULE))
        return;
    auto_(mem_free) char *text = rule_text(v, told);
    if (text)
        send_all(e, EVENTS_RULE, text);
}

static void tell_limit(struct events *e, const struct limits_event *told)
{
    const struct node_view *v = node_look(e->opts.node);

    if (told->board >= v->n_boards || !wanted(e, EVENTS_LIMIT))
        return;
    auto_(mem_free) char *text = limit_text(v, told);
    if (text)
        send_all(e, EVENTS_LIMIT, text);
}

void events_tell(struct events *e, enum node_event event, const void *what)
{
    if (event == NODE_EVENT_CAPS && e->n > 0)
        tell_caps(e, what);
    else if (event == NODE_EVENT_JOB)
        tell_job(e, what);
    else if (event == NODE_EVENT_RULE && e->n > 0)
        tell_rule(e, what);
    else if (event == NODE_EVENT_LIMIT && e->n > 0)
        tell_limit(e, what);
}

int events_new(const struct events_opts *opts, struct events **ret, uw_error *err)
{
    struct events *e = calloc(1, sizeof *e);

    if (!e)
        return fail(err, -ENOMEM, "events: no memory");
    e->opts = *opts;
    *ret = e;
    return 0;
}

void events_free(struct events *e)
{
    if (!e)
        return;
    while (e->first) {
        struct follower *f = e->first;
        e->first = f->next;
        free(f);
    }
    forget_samples(e);
    free(e);
}
