#include "core/optimum/binding.h"

#include <stddef.h>

#include "base/units.h"

void binding_add(struct binding_log *log, const struct binding_read *read)
{
    const unsigned most = BINDING_READINGS;
    unsigned last = (log->n + most - 1) % most, before = (log->n + most - 2) % most;
    unsigned reads = (log->n > 0 ? log->reads[last] : 0) + read->reasons;
    bool join = log->n > 1 && read->at_ns - log->kept[before].at_ns < NS_PER_S;
    bool limited = read->limited || (join && log->kept[last].limited);
    unsigned at = join ? last : log->n++ % most;

    log->kept[at] = *read;
    log->kept[at].limited = limited;
    log->reads[at] = reads;
}

enum binding binding_within(const struct binding_log *log, uint64_t begin_ns,
                            uint64_t end_ns)
{
    unsigned kept = log->n < BINDING_READINGS ? log->n : BINDING_READINGS;
    const struct binding_read *first = NULL, *last = NULL;
    unsigned from = 0, to = 0;
    bool counts = true;

    for (unsigned i = log->n - kept; i < log->n; i++) {
        unsigned at = i % BINDING_READINGS;
        const struct binding_read *r = &log->kept[at];
        if (r->at_ns < begin_ns || r->at_ns > end_ns)
            continue;
        if (!first) {
            first = r;
            from = log->reads[at];
        }
        counts &= r->counts;
        if (r->limited || (counts && r->limited_ns != first->limited_ns))
            return BINDING_SEEN;
        last = r;
        to = log->reads[at];
    }
    if (!last || last == first || last->at_ns - first->at_ns < (end_ns - begin_ns) / 2)
        return BINDING_UNKNOWN;
    if (counts)
        return BINDING_NONE;
    return to - from >= BINDING_READS ? BINDING_CLEAR : BINDING_UNKNOWN;
}

enum binding binding_both(enum binding a, enum binding b)
{
    if (a == BINDING_SEEN || b == BINDING_SEEN)
        return BINDING_SEEN;
    if (a == BINDING_UNKNOWN || b == BINDING_UNKNOWN)
        return BINDING_UNKNOWN;
    return a == BINDING_CLEAR || b == BINDING_CLEAR ? BINDING_CLEAR : BINDING_NONE;
}
