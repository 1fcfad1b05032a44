/* Internals of searches.h: searches.c runs the searches, searches-state.c saves and reads
 * the state of one.
 */
#ifndef TUNER_SEARCHES_INSIDE_H
#define TUNER_SEARCHES_INSIDE_H

#include "tuner/searches.h"

/* "edp", "cap 250 W", "cap 85% (balanced)". */
void searches_ask_text(const struct searches_ask *ask, char *ret, size_t size);

/* State that outlives a tuner, for other boards or after a restart of the daemon. */
struct searches_memory {
    struct savings regime[TUNER_REGIMES_MAX];
    struct tuner_cap cap[TUNER_CAPS_MAX];
    struct tuner_known known;  /* points at the two above */
    uint32_t held_mw;          /* 0: no cap was held */
    char uuid[BOARDS_MAX][96]; /* boards of cap and held_mw */
    size_t n_uuids;
};

/* Copies the state from a tuner's report. */
void searches_memory_take(struct searches_memory *m, const struct tuner_report *report);

/* *ret: one line of JSON, freed by the caller. */
int searches_state_write(const struct searches_ask *ask, const struct searches_memory *m,
                         char **ret, uw_error *err);
/* Writes the results on success only; ret_ask->cls points to *ret_cls or is NULL. */
int searches_state_read(const char *text, struct searches_ask *ret_ask,
                        struct cap_class *ret_cls, struct searches_memory *ret,
                        uw_error *err);

#endif
