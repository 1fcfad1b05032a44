/* Each allocation of base/ failed once: what was there stays as it was. */
#include "oom.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/auto.h"

static int op_array(void *user)
{
    auto_(mem_free) int *items = NULL;
    size_t cap = 0;
    (void)user;

    for (int n = 0; n < 1000; n++) {
        const int *before = items;
        size_t cap_before = cap;
        int r = array_grow(&items, &cap, (size_t)n, 2000);
        if (r < 0) {
            for (int i = 0; i < n; i++)
                if (items[i] != i)
                    return -EILSEQ;
            return items == before && cap == cap_before ? r : -EILSEQ;
        }
        items[n] = n;
    }
    return 0;
}

int main(void)
{
    oom_each("array_grow", op_array, NULL);
    return done();
}
