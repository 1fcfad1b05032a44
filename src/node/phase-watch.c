#include "node/phase-watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "caps/caps.h"
#include "io/loop.h"
#include "jobs/roster.h"

struct watched {
    uint64_t job;
    struct phase_book book;
};

struct phase_watch {
    struct loop *loop;
    const struct caps *caps;
    size_t n_boards;
    struct watched *job[ROSTER_MAX];
    size_t n;
};

static struct watched *find(const struct phase_watch *w, uint64_t job)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->job[i]->job == job)
            return w->job[i];
    return NULL;
}

static struct watched *add(struct phase_watch *w, uint64_t job)
{
    struct watched *j = w->n < ROSTER_MAX ? calloc(1, sizeof *j) : NULL;
    struct caps_view v;

    if (!j)
        return NULL;
    j->job = job;
    for (size_t i = 0; i < w->n_boards; i++) {
        caps_look(w->caps, i, &v);
        phase_book_cap(&j->book, i, v.enforced_mw ? v.enforced_mw : v.bounds.original_mw,
                       loop_now_ns(w->loop));
    }
    w->job[w->n++] = j;
    return j;
}

void phase_watch_phase(struct phase_watch *w, uint64_t job, uint32_t phase)
{
    struct watched *j = find(w, job);

    if (!j)
        j = add(w, job);
    if (j)
        (void)phase_book_phase(&j->book, phase, loop_now_ns(w->loop));
}

void phase_watch_cap(struct phase_watch *w, size_t board, uint32_t mw)
{
    for (size_t i = 0; mw && i < w->n; i++)
        phase_book_cap(&w->job[i]->book, board, mw, loop_now_ns(w->loop));
}

void phase_watch_end(struct phase_watch *w, uint64_t job)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->job[i]->job != job)
            continue;
        free(w->job[i]);
        w->job[i] = w->job[--w->n];
        return;
    }
}

const struct phase_book *phase_watch_book(const struct phase_watch *w, uint64_t job)
{
    const struct watched *j = w ? find(w, job) : NULL;

    return j ? &j->book : NULL;
}

int phase_watch_new(struct loop *loop, const struct caps *caps, size_t n_boards,
                    struct phase_watch **ret, uw_error *err)
{
    struct phase_watch *w = calloc(1, sizeof *w);

    if (!w)
        return fail(err, -ENOMEM, "out of memory");
    w->loop = loop;
    w->caps = caps;
    w->n_boards = n_boards;
    *ret = w;
    return 0;
}

void phase_watch_free(struct phase_watch *w)
{
    while (w && w->n > 0)
        free(w->job[--w->n]);
    free(w);
}
