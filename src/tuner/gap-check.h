/* Gap checks: while a searched cap is held, a few windows are measured in gaps between
 * the measured caps (core/optimum/gap-probe.h).  The search itself has the step.
 */
#ifndef TUNER_GAP_CHECK_H
#define TUNER_GAP_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/gap-probe.h"
#include "tuner/savings.h"

struct gap_check {
    struct gap_probes probes; /* made in this regime */
    uint64_t since_ns;        /* begin of the last check */
    unsigned windows;         /* number of windows before it */
};

/* Ends the check under way.  moved: another cap is held now. */
void gap_check_end(struct gap_check *g, unsigned windows, bool moved, uint64_t now_ns);

#endif
