/* The waste of today, by user and by project: read from the report of waste
 * (docs/waste.md), and drawn.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/figures.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/top.h"

/* The end of each column. */
enum { NAME = 26, ENERGY = 38, HOURS = 48, MONEY = 66, UNTIL = 80 };

/* ---- the model ---- */

static double plus(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

static void add(struct top_waster *sum, const struct top_waster *w)
{
    sum->energy_j = plus(sum->energy_j, w->energy_j);
    sum->time_s = plus(sum->time_s, w->time_s);
    sum->money = plus(sum->money, w->money);
    sum->priced_j = plus(sum->priced_j, w->priced_j);
}

static struct top_waster nothing(void)
{
    const double unknown = (double)NAN;

    return (struct top_waster){"", unknown, unknown, unknown, unknown};
}

/* Inserts it by its energy; the least of too many is added to the rest. */
static void keep(struct top_wasted *to, const struct top_waster *w)
{
    const struct top_waster *least = w;
    size_t k = to->n;

    while (k > 0 && (to->of[k - 1].energy_j < w->energy_j ||
                     (isnan(to->of[k - 1].energy_j) && !isnan(w->energy_j))))
        k--;
    if (to->n == TOP_WASTERS) {
        if (k < TOP_WASTERS)
            least = &to->of[TOP_WASTERS - 1];
        add(&to->rest, least);
        to->n_rest++;
        if (least == w)
            return;
    } else {
        to->n++;
    }
    memmove(&to->of[k + 1], &to->of[k], (to->n - 1 - k) * sizeof to->of[0]);
    to->of[k] = *w;
}

static void take_wasted(struct top_wasted *to, const struct json_value *rows,
                        const char *key)
{
    to->n = to->n_rest = 0;
    to->rest = nothing();
    for (size_t i = 0; i < json_count(rows); i++) {
        const struct json_value *row = json_at(rows, i);
        struct top_waster w = {.energy_j = take_number(row, "energy_j"),
                               .time_s = take_number(row, "time_s"),
                               .money = take_number(row, "money")};
        w.priced_j = take_number(row, "money_covered") * w.energy_j;
        take_copy(row, key, w.name, sizeof w.name);
        if (!w.name[0] && strcmp(key, "user") == 0)
            (void)snprintf(w.name, sizeof w.name, "uid %llu",
                           (unsigned long long)take_u64(row, "uid"));
        else if (!w.name[0])
            (void)snprintf(w.name, sizeof w.name, "(none)");
        keep(to, &w);
    }
}

int top_take_waste(struct top *t, const struct json_value *report, uw_error *err)
{
    const char *to = take_text(report, "to");

    if (strlen(to) < 16)
        return fail(err, -EINVAL, "the answer is not a report of waste: it has no 'to'");
    int r = waste_check(report, err);
    if (r < 0)
        return r;
    take_wasted(&t->users, json_get(report, "users"), "user");
    take_wasted(&t->projects, json_get(report, "projects"), "project");
    take_copy(report, "money_currency", t->currency, sizeof t->currency);
    (void)snprintf(t->wasted_to, sizeof t->wasted_to, "%.5s", to + 11);
    return 0;
}

/* ---- rows of the screen ---- */

unsigned top_wasted_rows(const struct top *t, const struct top_wasted *w)
{
    if (!t->wasted_to[0] || t->wasted_trouble[0])
        return w == &t->users ? 2 : 0;
    return 1 + (w->n ? (unsigned)w->n + (w->n_rest > 0) : 1);
}

void top_share_rows(const unsigned need[TOP_LISTS], unsigned room,
                    unsigned got[TOP_LISTS])
{
    for (size_t i = 0; i < TOP_LISTS; i++) {
        got[i] = room >= 2 && need[i] ? 2 : 0;
        room -= got[i];
    }
    for (bool some = true; some && room > 0;) {
        some = false;
        for (size_t i = 0; i < TOP_LISTS && room > 0; i++) {
            if (!got[i] || got[i] >= need[i])
                continue;
            got[i]++;
            room--;
            some = true;
        }
    }
}

/* ---- drawing ---- */

/* Columns are shown whole or not at all. */
static void ends(struct grid *g, unsigned row, unsigned end, enum grid_look look,
                 const char *text)
{
    unsigned len = text_columns(text);

    if (end <= g->cols && len < end)
        (void)grid_text(g, row, end - len, look, "%s", text);
}

static struct top_waster sum_from(const struct top_wasted *w, size_t first)
{
    struct top_waster sum = nothing();

    for (size_t i = first; i < w->n; i++)
        add(&sum, &w->of[i]);
    add(&sum, &w->rest);
    return sum;
}

/* The currency, and the part of the energy with a known price; "": none. */
static void put_currency(const struct top *t, const struct top_waster *all, char *ret,
                         size_t size)
{
    double part = all->priced_j / all->energy_j;

    if (isnan(all->money) || !t->currency[0])
        ret[0] = '\0';
    else if (part < 1)
        (void)snprintf(ret, size, "%s (%.0f %%)", t->currency, floor(100 * part + 1e-9));
    else
        (void)snprintf(ret, size, "%s", t->currency);
}

static void draw_waster(const struct top_waster *w, const char *name,
                        struct report_unit unit, bool priced, struct grid *g,
                        unsigned row)
{
    char text[REPORT_TEXT];

    grid_field(g, row, 1, NAME - 1, GRID_PLAIN, name);
    ends(g, row, ENERGY, GRID_BOLD, report_energy(w->energy_j, unit, text));
    (void)snprintf(text, sizeof text, isnan(w->time_s) ? "-" : "%.2f", w->time_s / 3600);
    ends(g, row, HOURS, GRID_PLAIN, text);
    if (priced)
        ends(g, row, MONEY, GRID_PLAIN,
             isnan(w->money) ? "-"
                             : report_amount(w->money, report_digits(w->money), text));
}

static void draw_rest(const struct top_wasted *w, size_t first, struct report_unit unit,
                      bool priced, struct grid *g, unsigned row)
{
    const struct top_waster rest = sum_from(w, first);
    char name[40];

    (void)snprintf(name, sizeof name, first ? "%zu more" : "all %zu",
                   w->n - first + w->n_rest);
    draw_waster(&rest, name, unit, priced, g, row);
}

void top_draw_wasted(const struct top *t, const struct top_wasted *w, const char *head,
                     struct grid *g, unsigned row, unsigned rows)
{
    const struct top_waster all = sum_from(w, 0);
    struct report_unit unit = report_unit_of(all.energy_j);
    char currency[40], until[16];
    size_t lines = rows - 1, shown = w->n + (w->n_rest > 0) > lines ? lines - 1 : w->n;

    grid_fill(g, row, 0, g->cols, GRID_HEAD);
    (void)grid_text(g, row, 0, GRID_HEAD, "%s", head);
    if (t->wasted_trouble[0] || !t->wasted_to[0]) {
        (void)grid_text(g, row + 1, 2, t->wasted_trouble[0] ? GRID_WARN : GRID_DIM, "%s",
                        t->wasted_trouble[0] ? t->wasted_trouble : "no answer yet");
        return;
    }
    put_currency(t, &all, currency, sizeof currency);
    (void)snprintf(until, sizeof until, "TO %s UTC", t->wasted_to);
    ends(g, row, ENERGY, GRID_HEAD, unit.name);
    ends(g, row, HOURS, GRID_HEAD, "HOURS");
    ends(g, row, MONEY, GRID_HEAD, currency);
    ends(g, row, UNTIL, GRID_HEAD, until);
    if (w->n == 0)
        (void)grid_text(g, row + 1, 2, GRID_DIM, "none: no job is known to waste energy");
    for (size_t i = 0; i < shown; i++)
        draw_waster(&w->of[i], w->of[i].name, unit, currency[0], g,
                    row + 1 + (unsigned)i);
    if (shown < w->n || w->n_rest > 0)
        draw_rest(w, shown, unit, currency[0], g, row + 1 + (unsigned)shown);
}
