/* What conditions may read: the catalogue of signals, and what of them a policy reads.
 * Values are the caller's; nothing here asks for one.  Pure.
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

/* The values besides the one now, for .mean(24 h) and the like. */
enum policy_series {
    POLICY_NO_SERIES,
    POLICY_HISTORY,  /* a value now, and those before it */
    POLICY_FORECAST, /* no value now: those to come alone */
};

/* Of whom a signal tells: one value a node, a board, or a job. */
enum policy_scope {
    POLICY_OF_NODE,
    POLICY_OF_BOARD,
    POLICY_OF_JOB,
};

/* A text that a signal may have, and what it is compared as: two words for one thing. */
struct policy_word {
    const char *word, *means;
};

struct policy_signal {
    const char *name; /* "carbon", "job.phase" */
    enum policy_type type;
    enum policy_scope scope;
    enum policy_series series;
    bool moves;                      /* caps change it: power, temperature, clocks */
    const char *unit;                /* "g/kWh"; NULL: plain numbers, or no number */
    const struct policy_word *words; /* of a text: ends with word NULL; NULL: any text */
};

struct policy_catalogue {
    const struct policy_signal *signal;
    size_t n;
};

/* -1: there is none. */
int policy_signal_find(const struct policy_catalogue *c, const char *name, size_t len);
/* Its unit, and the factor by which a value in it is multiplied. false: it has a unit
 * that is none (the catalogue is wrong).
 */
bool policy_signal_unit(const struct policy_signal *s, struct policy_unit *ret,
                        double *ret_factor);

/* What of a series counts. */
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
    double window_s; /* of a series; 0: POLICY_NOW */
};
struct policy_reads {
    struct policy_read read[POLICY_READS_MAX];
    size_t n;
};

/* The slot of this read, new or known; -1: there is no room. */
int policy_reads_add(struct policy_reads *r, const struct policy_read *read);

/* A value of a slot at an instant. */
struct policy_value {
    union {
        double
            number; /* in watts, seconds, …: policy_signal_unit(); °C; per cent / 100 */
        const char *text; /* borrowed while it is a value */
        bool truth;
    };
    uint64_t until_ns; /* unknown from then on; UINT64_MAX: good until it changes */
    bool known;
};

#endif
