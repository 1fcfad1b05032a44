#include "jobs/board-users.h"

#include "base/units.h"

static struct board_user *find(const struct board_users *u, uint64_t job)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->user[i].job == job)
            return (struct board_user *)&u->user[i];
    return NULL;
}

bool board_users_share(const struct board_users *u)
{
    size_t there = 0;

    for (size_t i = 0; i < u->n; i++)
        there += u->user[i].there;
    return there > 1;
}

bool board_users_differ(const struct board_users *u, const uint64_t *jobs, size_t n)
{
    size_t there = 0;

    for (size_t i = 0; i < u->n; i++)
        there += u->user[i].there;
    for (size_t i = 0; i < n; i++) {
        const struct board_user *user = find(u, jobs[i]);
        if (!user || !user->there)
            return true;
    }
    return n != there;
}

void board_users_count(struct board_users *u, uint64_t now_ns)
{
    double dt = s_between(u->counted_ns, now_ns);

    u->counted_ns = now_ns;
    for (size_t i = 0; i < u->n && dt > 0; i++) {
        struct board_user *user = &u->user[i];
        if (!user->there)
            continue;
        user->there_s += dt;
        if (user->rate_known) {
            user->known_s += dt;
            user->use_s += user->rate * dt;
        }
    }
}

/* Drops users that have left: those without unreported time, or with `all` every one. */
static void drop(struct board_users *u, bool all)
{
    size_t n = 0;

    for (size_t i = 0; i < u->n; i++)
        if (u->user[i].there || (!all && u->user[i].there_s > 0))
            u->user[n++] = u->user[i];
    u->n = n;
}

static void arrive(struct board_users *u, uint64_t job)
{
    struct board_user *user = find(u, job);

    if (!user && u->n == BOARD_USERS)
        drop(u, true);
    if (!user && u->n == BOARD_USERS)
        return;
    if (!user) {
        user = &u->user[u->n++];
        *user = (struct board_user){.job = job};
    }
    user->there = true;
}

void board_users_set(struct board_users *u, const uint64_t *jobs, size_t n)
{
    for (size_t i = 0; i < u->n; i++)
        u->user[i].there = false;
    for (size_t i = 0; i < n; i++)
        arrive(u, jobs[i]);
    for (size_t i = 0; i < u->n && n < 2; i++) /* a sole user needs no rate */
        u->user[i].rate_known = false;
    drop(u, false);
}

void board_users_clear_use(struct board_users *u, bool known)
{
    for (size_t i = 0; i < u->n; i++) {
        u->user[i].rate = 0;
        u->user[i].rate_known = known;
    }
}

void board_users_add_use(struct board_users *u, uint64_t job, double share)
{
    struct board_user *user = find(u, job);

    if (user)
        user->rate += share;
}

size_t board_users_take(struct board_users *u, struct split_user ret[static BOARD_USERS])
{
    size_t n = u->n;

    for (size_t i = 0; i < n; i++) {
        struct board_user *user = &u->user[i];
        bool known = user->known_s > 0.5 * user->there_s;
        ret[i] = (struct split_user){
            .job = user->job,
            .use_known = known,
            .use_s = known ? user->use_s * user->there_s / user->known_s : 0,
        };
        user->there_s = user->known_s = user->use_s = 0;
    }
    drop(u, false);
    return n;
}
