#include "node/phase-watch.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "board/sampler.h"
#include "caps/caps.h"
#include "io/loop.h"
#include "jobs/roster.h"

struct watched {
    uint64_t job;
    struct phase_book book;
};

struct phase_board {
    struct sampler *sampler;
    struct sampler_ear ear;
    struct phase_settling settling;
    uint32_t mw; /* in force; 0: unknown */
};

struct phase_watch {
    struct loop *loop;
    const struct caps *caps;
    struct phase_board *board; /* n_boards */
    size_t n_boards;
    struct watched *job[ROSTER_MAX];
    size_t n;
};

/* ---- boards ---- */

static void hear(size_t board, const struct gpu_sample *s, void *user)
{
    struct phase_watch *w = user;
    uint64_t at_ns = s->began_ns + (s->at_ns - s->began_ns) / 2;

    if (!(s->has & (GPU_HAS_INSTANT | GPU_HAS_POWER)))
        return;
    phase_settling_sample(&w->board[board].settling, at_ns,
                          s->has & GPU_HAS_INSTANT ? s->instant_w : s->power_w);
}

static void listen(struct phase_watch *w, size_t i, struct sampler *sampler)
{
    struct phase_board *b = &w->board[i];

    b->sampler = sampler;
    b->ear = (struct sampler_ear){.fn = hear, .user = w, .board = i, .overhears = true};
    sampler_hear(sampler, 0, &b->ear);
}

/* ---- jobs ---- */

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

bool phase_watch_phase(struct phase_watch *w, uint64_t job, uint32_t phase)
{
    struct watched *j = find(w, job);

    if (!j)
        j = add(w, job);
    return j && phase_book_phase(&j->book, phase, loop_now_ns(w->loop));
}

void phase_watch_cap(struct phase_watch *w, size_t board, uint32_t mw)
{
    struct phase_board *b = board < w->n_boards ? &w->board[board] : NULL;
    uint64_t now_ns = loop_now_ns(w->loop);
    struct caps_view v;

    if (!b || !mw)
        return;
    caps_look(w->caps, board, &v);
    if (b->mw)
        phase_settling_cap(&b->settling, b->mw, mw, v.call_s, now_ns);
    b->mw = mw;
    for (size_t i = 0; i < w->n; i++)
        phase_book_cap(&w->job[i]->book, board, mw, now_ns);
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

/* ---- views ---- */

#define NOTICE_S 0.02 /* from a change of phase to the request, where a job tells it */

void phase_watch_look(const struct phase_watch *w, uint64_t job, uint64_t boards,
                      struct view_phases *ret)
{
    const struct watched *j = w ? find(w, job) : NULL;
    struct phase_latency l;

    *ret = (struct view_phases){.book = j ? &j->book : NULL};
    for (size_t i = 0; w && i < w->n_boards; i++) {
        if (!(boards >> i & 1))
            continue;
        phase_settling_latency(&w->board[i].settling, &l);
        ret->latency.call_s = fmax(ret->latency.call_s, l.call_s);
        ret->latency.down_s = fmax(ret->latency.down_s, l.down_s);
        ret->latency.up_s = fmax(ret->latency.up_s, l.up_s);
    }
    ret->break_even_s = phase_break_even_s(&ret->latency, NOTICE_S);
}

/* ---- life ---- */

int phase_watch_new(struct loop *loop, const struct caps *caps,
                    struct sampler *const *sampler, size_t n_boards,
                    struct phase_watch **ret, uw_error *err)
{
    auto_(phase_watch_free) struct phase_watch *w = calloc(1, sizeof *w);

    if (w)
        w->board = calloc(n_boards ? n_boards : 1, sizeof *w->board);
    if (!w || !w->board)
        return fail(err, -ENOMEM, "out of memory");
    w->loop = loop;
    w->caps = caps;
    w->n_boards = n_boards;
    for (size_t i = 0; i < n_boards; i++)
        listen(w, i, sampler[i]);
    *ret = take(w);
    return 0;
}

void phase_watch_free(struct phase_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; w->board && i < w->n_boards; i++)
        sampler_deaf(w->board[i].sampler, 0, &w->board[i].ear);
    while (w->n > 0)
        free(w->job[--w->n]);
    free(w->board);
    free(w);
}
