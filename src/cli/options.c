#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/asked.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/figures.h"
#include "core/optimum/goal.h"
#include "gpu/backends.h"
#include "io/file.h"

enum { CARBON_MOST = 10000, PRICE_MOST = 1000000 }; /* as in a report's query */

int opt_flag(const char *text, void *ret, uw_error *err)
{
    (void)text;
    (void)err;
    *(bool *)ret = true;
    return 0;
}

int opt_text(const char *text, void *ret, uw_error *err)
{
    if (!*text)
        return fail(err, -EINVAL, "the value is empty");
    *(const char **)ret = text;
    return 0;
}

int opt_name(const char *text, void *ret, uw_error *err)
{
    if (!utf8_is_plain(text))
        return fail(err, -EINVAL, "the value has a character that is not printable");
    return opt_text(text, ret, err);
}

int opt_output(const char *text, void *ret, uw_error *err)
{
    return opt_text(text, ret, err);
}

int opt_input(const char *text, void *ret, uw_error *err)
{
    return opt_text(text, ret, err);
}

int opt_u64(const char *text, void *ret, uw_error *err)
{
    return parse_u64(text, ret, err);
}

int opt_double(const char *text, void *ret, uw_error *err)
{
    return parse_double(text, ret, err);
}

int opt_carbon(const char *text, void *ret, uw_error *err)
{
    double g = 0;
    int r = parse_double(text, &g, err);

    if (r == 0 && !(g >= 0 && g <= CARBON_MOST))
        return fail(err, -ERANGE, "'%.40s' is outside 0..%d g/kWh", text, CARBON_MOST);
    if (r == 0)
        *(double *)ret = g;
    return r;
}

int opt_price(const char *text, void *ret, uw_error *err)
{
    struct opt_price price;

    int r = parse_price(text, &price.per_kwh, price.currency, err);
    if (r == 0 && !(price.per_kwh >= 0 && price.per_kwh <= PRICE_MOST))
        return fail(err, -ERANGE, "'%.40s' is outside 0..%d", text, PRICE_MOST);
    if (r == 0)
        *(struct opt_price *)ret = price;
    return r;
}

int opt_goal(const char *text, void *ret, uw_error *err)
{
    return goal_parse(text, ret, err);
}

int opt_watts(const char *text, void *ret, uw_error *err)
{
    struct cap_arg cap;

    int r = parse_cap(text, &cap, err);
    if (r < 0)
        return r;
    if (cap.mw == 0)
        return fail(err, -EINVAL, "'%s' is not a power in watts", text);
    *(struct opt_watts *)ret = (struct opt_watts){cap.mw, text};
    return 0;
}

int opt_cap(const char *text, void *ret, uw_error *err)
{
    if (!*text)
        return fail(err, -EINVAL, "the value is empty");
    return parse_cap(text, ret, err);
}

/* "600 s", "365 d" */
static void limit_text(uint64_t ns, char ret[32])
{
    const uint64_t day = 86400 * NS_PER_S;

    if (ns > 0 && ns % day == 0)
        (void)snprintf(ret, 32, "%" PRIu64 " d", ns / day);
    else
        (void)snprintf(ret, 32, "%g s", s_of_ns(ns));
}

int opt_time(const char *text, void *ret, uw_error *err)
{
    struct opt_time *o = ret;
    char least[32], most[32];
    uint64_t ns = UINT64_MAX; /* above every limit */
    double s = 0;
    int r = 0;

    if (parse_double(text, &s, NULL) < 0)
        r = parse_duration(text, &ns, err);
    else if (s >= 0 && s <= DURATION_MAX_S)
        ns = ns_of_s(s);
    if (r < 0 && r != -ERANGE)
        return r;
    if (ns < o->least_ns || ns > o->most_ns) {
        limit_text(o->least_ns, least);
        limit_text(o->most_ns, most);
        return fail(err, -ERANGE, "'%s' is outside %s..%s", text, least, most);
    }
    o->ns = ns;
    return 0;
}

int opt_boards(const char *text, void *ret, uw_error *err)
{
    static char checked[GPU_BOARDS_TEXT];

    if (!*text)
        return fail(err, -EINVAL, "the value is empty");
    int r = gpu_boards_check(text, geteuid() == 0, checked, sizeof checked, err);
    if (r == 0)
        *(const char **)ret = checked;
    return r;
}

static void print_option(const struct opt *o)
{
    char left[80];
    char letter[8] = "    ";

    if (o->letter)
        (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->arg ? " " : "",
                   o->arg ? o->arg : "");
    unsigned at = 2 + (unsigned)printf("  %-26s", left);
    (void)fputs("  ", stdout);
    text_wrap(stdout, at, 30, o->help);
}

static void print_help(const struct cmd *cmd, const struct opt *opts, size_t n)
{
    static const struct opt general[] = {
        {.name = "help", .letter = 'h', .help = "this text"},
        {.name = "version", .letter = 'V', .help = "the version"},
    };

    unsigned at =
        (unsigned)printf("usage: underwatt %s%s", cmd->name, *cmd->args ? " " : "");
    text_wrap(stdout, at, at, cmd->args);
    printf("\n%s.\n\n", cmd->help);
    for (size_t i = 0; i < n; i++)
        print_option(&opts[i]);
    for (size_t i = 0; i < n_elements(general); i++)
        print_option(&general[i]);
    printf("\nMore: man underwatt-%s\n", cmd->name);
}

/* A parsed word of the command line. */
struct word {
    const char *name;
    size_t len;
    const char *value; /* NULL: none in this word */
    char letter;       /* 0: a long one */
};

static struct word word_of(const char *text)
{
    struct word w = {0};

    if (text[1] != '-') {
        w.name = text + 1;
        w.letter = text[1];
        w.len = 1;
        w.value = text[2] ? text + 2 : NULL;
        return w;
    }
    w.name = text + 2;
    w.len = strcspn(w.name, "=");
    w.value = w.name[w.len] == '=' ? w.name + w.len + 1 : NULL;
    return w;
}

static const struct opt *find(const struct opt *opts, size_t n, const struct word *w)
{
    for (size_t i = 0; i < n; i++) {
        if (w->letter ? opts[i].letter == w->letter
                      : strlen(opts[i].name) == w->len &&
                            memcmp(opts[i].name, w->name, w->len) == 0)
            return &opts[i];
    }
    return NULL;
}

/* OPTS_GO: neither --help nor --version. */
static int answer(const struct cmd *cmd, const struct opt *opts, size_t n,
                  const char *text)
{
    switch (asked_for(text)) {
    case ASKED_HELP:
        print_help(cmd, opts, n);
        return EXIT_OK;
    case ASKED_VERSION:
        printf("underwatt %s\n", UW_VERSION);
        return EXIT_OK;
    case ASKED_NOTHING:
        break;
    }
    return OPTS_GO;
}

static int unknown(const struct cmd *cmd, const struct opt *opts, size_t n,
                   const struct word *w, const char *text)
{
    static const char *const general[] = {"help", "version"};
    char known[1200] = "";
    struct nearest nearest = {0};
    size_t at = 0;

    for (size_t i = 0; !w->letter && i < n_elements(general); i++)
        nearest_try(&nearest, w->name, w->len, general[i]);
    for (size_t i = 0; i < n && at < sizeof known; i++) {
        if (!w->letter)
            nearest_try(&nearest, w->name, w->len, opts[i].name);
        int len = snprintf(known + at, sizeof known - at, "--%s, ", opts[i].name);
        at += len > 0 ? (size_t)len : 0;
    }
    if (nearest.word)
        return cli_fail(EXIT_USAGE,
                        "%s: unknown option '%s' (see --help): did you mean '--%s'?",
                        cmd->name, text, nearest.word);
    return cli_fail(EXIT_USAGE, "%s: unknown option '%s': one of %s--help, --version",
                    cmd->name, text, known);
}

/* Whether options may follow operands: not if the operands are a command of their own. */
static bool goes_on(const struct cmd *cmd)
{
    return strstr(cmd->args, "CMD") == NULL;
}

/* No command has a digit as an option: "-5" is an operand, except before a CMD. */
static bool is_operand(const struct cmd *cmd, const char *word)
{
    bool negative = isdigit((unsigned char)word[1]) || word[1] == '.';

    return word[0] != '-' || !word[1] || (negative && goes_on(cmd));
}

/* Handles argv[*i]; advances *i over a value in a word of its own. */
static int take_option(const struct cmd *cmd, const struct opt *o, const struct word *w,
                       char **argv, int *i)
{
    const char *value = w->value;
    uw_error err = {{0}};

    if (!o->arg && value)
        return cli_fail(EXIT_USAGE, "%s: --%s takes no value, got '%s'", cmd->name,
                        o->name, value);
    if (o->arg && !value) {
        value = argv[*i + 1];
        if (!value || strcmp(value, "--") == 0) /* which --NAME=-- gives */
            return cli_fail(EXIT_USAGE, "%s: --%s needs a value: %s", cmd->name, o->name,
                            o->arg);
        (*i)++;
    }
    int r = o->parse(value, o->ret, &err);
    if (r < 0)
        return cli_fail(EXIT_USAGE, "%s: --%s: %s", cmd->name, o->name, err.text);
    return OPTS_GO;
}

/* The path of an option that opt_output() has parsed, or NULL. */
static const char *output_of(const struct opt *o)
{
    return o->parse == opt_output ? *(const char *const *)o->ret : NULL;
}

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* Whether the second of two outputs would replace the first, or both go to standard
 * output.
 */
static bool is_same_output(const char *a, const char *b)
{
    return is_stdout(a) || is_stdout(b) ? strcmp(a, b) == 0 : file_is_same(a, b);
}

static int check_outputs(const struct cmd *cmd, const struct opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *path = output_of(&opts[i]);
        for (size_t k = i + 1; path && k < n; k++) {
            const char *other = output_of(&opts[k]);
            if (!other || !is_same_output(path, other))
                continue;
            if (is_stdout(path))
                return cli_fail(EXIT_USAGE,
                                "%s: --%s and --%s both write to standard output",
                                cmd->name, opts[i].name, opts[k].name);
            return cli_fail(EXIT_USAGE, "%s: --%s and --%s both write to '%s'", cmd->name,
                            opts[i].name, opts[k].name, other);
        }
    }
    return OPTS_GO;
}

/* The files that the options name. */
static int check_files(const struct cmd *cmd, const struct opt *opts, size_t n)
{
    uw_error err = {{0}};

    for (size_t i = 0; i < n; i++) {
        bool output = opts[i].parse == opt_output;
        if (!output && opts[i].parse != opt_input)
            continue;
        const char *path = *(const char *const *)opts[i].ret;
        if (!path || (output && is_stdout(path)))
            continue;
        int r = output ? file_check_write(path, &err) : file_check_read(path, &err);
        if (r < 0)
            return cli_fail(EXIT_USAGE, "%s: --%s: %s", cmd->name, opts[i].name,
                            err.text);
    }
    return check_outputs(cmd, opts, n);
}

int opts_parse(const struct cmd *cmd, const struct opt *opts, size_t n, int argc,
               char **argv, struct opts_rest *ret)
{
    struct opts_rest rest = {0};
    int i = 1, kept = 1; /* operands before `kept` precede options */

    for (; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            rest.dashes = true;
            i++;
            break;
        }
        if (is_operand(cmd, argv[i])) {
            if (!goes_on(cmd))
                break;
            argv[kept++] = argv[i];
            continue;
        }
        struct word w = word_of(argv[i]);
        const struct opt *o = find(opts, n, &w);
        int r = o ? take_option(cmd, o, &w, argv, &i) : answer(cmd, opts, n, argv[i]);
        if (!o && r == OPTS_GO)
            return unknown(cmd, opts, n, &w, argv[i]);
        if (r != OPTS_GO)
            return r;
    }
    for (; kept > 1 && i < argc; i++)
        argv[kept++] = argv[i];
    if (kept > 1)
        argv[kept] = NULL;
    rest.argv = kept > 1 ? argv + 1 : argv + i;
    rest.argc = kept > 1 ? kept - 1 : argc - i;
    if (ret)
        *ret = rest;
    else if (rest.argc > 0)
        return opts_unexpected(cmd, rest.argv[0], cmd->args);
    return check_files(cmd, opts, n);
}

int opts_unexpected(const struct cmd *cmd, const char *word, const char *form)
{
    return cli_fail(EXIT_USAGE, "%s: unexpected argument '%s': usage: underwatt %s %s",
                    cmd->name, word, cmd->name, form);
}

int opts_unknown_word(const struct cmd *cmd, const char *word, const char *const *known)
{
    char none[NEAREST_NONE];

    return cli_fail(EXIT_USAGE, "%s: %s", cmd->name, nearest_none_of(word, known, none));
}

int opts_missing(const struct cmd *cmd, const char *form)
{
    return cli_fail(EXIT_USAGE, "%s: missing argument: usage: underwatt %s %s", cmd->name,
                    cmd->name, form);
}
