/* The arguments of `measure` and `run`, and the options that both have. */
#ifndef CLI_JOB_OPTS_H
#define CLI_JOB_OPTS_H

#include "cli/cmd.h"
#include "cli/inject.h"
#include "cli/job-result.h"
#include "cli/options.h"
#include "jobs/roster.h"

struct job_run {
    const struct cmd *cmd;
    const struct cli_env *env;
    const char *boards, *gpus, *json, *report;
    bool quiet;
    double carbon_g_per_kwh; /* 0: unknown */
    struct opt_price price;
    /* what is wanted */
    enum job_caps caps;
    struct goal goal;
    bool goal_by_default; /* the goal is the default */
    uint64_t
        goal_of; /* at the end: the job in which it ran, whose goal it had; 0: none */
    struct cap_arg cap;
    const char *preset; /* the cap is this preset's share; NULL: none */
    double window_s;
    bool count_launches; /* --count-launches */
    struct inject inject;
    /* for the daemon */
    bool local; /* --local: do not use it */
    bool no_history;
    const char *name, *cls;
    struct job_labels {
        struct label label[LABELS_MAX];
        size_t n;
    } labels;
};

#define JOB_RUN_OPTS(j)                                                          \
    OPT_GPUS(&(j).gpus), OPT_JSON(&(j).json),                                    \
        OPT_BOARDS(&(j).boards), {"report",                                      \
                                  0,                                             \
                                  "FILE|-",                                      \
                                  "write the report there instead of to stderr", \
                                  opt_output,                                    \
                                  &(j).report},                                  \
        {"quiet",  'q',                                                          \
         NULL,     "nothing on stderr: no live line, no notes, no report",       \
         opt_flag, &(j).quiet},                                                  \
        {"carbon",   0,                                                          \
         "G",        "the grid's gCO2e per kWh, for the report",                 \
         opt_carbon, &(j).carbon_g_per_kwh},                                     \
    {                                                                            \
        "price", 0, "P", "price of a kWh, for the report: 0.30 or \"0.30 EUR\"", \
            opt_price, &(j).price                                                \
    }

#endif
