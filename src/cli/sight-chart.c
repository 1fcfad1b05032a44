#include "cli/sight-chart.h"

#include <langinfo.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    LEFT = 9, /* numbers of the axis, and a blank */
    BARS = SIGHT_ROWS - 3,
    LABEL = 6, /* columns of a time, with a blank */
    HOUR_S = 3600,
    DAY_S = 86400,
    WEEK_S = 6 * DAY_S, /* a weekday's name is unique only within this time */
};

/* ---- times ---- */

static bool local(int64_t utc_s, struct tm *ret)
{
    time_t t = (time_t)utc_s;

    return localtime_r(&t, ret) != NULL;
}

const char *sight_time(int64_t utc_s, int64_t now_utc_s, char ret[SIGHT_TIME])
{
    bool near = utc_s > now_utc_s - WEEK_S && utc_s < now_utc_s + WEEK_S;
    struct tm tm;

    if (!local(utc_s, &tm) ||
        strftime(ret, SIGHT_TIME, near ? "%a %H:%M %Z" : "%Y-%m-%d %H:%M %Z", &tm) == 0)
        (void)snprintf(ret, SIGHT_TIME, "-");
    return ret;
}

const char *sight_lasts(int64_t s, char ret[24])
{
    if (s < 600)
        (void)snprintf(ret, 24, "%jd s", (intmax_t)s);
    else if (s < 7200)
        (void)snprintf(ret, 24, "%.0f min", (double)s / 60);
    else if (s < 259200)
        (void)snprintf(ret, 24, "%.1f h", (double)s / HOUR_S);
    else
        (void)snprintf(ret, 24, "%.1f d", (double)s / DAY_S);
    return ret;
}

/* ---- the chart ---- */

/* The mean of the known values in a column's time; NaN: none. */
static double mean_of(const struct sight_chart *c, int64_t from, int64_t to)
{
    double sum = 0, s = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct stretch_point *p = &c->point[i];
        int64_t begin = p->from_utc_s > from ? p->from_utc_s : from;
        int64_t end = p->to_utc_s < to ? p->to_utc_s : to;
        if (end <= begin)
            continue;
        sum += p->v * (double)(end - begin);
        s += (double)(end - begin);
    }
    return s > 0 ? sum / s : (double)NAN;
}

static int64_t time_at(const struct sight_chart *c, unsigned col, unsigned width)
{
    return c->from_utc_s + (c->to_utc_s - c->from_utc_s) * col / width;
}

static void columns_of(const struct sight_chart *c, unsigned width, double *ret)
{
    for (unsigned i = 0; i < width; i++)
        ret[i] = mean_of(c, time_at(c, i, width), time_at(c, i + 1, width));
}

/* From 0, or the lowest value below it, to the highest one. */
static void range_of(const double *v, size_t n, double *ret_lo, double *ret_hi)
{
    double lo = 0, hi = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        lo = v[i] < lo ? v[i] : lo;
        hi = v[i] > hi ? v[i] : hi;
    }
    *ret_lo = lo;
    *ret_hi = hi > lo ? hi : lo + 1;
}

static bool is_marked(const struct sight_chart *c, unsigned width, unsigned col)
{
    int64_t from = time_at(c, col, width), to = time_at(c, col + 1, width);

    return c->mark_s > 0 && to > c->mark_utc_s && from < c->mark_utc_s + c->mark_s;
}

/* The fewest decimal places with which v has the same value as with `most` of them. */
static int digits_of(double v, int most)
{
    for (int i = 0; i < most; i++) {
        double at = v * pow(10, i);
        if (fabs(at - nearbyint(at)) * pow(10, most - i) < 0.5)
            return i;
    }
    return most;
}

/* Four digits of the largest end, less where all of them are zeros. */
static void draw_scale(struct grid *g, double lo, double hi)
{
    const double v[] = {hi, hi - (hi - lo) / 2, lo}, far = fmax(fabs(lo), fabs(hi));
    const unsigned row[] = {0, BARS / 2, BARS - 1};
    bool plain = far >= 1e-4 && far < 1e7;
    int most = plain ? (int)fmax(0, 3 - floor(log10(far))) : 0, digits = 0;

    for (int i = 0; i < 3; i++)
        digits = (int)fmax(digits, digits_of(v[i], most));
    for (int i = 0; i < 3; i++) {
        bool zero = fabs(v[i]) < far * 5e-5;
        if (plain)
            grid_text(g, row[i], 0, GRID_DIM, "%8.*f", digits, zero ? 0 : v[i]);
        else
            grid_text(g, row[i], 0, GRID_DIM, "%8.2g", zero ? 0 : v[i]);
    }
}

/* Whole hours of the local day between two times of the axis. */
static int64_t step_of(int64_t span_s)
{
    static const int64_t hours[] = {1, 2, 3, 6, 12};
    size_t i = 0;

    while (i < sizeof hours / sizeof *hours && span_s / (hours[i] * HOUR_S) > 8)
        i++;
    return i < sizeof hours / sizeof *hours ? hours[i] * HOUR_S : DAY_S;
}

static void draw_times(const struct sight_chart *c, struct grid *g)
{
    int64_t span = c->to_utc_s - c->from_utc_s, step = step_of(span);
    unsigned width = g->cols - LEFT, free_from = 0;
    struct tm tm;

    for (unsigned col = 0; col < width; col++)
        grid_text(g, BARS, LEFT + col, GRID_DIM, "%s",
                  is_marked(c, width, col) ? "=" : "-");
    for (int64_t t = c->from_utc_s; t < c->to_utc_s; t++) {
        if (!local(t, &tm))
            return;
        int64_t of_day = tm.tm_hour * HOUR_S + tm.tm_min * 60 + tm.tm_sec;
        if (of_day % step) { /* the clock changes at whole hours only */
            int64_t hour = (of_day / HOUR_S + 1) * HOUR_S - of_day;
            t += hour - 1;
            continue;
        }
        unsigned col = LEFT + (unsigned)((t - c->from_utc_s) * width / span);
        char text[16];
        (void)strftime(text, sizeof text, of_day ? "%H:%M" : "%a", &tm);
        grid_text(g, BARS, col, GRID_DIM, "+");
        if (col >= free_from && col + LABEL <= g->cols + 1) {
            grid_text(g, BARS + 1, col, GRID_DIM, "%s", text);
            free_from = col + LABEL;
        }
    }
}

void sight_chart_draw(const struct sight_chart *c, struct grid *g)
{
    double v[SIGHT_COLS], lo, hi;

    if (c->to_utc_s <= c->from_utc_s || g->cols <= LEFT || g->cols > SIGHT_COLS)
        return;
    unsigned width = g->cols - LEFT;
    columns_of(c, width, v);
    range_of(v, width, &lo, &hi);
    for (unsigned i = 0; i < width; i++)
        if (isfinite(v[i]))
            grid_column(g, BARS - 1, LEFT + i, BARS, (v[i] - lo) / (hi - lo),
                        is_marked(c, width, i) ? GRID_GOOD : GRID_PLAIN);
    draw_scale(g, lo, hi);
    draw_times(c, g);
}

void sight_chart_spark(const struct sight_chart *c, struct grid *g, unsigned row,
                       unsigned col, unsigned n)
{
    double v[SIGHT_COLS], lo, hi;

    if (n > SIGHT_COLS || c->to_utc_s <= c->from_utc_s)
        return;
    columns_of(c, n, v);
    range_of(v, n, &lo, &hi);
    for (unsigned i = 0; i < n; i++)
        v[i] -= lo;
    grid_spark(g, row, col, v, n, hi - lo, GRID_PLAIN);
}

/* ---- output ---- */

bool sight_ascii(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

static const char *colour_of(uint8_t look)
{
    return look == GRID_GOOD ? "\033[32m" : look == GRID_DIM ? "\033[2m" : "";
}

static void print_row(const struct grid *g, unsigned row, bool colour)
{
    const struct grid_cell *cell = &g->cell[(size_t)row * g->cols];
    unsigned end = g->cols;
    uint8_t look = GRID_PLAIN;
    char utf8[5];

    while (end > 0 && cell[end - 1].code == ' ')
        end--;
    for (unsigned col = 0; col < end; col++) {
        if (colour && cell[col].look != look)
            printf("\033[0m%s", colour_of(cell[col].look));
        look = cell[col].look;
        (void)grid_utf8(cell[col].code, utf8);
        printf("%s", utf8);
    }
    printf("%s\n", colour && look != GRID_PLAIN ? "\033[0m" : "");
}

void sight_print(const struct grid *g, bool colour)
{
    unsigned rows = g->rows;

    for (bool blank = true; rows > 0 && blank; rows -= blank)
        for (unsigned col = 0; col < g->cols && blank; col++)
            blank = g->cell[(size_t)(rows - 1) * g->cols + col].code == ' ';
    for (unsigned row = 0; row < rows; row++)
        print_row(g, row, colour);
}
