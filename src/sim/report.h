/* Writes a slot of the progress page, as a training program does. */
#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stdint.h>

#include "base/auto.h"
#include "sim/world.h"
#include "underwatt/error.h"
#include "underwatt/progress.h"

struct report;

/* Maps the page and takes the first free slot for pid.  -EINVAL: no progress page
 * of this version; -EUSERS: every slot is taken.
 */
int report_open(const char *path, uint64_t pid, struct report **ret, uw_error *err);
/* The same with a page in memory, which must outlive the report. */
int report_open_page(struct uw_progress_page *page, uint64_t pid, struct report **ret,
                     uw_error *err);
void report_write(struct report *report, uint64_t steps, uint64_t last_step_ns,
                  enum uw_phase phase);
/* The slot keeps its last values. */
void report_close(struct report *report);
DEFINE_AUTO(struct report *, report_close);

#endif
