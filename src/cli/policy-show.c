#include "cli/policy-show.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/take.h"

static void print_reads(const struct json_value *reads)
{
    for (size_t i = 0; i < json_count(reads); i++) {
        const char *text = json_as_text(json_at(reads, i));
        printf("%s%s", i ? ", " : "; reads ", text ? text : "");
    }
}

static void print_board(const struct json_value *b)
{
    uint64_t job = take_u64(b, "job");

    printf("  GPU %" PRIu64, take_u64(b, "gpu"));
    if (job)
        printf(", job %" PRIu64, job);
    printf(": %s since %s: %s", take_text(b, "state"), take_text(b, "since"),
           take_text(b, "text"));
    if (take_bool(b, "on") && take_text(b, "why")[0])
        printf(" (%s)", take_text(b, "why"));
    print_reads(json_get(b, "reads"));
    printf("\n");
}

static void print_rule(const struct json_value *rule)
{
    const struct json_value *boards = json_get(rule, "boards");

    printf("rule %s: %s %s%s\n", take_text(rule, "name"), take_text(rule, "kind"),
           take_text(rule, "asks"), take_bool(rule, "dry_run") ? ", dry run" : "");
    for (size_t i = 0; i < json_count(boards); i++)
        print_board(json_at(boards, i));
}

static void print_presets(const struct json_value *presets)
{
    for (size_t i = 0; i < json_count(presets); i++)
        printf("%s%s %g %%",
               i ? ", " : "presets: ", take_text(json_at(presets, i), "name"),
               100 * take_number(json_at(presets, i), "share"));
    printf("%s", json_count(presets) ? "\n" : "");
}

static void print_classes(const struct json_value *classes)
{
    for (size_t i = 0; i < json_count(classes); i++) {
        const char *name = json_as_text(json_at(classes, i));
        printf("%s%s", i ? ", " : "classes: ", name ? name : "");
    }
    printf("%s", json_count(classes) ? "\n" : "");
}

static void print_limit_board(const struct json_value *b)
{
    uint64_t mw = take_u64(b, "cap_mw");
    double margin_k = take_number(b, "margin_k");

    printf("  GPU %" PRIu64 ": %s since %s: %s", take_u64(b, "gpu"),
           take_text(b, "state"), take_text(b, "since"), take_text(b, "text"));
    if (mw)
        printf("; %.0f W", w_of_mw((uint32_t)mw));
    if (take_text(b, "why")[0])
        printf(" (%s)", take_text(b, "why"));
    if (isfinite(margin_k))
        printf("; %g K below it", margin_k);
    printf("\n");
}

static void print_limit(const struct json_value *limit)
{
    const struct json_value *boards = json_get(limit, "boards");

    printf("limit %s: %s\n", take_text(limit, "name"), take_text(limit, "asks"));
    if (isfinite(take_number(limit, "first_step_w")))
        printf("  the step up when boards that are held low begin: %.0f W; the largest "
               "fall in a second: %.0f W\n",
               take_number(limit, "first_step_w"), take_number(limit, "largest_fall_w"));
    for (size_t i = 0; i < json_count(boards); i++)
        print_limit_board(json_at(boards, i));
}

static void print_policy(const struct json_value *p)
{
    const struct json_value *rules = json_get(p, "rules"),
                            *limits = json_get(p, "limits");
    const char *error = take_text(p, "error"), *file = take_text(p, "file");

    if (*error)
        printf("refused: %s\n", error);
    if (!take_bool(p, "in_force"))
        printf("no policy is in force%s%s\n",
               *error  ? ""
               : *file ? ": there is no "
                       : ": policy.file is empty",
               *error ? "" : file);
    print_presets(json_get(p, "presets"));
    print_classes(json_get(p, "classes"));
    for (size_t i = 0; i < json_count(rules); i++)
        print_rule(json_at(rules, i));
    for (size_t i = 0; i < json_count(limits); i++)
        print_limit(json_at(limits, i));
}

/* The whole policy: an answer has a bounded number of rows.  -EAGAIN: it was reloaded
 * between two answers.
 */
static int get_all(struct httpc *daemon, struct json **ret, uw_error *err)
{
    auto_(json_free) struct json *all = NULL;
    char path[64];
    int r = daemon_get(daemon, "/v1/policy", NULL, &all, err);

    while (r == 0) {
        auto_(json_free) struct json *more = NULL;
        const struct json_value *p = json_root(all);
        uint64_t n = json_count(json_get(p, "rules"));
        if (n >= take_u64(p, "rules_total"))
            break;
        (void)snprintf(path, sizeof path, "/v1/policy?from=%" PRIu64, n);
        r = daemon_get(daemon, path, NULL, &more, err);
        if (r < 0)
            break;
        const struct json_value *m = json_root(more);
        if (take_u64(m, "loads") != take_u64(p, "loads") ||
            json_count(json_get(m, "rules")) == 0)
            return fail(err, -EAGAIN, "the policy was reloaded meanwhile: ask again");
        r = json_extend(all, more);
    }
    if (r == 0)
        *ret = take(all);
    return r;
}

int policy_show(const struct cmd *cmd, const struct cli_env *env, const char *json)
{
    auto_(httpc_free) struct httpc *daemon = NULL;
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    int code = daemon_need_within(cmd, env, env->boards, 0, &daemon);
    if (code != EXIT_OK)
        return code;
    int r = get_all(daemon, &doc, &err);
    if (r == 0 && json)
        r = daemon_write(json, doc, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "policy: %s", err.text);
    if (!json || strcmp(json, "-") != 0)
        print_policy(json_root(doc));
    return EXIT_OK;
}

/* ---- effects of a file ---- */

static void print_would(const struct json_value *board)
{
    const struct json_value *claims = json_get(board, "claims");

    printf("  GPU %" PRIu64 ":%s", take_u64(board, "gpu"),
           json_count(claims) ? "" : " no cap by a rule");
    for (size_t i = 0; i < json_count(claims); i++) {
        const struct json_value *c = json_at(claims, i);
        printf("%s %s %g W, %s: %s", i ? ";" : "", take_text(c, "kind"),
               take_mw(c, "cap_mw"), take_text(c, "who"), take_text(c, "why"));
    }
    printf("\n");
}

static void print_row(const char *rule, const struct json_value *b)
{
    uint64_t job = take_u64(b, "job");

    printf("  rule %s, GPU %" PRIu64, rule, take_u64(b, "gpu"));
    if (job)
        printf(", job %" PRIu64, job);
    printf(": %s: %s", take_text(b, "state"), take_text(b, "text"));
    print_reads(json_get(b, "reads"));
    printf("\n");
}

static void print_trial(const struct json_value *t)
{
    const struct json_value *boards = json_get(t, "boards"),
                            *rules = json_get(t, "rules");

    printf("now, whatever `for` says:\n");
    for (size_t i = 0; i < json_count(boards); i++)
        print_would(json_at(boards, i));
    for (size_t i = 0; i < json_count(rules); i++) {
        const struct json_value *rule = json_at(rules, i);
        const struct json_value *rows = json_get(rule, "boards");
        for (size_t k = 0; k < json_count(rows); k++)
            print_row(take_text(rule, "name"), json_at(rows, k));
    }
}

/* One answer: the rules from number `from` on. */
static int try_from(struct httpc *daemon, const char *text, uint64_t from,
                    struct json **ret, uw_error *err)
{
    struct json_out *body = json_out_new();
    char path[64];

    json_out_object(body, NULL);
    json_out_text(body, "policy", text);
    json_out_end(body);
    (void)snprintf(path, sizeof path, "/v1/policy/check?from=%" PRIu64, from);
    return httpc_ask(daemon, "POST", path, body, ret, err);
}

/* All rules: an answer has a bounded number of rows, and each is of a later moment. */
static int try_all(struct httpc *daemon, const char *text, struct json **ret,
                   uw_error *err)
{
    auto_(json_free) struct json *all = NULL;
    int r = try_from(daemon, text, 0, &all, err);

    while (r == 0) {
        auto_(json_free) struct json *more = NULL;
        uint64_t n = json_count(json_get(json_root(all), "rules"));
        if (n >= take_u64(json_root(all), "rules_total"))
            break;
        r = try_from(daemon, text, n, &more, err);
        if (r == 0 && json_count(json_get(json_root(more), "rules")) == 0)
            r = fail(err, -EPROTO, "the daemon sent no rule from number %" PRIu64 " on",
                     n);
        if (r == 0)
            r = json_extend(all, more);
    }
    if (r == 0)
        *ret = take(all);
    return r;
}

bool policy_would(const struct cli_env *env, const char *text)
{
    auto_(httpc_free) struct httpc *daemon = NULL;
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};
    int r = daemon_open(env, env->boards, &daemon, &err);

    if (r == DAEMON_ABSENT)
        return false;
    if (r == 0)
        r = try_all(daemon, text, &doc, &err);
    if (r == 0)
        print_trial(json_root(doc));
    else
        cli_say("policy: what would hold now is unknown: %s", err.text);
    return r == 0;
}
