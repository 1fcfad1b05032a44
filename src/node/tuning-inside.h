/* For the files of tuning.h: tuning.c runs the searches, tuning-state.c writes down and
 * reads back what is known of one.
 */
#ifndef NODE_TUNING_INSIDE_H
#define NODE_TUNING_INSIDE_H

#include "node/tuning.h"

/* What outlives a tuner: other boards, another daemon. */
struct tuning_memory {
    struct account regime[TUNER_REGIMES_MAX];
    struct tuner_cap cap[TUNER_CAPS_MAX];
    struct tuner_known known; /* points at the two above */
    uint32_t held_mw;         /* 0: none was held */
    char uuid[BOARDS_MAX][96];
    size_t n_uuids; /* of the boards that caps and held_mw are about */
};

/* Takes from a tuner's report what is worth keeping. */
void tuning_memory_take(struct tuning_memory *m, const struct tuner_report *report);

/* One line of JSON, to be freed. */
int tuning_state_write(const struct tuning_ask *ask, const struct tuning_memory *m,
                       char **ret, uw_error *err);
/* Both are written on success alone; ret_ask->cls points to *ret_cls where it has one. */
int tuning_state_read(const char *text, struct tuning_ask *ret_ask,
                      struct cap_class *ret_cls, struct tuning_memory *ret,
                      uw_error *err);

#endif
