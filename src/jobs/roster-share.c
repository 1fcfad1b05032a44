/* Boards that several users name: nobody's program waits for that, and who computes on a
 * board has it.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/roster-inside.h"

static bool is_foreign(const struct seen *p, uid_t uid)
{
    return p->compute && (!p->known || p->uid != uid);
}

static bool has(const struct slot *job, size_t board)
{
    const struct job_entry *e = &job->e;

    return !job->over && ((e->source == JOB_FOUND ? e->boards : e->given) >> board & 1);
}

bool seat_held(const struct seat *s, uid_t uid, const struct job_entry **ret_job,
               pid_t *ret_pid)
{
    const struct roster *r = s->roster;

    *ret_job = NULL;
    for (size_t i = 0; i < r->n; i++)
        if (r->slot[i]->e.uid != uid && has(r->slot[i], s->at)) {
            *ret_job = &r->slot[i]->e;
            return true;
        }
    for (size_t i = 0; i < s->n; i++)
        if (is_foreign(&s->proc[i], uid)) {
            *ret_pid = s->proc[i].pid;
            return true;
        }
    return false;
}

static bool computes(const struct seat *s, const struct slot *job)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->proc[i].compute && s->proc[i].job == job->e.id)
            return true;
    return false;
}

/* May it have the board that it named?  Where nobody else computes there and nobody else
 * named it, or those who did have nothing there while it computes.  What a scheduler or
 * an administrator gave is theirs.
 */
static bool may_have(const struct seat *s, const struct slot *job)
{
    const struct roster *r = s->roster;
    bool named = false;

    for (size_t i = 0; i < s->n; i++)
        if (is_foreign(&s->proc[i], job->e.uid))
            return false;
    for (size_t i = 0; i < r->n; i++) {
        const struct slot *other = r->slot[i];
        if (other->e.uid == job->e.uid || !has(other, s->at))
            continue;
        if (other->e.source != JOB_RUN || other->e.firm)
            return false;
        named = true;
    }
    return !named || computes(s, job);
}

static void move(struct slot *s, size_t board, bool to)
{
    uint64_t bit = 1ull << board;

    s->e.given = to ? s->e.given | bit : s->e.given & ~bit;
    s->e.waits = to ? s->e.waits & ~bit : s->e.waits | bit;
    s->e.boards = to ? s->e.boards | bit : s->e.boards & ~bit;
    s->changed = true;
}

static void pass(struct seat *s, struct slot *to)
{
    struct roster *r = s->roster;
    const struct job_entry *from = NULL;

    seat_turn(s);
    for (size_t i = 0; i < r->n; i++) {
        struct slot *other = r->slot[i];
        if (other->e.uid == to->e.uid || !has(other, s->at))
            continue;
        move(other, s->at, false);
        from = &other->e;
    }
    move(to, s->at, true);
    seat_users(s);
    if (r->opts.on_pass)
        r->opts.on_pass(s->at, from, &to->e, r->opts.user);
}

/* Which of the boards it waits for is whose, in words. */
static void say_held(const struct roster *r, struct slot *s)
{
    char text[sizeof s->e.held] = "", more[24] = "";
    const struct job_entry *job = NULL;
    pid_t pid = 0;

    for (size_t i = 0; i < r->n_seats && !text[0]; i++) {
        unsigned gpu = board_view(r->seat[i]->board)->info->index;
        if (!(s->e.waits >> i & 1) || !seat_held(r->seat[i], s->e.uid, &job, &pid))
            continue;
        if (s->e.waits & (s->e.waits - 1))
            (void)snprintf(more, sizeof more, ", and others too");
        /* What it is called is its user's own matter. */
        if (job)
            (void)snprintf(text, sizeof text, "GPU %u belongs to job %llu of %s%s", gpu,
                           (unsigned long long)job->id,
                           job->user[0] ? job->user : "another user", more);
        else
            (void)snprintf(text, sizeof text,
                           "GPU %u: process %ld of another user is there%s", gpu,
                           (long)pid, more);
    }
    if (strcmp(text, s->e.held) == 0)
        return;
    memcpy(s->e.held, text, sizeof s->e.held);
    s->changed = true;
}

void roster_share(struct roster *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct slot *s = r->slot[i];
        for (size_t k = 0; k < r->n_seats && s->e.waits && !s->over; k++)
            if ((s->e.waits >> k & 1) && may_have(r->seat[k], s))
                pass(r->seat[k], s);
    }
    for (size_t i = 0; i < r->n; i++)
        if (!r->slot[i]->over && (r->slot[i]->e.waits || r->slot[i]->e.held[0]))
            say_held(r, r->slot[i]);
}
