/* The known word that a mistyped one most probably stands for, for error messages. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word; /* NULL: none is near; borrowed from nearest_try() */
    size_t distance;
};

/* Compares `known` with the len bytes at `text`, case aside; keeps the nearest.  Near is
 * a word with at most one edit in three letters, at most 3 (an insertion, a removal, a
 * replacement, a swap of neighbours).  {0} before the first call.
 */
void nearest_try(struct nearest *n, const char *text, size_t len, const char *known);

/* ": did you mean 'WORD'?", or "" where none is near.  Returns ret. */
enum { NEAREST_TEXT = 64 };
const char *nearest_text(const struct nearest *n, char ret[NEAREST_TEXT]);
/* The same of a list that ends with NULL. */
const char *nearest_of(const char *text, const char *const *known,
                       char ret[NEAREST_TEXT]);

/* For a word that is none of a fixed set, which ends with NULL: what it is not, what
 * there is, and the nearest: "'chek' is none of: check, show: did you mean 'check'?".  A
 * list that is too long for an uw_error ends with "…".  Returns ret.
 */
enum { NEAREST_NONE = 144 };
const char *nearest_none_of(const char *text, const char *const *known,
                            char ret[NEAREST_NONE]);

#endif
