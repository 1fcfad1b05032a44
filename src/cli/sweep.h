/* The arguments of `underwatt sweep`, and its parts. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cmd.h"
#include "cli/options.h"
#include "cli/view.h"

struct sweep_args {
    const struct cli_env *env;
    struct opt_watts from, to, step;
    uint64_t runs, seed;
    const char *csv, *json, *svg, *png, *html; /* "-": standard output */
    struct goal goal;   /* marked beside the others; param < 0: slowdown:1.05 */
    bool correct;       /* correct a drift */
    const char *report; /* write the table there */
    bool quiet;
    /* for a sweep of a command */
    const char *gpus, *boards, *state;
    struct opt_time settle;
    /* for a simulated sweep */
    const char *sim, *workload;
    double noise;
};

/* enum exit_code */
int sweep_simulated(const struct sweep_args *args);

/* The same for `sweep -- CMD`; CMD's own exit status if CMD failed. */
int sweep_command(const struct sweep_args *args, const char *const *argv);

/* Refuses boards that the daemon controls: EXIT_OK, or EXIT_BEFORE after a line on
 * stderr.  Where no boards are named yet, their locks refuse them.
 */
int sweep_check_daemon(const struct sweep_args *args);

/* Checks before the first run that pictures can be drawn.  EXIT_FAIL: they cannot. */
int sweep_outputs_check(const struct sweep_args *args);
/* Folds the runs and writes the requested files and the table: to args->report, else to
 * standard output, or to standard error if CMD or a file uses standard output.  noisy: a
 * drift is looked for.  v: all that does not follow from the runs.  EXIT_OK, or EXIT_FAIL
 * after a line for each failed file.
 */
int sweep_show(const struct sweep_args *args, uint32_t default_mw, struct sweep_run *runs,
               size_t n, bool noisy, const struct view *v);

#endif
