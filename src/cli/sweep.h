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
    const char *report;                        /* the table goes there */
    bool quiet;
    /* of a command */
    const char *gpus, *boards, *state;
    uint64_t settle_ns;
    /* in virtual time */
    const char *sim, *workload;
    double noise;
};

/* enum exit_code */
int sweep_simulated(const struct sweep_args *args);

/* The same for `sweep -- CMD`: an exit_code, or CMD's own where it failed. */
int sweep_command(const struct sweep_args *args, const char *const *argv);

/* A board that the daemon caps is refused, with what to do about it: EXIT_OK, or
 * EXIT_BEFORE after a line.  Where boards are not named yet their locks see to it.
 */
int sweep_check_daemon(const struct sweep_args *args);

/* Before anything is measured: can all files be written?  EXIT_USAGE where two want
 * standard output, EXIT_FAIL where a folder is not there or not ours to write.
 */
int sweep_outputs_check(const struct sweep_args *args);
/* Every file asked for, and the table: in args->report, else on standard output, or
 * on standard error where CMD or one of the files has that.  EXIT_OK, or EXIT_FAIL after
 * a line about each that could not be written.
 */
int sweep_outputs_write(const struct sweep_args *args, const struct view *v);

#endif
