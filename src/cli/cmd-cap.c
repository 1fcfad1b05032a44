#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "caps/types.h"
#include "cli/absent.h"
#include "cli/cap-ask.h"
#include "cli/cap-left.h"
#include "cli/cap-target.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/preset.h"
#include "cli/survey.h"
#include "io/json.h"

struct cap {
    const char *gpus, *json, *boards;
    const char *why;
    const char *preset;
    const char *clock; /* set: an upper limit of the SM clock, in place of a cap */
    struct opt_time hold;
    bool local, detach;
    const struct cli_env *env;
    struct survey *s;
    size_t at[BOARDS_MAX]; /* the selected boards */
    size_t n;
};

/* ---- show ---- */

static int show(const struct cap *c)
{
    struct cap_shown shown[BOARDS_MAX];
    char why[BOARDS_MAX][160];

    for (size_t i = 0; i < c->n; i++) {
        const struct survey_board *b = &c->s->board[c->at[i]];
        bool known = b->sample.has & GPU_HAS_ENFORCED;
        survey_cap(b, why[i], sizeof why[i]);
        shown[i] = (struct cap_shown){.index = b->info.index,
                                      .uuid = b->info.uuid,
                                      .why = why[i],
                                      .enforced_mw = known ? b->sample.enforced_mw : 0,
                                      .holder_pid = b->held.pid};
        if (b->has_limits)
            shown[i].limits = b->limits;
        if (b->held.known) {
            shown[i].cap_mw = b->held.cap_mw;
            shown[i].original_mw = b->held.original_mw;
        }
    }
    return cap_show(c->json, &c->s->about, shown, c->n, NULL, "");
}

/* ---- set ---- */

static int set_json(const struct cap *c, const struct cap_hold *h)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    uw_error err = {""};

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", h->simulated);
    json_out_text(o, "preset", h->preset);
    json_out_array(o, "boards");
    for (size_t i = 0; i < h->n; i++) {
        const struct cap_target *t = &h->target[i];
        json_out_object(o, NULL);
        json_out_int(o, "index", t->index);
        json_out_text(o, "uuid", t->uuid);
        json_out_int(o, t->clock_mhz ? "clock_mhz" : "cap_mw",
                     t->clock_mhz ? t->clock_mhz : t->cap_mw);
        json_out_known_int(o, "enforced_mw", t->enforced_mw > 0, t->enforced_mw);
        json_out_known_int(o, "original_mw", t->original_mw > 0, t->original_mw);
        json_out_bool(o, "reached", t->reached);
        json_out_bool(o, "held_to_the_end", t->reached && !t->lost);
        json_out_bool(o, "restored", t->restored);
        json_out_known_int(o, "claim", t->claim > 0, (int64_t)t->claim);
        json_out_text(o, "error", t->text[0] ? t->text : NULL);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
    int r = json_out_write(o, c->json, &err);
    return r < 0 ? cli_fail(EXIT_FAIL, "cap: %s", err.text) : EXIT_OK;
}

/* Checks that the user may set this cap.  EXIT_OK, or EXIT_USAGE after a line on stderr.
 */
static int aim(const struct cap *c, const struct survey_board *b,
               const struct cap_arg *value, struct cap_target *ret)
{
    if (!b->has_limits)
        return cli_fail(EXIT_USAGE, "cap: GPU %u takes no power limit%s%s", b->info.index,
                        b->error.text[0] ? ": " : "", b->error.text);
    uint32_t mw = value->mw
                      ? value->mw
                      : mw_of_w(w_of_mw(b->limits.default_mw) * value->percent / 100);
    char text[CAP_OUTSIDE_TEXT];
    if (mw < b->limits.min_mw || mw > b->limits.max_mw)
        return cli_fail(
            EXIT_USAGE, "cap: GPU %u: %s", b->info.index,
            cap_outside(value, mw, b->limits.min_mw, b->limits.max_mw, "", text));
    for (size_t i = 0; i < b->n_procs && !c->env->root; i++) {
        const struct who *who = &b->procs[i].who;
        if (who->known && who->uid != getuid())
            return cli_fail(EXIT_USAGE,
                            "cap: GPU %u: process %d there is %s's; only root caps it",
                            b->info.index, (int)b->procs[i].proc.pid, who->user);
    }
    *ret = (struct cap_target){.index = b->info.index,
                               .cap_mw = mw,
                               .default_mw = b->limits.default_mw,
                               .busy = b->n_procs > 0 || !b->has_procs};
    (void)snprintf(ret->uuid, sizeof ret->uuid, "%s", b->info.uuid);
    return EXIT_OK;
}

static int set(const struct cap *c, const struct cap_arg *value)
{
    struct cap_hold h = {.env = c->env,
                         .library = c->boards,
                         .simulated = survey_simulated(c->s),
                         .for_ns = c->hold.ns,
                         .preset = c->preset,
                         .percent = value->percent};

    for (size_t i = 0; i < c->n; i++) {
        int code = aim(c, &c->s->board[c->at[i]], value, &h.target[i]);
        if (code != EXIT_OK)
            return code;
        h.n = i + 1;
    }
    int code = cap_own_hold(&h);
    cap_left(&h);
    if (h.begun && c->json) {
        int r = set_json(c, &h);
        code = r == EXIT_OK ? code : r;
    }
    return code;
}

/* ---- with the daemon ---- */

/* daemon is NULL: a built-in preset. */
static int take_preset(const struct cap *c, struct ask *daemon, struct cap_arg *ret)
{
    uw_error err = {""};
    int r = c->preset ? preset_cap(daemon, c->preset, ret, &err) : 0;

    return r < 0 ? cli_fail(cli_exit_of(r), "cap: %s", err.text) : EXIT_OK;
}

/* Takes ownership of daemon. */
static int with_daemon(const struct cap *c, const char *what, struct cap_arg *value,
                       struct loop *loop, struct ask *daemon)
{
    auto_(cap_remote_fini) struct cap_remote o = {.env = c->env,
                                                  .boards = c->boards,
                                                  .loop = loop,
                                                  .daemon = daemon,
                                                  .gpus = c->gpus,
                                                  .json = c->json,
                                                  .why = c->why,
                                                  .detach = c->detach,
                                                  .clock = c->clock != NULL};
    struct cap_hold h = {
        .env = c->env, .library = c->boards, .for_ns = c->hold.ns, .preset = c->preset};

    if (strcmp(what, "show") == 0)
        return cap_daemon_show(&o);
    if (strcmp(what, "clear") == 0)
        return cap_daemon_clear(&o);
    int code = take_preset(c, daemon, value);
    h.percent = value->percent;
    if (code == EXIT_OK)
        code = cap_daemon_set(&o, value, &h);
    if (h.begun && c->json) {
        int r = set_json(c, &h);
        code = r == EXIT_OK ? code : r;
    }
    return code;
}

/* Leaves *ret NULL if the command works without the daemon.  EXIT_OK, or another exit
 * code after a line on stderr.
 */
static int find_daemon(const struct cap *c, const char *what, struct loop *loop,
                       struct ask **ret)
{
    uw_error err = {""};

    *ret = NULL;
    if (c->local)
        return EXIT_OK;
    int r = daemon_ask(c->env, c->boards, loop, ret, &err);
    if (r >= 0)
        return EXIT_OK;
    if (strcmp(what, "show") != 0)
        return cli_fail(EXIT_FAIL, "cap: %s (--local works without the daemon)",
                        err.text);
    cli_say("cap: %s; shown without it", err.text);
    return EXIT_OK;
}

/* ---- ---- */

static int act(struct cap *c, const char *what, const char *value)
{
    struct cap_arg arg = {.mw = 0};
    uw_error err = {""};
    bool setting = strcmp(what, "set") == 0;

    int r = !setting || c->preset ? 0
            : c->clock            ? parse_clock(c->clock, &arg.mw, &err) /* in MHz */
                                  : parse_cap(value, &arg, &err);
    if (r < 0)
        return cli_fail(EXIT_USAGE, "cap: %s", err.text);
    if (setting && !c->gpus)
        return cli_fail(EXIT_USAGE, "cap: name the boards: --gpus LIST, or all");
    auto_(loop_free) struct loop *loop = NULL;
    struct ask *daemon = NULL;
    r = cli_loop_new(c->env, &loop, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "cap: %s", err.text);
    r = find_daemon(c, what, loop, &daemon);
    if (r != EXIT_OK || daemon)
        return daemon ? with_daemon(c, what, &arg, loop, daemon) : r;
    if (c->clock)
        return cli_fail(EXIT_USAGE, "cap: --clock needs the daemon%s",
                        c->local ? ": not with --local" : ", which does not run");
    if (c->detach)
        return cli_fail(EXIT_USAGE, "cap: --detach leaves the cap to the daemon%s",
                        c->local ? ": not with --local" : ", which does not run");
    auto_(survey_free) struct survey *s = NULL;
    r = take_preset(c, NULL, &arg);
    if (r == EXIT_OK)
        r = survey_new(&cmd_cap, c->env, c->boards, &s);
    if (r != EXIT_OK)
        return r;
    if (s->r != 0)
        return absent_say(&cmd_cap, s, c->boards);
    c->s = s;
    r = survey_select(s, &cmd_cap, c->gpus, c->at, &c->n);
    if (r != EXIT_OK)
        return r;
    if (strcmp(what, "show") == 0)
        return show(c);
    return setting ? set(c, &arg) : cap_clear(c->env, c->boards, c->s, c->at, c->n);
}

#define SET_FORM "set W|N%|--preset NAME|--clock MHZ --gpus LIST"
#define OTHER_FORMS " | clear | show"

enum { WORDS = 3 }; /* one more than any form has */

/* Checks the words and options; EXIT_OK: the command is complete. */
static int check_words(const struct cap *c, char *const word[WORDS])
{
    static const char *const words[] = {"set", "clear", "show", NULL};
    const char *what = word[0], *value = word[1];
    bool wants_value = what && strcmp(what, "set") == 0;
    bool known =
        what && (wants_value || strcmp(what, "clear") == 0 || strcmp(what, "show") == 0);
    const char *more = wants_value ? word[2] : value;
    if (what && !known)
        return opts_unknown_word(&cmd_cap, what, words);
    if (more)
        return opts_unexpected(&cmd_cap, more, wants_value ? SET_FORM : what);
    if ((c->clock || c->preset) && !wants_value)
        return cli_fail(EXIT_USAGE, "cap: --%s is an option of set",
                        c->clock ? "clock" : "preset");
    if (c->clock && (value || c->preset))
        return cli_fail(EXIT_USAGE,
                        "cap: '%s' and --clock are two claims: use two commands",
                        value ? value : c->preset);
    if (c->preset && value)
        return cli_fail(EXIT_USAGE, "cap: '%s' and --preset exclude each other", value);
    if (!known)
        return opts_missing(&cmd_cap, SET_FORM OTHER_FORMS);
    if (wants_value && !value && !c->clock && !c->preset)
        return opts_missing(&cmd_cap, SET_FORM);
    return EXIT_OK;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct cap c = {
        .env = env,
        .boards = env->boards,
        .hold = {.least_ns = OPT_TIME_LEAST, .most_ns = CAPS_FOR_MAX_NS},
    };
    const struct opt opts[] = {
        OPT_GPUS(&c.gpus),
        {"preset", 0, "NAME",
         "set: a named share of the default limit: aggressive, balanced, minimal, or one "
         "of the daemon's policy",
         opt_name, &c.preset},
        {"clock", 0, "MHZ", "set: limit the SM clock instead (1200MHz); needs the daemon",
         opt_text, &c.clock},
        {"for", 0, "TIME", "set: restore the boards after this time", opt_time, &c.hold},
        {"why", 0, "TEXT", "set: the reason shown to others; needs the daemon", opt_name,
         &c.why},
        {"detach", 0, NULL, "set: leave the claim with the daemon and return", opt_flag,
         &c.detach},
        {"local", 0, NULL, "do not use the daemon, even if it answers", opt_flag,
         &c.local},
        OPT_JSON(&c.json),
        OPT_BOARDS(&c.boards),
    };
    struct opts_rest rest;
    char *word[WORDS] = {NULL}; /* options may stand between the words */

    for (int at = 0; at < WORDS; at++) {
        int r = opts_parse(&cmd_cap, opts, n_elements(opts), argc, argv, &rest);
        if (r != OPTS_GO)
            return r;
        if (rest.argc == 0)
            break;
        word[at] = rest.argv[0];
        argc = rest.argc;
        argv = rest.argv;
    }
    int code = check_words(&c, word);
    return code == EXIT_OK && word[0] ? act(&c, word[0], word[1]) : code;
}

const struct cmd cmd_cap = {
    "cap",
    "set W|N%|--preset NAME|--clock MHZ --gpus LIST [--for TIME] [--detach] | clear | "
    "show",
    "Hold boards at a cap by hand, restore limits that were left, show caps in force",
    run,
};
