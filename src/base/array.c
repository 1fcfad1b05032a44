#include "base/array.h"

#include <errno.h>
#include <stdlib.h>

int array_reserve(void **items, size_t *cap, size_t need, size_t size, size_t max)
{
    if (need <= *cap)
        return 0;
    if (need > max)
        return -E2BIG;
    size_t n = *cap ? *cap * 2 : 16;
    if (n < need)
        n = need;
    if (n > max)
        n = max;
    void *p = reallocarray(*items, n, size);
    if (!p)
        return -ENOMEM;
    *items = p;
    *cap = n;
    return 0;
}
