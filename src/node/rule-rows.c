#include "node/rule-rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/rate.h"

/* A rule on a board for a job, or the claims of a named preset on a board. */
struct course {
    char name[RULE_ROWS_NAME];
    size_t board;
    uint64_t job;
    bool claims;
    struct bucket bucket;
    bool written;         /* the current occurrence has a row */
    uint64_t n, since_ns; /* occurrences without rows, and the start of these */
    uint64_t at_ns;       /* time of the last occurrence */
};

/* The two claims of a board, and its last cap with a row. */
struct claimed {
    uint64_t written[2],
        unwritten[2];       /* ids: the row is there; what holds is in no row */
    bool has_cap, left_out; /* later caps have no rows */
    uint32_t target_mw;
    uint64_t claim;
};

struct rule_rows {
    struct course *course;
    size_t n, cap;
    struct claimed claimed[BOARDS_MAX];
};

int rule_rows_new(struct rule_rows **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : -ENOMEM;
}

void rule_rows_free(struct rule_rows *r)
{
    if (r)
        free(r->course);
    free(r);
}

void rule_rows_clear(struct rule_rows *r)
{
    r->n = 0;
    memset(r->claimed, 0, sizeof r->claimed);
}

static struct course *find(struct rule_rows *r, const char *name, size_t board,
                           uint64_t job, bool claims)
{
    for (size_t i = 0; i < r->n; i++) {
        struct course *c = &r->course[i];
        if (c->board == board && c->job == job && c->claims == claims &&
            strncmp(c->name, name, RULE_ROWS_NAME - 1) == 0)
            return c;
    }
    return NULL;
}

/* The course with the oldest last occurrence and nothing to count. */
static struct course *quietest(struct rule_rows *r)
{
    struct course *found = NULL;

    for (size_t i = 0; i < r->n; i++) {
        struct course *c = &r->course[i];
        if (c->n == 0 && !c->written && (!found || c->at_ns < found->at_ns))
            found = c;
    }
    return found;
}

/* NULL: no room is left. */
static struct course *course_of(struct rule_rows *r, const char *name, size_t board,
                                uint64_t job, bool claims)
{
    struct course *c = find(r, name, board, job, claims);

    if (c)
        return c;
    c = array_grow(&r->course, &r->cap, r->n, RULE_ROWS_MAX) == 0 ? &r->course[r->n++]
                                                                  : quietest(r);
    if (!c)
        return NULL;
    *c = (struct course){.board = board, .job = job, .claims = claims};
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    return c;
}

/* Whether an occurrence has a row.  Without room for its course it has one. */
static bool occurs(struct course *c, uint64_t now_ns)
{
    static const struct rate rate = {.per_s = 1 / (RULE_ROWS_EACH / 1e9),
                                     .burst = RULE_ROWS_AT_ONCE};

    if (!c)
        return true;
    c->at_ns = now_ns;
    if (bucket_take(&c->bucket, &rate, now_ns, NULL))
        return true;
    if (c->n++ == 0)
        c->since_ns = now_ns;
    return false;
}

bool rule_rows_event(struct rule_rows *r, const char *rule, size_t board, uint64_t job,
                     bool begins, uint64_t now_ns)
{
    struct course *c =
        begins ? course_of(r, rule, board, job, false) : find(r, rule, board, job, false);

    if (begins) {
        bool row = occurs(c, now_ns);
        if (c)
            c->written = row;
        return row;
    }
    bool row = !c || c->written;
    if (c)
        c->written = false;
    return row;
}

bool rule_rows_claim(struct rule_rows *r, const char *who, size_t board, bool hard,
                     uint64_t id, uint64_t now_ns)
{
    if (board >= BOARDS_MAX)
        return true;
    struct claimed *b = &r->claimed[board];
    bool row = occurs(course_of(r, who, board, 0, true), now_ns);
    if (row)
        b->written[hard] = id;
    b->unwritten[hard] = row ? 0 : id;
    return row;
}

bool rule_rows_claim_end(struct rule_rows *r, size_t board, uint64_t id)
{
    if (board >= BOARDS_MAX)
        return true;
    struct claimed *b = &r->claimed[board];
    bool unwritten = false, written = false;
    for (size_t i = 0; i < 2; i++) {
        written |= b->written[i] == id;
        unwritten |= b->unwritten[i] == id;
        if (b->written[i] == id)
            b->written[i] = 0;
    }
    return written || !unwritten;
}

bool rule_rows_cap(struct rule_rows *r, size_t board, uint32_t target_mw, uint64_t claim)
{
    if (board >= BOARDS_MAX)
        return true;
    struct claimed *b = &r->claimed[board];
    bool unwritten = claim && (b->unwritten[0] == claim || b->unwritten[1] == claim);
    bool back =
        b->left_out && b->has_cap && target_mw == b->target_mw && claim == b->claim;
    b->left_out = unwritten;
    if (unwritten || back)
        return false;
    b->has_cap = true;
    b->target_mw = target_mw;
    b->claim = claim;
    return true;
}

bool rule_rows_count(struct rule_rows *r, bool all, uint64_t now_ns,
                     struct rule_count *ret)
{
    for (size_t i = 0; i < r->n; i++) {
        struct course *c = &r->course[i];
        if (c->n == 0 || (!all && now_ns - c->since_ns < RULE_ROWS_COUNT))
            continue;
        *ret = (struct rule_count){.name = c->name,
                                   .board = c->board,
                                   .job = c->job,
                                   .n = c->n,
                                   .since_ns = c->since_ns,
                                   .claims = c->claims};
        c->n = 0;
        return true;
    }
    return false;
}
