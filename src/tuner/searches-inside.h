/* For the files of searches.h: searches.c runs the searches, searches-state.c writes down
 * and reads back what is known of one.
 */
#ifndef TUNER_SEARCHES_INSIDE_H
#define TUNER_SEARCHES_INSIDE_H

#include "tuner/searches.h"

/* What outlives a tuner: other boards, another daemon. */
struct searches_memory {
    struct savings regime[TUNER_REGIMES_MAX];
    struct tuner_cap cap[TUNER_CAPS_MAX];
    struct tuner_known known; /* points at the two above */
    uint32_t held_mw;         /* 0: none was held */
    char uuid[BOARDS_MAX][96];
    size_t n_uuids; /* of the boards that caps and held_mw are about */
};

/* Takes from a tuner's report what is worth keeping. */
void searches_memory_take(struct searches_memory *m, const struct tuner_report *report);

/* One line of JSON, to be freed. */
int searches_state_write(const struct searches_ask *ask, const struct searches_memory *m,
                         char **ret, uw_error *err);
/* Both are written on success alone; ret_ask->cls points to *ret_cls where it has one. */
int searches_state_read(const char *text, struct searches_ask *ret_ask,
                        struct cap_class *ret_cls, struct searches_memory *ret,
                        uw_error *err);

#endif
