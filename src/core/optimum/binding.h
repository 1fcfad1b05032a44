/* Whether a cap has an effect on a board, by the driver's word: the counter of the time
 * for which the power limit held the clock down (nvmlDeviceGetViolationStatus); on a
 * board without one, the reasons for the clock, read many times.  Power alone does not
 * tell: a job may lose time at caps well above its mean power.
 */
#ifndef CORE_OPTIMUM_BINDING_H
#define CORE_OPTIMUM_BINDING_H

#include <stdbool.h>
#include <stdint.h>

enum binding {
    BINDING_UNKNOWN,
    BINDING_NONE,  /* the counter: the limit did not hold the clock down */
    BINDING_CLEAR, /* no counter: it did not in BINDING_READS reads of the reasons */
    BINDING_SEEN,
};

enum {
    BINDING_READINGS = 64,
    BINDING_READS = 50, /* in a window, so that two windows have 100 */
};

/* What one read of a board tells. */
struct binding_read {
    uint64_t at_ns;
    bool counts, reasons; /* which of the two were read */
    uint64_t limited_ns;  /* the counter */
    bool limited;         /* power is one of the reasons */
};

/* The last reads of one board; those within a second are kept as one. */
struct binding_log {
    struct binding_read kept[BINDING_READINGS];
    unsigned reads[BINDING_READINGS]; /* of the reasons, ever, up to this one */
    unsigned n;                       /* ever kept */
};

void binding_add(struct binding_log *log, const struct binding_read *read);
/* From the reads between begin_ns and end_ns, which must span half of that time. */
enum binding binding_within(const struct binding_log *log, uint64_t begin_ns,
                            uint64_t end_ns);
/* Of two boards together, or of two parts of a window: the weaker word. */
enum binding binding_both(enum binding a, enum binding b);

#endif
