#include <stdlib.h>
#include <string.h>

#include "core/meter/state.h"

/* Copies room entries of `size` bytes, including the unused ones. */
static void *copy_of(const void *items, size_t room, size_t size)
{
    void *copy = malloc(room * size);

    if (copy)
        memcpy(copy, items, room * size);
    return copy;
}

struct meter *meter_clone(const struct meter *m)
{
    struct meter *copy = malloc(sizeof *copy);

    if (!copy)
        return NULL;
    memcpy(copy, m, sizeof *copy);
    copy->c.p = copy_of(m->c.p, m->c.at.room, sizeof *m->c.p);
    copy->r.p = copy_of(m->r.p, m->r.at.room, sizeof *m->r.p);
    copy->ring = copy_of(m->ring, m->at.room, sizeof *m->ring);
    copy->chunks = copy_of(m->chunks, m->chunks_room, sizeof *m->chunks);
    if (!copy->c.p || !copy->r.p || !copy->ring || !copy->chunks) {
        meter_free(copy);
        return NULL;
    }
    return copy;
}
