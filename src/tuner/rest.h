/* A rest at the original cap, because nothing could be measured at the caps tried: each
 * rest without a result in between is twice as long as the one before.
 */
#ifndef TUNER_REST_H
#define TUNER_REST_H

#include <stdbool.h>
#include <stdint.h>

struct rest {
    double length_s; /* of the last rest; 0: none since a window had a result */
    uint64_t until_ns;
};

/* Returns the length in seconds. */
double rest_begin(struct rest *r, uint64_t now_ns);
bool rest_lasts(const struct rest *r, uint64_t now_ns);
/* A window had a result. */
void rest_forget(struct rest *r);

#endif
