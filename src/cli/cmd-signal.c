/* `underwatt signal`: the daemon's signals from outside. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "cli/daemon.h"
#include "cli/figures.h"
#include "cli/options.h"
#include "cli/sight-show.h"
#include "policy/signals.h"

struct signal_opts {
    const char *boards, *json;
    struct opt_time hold;
};

/* ---- list ---- */

/* Like `underwatt signals`; its JSON is the daemon's. */
static int list(const struct cli_env *env, const struct signal_opts *o)
{
    auto_(httpc_free) struct httpc *daemon = NULL;
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};
    int code = daemon_need_within(&cmd_signal, env, o->boards, 0, &daemon);

    if (code != EXIT_OK)
        return code;
    if (o->json) {
        int r = daemon_get(daemon, "/v1/signals", o->json, &doc, &err);
        if (r < 0)
            return cli_fail(cli_exit_of(r), "signal: %s", err.text);
        if (strcmp(o->json, "-") == 0)
            return EXIT_OK;
    }
    return sight_all(&cmd_signal, env, &(struct sight_opts){.boards = o->boards});
}

/* ---- set, unset ---- */

static int ask(struct httpc *daemon, const char *method, const char *name,
               struct json_out *body)
{
    char path[SIGNAL_NAME + 16];
    uw_error err = {""};

    (void)snprintf(path, sizeof path, "/v1/signals/%s", name);
    int r = httpc_ask(daemon, method, path, body, NULL, &err);
    return r < 0 ? cli_fail(cli_exit_of(r), "signal: %s", err.text) : EXIT_OK;
}

static struct json_out *set_body(const struct signal_value *v, const char *unit,
                                 uint64_t for_ns)
{
    struct json_out *o = json_out_new();
    char time[40];

    json_out_object(o, NULL);
    if (v->type == POLICY_NUMBER)
        json_out_exact_double(o, "value", v->number);
    else if (v->type == POLICY_TEXT)
        json_out_text(o, "value", v->text);
    else
        json_out_bool(o, "value", v->truth);
    if (*unit)
        json_out_text(o, "unit", unit);
    if (for_ns) {
        (void)snprintf(time, sizeof time, "%.3f s", s_of_ns(for_ns));
        json_out_text(o, "for", time);
    }
    json_out_end(o);
    return o;
}

static int set(struct httpc *daemon, const struct signal_opts *o, const char *name,
               const char *text)
{
    uint64_t for_ns = o->hold.ns ? o->hold.ns : SIGNAL_FOR_S * NS_PER_S;
    char unit[SIGNAL_UNIT], shown[SIGNAL_SHOWN];
    struct signal_value v;
    uw_error err = {""};
    int r = signal_value_read(text, &v, unit, &err);

    if (r < 0)
        return cli_fail(EXIT_USAGE, "signal: %s", err.text);
    int code = ask(daemon, "PUT", name, set_body(&v, unit, o->hold.ns));
    if (code == EXIT_OK)
        printf("%s: %s for %s\n", name, signal_value_show(&v, unit, shown),
               figure_time(s_of_ns(for_ns)).t);
    return code;
}

static int unset(struct httpc *daemon, const char *name)
{
    int code = ask(daemon, "DELETE", name, NULL);

    if (code == EXIT_OK)
        printf("%s: no longer set by hand\n", name);
    return code;
}

/* ---- the command ---- */

/* The words have one of check_words()' forms, distinguished by their number. */
static int act(struct httpc *daemon, const struct signal_opts *o, int argc, char **argv)
{
    return argc == 3 ? set(daemon, o, argv[1], argv[2]) : unset(daemon, argv[1]);
}

#define SET_FORM "set NAME VALUE (quote a VALUE with a unit: '420 g/kWh')"

/* Checks the words; EXIT_OK: the command is complete. */
static int check_words(const struct signal_opts *o, int argc, char **argv)
{
    static const struct {
        const char *word;
        int argc;
        const char *usage;
    } forms[] = {{"list", 1, "list"}, {"set", 3, SET_FORM}, {"unset", 2, "unset NAME"}};
    static const char *const words[] = {"list", "set", "unset", NULL};
    size_t i = 0;

    while (i < n_elements(forms) && (argc < 1 || strcmp(forms[i].word, argv[0]) != 0))
        i++;
    if (i == n_elements(forms))
        return argc < 1 ? opts_missing(&cmd_signal, cmd_signal.args)
                        : opts_unknown_word(&cmd_signal, argv[0], words);
    if (argc < forms[i].argc)
        return opts_missing(&cmd_signal, forms[i].usage);
    if (argc > forms[i].argc)
        return opts_unexpected(&cmd_signal, argv[forms[i].argc], forms[i].usage);
    if (o->json && argc != 1)
        return cli_fail(EXIT_USAGE, "signal: --json belongs to list");
    if (o->hold.ns && argc != 3)
        return cli_fail(EXIT_USAGE, "signal: --for belongs to set");
    if (argc > 1 && !sight_is_name(argv[1]))
        return cli_fail(EXIT_USAGE, "signal: '%s' is not the name of a signal", argv[1]);
    return EXIT_OK;
}

enum { WORDS = 4 }; /* one more than any form has */

/* Whether a word is a negative value, not an option. */
static bool is_negative(const char *word)
{
    return word && word[0] == '-' && word[1] && strchr("0123456789.", word[1]);
}

/* The words, between which options may stand. */
static int parse(const struct opt *opts, size_t n_opts, int argc, char **argv,
                 char *words[WORDS], int *ret_n)
{
    struct opts_rest rest;

    for (*ret_n = 0; *ret_n < WORDS; (*ret_n)++) {
        int code = OPTS_GO;
        if (argc > 1 && is_negative(argv[1]))
            rest = (struct opts_rest){argc - 1, argv + 1, false};
        else
            code = opts_parse(&cmd_signal, opts, n_opts, argc, argv, &rest);
        if (code != OPTS_GO || rest.argc == 0)
            return code;
        words[*ret_n] = rest.argv[0];
        argc = rest.argc;
        argv = rest.argv;
    }
    return OPTS_GO;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct signal_opts o = {
        .boards = env->boards,
        .hold = {.least_ns = OPT_TIME_LEAST, .most_ns = SIGNAL_FOR_MAX_S * NS_PER_S},
    };
    auto_(httpc_free) struct httpc *daemon = NULL;
    const struct opt opts[] = {
        {"for", 0, "TIME", "set: how long the value holds (15 min; 24 h at most)",
         opt_time, &o.hold},
        OPT_JSON(&o.json),
        OPT_BOARDS(&o.boards),
    };
    char *words[WORDS] = {NULL};
    int n = 0;

    int code = parse(opts, n_elements(opts), argc, argv, words, &n);
    if (code != OPTS_GO)
        return code;
    code = check_words(&o, n, words);
    if (code == EXIT_OK && n == 1)
        return list(env, &o);
    if (code == EXIT_OK)
        code = daemon_need_within(&cmd_signal, env, o.boards, 0, &daemon);
    return code == EXIT_OK ? act(daemon, &o, n, words) : code;
}

const struct cmd cmd_signal = {
    "signal",
    "list | set NAME VALUE | unset NAME [OPTIONS]",
    "Show the daemon's signals from outside, or set one by hand",
    run,
};
