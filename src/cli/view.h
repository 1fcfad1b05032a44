/* Formats a finished sweep: table, CSV, JSON, picture, page.  Everything is written to
 * an open stream; nothing here opens a file.
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
    const struct sweep_drift *drift; /* NULL: not measured */
    bool corrected;                  /* the figures are corrected for the drift */
    const struct sweep_run *runs;    /* in order of time; or NULL */
    size_t n_runs;
    bool simulated;
    const char *board;      /* "v100", "Tesla V100-SXM2-16GB" */
    const char *board_note; /* "Tesla V100-SXM2-16GB, calibrated"; or "" */
    const char *workload;   /* "resnet50", a command line: any bytes */
    const char *label;      /* a short, clean form: see view_label() */
    const char *work_unit;  /* "one epoch", "one run of the command" */
    uint32_t least_mw;      /* the lowest cap of the boards */
    uint32_t most_mw;       /* the highest */
    size_t boards;          /* number of boards in the sums */
    const char *method;     /* how the figures were obtained, a sentence or two */
};

/* The reference and the optimum of each goal. */
int view_table(const struct view *v, FILE *to, uw_error *err);
/* One row per cap, header first. */
int view_csv(const struct view *v, FILE *to, uw_error *err);
int view_json(const struct view *v, FILE *to, uw_error *err);
int view_svg(const struct view *v, FILE *to, uw_error *err);
int view_png(const struct view *v, FILE *to, uw_error *err);
/* A self-contained page: picture, table, figures at the pointer. */
int view_html(const struct view *v, FILE *to, uw_error *err);

/* ---- what the views share ---- */

enum { VIEW_TEXT = 64 };

/* "EDS(1.5)", "E", "EDP", "slowdown:1.05". */
const char *view_goal_name(const struct view *v, size_t optimum, char buf[VIEW_TEXT]);
/* The same with "min " where the goal is not one of a bound. */
const char *view_goal_title(const struct view *v, size_t optimum, char buf[VIEW_TEXT]);
/* "-31.5 %", with a true minus sign where `typeset`. */
const char *view_change(double fraction, bool typeset, char buf[VIEW_TEXT]);
/* "250 W", "252.5 W". */
const char *view_watts(uint32_t mw, char buf[VIEW_TEXT]);
/* "150 to 300 W in 31 caps, 5 runs each". */
void view_extent(const struct view *v, char *ret, size_t size);
/* The drift in a sentence; "" if unknown. */
void view_drift(const struct view *v, bool typeset, char *ret, size_t size);

/* Copies text without control characters and invalid UTF-8, cut with an ellipsis. */
void view_label(const char *text, char *ret, size_t size);

/* One unit for a whole table or axis. */
struct view_unit {
    double scale; /* value in the unit = value x scale */
    const char *name;
};
/* Decimals that leave about four significant digits. */
int view_digits(double value);
struct view_unit view_energy_unit(const struct view *v);
struct view_unit view_time_unit(const struct view *v);

#endif
