/* Gap checks: while a searched cap is held, a few windows are measured in gaps between
 * the measured caps (core/optimum/gap-probe.h).  Pure.
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

/* Call after each window of the hold; window_s: the shortest window of the hold.  Returns
 * the value of gap_probes_allow(); 0: no check is due.
 */
double gap_check_allows(const struct gap_check *g, const struct savings *s,
                        double window_s);
void gap_check_begin(struct gap_check *g, unsigned windows, uint64_t now_ns);
/* Ends the check under way. */
void gap_check_end(struct gap_check *g, unsigned windows, uint64_t now_ns);
/* The job has changed: resets the checks. */
void gap_check_forget(struct gap_check *g);

#endif
