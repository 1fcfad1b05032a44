/* The view of a job's search. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "jobs/job-progress.h"
#include "tuner/searches-inside.h"

static void show_report(const struct tuner_report *r, struct searches_view *ret)
{
    ret->report = r;
    ret->cap_mw = r->holding ? r->held_mw : r->best_mw;
    ret->caps = (unsigned)r->n_caps;
    ret->windows = r->windows;
    ret->saved = r->saved;
}

static const struct gpu_info *first_barred(const struct job_search *t)
{
    size_t at = (size_t)__builtin_ctzll(t->wanted & t->barred);

    return board_view(boards_at(t->all->o.boards, at))->info;
}

/* Writes a status as text. */
#define SAY(status, ...) ((void)snprintf(ret, size, __VA_ARGS__), (status))

static enum search_status status_of(const struct job_search *t,
                                    const struct tuner_report *report, char *ret,
                                    size_t size)
{
    if (t->final)
        return SAY(SEARCH_IS_OVER, "over");
    if (t->off)
        return SAY(SEARCH_IS_OFF, "no goal");
    if (t->refused)
        return SAY(SEARCH_IS_REFUSED, "not capped: %.80s", t->why);
    if (t->passed && !t->wanted)
        return SAY(SEARCH_IS_PASSED, "searched as %s", t->to);
    if (t->wanted & t->barred)
        return SAY(SEARCH_IS_BARRED,
                   first_barred(t)->mig_enabled
                       ? "not capped: GPU %u is in MIG mode, another job has a part of it"
                       : "not capped: another user computes on GPU %u",
                   first_barred(t)->index);
    if (!t->tuner && t->behind)
        return SAY(SEARCH_IS_BEHIND,
                   "not searched: job %" PRIu64 " has a search on a board of this job",
                   t->behind);
    if (!t->tuner)
        return SAY(SEARCH_WAITS_FOR_BOARDS, "%s",
                   t->asked_ns ? "reads the original limits of the job's boards"
                   : t->wanted ? "waits for its boards"
                               : "has used no GPU yet");
    if (report->board_lost)
        return SAY(SEARCH_LOST_BOARDS, "not capped: %.80s", report->ended);
    return tuner_status(t->tuner, ret, size);
}

/* Adds that another Underwatt holds a board of the job; its limit is in force there. */
static void add_holder(const struct job_search *t, char *ret, size_t size)
{
    for (size_t i = 0; i < BOARDS_MAX; i++) {
        struct caps_view v;
        if (!(t->wanted & (1ull << i)))
            continue;
        caps_look(t->all->o.caps, i, &v);
        if (!v.holder[0])
            continue;
        const char *end = strstr(v.holder, ", original ");
        size_t n = strlen(ret), to = end ? (size_t)(end - v.holder) : strlen(v.holder);
        (void)snprintf(ret + n, size - n, "; GPU %u is %.*s",
                       board_view(boards_at(t->all->o.boards, i))->info->index, (int)to,
                       v.holder);
        return;
    }
}

/* The claim in force with mw on a board of the job, but for the job's own cap; NULL. */
static const struct claim *lower_claim(const struct job_search *t, uint32_t mw)
{
    for (size_t i = 0; i < BOARDS_MAX; i++) {
        struct caps_view v;
        if (!(t->wanted & (1ull << i)))
            continue;
        caps_look(t->all->o.caps, i, &v);
        const struct claim *c = claims_find(v.claims, v.verdict.claim);
        bool own = c && c->job == t->job && c->source == CLAIM_OF_JOB_CAP;
        if (c && !own && v.verdict.target_mw == mw)
            return c;
    }
    return NULL;
}

/* Adds that another claim is lower than the job's cap by name, and whose it is. */
static void add_lower(const struct job_search *t, char *ret, size_t size)
{
    uint32_t mw = tuner_lower_mw(t->tuner);
    const struct claim *c = mw ? lower_claim(t, mw) : NULL;
    const char *who = c ? c->who : "";
    size_t n = strlen(ret), len = strcspn(who, ","); /* "user anna, process 12.3456" */

    if (mw)
        (void)snprintf(ret + n, size - n, "; another claim is lower: %.0f W%s%.*s",
                       w_of_mw(mw), len ? " by " : "", (int)len, who);
}

bool searches_look(struct searches *ts, uint64_t job, struct searches_view *ret)
{
    struct job_search *t = searches_find(ts, job);

    *ret = (struct searches_view){0};
    if (!t)
        return false;
    ret->on = true;
    ret->page = t->page != NULL;
    if (t->page)
        job_progress_launches(t->page, ret->launches);
    if (!t->off)
        searches_ask_text(&t->ask, ret->goal, sizeof ret->goal);
    show_report(t->tuner ? tuner_report(t->tuner) : &t->report, ret);
    ret->status = status_of(t, ret->report, ret->state, sizeof ret->state);
    if (t->tuner && (ret->status == SEARCH_HOLDS || ret->status == SEARCH_WALKS))
        add_lower(t, ret->state, sizeof ret->state);
    if (t->tuner && !t->closing && ret->status != SEARCH_IS_OVER)
        add_holder(t, ret->state, sizeof ret->state);
    return true;
}

const struct steps *searches_steps(const struct searches *ts, uint64_t job)
{
    const struct job_search *t = searches_find(ts, job);
    return t && t->page ? job_progress_steps(t->page) : NULL;
}
