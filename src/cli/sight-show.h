/* What `underwatt carbon`, `price` and `signals` show of signals. */
#ifndef CLI_SIGHT_SHOW_H
#define CLI_SIGHT_SHOW_H

#include "cli/cmd.h"
#include "cli/options.h"
#include "cli/sight.h"

struct sight_opts {
    const char *boards, *socket, *json, *csv; /* NULL: not given */
    uint64_t for_ns;                          /* 0: not given */
};

int opt_job_time(const char *text, void *ret, uw_error *err); /* of --for: for_ns */

/* The options of these commands; o: a struct sight_opts. */
#define SIGHT_OPTIONS(o)                                                                 \
    {"for",        0,                                                                    \
     "TIME",       "with a forecast: the best time to begin a job of this length",       \
     opt_job_time, &(o).for_ns},                                                         \
        {"signals", 0,          "SOCKET", "ask underwatt-signals there, not the daemon", \
         opt_text,  &(o).socket},                                                        \
        {"csv", 0, "FILE|-", "write the series as CSV", opt_output, &(o).csv},           \
        OPT_JSON(&(o).json), OPT_BOARDS(&(o).boards)

/* One signal: its value or its forecast, with a chart; others (a list that ends with
 * NULL) beside it where they are known.  Exit code: EXIT_FAIL where it is unknown.
 */
int sight_one(const struct cmd *cmd, const struct cli_env *env,
              const struct sight_opts *o, const char *name, const char *const *others);
/* All signals, one row each. */
int sight_all(const struct cmd *cmd, const struct cli_env *env,
              const struct sight_opts *o);

/* `underwatt NAME now|forecast`: of the signal that is named as the command. */
int sight_command(const struct cmd *cmd, const struct cli_env *env, int argc, char **argv,
                  const char *const *others);

#endif
