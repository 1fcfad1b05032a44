#include "cli/top-draw.h"

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
    WIDE = 120,    /* more columns: clock and memory of boards, too */
    USER = 8,
    JOB_NAME = 12,
    GPUS = 7,
    STATE = 15,
    TIME = 10,
    PHASE = 12,
    WHO = 200, /* bytes of a board's users */
};

/* How close the power is to the cap. */
static enum grid_look pressure(const struct top_board *b)
{
    double part = b->power_w / b->cap_w;

    return part >= 0.97 ? GRID_FULL : part >= 0.90 ? GRID_NEAR : GRID_GOOD;
}

/* Powers are summed up as the table shows them, in whole watts. */
static void draw_title(const struct top *t, struct grid *g)
{
    double power = 0, cap = 0, today = 0;

    for (size_t i = 0; i < t->n_boards; i++) {
        const struct top_board *b = &t->board[i];
        power += isnan(b->power_w) ? 0 : rint(b->power_w);
        cap += isnan(b->cap_w) ? 0 : rint(b->cap_w);
        today += isnan(b->today_j) ? 0 : b->today_j;
    }
    unsigned col =
        grid_text(g, 0, 0, GRID_BOLD, "%s", t->host[0] ? t->host : "underwatt");
    col = grid_text(g, 0, col + 2, GRID_PLAIN, "%zu GPU%s", t->n_boards,
                    t->n_boards == 1 ? "" : "s");
    col = grid_text(g, 0, col + 2, GRID_BOLD, "%.0f W", power);
    col = grid_text(g, 0, col + 1, GRID_PLAIN, "of %.0f W  today %s", cap,
                    figure_joules(today).t);
    if (t->budget_w > 0)
        col = grid_text(g, 0, col + 2, GRID_PLAIN, "budget %.0f W", t->budget_w);
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
        top_right(g, 0, g->cols, t->trouble[0] ? GRID_WARN : GRID_PLAIN, t->clock);
}

/* The columns right of the boards' names; each has a blank before it. */
enum column {
    COL_POWER,
    COL_CAP,
    COL_TEMP,
    COL_UTIL,
    COL_CLOCK,
    COL_MEMORY,
    COL_TODAY,
    COL_BY,
    N_COLS
};

static const struct {
    const char *head;
    unsigned width;
} columns[N_COLS] = {{"W", 5},   {"CAP", 5},     {"°C", 3},    {"UTIL", 4},
                     {"MHZ", 4}, {"MEMORY", 10}, {"TODAY", 9}, {"CAPPED BY", BY_LEAST}};

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
 * caps the boards, as far as these texts need them, then to columns of clock and memory
 * if both fit, the others to the bar.
 */
static void boards_table_widen(struct boards_table *at, const struct top *t,
                               unsigned cols, unsigned extra, bool shown[])
{
    const unsigned both = 2 + columns[COL_CLOCK].width + columns[COL_MEMORY].width;
    unsigned name = 0, by = 0;
    unsigned wide = cols > TEXT_COLUMNS ? cols - TEXT_COLUMNS : 0;

    wide = wide < extra ? wide : extra;
    for (size_t i = 0; i < t->n_boards; i++) {
        unsigned needs = more(t->board[i].name, NAME - 1, wide);
        name = needs > name ? needs : name;
    }
    for (size_t i = 0; i < t->n_boards; i++) {
        const struct top_board *b = &t->board[i];
        unsigned needs = more(b->by[0] ? b->by : b->text, BY_LEAST, wide - name);
        by = needs > by ? needs : by;
    }
    at->name += name;
    at->bar += extra - name - by;
    if (wide >= name + by + both && cols > WIDE) {
        shown[COL_CLOCK] = shown[COL_MEMORY] = true;
        at->bar -= both;
    }
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
        shown[i] = i != COL_CLOCK && i != COL_MEMORY;
    for (size_t i = 0; i < N_COLS; i++)
        need += shown[i] ? 1 + columns[i].width : 0;
    for (size_t i = 0; i < n_elements(least_first) && need > cols; i++) {
        enum column c = least_first[i];
        shown[c] = false;
        need -= c == N_COLS ? BAR_LEAST : 1 + columns[c].width;
    }
    if (shown[N_COLS])
        t.bar = BAR_LEAST;
    /* At 80 columns all are shown: COL_BY has one column more than it needs. */
    if (shown[N_COLS] && cols > need)
        boards_table_widen(&t, top, cols, cols - need - 1, shown);
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
            top_right(g, row, t->at[i], GRID_HEAD,
                      i == COL_TEMP && g->ascii ? "C" : columns[i].head);
    if (t->at[COL_BY])
        (void)grid_text(g, row, t->at[COL_BY], GRID_HEAD, "%s", columns[COL_BY].head);
}

static void cell(struct grid *g, unsigned row, unsigned end, enum grid_look look,
                 struct top_word text)
{
    if (end)
        top_right(g, row, end, look, text.t);
}

static struct top_word energy(double j)
{
    struct top_word s;

    (void)snprintf(s.t, sizeof s.t, "%s", figure_joules(j).t);
    return s;
}

/* Why there is no power to draw. */
static const char *why_of(const struct top_board *b)
{
    return b->text[0] ? b->text : isnan(b->power_w) ? "no answer" : "";
}

/* What stands in COL_BY: the origin of the cap, or a why_of() that the bar has no room
 * for.
 */
static const char *by_of(const struct boards_table *at, const struct top_board *b)
{
    bool fits = at->bar && text_columns(why_of(b)) <= at->bar;

    return !fits && !b->by[0] ? why_of(b) : b->by;
}

/* The rows below the boards for the picked one's cause, if COL_BY cuts it. */
static unsigned cause_rows(const struct top *t, unsigned cols)
{
    const struct boards_table at = boards_table(t, cols);
    const struct top_board *b = &t->board[t->picked];
    unsigned room = at.at[COL_BY] ? cols - at.at[COL_BY] : 0;

    return t->picked < t->n_boards && top_shows_board(t, b) &&
                   text_columns(by_of(&at, b)) > room
               ? top_cause_rows(b, cols)
               : 0;
}

/* The bar and the origin of the cap, or why there is no power to draw. */
static void draw_board_words(const struct boards_table *at, const struct top_board *b,
                             struct grid *g, unsigned row)
{
    const char *why = why_of(b), *by = by_of(at, b);

    if (at->bar && !isnan(b->power_w) && b->max_w > 0)
        grid_bar(g, row, LEFT + at->name, at->bar, b->power_w / b->max_w,
                 isnan(b->cap_w) ? -1 : b->cap_w / b->max_w, pressure(b));
    else if (at->bar)
        grid_field(g, row, LEFT + at->name, at->bar, GRID_WARN, by == why ? "" : why);
    if (at->at[COL_BY])
        grid_field(g, row, at->at[COL_BY], g->cols - at->at[COL_BY],
                   by == why ? GRID_WARN : GRID_PLAIN, by);
}

static void draw_board(const struct top *t, const struct top_board *b, struct grid *g,
                       unsigned row)
{
    const struct boards_table at = boards_table(t, g->cols);
    bool walking = !isnan(b->target_w) && !isnan(b->cap_w) && b->target_w < b->cap_w - 1;

    top_right(g, row, 3, GRID_PLAIN, top_number(b->index, "").t);
    grid_field(g, row, LEFT, at.name - 1, GRID_PLAIN, b->name);
    cell(g, row, at.at[COL_POWER], GRID_BOLD, top_number(b->power_w, ""));
    cell(g, row, at.at[COL_CAP], walking ? GRID_NEAR : GRID_PLAIN,
         top_number(b->cap_w, ""));
    cell(g, row, at.at[COL_TEMP], b->temp_c >= 85 ? GRID_FULL : GRID_PLAIN,
         top_number(b->temp_c, ""));
    cell(g, row, at.at[COL_UTIL], GRID_PLAIN, top_number(b->util * 100, "%"));
    cell(g, row, at.at[COL_CLOCK], GRID_PLAIN, top_number(b->clock_mhz, ""));
    cell(g, row, at.at[COL_MEMORY], GRID_PLAIN,
         top_number(b->memory_bytes / (1 << 20), " MiB"));
    cell(g, row, at.at[COL_TODAY], GRID_PLAIN, energy(b->today_j));
    draw_board_words(&at, b, g, row);
    if (b == &t->board[t->picked])
        grid_look_at(g, row, 0, LEFT + at.name - 1, GRID_PICKED);
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

    top_right(g, row, 3, GRID_PLAIN, top_number(b->index, "").t);
    grid_field(g, row, 4, 10, look, b->use);
    top_right(g, row, 24, look, top_span(b->use_s).t);
    top_right(g, row, 31, GRID_BOLD, top_number(b->power_w, "").t);
    top_right(g, row, 42, GRID_PLAIN, top_number(b->memory_bytes / (1 << 20), " MiB").t);
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
    top_right(g, row, 24, GRID_HEAD, "FOR");
    top_right(g, row, 31, GRID_HEAD, "W");
    top_right(g, row, 42, GRID_HEAD, "MEMORY");
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
    top_right(g, row + 1 + shown, 31, GRID_BOLD, top_number(rest_w, "").t);
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
static bool job_has_energy(unsigned cols)
{
    return cols >= 76;
}

/* Beyond 80 columns: time first, then phase, then longer names. */
static bool job_has_time(unsigned cols)
{
    return cols >= 80 + TIME;
}

static bool job_has_phase(unsigned cols)
{
    return cols >= 80 + TIME + PHASE;
}

/* Columns of a job's texts beyond those that they have at 80 columns. */
struct job_widths {
    unsigned user, name, gpus, state;
};

/* Gives the text's column what it needs of *rest. */
static void widen(unsigned *width, const char *text, unsigned has, unsigned *rest)
{
    unsigned needs = more(text, has + *width, *rest);

    *width += needs;
    *rest -= needs;
}

static struct job_widths job_widths(const struct top *t, unsigned cols)
{
    unsigned rest = job_has_phase(cols)  ? cols - 80 - TIME - PHASE
                    : job_has_time(cols) ? cols - 80 - TIME
                                         : 0;
    struct job_widths w = {0};

    for (size_t i = 0; i < t->n_jobs; i++)
        widen(&w.state, t->job[i].state, STATE, &rest);
    for (size_t i = 0; i < t->n_jobs; i++)
        widen(&w.name, t->job[i].name, JOB_NAME, &rest);
    for (size_t i = 0; i < t->n_jobs; i++)
        widen(&w.user, t->job[i].user, USER, &rest);
    for (size_t i = 0; i < t->n_jobs; i++)
        widen(&w.gpus, t->job[i].gpus, GPUS, &rest);
    return w;
}

/* The part of its energy that a job saved; "~0" if it is not distinguishable from zero.
 */
static struct top_word saved(const struct top_job *j)
{
    struct top_word s = {"-"};

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

/* The start of the columns whose place depends on the widths. */
static unsigned job_name_at(struct job_widths w)
{
    return 6 + USER + w.user + 1;
}

static unsigned job_gpus_at(struct job_widths w)
{
    return job_name_at(w) + JOB_NAME + w.name + 1;
}

static unsigned job_state_at(struct job_widths w)
{
    return job_gpus_at(w) + GPUS + w.gpus + 1;
}

/* The rows below a job's for the whole of a state that its column cuts: jobs on the
 * picked board have them.
 */
static unsigned state_rows(const struct top *t, const struct top_job *j,
                           struct job_widths wide, unsigned cols)
{
    const struct top_board *b = &t->board[t->picked];
    bool picked = t->picked < t->n_boards && b->index < 64 && (j->boards >> b->index & 1);
    unsigned at = job_name_at(wide);

    return picked && cols > at && text_columns(j->state) > STATE + wide.state
               ? top_wrap_rows(cols - at, j->state)
               : 0;
}

static void draw_job(const struct top *t, const struct top_job *j, struct job_widths wide,
                     struct grid *g, unsigned row)
{
    char text[32];
    unsigned at = job_state_at(wide), end = at + STATE + wide.state;

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)j->id);
    top_right(g, row, 5, GRID_PLAIN, text);
    grid_field(g, row, 6, USER + wide.user, GRID_PLAIN, j->user);
    grid_field(g, row, job_name_at(wide), JOB_NAME + wide.name, GRID_PLAIN, j->name);
    grid_field(g, row, job_gpus_at(wide), GPUS + wide.gpus, GRID_PLAIN, j->gpus);
    grid_field(g, row, at, STATE + wide.state, j->goal[0] ? GRID_GOOD : GRID_DIM,
               j->state);
    top_right(g, row, end + 5, GRID_PLAIN, top_number(cap_of(t, j), "").t);
    if (job_has_energy(g->cols)) {
        top_right(g, row, end + 16, GRID_PLAIN, saved(j).t);
        top_right(g, row, end + 25, GRID_PLAIN, figure_joules(j->energy_j).t);
    }
    if (job_has_phase(g->cols))
        grid_field(g, row, end + 27, PHASE - 2, GRID_PLAIN, j->phase);
    if (job_has_time(g->cols))
        top_right(g, row, end + 25 + (job_has_phase(g->cols) ? PHASE : 0) + TIME,
                  GRID_PLAIN, top_span(j->time_s).t);
}

static void draw_jobs_head(const struct top *t, struct job_widths wide, struct grid *g,
                           unsigned row)
{
    unsigned end = job_state_at(wide) + STATE + wide.state;

    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 2, GRID_HEAD, "JOB USER");
    (void)grid_text(g, row, job_name_at(wide), GRID_HEAD, "NAME");
    (void)grid_text(g, row, job_gpus_at(wide), GRID_HEAD, "GPUS");
    (void)grid_text(g, row, job_state_at(wide), GRID_HEAD, "STATE");
    top_right(g, row, end + 5, GRID_HEAD, "CAP");
    if (job_has_energy(g->cols)) {
        top_right(g, row, end + 16, GRID_HEAD,
                  t->sort == TOP_SORT_SAVED ? "*SAVED" : "SAVED");
        top_right(g, row, end + 25, GRID_HEAD,
                  t->sort == TOP_SORT_ENERGY ? "*ENERGY" : "ENERGY");
    }
    if (job_has_phase(g->cols))
        (void)grid_text(g, row, end + 27, GRID_HEAD, "PHASE");
    if (job_has_time(g->cols))
        top_right(g, row, end + 25 + (job_has_phase(g->cols) ? PHASE : 0) + TIME,
                  GRID_HEAD, t->sort == TOP_SORT_TIME ? "*TIME" : "TIME");
}

static void draw_jobs(const struct top *t, struct grid *g, unsigned row, unsigned end)
{
    size_t at[TOP_JOBS] = {0};
    const struct job_widths wide = job_widths(t, g->cols);
    size_t n = order(t, at);

    draw_jobs_head(t, wide, g, row);
    if (n == 0 && row + 1 < end)
        (void)grid_text(g, row + 1, 2, GRID_DIM,
                        t->n_jobs ? "no job matches the filter" : "no job on this node");
    for (size_t i = t->first_job; i < n && ++row < end; i++) {
        const struct top_job *j = &t->job[at[i]];
        draw_job(t, j, wide, g, row);
        if (state_rows(t, j, wide, g->cols))
            row += top_wrap(g, row + 1, end, job_name_at(wide), GRID_PLAIN, j->state);
    }
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
    } keys[] = {{"F1", "Help "}, {"F2", "Claims "}, {"F3", "Waste "}, {"F4", "Filter "},
                {"F6", "Sort "}, {"F9", "Freeze "}, {"F10", "Quit "}};
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
        ("saving is not distinguishable from zero.  ±: " FIGURE_HALF "."),
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

/* Rows of the jobs with their head. */
static unsigned jobs_rows(const struct top *t, unsigned cols)
{
    const struct job_widths wide = job_widths(t, cols);
    unsigned n = 0;

    for (size_t i = 0; i < t->n_jobs; i++)
        if (top_shows_job(t, &t->job[i]))
            n += 1 + state_rows(t, &t->job[i], wide, cols);
    return 1 + (n ? n : 1);
}

struct top_layout top_layout_now(const struct top *t, unsigned rows, unsigned cols)
{
    unsigned lists[TOP_LISTS], shown = (unsigned)top_boards_shown(t).n;
    struct top_needs need = {.boards = shown ? shown : t->n_boards > 0,
                             .list = jobs_rows(t, cols),
                             .cause = cause_rows(t, cols),
                             .details = top_details_rows(t, cols),
                             .events = top_events_rows(t, cols)};

    if (t->claims || t->waste)
        need.jobs = need.list;
    if (t->claims) {
        need.list = top_claims_rows(t, cols);
        need.details = need.cause = 0;
    } else if (t->waste) {
        need.list = waste_rows(t, lists);
    }
    return top_layout(rows, cols, &need);
}

/* The parts below the boards. */
static void draw_below(const struct top *t, const struct top_layout *l,
                       const struct top_shown *s, struct grid *g, unsigned row)
{
    top_draw_graphs(t, s, l, g, row);
    row += l->graphs;
    if (t->claims)
        top_draw_claims(t, g, row, row + l->list);
    else if (t->waste)
        draw_waste(t, g, row, row + l->list);
    else
        draw_jobs(t, g, row, row + l->list);
    row += l->list;
    if (l->jobs)
        draw_jobs(t, g, row, row + l->jobs);
    row += l->jobs;
    top_draw_details(t, g, row, row + l->details);
    row += l->details;
    if (l->events)
        top_draw_events(t, g, row, l->events);
}

void top_draw(const struct top *t, struct grid *g)
{
    if (t->help) {
        draw_help(g);
        return;
    }
    const struct boards_table table = boards_table(t, g->cols);
    const struct top_shown s = top_boards_shown(t);
    const struct top_layout l = top_layout_now(t, g->rows, g->cols);
    size_t first = s.picked >= l.boards ? s.picked - l.boards + 1 : 0;
    draw_title(t, g);
    draw_boards_head(&table, g, 1);
    for (unsigned i = 0; i < l.boards && first + i < s.n; i++)
        draw_board(t, &t->board[s.at[first + i]], g, 2 + i);
    if (s.n == 0 && t->n_boards > 0 && g->rows > 3)
        (void)grid_text(g, 2, 2, GRID_DIM, "no board matches the filter");
    if (l.cause)
        top_draw_cause(&t->board[t->picked], g, 2 + l.boards, l.cause);
    if (l.graphs)
        draw_below(t, &l, &s, g, 2 + l.boards + l.cause);
    for (unsigned row = 1; t->trouble[0] && row < g->rows; row++)
        grid_look_at(g, row, 0, g->cols, GRID_DIM);
    if (g->rows > 3)
        draw_keys(t, g);
}
