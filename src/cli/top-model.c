#include "cli/top.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "cli/take.h"
#include "core/cap/arbiter.h"

int top_take_node(struct top *t, const struct json_value *node, uw_error *err)
{
    const char *host = take_text(node, "hostname"), *utc = take_text(node, "utc");

    if (!*host || strlen(utc) < 19)
        return fail(err, -EINVAL, "the daemon's answer has no hostname or no time");
    (void)snprintf(t->host, sizeof t->host, "%s", host);
    (void)snprintf(t->clock, sizeof t->clock, "%.8s", utc + 11);
    t->simulated = take_bool(node, "simulated");
    t->dry_run = take_bool(node, "dry_run");
    t->budget_w = fmax(0, take_number(json_get(node, "budget"), "budget_w"));
    if (!t->began[0])
        (void)snprintf(t->began, sizeof t->began, "%s", t->clock);
    t->read_only = !take_bool(json_get(node, "actuator"), "up");
    return 0;
}

/* A short text: the origin of the cap. */
static void take_by(struct top_board *b, const struct json_value *cap)
{
    const char *by = take_text(cap, "by"), *who = take_text(cap, "claim_who");
    const char *why = take_text(cap, "claim_why");
    int decider = names_number(NAMES_CAP_BY, by);
    int state = names_number(NAMES_CAP_STATE, b->state);
    const char *holder = take_text(cap, "holder"); /* another Underwatt */
    char claim[CLAIM_TEXT * 2 + 3];

    if (*holder && state != CAPS_HELD) {
        size_t skip = strncmp(holder, "held by ", 8) == 0 ? 8 : 0;
        (void)snprintf(b->by, sizeof b->by, "%s", holder + skip);
        return;
    }
    if (decider == CAP_BY_CLAIM && *who) {
        (void)snprintf(claim, sizeof claim, "%s%s%s", who, *why ? ": " : "", why);
        by = claim;
    } else if (decider == CAP_BY_FLOOR) {
        by = "soft floor";
    } else if (decider == CAP_BY_MINIMUM) {
        by = "the board's minimum";
    }
    (void)snprintf(b->by, sizeof b->by, "%.*s", (int)sizeof b->by - 1, by);
    if (b->state[0] && state != CAPS_HELD && state != CAPS_FREE)
        (void)snprintf(b->by, sizeof b->by, "%.15s: %.200s", b->state, by);
}

static void take_board(struct top_board *b, const struct json_value *v)
{
    const struct json_value *cap = json_get(v, "cap"), *limits = json_get(v, "limits");

    b->index = (unsigned)take_u64(v, "gpu");
    take_copy(v, "uuid", b->uuid, sizeof b->uuid);
    take_copy(v, "name", b->name, sizeof b->name);
    take_copy(cap, "state", b->state, sizeof b->state);
    take_by(b, cap);
    b->others = *take_text(cap, "holder") != '\0';
    if (!b->others) /* else `by` has the holder and its original limit */
        take_released(cap, "text", b->text, sizeof b->text);
    b->power_w = take_number(v, "power_w");
    b->cap_w = take_mw(limits, "enforced_mw");
    b->target_w = take_mw(cap, "target_mw");
    b->original_w = take_mw(limits, "original_mw");
    if (isnan(b->original_w))
        b->original_w = b->cap_w;
    b->max_w = take_mw(limits, "max_mw");
    b->temp_c = take_number(v, "temperature_c");
    b->util = take_number(v, "utilization");
    b->clock_mhz = take_number(v, "sm_mhz");
    b->today_j = take_number(v, "today_j");
    take_copy(v, "use", b->use, sizeof b->use);
    b->use_s = take_number(v, "use_for_s");
    b->memory_bytes = take_number(v, "memory_used_bytes");
    const struct json_value *jobs = json_get(v, "jobs");
    b->n_jobs = json_count(jobs);
    b->job = 0;
    (void)json_as_u64(json_at(jobs, 0), &b->job);
}

/* Returns the board with this UUID and its history; NULL: new. */
static const struct top_board *known_uuid(const struct top *t, const char *uuid)
{
    for (size_t i = 0; i < t->n_boards; i++) {
        if (strcmp(t->board[i].uuid, uuid) == 0)
            return &t->board[i];
    }
    return NULL;
}

static const struct top_board *known(const struct top *t, const struct json_value *v)
{
    return known_uuid(t, take_text(v, "uuid"));
}

/* Several nodes report theirs in no order. */
static int by_index(const void *a, const void *b)
{
    const struct top_board *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

int top_take_gpus(struct top *t, const struct json_value *gpus, uw_error *err)
{
    const struct json_value *list = json_get(gpus, "gpus");
    auto_(mem_free) struct top_board *board = calloc(TOP_BOARDS, sizeof *board);
    size_t n = json_count(list);

    if (!board)
        return fail(err, -ENOMEM, "out of memory");
    if (!list)
        return fail(err, -EINVAL, "the daemon's answer has no list of boards");
    if (n > TOP_BOARDS)
        n = TOP_BOARDS;
    for (size_t i = 0; i < n; i++) {
        const struct json_value *v = json_at(list, i);
        const struct top_board *old = known(t, v);
        if (!*take_text(v, "uuid"))
            return fail(err, -EINVAL, "the daemon's answer has a board without a UUID");
        if (old)
            board[i] = *old;
        else
            for (size_t k = 0; k < TOP_HISTORY; k++)
                board[i].history_w[k] = (double)NAN;
        take_board(&board[i], v);
        board[i].n_claims = 0;
        board[i].claims_known = false;
    }
    qsort(board, n, sizeof *board, by_index);
    for (size_t i = 0; i < n; i++) {
        const struct top_board *old = known_uuid(t, board[i].uuid);
        if (old)
            top_note_board(t, old, &board[i]);
    }
    memcpy(t->board, board, sizeof t->board);
    t->n_boards = n;
    if (t->picked >= n)
        t->picked = n ? n - 1 : 0;
    return 0;
}

int top_take_history(struct top *t, const struct json_value *history, uw_error *err)
{
    const struct json_value *list = json_get(history, "samples");
    const struct top_board *of = known(t, history);
    double length_s = take_number(history, "length_s"), begin_s = 0;

    if (!list || isnan(length_s))
        return fail(err, -EINVAL, "the daemon's answer has no history");
    if (!of || !(t->look_s > 0))
        return 0;
    struct top_board *b = &t->board[of - t->board];
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json_value *v = json_at(list, i);
        double end_s = take_number(v, "time_s"), w = take_number(v, "power_w");
        /* Sample k, counted back from the next one, is k looks old. */
        double from = (length_s - end_s) / t->look_s;
        double to = (length_s - begin_s) / t->look_s;
        for (size_t k = (size_t)fmin(fmax(ceil(from), 1), TOP_HISTORY);
             (double)k < to && k < TOP_HISTORY; k++)
            b->history_w[(t->looks + TOP_HISTORY - k) % TOP_HISTORY] = w;
        begin_s = end_s;
    }
    return 0;
}

static void take_job(struct top_job *j, const struct json_value *v)
{
    const struct json_value *search = json_get(v, "search");
    const struct json_value *saved = json_get(search, "saved");
    const char *name = take_text(v, "name");

    *j = (struct top_job){.id = take_u64(v, "id")};
    take_copy(v, "user", j->user, sizeof j->user);
    if (!j->user[0])
        (void)snprintf(j->user, sizeof j->user, "%.0f", take_number(v, "uid"));
    (void)snprintf(j->name, sizeof j->name, "%s", *name ? name : "(another's)");
    take_boards(json_get(v, "gpus"), j->gpus, sizeof j->gpus);
    take_released(search, "state", j->state, sizeof j->state);
    if (!j->state[0])
        (void)snprintf(j->state, sizeof j->state, "%s", take_text(v, "source"));
    take_copy(search, "goal", j->goal, sizeof j->goal);
    take_copy(v, "phase", j->phase, sizeof j->phase);
    if (strcmp(j->phase, "unknown") == 0)
        j->phase[0] = '\0';
    j->boards = take_board_bits(json_get(v, "gpus"));
    j->saved = take_number(saved, "fraction");
    j->saved_half = take_number(saved, "fraction_half");
    j->energy_j = take_energy(v);
    j->time_s = take_number(v, "time_s");
}

/* Commands without a daemon count their jobs each for itself, on boards of their own. */
static const struct top_job *find(const struct top_job *job, size_t n,
                                  const struct top_job *as)
{
    for (size_t i = 0; i < n; i++)
        if (job[i].id == as->id &&
            ((job[i].boards & as->boards) || !job[i].boards || !as->boards))
            return &job[i];
    return NULL;
}

/* Jobs that began, changed or ended. */
static void note_jobs(struct top *t, const struct top_job *job, size_t n)
{
    for (size_t i = 0; i < n; i++)
        top_note_job(t, find(t->job, t->n_jobs, &job[i]), &job[i]);
    for (size_t i = 0; i < t->n_jobs; i++)
        if (!find(job, n, &t->job[i]))
            top_note_job(t, &t->job[i], NULL);
}

int top_take_jobs(struct top *t, const struct json_value *jobs, uw_error *err)
{
    const struct json_value *list = json_get(jobs, "jobs");
    auto_(mem_free) struct top_job *job = calloc(TOP_JOBS, sizeof *job);
    size_t n = 0;

    if (!job)
        return fail(err, -ENOMEM, "out of memory");
    if (!list)
        return fail(err, -EINVAL, "the daemon's answer has no list of jobs");
    for (size_t i = 0; i < json_count(list) && n < TOP_JOBS; i++) {
        if (take_bool(json_at(list, i), "running"))
            take_job(&job[n++], json_at(list, i));
    }
    if (t->looks > 0)
        note_jobs(t, job, n);
    memcpy(t->job, job, sizeof t->job);
    t->n_jobs = n;
    if (t->first_job >= n)
        t->first_job = 0;
    return 0;
}

int top_take_claims(struct top *t, const struct json_value *explain, uw_error *err)
{
    const struct json_value *list = json_get(explain, "claims");
    const struct top_board *known_board = known(t, explain);

    if (!list)
        return fail(err, -EINVAL, "the daemon's answer has no list of claims");
    if (!known_board)
        return 0; /* no longer present */
    struct top_board *b = &t->board[known_board - t->board];
    b->n_claims = 0;
    b->claims_known = true;
    for (size_t i = 0; i < json_count(list) && i < TOP_CLAIMS; i++) {
        const struct json_value *v = json_at(list, i);
        struct top_claim *c = &b->claim[b->n_claims++];
        *c = (struct top_claim){.cap_w = take_mw(v, "cap_mw"),
                                .left_s = take_number(v, "left_s"),
                                .wins = take_bool(v, "wins"),
                                .of_job = take_u64(v, "job") > 0};
        if (isnan(c->left_s))
            c->left_s = (double)INFINITY;
        take_copy(v, "kind", c->kind, sizeof c->kind);
        take_copy(v, "who", c->who, sizeof c->who);
        take_copy(v, "why", c->why, sizeof c->why);
    }
    return 0;
}
