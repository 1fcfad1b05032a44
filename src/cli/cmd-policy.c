#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/options.h"
#include "cli/policy-limits.h"
#include "cli/policy-show.h"
#include "io/file.h"
#include "policy/file.h"

struct findings {
    size_t errors, warnings;
};

static void on_finding(bool error, const char *text, void *user)
{
    struct findings *f = user;

    cli_say("policy: %s%s", error ? "" : "warning: ", text);
    f->errors += error;
    f->warnings += !error;
}

/* The requests of the rules, one line each. */
static void print_rule(const struct policy_rule *rule)
{
    char cap[POLICY_CAP_TEXT], goal[GOAL_TEXT_MAX];

    if (rule->has_goal)
        printf("rule %s: goal %s, priority %d", rule->name, goal_text(&rule->goal, goal),
               rule->priority);
    else
        printf("rule %s: %s %s", rule->name, rule->asks.hard ? "hard" : "soft",
               policy_cap_text(&rule->asks.cap, cap));
    if (rule->dry_run)
        printf(", dry run");
    printf("\n");
}

/* Whether a rule reads the signal. */
static bool is_read(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->reads.n; i++)
        if (strcmp(p->catalogue->signal[p->reads.read[i].signal].name, name) == 0)
            return true;
    return false;
}

/* The signals of rules that have a source in the file: only the daemon reads sources, and
 * only those of the policy in force.
 */
static void print_sources(const struct policy_file *f)
{
    for (size_t i = 0; i < f->sources.n; i++) {
        const struct signal_source *s = &f->sources.source[i];
        const char *from = s->file[0] ? s->file : s->socket;
        if (from[0] && is_read(&f->policy, s->decl.name))
            printf("  %s: check does not read %s; the value is the daemon's (underwatt "
                   "signal list)\n",
                   s->decl.name, from);
    }
}

static void print_summary(const struct cli_env *env, const struct policy_file *f)
{
    const struct policy *p = &f->policy;
    const char *between = "signals read: ";

    for (size_t i = 0; i < p->n_presets; i++)
        printf("%s%s %g %%", i ? ", " : "presets: ", p->preset[i].name,
               100 * p->preset[i].share);
    printf("\n");
    for (size_t i = 0; i < p->n_classes; i++)
        printf("class %s\n", p->cls[i].name);
    for (size_t i = 0; i < p->n_rules; i++)
        print_rule(&p->rule[i]);
    for (size_t i = 0; i < p->catalogue->n; i++) {
        if (is_read(p, p->catalogue->signal[i].name)) {
            printf("%s%s", between, p->catalogue->signal[i].name);
            between = ", ";
        }
    }
    if (p->reads.n)
        printf("\n");
    policy_limits_print(env, &f->limits);
    int n_limits = (f->limits.temperature_c > 0) + (f->limits.rise_w_s > 0);
    printf("%zu rule%s, %zu class%s, %d limit%s\n", p->n_rules,
           p->n_rules == 1 ? "" : "s", p->n_classes, p->n_classes == 1 ? "" : "es",
           n_limits, n_limits == 1 ? "" : "s");
}

static int check(const struct cli_env *env, const char *path)
{
    auto_(policy_file_free) struct policy_file *f = NULL;
    auto_(mem_free) char *text = NULL;
    struct findings found = {0};
    bool hidden = false;
    size_t len = 0;
    uw_error err = {{0}};

    if (file_check_read(path, &err) < 0)
        return cli_fail(EXIT_USAGE, "policy: check: %s", err.text);
    int r = file_read_shown(path, POLICY_FILE_MAX, &text, &len, &hidden, &err);
    if (r >= 0)
        r = policy_file_read(path, text, len, hidden, &f, &err);
    if (r < 0)
        return cli_fail(
            r == -EFBIG ? EXIT_USAGE : cli_exit_of(r), "policy: %s%s", err.text,
            hidden ? " (its text is not shown: not every user may read it)" : "");
    if (policy_file_check(f, on_finding, &found) > 0)
        return EXIT_USAGE;
    print_summary(env, f);
    (void)fflush(stdout);
    if (!hidden && policy_would(env, text))
        print_sources(f);
    printf("%s: OK\n", path);
    return EXIT_OK;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    static const char *const words[] = {"check", "show", NULL};
    const char *json = NULL;
    const struct opt opts[] = {{"json", 0, "FILE|-",
                                "show: write the result as JSON; - is stdout", opt_output,
                                &json}};
    struct opts_rest rest;

    bool shows = argc > 1 && strcmp(argv[1], "show") == 0; /* options follow the word */
    int code = opts_parse(&cmd_policy, opts, n_elements(opts), argc - shows, argv + shows,
                          &rest);
    if (code != OPTS_GO)
        return code;
    if (shows && rest.argc == 0)
        return policy_show(&cmd_policy, env, json);
    bool checks = !shows && rest.argc > 0 && strcmp(rest.argv[0], "check") == 0;
    if (!shows && !checks && rest.argc > 0)
        return opts_unknown_word(&cmd_policy, rest.argv[0], words);
    if (json && checks)
        return cli_fail(EXIT_USAGE, "policy: --json is an option of show, not of check");
    if (rest.argc == 0 || (checks && rest.argc < 2))
        return opts_missing(&cmd_policy, cmd_policy.args);
    if (shows || rest.argc > 2)
        return opts_unexpected(&cmd_policy, rest.argv[checks ? 2 : 0], cmd_policy.args);
    return check(env, rest.argv[1]);
}

const struct cmd cmd_policy = {
    "policy",
    "check FILE | show [OPTIONS]",
    "Check a policy file, or show what the daemon's rules do",
    run,
};
