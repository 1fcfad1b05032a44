/* Gap checks: while a searched cap is held, a window goes now and then to a gap between
 * the caps that were measured (core/optimum/gap-probe.h).  Pure.
 */
#ifndef TUNER_GAP_CHECK_H
#define TUNER_GAP_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/gap-probe.h"
#include "tuner/savings.h"

struct gap_check {
    struct gap_probes probes; /* made in this regime */
    bool on;                  /* the hold is left for one, since … */
    uint64_t since_ns;
    unsigned windows; /* made before it */
};

/* A window of the hold is told; window_s: its shortest.  As gap_probes_allow(). */
double gap_check_allows(const struct gap_check *g, const struct savings *s,
                        double window_s);
void gap_check_begin(struct gap_check *g, unsigned windows, uint64_t now_ns);
/* A hold goes on, or another begins. */
void gap_check_end(struct gap_check *g, unsigned windows, uint64_t now_ns);
/* The job has changed. */
void gap_check_forget(struct gap_check *g);

#endif
