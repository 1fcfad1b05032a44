/* The report of waste: boards idle or underused by class, user, project and job, the
 * worst first, and the smaller requests that would have sufficed.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/figures.h"
#include "cli/html.h"
#include "cli/report.h"
#include "cli/take.h"
#include "cli/view.h"
#include "io/ledger-report.h"

enum { SHOWN = 1000, HINT = 240 };

static const char *const lists[] = {"users", "projects", "jobs"};
static const enum ledger_by list_of[] = {LEDGER_BY_USER, LEDGER_BY_PROJECT,
                                         LEDGER_BY_JOB};

int waste_check(const struct json_value *report, uw_error *err)
{
    if (!json_get(report, "uses"))
        return fail(err, -EINVAL,
                    "the answer is not a report of waste: it has no 'uses'");
    for (size_t i = 0; i < n_elements(lists); i++)
        if (!json_get(report, lists[i]))
            return fail(err, -EINVAL,
                        "the answer is not a report of waste: it has no '%s'", lists[i]);
    return 0;
}

/* ---- for all views ---- */

static const char *title_of(size_t list)
{
    return names_word(NAMES_REPORT_BY, list_of[list]);
}

/* "2026-11-21T14:30:00Z" as "2026-11-21 14:30" */
static void put_moment(const char *iso, char ret[24])
{
    if (strncmp(iso, "1970-01-01T00:00", 16) == 0)
        (void)snprintf(ret, 24, "the beginning");
    else
        (void)snprintf(ret, 24, "%.10s %.5s", iso, strlen(iso) > 11 ? iso + 11 : "");
}

static void put_title(const struct json_value *report, char *ret, size_t size)
{
    char from[24], to[24];

    put_moment(take_text(report, "from"), from);
    put_moment(take_text(report, "to"), to);
    (void)snprintf(ret, size, "Boards idle or underused from %s to %s UTC", from, to);
}

/* The sum over all classes but `working`. */
static double sum_of(const struct json_value *report, const char *key)
{
    const struct json_value *uses = json_get(report, "uses");
    double sum = 0;

    for (size_t i = 0; i < json_count(uses); i++) {
        double v = take_number(json_at(uses, i), key);
        if (strcmp(take_text(json_at(uses, i), "use"),
                   names_word(NAMES_USE, WASTE_WORKING)) != 0)
            sum += isnan(v) ? 0 : v;
    }
    return sum;
}

static struct report_unit unit_of(const struct json_value *report)
{
    return report_unit_of(sum_of(report, "energy_j"));
}

/* Whether some of the energy has this amount; *ret: the part that has. */
static bool is_covered(const struct json_value *report, const char *covered, double *ret)
{
    const struct json_value *uses = json_get(report, "uses");
    double all = 0, part = 0;

    for (size_t i = 0; i < json_count(uses); i++) {
        double j = take_number(json_at(uses, i), "energy_j");
        double v = take_number(json_at(uses, i), covered);
        all += j;
        part += isnan(v) ? 0 : v * j;
    }
    *ret = all > 0 ? part / all : 0;
    return part > 0;
}

/* The columns of all tables but the first. */
enum { COLUMNS = 6 };
struct cells {
    char t[COLUMNS][REPORT_TEXT]; /* "": a column that the table leaves out */
};

static void put_number(char ret[REPORT_TEXT], double v, int digits, const char *unit)
{
    if (isnan(v))
        (void)snprintf(ret, REPORT_TEXT, "-");
    else
        (void)snprintf(ret, REPORT_TEXT, "%.*f%s", digits, v, unit);
}

/* row is NULL: the heads. */
static void put_cells(const struct json_value *report, const struct json_value *row,
                      double share, struct cells *ret)
{
    struct report_unit unit = unit_of(report);
    double part = 0, money = take_number(row, "money"), g = take_number(row, "co2_g");
    bool carbon = is_covered(report, "co2_covered", &part);
    bool price = is_covered(report, "money_covered", &part);

    memset(ret, 0, sizeof *ret);
    if (!row) {
        static const char *const heads[] = {"hours", "of time", "mean W"};
        for (size_t i = 0; i < n_elements(heads); i++)
            (void)snprintf(ret->t[i], REPORT_TEXT, "%s", heads[i]);
        (void)snprintf(ret->t[3], REPORT_TEXT, "%s", unit.name);
        (void)snprintf(ret->t[4], REPORT_TEXT, "%s", carbon ? "g CO2e" : "");
        if (price)
            view_label(take_text(report, "money_currency"), ret->t[5], 16);
        return;
    }
    put_number(ret->t[0], take_number(row, "time_s") / 3600, 2, "");
    put_number(ret->t[1], 100 * share, 1, " %");
    put_number(ret->t[2], take_number(row, "mean_w"), 1, "");
    (void)report_energy(take_number(row, "energy_j"), unit, ret->t[3]);
    if (carbon)
        put_number(ret->t[4], g, report_digits(g), "");
    if (price)
        put_number(ret->t[5], money, report_digits(money), "");
}

static void put_name(const struct json_value *row, size_t list, char ret[REPORT_TEXT])
{
    char raw[240];
    const char *project = take_text(row, "project"), *user = take_text(row, "user");

    if (list == 1)
        (void)snprintf(raw, sizeof raw, "%.200s", *project ? project : "(none)");
    else if (list == 2)
        (void)snprintf(raw, sizeof raw, "%llu %.200s",
                       (unsigned long long)take_u64(row, "job"), take_text(row, "name"));
    else if (*user)
        (void)snprintf(raw, sizeof raw, "%.200s", user);
    else
        (void)snprintf(raw, sizeof raw, "uid %llu",
                       (unsigned long long)take_u64(row, "uid"));
    view_label(raw, ret, REPORT_TEXT);
}

/* "anna, project llm: 3.2 h held, 1.1 h underused" */
static void put_kinds(const struct json_value *job, char *ret, size_t size)
{
    static const struct {
        const char *key;
        enum waste_class use;
    } kinds[] = {{"allocated_s", WASTE_ALLOCATED},
                 {"held_s", WASTE_HELD},
                 {"underused_s", WASTE_UNDER}};
    char user[40], project[64];
    int n = 0;

    view_label(take_text(job, "user"), user, sizeof user);
    view_label(take_text(job, "project"), project, sizeof project);
    if (!user[0])
        (void)snprintf(user, sizeof user, "uid %llu",
                       (unsigned long long)take_u64(job, "uid"));
    n = snprintf(ret, size, "%s%s%s:", user, project[0] ? ", project " : "", project);
    for (size_t i = 0, some = 0; i < n_elements(kinds) && n >= 0 && (size_t)n < size;
         i++) {
        double h = take_number(job, kinds[i].key) / 3600;
        if (!(h > 0))
            continue;
        n += snprintf(ret + n, size - (size_t)n, "%s %.2f h %s", some++ ? "," : "", h,
                      names_word(NAMES_USE, kinds[i].use));
    }
}

/* A sentence on the smaller request that would have sufficed; "": unknown. */
static void put_less(const struct json_value *less, char *ret, size_t size)
{
    const char *kind = take_text(less, "kind");
    unsigned long long boards = take_u64(less, "boards");
    unsigned long long idle = take_u64(less, "idle_boards");
    char model[64], here[64];

    ret[0] = '\0';
    if (strcmp(kind, "fewer-boards") == 0 && idle < boards)
        (void)snprintf(ret, size,
                       "%llu of its %llu boards ran nothing for %.0f %% of the time: "
                       "%llu board%s would have done.",
                       idle, boards, floor(100 * take_number(less, "idle")),
                       boards - idle, boards - idle == 1 ? "" : "s");
    else if (strcmp(kind, "fewer-boards") == 0)
        (void)snprintf(ret, size, "Its %llu board%s ran nothing for %.0f %% of the time.",
                       boards, boards == 1 ? "" : "s",
                       floor(100 * take_number(less, "idle")));
    else if (strcmp(kind, "lower-cap") == 0)
        (void)snprintf(ret, size,
                       "Its search measured %.0f W of demand a board, and the speed of "
                       "%.0f W (within 1 %%) at any cap from %.0f W up.",
                       take_number(less, "demand_w"), take_mw(less, "reference_mw"),
                       take_mw(less, "cap_mw"));
    else if (strcmp(kind, "other-boards") == 0) {
        view_label(take_text(less, "model"), model, sizeof model);
        view_label(take_text(less, "here_model"), here, sizeof here);
        (void)snprintf(ret, size,
                       "The same job was measured on %llu x %s: %.3g s and %.3g J a "
                       "step, for %.3g s and %.3g J on %llu x %s.",
                       boards, model, take_number(less, "step_s"),
                       take_number(less, "step_j"), take_number(less, "here_step_s"),
                       take_number(less, "here_step_j"),
                       (unsigned long long)take_u64(less, "here_boards"), here);
    }
}

static double time_of(const struct json_value *report)
{
    const struct json_value *uses = json_get(report, "uses");
    double sum = 0;

    for (size_t i = 0; i < json_count(uses); i++)
        sum += take_number(json_at(uses, i), "time_s");
    return sum;
}

/* The part of the energy that the amounts cover; "": all, or no amount is known. */
static void put_coverage(const struct json_value *report, char *ret, size_t size)
{
    double carbon = 1, price = 1;
    bool has_carbon = is_covered(report, "co2_covered", &carbon);
    bool has_price = is_covered(report, "money_covered", &price);
    int n = 0;

    ret[0] = '\0';
    if (has_carbon && carbon < 1)
        n = snprintf(ret, size, "Emissions are of %.1f %% of the energy. ",
                     floor(1e3 * carbon + 1e-9) / 10);
    if (has_price && price < 1 && n >= 0 && (size_t)n < size)
        (void)snprintf(ret + n, size - (size_t)n, "Money is of %.1f %% of the energy.",
                       floor(1e3 * price + 1e-9) / 10);
}

/* ---- text ---- */

static void put_line(FILE *to, const char *name, const struct cells *c)
{
    static const int width[COLUMNS] = {8, 8, 8, 9, 9, 9};
    char label[23];

    view_label(name, label, sizeof label);
    (void)fprintf(to, "%s%*s", label, 22 - (int)text_columns(label), "");
    for (int i = 0; i < COLUMNS; i++)
        if (c->t[i][0])
            (void)fprintf(to, " %*s", width[i], c->t[i]);
    (void)fputc('\n', to);
}

static void put_uses(const struct json_value *report, FILE *to)
{
    const struct json_value *uses = json_get(report, "uses");
    double all_s = time_of(report);
    struct cells c;

    put_cells(report, NULL, 0, &c);
    put_line(to, "boards", &c);
    for (size_t i = 0; i < json_count(uses); i++) {
        const struct json_value *row = json_at(uses, i);
        put_cells(report, row, take_number(row, "time_s") / all_s, &c);
        put_line(to, take_text(row, "use"), &c);
    }
}

static void put_job_lines(const struct json_value *job, FILE *to)
{
    const struct json_value *less = json_get(job, "less");
    char text[HINT];

    put_kinds(job, text, sizeof text);
    (void)fputs("    ", to);
    text_wrap(to, 4, 6, text);
    for (size_t i = 0; i < json_count(less); i++) {
        put_less(json_at(less, i), text, sizeof text);
        if (!text[0])
            continue;
        (void)fputs("    ", to);
        text_wrap(to, 4, 6, text);
    }
}

static void put_list(const struct json_value *report, size_t list, FILE *to)
{
    const struct json_value *rows = json_get(report, lists[list]);
    char name[REPORT_TEXT];
    struct cells c;

    if (json_count(rows) == 0)
        return;
    put_cells(report, NULL, 0, &c);
    (void)fputc('\n', to);
    put_line(to, title_of((size_t)list), &c);
    for (size_t i = 0; i < json_count(rows) && i < SHOWN; i++) {
        const struct json_value *row = json_at(rows, i);
        put_name(row, list, name);
        put_cells(report, row, take_number(row, "of_time"), &c);
        put_line(to, name, &c);
        if (list == 2)
            put_job_lines(row, to);
    }
}

int waste_text(const struct json_value *report, FILE *to, uw_error *err)
{
    char text[HINT];

    put_title(report, text, sizeof text);
    (void)fprintf(to, "%s\n", text);
    if (take_bool(report, "simulated"))
        (void)fprintf(to, "SIMULATED boards: all figures are simulated.\n");
    if (!isnan(take_number(report, "only_uid")))
        (void)fprintf(to, "Jobs of uid %llu alone, and time of nobody.\n",
                      (unsigned long long)take_u64(report, "only_uid"));
    (void)fputc('\n', to);
    if (json_count(json_get(report, "uses")) == 0)
        (void)fprintf(to, "No energy was recorded.\n");
    else
        put_uses(report, to);
    if (json_count(json_get(report, "jobs")) == 0)
        (void)fprintf(to, "\nNo job had a board that it did not use, as far as known.\n");
    for (size_t i = 0; i < n_elements(lists); i++)
        put_list(report, i, to);
    put_coverage(report, text, sizeof text);
    if (text[0])
        (void)fprintf(to, "\n%s\n", text);
    report_text_factors(report, to);
    return ferror(to) ? fail(err, -EIO, "cannot write the report") : 0;
}

/* ---- CSV ---- */

int waste_csv(const struct json_value *report, FILE *to, uw_error *err)
{
#define OF_ALL                                                                          \
    "time_s,energy_j,mean_w,co2_g,co2_covered,marginal_g,marginal_covered,money,money_" \
    "covered"
    static const char keys[] =
        "use,job,name,user,uid,project,jobs,allocated_s,allocated_j,held_s,held_j,"
        "underused_s,underused_j,of_time," OF_ALL;
#undef OF_ALL
    const char *currency = take_text(report, "money_currency");

    (void)fprintf(to, "of,%s,money_currency,simulated\n", keys);
    for (size_t i = 0; i <= n_elements(lists); i++) {
        const struct json_value *rows = json_get(report, i ? lists[i - 1] : "uses");
        for (size_t k = 0; k < json_count(rows); k++) {
            (void)fprintf(to, "%s,", i ? title_of(i - 1) : "use");
            report_csv_row(json_at(rows, k), keys, to);
            (void)fprintf(to, ",%.15s,%d\n", currency, take_bool(report, "simulated"));
        }
    }
    return ferror(to) ? fail(err, -EIO, "cannot write the CSV") : 0;
}

/* ---- HTML ---- */

static void put_tds(FILE *to, const char *name, const struct cells *c)
{
    (void)fputs("<tr>", to);
    html_put(to, "td", "%s", name);
    for (int i = 0; i < COLUMNS; i++)
        if (c->t[i][0])
            html_put(to, "td", "%s", c->t[i]);
    (void)fputs("</tr>\n", to);
}

static void put_heads(const struct json_value *report, const char *first, FILE *to)
{
    char heads[HTML_HEADS];
    struct cells c;

    put_cells(report, NULL, 0, &c);
    size_t n = (size_t)snprintf(heads, sizeof heads, "%s", first);
    for (int i = 0; i < COLUMNS && n + REPORT_TEXT + 1 < sizeof heads; i++)
        if (c.t[i][0])
            n += (size_t)snprintf(heads + n, sizeof heads - n, "|%s", c.t[i]);
    html_table(to, heads);
}

static void put_page_list(const struct json_value *report, const struct json_value *rows,
                          int list, FILE *to)
{
    char name[REPORT_TEXT];
    double all_s = time_of(report);
    struct cells c;

    put_heads(report, list < 0 ? "boards" : title_of((size_t)list), to);
    for (size_t i = 0; i < json_count(rows) && i < SHOWN; i++) {
        const struct json_value *row = json_at(rows, i);
        if (list >= 0)
            put_name(row, (size_t)list, name);
        else
            view_label(take_text(row, "use"), name, sizeof name);
        put_cells(report, row,
                  list < 0 ? take_number(row, "time_s") / all_s
                           : take_number(row, "of_time"),
                  &c);
        put_tds(to, name, &c);
    }
    html_table_end(to);
}

static void put_page_hints(const struct json_value *jobs, FILE *to)
{
    char name[REPORT_TEXT], text[HINT];

    for (size_t i = 0; i < json_count(jobs) && i < SHOWN; i++) {
        const struct json_value *less = json_get(json_at(jobs, i), "less");
        put_name(json_at(jobs, i), 2, name);
        put_kinds(json_at(jobs, i), text, sizeof text);
        html_put(to, "p", "Job %s, %s", name, text);
        for (size_t k = 0; k < json_count(less); k++) {
            put_less(json_at(less, k), text, sizeof text);
            if (text[0])
                html_put(to, "p", "%s", text);
        }
    }
}

int waste_html(const struct json_value *report, FILE *to, uw_error *err)
{
    char text[HINT];
    bool simulated = take_bool(report, "simulated");

    put_title(report, text, sizeof text);
    html_begin(to, simulated, text, "body{max-width:1040px}h1{font-size:22px}\n");
    (void)fputs("<main>\n", to);
    html_put(to, "h1", "%s", text);
    if (simulated) {
        (void)fputs("<p>", to);
        html_stamp(to);
        (void)fputs("</p>\n", to);
    }
    put_page_list(report, json_get(report, "uses"), -1, to);
    for (size_t i = 0; i < n_elements(lists); i++) {
        if (json_count(json_get(report, lists[i])) == 0)
            continue;
        html_put(to, "h2", "By %s", title_of(i));
        put_page_list(report, json_get(report, lists[i]), (int)i, to);
    }
    put_page_hints(json_get(report, "jobs"), to);
    put_coverage(report, text, sizeof text);
    if (text[0])
        html_put(to, "p", "%s", text);
    report_html_factors(report, to);
    (void)fputs("</main>\n", to);
    return html_end(to, err);
}
