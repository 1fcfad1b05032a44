/* What changed while the view was open: caps, boards, jobs. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/figures.h"
#include "cli/take.h"
#include "cli/top-draw.h"

enum {
    CLOCK = 10, /* columns of the time */
    STEP = 6,   /* rows */
    EVENT = sizeof(struct top_event) + TOP_TEXT,
};

__attribute__((format(printf, 3, 4))) static void note(struct top *t, uint64_t boards,
                                                       const char *format, ...)
{
    struct top_event e = {.boards = boards};
    struct top_event *last = &t->event[(t->n_events + TOP_EVENTS - 1) % TOP_EVENTS];
    va_list args;

    (void)snprintf(e.clock, sizeof e.clock, "%s", t->clock);
    va_start(args, format);
    (void)vsnprintf(e.text, sizeof e.text, format, args);
    va_end(args);
    if (t->n_events > 0 && boards && last->boards && strcmp(last->clock, e.clock) == 0 &&
        strcmp(last->text, e.text) == 0)
        last->boards |= boards;
    else
        t->event[t->n_events++ % TOP_EVENTS] = e;
}

/* The limit that is wanted; without a claim, the original one. */
static double wanted(const struct top_board *b)
{
    return isnan(b->target_w) ? b->original_w : b->target_w;
}

void top_note_board(struct top *t, const struct top_board *old,
                    const struct top_board *now)
{
    double from = wanted(old), to = wanted(now);
    uint64_t board = now->index < 64 ? 1ull << now->index : 0;
    bool other = strcmp(old->text, now->text) != 0;

    if (now->text[0] && other)
        note(t, board, "%s", now->text);
    else if (other || isnan(old->power_w) != isnan(now->power_w))
        note(t, board, "%s", isnan(now->power_w) ? "no answer" : "answers");
    if (fabs(to - from) >= 0.5)
        note(t, board, "cap %.0f W, before %.0f W: %s", to, from, now->by);
}

void top_note_job(struct top *t, const struct top_job *old, const struct top_job *now)
{
    const struct top_job *j = now ? now : old;
    char who[TOP_TEXT * 2];

    (void)snprintf(who, sizeof who, "job %llu, %s %s", (unsigned long long)j->id, j->user,
                   j->name);
    if (!old)
        note(t, 0, "%s: started on GPU %s", who, j->gpus);
    else if (!now)
        note(t, 0, "%s: ended, %s", who, figure_joules(j->energy_j).t);
    else if (strcmp(old->state, now->state) != 0)
        note(t, 0, "%s: %s", who, now->state);
    else if (strcmp(old->phase, now->phase) != 0 && now->phase[0])
        note(t, 0, "%s: phase %s", who, now->phase);
}

static void words(const struct top_event *e, char ret[EVENT])
{
    char boards[TOP_TEXT] = "";

    if (e->boards)
        take_runs(e->boards, boards, sizeof boards);
    (void)snprintf(ret, EVENT, "%s%s%s%s", e->boards ? "GPU " : "", boards,
                   e->boards ? ": " : "", e->text);
}

/* The i-th event, the newest first. */
static const struct top_event *newest(const struct top *t, size_t i)
{
    return &t->event[(t->n_events - 1 - i) % TOP_EVENTS];
}

static size_t kept(const struct top *t)
{
    return t->n_events < TOP_EVENTS ? t->n_events : TOP_EVENTS;
}

unsigned top_events_rows(const struct top *t, unsigned cols)
{
    unsigned rows = 1;
    char text[EVENT];

    for (size_t i = 0; i < kept(t); i++) {
        words(newest(t, i), text);
        rows += top_wrap_rows(cols > CLOCK ? cols - CLOCK : 1, text);
    }
    return (rows / STEP + 1) * STEP;
}

void top_draw_events(const struct top *t, struct grid *g, unsigned row, unsigned rows)
{
    unsigned at = row + 1;
    char text[EVENT];

    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 0, GRID_HEAD, "TIME UTC  EVENTS SINCE %s",
                    t->began[0] ? t->began : "-");
    if (t->n_events == 0)
        (void)grid_text(g, at, 2, GRID_DIM, "none");
    for (size_t i = 0; i < kept(t) && at < row + rows; i++) {
        (void)grid_text(g, at, 0, GRID_DIM, "%s", newest(t, i)->clock);
        words(newest(t, i), text);
        at += top_wrap(g, at, row + rows, CLOCK, GRID_PLAIN, text);
    }
}
