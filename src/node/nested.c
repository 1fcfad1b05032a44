#include "node/nested.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

enum { NAMED_MAX = 3 }; /* number of inner jobs that are named */

static const struct job_entry *outer_of(const struct nested *n,
                                        const struct job_entry *job)
{
    const struct job_entry *outer =
        job->within ? roster_find(n->roster, job->within) : NULL;

    return outer && !outer->ended_ns ? outer : NULL;
}

/* A goal is lent only for boards of the outer job, and only to a job for which no other
 * goal, no cap and no "off" was requested.  A job that uses no board for the moment
 * keeps it.
 */
static const struct goal *lent_to(const struct nested *n, const struct job_entry *job,
                                  const struct job_record *rec)
{
    const struct job_entry *outer = outer_of(n, job);
    const struct job_record *its = outer ? job_records_find(n->records, outer->id) : NULL;

    if (!its || (!job->boards && !rec->lent) || (job->boards & ~outer->boards) ||
        rec->off || rec->cap.mw || rec->cap.percent > 0)
        return NULL;
    return job_record_goal(its);
}

/* Updates the lent goal.  Returns whether the goal of the job's search has changed. */
static bool lend(const struct nested *n, const struct job_entry *job,
                 struct job_record *rec)
{
    char was[GOAL_TEXT_MAX] = "", is[GOAL_TEXT_MAX] = "";
    const struct goal *before = job_record_goal(rec), *lent = lent_to(n, job, rec);

    if (before)
        (void)goal_text(before, was);
    rec->lent = lent != NULL;
    if (lent)
        rec->lent_goal = *lent;
    const struct goal *after = job_record_goal(rec);
    if (after)
        (void)goal_text(after, is);
    return !before != !after || strcmp(was, is) != 0;
}

uint64_t nested_goal_of(const struct job_entry *job, const struct job_record *rec)
{
    return rec->lent && job_record_goal(rec) == &rec->lent_goal ? job->within : 0;
}

/* The outer job if this job has its class; NULL: it does not. */
static const struct job_record *class_from(const struct job_records *records,
                                           const struct job_entry *job,
                                           const struct job_record *rec)
{
    const struct job_record *outer =
        job->within && !rec->cls[0] ? job_records_find(records, job->within) : NULL;

    return outer && outer->cls[0] ? outer : NULL;
}

const char *nested_class(const struct job_records *records, const struct job_entry *job,
                         const struct job_record *rec)
{
    const struct job_record *outer = class_from(records, job, rec);

    if (outer)
        return outer->cls;
    return rec->cls[0] ? rec->cls : "default";
}

/* Updates the class.  Returns whether it differs from the one with which the search
 * began.
 */
static bool take_class(const struct nested *n, const struct job_entry *job,
                       struct job_record *rec)
{
    const struct job_record *outer = class_from(n->records, job, rec);
    bool other = outer && rec->cls_of != outer->id;
    struct searches_view v;

    if (other)
        rec->cls_of = outer->id;
    return other && job_record_goal(rec) && !rec->cap.mw && rec->cap.percent <= 0 &&
           searches_look(n->searches, rec->id, &v);
}

/* Passes to the search the boards that inner jobs have, and the names of these jobs. */
static void pass(const struct nested *n, const struct job_entry *outer)
{
    char list[48] = "", more[32] = "", to[SEARCHES_TO];
    uint64_t boards = 0;
    size_t jobs = 0, len = 0;

    for (size_t i = 0; i < roster_count(n->roster); i++) {
        const struct job_entry *job = roster_at(n->roster, i);
        uint64_t common = job->boards & outer->boards;
        if (job->ended_ns || job->within != outer->id || !common)
            continue;
        boards |= common;
        if (jobs++ < NAMED_MAX && len < sizeof list)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%" PRIu64,
                                    jobs > 1 ? ", " : "", job->id);
    }
    if (jobs > NAMED_MAX)
        (void)snprintf(more, sizeof more, " and %zu more", jobs - NAMED_MAX);
    (void)snprintf(to, sizeof to, "job%s %s%s, which run%s in it", jobs == 1 ? "" : "s",
                   list, more, jobs == 1 ? "s" : "");
    searches_pass(n->searches, outer->id, boards, to);
}

void nested_begin(const struct nested *n, const struct job_entry *job,
                  struct job_record *rec)
{
    const struct job_entry *outer = outer_of(n, job);

    (void)lend(n, job, rec);
    (void)take_class(n, job, rec);
    if (outer)
        pass(n, outer);
}

/* Starts the job's search.  A failure is logged once; the next tick tries again. */
static void give(const struct nested *n, const struct job_entry *job,
                 struct job_record *rec)
{
    uw_error err = {""};
    char goal[GOAL_TEXT_MAX];

    int r = n->give(job, rec, n->user, &err);
    bool was = rec->again;
    rec->again = r < 0 && job_record_goal(rec);
    if (rec->again && !was)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SEARCH_REFUSED,
                  "job=%" PRIu64 " reason=%s", job->id, log_quote(err.text).text);
    else if (r == 0 && nested_goal_of(job, rec))
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_SEARCH,
                  "job=%" PRIu64
                  " text=\"the goal is %s, the goal of the enclosing job %" PRIu64 "\"",
                  job->id, goal_text(&rec->lent_goal, goal), job->within);
}

/* Whether the job's search did not begin, or was lost with another daemon. */
static bool lacks_search(const struct nested *n, const struct job_record *rec)
{
    struct searches_view v;

    return rec->lent && !searches_look(n->searches, rec->id, &v);
}

void nested_tick(const struct nested *n)
{
    for (size_t i = 0; i < roster_count(n->roster); i++) {
        const struct job_entry *job = roster_at(n->roster, i);
        struct job_record *rec = job_records_find(n->records, job->id);
        if (!rec || job->ended_ns)
            continue;
        if (job->source == JOB_REGISTERED) {
            pass(n, job);
            continue;
        }
        bool other = job->within && lend(n, job, rec);
        other |= take_class(n, job, rec);
        if (other || (job->within && lacks_search(n, rec)))
            give(n, job, rec);
    }
}
