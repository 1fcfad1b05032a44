#include "core/optimum/binding.h"

void binding_add(struct binding_log *log, uint64_t at_ns, uint64_t limited_ns)
{
    unsigned at = log->n++ % BINDING_READINGS;

    log->at_ns[at] = at_ns;
    log->limited_ns[at] = limited_ns;
}

enum binding binding_within(const struct binding_log *log, uint64_t begin_ns,
                            uint64_t end_ns)
{
    unsigned kept = log->n < BINDING_READINGS ? log->n : BINDING_READINGS;
    uint64_t first_ns = 0, last_ns = 0, limited_ns = 0;
    unsigned n = 0;

    for (unsigned i = log->n - kept; i < log->n; i++) {
        unsigned at = i % BINDING_READINGS;
        if (log->at_ns[at] < begin_ns || log->at_ns[at] > end_ns)
            continue;
        if (n++ == 0) {
            first_ns = log->at_ns[at];
            limited_ns = log->limited_ns[at];
        } else if (log->limited_ns[at] != limited_ns) {
            return BINDING_SEEN;
        }
        last_ns = log->at_ns[at];
    }
    return n > 1 && last_ns - first_ns >= (end_ns - begin_ns) / 2 ? BINDING_NONE
                                                                  : BINDING_UNKNOWN;
}

enum binding binding_both(enum binding a, enum binding b)
{
    if (a == BINDING_SEEN || b == BINDING_SEEN)
        return BINDING_SEEN;
    return a == BINDING_NONE && b == BINDING_NONE ? BINDING_NONE : BINDING_UNKNOWN;
}
