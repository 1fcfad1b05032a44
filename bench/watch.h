/* A trace put through the phase detector as a daemon would, and what it saw against
 * the events that are known.
 */
#ifndef BENCH_WATCH_H
#define BENCH_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/progress/phases.h"
#include "underwatt/error.h"

/* A known change. */
struct truth {
    double t_s;
    enum phase_kind kind; /* PHASE_UNKNOWN: a word that is not known here */
};

struct truths {
    struct truth *items;
    size_t n, cap;
};

struct sightings {
    struct phase_event *items; /* withdrawn ones too */
    size_t n, cap;
    double hours;       /* length of the trace */
    double tolerance_s; /* two samples or 1 s, whichever is longer */
    /* How long each kind was said, as the one of that moment, and how much of that was
     * right; a change counts as training.
     */
    double said_s[PHASE_KINDS], right_s[PHASE_KINDS];
};

/* Over one trace, or several added up. */
struct score {
    unsigned seen, matched, events, kinds, in_time, withdrawn;
    unsigned of[PHASE_KINDS], found[PHASE_KINDS], named[PHASE_KINDS];
    double delay_s[PHASE_KINDS], delay_sum_s; /* sums over the matched */
    double said_s[PHASE_KINDS], right_s[PHASE_KINDS];
    double hours;
};

/* n > 0 samples; t: what is known of them, may be empty.  -ENOMEM. */
int watch_trace(const struct activity *a, size_t n, const struct truths *t,
                struct sightings *ret, uw_error *err);
void sightings_free(struct sightings *s);

/* CSV with a header that names t_s and kind; rows in order of time. */
int truths_read(const char *path, struct truths *ret, uw_error *err);
void truths_free(struct truths *t);

/* Adds to *s.  Each change is matched with the nearest onset within the tolerance, once;
 * those at the trace's very first sample are not changes and are left out.
 */
void score_add(struct score *s, const struct sightings *seen, const struct truths *t,
               double first_s);

#endif
