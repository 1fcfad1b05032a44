/* A text that grows and is used again: appending remembers its first failure, so that
 * nobody checks each call.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

struct text {
    char *at; /* NUL behind len bytes; NULL before the first byte */
    size_t len, cap;
    int failed; /* the first failure, or 0 */
};
enum { TEXT_MAX = 16 << 20 };

void text_free(struct text *t);  /* what it holds; {0} again */
void text_clear(struct text *t); /* keeps the room */
void text_add(struct text *t, const char *bytes, size_t len);
void text_put(struct text *t, const char *string);
/* Inside double quotes of Prometheus' format: backslash, quote and newline escaped,
 * other control bytes and what is no UTF-8 as U+FFFD.
 */
void text_put_label(struct text *t, const char *value);
void text_put_u64(struct text *t, uint64_t v);
/* Decimal, rounded to so many places (0..6) and without zeros behind; finite values. */
void text_put_fixed(struct text *t, double v, unsigned places);

#endif
