/* Formats joules, watts and lines of 80 columns for people. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TEXT_COLUMNS = 80 };

struct figure {
    char t[40];
};

/* "582.1 J", "67.51 kJ", "1.233 MJ": four figures; "-" where it is unknown (NaN). */
struct figure figure_joules(double j);
/* "67.5 ± 4.6 kJ", with the digits of base/within.h; "-" where either is NaN. */
struct figure figure_within(double v, double half, const char *unit);
/* The unit of an energy j in all views but reports over jobs: J, kJ, MJ, GJ; *ret_factor:
 * joules of one. */
const char *figure_joules_unit(double j, double *ret_factor);
/* The same as figure_within(), in the unit of j. */
struct figure figure_joules_within(double j, double half_j);
/* True: a saving with the 95 % interval v ± half is distinguishable from zero. */
bool figure_told(double v, double half);
/* The saving "12.3 ± 4.5 kJ"; "~0 ± 4.5 kJ" where it is not distinguishable from zero. */
struct figure figure_saved(double v, double half, const char *unit);
/* The same; with one digit of the interval where two need more than `columns`. */
struct figure figure_saved_in(double v, double half, const char *unit, unsigned columns);
#define FIGURE_HALF "half of the 95 % interval" /* what ± is */
/* Writes a line with the meaning of ± and, if untold, of "~0". */
void figure_put_signs(FILE *to, unsigned indent, bool untold);
#define FIGURE_UNTOLD "~0: the saving is not distinguishable from zero"
/* A limit: "236.9 W", "300 W", "1033 W"; "-" where it is unknown (NaN). */
struct figure figure_watts(double w);
/* A measured power, with one decimal: "41.2 W", "300.0 W", "1033.2 W"; likewise. */
struct figure figure_power(double w);
/* "45 s", "15 min", "7.5 h", "12 d"; "-" where it is unknown (NaN). */
struct figure figure_time(double s);

/* The bytes of a board's name without this end (GPU_NAME_SIMULATED), for lines below one
 * that says the same.
 */
size_t board_name_length(const char *name, const char *end);

/* Advances *text, which is not at its end, by a character; returns the columns that it
 * takes on a terminal: one, of wide ones two, of combining ones none; one where the
 * locale's encoding, set with setlocale(), does not know it.
 */
unsigned text_next(const char **text);
/* Columns that text takes. */
unsigned text_columns(const char *text);
/* Writes the text from column `at` on, in lines of TEXT_COLUMNS that continue at column
 * `indent`.  Breaks at blanks only: a long word may exceed the line.  Ends the line.
 */
void text_wrap(FILE *to, unsigned at, unsigned indent, const char *text);
/* The same in lines of `width` columns. */
void text_wrap_in(FILE *to, unsigned width, unsigned at, unsigned indent,
                  const char *text);
/* Columns of the terminal at standard output; TEXT_COLUMNS where that is no terminal or
 * has no size.
 */
unsigned text_width(void);

#endif
