/* A signal from outside: its declaration and its values.  Pure. */
#ifndef SIGNAL_SIGNAL_H
#define SIGNAL_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/signal.h"
#include "underwatt/error.h"

enum {
    SIGNAL_NAME = 64,
    SIGNAL_UNIT = 32,
    SIGNAL_TEXT = 64,
    SIGNAL_AGE_MAX_S = 14 * 86400, /* the longest window of a condition */
    SIGNAL_POINTS = 8192,          /* of a series */
    SIGNAL_DAYS = 14,              /* days kept before and after now */
};

struct signal_value {
    enum policy_type type;
    double number;
    bool truth;
    char text[SIGNAL_TEXT];
};

struct signal_decl {
    char name[SIGNAL_NAME];
    char unit[SIGNAL_UNIT]; /* "": a plain number, or no number */
    enum policy_type type;
    uint64_t age_ns; /* 0: left out */
};

/* The i-th well-known signal, prices in this currency; false: there is none. */
bool signal_well_known(size_t i, const char *currency, struct signal_decl *ret);

/* Completes a declaration of the site from the well-known signals (unit, age limit) and
 * checks it.  Of a well-known signal the unit stays its own, whatever unit its source
 * has.  -EINVAL, -ERANGE; *d is unchanged then.
 */
int signal_declared(struct signal_decl *d, const char *currency, uw_error *err);

/* Whether it is one of those whose values lie in the future: "carbon.forecast". */
bool signal_is_forecast(const char *name);

/* The factor that converts a number in `unit` to the signal's unit.  unit "": already in
 * that unit.  -EINVAL: the unit is of another quantity.
 */
int signal_factor(const struct signal_decl *d, const char *unit, double *ret,
                  uw_error *err);

/* Checks a number in the signal's unit: carbon and carbon.forecast are 0 to
 * SIGNAL_CARBON_MAX g/kWh, as --carbon; other signals have any value, NaN is unknown.
 * -ERANGE.
 */
enum { SIGNAL_CARBON_MAX = 10000 };
int signal_in_range(const char *name, double number, uw_error *err);

/* "420 g/kWh", "-0.02 EUR/kWh", "17", "true", "alert": a value and its unit ("" none). */
int signal_value_read(const char *text, struct signal_value *ret, char unit[SIGNAL_UNIT],
                      uw_error *err);
/* The inverse; returns ret. */
enum { SIGNAL_SHOWN = SIGNAL_TEXT + SIGNAL_UNIT };
const char *signal_value_show(const struct signal_value *v, const char *unit,
                              char ret[SIGNAL_SHOWN]);
bool signal_value_same(const struct signal_value *a, const struct signal_value *b);

/* "a number", "a text", "true or false". */
const char *signal_type_name(enum policy_type type);

#endif
