#include <stdlib.h>
#include <string.h>

#include "core/meter/state.h"

struct meter *meter_clone(const struct meter *m)
{
    struct meter *copy = malloc(sizeof *copy);

    if (copy)
        memcpy(copy, m, sizeof *copy); /* plain values through and through */
    return copy;
}
