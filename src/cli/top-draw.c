#include "cli/top.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "cli/figures.h"

enum {
    LEFT = 4,  /* columns of the number of a board */
    NAME = 13, /* columns of its name, at least */
    BAR_LEAST = 10,
    BY_LEAST = 16, /* columns of who caps it: "search of job 12" */
    FEW_ROWS = 8,  /* with fewer rows, only boards are shown */
    JOBS_LEAST = 4,
    STATE = 15,
    TIME = 10,
    PHASE = 12,
    WHO = 200,        /* bytes of a board's users */
    GRAPH_LEAST = 60, /* columns of a board's graph, with several side by side */
    GRAPH_LABEL = 6,  /* of them left of the graph */
    GRAPH_MOST = 12,  /* rows */
    BAND_LEAST = 6,   /* rows of graphs, with several bands of them */
};

struct text {
    char t[64];
};

/* "-" if unknown, never 0. */
static struct text number(double v, const char *unit)
{
    struct text s = {"-"};

    if (!isnan(v))
        (void)snprintf(s.t, sizeof s.t, "%.0f%s", v, unit);
    return s;
}

static struct text span(double seconds)
{
    struct text s = {"-"};
    long v = isnan(seconds) ? -1 : lround(fmin(seconds, 1e9));

    if (isinf(seconds))
        (void)snprintf(s.t, sizeof s.t, "open");
    else if (v >= 86400)
        (void)snprintf(s.t, sizeof s.t, "%ldd%02ldh", v / 86400, v / 3600 % 24);
    else if (v >= 3600)
        (void)snprintf(s.t, sizeof s.t, "%ld:%02ld:%02ld", v / 3600, v / 60 % 60, v % 60);
    else if (v >= 0)
        (void)snprintf(s.t, sizeof s.t, "%ld:%02ld", v / 60, v % 60);
    return s;
}

/* How close the power is to the cap. */
static enum grid_look pressure(const struct top_board *b)
{
    double part = b->power_w / b->cap_w;

    return part >= 0.97 ? GRID_FULL : part >= 0.90 ? GRID_NEAR : GRID_GOOD;
}

static void right(struct grid *g, unsigned row, unsigned end, enum grid_look look,
                  const char *text)
{
    unsigned len = text_columns(text);

    (void)grid_text(g, row, end > len ? end - len : 0, look, "%s", text);
}

static void draw_title(const struct top *t, struct grid *g)
{
    double power = 0, cap = 0, today = 0;

    for (size_t i = 0; i < t->n_boards; i++) {
        const struct top_board *b = &t->board[i];
        power += isnan(b->power_w) ? 0 : b->power_w;
        cap += isnan(b->cap_w) ? 0 : b->cap_w;
        today += isnan(b->today_j) ? 0 : b->today_j;
    }
    unsigned col =
        grid_text(g, 0, 0, GRID_BOLD, "%s", t->host[0] ? t->host : "underwatt");
    col = grid_text(g, 0, col + 2, GRID_PLAIN, "%zu GPU%s", t->n_boards,
                    t->n_boards == 1 ? "" : "s");
    col = grid_text(g, 0, col + 2, GRID_BOLD, "%.0f W", power);
    col = grid_text(g, 0, col + 1, GRID_PLAIN, "of %.0f W  today %s", cap,
                    figure_joules(today).t);
    if (t->simulated)
        col = grid_text(g, 0, col + 2, GRID_WARN, "simulated");
    if (t->dry_run)
        col = grid_text(g, 0, col + 2, GRID_WARN, "dry run");
    if (t->read_only)
        col = grid_text(g, 0, col + 2, GRID_WARN, "read only");
    if (t->filter[0])
        col = grid_text(g, 0, col + 2, GRID_WARN, "filtered");
    if (t->frozen)
        col = grid_text(g, 0, col + 2, GRID_WARN, "frozen");
    if (t->trouble[0])
        col = grid_text(g, 0, col + 2, GRID_WARN, "old figures");
    unsigned len = (unsigned)strlen(t->clock);
    if (col + 2 + len <= g->cols)
        right(g, 0, g->cols, t->trouble[0] ? GRID_WARN : GRID_PLAIN, t->clock);
}

/* The columns right of the boards' names; each has a blank before it. */
enum column { COL_POWER, COL_CAP, COL_TEMP, COL_UTIL, COL_TODAY, COL_BY, N_COLS };

static const struct {
    const char *head;
    unsigned width;
} columns[N_COLS] = {{"W", 5},    {"CAP", 5},   {"°C", 3},
                     {"UTIL", 4}, {"TODAY", 9}, {"CAPPED BY", BY_LEAST}};

/* The end of a column; for COL_BY, its start; 0: left out. */
struct boards_table {
    unsigned name; /* columns of the names */
    unsigned bar;  /* columns of the bar; 0: left out */
    unsigned at[N_COLS];
};

/* Columns that a text needs in addition to the `has` of its field, at most `room`. */
static unsigned more(const char *text, unsigned has, unsigned room)
{
    unsigned len = text_columns(text);

    return len <= has ? 0 : len - has < room ? len - has : room;
}

/* Distributes `extra` columns: those beyond TEXT_COLUMNS first to the names, then to who
 * caps the boards, as far as these texts need them, the others to the bar.
 */
static void boards_table_widen(struct boards_table *at, const struct top *t,
                               unsigned cols, unsigned extra)
{
    unsigned name = 0, by = 0;
    unsigned wide = cols > TEXT_COLUMNS ? cols - TEXT_COLUMNS : 0;

    wide = wide < extra ? wide : extra;
    for (size_t i = 0; i < t->n_boards; i++) {
        unsigned needs = more(t->board[i].name, NAME - 1, wide);
        name = needs > name ? needs : name;
    }
    for (size_t i = 0; i < t->n_boards; i++) {
        unsigned needs = more(t->board[i].by, BY_LEAST, wide - name);
        by = needs > by ? needs : by;
    }
    at->name += name;
    at->bar += extra - name - by;
}

/* Columns are shown whole or not at all; the least important go first. */
static struct boards_table boards_table(const struct top *top, unsigned cols)
{
    static const enum column least_first[] = {COL_TODAY, COL_TEMP, COL_UTIL, N_COLS,
                                              COL_BY,    COL_CAP,  COL_POWER};
    struct boards_table t = {.name = NAME};
    bool shown[N_COLS + 1]; /* the last one is the bar */
    unsigned need = LEFT + NAME + BAR_LEAST;

    for (size_t i = 0; i <= N_COLS; i++)
        shown[i] = true;
    for (size_t i = 0; i < N_COLS; i++)
        need += 1 + columns[i].width;
    for (size_t i = 0; i < n_elements(least_first) && need > cols; i++) {
        enum column c = least_first[i];
        shown[c] = false;
        need -= c == N_COLS ? BAR_LEAST : 1 + columns[c].width;
    }
    if (shown[N_COLS])
        t.bar = BAR_LEAST;
    /* At 80 columns all are shown: COL_BY has one column more than it needs. */
    if (shown[N_COLS] && cols > need)
        boards_table_widen(&t, top, cols, cols - need - 1);
    unsigned at = LEFT + t.name + t.bar;
    for (size_t i = 0; i < N_COLS; i++) {
        if (!shown[i])
            continue;
        t.at[i] = at + 1 + (i == COL_BY ? 0 : columns[i].width);
        at += 1 + columns[i].width;
    }
    return t;
}

static void draw_boards_head(const struct boards_table *t, struct grid *g, unsigned row)
{
    static const char bar[] = "POWER AGAINST CAP";

    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 0, GRID_HEAD, "GPU NAME");
    if (t->bar) /* its head may reach up to that of the power, "W" */
        (void)grid_text(g, row, LEFT + t->name, GRID_HEAD, "%s",
                        t->bar + columns[COL_POWER].width >= sizeof bar ? bar : "POWER");
    for (size_t i = 0; i < COL_BY; i++)
        if (t->at[i])
            right(g, row, t->at[i], GRID_HEAD,
                  i == COL_TEMP && g->ascii ? "C" : columns[i].head);
    if (t->at[COL_BY])
        (void)grid_text(g, row, t->at[COL_BY], GRID_HEAD, "%s", columns[COL_BY].head);
}

static void cell(struct grid *g, unsigned row, unsigned end, enum grid_look look,
                 struct text text)
{
    if (end)
        right(g, row, end, look, text.t);
}

static struct text energy(double j)
{
    struct text s;

    (void)snprintf(s.t, sizeof s.t, "%s", figure_joules(j).t);
    return s;
}

/* The bar and the origin of the cap, or why there is no power to draw. */
static void draw_board_words(const struct boards_table *at, const struct top_board *b,
                             struct grid *g, unsigned row)
{
    const char *why = b->text[0] ? b->text : isnan(b->power_w) ? "no answer" : "";
    const char *by = !at->bar && !b->by[0] ? why : b->by;

    if (at->bar && !isnan(b->power_w) && b->max_w > 0)
        grid_bar(g, row, LEFT + at->name, at->bar, b->power_w / b->max_w,
                 isnan(b->cap_w) ? -1 : b->cap_w / b->max_w, pressure(b));
    else if (at->bar)
        grid_field(g, row, LEFT + at->name, at->bar, GRID_WARN, why);
    if (at->at[COL_BY])
        grid_field(g, row, at->at[COL_BY], g->cols - at->at[COL_BY],
                   by == why ? GRID_WARN : GRID_PLAIN, by);
}

static void draw_board(const struct top *t, const struct top_board *b, struct grid *g,
                       unsigned row)
{
    const struct boards_table at = boards_table(t, g->cols);
    bool walking = !isnan(b->target_w) && !isnan(b->cap_w) && b->target_w < b->cap_w - 1;

    right(g, row, 3, GRID_PLAIN, number(b->index, "").t);
    grid_field(g, row, LEFT, at.name - 1, GRID_PLAIN, b->name);
    cell(g, row, at.at[COL_POWER], GRID_BOLD, number(b->power_w, ""));
    cell(g, row, at.at[COL_CAP], walking ? GRID_NEAR : GRID_PLAIN, number(b->cap_w, ""));
    cell(g, row, at.at[COL_TEMP], b->temp_c >= 85 ? GRID_FULL : GRID_PLAIN,
         number(b->temp_c, ""));
    cell(g, row, at.at[COL_UTIL], GRID_PLAIN, number(b->util * 100, "%"));
    cell(g, row, at.at[COL_TODAY], GRID_PLAIN, energy(b->today_j));
    draw_board_words(&at, b, g, row);
    if (b == &t->board[t->picked])
        grid_look_at(g, row, 0, LEFT + at.name - 1, GRID_PICKED);
}

/* The newest n powers of a board, the newest last, and their range; *ret_least >
 * *ret_most: none is known.
 */
static void newest(const struct top *t, const struct top_board *b, double *v, unsigned n,
                   double *ret_least, double *ret_most)
{
    *ret_least = INFINITY;
    *ret_most = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned age = n - 1 - i;
        v[i] = b->history_w[(t->looks + TOP_HISTORY - 1 - age) % TOP_HISTORY];
        if (!isnan(v[i])) {
            *ret_least = fmin(*ret_least, v[i]);
            *ret_most = fmax(*ret_most, v[i]);
        }
    }
}

/* Draws the recent power of the picked board in one row. */
static void draw_history_row(const struct top *t, struct grid *g, unsigned row)
{
    double v[TOP_HISTORY], least, most;
    const struct top_board *b = &t->board[t->picked];
    unsigned left = grid_text(g, row, 0, GRID_PLAIN, "GPU %u ", b->index);
    unsigned n = g->cols - left - 18;

    if (n > TOP_HISTORY)
        n = TOP_HISTORY;
    newest(t, b, v, n, &least, &most);
    grid_spark(g, row, left, v, n, b->max_w > 0 ? b->max_w : most, GRID_GOOD);
    if (least <= most)
        (void)grid_text(g, row, left + n + 1, GRID_DIM, "%.0f..%.0f W", least, most);
}

/* Draws one board's recent power in `rows` rows and `cols` columns: a line of text, then
 * a graph from 0 to the highest limit with a line at the cap in force.
 */
static void draw_graph(const struct top *t, const struct top_board *b, struct grid *g,
                       unsigned row, unsigned rows, unsigned col, unsigned cols)
{
    double v[TOP_HISTORY], least, most;
    unsigned n = cols - GRAPH_LABEL < TOP_HISTORY ? cols - GRAPH_LABEL : TOP_HISTORY;
    unsigned left = col + GRAPH_LABEL, height = rows - 1, base = row + height;
    char range[40] = "", text[120];

    newest(t, b, v, n, &least, &most);
    double top = b->max_w > 0 ? b->max_w : most;
    if (least <= most)
        (void)snprintf(range, sizeof range, ", %.0f..%.0f W", least, most);
    (void)snprintf(text, sizeof text, "GPU %u power, %.0f s%s", b->index, n * t->look_s,
                   range);
    grid_field(g, row, col, cols, b == &t->board[t->picked] ? GRID_BOLD : GRID_PLAIN,
               text);
    right(g, row + 1, left - 1, GRID_DIM, number(top, "").t);
    right(g, base, left - 1, GRID_DIM, "0");
    if (b->cap_w > 0 && top > 0) {
        unsigned at = (unsigned)fmin(b->cap_w / top * height, height - 1);
        for (unsigned i = 0; i < n; i++)
            (void)grid_text(g, base - at, left + i, GRID_DIM, g->ascii ? "-" : "┈");
    }
    for (unsigned i = 0; i < n && top > 0; i++)
        if (!isnan(v[i]))
            grid_column(g, base, left + i, height, v[i] / top, GRID_GOOD);
}

/* The number of graphs side by side, and the bands of them that all boards take. */
static unsigned graphs_in_band(const struct grid *g)
{
    return g->cols < GRAPH_LEAST ? 1 : g->cols / GRAPH_LEAST;
}

static unsigned graph_bands(const struct top_shown *s, const struct grid *g)
{
    unsigned n = graphs_in_band(g);

    return s->n ? ((unsigned)s->n + n - 1) / n : 1;
}

/* Draws the recent power in `rows` rows: of the picked board and, where the terminal is
 * wide or high, of those after it.
 */
static void draw_history(const struct top *t, const struct top_shown *s, struct grid *g,
                         unsigned row, unsigned rows)
{
    unsigned beside = graphs_in_band(g), bands = rows / BAND_LEAST;

    if (s->n == 0 || g->cols < 30)
        return;
    if (rows == 1) {
        draw_history_row(t, g, row);
        return;
    }
    bands = bands < 1 ? 1 : bands > graph_bands(s, g) ? graph_bands(s, g) : bands;
    beside = beside > s->n ? (unsigned)s->n : beside;
    size_t n = (size_t)bands * beside < s->n ? (size_t)bands * beside : s->n;
    size_t first = s->picked + n > s->n ? s->n - n : s->picked;
    unsigned cols = g->cols / beside, high = rows / bands;
    for (unsigned i = 0; i < n; i++)
        draw_graph(t, &t->board[s->at[first + i]], g, row + i / beside * high, high,
                   i % beside * cols, cols - 1);
}

static void draw_claims(const struct top *t, struct grid *g, unsigned row, unsigned end)
{
    const struct top_board *b = &t->board[t->picked];

    if (t->picked >= t->n_boards || !top_shows_board(t, b))
        return;
    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 0, GRID_HEAD, "CLAIMS ON GPU %u", b->index);
    (void)grid_text(g, row, 18, GRID_HEAD, "AT MOST  ENDS IN  WHO AND WHY");
    if (b->n_claims == 0 && row + 1 < end)
        (void)grid_text(g, row + 1, 2, GRID_DIM, "none: the original limit of %s holds",
                        number(b->original_w, " W").t);
    for (size_t i = 0; i < b->n_claims && row + 1 + i < end; i++) {
        const struct top_claim *c = &b->claim[i];
        unsigned at = row + 1 + (unsigned)i;
        enum grid_look look = c->wins ? GRID_BOLD : GRID_PLAIN;
        (void)grid_text(g, at, 0, look, "%s %s", c->wins ? ">" : " ", c->kind);
        right(g, at, 25, look, number(c->cap_w, " W").t);
        right(g, at, 34, look,
              isinf(c->left_s) && c->of_job ? "with job" : span(c->left_s).t);
        unsigned col = grid_text(g, at, 36, look, "%s", c->who);
        if (c->why[0])
            (void)grid_text(g, at, col, look, ": %s", c->why);
    }
}

/* The users of the board: "12 anna train.py", "12 and 1 more". */
static void who_has(const struct top *t, const struct top_board *b, char ret[WHO])
{
    const struct top_job *job = NULL;

    for (size_t i = 0; i < t->n_jobs; i++)
        job = t->job[i].id == b->job ? &t->job[i] : job;
    if (b->n_jobs == 0)
        (void)snprintf(ret, WHO, "-");
    else if (b->n_jobs > 1)
        (void)snprintf(ret, WHO, "%llu and %zu more", (unsigned long long)b->job,
                       b->n_jobs - 1);
    else
        (void)snprintf(ret, WHO, "%llu %s %s", (unsigned long long)b->job,
                       job ? job->user : "", job ? job->name : "");
}

static void draw_waste_row(const struct top *t, const struct top_board *b, struct grid *g,
                           unsigned row)
{
    char who[WHO];
    bool nobody = strcmp(b->use, names_word(NAMES_USE, WASTE_NOBODY)) == 0;
    enum grid_look look = nobody ? GRID_PLAIN : GRID_WARN;

    right(g, row, 3, GRID_PLAIN, number(b->index, "").t);
    grid_field(g, row, 4, 10, look, b->use);
    right(g, row, 24, look, span(b->use_s).t);
    right(g, row, 31, GRID_BOLD, number(b->power_w, "").t);
    right(g, row, 42, GRID_PLAIN, number(b->memory_bytes / (1 << 20), " MiB").t);
    who_has(t, b, who);
    grid_field(g, row, 44, g->cols > 44 ? g->cols - 44 : 0, GRID_PLAIN, who);
}

static bool is_idle(const struct top *t, const struct top_board *b)
{
    return top_shows_board(t, b) && b->use[0] &&
           strcmp(b->use, names_word(NAMES_USE, WASTE_WORKING)) != 0;
}

static unsigned idle_boards(const struct top *t)
{
    unsigned n = 0;

    for (size_t i = 0; i < t->n_boards; i++)
        n += is_idle(t, &t->board[i]);
    return n;
}

/* Boards idle or underused, in 2 rows or more. */
static void draw_idle(const struct top *t, struct grid *g, unsigned row, unsigned rows)
{
    unsigned n = idle_boards(t), shown = n < rows ? n : rows - 2, at = 0;
    double rest_w = 0;

    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 0, GRID_HEAD, "GPU WASTE");
    right(g, row, 24, GRID_HEAD, "FOR");
    right(g, row, 31, GRID_HEAD, "W");
    right(g, row, 42, GRID_HEAD, "MEMORY");
    (void)grid_text(g, row, 44, GRID_HEAD, "WHO HAS IT");
    for (size_t i = 0; i < t->n_boards; i++) {
        const struct top_board *b = &t->board[i];
        if (is_idle(t, b) && at++ < shown)
            draw_waste_row(t, b, g, row + at);
        else if (is_idle(t, b) && !isnan(b->power_w))
            rest_w += b->power_w;
    }
    if (n == 0)
        (void)grid_text(g, row + 1, 2, GRID_DIM, "none: no board%s is known to be idle",
                        t->filter[0] ? " that matches the filter" : "");
    if (shown == n)
        return;
    (void)grid_text(g, row + 1 + shown, 4, GRID_PLAIN, shown ? "%u more" : "all %u",
                    n - shown);
    right(g, row + 1 + shown, 31, GRID_BOLD, number(rest_w, "").t);
}

/* Rows that each list of the view of waste would take. */
static unsigned waste_rows(const struct top *t, unsigned need[TOP_LISTS])
{
    unsigned n = idle_boards(t);

    need[0] = 1 + (n ? n : 1);
    need[1] = top_wasted_rows(t, &t->users);
    need[2] = top_wasted_rows(t, &t->projects);
    return need[0] + need[1] + need[2];
}

/* Boards idle or underused, and the waste of today by user and project. */
static void draw_waste(const struct top *t, struct grid *g, unsigned row, unsigned end)
{
    unsigned need[TOP_LISTS], got[TOP_LISTS];

    (void)waste_rows(t, need);
    top_share_rows(need, end > row ? end - row : 0, got);
    if (got[0])
        draw_idle(t, g, row, got[0]);
    row += got[0];
    if (got[1])
        top_draw_wasted(t, &t->users, "WASTED TODAY BY USER", g, row, got[1]);
    row += got[1];
    if (got[2])
        top_draw_wasted(t, &t->projects, "WASTED TODAY BY PROJECT", g, row, got[2]);
}

static int compare(const struct top *t, const struct top_job *a, const struct top_job *b)
{
    double x = 0, y = 0;

    switch (t->sort) {
    case TOP_SORT_ENERGY:
        x = isnan(b->energy_j) ? -1 : b->energy_j;
        y = isnan(a->energy_j) ? -1 : a->energy_j;
        break;
    case TOP_SORT_SAVED:
        x = isnan(b->saved) ? -9 : b->saved, y = isnan(a->saved) ? -9 : a->saved;
        break;
    case TOP_SORT_TIME:
        x = b->time_s, y = a->time_s;
        break;
    default:
        break;
    }
    if (x < y || x > y)
        return x < y ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The jobs that are shown, in their order; returns their number. */
static size_t order(const struct top *t, size_t at[TOP_JOBS])
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_jobs; i++) {
        if (!top_shows_job(t, &t->job[i]))
            continue;
        size_t k = n++;
        for (; k > 0 && compare(t, &t->job[i], &t->job[at[k - 1]]) < 0; k--)
            at[k] = at[k - 1];
        at[k] = i;
    }
    return n;
}

/* Columns are shown whole or not at all. */
static bool job_has_energy(const struct grid *g)
{
    return g->cols >= 76;
}

/* Beyond 80 columns: time first, then phase, then longer names. */
static bool job_has_time(const struct grid *g)
{
    return g->cols >= 80 + TIME;
}

static bool job_has_phase(const struct grid *g)
{
    return g->cols >= 80 + TIME + PHASE;
}

/* Columns of a job's name and of its state beyond those that they have at 80 columns. */
struct job_widths {
    unsigned name, state;
};

static struct job_widths job_widths(const struct top *t, const struct grid *g)
{
    unsigned rest = job_has_phase(g)  ? g->cols - 80 - TIME - PHASE
                    : job_has_time(g) ? g->cols - 80 - TIME
                                      : 0;
    struct job_widths w = {0};

    for (size_t i = 0; i < t->n_jobs; i++) {
        unsigned needs = more(t->job[i].state, STATE, rest);
        w.state = needs > w.state ? needs : w.state;
    }
    w.name = rest - w.state;
    return w;
}

/* The part of its energy that a job saved; "~0" if it is not distinguishable from zero.
 */
static struct text saved(const struct top_job *j)
{
    struct text s = {"-"};

    if (isfinite(j->saved) && !figure_told(j->saved, j->saved_half))
        (void)snprintf(s.t, sizeof s.t, "~0");
    else if (!isnan(j->saved))
        (void)snprintf(s.t, sizeof s.t, "%.1f %%", 100 * j->saved);
    return s;
}

/* The lowest cap in force on the job's boards; NaN: unknown on one. */
static double cap_of(const struct top *t, const struct top_job *j)
{
    double least = INFINITY;

    for (size_t i = 0; i < t->n_boards; i++) {
        const struct top_board *b = &t->board[i];
        if (b->index >= 64 || !(j->boards >> b->index & 1))
            continue;
        if (isnan(b->cap_w))
            return (double)NAN;
        least = fmin(least, b->cap_w);
    }
    return isinf(least) ? (double)NAN : least;
}

static void draw_job(const struct top *t, const struct top_job *j, struct job_widths wide,
                     struct grid *g, unsigned row)
{
    char text[32];
    unsigned at = 15 + 13 + wide.name, end = at + wide.state;

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)j->id);
    right(g, row, 5, GRID_PLAIN, text);
    grid_field(g, row, 6, 8, GRID_PLAIN, j->user);
    grid_field(g, row, 15, 12 + wide.name, GRID_PLAIN, j->name);
    grid_field(g, row, at, 7, GRID_PLAIN, j->gpus);
    grid_field(g, row, at + 8, STATE + wide.state, j->goal[0] ? GRID_GOOD : GRID_DIM,
               j->state);
    right(g, row, end + 28, GRID_PLAIN, number(cap_of(t, j), "").t);
    if (job_has_energy(g)) {
        right(g, row, end + 39, GRID_PLAIN, saved(j).t);
        right(g, row, end + 48, GRID_PLAIN, figure_joules(j->energy_j).t);
    }
    if (job_has_phase(g))
        grid_field(g, row, end + 50, 10, GRID_PLAIN, j->phase);
    if (job_has_time(g))
        right(g, row, g->cols, GRID_PLAIN, span(j->time_s).t);
}

static void draw_jobs(const struct top *t, struct grid *g, unsigned row, unsigned end)
{
    size_t at[TOP_JOBS] = {0};
    const struct job_widths wide = job_widths(t, g);
    unsigned mid = 15 + 13 + wide.name, state = wide.state;

    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 2, GRID_HEAD, "JOB USER     NAME");
    (void)grid_text(g, row, mid, GRID_HEAD, "GPUS    STATE");
    right(g, row, mid + state + 28, GRID_HEAD, "CAP");
    if (job_has_energy(g)) {
        right(g, row, mid + state + 39, GRID_HEAD,
              t->sort == TOP_SORT_SAVED ? "*SAVED" : "SAVED");
        right(g, row, mid + state + 48, GRID_HEAD,
              t->sort == TOP_SORT_ENERGY ? "*ENERGY" : "ENERGY");
    }
    if (job_has_phase(g))
        (void)grid_text(g, row, mid + state + 50, GRID_HEAD, "PHASE");
    if (job_has_time(g))
        right(g, row, g->cols, GRID_HEAD, t->sort == TOP_SORT_TIME ? "*TIME" : "TIME");
    size_t n = order(t, at);
    if (n == 0 && row + 1 < end)
        (void)grid_text(g, row + 1, 2, GRID_DIM,
                        t->n_jobs ? "no job matches the filter" : "no job on this node");
    for (size_t i = t->first_job; i < n && ++row < end; i++)
        draw_job(t, &t->job[at[i]], wide, g, row);
}

/* The line in which the filter is typed. */
static void draw_typing(const struct top *t, struct grid *g, unsigned row)
{
    unsigned col = grid_text(g, row, 0, GRID_BOLD, "Enter");

    col = grid_text(g, row, col, GRID_HEAD, "Keep  ");
    col = grid_text(g, row, col, GRID_BOLD, "Esc");
    col = grid_text(g, row, col, GRID_HEAD, "Clear ");
    col = grid_text(g, row, col, GRID_PLAIN, " Filter: ");
    col = grid_text(g, row, col, GRID_BOLD, "%s", t->filter);
    grid_fill(g, row, col, 1, GRID_HEAD);
}

static void draw_keys(const struct top *t, struct grid *g)
{
    static const struct {
        const char *key, *does;
    } keys[] = {{"F1", "Help  "}, {"F2", "Claims"}, {"F3", "Waste "}, {"F4", "Filter"},
                {"F6", "Sort  "}, {"F9", "Freeze"}, {"F10", "Quit  "}};
    unsigned row = g->rows - 1, col = 0;

    if (t->typing) {
        draw_typing(t, g, row);
        return;
    }
    if (t->trouble[0]) {
        (void)grid_text(g, row, 0, GRID_WARN, "%s", t->trouble);
        return;
    }
    if (t->filter[0]) {
        col = grid_text(g, row, col, GRID_WARN, "Filter: %s", t->filter);
        col = grid_text(g, row, col + 1, GRID_BOLD, "Esc");
        col = grid_text(g, row, col, GRID_HEAD, "Clear ");
    }
    for (size_t i = 0; i < n_elements(keys); i++) {
        col = grid_text(g, row, col, GRID_BOLD, "%s", keys[i].key);
        col = grid_text(g, row, col, GRID_HEAD, "%s", keys[i].does);
    }
}

static void draw_help(struct grid *g)
{
    static const char *const lines[] = {
        "The bar is the board's power on a scale up to its highest limit; the stroke in",
        "it is the cap in force.  Green: the cap leaves room.  Yellow: close to it.",
        "Red: held by it.  CAP in yellow: on its way down to a lower one.",
        "CAPPED BY is the claim that decides: see F2, or underwatt explain GPU.",
        "SAVED is measured against reference windows at the original cap.  ~0: the",
        "saving is not distinguishable from zero.",
        "",
        "  up, down, k, j    pick a board          F1  h  ?  this help",
        "  PgUp, PgDn        scroll the jobs       F2  c     claims on the board",
        "  Home, End         first, last board     F3  w     waste now, by user",
        "  F9  space         freeze                          and project today",
        "  F10 q ^C          leave                 F4  /  \\  filter boards and jobs",
        "  Esc               clear the filter      F6  s     sort jobs by id, energy,",
        "                                                    saved, time",
    };

    (void)grid_text(g, 0, 0, GRID_BOLD, "underwatt top: live view of this node's boards");
    for (unsigned i = 0; i < n_elements(lines); i++)
        (void)grid_text(g, 2 + i, 0, GRID_PLAIN, "%s", lines[i]);
    (void)grid_text(g, 3 + (unsigned)n_elements(lines), 0, GRID_DIM, "any key goes back");
}

/* Rows of the graphs: one for each band of boards, and the `spare` rows. */
static unsigned history_rows(unsigned bands, unsigned spare)
{
    unsigned most = GRAPH_MOST * bands, rows = spare + 1 < most ? spare + 1 : most;

    return rows < 3 ? 1 : rows; /* a line of text and a graph of two rows at least */
}

/* Rows of the list below the graphs, with its head. */
static unsigned list_rows(const struct top *t)
{
    unsigned need[TOP_LISTS], rows = 1 + (unsigned)t->n_jobs;

    if (t->claims)
        rows = t->picked < t->n_boards ? 1 + (unsigned)t->board[t->picked].n_claims : 1;
    else if (t->waste)
        rows = waste_rows(t, need);
    return rows > JOBS_LEAST ? rows : JOBS_LEAST;
}

/* Returns the number of board rows that fit, and the first board. */
static unsigned board_rows(const struct top_shown *s, const struct grid *g,
                           size_t *ret_first)
{
    unsigned least = g->rows < FEW_ROWS ? 3 : 3 + JOBS_LEAST + 1;
    unsigned rows = g->rows > least ? g->rows - least : 1;

    if (rows > s->n)
        rows = (unsigned)s->n;
    *ret_first = s->picked >= rows ? s->picked - rows + 1 : 0;
    return rows;
}

void top_draw(const struct top *t, struct grid *g)
{
    size_t first = 0;

    if (t->help) {
        draw_help(g);
        return;
    }
    const struct boards_table table = boards_table(t, g->cols);
    const struct top_shown shown = top_boards_shown(t);
    unsigned rows = board_rows(&shown, g, &first);
    draw_title(t, g);
    draw_boards_head(&table, g, 1);
    for (unsigned i = 0; i < rows; i++)
        draw_board(t, &t->board[shown.at[first + i]], g, 2 + i);
    if (rows == 0 && t->n_boards > 0 && g->rows > 3)
        (void)grid_text(g, 1 + ++rows, 2, GRID_DIM, "no board matches the filter");
    if (g->rows >= FEW_ROWS) {
        unsigned used = 2 + rows + 1 + list_rows(t) + 1;
        unsigned high =
            history_rows(graph_bands(&shown, g), g->rows > used ? g->rows - used : 0);
        unsigned row = 2 + rows + high;
        draw_history(t, &shown, g, 2 + rows, high);
        if (t->claims)
            draw_claims(t, g, row, g->rows - 1);
        else if (t->waste)
            draw_waste(t, g, row, g->rows - 1);
        else
            draw_jobs(t, g, row, g->rows - 1);
    }
    for (unsigned row = 1; t->trouble[0] && row < g->rows; row++)
        grid_look_at(g, row, 0, g->cols, GRID_DIM);
    if (g->rows > 3)
        draw_keys(t, g);
}
