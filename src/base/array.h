/* Growable arrays with an upper bound, for data that peers supply. */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

/* Makes room for `need` elements of `size` bytes in *items (may be NULL), whose capacity
 * is *cap. 0, -ENOMEM, or -E2BIG if need > max; nothing changes on failure.
 */
int array_reserve(void **items, size_t *cap, size_t need, size_t size, size_t max);

/* array_grow(&v, &cap, n, max): room for n + 1 elements. */
#define array_grow(p_items, p_cap, n, max)                                            \
    __extension__({                                                                   \
        void *items_ = *(p_items);                                                    \
        int r_ = array_reserve(&items_, (p_cap), (n) + 1, sizeof **(p_items), (max)); \
        *(p_items) = items_;                                                          \
        r_;                                                                           \
    })

#endif
