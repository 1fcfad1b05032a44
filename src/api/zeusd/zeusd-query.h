/* Parses queries as zeusd does: each key by its type; the first error in zeusd's words.
 * Pure.
 */
#ifndef API_ZEUSD_ZEUSD_QUERY_H
#define API_ZEUSD_ZEUSD_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http.h"

enum zq_type { ZQ_TEXT, ZQ_MAY_TEXT, ZQ_BOOL, ZQ_U32 };
struct zq_field {
    const char *name;
    enum zq_type type;
};
struct zq_value {
    bool there;
    const char *text; /* borrowed */
    bool truth;
    uint32_t number;
};
enum { ZQ_FIELDS = 4, ZQ_ERROR = 320 };

/* Parses field i of n into ret[i].  false: error holds zeusd's text after "Query
 * deserialize error: ".
 */
bool zq_read(const struct http_exchange *x, const struct zq_field *field, size_t n,
             struct zq_value *ret, char error[ZQ_ERROR]);

enum { ZQ_IDS = 64 };
/* Parses "0,3, 1" into ascending indices without duplicates.  false: zeusd's error. */
bool zq_ids(const char *text, const char *device, unsigned ret[ZQ_IDS], size_t *ret_n,
            char error[ZQ_ERROR]);

#endif
