#include "core/job/owner.h"

bool owner_foreign(const struct owner_board *b, uint32_t uid)
{
    for (size_t i = 0; i < b->n_procs; i++)
        if (!b->proc[i].known || b->proc[i].uid != uid)
            return true;
    return false;
}

static bool computes_foreign(const struct owner_board *b, uint32_t uid)
{
    for (size_t i = 0; i < b->n_procs; i++)
        if (b->proc[i].compute && (!b->proc[i].known || b->proc[i].uid != uid))
            return true;
    return false;
}

/* Whether uid (`other`: another user) has a job of this kind on the board. */
static bool has(const struct owner_board *b, enum owner_kind kind, uint32_t uid,
                bool other)
{
    for (size_t i = 0; i < b->n_jobs; i++)
        if (b->job[i].kind == kind && (b->job[i].uid == uid) != other)
            return true;
    return false;
}

/* Whether uid has the right by a registered or run job, or is root. */
static bool named(const struct owner_board *b, uint32_t uid)
{
    return uid == 0 || has(b, OWNER_REGISTERED, uid, false) ||
           (has(b, OWNER_RUN, uid, false) && !computes_foreign(b, uid));
}

/* Whether the board is registered for other users only. */
static bool given_away(const struct owner_board *b, uint32_t uid)
{
    return uid != 0 && has(b, OWNER_REGISTERED, uid, true) &&
           !has(b, OWNER_REGISTERED, uid, false);
}

bool owner_keeps_claim(const struct owner_board *b, uint32_t uid)
{
    bool there = has(b, OWNER_FOUND, uid, false) || b->n_procs > 0;

    if (given_away(b, uid))
        return false;
    return named(b, uid) || (there && !owner_foreign(b, uid));
}

bool owner_may_claim(const struct owner_board *b, uint32_t uid)
{
    if (given_away(b, uid))
        return false;
    return named(b, uid) || (has(b, OWNER_FOUND, uid, false) && b->procs_known &&
                             b->n_procs > 0 && !owner_foreign(b, uid));
}
