#include "base/array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "tap.h"

int main(void)
{
    int *v = NULL;
    size_t cap = 0;

    for (int i = 0; i < 100; i++) {
        int r = array_grow(&v, &cap, (size_t)i, 100);
        if (r < 0)
            break;
        v[i] = i;
    }
    ok(cap == 100, "grows to its bound and no further");
    ok(v && v[0] == 0 && v[99] == 99, "keeps what is in it");
    int *before = v;
    is_int(array_grow(&v, &cap, 100, 100), -E2BIG, "one more is refused");
    ok(v == before && cap == 100, "… and nothing changed");
    is_int(array_grow(&v, &cap, SIZE_MAX / 8, SIZE_MAX), -ENOMEM, "no memory is a fault");
    ok(v == before && cap == 100, "… and nothing changed");
    free(v);
    return done();
}
