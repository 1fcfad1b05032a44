/* Members of a struct that are saved in a job's state, as a table that is used for
 * writing and for reading.
 */
#ifndef TUNER_SAVED_FIELDS_H
#define TUNER_SAVED_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "io/json.h"
#include "underwatt/error.h"

enum saved_type {
    COUNT,  /* uint32_t */
    NUMBER, /* double >= 0 */
    FLAG,   /* bool */
    SUMS,   /* doubles >= 0, saved as an object with the keys "0", "1", "2" etc. */
    SIGNED, /* doubles, likewise */
    OBJECT, /* a struct */
};

struct saved_field {
    const char *key;
    enum saved_type type;
    size_t at;
    const char *since;  /* key without which older states lack this one; or NULL */
    size_t when;        /* a count without which there is nothing to save; 0: always */
    const size_t *sums; /* of SUMS, SIGNED: offsets from at */
    const struct saved_field *fields; /* of OBJECT: its members */
    size_t n;                         /* of sums or fields */
};

void saved_fields_put(struct json_out *o, const struct saved_field *f, size_t n,
                      const void *of);
/* -EINVAL, -ERANGE.  What a state lacks keeps its value. */
int saved_fields_get(const struct json_value *v, const struct saved_field *f, size_t n,
                     void *ret, uw_error *err);
int saved_count_get(const struct json_value *v, const char *key, uint32_t *ret,
                    uw_error *err);

#endif
