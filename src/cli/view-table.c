#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/figures.h"
#include "cli/view.h"

struct row {
    const struct view *v;
    struct view_unit energy, time;
    bool scatter; /* some points have several runs */
};

/* Half of the 95 % interval of a mean, in percent, se its relative standard error; blank
 * for one run.
 */
static void put_half(const struct row *row, const struct sweep_point *p, double se,
                     FILE *to)
{
    double half = 100 * sweep_half(se, p->runs);

    if (row->scatter && p->runs > 1)
        (void)fprintf(to, " %5.*f", half < 99.5 ? 2 : 0, half);
    else if (row->scatter)
        (void)fprintf(to, "%6s", "");
}

static void put_figures(const struct row *row, const struct sweep_point *p, FILE *to)
{
    const struct sweep_point *ref = &row->v->sweep->point[row->v->sweep->ref];
    double e = p->energy_j * row->energy.scale, t = p->time_s * row->time.scale;
    bool is_ref = p == ref;
    char change[VIEW_TEXT];

    (void)fprintf(to, " %6.10g %8.1f", p->cap_mw / 1000.0, p->power_w);
    (void)fprintf(to, "  %9.*f", view_digits(e), e);
    put_half(row, p, p->energy_se_j / p->energy_j, to);
    (void)fprintf(to, " %8s",
                  is_ref ? ""
                         : view_change(p->energy_j / ref->energy_j - 1, false, change));
    (void)fprintf(to, " %8.*f", view_digits(t), t);
    put_half(row, p, p->time_se_s / p->time_s, to);
    if (!is_ref)
        (void)fprintf(to, " %8s",
                      view_change(p->time_s / ref->time_s - 1, false, change));
    (void)fputc('\n', to);
}

static void put_header(const struct row *row, FILE *to)
{
    char energy[VIEW_TEXT], time[VIEW_TEXT];

    (void)snprintf(energy, sizeof energy, "energy, %s", row->energy.name);
    (void)snprintf(time, sizeof time, "time, %s", row->time.name);
    (void)fprintf(to, "%-13s %6s %8s %10s", "", "cap, W", "mean, W", energy);
    if (row->scatter)
        (void)fprintf(to, " %5s", "+- %");
    (void)fprintf(to, " %8s %8s", "change", time);
    if (row->scatter)
        (void)fprintf(to, " %5s", "+- %");
    (void)fprintf(to, " %8s\n", "change");
}

static void put_title(const struct view *v, FILE *to)
{
    char extent[160];

    view_extent(v, extent, sizeof extent);
    (void)fprintf(to, "%s%s on %s%s%s%s", v->simulated ? "SIMULATED: " : "", v->label,
                  v->board, v->board_note[0] ? " (" : "", v->board_note,
                  v->board_note[0] ? ")" : "");
    if (v->boards > 1)
        (void)fprintf(to, ", sum of %zu boards", v->boards);
    (void)fprintf(to, ", %s\n%s\n\n", v->work_unit, extent);
}

/* "1 % more time   295 W   -3.2 % energy   +0.9 % time" */
static void put_buys(const struct view *v, FILE *to)
{
    const struct sweep *s = v->sweep;
    const struct sweep_point *ref = &s->point[s->ref];
    char watts[VIEW_TEXT], energy[VIEW_TEXT], time[VIEW_TEXT];

    (void)fputs("\nWhat more time buys:\n", to);
    for (size_t i = 0; i < SWEEP_BUYS; i++) {
        const struct sweep_point *p = &s->point[s->buy[i].point];
        (void)fprintf(to, "  at most %2.0f %%   %7s   energy %8s   time %8s\n",
                      100 * s->buy[i].time, view_watts(p->cap_mw, watts),
                      view_change(p->energy_j / ref->energy_j - 1, false, energy),
                      view_change(p->time_s / ref->time_s - 1, false, time));
    }
}

static void put_ends(const struct view *v, bool scatter, FILE *to)
{
    const struct sweep *s = v->sweep;
    char drift[300];
    char name[VIEW_TEXT];
    size_t front = 0;

    put_buys(v, to);
    for (size_t i = 0; i < s->n; i++)
        front += s->point[i].pareto;
    (void)fprintf(to, "\nPareto front: %zu of %zu caps.", front, s->n);
    if (scatter)
        (void)fputs("\n+-: " FIGURE_HALF " of a mean.", to);
    (void)fputc('\n', to);
    view_drift(v, false, drift, sizeof drift);
    if (drift[0])
        text_wrap(to, 0, 0, drift);
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        size_t at = s->optimum[g].point;
        if (at == 0 && at != s->ref && s->point[0].cap_mw > v->least_mw)
            (void)fprintf(to,
                          "%s lies at the lowest cap of the range: lower ones may be "
                          "better.\n",
                          view_goal_title(v, g, name));
    }
}

int view_table(const struct view *v, FILE *to, uw_error *err)
{
    const struct sweep *s = v->sweep;
    struct row row = {v, view_energy_unit(v), view_time_unit(v), false};
    char name[VIEW_TEXT];

    for (size_t i = 0; i < s->n; i++)
        row.scatter |= s->point[i].runs > 1 && s->point[i].time_sd_s > 0;
    put_title(v, to);
    put_header(&row, to);
    (void)fprintf(to, "%-13s", "default");
    put_figures(&row, &s->point[s->ref], to);
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        (void)fprintf(to, "%-13s", view_goal_title(v, g, name));
        put_figures(&row, &s->point[s->optimum[g].point], to);
    }
    put_ends(v, row.scatter, to);
    return ferror(to) ? fail(err, -EIO, "cannot write the table") : 0;
}
