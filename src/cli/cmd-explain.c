#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/names.h"
#include "base/units.h"
#include "cli/daemon.h"
#include "cli/figures.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/take.h"

static struct figure watts(double w)
{
    return isnan(w) ? (struct figure){"unknown"} : figure_watts(w);
}

/* The text is wrapped below its own first column, which follows head. */
static void print_line(const char *head, const char *text)
{
    unsigned at = text_columns(head);

    (void)fputs(head, stdout);
    text_wrap(stdout, at, at, text);
}

static struct figure at_most(const struct json_value *claim)
{
    struct figure t;
    uint64_t mhz = take_u64(claim, "clock_mhz");

    if (!mhz)
        return watts(take_mw(claim, "cap_mw"));
    (void)snprintf(t.t, sizeof t.t, "%llu MHz", (unsigned long long)mhz);
    return t;
}

static void print_claims(const struct json_value *claims)
{
    if (json_count(claims) == 0) {
        printf("  claims     none\n");
        return;
    }
    printf("  claims     at most   kind   ends        who and why\n");
    for (size_t i = 0; i < json_count(claims); i++) {
        const struct json_value *c = json_at(claims, i);
        const char *why = take_text(c, "why");
        bool job = take_u64(c, "job") > 0;
        char text[400];
        unsigned at = 0;
        double left_s = take_number(c, "left_s");
        if (!isnan(left_s))
            (void)snprintf(text, sizeof text, "in %s", figure_time(left_s).t);
        else /* otherwise it ends with its job, or when it is withdrawn */
            (void)snprintf(text, sizeof text, "%s", job ? "with job" : "open");
        at = (unsigned)printf("    %s %-4llu %9s   %-5s  %-10s  ",
                              take_bool(c, "wins") ? ">" : " ",
                              (unsigned long long)take_u64(c, "id"), at_most(c).t,
                              take_text(c, "kind"), text);
        (void)snprintf(text, sizeof text, "%.150s%s%.240s", take_text(c, "who"),
                       *why ? ": " : "", why);
        text_wrap(stdout, at, at, text);
        const char *state = take_text(c, "state");
        if (*state && take_claim_status(c) != CAPS_MET)
            print_line("           ", state);
    }
}

/* "12 alice: edp: holds 184 W" */
static void print_jobs(const struct json_value *jobs)
{
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json_value *j = json_at(jobs, i);
        const char *goal = take_text(j, "goal");
        char who[80], text[400], state[250];
        take_released(j, "state", state, sizeof state);
        if (!*state)
            (void)snprintf(state, sizeof state, "%s",
                           take_bool(j, "cap_held") ? "holds its cap" : "measured only");
        take_owner(j, who, sizeof who);
        (void)snprintf(text, sizeof text, "%llu %s: %s%s%.250s",
                       (unsigned long long)take_u64(j, "id"), who, goal,
                       *goal ? ": " : "", state);
        print_line(i == 0 ? "  jobs       " : "             ", text);
    }
}

static void print_withdrawn(const struct json_value *lost)
{
    const char *text = take_text(lost, "text");
    char head[80];

    (void)snprintf(head, sizeof head, "  withdrawn  %s  ", take_text(lost, "utc"));
    if (*text)
        print_line(head, text);
}

/* The position on the ramp, while the ramp moves. */
static void print_ramp(const struct json_value *v)
{
    const struct json_value *cap = json_get(v, "cap");
    double at = take_mw(cap, "ramp_mw"), target = take_mw(cap, "target_mw");
    double rate = take_number(cap, "ramp_w_s");

    if (!take_bool(cap, "ramping") || isnan(at) || isnan(target))
        return;
    printf("  ramp       at %s on the way to %s", watts(at).t, watts(target).t);
    if (rate > 0)
        printf(", %.3g W a second, %.0f s to go", rate, (at - target) / rate);
    printf("\n");
}

/* The SM clock of a board whose clock can be locked. */
static void print_clock(const struct json_value *clock, bool unrestored)
{
    uint64_t locked = take_u64(clock, "locked_mhz");
    const char *text = take_text(clock, "text");
    int at;

    if (!take_bool(clock, "on"))
        return;
    if (locked)
        at = printf("  clock      locked to at most %llu MHz%s; ",
                    (unsigned long long)locked,
                    take_bool(clock, "ramping") ? ", on the way down" : "");
    else
        at = printf("  clock      not locked by Underwatt%s; ",
                    unrestored ? " (not confirmed)" : "");
    text_wrap(stdout, (unsigned)at, 13, take_text(clock, "why"));
    if (*text)
        print_line("             ", text);
}

static void print_others(const struct json_value *v)
{
    static const char *const words[CAPS_CAUSES] = {
        [CAPS_CAUSE_OTHER] = "another actor",
        [CAPS_CAUSE_DRIVER] = "a driver reload",
        [CAPS_CAUSE_PERSISTENCE] = "persistence mode off",
        [CAPS_CAUSE_THERMAL] = "heat",
        [CAPS_CAUSE_BOARD] = "board management",
    };
    const struct json_value *others = json_get(v, "other_writers");
    bool any = false;

    for (unsigned i = 0; i < CAPS_CAUSES; i++) {
        uint64_t n = take_u64(others, names_word(NAMES_CAP_CAUSE, i));
        if (n > 0)
            printf("%s %llu by %s",
                   any ? "," : "  changed    from outside:", (unsigned long long)n,
                   words[i]);
        any |= n > 0;
    }
    if (any)
        printf("\n");
}

static void print_original(const struct json_value *v)
{
    const struct json_value *bounds = json_get(v, "bounds");
    bool known = !json_get(v, "original_known") || /* an older daemon */
                 take_bool(v, "original_known");
    char text[200];

    (void)snprintf(text, sizeof text, "%s%s, board %s to %s, default %s",
                   watts(take_mw(bounds, "original_mw")).t,
                   known ? "" : " (the limit found, not confirmed yet)",
                   watts(take_mw(bounds, "min_mw")).t, watts(take_mw(bounds, "max_mw")).t,
                   watts(take_mw(bounds, "default_mw")).t);
    print_line("  original   ", text);
}

static void print_board(const struct json_value *v)
{
    const struct json_value *cap = json_get(v, "cap"), *bounds = json_get(v, "bounds");
    const struct json_value *cls = json_get(v, "class");
    char state[240];

    printf("GPU %llu  %s%s\n", (unsigned long long)take_u64(v, "gpu"),
           take_text(v, "uuid"),
           take_bool(v, "dry_run") ? "  (dry run: nothing is written)" : "");
    printf("  in force   %s\n", watts(take_mw(v, "enforced_mw")).t);
    print_line("  target     ", take_text(cap, "why"));
    print_ramp(v);
    print_claims(json_get(v, "claims"));
    print_jobs(json_get(v, "jobs"));
    if (json_get(v, "withdrawn"))
        print_withdrawn(json_get(v, "withdrawn"));
    printf("  floor      %s", isnan(take_mw(v, "floor_mw"))
                                  ? "not known yet"
                                  : watts(take_mw(v, "floor_mw")).t);
    printf(" (%.0f %% of the demand)\n", 100 * take_number(cls, "floor"));
    print_original(v);
    if (take_mw(bounds, "lowest_mw") > take_mw(bounds, "min_mw") ||
        take_mw(bounds, "highest_mw") < take_mw(bounds, "max_mw"))
        printf("             root's range %s to %s\n",
               watts(take_mw(bounds, "lowest_mw")).t,
               watts(take_mw(bounds, "highest_mw")).t);
    if (json_get(v, "clock"))
        print_clock(json_get(v, "clock"), take_bool(v, "unrestored"));
    take_cap_state(cap, state, sizeof state);
    print_line("  state      ", state);
    print_others(v);
}

static int explain(struct nodes *nodes, const char *board, const char *json)
{
    auto_(json_free) struct json *doc = NULL;
    char path[160];
    uw_error err = {""};

    if (!daemon_is_board(board))
        return cli_fail(EXIT_USAGE, "explain: '%s' is not the index or UUID of a GPU",
                        board);
    (void)snprintf(path, sizeof path, "/v1/gpus/%s/explain", board);
    int r = nodes_get(nodes, path, json, &doc, &err);
    if (r == -ENOENT && nodes_are_own(nodes))
        return cli_fail(EXIT_FAIL,
                        "explain: no daemon answers, and no command of yours uses GPU %s",
                        board);
    if (r < 0)
        return cli_fail(r == -ENOENT ? EXIT_USAGE : cli_exit_of(r), "explain: %s",
                        err.text);
    if (!json || strcmp(json, "-") != 0)
        print_board(json_root(doc));
    return EXIT_OK;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    const char *boards = env->boards, *json = NULL;
    auto_(nodes_free) struct nodes *nodes = NULL;
    const struct opt opts[] = {
        OPT_JSON(&json),
        OPT_BOARDS(&boards),
    };
    struct opts_rest rest;

    int code = opts_parse(&cmd_explain, opts, n_elements(opts), argc, argv, &rest);
    if (code != OPTS_GO)
        return code;
    if (rest.argc == 0)
        return opts_missing(&cmd_explain, cmd_explain.args);
    if (rest.argc > 1)
        return opts_unexpected(&cmd_explain, rest.argv[1], cmd_explain.args);
    code = nodes_need(&cmd_explain, env, boards, &nodes);
    return code == EXIT_OK ? explain(nodes, rest.argv[0], json) : code;
}

const struct cmd cmd_explain = {
    "explain",
    "[OPTIONS] GPU",
    "Show why a board's cap is what it is: claims, winner, floor, ramp",
    run,
};
