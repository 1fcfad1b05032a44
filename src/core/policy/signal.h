/* The catalogue of signals that conditions may read, and the reads of a policy.  Values
 * belong to the caller; nothing here fetches one.  Pure.
 */
#ifndef CORE_POLICY_SIGNAL_H
#define CORE_POLICY_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/unit.h"

enum policy_type {
    POLICY_NUMBER,
    POLICY_TEXT,
    POLICY_TRUTH,
};

/* The series of a signal besides its present value, for functions such as .mean(24 h). */
enum policy_series {
    POLICY_NO_SERIES,
    POLICY_HISTORY,  /* a value now, and those before it */
    POLICY_FORECAST, /* no present value; only future values */
};

/* The scope of a signal: one value for a node, for each board, or for each job. */
enum policy_scope {
    POLICY_OF_NODE,
    POLICY_OF_BOARD,
    POLICY_OF_JOB,
};

/* A text value of a signal, and the word that it is compared as: two words may mean the
 * same.
 */
struct policy_word {
    const char *word, *means;
};

struct policy_signal {
    const char *name; /* "carbon", "job.phase" */
    enum policy_type type;
    enum policy_scope scope;
    enum policy_series series;
    bool moves;       /* caps change the value: power, temperature, clocks */
    const char *unit; /* "g/kWh"; NULL: plain numbers, or no number */
    const struct policy_word *words; /* of a text: ends with word NULL; NULL: any text */
};

struct policy_catalogue {
    const struct policy_signal *signal;
    size_t n;
};

/* -1: no such signal. */
int policy_signal_find(const struct policy_catalogue *c, const char *name, size_t len);
/* The unit, and the factor by which a value in this unit is multiplied.  false: the
 * catalogue has an invalid unit.
 */
bool policy_signal_unit(const struct policy_signal *s, struct policy_unit *ret,
                        double *ret_factor);

/* The function applied to a series. */
enum policy_fold {
    POLICY_NOW, /* the value now, no series */
    POLICY_MEAN,
    POLICY_MIN,
    POLICY_MAX,
    POLICY_PERCENTILE,
};

enum { POLICY_READS_MAX = 256 };

/* The slots of values that the conditions of a policy read, each once. */
struct policy_read {
    uint16_t signal; /* of the catalogue */
    enum policy_fold fold;
    double percent;  /* POLICY_PERCENTILE: 0..100 */
    double window_s; /* window of a series; 0: POLICY_NOW */
};
struct policy_reads {
    struct policy_read read[POLICY_READS_MAX];
    size_t n;
};

/* The slot of this read, new or existing; -1: no room. */
int policy_reads_add(struct policy_reads *r, const struct policy_read *read);

/* A value of a slot at an instant. */
struct policy_value {
    union {
        double
            number; /* in watts, seconds, …: policy_signal_unit(); °C; per cent / 100 */
        const char *text; /* borrowed while it is a value */
        bool truth;
    };
    uint64_t until_ns; /* the value is unknown from then on; UINT64_MAX: valid until it
                          changes */
    bool known;
};

#endif
