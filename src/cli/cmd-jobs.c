/* `underwatt jobs`: the daemon's jobs, how their searches stand, what they have saved. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/take.h"

struct jobs {
    const char *nvml, *json;
    bool all;
};

struct cell {
    char t[96];
};

static struct cell time_of(double s)
{
    struct cell c = {"-"};

    if (s >= 36000)
        (void)snprintf(c.t, sizeof c.t, "%.1f h", s / 3600);
    else if (s >= 600)
        (void)snprintf(c.t, sizeof c.t, "%.0f min", s / 60);
    else if (!isnan(s))
        (void)snprintf(c.t, sizeof c.t, "%.0f s", s);
    return c;
}

static struct cell energy_of(double j)
{
    struct cell c = {"-"};

    if (j >= 3.6e6)
        (void)snprintf(c.t, sizeof c.t, "%.4g kWh", j / 3.6e6);
    else if (!isnan(j))
        (void)snprintf(c.t, sizeof c.t, "%.4g kJ", j / 1e3);
    return c;
}

/* "18.2 +- 1.1 %, time x 1.04": of the energy at the original cap. */
static struct cell saved_of(const struct json_value *search)
{
    const struct json_value *s = json_get(search, "saved");
    double fraction = take_number(s, "fraction");
    struct cell c = {"-"};

    if (!isnan(fraction))
        (void)snprintf(c.t, sizeof c.t, "%.1f ± %.1f %%, time x %.3f", 100 * fraction,
                       100 * take_number(s, "fraction_half"), take_number(s, "slowdown"));
    return c;
}

static struct cell cap_of(const struct json_value *search)
{
    double w = take_mw(search, "cap_mw");
    struct cell c = {"-"};

    if (!isnan(w))
        (void)snprintf(c.t, sizeof c.t, "%.6g W", w);
    return c;
}

/* Names of other people's jobs are not told. */
static struct cell name_of(const struct json_value *job)
{
    const char *name = take_text(job, "name"), *user = take_text(job, "user");
    struct cell c;

    if (*user)
        (void)snprintf(c.t, sizeof c.t, "%.20s", user);
    else
        (void)snprintf(c.t, sizeof c.t, "uid %" PRIu64, take_u64(job, "uid"));
    if (*name) {
        size_t n = strlen(c.t);
        (void)snprintf(c.t + n, sizeof c.t - n, ": %.24s", name);
    }
    return c;
}

static void print_job(const struct json_value *job)
{
    const struct json_value *search = json_get(job, "search");
    const char *state = take_text(search, "state"), *goal = take_text(search, "goal");
    char boards[64];

    take_boards(json_get(job, "gpus"), boards, sizeof boards);
    printf("%-5" PRIu64 " %-24.46s %-7s %8s %11s %8" PRIu64 "  %-12s %-8s %-30s %s\n",
           take_u64(job, "id"), name_of(job).t, boards,
           time_of(take_number(job, "time_s")).t,
           energy_of(take_number(job, "energy_j")).t, take_u64(job, "steps"),
           *goal    ? goal
           : *state ? "cap by name"
                    : "-",
           cap_of(search).t, saved_of(search).t,
           !take_bool(job, "running") ? "over"
           : *state                   ? state
                                      : "runs");
}

static void print_jobs(const struct json_value *root, bool all)
{
    const struct json_value *jobs = json_get(root, "jobs");
    size_t shown = 0;

    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json_value *job = json_at(jobs, i);
        if (!all && !take_bool(job, "running"))
            continue;
        if (shown++ == 0)
            printf("%-5s %-24s %-7s %8s %11s %8s  %-12s %-8s %-30s %s\n", "JOB",
                   "USER: NAME", "GPUS", "TIME", "ENERGY", "STEPS", "GOAL", "CAP",
                   "SAVED", "STATE");
        print_job(job);
    }
    if (shown == 0)
        printf("no job%s\n", all ? "" : " runs");
    else if (take_bool(root, "simulated"))
        printf("(simulated boards)\n");
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct jobs j = {.nvml = env->nvml};
    const struct opt opts[] = {
        {"all", 'a', NULL, "those that have ended, too", opt_flag, &j.all},
        OPT_JSON(&j.json),
        OPT_NVML(&j.nvml),
    };
    auto_(httpc_free) struct httpc *daemon = NULL;
    auto_(json_free) struct json *doc = NULL;
    struct opts_rest rest;
    uw_error err = {""};

    int r = opts_parse(&cmd_jobs, opts, n_elements(opts), argc, argv, &rest);
    if (r == OPTS_GO)
        r = opts_no_more(&cmd_jobs, &rest);
    if (r != OPTS_GO)
        return r;
    r = daemon_need(&cmd_jobs, env, j.nvml, &daemon);
    if (r != EXIT_OK)
        return r;
    r = daemon_get(daemon, "/v1/jobs", j.json, &doc, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "jobs: %s", err.text);
    if (!j.json || strcmp(j.json, "-") != 0)
        print_jobs(json_root(doc), j.all);
    return EXIT_OK;
}

const struct cmd cmd_jobs = {
    "jobs",
    "[OPTIONS]",
    "Show the daemon's jobs: state, goal, best cap, energy, what was saved",
    run,
};
