/* Figures and text for people: one way to write joules and watts, lines of 80 columns. */
#ifndef CLI_FIGURES_H
#define CLI_FIGURES_H

#include <stdio.h>

enum { TEXT_COLUMNS = 80 };

struct figure {
    char t[40];
};

/* "582.1 J", "67.51 kJ", "1.233 MJ": four figures; "-" where it is unknown (NaN). */
struct figure figure_joules(double j);
/* "67.51 ± 4.58 kJ": both in the unit of the first. */
struct figure figure_joules_within(double j, double half_j);
/* "41.2 W", "236.9 W", "300 W", "1033 W"; "-" where it is unknown (NaN). */
struct figure figure_watts(double w);

/* Columns that UTF-8 text takes; CJK and the like count as one. */
unsigned text_columns(const char *text);
/* The text from column `at` on, where the line stands already, in lines of TEXT_COLUMNS
 * that begin at column `indent`; broken at blanks alone, so that a long word may stand
 * out.  Ends the line.
 */
void text_wrap(FILE *to, unsigned at, unsigned indent, const char *text);

#endif
