/* Formats a report of the ledger as text, CSV or an HTML page, from the JSON of
 * ledger_report() (underwatt-report(1), JSON).
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdio.h>

#include "chart/canvas.h"
#include "io/json.h"
#include "underwatt/error.h"

/* -EINVAL: it is not a report. */
int report_check(const struct json_value *report, uw_error *err);

/* Text in 80 columns. */
int report_text(const struct json_value *report, FILE *to, uw_error *err);
/* Text with one table of these columns, "energy_j,co2_g" or "all", as wide as it takes.
 * -EINVAL: the report has no such column.
 */
int report_text_of(const struct json_value *report, const char *columns, FILE *to,
                   uw_error *err);
/* One row per item, header first; joules, watts, seconds. */
int report_csv(const struct json_value *report, FILE *to, uw_error *err);
/* The fields of a row by its keys, "job,name", with commas between them. */
void report_csv_row(const struct json_value *row, const char *keys, FILE *to);
/* The same of the report of waste (docs/waste.md). */
int waste_check(const struct json_value *report, uw_error *err);
int waste_text(const struct json_value *report, FILE *to, uw_error *err);
int waste_csv(const struct json_value *report, FILE *to, uw_error *err);
int waste_html(const struct json_value *report, FILE *to, uw_error *err);
/* A self-contained page. */
int report_html(const struct json_value *report, FILE *to, uw_error *err);

/* ---- what the views share ---- */

enum { REPORT_TEXT = 96, REPORT_ONLY = 400 };

/* One unit for a whole table: kWh, Wh or J. */
struct report_unit {
    double scale; /* value in the unit = J x scale */
    const char *name;
};
struct report_unit report_unit(const struct json_value *report);
/* The unit for a sum of j. */
struct report_unit report_unit_of(double j);
/* Sums of processors and their memory; NULL: none. */
const struct json_value *report_cpu(const struct json_value *report);
/* "12.34" in that unit; "-" where it is unknown. */
const char *report_energy(double j, struct report_unit unit, char ret[REPORT_TEXT]);
/* Decimals of an amount of grams or money: two digits of a small one, six decimals at
 * most.
 */
int report_digits(double v);
/* "0.0060" with these decimals; never "-0.000". */
const char *report_amount(double v, int digits, char ret[REPORT_TEXT]);
/* Whether some energy of the report has emissions or cost ("co2_covered" …) known. */
bool report_has_charge(const struct json_value *report, const char *covered);
/* A line of sums in addition to the booked ones: "market-based", "385 g CO2e, of 62.5 %
 * of the energy"; *ret_name NULL: not in the report.  false: no more lines.
 */
bool report_beside(const struct json_value *report, size_t i, const char **ret_name,
                   char ret[REPORT_ONLY]);
/* Whether the report has such a figure: "embodied_covered" … */
bool report_has_beside(const struct json_value *report, const char *key);
/* "18.2 ± 1.2 %", "-" where it is unknown. */
const char *report_saved(const struct json_value *row, char ret[REPORT_TEXT]);

/* A column of the table of rows. */
struct report_column {
    const char *head; /* %s: the unit; "", "money", %m: the currency; NULL: what the rows
                         are of */
    const char *key;
    enum {
        CELL_NAME,
        CELL_SECOND, /* the name's second key */
        CELL_TEXT,
        CELL_NUMBER,
        CELL_ENERGY,
        CELL_SAVED,
        CELL_PERCENT,
        CELL_AMOUNT,  /* of emissions or money */
        CELL_COVERED, /* per cent, rounded down */
        CELL_WITHIN,  /* a value and half of its interval; scale 0: energy */
    } kind;
    const char *half;
    bool text;  /* in text alone */
    int width;  /* in text, to the left if negative; 0: pages only */
    int digits; /* of a number */
    double scale;
    unsigned rows;     /* kinds of reports that have it */
    const char *needs; /* key that the report must have; NULL: none */
};
/* In text, columns of emissions and money, and of sums in addition to the booked ones,
 * have tables of their own.
 */
enum report_table { TABLE_ENERGY, TABLE_CHARGES, TABLE_BESIDE };
enum report_table report_table(const struct report_column *column);
/* The column after `before`, the first one after NULL; NULL: no more. */
const struct report_column *report_column(const struct json_value *report,
                                          const struct report_column *before);
/* The column of that key; false: this report has none. */
bool report_named(const struct json_value *report, const char *key, size_t len,
                  const struct report_column **ret);
void report_head(const struct json_value *report, const struct report_column *column,
                 char ret[REPORT_TEXT]);
void report_cell(const struct json_value *report, const struct json_value *row,
                 const struct report_column *column, char ret[REPORT_TEXT]);

/* "carbon: signals grid, estimated": the i-th source of factors; false: no more. */
bool report_factor(const struct json_value *report, size_t i, char ret[REPORT_ONLY]);
/* Writes the list of factors, in text and on a page; nothing if there is none. */
void report_text_factors(const struct json_value *report, FILE *to);
void report_html_factors(const struct json_value *report, FILE *to);

/* The lines of a sum: of boards or of processors. */
struct report_line {
    const char *key, *name;
    bool share; /* a part of the whole */
};
enum { REPORT_LINES = 5 };
extern const struct report_line report_lines[REPORT_LINES];

/* The name of a row by the first key: its job, user, board, domain, day, value of a label
 * …; "-": it has none.
 */
void report_name(const struct json_value *report, const struct json_value *row, char *ret,
                 size_t size);
/* By both keys: "anna, 11-21". */
void report_row_name(const struct json_value *report, const struct json_value *row,
                     char *ret, size_t size);
/* The name of an object of "stack": by the first key that is no day. */
void report_stack_name(const struct json_value *report, const struct json_value *of,
                       char *ret, size_t size);
/* The unit for what the rows have saved. */
struct report_unit report_saved_unit(const struct json_value *report);
/* "Energy by job, 2026-11-01 00:00 to 2026-11-21 14:30 UTC" */
void report_title(const struct json_value *report, char *ret, size_t size);
/* A sentence: whether the parts add up to the meters.  totals: of boards or of
 * processors.
 */
void report_sum(const struct json_value *totals, char *ret, size_t size);
/* The kind of the rows: "GPU", "processor", "job", "label team", "user and day" … */
void report_by(const struct json_value *report, char ret[REPORT_TEXT]);
/* "12.3 ± 0.4 kWh, 4.56 ± 0.15 g CO2e": what the jobs that are shown saved; false: it is
 * not known.
 */
bool report_saved_sum(const struct json_value *report, char ret[REPORT_ONLY]);
/* Whether a saving with an interval is shown; *ret_untold: one is not distinguishable
 * from zero, "~0 ± 4.5".
 */
bool report_has_halves(const struct json_value *report, bool *ret_untold);
/* Whether rows have three parts (by gpu, cpu, day) instead of one energy and savings. */
bool report_has_parts(const struct json_value *report);
bool report_is_pair(const struct json_value *report); /* by two keys */
/* A sentence: whose jobs are shown; false: all. */
bool report_only(const struct json_value *report, char ret[REPORT_ONLY]);

/* ---- pictures: drawn at a width in CSS pixels ---- */

struct report_picture {
    const char *title; /* alternative text */
    /* Height at that width; 0: there is nothing to draw. */
    double (*height)(const struct json_value *report, double width);
    draw_fn draw; /* user: the report */
};
/* In the order of a page; NULL: no more. */
const struct report_picture *report_picture(size_t i);
enum { REPORT_DAYS = 3 };
extern const struct report_picture report_days_pictures[REPORT_DAYS];
extern const struct report_picture report_saved_picture;

#endif
