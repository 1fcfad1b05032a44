#include "core/job/shared.h"

void shared_seen(struct shared *s, uint64_t boards, uint64_t now_ns)
{
    for (unsigned i = 0; i < SHARED_BOARDS; i++)
        if (boards >> i & 1)
            s->seen_ns[i] = now_ns;
}

uint64_t shared_boards(const struct shared *s, uint64_t now_ns)
{
    uint64_t ret = 0;

    for (unsigned i = 0; i < SHARED_BOARDS; i++)
        if (s->seen_ns[i] && now_ns - s->seen_ns[i] < SHARED_NS)
            ret |= 1ull << i;
    return ret;
}
