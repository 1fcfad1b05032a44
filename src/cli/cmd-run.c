#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/utf8.h"
#include "cli/job-run.h"
#include "jobs/label.h"

/* The default goal: bounds the slowdown, and sets no cap if the slowdown cannot be
 * measured.
 */
#define RUN_GOAL "slowdown:1.05"

static int opt_label(const char *text, void *ret, uw_error *err)
{
    struct job_labels *l = ret;
    const char *equals = strchr(text, '=');
    size_t key = equals ? (size_t)(equals - text) : 0;

    if (!utf8_is_plain(text))
        return fail(err, -EINVAL, "the value has a character that is not printable");
    if (!equals || !label_key_valid(text, key))
        return fail(err, -EINVAL, "'%.40s' is not KEY=VALUE (KEY: " LABEL_KEY_FORM ")",
                    text, LABEL_KEY - 1);
    if (strlen(equals + 1) >= LABEL_VALUE)
        return fail(err, -ERANGE, "the value of '%.*s' has %zu bytes, %d at most",
                    (int)key, text, strlen(equals + 1), LABEL_VALUE - 1);
    if (l->n == LABELS_MAX)
        return fail(err, -ERANGE, "'%s': more than %d labels", text, LABELS_MAX);
    memcpy(l->label[l->n].key, text, key);
    (void)snprintf(l->label[l->n++].value, LABEL_VALUE, "%s", equals + 1);
    return 0;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct job_run j = {.cmd = &cmd_run, .env = env, .boards = env->boards};
    struct goal goal = {.param = -1};
    struct opt_time window = {.least_ns = 1 * NS_PER_S, .most_ns = 600 * NS_PER_S};
    const struct opt opts[] = {
        {"goal", 'g', "GOAL", "find and hold the best cap: " GOAL_FORMS " (" RUN_GOAL ")",
         opt_goal, &goal},
        {"cap", 'c', "W|N%", "hold this cap: watts, or percent of the default limit",
         opt_cap, &j.cap},
        {"preset", 0, "NAME",
         "hold a named share of the default limit: aggressive, balanced, minimal, or one "
         "of the daemon's policy",
         opt_name, &j.preset},
        {"window", 0, "TIME", "length of a measuring window (10 s)", opt_time, &window},
        {"count-launches", 0, NULL,
         "where CMD reports no steps: count the kernels that it launches", opt_flag,
         &j.count_launches},
        JOB_RUN_OPTS(j),
        {"name", 0, "NAME", "name of the job (CMD's name)", opt_name, &j.name},
        {"label", 0, "KEY=VALUE", "a label of the job, for reports; may be repeated",
         opt_label, &j.labels},
        {"class", 0, "NAME", "class of the daemon's settings for caps", opt_name, &j.cls},
        {"no-history", 0, NULL, "neither use nor store results of other runs", opt_flag,
         &j.no_history},
        {"local", 0, NULL, "do not use the daemon, even if it answers", opt_flag,
         &j.local},
    };
    struct opts_rest rest;

    int r = opts_parse(&cmd_run, opts, n_elements(opts), argc, argv, &rest);
    if (r != OPTS_GO)
        return r;
    bool has_goal = goal.param >= 0, has_cap = j.cap.mw > 0 || j.cap.percent > 0;
    if (j.preset && (has_goal || has_cap))
        return cli_fail(EXIT_USAGE, "run: --preset and %s exclude each other",
                        has_goal ? "--goal" : "--cap");
    if (has_goal && has_cap)
        return cli_fail(EXIT_USAGE,
                        "run: --goal (search a cap) and --cap (use this one) exclude "
                        "each other");
    if (!has_goal && !has_cap && !j.preset)
        has_goal = j.goal_by_default = goal_parse(RUN_GOAL, &goal, NULL) == 0;
    if (j.name && strlen(j.name) >= JOB_NAME)
        return cli_fail(EXIT_USAGE, "run: --name: '%.40s' has %zu bytes, %d at most",
                        j.name, strlen(j.name), JOB_NAME - 1);
    j.caps = has_goal ? JOB_CAPS_SEARCH : JOB_CAPS_NAMED;
    j.goal = goal;
    j.window_s = s_of_ns(window.ns);
    return job_run(&j, &rest);
}

const struct cmd cmd_run = {
    "run",
    "[--goal GOAL | --cap W|N% | --preset NAME] [OPTIONS] -- CMD [ARG…]",
    "Run CMD, and find and hold its best power cap, or hold a given one",
    run,
};
