/* A growable, reusable text.  Appending records the first failure, so that callers need
 * not check each call.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

struct text {
    char *at; /* NUL-terminated after len bytes; NULL before the first byte */
    size_t len, cap;
    int failed; /* the first failure, or 0 */
};
enum { TEXT_MAX = 16 << 20 };

void text_free(struct text *t);  /* frees the memory; {0} again */
void text_clear(struct text *t); /* keeps the memory */
void text_add(struct text *t, const char *bytes, size_t len);
void text_put(struct text *t, const char *string);
/* Text inside double quotes in Prometheus' format: backslash, quote and newline are
 * escaped, other control bytes and invalid UTF-8 become U+FFFD.
 */
void text_put_label(struct text *t, const char *value);
void text_put_u64(struct text *t, uint64_t v);
/* Decimal, rounded to `places` (0..6), without trailing zeros; v is finite. */
void text_put_fixed(struct text *t, double v, unsigned places);

#endif
