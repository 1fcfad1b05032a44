/* The picked board: its claims, limits and use. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/top-draw.h"

enum { CAP_END = 25, LEFT_END = 34, WHO = 36, FACTS = 700 };

static const struct top_board *picked(const struct top *t)
{
    const struct top_board *b = &t->board[t->picked];

    return t->picked < t->n_boards && top_shows_board(t, b) ? b : NULL;
}

/* Columns of who and why; on a narrow terminal they are cut. */
static unsigned who_columns(unsigned cols)
{
    return cols > WHO + 20 ? cols - WHO : 1000;
}

static void who_and_why(const struct top_claim *c, char ret[TOP_TEXT * 2 + 3])
{
    (void)snprintf(ret, TOP_TEXT * 2 + 3, "%s%s%s", c->who, c->why[0] ? ": " : "",
                   c->why);
}

unsigned top_claims_rows(const struct top *t, unsigned cols)
{
    const struct top_board *b = picked(t);
    char text[TOP_TEXT * 2 + 3];
    unsigned rows = 1;

    for (size_t i = 0; b && i < b->n_claims; i++) {
        who_and_why(&b->claim[i], text);
        rows += top_wrap_rows(who_columns(cols), text);
    }
    return b && b->n_claims == 0 ? 2 : rows;
}

void top_draw_claims(const struct top *t, struct grid *g, unsigned row, unsigned end)
{
    const struct top_board *b = picked(t);
    char text[TOP_TEXT * 2 + 3];

    if (!b || row >= end)
        return;
    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 0, GRID_HEAD, "CLAIMS ON GPU %u", b->index);
    (void)grid_text(g, row, 18, GRID_HEAD, "AT MOST  ENDS IN  WHO AND WHY");
    if (b->n_claims == 0 && row + 1 < end)
        (void)grid_text(g, row + 1, 2, GRID_DIM,
                        !b->claims_known ? "-"
                        : b->others      ? "none"
                                         : "none: the original limit of %s holds",
                        top_number(b->original_w, " W").t);
    unsigned at = row + 1;
    for (size_t i = 0; i < b->n_claims && at < end; i++) {
        const struct top_claim *c = &b->claim[i];
        enum grid_look look = c->wins ? GRID_BOLD : GRID_PLAIN;
        (void)grid_text(g, at, 0, look, "%s %s", c->wins ? ">" : " ", c->kind);
        top_right(g, at, CAP_END, look, top_number(c->cap_w, " W").t);
        top_right(g, at, LEFT_END, look,
                  isinf(c->left_s) && c->of_job ? "with job" : top_span(c->left_s).t);
        who_and_why(c, text);
        unsigned rows = top_wrap_rows(who_columns(g->cols), text);
        (void)top_wrap(g, at, at + rows < end ? at + rows : end, WHO, look, text);
        at += rows;
    }
}

/* Limits, clock, memory and use in words; what is unknown is "-". */
static void facts(const struct top_board *b, char ret[FACTS])
{
    bool in_use = b->use[0], timed = in_use && !isnan(b->use_s);

    (void)snprintf(ret, FACTS,
                   "limit %s in force, %s wanted, %s original, %s highest; SM clock %s; "
                   "memory of processes %s%s%s%s%s",
                   top_number(b->cap_w, " W").t, top_number(b->target_w, " W").t,
                   top_number(b->original_w, " W").t, top_number(b->max_w, " W").t,
                   top_number(b->clock_mhz, " MHz").t,
                   top_number(b->memory_bytes / (1 << 20), " MiB").t, in_use ? "; " : "",
                   b->use, timed ? " for " : "", timed ? top_span(b->use_s).t : "");
}

/* Why the cap is what it is, in full. */
static void cause(const struct top_board *b, char *ret, size_t size)
{
    const char *why = b->text[0] ? b->text : isnan(b->power_w) ? "no answer" : "";

    (void)snprintf(ret, size, "capped by: %s%s%s", b->by[0] ? b->by : "-",
                   *why ? "; " : "", why);
}

/* "GPU 2 capped by: search of job 12: holds 166 W" */
static void board_cause(const struct top_board *b, char ret[FACTS])
{
    char text[FACTS - 20];

    cause(b, text, sizeof text);
    (void)snprintf(ret, FACTS, "GPU %u %s", b->index, text);
}

unsigned top_cause_rows(const struct top_board *b, unsigned cols)
{
    char text[FACTS];

    board_cause(b, text);
    return top_wrap_rows(cols, text);
}

void top_draw_cause(const struct top_board *b, struct grid *g, unsigned row,
                    unsigned rows)
{
    char text[FACTS];

    board_cause(b, text);
    (void)top_wrap(g, row, row + rows, 0, GRID_PLAIN, text);
}

unsigned top_details_rows(const struct top *t, unsigned cols)
{
    const struct top_board *b = picked(t);
    char text[FACTS];

    if (!b)
        return 0;
    facts(b, text);
    unsigned rows = 1 + top_wrap_rows(cols > 2 ? cols - 2 : 1, text);
    cause(b, text, sizeof text);
    rows += top_wrap_rows(cols > 2 ? cols - 2 : 1, text);
    return rows + top_claims_rows(t, cols);
}

void top_draw_details(const struct top *t, struct grid *g, unsigned row, unsigned end)
{
    const struct top_board *b = picked(t);
    char text[FACTS];

    if (!b || row >= end)
        return;
    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 0, GRID_HEAD, "GPU %u  %s  %s", b->index, b->name, b->uuid);
    row++;
    facts(b, text);
    row += top_wrap(g, row, end, 2, GRID_PLAIN, text);
    cause(b, text, sizeof text);
    row += top_wrap(g, row, end, 2, GRID_PLAIN, text);
    top_draw_claims(t, g, row, end);
}
