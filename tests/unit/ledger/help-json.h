/* What tests of reports read of their JSON. */
#ifndef TESTS_LEDGER_HELP_JSON_H
#define TESTS_LEDGER_HELP_JSON_H

#include <math.h>

#include "io/json.h"

/* NaN: null, or no number. */
static double number(const struct json_value *v, const char *key)
{
    double d = (double)NAN;

    (void)json_get_double(v, key, &d, NULL);
    return d;
}

#endif
