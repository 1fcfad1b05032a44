/* Who used a board, for the split of its energy. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "jobs/roster-inside.h"

static struct user *find(struct seat *s, uint64_t job)
{
    for (size_t i = 0; i < s->n_users; i++)
        if (s->user[i].job == job)
            return &s->user[i];
    return NULL;
}

static bool computes_for(const struct seen *procs, size_t n, uint64_t job)
{
    for (size_t i = 0; i < n; i++)
        if (procs[i].job == job && (job != 0 || procs[i].compute))
            return true;
    return false;
}

bool seat_given(const struct seat *s, const struct slot *job)
{
    return !job->over && ((job->e.given | job->kept) >> s->at & 1) != 0;
}

static bool belongs(const struct seat *s, const struct seen *procs, size_t n,
                    const struct slot *job)
{
    return seat_given(s, job) || (!job->over && computes_for(procs, n, job->e.id));
}

bool seat_users_differ(const struct seat *s, const struct seen *procs, size_t n)
{
    const struct roster *r = s->roster;
    size_t there = 0, known = 0;

    for (size_t i = 0; i < s->n_users; i++)
        there += s->user[i].there;
    for (size_t i = 0; i < r->n; i++) {
        if (!belongs(s, procs, n, r->slot[i]))
            continue;
        known++;
        const struct user *u = find((struct seat *)s, r->slot[i]->e.id);
        if (!u || !u->there)
            return true;
    }
    if (computes_for(procs, n, 0)) {
        const struct user *u = find((struct seat *)s, 0);
        known++;
        if (!u || !u->there)
            return true;
    }
    return known != there;
}

void seat_count(struct seat *s)
{
    uint64_t now = loop_now_ns(s->roster->opts.loop);
    double dt = s_between(s->counted_ns, now);

    s->counted_ns = now;
    for (size_t i = 0; i < s->n_users && dt > 0; i++) {
        struct user *u = &s->user[i];
        if (!u->there)
            continue;
        u->there_s += dt;
        if (u->rate_known) {
            u->known_s += dt;
            u->use_s += u->rate * dt;
        }
    }
}

/* Those who have left and were asked about, or have to make room. */
static void drop(struct seat *s, bool all)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_users; i++)
        if (s->user[i].there || (!all && s->user[i].there_s > 0))
            s->user[n++] = s->user[i];
    s->n_users = n;
}

static void arrive(struct seat *s, uint64_t job)
{
    struct user *u = find(s, job);

    if (!u && s->n_users == ROSTER_USERS)
        drop(s, true);
    if (!u && s->n_users == ROSTER_USERS)
        return; /* the energy of more than so many is unattributed or others' */
    if (!u) {
        u = &s->user[s->n_users++];
        *u = (struct user){.job = job};
    }
    u->there = true;
}

void seat_users(struct seat *s)
{
    const struct roster *r = s->roster;
    size_t n = 0;

    for (size_t i = 0; i < s->n_users; i++)
        s->user[i].there = false;
    for (size_t i = 0; i < r->n; i++)
        if (belongs(s, s->proc, s->n, r->slot[i])) {
            arrive(s, r->slot[i]->e.id);
            n++;
        }
    if (computes_for(s->proc, s->n, 0)) {
        arrive(s, 0);
        n++;
    }
    for (size_t i = 0; i < s->n_users && n < 2; i++) /* nobody to be told apart from */
        s->user[i].rate_known = false;
    drop(s, false);
}

void seat_turn(struct seat *s)
{
    seat_count(s);
    if (s->roster->opts.on_turn)
        s->roster->opts.on_turn(s->at, s->roster->opts.user);
}

static int on_use(struct board *b, int result, const struct gpu_use *use, size_t n,
                  const uw_error *err, void *user)
{
    struct seat *s = user;
    (void)b;
    (void)err;

    s->calls--;
    if (!s->roster) {
        seat_free(s);
        return 0;
    }
    if (result == -ECANCELED)
        return 0;
    seat_count(s);
    for (size_t i = 0; i < s->n_users; i++) {
        s->user[i].rate = 0;
        s->user[i].rate_known = result == 0;
    }
    s->no_use = result == -ENOTSUP;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s->n; k++) {
            if (s->proc[k].pid != use[i].pid)
                continue;
            struct user *u = find(s, s->proc[k].job);
            if (u)
                u->rate += use[i].sm_percent * 0.01;
            break;
        }
    return 0;
}

void seat_ask_use(struct seat *s)
{
    size_t there = 0;

    for (size_t i = 0; i < s->n_users; i++)
        there += s->user[i].there;
    if (there > 1 && !s->no_use && board_use(s->board, on_use, s) == 0)
        s->calls++;
}

size_t roster_users(struct roster *r, size_t board,
                    struct split_user ret[static ROSTER_USERS])
{
    size_t n = 0;

    if (board >= r->n_seats)
        return 0;
    struct seat *s = r->seat[board];
    seat_count(s);
    for (size_t i = 0; i < s->n_users; i++) {
        struct user *u = &s->user[i];
        bool known = u->known_s > 0.5 * u->there_s;
        ret[n++] = (struct split_user){
            .job = u->job,
            .use_known = known,
            .use_s = known ? u->use_s * u->there_s / u->known_s : 0,
        };
        u->there_s = u->known_s = u->use_s = 0;
    }
    drop(s, false);
    return n;
}
