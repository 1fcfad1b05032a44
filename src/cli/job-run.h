/* Parts that `measure` and `run` share: the loop, the live line, signals, the report. */
#ifndef CLI_JOB_RUN_H
#define CLI_JOB_RUN_H

#include <stdio.h>

#include "cli/cmd.h"
#include "cli/inject.h"
#include "cli/options.h"
#include "jobs/roster.h"
#include "local/session.h"

struct job_run {
    const struct cmd *cmd;
    const struct cli_env *env;
    const char *boards, *gpus, *json, *report;
    bool quiet;
    double carbon_g_per_kwh; /* 0: unknown */
    double price_per_kwh;
    const char *currency;
    /* for session_opts */
    enum session_caps caps;
    struct goal goal;
    struct cap_arg cap;
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

#define JOB_RUN_OPTS(j)                                                               \
    OPT_GPUS(&(j).gpus), OPT_JSON(&(j).json), OPT_BOARDS(&(j).boards),                \
        {"report", 0,          "FILE", "write the report there instead of to stderr", \
         opt_text, &(j).report},                                                      \
        {"quiet",  'q',                                                               \
         NULL,     "nothing on stderr: no live line, no notes, no report",            \
         opt_flag, &(j).quiet},                                                       \
        {"carbon",   0,                                                               \
         "G",        "the grid's gCO2e per kWh, for the report",                      \
         opt_double, &(j).carbon_g_per_kwh},                                          \
    {                                                                                 \
        "price", 0, "P", "price of a kWh, for the report", opt_double,                \
            &(j).price_per_kwh                                                        \
    }

/* Runs CMD (rest->argv); the command's exit code. */
int job_run(struct job_run *j, const struct opts_rest *rest);

/* Writes the requested reports. */
void job_reports(struct job_run *j, const struct session_result *result,
                 const char *const *argv);
/* The report as text and as JSON: cli/job-report.c. */
void job_report_text(const struct job_run *j, const struct session_result *r, FILE *to);
int job_report_json(const struct job_run *j, const struct session_result *r,
                    const char *const *argv, const char *path, uw_error *err);

#endif
