/* The digits of a figure with its uncertainty, for people. */
#ifndef BASE_WITHIN_H
#define BASE_WITHIN_H

#define WITHIN_95 1.96 /* standard errors of half of a 95 % interval */

/* v and half, rounded to the second significant digit of half: "24.5 +- 34.47" is 25 and
 * 34, "1187.3 +- 243" is 1190 and 240.  places: the decimal places of both.
 * half 0, NaN or infinite: v has four significant digits.
 */
struct within {
    double v, half;
    int places;
};
struct within within(double v, double half);

/* "12.13 ± 0.83", of a value and half of its interval; half 0 or unknown: "12.13". */
enum { WITHIN_TEXT = 32 };
const char *within_text(double v, double half, char ret[WITHIN_TEXT]);

#endif
