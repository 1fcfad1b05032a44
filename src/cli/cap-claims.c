/* `underwatt cap show` and `clear` with the daemon. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/cap-ask.h"
#include "cli/cap-read.h"
#include "cli/figures.h"
#include "cli/survey.h"
#include "cli/take.h"
#include "gpu/select.h"

/* ---- boards ---- */

void cap_boards_fini(struct cap_boards *b)
{
    json_free(b->doc);
    *b = (struct cap_boards){.n = 0};
}

int cap_boards_get(const struct cap_remote *o, struct cap_boards *ret)
{
    const struct gpu_info *list[BOARDS_MAX];
    auto_(mem_free) struct gpu_info *info = calloc(BOARDS_MAX, sizeof *info);
    auto_(json_free) struct json *doc = NULL;
    struct selection sel = {0};
    uw_error err = {""};

    if (!info)
        return cli_fail(EXIT_FAIL, "cap: out of memory");
    int r = ask_wait(o->daemon, "GET", "/v1/gpus", NULL, &doc, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "cap: %s", err.text);
    const struct json_value *gpus = json_get(json_root(doc), "gpus");
    size_t n = json_count(gpus) < BOARDS_MAX ? json_count(gpus) : BOARDS_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct json_value *g = json_at(gpus, i);
        info[i].index = (unsigned)take_u64(g, "gpu");
        take_copy(g, "uuid", info[i].uuid, sizeof info[i].uuid);
        list[i] = &info[i];
    }
    r = select_list(o->gpus ? o->gpus : "all", list, n, &sel, &err);
    if (r < 0)
        return cli_fail(EXIT_USAGE, "cap: --gpus: %s", err.text);
    for (size_t i = 0; i < sel.n; i++)
        ret->at[i] = json_at(gpus, sel.at[i]);
    ret->n = sel.n;
    ret->simulated = take_bool(json_root(doc), "simulated");
    ret->doc = take(doc);
    return EXIT_OK;
}

enum { UNDER = 17 }; /* columns of "GPU 0  300 W     " */

static bool among(const struct cap_boards *b, const char *uuid)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(take_text(b->at[i], "uuid"), uuid) == 0)
            return true;
    return false;
}

static int get_claims(const struct cap_remote *o, struct json **ret)
{
    uw_error err = {""};

    int r = ask_wait(o->daemon, "GET", "/v1/claims", NULL, ret, &err);
    return r < 0 ? cli_fail(EXIT_FAIL, "cap: %s", err.text) : EXIT_OK;
}

/* ---- clear ---- */

/* "200 W" or "1200 MHz" */
static void cap_claim_text(const struct json_value *claim, char *ret, size_t size)
{
    uint64_t mhz = take_u64(claim, "clock_mhz");

    if (mhz)
        (void)snprintf(ret, size, "%" PRIu64 " MHz", mhz);
    else
        (void)snprintf(ret, size, "%g W", take_mw(claim, "cap_mw"));
}

static int withdraw(const struct cap_remote *o, const struct json_value *claim)
{
    uint64_t id = take_u64(claim, "id"), gpu = take_u64(claim, "gpu");
    char path[64];
    uw_error err = {""};

    (void)snprintf(path, sizeof path, "/v1/claims/%" PRIu64, id);
    int r = ask_wait(o->daemon, "DELETE", path, NULL, NULL, &err);
    if (r < 0 && r != -ENOENT) /* the claim may have ended */
        return cli_fail(EXIT_FAIL, "cap: GPU %" PRIu64 ": %s", gpu, err.text);
    char what[32];
    cap_claim_text(claim, what, sizeof what);
    cli_say("cap: GPU %" PRIu64 ": claim %" PRIu64 " (%s) withdrawn", gpu, id, what);
    return EXIT_OK;
}

int cap_daemon_clear(const struct cap_remote *o)
{
    auto_(cap_boards_fini) struct cap_boards boards = {.n = 0};
    auto_(json_free) struct json *node = NULL, *doc = NULL;
    uw_error err = {""};
    size_t bad = 0, good = 0;

    int code = cap_boards_get(o, &boards);
    if (code == EXIT_OK)
        code = get_claims(o, &doc);
    if (code != EXIT_OK)
        return code;
    int r = ask_wait(o->daemon, "GET", "/v1/node", NULL, &node, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "cap: %s", err.text);
    const struct json_value *you = json_get(json_root(node), "you");
    const struct json_value *claims = json_get(json_root(doc), "claims");
    for (size_t i = 0; i < json_count(claims); i++) {
        const struct json_value *claim = json_at(claims, i);
        if (!cap_read_mine(claim, you) || !among(&boards, take_text(claim, "uuid")))
            continue;
        code = withdraw(o, claim);
        bad += code != EXIT_OK;
        good += code == EXIT_OK;
    }
    if (bad + good == 0)
        cli_say("cap: %s has no claims on these boards", take_text(you, "name"));
    return bad == 0 ? EXIT_OK : good ? EXIT_PARTIAL : EXIT_FAIL;
}

/* ---- show ---- */

static void print_claim(const struct json_value *c)
{
    double left_s = take_number(c, "left_s");
    const char *why = take_text(c, "why");
    char ends[48] = "", what[32], text[600];

    if (!isnan(left_s))
        (void)snprintf(ends, sizeof ends, ", %s left", figure_time(left_s).t);
    cap_claim_text(c, what, sizeof what);
    (void)snprintf(text, sizeof text, "%s claim %" PRIu64 ": %s, at most %s, %s%s%s%s",
                   take_bool(c, "wins") ? ">" : " ", take_u64(c, "id"),
                   take_text(c, "kind"), what, take_text(c, "who"), *why ? ": " : "", why,
                   ends);
    (void)fputs("      ", stdout);
    text_wrap_in(stdout, text_width(), 6, 8, text);
}

static void print_board(const struct cap_shown *b, const struct json_value *claims)
{
    const struct json_value *cap = json_get(b->gpu, "cap");
    const char *state = take_text(cap, "state");
    char limit[24] = "unknown", target[32], state_text[240], text[600], force[48] = "";
    bool ramps = take_bool(cap, "ramping"), other = *take_text(cap, "holder");

    if (b->enforced_mw)
        (void)snprintf(limit, sizeof limit, "%g W", w_of_mw(b->enforced_mw));
    /* "200 W: named claim of anna": the watts once, if the target is in force */
    size_t n = strlen(limit);
    bool same = strncmp(b->why, limit, n) == 0 && strncmp(b->why + n, ": ", 2) == 0;
    bool plain = !*state || take_cap_free(cap) || strcmp(state, "held") == 0;
    take_cap_state(cap, state_text, sizeof state_text);
    (void)snprintf(target, sizeof target, "%g W: ", w_of_mw(b->cap_mw));
    bool claimed = !same && strncmp(b->why, target, strlen(target)) == 0;
    if (claimed && other)
        (void)snprintf(force, sizeof force, "in force %s: ", limit);
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", claimed ? "claimed " : "",
                   b->why + (same ? n + 2 : 0), ramps || !plain ? "; " : "", force,
                   ramps   ? "on the way down"
                   : plain ? ""
                           : state_text);
    int at = printf("GPU %u  %-9s ", b->index, limit);
    text_wrap_in(stdout, text_width(), at > 0 ? (unsigned)at : 0, UNDER, text);
    for (size_t i = 0; i < json_count(claims); i++)
        if (take_u64(json_at(claims, i), "gpu") == b->index)
            print_claim(json_at(claims, i));
}

static void json_id(struct json_out *o, const char *key, uint64_t v)
{
    json_out_known_int(o, key, v > 0, (int64_t)v);
}

static void json_claim(struct json_out *o, const struct json_value *c)
{
    json_out_object(o, NULL);
    json_out_int(o, "id", (int64_t)take_u64(c, "id"));
    json_out_text(o, "kind", take_text(c, "kind"));
    json_id(o, "cap_mw", take_u64(c, "cap_mw"));
    json_id(o, "clock_mhz", take_u64(c, "clock_mhz"));
    json_out_text(o, "who", take_text(c, "who"));
    json_out_text(o, "why", take_text(c, "why"));
    json_id(o, "job", take_u64(c, "job"));
    json_out_bool(o, "wins", take_bool(c, "wins"));
    json_out_double(o, "left_s", take_number(c, "left_s"));
    json_out_end(o);
}

static void json_board(struct json_out *o, const struct cap_shown *b,
                       const struct json_value *claims)
{
    json_out_object(o, NULL);
    json_out_int(o, "index", b->index);
    json_out_text(o, "uuid", b->uuid);
    json_id(o, "enforced_mw", b->enforced_mw);
    json_id(o, "default_mw", b->limits.default_mw);
    json_id(o, "min_mw", b->limits.min_mw);
    json_id(o, "max_mw", b->limits.max_mw);
    json_id(o, "cap_mw", b->cap_mw);
    json_id(o, "original_mw", b->original_mw);
    json_id(o, "holder_pid", (uint64_t)b->holder_pid);
    if (b->gpu) {
        json_out_text(o, "state", take_text(json_get(b->gpu, "cap"), "state"));
        json_out_text(o, "why", b->why);
        json_out_array(o, "claims");
        for (size_t i = 0; i < json_count(claims); i++)
            if (take_u64(json_at(claims, i), "gpu") == b->index)
                json_claim(o, json_at(claims, i));
        json_out_end(o);
    }
    json_out_end(o);
}

int cap_show(const char *json, const struct gpu_about *about, const struct cap_shown *b,
             size_t n, const struct json_value *claims, const char *budget)
{
    auto_(json_out_free) struct json_out *out = NULL;
    uw_error err = {""};

    if (!json || strcmp(json, "-") != 0) {
        survey_say_unreal(about);
        for (size_t i = 0; i < n; i++)
            print_board(&b[i], claims);
        if (*budget)
            (void)printf("budget %s\n", budget);
    }
    if (!json)
        return EXIT_OK;
    out = json_out_new();
    json_out_object(out, NULL);
    json_out_bool(out, "simulated", about->simulated);
    if (claims)
        json_out_bool(out, "daemon", true);
    json_out_array(out, "boards");
    for (size_t i = 0; i < n; i++)
        json_board(out, &b[i], claims);
    json_out_end(out);
    json_out_end(out);
    int r = json_out_write(out, json, &err);
    return r < 0 ? cli_fail(EXIT_FAIL, "cap: %s", err.text) : EXIT_OK;
}

static uint32_t mw_at(const struct json_value *v, const char *key)
{
    return (uint32_t)take_u64(v, key);
}

int cap_daemon_show(const struct cap_remote *o)
{
    auto_(cap_boards_fini) struct cap_boards boards = {.n = 0};
    auto_(json_free) struct json *node = NULL, *doc = NULL;
    struct cap_shown shown[BOARDS_MAX];
    char budget[80] = "";
    uw_error err = {""};

    int code = cap_boards_get(o, &boards);
    if (code == EXIT_OK)
        code = get_claims(o, &doc);
    if (code != EXIT_OK)
        return code;
    if (ask_wait(o->daemon, "GET", "/v1/node", NULL, &node, &err) < 0)
        return cli_fail(EXIT_FAIL, "cap: %s", err.text);
    (void)take_budget(json_root(node), budget, sizeof budget);
    for (size_t i = 0; i < boards.n; i++) {
        const struct json_value *g = boards.at[i], *limits = json_get(g, "limits");
        const struct json_value *cap = json_get(g, "cap");
        pid_t taken_by = (pid_t)take_u64(cap, "taken_by");
        bool capped = !take_cap_free(cap);
        shown[i] = (struct cap_shown){
            .index = (unsigned)take_u64(g, "gpu"),
            .uuid = take_text(g, "uuid"),
            .why = take_text(cap, "why"),
            .enforced_mw = mw_at(limits, "enforced_mw"),
            .limits = {.default_mw = mw_at(limits, "default_mw"),
                       .min_mw = mw_at(limits, "min_mw"),
                       .max_mw = mw_at(limits, "max_mw")},
            .cap_mw = capped ? mw_at(cap, "target_mw") : 0,
            .original_mw = capped || taken_by ? mw_at(limits, "original_mw") : 0,
            .holder_pid = taken_by,
            .gpu = g};
    }
    const struct gpu_about about = {.simulated = boards.simulated};
    return cap_show(o->json, &about, shown, boards.n, json_get(json_root(doc), "claims"),
                    budget);
}
