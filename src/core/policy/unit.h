/* Units of the quantities in conditions.  A unit is a product of powers of watt, second,
 * gram, kelvin and one currency; values are kept in these.  A temperature in °C is a
 * point: only its difference to another one, in K, can be added and scaled.  Pure.
 */
#ifndef CORE_POLICY_UNIT_H
#define CORE_POLICY_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum policy_base {
    POLICY_WATT,
    POLICY_SECOND,
    POLICY_GRAM,
    POLICY_KELVIN,
    POLICY_MONEY,
    POLICY_BASES,
};

struct policy_unit {
    int8_t power[POLICY_BASES]; /* all 0: a plain number */
    bool point;                 /* °C */
    char money[4];              /* "EUR"; "" where its power is 0 */
};

/* Reads the unit at text ("g/kWh", "W", "°C", "%"): the longest one.  *ret_factor: a
 * value in it times this is a value in watts, seconds, ….  Returns its length; 0: there
 * is none.
 */
size_t policy_unit_read(const char *text, size_t len, struct policy_unit *ret,
                        double *ret_factor);

bool policy_unit_same(const struct policy_unit *a, const struct policy_unit *b);
bool policy_unit_is_plain(const struct policy_unit *unit);

/* false: two currencies, a temperature in °C, or powers that no quantity has. */
bool policy_unit_times(const struct policy_unit *a, const struct policy_unit *b,
                       struct policy_unit *ret);
bool policy_unit_over(const struct policy_unit *a, const struct policy_unit *b,
                      struct policy_unit *ret);

/* "g/kWh", "W", or "W^2 s".  Returns ret. */
enum { POLICY_UNIT_NAME = 48 };
const char *policy_unit_name(const struct policy_unit *unit, char ret[POLICY_UNIT_NAME]);

/* Units by name, for messages: the i-th, NULL behind the last. */
const char *policy_unit_known(size_t i);

#endif
