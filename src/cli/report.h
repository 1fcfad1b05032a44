/* A report of the ledger as people read it: table, CSV, page with pictures.  Made of
 * the JSON that ledger_report() gives (docs/ledger.md), whoever sent it.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <stdio.h>

#include "chart/canvas.h"
#include "io/json.h"
#include "underwatt/error.h"

/* -EINVAL: it is no report. */
int report_check(const struct json_value *report, uw_error *err);

/* 80 columns. */
int report_text(const struct json_value *report, FILE *to, uw_error *err);
/* One row each of what was asked for, header first; joules, watts, seconds. */
int report_csv(const struct json_value *report, FILE *to, uw_error *err);
/* A page that needs no other file. */
int report_html(const struct json_value *report, FILE *to, uw_error *err);

/* ---- what the views share ---- */

enum { REPORT_TEXT = 96 };

/* One unit for a whole table: kWh, Wh or J. */
struct report_unit {
    double scale; /* value in the unit = J x scale */
    const char *name;
};
struct report_unit report_unit(const struct json_value *report);
/* … for a sum of so much. */
struct report_unit report_unit_of(double j);
/* Sums of processors and their memory; NULL: none was counted. */
const struct json_value *report_cpu(const struct json_value *report);
/* "12.34" in that unit; "-" where it is unknown. */
const char *report_energy(double j, struct report_unit unit, char ret[REPORT_TEXT]);
/* "18.2 ± 1.2 %", "-" where it is unknown. */
const char *report_saved(const struct json_value *row, char ret[REPORT_TEXT]);

/* A column of the table of rows. */
struct report_column {
    const char *head; /* %s: the unit; NULL: what the rows are of */
    const char *key;
    enum {
        CELL_NAME,
        CELL_TEXT,
        CELL_NUMBER,
        CELL_ENERGY,
        CELL_SAVED,
        CELL_PERCENT
    } kind;
    int width;  /* in text, to the left if negative; 0: pages only */
    int digits; /* of a number */
    double scale;
};
/* Its columns; the last one has no key. */
const struct report_column *report_columns(const struct json_value *report);
void report_head(const struct json_value *report, const struct report_column *column,
                 char ret[REPORT_TEXT]);
void report_cell(const struct json_value *report, const struct json_value *row,
                 const struct report_column *column, char ret[REPORT_TEXT]);

/* The lines of a sum: of boards or of processors. */
struct report_line {
    const char *key, *name;
    bool share; /* a part of the whole */
};
enum { REPORT_LINES = 5 };
extern const struct report_line report_lines[REPORT_LINES];

/* What a row is called: its job, user, board, domain, day or label's value. */
void report_name(const struct json_value *report, const struct json_value *row, char *ret,
                 size_t size);
/* "Energy by job, 2026-11-01 00:00 to 2026-11-21 14:30 UTC" */
void report_title(const struct json_value *report, char *ret, size_t size);
/* Whether the parts make up what the meters saw, in a sentence.  totals: of boards or of
 * processors.
 */
void report_sum(const struct json_value *totals, char *ret, size_t size);
/* What the rows are of: "GPU", "processor", "job" … */
const char *report_by(const struct json_value *report);
/* Rows have the three parts (by gpu, by cpu, by day), not one energy and what was saved.
 */
bool report_has_parts(const struct json_value *report);

/* ---- pictures: drawn at a width in CSS pixels ---- */

struct report_picture {
    const char *title; /* alternative text */
    /* Height at that width; 0: there is nothing to draw. */
    double (*height)(const struct json_value *report, double width);
    draw_fn draw; /* user: the report */
};
enum { REPORT_PICTURES = 3 };
extern const struct report_picture report_pictures[REPORT_PICTURES];

#endif
