/* Times of values as texts; separate from the kinds of sources, so that readers need not
 * link them.
 */
#ifndef SIGNAL_HELD_UTC_H
#define SIGNAL_HELD_UTC_H

#include <stdbool.h>
#include <stdint.h>

#include "io/json.h"

/* A time under this key, null for 0. */
void held_put_utc(struct json_out *o, const char *key, int64_t utc_s);
/* A text with a time of ISO 8601, from 1970 on. */
bool held_read_time(const struct json_value *v, int64_t *ret_utc_s);
/* The time of this key; null: 0; false: not a time. */
bool held_read_utc(const struct json_value *v, const char *key, int64_t *ret);

#endif
