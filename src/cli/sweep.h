/* What `underwatt sweep` was asked for, and its halves. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cmd.h"
#include "cli/options.h"
#include "cli/view.h"

struct sweep_args {
    const struct cli_env *env;
    uint32_t from_mw, to_mw, step_mw;
    uint64_t runs, seed;
    const char *csv, *json, *svg, *png, *html; /* "-": standard output */
    bool correct;                              /* take a drift out */
    bool quiet;
    /* in virtual time */
    const char *sim, *workload;
    double noise;
};

/* enum exit_code */
int sweep_simulated(const struct sweep_args *args);

/* Before anything is measured: can all files be written?  EXIT_USAGE where two want
 * standard output, EXIT_FAIL where a folder is not there or not ours to write.
 */
int sweep_outputs_check(const struct sweep_args *args);
/* Every file asked for, and the table on standard output unless one of them goes
 * there.  EXIT_OK, or EXIT_FAIL after a line about each that could not be written.
 */
int sweep_outputs_write(const struct sweep_args *args, const struct view *v);

#endif
