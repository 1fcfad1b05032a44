/* A finished sweep as people and programs read it: table, CSV, JSON, picture, page.
 * Everything is written to an open stream; nothing here opens a file.
 */
#ifndef CLI_VIEW_H
#define CLI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/sweep/sweep.h"
#include "underwatt/error.h"

struct view {
    const struct sweep *sweep;
    const struct sweep_drift *drift; /* NULL: nothing was run in time */
    bool corrected;                  /* the drift was taken out */
    const struct sweep_run *runs;    /* in the order they were made; or NULL */
    size_t n_runs;
    bool simulated;
    const char *board;      /* "v100", "Tesla V100-SXM2-16GB" */
    const char *board_note; /* "Tesla V100-SXM2-16GB, calibrated"; or "" */
    const char *workload;   /* "resnet50", a command line: any bytes */
    const char *label;      /* the same, short and clean: see view_label() */
    const char *work_unit;  /* "one epoch", "one run of the command" */
    uint32_t least_mw;      /* the lowest cap that the boards allow */
    size_t boards;          /* energy and power are the sum of so many */
    const char *method;     /* how the figures came about, a sentence or two */
};

/* The paper's table: the reference and the optimum of each goal. */
int view_table(const struct view *v, FILE *to, uw_error *err);
/* One row a cap, header first. */
int view_csv(const struct view *v, FILE *to, uw_error *err);
int view_json(const struct view *v, FILE *to, uw_error *err);
int view_svg(const struct view *v, FILE *to, uw_error *err);
int view_png(const struct view *v, FILE *to, uw_error *err);
/* A page that needs no other file: picture, table, figures under the pointer. */
int view_html(const struct view *v, FILE *to, uw_error *err);

/* ---- what the views share ---- */

enum { VIEW_TEXT = 64 };

/* "EDS(1.5)", "E", "EDP". */
const char *view_goal_name(size_t optimum);
/* "-31.5 %", with a true minus sign where `typeset`. */
const char *view_change(double fraction, bool typeset, char buf[VIEW_TEXT]);
/* "250 W", "252.5 W". */
const char *view_watts(uint32_t mw, char buf[VIEW_TEXT]);
/* "150 to 300 W in 31 caps, 5 runs each". */
void view_extent(const struct view *v, char *ret, size_t size);
/* The drift in a sentence; "" where there is none to tell of. */
void view_drift(const struct view *v, bool typeset, char *ret, size_t size);

/* Text without control characters and broken UTF-8, cut with an ellipsis. */
void view_label(const char *text, char *ret, size_t size);

/* One unit for a whole table or axis. */
struct view_unit {
    double scale; /* value in the unit = value x scale */
    const char *name;
};
/* Digits behind the point that leave about four figures. */
int view_digits(double value);
struct view_unit view_energy_unit(const struct view *v);
struct view_unit view_time_unit(const struct view *v);

#endif
