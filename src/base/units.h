/* Parsing of quantities.  Caps are integers in milliwatts, times are integers in
 * nanoseconds; measured and modelled values are doubles in W, J, s.
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define MW_PER_W 1000u

static inline double s_of_ns(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static inline double w_of_mw(uint32_t mw)
{
    return (double)mw * 1e-3;
}

/* Signed difference b - a in seconds. */
static inline double s_between(uint64_t a_ns, uint64_t b_ns)
{
    return (double)(int64_t)(b_ns - a_ns) * 1e-9;
}

/* Seconds and watts to rounded integers; negative values and NaN give 0. */
uint64_t ns_of_s(double s);
uint32_t mw_of_w(double w);

/* All parse_… functions: the whole text must match (blanks at the ends are allowed), else
 * -EINVAL (wrong form) or -ERANGE (too large, too small) with a text that quotes the
 * input; *ret is written only on success.
 */
int parse_u64(const char *text, uint64_t *ret, uw_error *err);
int parse_i64(const char *text, int64_t *ret, uw_error *err);
/* Finite decimal number with a decimal point, independent of the locale. */
int parse_double(const char *text, double *ret, uw_error *err);
/* "300 W", "300W", "0.3 kW", "300000 mW". The unit is required. */
int parse_power(const char *text, uint32_t *ret_mw, uw_error *err);
/* "5 s", "500 ms", "2 min", "10m" (minutes), "1 hour", "10 us"; "1h30m", "2 d 4 h". Units
 * are required.  -ERANGE: below 0, or above DURATION_MAX_S.
 */
#define DURATION_MAX_S 3155760000 /* 100 years */
int parse_duration(const char *text, uint64_t *ret_ns, uw_error *err);

/* "0.30", or "0.30 EUR": a currency is three letters, as in ISO 4217.  ret_currency gets
 * them as capitals, ended with NUL; "": not named.
 */
enum { CURRENCY = 4 };
int parse_price(const char *text, double *ret_per_kwh, char ret_currency[CURRENCY],
                uw_error *err);
bool is_iso_currency(const char *text);

/* "1200 MHz", "1.2 GHz", rounded to MHz.  The unit is required. */
int parse_clock(const char *text, uint32_t *ret_mhz, uw_error *err);

/* A measured quantity that may be unknown. */
struct maybe {
    bool known;
    double v;
};

/* A cap on a command line: "250" or "250 W" (watts), or "85%" of a limit that the caller
 * knows.  One of the two is set, the other is 0.
 */
enum { CAP_TYPED = 24 };
struct cap_arg {
    uint32_t mw;
    double percent;
    char typed[CAP_TYPED]; /* as it was typed, for messages; "": unknown, or longer */
};
int parse_cap(const char *text, struct cap_arg *ret, uw_error *err);
/* In files and requests: parse_cap() with the unit required: "250 W" or "85 %". */
int parse_limit(const char *text, struct cap_arg *ret, uw_error *err);

/* Watts for a message: as they were typed and, where that says it otherwise, as they were
 * understood: "'300W'", "'0.3kW' (300 W)", "'85%' (255 W)"; typed NULL or "": "300 W".
 */
enum { WATTS_TEXT = 64 };
const char *watts_typed(const char *typed, uint32_t mw, char ret[WATTS_TEXT]);
/* ": did you mean '80%'?", where a cap under low_mw was typed as a number of at most 100
 * without a unit, or as "80 W", to which `run` completes it for a node; else "".
 */
enum { PERCENT_HINT = 40 };
const char *percent_hint(const char *typed, uint32_t mw, uint32_t low_mw,
                         char ret[PERCENT_HINT]);
/* "'80' is outside 150..300 W", what (", the range for users"; or ""), percent_hint(). */
enum { CAP_OUTSIDE_TEXT = 200 };
const char *cap_outside(const struct cap_arg *cap, uint32_t mw, uint32_t low_mw,
                        uint32_t high_mw, const char *what, char ret[CAP_OUTSIDE_TEXT]);

#endif
