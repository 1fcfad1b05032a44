#include "base/within.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { DIGITS = 2, ALONE = 4, PLACES_MAX = 6 };

/* Decimal places of v with `digits` significant ones; below 0: tens, hundreds. */
static int places_of(double v, int digits)
{
    int first = v > 0 ? (int)floor(log10(v)) : 0;
    int places = digits - 1 - first;

    /* 9.96 has two digits as 10 */
    if (v > 0 && round(v * pow(10, places)) >= pow(10, digits))
        places--;
    return places < PLACES_MAX ? places : PLACES_MAX;
}

static double rounded(double v, int places)
{
    double unit = pow(10, -places);

    return round(v / unit) * unit + 0.0; /* -0 is 0 */
}

struct within within(double v, double half)
{
    bool alone = !(half > 0) || !isfinite(half);
    int places = alone ? places_of(fabs(v), ALONE) : places_of(half, DIGITS);

    if (alone && places < 0)
        places = 0; /* the digits before the point stay */
    return (struct within){
        .v = rounded(v, places),
        .half = alone ? half : rounded(half, places),
        .places = places > 0 ? places : 0,
    };
}

const char *within_text(double v, double half, char ret[WITHIN_TEXT])
{
    struct within w = within(v, half);

    if (half > 0 && isfinite(half))
        (void)snprintf(ret, WITHIN_TEXT, "%.*f ± %.*f", w.places, w.v, w.places, w.half);
    else
        (void)snprintf(ret, WITHIN_TEXT, "%.*f", w.places, w.v);
    return ret;
}
