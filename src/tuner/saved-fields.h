/* Members of a struct that are saved in a job's state, as a table that is used for
 * writing and for reading.
 */
#ifndef TUNER_SAVED_FIELDS_H
#define TUNER_SAVED_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "io/json.h"
#include "underwatt/error.h"

enum saved_type { COUNT, NUMBER, FLAG }; /* uint32_t; double >= 0; bool */

struct saved_field {
    const char *key;
    enum saved_type type;
    size_t at;
    const char *since; /* key without which older states lack this one; or NULL */
};

void saved_fields_put(struct json_out *o, const struct saved_field *f, size_t n,
                      const void *of);
/* -EINVAL, -ERANGE.  What a state lacks keeps its value. */
int saved_fields_get(const struct json_value *v, const struct saved_field *f, size_t n,
                     void *ret, uw_error *err);
int saved_count_get(const struct json_value *v, const char *key, uint32_t *ret,
                    uw_error *err);

#endif
