/* Growable arrays with a bound: everything a peer can make us store has one. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* Make room for `need` elements of `size` bytes behind *items (may be NULL),
 * whose capacity *cap is kept here.  0, -ENOMEM, or -E2BIG when need > max;
 * on failure nothing has changed.
 */
int array_reserve(void **items, size_t *cap, size_t need, size_t size, size_t max);

/* array_grow(&v, &cap, n, max): room for one element more than n. */
#define array_grow(p_items, p_cap, n, max)                                            \
    __extension__({                                                                   \
        void *items_ = *(p_items);                                                    \
        int r_ = array_reserve(&items_, (p_cap), (n) + 1, sizeof **(p_items), (max)); \
        *(p_items) = items_;                                                          \
        r_;                                                                           \
    })

#endif
