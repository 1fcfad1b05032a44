#include "cli/job-report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "base/within.h"
#include "cli/figures.h"
#include "io/file.h"
#include "io/json.h"
#include "tuner/tuner-json.h"

#define J_PER_KWH 3.6e6

/* A label of 9 columns, and text that is wrapped behind it. */
static void put_line(FILE *to, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void put_line(FILE *to, const char *label, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(to, "%-9s", label);
    text_wrap(to, 9, 9, text);
}

/* Explains each code, such as "stuck". */
static void print_whys(uint32_t whys, FILE *to)
{
    char name[32];

    for (const char *words; (words = meter_why_words(whys)); whys &= whys - 1)
        put_line(to, "", "%s: %s", meter_why_text(whys & ~(whys - 1), name, sizeof name),
                 words);
}

enum {
    CELL = 64,
    NAME_MOST = 29,
    CELL_COLUMNS = 17,
    POWER_COLUMNS = 8,
    ENERGY_COLUMN = 15,
    VALUE_COLUMN = 17
};

/* "1.500 ± 0.030 kJ", at the right of its columns. */
static const char *energy_cell(const struct meter_result *e, char ret[CELL])
{
    struct figure f = figure_joules_within(e->energy_j, e->half_j);
    unsigned wide = text_columns(f.t);

    (void)snprintf(ret, CELL, "%*s%s", wide < CELL_COLUMNS ? CELL_COLUMNS - (int)wide : 0,
                   "", f.t);
    return ret;
}

/* The board's name in *ret and its columns, NAME_MOST at most; the title says whether
 * boards are simulated.
 */
static int board_name(const struct job_result *r, const struct job_board *b,
                      const char **ret)
{
    *ret = b->away ? "no longer known to the daemon" : b->info->name;
    size_t length =
        r->simulated ? board_name_length(*ret, GPU_NAME_SIMULATED) : strlen(*ret);

    return length < NAME_MOST ? (int)length : NAME_MOST;
}

/* "  GPU 0  Tesla V100-SXM2-16GB  5.609 ± 0.030 kJ   244.4 W  (integrated; gap)": reasons
 * that do not fit are on the next line.
 */
static void print_board(const struct job_result *r, const struct job_board *b, int wide,
                        FILE *to)
{
    char index[16] = "-", cell[CELL], why[160], method[200];
    const char *name = NULL;
    int length = board_name(r, b, &name);

    if (!b->away)
        (void)snprintf(index, sizeof index, "%u", b->info->index);
    (void)snprintf(method, sizeof method, "(%s%s%s)",
                   names_word(NAMES_METER_METHOD, b->energy.method),
                   b->energy.why ? "; " : "",
                   meter_why_text(b->energy.why, why, sizeof why));
    int at = fprintf(to, "  GPU %-2s %-*.*s ", index, wide, length, name);
    (void)fprintf(to, "%s  %*s  ", energy_cell(&b->energy, cell), POWER_COLUMNS,
                  figure_power(b->energy.power_w).t);
    at += CELL_COLUMNS + 2 + POWER_COLUMNS + 2;
    text_wrap(to, (unsigned)at, 9, method);
}

static void print_boards(const struct job_result *r, FILE *to)
{
    uint32_t whys = 0;
    const char *name = NULL;
    int wide = 0;

    for (size_t i = 0; i < r->n; i++) {
        int length = r->board[i].used ? board_name(r, &r->board[i], &name) : 0;
        wide = length > wide ? length : wide;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct job_board *b = &r->board[i];
        if (!b->used || !r->measured)
            continue;
        print_board(r, b, wide, to);
        whys |= b->energy.why;
    }
    print_whys(whys, to);
}

/* Others' claims allowed no more than the cap of the reference. */
static bool is_below_original(const struct tuner_report *t)
{
    return t->reference_mw && t->reference_mw + MW_PER_W <= t->original_mw;
}

static void print_saved(const struct tuner_report *t, FILE *to)
{
    const struct savings_saved *s = &t->saved;
    const char *reference =
        is_below_original(t) ? "the highest cap allowed" : "the original cap";

    if (!s->known && t->lifted_mw) {
        put_line(
            to, "  saved",
            "unknown: other claims allowed %.0f W later, more than the %.0f W of the "
            "reference windows",
            w_of_mw(t->lifted_mw), w_of_mw(t->reference_mw));
        return;
    }
    if (!s->known) {
        bool compared =
            t->n_regimes > 0 && t->account[t->n_regimes - 1].reference.windows;
        put_line(to, "  saved", "unknown: no %s was measured",
                 compared ? "window at the held cap" : "reference window");
        return;
    }
    put_line(to, "  saved", "%s%s (%s) in %.0f training steps, time x %s",
             figure_told(s->energy_j, s->half_j) ? "" : "not distinguishable from zero: ",
             figure_joules_within(s->energy_j, s->half_j).t,
             figure_within(100 * s->fraction, 100 * s->half, "%").t, s->steps,
             figure_within(s->slowdown, s->slowdown_half, "").t);
    if (s->held_slowdown > 0)
        put_line(to, "  time", "whole job x %.3f, cap held x %.3f", s->slowdown,
                 s->held_slowdown);
    if (s->pairs > 0)
        put_line(to, "",
                 "compared with %u measurement%s of %s during the hold, %.0f s, which "
                 "cost %s",
                 s->pairs, s->pairs == 1 ? "" : "s", reference, s->visits_s,
                 figure_joules(s->visits_cost_j).t);
    else
        put_line(to, "", "compared with windows at %s at the start alone", reference);
    if (t->modelled)
        put_line(to, "  model",
                 "expects %.1f %% less energy and time x %.3f at the cap held",
                 100 * t->model_saving, t->model_slowdown);
}

/* The unit that replaced the steps of a job that reported none. */
static void print_progress(const struct job_run *j, const struct job_result *r, FILE *to)
{
    const struct tuner_report *t = r->tuner;

    bool known = t->by == TUNER_BY_PERIOD || t->by == TUNER_BY_LAUNCHES;

    if (known)
        (void)fprintf(to,
                      "  steps  CMD reported none%s: %s stands for a step (%.3g s, "
                      "confidence %.2f)\n",
                      r->silent || t->by == TUNER_BY_LAUNCHES ? "" : " at first",
                      t->by == TUNER_BY_PERIOD ? "one period of its power"
                                               : "a fixed number of its launches",
                      t->period_s, t->confidence);
    else if (!r->silent)
        return;
    else if (j->caps == JOB_CAPS_SEARCH)
        (void)fprintf(
            to,
            "  steps  CMD reported none (UNDERWATT_PROGRESS, see "
            "underwatt-run(1)), and no period of its power\n         was sure%s%s\n",
            t->unknown[0] ? ": " : "", t->unknown);
    else
        (void)fprintf(to, "  steps  CMD reported none (UNDERWATT_PROGRESS, see "
                          "underwatt-run(1)): what the cap\n         saves is unknown\n");
    if (!known && isfinite(t->busy))
        (void)fprintf(
            to,
            "  active %.0f %% of its boards' SM time and clock: it says that they "
            "worked, not how fast\n",
            100 * t->busy);
}

static void print_memory(const struct tuner_report *t, FILE *to)
{
    if (t->earlier_job && t->memory == SEARCH_MEMORY_DENIED)
        (void)fprintf(to,
                      "  memory measurements of job %" PRIu64 " did not fit: dropped\n",
                      t->earlier_job);
    else if (t->earlier_job)
        (void)fprintf(to, "  memory used job %" PRIu64 ", the last run of this one\n",
                      t->earlier_job);
}

static void print_held(const struct job_run *j, const struct tuner_report *t, FILE *to)
{
    /* A change of the job is seen in a hold, which it ends. */
    const char *not_in_force =
        t->changes ? "not in force at the end: the job had changed" : "never in force";

    if (t->holding && t->reached)
        put_line(to, "  cap", "%.0f W of %.0f W: %s", w_of_mw(t->held_mw),
                 w_of_mw(t->original_mw), t->why);
    else if (t->holding && t->lowest_mw)
        (void)fprintf(
            to, "  cap    %.0f W of %.0f W was not reached: %.0f W at the lowest\n",
            w_of_mw(t->held_mw), w_of_mw(t->original_mw), w_of_mw(t->lowest_mw));
    else if (t->holding)
        (void)fprintf(to, "  cap    %.0f W of %.0f W was never in force\n",
                      w_of_mw(t->held_mw), w_of_mw(t->original_mw));
    else if (j->caps == JOB_CAPS_SEARCH)
        (void)fprintf(to, "  cap    none was found before the job ended\n");
    else if (j->cap.mw)
        (void)fprintf(to, "  cap    %s was %s\n", figure_watts(w_of_mw(j->cap.mw)).t,
                      not_in_force);
    else
        (void)fprintf(to, "  cap    %g %% of the default limit was %s\n", j->cap.percent,
                      not_in_force);
    if (t->holding && t->lock_mhz)
        (void)fprintf(to, "  clock  locked to %" PRIu32 " MHz at last, %s\n", t->lock_mhz,
                      t->lock_mw > t->held_mw ? "in the cap's place" : "beside the cap");
}

static void print_capped(const struct job_capped *capped, FILE *to)
{
    for (size_t i = 0; i < capped->n; i++)
        (void)fprintf(to, "  policy %s: %.0f W at the lowest, for %.0f s\n",
                      capped->by[i].who, w_of_mw(capped->by[i].lowest_mw),
                      capped->by[i].time_s);
}

/* "255 W on GPU 0, 1": boards with the same watts together. */
static void print_preset(const struct job_run *j, const struct job_result *r, FILE *to)
{
    uint64_t done = 0;

    if (!j->preset)
        return;
    (void)fprintf(to, "  preset %s: %g %% of the default limit", j->preset,
                  j->cap.percent);
    for (size_t i = 0; i < r->n_preset && i < 64; i++) {
        if (done >> i & 1)
            continue;
        (void)fprintf(to, ", %g W on GPU", w_of_mw(r->preset[i].mw));
        for (size_t k = i; k < r->n_preset && k < 64; k++) {
            if (r->preset[k].mw != r->preset[i].mw)
                continue;
            (void)fprintf(to, "%s %u", k == i ? "" : ",", r->preset[k].index);
            done |= 1ull << k;
        }
    }
    (void)fputs("\n", to);
}

static void print_end(const struct job_result *r, FILE *to)
{
    const struct tuner_report *t = r->tuner;

    if (t->ended[0] && !t->ended_ns) /* the daemon does not report the time */
        (void)fprintf(to, "  caps ended before the job: %s\n", t->ended);
    else if (t->ended[0])
        (void)fprintf(to, "  caps ended after %.0f s: %s\n",
                      s_between(r->begin_ns, t->ended_ns), t->ended);
    if (t->restored && t->after[0])
        (void)fprintf(to, "  read   at the end: %s\n", t->after);
    if (!t->restored)
        (void)fprintf(to, "  NOT RESTORED: %s\n", t->restore);
}

/* The time of the job that is neither of its search nor of the cap that was held. */
static void print_away(const struct tuner_report *t, FILE *to)
{
    if (t->stopped_s >= 1)
        put_line(to, "  stop",
                 "CMD was stopped for %.0f s: that time is not in the savings",
                 t->stopped_s);
    if (t->waited_s >= 1)
        put_line(to, "  wait",
                 "%.0f s for boards that were held by others or did not answer: that "
                 "time is not in the savings",
                 t->waited_s);
    if (t->saved.back_s >= 1)
        put_line(to, "  back",
                 "%.0f s on the way to the held cap again after a stop, a pause or a "
                 "wait",
                 t->saved.back_s);
}

static int by_cap(const void *a, const void *b)
{
    const struct tuner_cap *x = a, *y = b;

    return (x->cap_mw < y->cap_mw) - (x->cap_mw > y->cap_mw);
}

/* A column of values with intervals in one unit, that of the least value. */
struct column {
    char head[32];
    unsigned wide;
    double factor; /* of the unit */
};

/* "EDP, kJ s" */
static struct column column_of(const char *name, unsigned wide, double least,
                               const char *per)
{
    struct column c = {.wide = wide};
    const char *unit = figure_joules_unit(least, &c.factor);

    (void)snprintf(c.head, sizeof c.head, "%s%s%s", name, unit, per);
    return c;
}

static struct column value_column(const struct goal *goal, double least)
{
    if (goal->kind == GOAL_EDP)
        return column_of("EDP, ", VALUE_COLUMN, least, " s");
    if (goal->kind == GOAL_COST)
        return column_of("cost, ", VALUE_COLUMN, least, "");
    return (struct column){"EDS", VALUE_COLUMN, 1};
}

static void put_value(const struct column *c, double v, double rse, FILE *to)
{
    struct figure f = figure_within(v / c->factor, WITHIN_95 * rse * v / c->factor, "");
    unsigned wide = text_columns(f.t);

    (void)fprintf(to, "  %*s%s", wide < c->wide ? (int)(c->wide - wide) : 0, "", f.t);
}

static const char *cap_mark(bool reference, bool held)
{
    if (reference)
        return held ? "  (ref, held)" : "  (reference)";
    return held ? "  (held)" : "";
}

bool job_report_is_reference(const struct tuner_report *t, uint32_t cap_mw)
{
    if (!t->reference_mw)
        return cap_mw >= t->original_mw;
    return cap_mw + MW_PER_W >= t->reference_mw && cap_mw <= t->reference_mw + MW_PER_W;
}

/* The decimals of a step's time that its interval leaves. */
static int step_places(const struct savings_mean *mean)
{
    double s = savings_mean_time(mean);

    return within(s, WITHIN_95 * savings_mean_time_rse(mean) * s).places;
}

/* The measured caps, the highest first. */
static void print_caps(const struct job_run *j, const struct tuner_report *t, FILE *to)
{
    struct tuner_cap cap[TUNER_CAPS_MAX];
    size_t n = t->n_caps < TUNER_CAPS_MAX ? t->n_caps : TUNER_CAPS_MAX;
    double least_j = INFINITY, least = INFINITY;
    int places = 0;

    for (size_t i = 0; i < n; i++) {
        cap[i] = t->cap[i];
        least_j = fmin(least_j, savings_mean_energy(&cap[i].mean));
        least = fmin(least, cap[i].value.v);
        int own = step_places(&cap[i].mean);
        places = own > places ? own : places;
    }
    if (n == 0)
        return;
    qsort(cap, n, sizeof *cap, by_cap);
    struct column energy = column_of("", ENERGY_COLUMN, least_j, " a step");
    struct column value = value_column(&j->goal, least);
    (void)fprintf(to, "  caps      W  s a step  %*s", ENERGY_COLUMN, energy.head);
    if (isfinite(least))
        (void)fprintf(to, "  %*s", VALUE_COLUMN, value.head);
    (void)fputs(" windows\n", to);
    for (size_t i = 0; i < n; i++) {
        const struct savings_mean *mean = &cap[i].mean;
        bool held = t->holding && t->reached && cap[i].cap_mw == t->held_mw;
        (void)fprintf(to, "         %4.0f  %8.*f", w_of_mw(cap[i].cap_mw), places,
                      savings_mean_time(mean));
        put_value(&energy, savings_mean_energy(mean), savings_mean_energy_rse(mean), to);
        if (isfinite(least))
            put_value(&value, cap[i].value.v, cap[i].value.rse, to);
        (void)fprintf(to, " %7u%s\n", mean->windows,
                      cap_mark(job_report_is_reference(t, cap[i].cap_mw), held));
    }
}

static void print_tuner(const struct job_run *j, const struct job_result *r, FILE *to)
{
    const struct tuner_report *t = r->tuner;
    const struct savings_saved *s = &t->saved;
    char goal[GOAL_TEXT_MAX], of[48] = "";

    if (j->goal_of)
        (void)snprintf(of, sizeof of, ", of job %" PRIu64 ", in which it ran",
                       j->goal_of);
    if (j->caps == JOB_CAPS_SEARCH)
        (void)fprintf(to, "  goal   %s%s\n", goal_text(&j->goal, goal), of);
    print_preset(j, r, to);
    print_progress(j, r, to);
    if (r->launches[0])
        (void)fprintf(to, "  count  %s\n", r->launches);
    print_held(j, t, to);
    print_capped(&r->capped, to);
    if (is_below_original(t))
        put_line(to, "  from",
                 "%.0f W, not the original: others' claims and limits allowed no more "
                 "in the reference windows",
                 w_of_mw(t->reference_mw));
    print_caps(j, t, to);
    print_saved(t, to);
    if (s->cost_known)
        put_line(to, "  search",
                 "%.0f s, %zu cap%s; it took %s %s and %.1f s %s than the held cap would "
                 "have",
                 s->search_s, t->n_caps, t->n_caps == 1 ? "" : "s",
                 figure_joules(fabs(s->cost_j)).t, s->cost_j < 0 ? "less" : "more",
                 fabs(s->cost_s), s->cost_s < 0 ? "less" : "more");
    print_away(t, to);
    print_memory(t, to);
    if (t->changes || t->stalls)
        (void)fprintf(to, "  searched again %u time%s; %u stall%s\n", t->changes,
                      t->changes == 1 ? "" : "s", t->stalls, t->stalls == 1 ? "" : "s");
    print_end(r, to);
}

static void print_cpu(const struct job_result *r, FILE *to)
{
    char cell[CELL];

    for (size_t i = 0; i < r->n_cpu; i++)
        (void)fprintf(to, "  CPU    %-32.32s %s  %6.1f W  (not in the sum above)\n",
                      r->cpu[i].info->uuid, energy_cell(&r->cpu[i].energy, cell),
                      r->cpu[i].energy.power_w);
}

static void print_cost(const struct opt_price *p, double energy_j, FILE *to)
{
    const char *space = p->currency[0] ? " " : "";

    (void)fprintf(to, "  cost   %.4g%s%s at %g%s%s a kWh\n",
                  energy_j / J_PER_KWH * p->per_kwh, space, p->currency, p->per_kwh,
                  space, p->currency);
}

void job_report_text(const struct job_run *j, const struct job_result *r, FILE *to)
{
    (void)fprintf(to, "underwatt %s%s\n", j->cmd->name,
                  r->simulated ? " (simulated boards and time)" : "");
    (void)fprintf(to, "  time   %.2f s", r->time_s);
    if (r->steps)
        (void)fprintf(to, ", %" PRIu64 " steps", r->steps);
    (void)fprintf(to, "\n");
    if (r->stood_s > 0)
        put_line(to, "  stop",
                 "this command did not run for %.0f s of it: its boards were not read%s",
                 r->stood_s,
                 r->tuner ? "; a cap that ended meanwhile was set again" : "");
    if (r->measured) {
        (void)fprintf(to, "  energy %s (95 %% interval), mean power %s\n",
                      figure_joules_within(r->energy_j, r->half_j).t,
                      figure_power(r->power_w).t);
        print_boards(r, to);
        print_cpu(r, to);
        if (j->carbon_g_per_kwh > 0)
            (void)fprintf(to, "  carbon %.4g gCO2e at %g g/kWh\n",
                          r->energy_j / J_PER_KWH * j->carbon_g_per_kwh,
                          j->carbon_g_per_kwh);
        if (j->price.per_kwh > 0)
            print_cost(&j->price, r->energy_j, to);
    } else {
        (void)fprintf(to, "  energy unknown: %s\n", r->error.text);
    }
    if (r->tuner)
        print_tuner(j, r, to);
}

/* ---- JSON ---- */

static void json_boards(struct json_out *o, const struct job_result *r)
{
    char why[160];

    json_out_array(o, "boards");
    for (size_t i = 0; i < r->n; i++) {
        const struct job_board *b = &r->board[i];
        if (!b->used)
            continue;
        json_out_object(o, NULL);
        json_out_known_int(o, "index", !b->away, b->info->index);
        json_out_text(o, "uuid", b->away ? NULL : b->info->uuid);
        json_out_text(o, "name", b->away ? NULL : b->info->name);
        if (r->measured) {
            json_out_double(o, "energy_j", b->energy.energy_j);
            json_out_double(o, "half_j", b->energy.half_j);
            json_out_double(o, "power_w", b->energy.power_w);
            json_out_text(o, "method", names_word(NAMES_METER_METHOD, b->energy.method));
            json_out_text(o, "why", meter_why_text(b->energy.why, why, sizeof why));
        } else {
            json_out_null(o, "energy_j");
        }
        json_out_end(o);
    }
    json_out_end(o);
}

static void json_cpu(struct json_out *o, const struct job_result *r)
{
    json_out_array(o, "cpu");
    for (size_t i = 0; i < r->n_cpu; i++) {
        json_out_object(o, NULL);
        json_out_text(o, "domain", r->cpu[i].info->uuid);
        json_out_double(o, "energy_j", r->cpu[i].energy.energy_j);
        json_out_double(o, "half_j", r->cpu[i].energy.half_j);
        json_out_double(o, "power_w", r->cpu[i].energy.power_w);
        json_out_end(o);
    }
    json_out_end(o);
}

static void json_saved(struct json_out *o, const struct savings_saved *s)
{
    if (!s->known) {
        json_out_null(o, "saved");
        return;
    }
    json_out_object(o, "saved");
    json_out_double(o, "steps", s->steps);
    json_out_double(o, "energy_j", s->energy_j);
    json_out_double(o, "half_j", s->half_j);
    json_out_double(o, "fraction", s->fraction);
    json_out_double(o, "half", s->half);
    json_out_double(o, "slowdown", s->slowdown);
    json_out_double(o, "slowdown_half", s->slowdown_half);
    json_out_known_double(o, "held_slowdown", s->held_slowdown > 0, s->held_slowdown);
    json_out_int(o, "pairs", s->pairs);
    json_out_double(o, "visits_s", s->visits_s);
    json_out_double(o, "visits_cost_j", s->visits_cost_j);
    json_out_end(o);
}

static void json_preset(struct json_out *o, const struct job_run *j,
                        const struct job_result *r)
{
    if (!j->preset) {
        json_out_null(o, "preset");
        return;
    }
    json_out_object(o, "preset");
    json_out_text(o, "name", j->preset);
    json_out_double(o, "share", j->cap.percent / 100);
    json_out_array(o, "boards");
    for (size_t i = 0; i < r->n_preset; i++) {
        json_out_object(o, NULL);
        json_out_int(o, "index", r->preset[i].index);
        json_out_int(o, "cap_mw", r->preset[i].mw);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
}

static void json_tuner(struct json_out *o, const struct job_run *j,
                       const struct job_result *r)
{
    const struct tuner_report *t = r->tuner;
    const struct savings_saved *s = &t->saved;
    char goal[GOAL_TEXT_MAX];

    if (j->caps == JOB_CAPS_SEARCH)
        json_out_text(o, "goal", goal_text(&j->goal, goal));
    json_out_known_int(o, "goal_of", j->goal_of, (int64_t)j->goal_of);
    json_out_int(o, "original_mw", t->original_mw);
    json_out_known_int(o, "reference_mw", t->reference_mw, t->reference_mw);
    json_out_known_int(o, "lifted_mw", t->lifted_mw, t->lifted_mw);
    json_out_known_int(o, "held_mw", t->holding, t->held_mw);
    json_out_bool(o, "reached", t->holding && t->reached);
    json_out_known_int(o, "lowest_mw", t->holding && t->lowest_mw, t->lowest_mw);
    json_out_int(o, "lock_mhz", t->lock_mhz);
    json_out_text(o, "why", t->why);
    tuner_progress_json(t, o);
    tuner_caps_json(t, o);
    json_saved(o, s);
    if (t->modelled) {
        json_out_object(o, "model");
        json_out_double(o, "saving", t->model_saving);
        json_out_double(o, "slowdown", t->model_slowdown);
        json_out_end(o);
    } else {
        json_out_null(o, "model");
    }
    json_out_object(o, "search");
    json_out_double(o, "time_s", s->search_s);
    json_out_double(o, "steps", s->search_steps);
    json_out_int(o, "windows", t->windows);
    json_out_int(o, "changes", t->changes);
    json_out_int(o, "stalls", t->stalls);
    json_out_double(o, "cost_j", s->cost_known ? s->cost_j : NAN);
    json_out_double(o, "cost_s", s->cost_known ? s->cost_s : NAN);
    json_out_end(o);
    json_out_double(o, "cmd_stopped_s", t->stopped_s);
    json_out_double(o, "waited_s", t->waited_s);
    json_out_double(o, "back_s", s->back_s);
    json_out_text(o, "ended", t->ended[0] ? t->ended : NULL);
    if (t->ended[0])
        json_out_double(o, "ended_s",
                        t->ended_ns ? s_between(r->begin_ns, t->ended_ns) : NAN);
    json_out_bool(o, "restored", t->restored);
    json_out_array(o, "capped_by");
    for (size_t i = 0; i < r->capped.n; i++) {
        json_out_object(o, NULL);
        json_out_text(o, "who", r->capped.by[i].who);
        json_out_int(o, "lowest_mw", r->capped.by[i].lowest_mw);
        json_out_double(o, "time_s", r->capped.by[i].time_s);
        json_out_end(o);
    }
    json_out_end(o);
}

static void json_when(struct json_out *o, const struct job_result *r)
{
    char text[40];
    struct tm tm;
    time_t seconds = (time_t)(r->begin_utc_ns / (int64_t)NS_PER_S);

    if (gmtime_r(&seconds, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        json_out_text(o, "begin_utc", text);
}

int job_report_json(const struct job_run *j, const struct job_result *r,
                    const char *const *argv, const char *path, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", r->simulated);
    json_out_array(o, "command");
    for (size_t i = 0; argv[i]; i++)
        json_out_text(o, NULL, argv[i]);
    json_out_end(o);
    json_when(o, r);
    json_out_int(o, "exit", cli_exit_of_status(r->status));
    json_out_double(o, "time_s", r->time_s);
    json_out_double(o, "stopped_s", r->stood_s);
    json_out_double(o, "energy_j", r->measured ? r->energy_j : NAN);
    json_out_double(o, "half_j", r->measured ? r->half_j : NAN);
    json_out_double(o, "power_w", r->measured ? r->power_w : NAN);
    if (r->measured && j->carbon_g_per_kwh > 0)
        json_out_double(o, "carbon_g", r->energy_j / J_PER_KWH * j->carbon_g_per_kwh);
    if (r->measured && j->price.per_kwh > 0) {
        json_out_double(o, "cost", r->energy_j / J_PER_KWH * j->price.per_kwh);
        json_out_text(o, "currency", j->price.currency[0] ? j->price.currency : NULL);
    }
    if (!r->measured)
        json_out_text(o, "unknown", r->error.text);
    json_out_int(o, "steps", (int64_t)r->steps);
    json_out_text(o, "launches", r->launches[0] ? r->launches : NULL);
    json_boards(o, r);
    json_cpu(o, r);
    json_preset(o, j, r);
    if (r->tuner)
        json_tuner(o, j, r);
    json_out_end(o);
    return json_out_write(o, path, err);
}

/* ---- destinations ---- */

static int write_report(const struct job_run *j, const struct job_result *result,
                        uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    if (strcmp(j->report, "-") == 0) {
        job_report_text(j, result, stdout);
        return fflush(stdout) == 0 ? 0 : fail(err, -EIO, "cannot write to stdout");
    }
    FILE *mem = open_memstream(&text, &len);
    if (!mem)
        return fail(err, -ENOMEM, "out of memory");
    job_report_text(j, result, mem);
    if (fclose(mem) != 0)
        return fail(err, -ENOMEM, "out of memory");
    return file_write(j->report, text, len, FILE_MODE_UMASK, err);
}

int job_reports(struct job_run *j, const struct job_result *result,
                const char *const *argv)
{
    uw_error err;

    int r = j->report ? write_report(j, result, &err) : 0;
    if (r < 0)
        cli_say("%s: --report: %s", j->cmd->name, err.text);
    if (r < 0 || (!j->quiet && !j->report))
        job_report_text(j, result, stderr);
    int json = j->json ? job_report_json(j, result, argv, j->json, &err) : 0;
    if (json < 0)
        cli_say("%s: --json: %s", j->cmd->name, err.text);
    return r < 0 ? r : json;
}
