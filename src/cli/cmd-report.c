#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/report.h"
#include "core/carbon/accounting.h"
#include "core/carbon/market-read.h"
#include "io/file.h"
#include "io/ledger-report.h"
#include "io/zone.h"

enum { PATH_BYTES = 1024, ANSWER_S = 60, REPORT_BYTES = 64 << 20 };

struct args {
    const char *by, *from, *to, *zone, *gco2e, *price; /* NULL: not given */
    char own_zone[ZONE_NAME_MAX + 1]; /* zone of the caller, for "local" */
    const char *user, *job, *label;   /* filters */
    const char *format, *output, *json, *ledger, *boards, *columns;
    const char *market; /* a file */
    struct accounting accounting;
    bool waste;
};

/* The texts go to the daemon, which checks them by the names of its own parameters. */
static int opt_carbon_text(const char *text, void *ret, uw_error *err)
{
    double g;
    int r = opt_carbon(text, &g, err);

    return r < 0 ? r : opt_text(text, ret, err);
}

static int opt_price_text(const char *text, void *ret, uw_error *err)
{
    struct opt_price price;
    int r = opt_price(text, &price, err);

    if (r == 0 && !price.currency[0])
        r = fail(err, -EINVAL, "'%.40s' has no currency: '0.30 EUR'", text);
    return r < 0 ? r : opt_text(text, ret, err);
}

static const struct format {
    const char *name;
    int (*write)(const struct json_value *report, FILE *to, uw_error *err);
    int (*waste)(const struct json_value *report, FILE *to, uw_error *err);
    bool exact; /* keep control characters in texts */
} formats[] = {{"text", report_text, waste_text, false},
               {"csv", report_csv, waste_csv, true},
               {"json", NULL, NULL, true},
               {"html", report_html, waste_html, false}};

struct param {
    const char *key, *value;
};
enum { PARAMS = 10 };

/* "zone" first: it applies to the times. */
static void params_of(const struct args *a, struct param ret[PARAMS])
{
    ret[0] = (struct param){"zone", a->zone};
    ret[1] = (struct param){"by", a->by};
    ret[2] = (struct param){"from", a->from};
    ret[3] = (struct param){"to", a->to};
    ret[4] = (struct param){"gco2e_kwh", a->gco2e};
    ret[5] = (struct param){"price_kwh", a->price};
    ret[6] = (struct param){"user", a->user};
    ret[7] = (struct param){"job", a->job};
    ret[8] = (struct param){"label", a->label};
    ret[9] = (struct param){"waste", a->waste ? "true" : NULL};
}

static int query_of(const struct args *a, int64_t now_ns, struct ledger_query *ret,
                    uw_error *err)
{
    struct param params[PARAMS];
    uw_error key = {};

    params_of(a, params);
    ledger_query_init(ret, now_ns);
    for (size_t i = 0; i < PARAMS; i++) {
        int r = !params[i].value
                    ? 0
                    : ledger_query_set(ret, params[i].key, params[i].value, now_ns, &key);
        if (r < 0) /* the text begins with the key, which is the option's name */
            return fail(err, r, "--%.*s", (int)sizeof key.text - 3, key.text);
    }
    int r = ledger_query_check(ret, err);
    if (r < 0 && ret->from_utc_ns >= ret->to_utc_ns)
        return fail_in(err, r, "%s%s%s%s", a->from ? "--from " : "",
                       a->from ? a->from : "", a->to ? " --to " : "", a->to ? a->to : "");
    return r;
}

/* UTC, or the time of the simulated world. */
static int now_of(const struct cli_env *env, int64_t *ret, uw_error *err)
{
    auto_(loop_free) struct loop *loop = NULL;

    int r = cli_loop_new(env, &loop, err);
    if (r == 0)
        *ret = loop_utc_ns(loop);
    return r;
}

/* ---- from the file ---- */

static int opt_pue(const char *text, void *ret, uw_error *err)
{
    return accounting_pue(ret, text, err);
}

static int opt_embodied(const char *text, void *ret, uw_error *err)
{
    return accounting_embodied_text(ret, text, err);
}

static int read_market(struct args *a, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    struct accounting *to = &a->accounting;
    bool hidden = false;
    size_t len = 0;

    int r = file_read_shown(a->market, MARKET_BYTES, &text, &len, &hidden, err);
    if (r < 0)
        return r;
    return market_read(a->market, text, len, hidden, &to->contract, &to->n_contracts,
                       err);
}

static int from_file(const struct args *a, const struct ledger_query *q, char **ret,
                     uw_error *err)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(json_out_free) struct json_out *o = json_out_new();
    const struct ledger_opts opts = {.path = a->ledger, .read_only = true};

    int r = ledger_open(&opts, &l, err);
    if (r == -EBADMSG)
        return fail_in(err, -EINVAL, "--ledger");
    if (r < 0)
        return r;
    r = ledger_report(l, q, o, err);
    return r < 0 ? r : json_out_rows(o, ret, err);
}

/* ---- from the daemon ---- */

static bool put_char(char *path, size_t *n, char c)
{
    if (*n + 1 >= PATH_BYTES)
        return false;
    path[(*n)++] = c;
    path[*n] = '\0';
    return true;
}

/* Percent-encodes all but letters, digits and some punctuation. */
static bool put_value(char *path, size_t *n, const char *text)
{
    static const char hex[] = "0123456789ABCDEF", plain[] = "-._~:";
    bool good = true;

    for (; *text && good; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
            strchr(plain, c))
            good = put_char(path, n, (char)c);
        else
            good = put_char(path, n, '%') && put_char(path, n, hex[c >> 4]) &&
                   put_char(path, n, hex[c & 15]);
    }
    return good;
}

static int path_of(const struct args *a, char ret[PATH_BYTES], uw_error *err)
{
    struct param params[PARAMS];
    size_t n = 0;
    bool good = put_value(ret, &n, ""), first = true;

    params_of(a, params);
    for (const char *c = "/v1/report"; *c; c++)
        good = good && put_char(ret, &n, *c);
    for (size_t i = 0; i < PARAMS; i++) {
        if (!params[i].value)
            continue;
        good = good && put_char(ret, &n, first ? '?' : '&') &&
               put_value(ret, &n, params[i].key) && put_char(ret, &n, '=') &&
               put_value(ret, &n, params[i].value);
        first = false;
    }
    return good ? 0 : fail(err, -EINVAL, "the options are too long");
}

/* DAEMON_ABSENT: no daemon answers. */
static int from_daemon(const struct cli_env *env, const struct args *a, char **ret,
                       uw_error *err)
{
    auto_(httpc_free) struct httpc *probe = NULL, *c = NULL;
    auto_(httpc_reply_fini) struct httpc_reply reply = {.body = NULL};
    auto_(json_free) struct json *doc = NULL;
    struct daemon_address where;
    char path[PATH_BYTES];

    int r = daemon_open(env, a->boards, &probe, err);
    if (r != 0)
        return r;
    r = path_of(a, path, err);
    if (r == 0)
        r = daemon_address(env->socket, a->boards, &where, err);
    const struct httpc_opts opts = {.socket = where.socket,
                                    .timeout_ns = ANSWER_S * NS_PER_S,
                                    .body_max = REPORT_BYTES};
    if (r == 0)
        r = httpc_new(&opts, &c, err);
    if (r == 0)
        r = httpc_call(c, "GET", path, NULL, &reply, err);
    if (r == 0 && reply.status >= 300) /* ask again, for the error text of httpc_ask() */
        r = httpc_ask(c, "GET", path, NULL, &doc, err);
    if (r == 0 && reply.status >= 300)
        r = fail(err, -EAGAIN, "the daemon answered with status %u, then not at all",
                 reply.status);
    if (r < 0)
        return r;
    *ret = take(reply.body);
    return 0;
}

/* ---- ---- */

static int put_out(const struct args *a, const char *text, size_t len, uw_error *err)
{
    if (a->output && strcmp(a->output, "-") != 0)
        return file_write(a->output, text, len, FILE_MODE_UMASK, err);
    if (fwrite(text, 1, len, stdout) != len || fflush(stdout) != 0)
        return fail(err, -EIO, "cannot write to standard output");
    return 0;
}

/* A user or job that the ledger does not have is a mistake, not an empty period. */
static int check_known(const struct args *a, const struct json_value *report,
                       uw_error *err)
{
    bool known = true;
    uint64_t uid = 0;
    const char *own = json_as_u64(json_get(report, "only_uid"), &uid) ? " of yours" : "";

    if (!json_as_bool(json_get(json_get(report, "only"), "known"), &known) || known)
        return 0;
    return fail(err, -ENOENT, "no job%s%s%s%s%s%s is in the ledger", a->job ? " " : "",
                a->job ? a->job : "", own, a->user ? " of user '" : "",
                a->user ? a->user : "", a->user ? "'" : "");
}

static int show(const struct args *a, const struct format *format, const char *json,
                uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    int r = json_read("the report", json, strlen(json), &doc, err);
    if (r == 0)
        r = a->waste ? waste_check(json_root(doc), err)
                     : report_check(json_root(doc), err);
    if (r == 0)
        r = check_known(a, json_root(doc), err);
    if (r == 0 && !format->exact && json_make_plain(doc) < 0)
        r = fail(err, -ENOMEM, "out of memory");
    if (r < 0)
        return r;
    if (!format->write)
        return put_out(a, json, strlen(json), err);
    FILE *mem = open_memstream(&text, &len);
    if (!mem)
        return fail(err, -ENOMEM, "out of memory");
    r = a->waste     ? format->waste(json_root(doc), mem, err)
        : a->columns ? report_text_of(json_root(doc), a->columns, mem, err)
                     : format->write(json_root(doc), mem, err);
    if (fclose(mem) != 0 && r >= 0)
        r = fail(err, -ENOMEM, "out of memory");
    return r < 0 ? r : put_out(a, text, len, err);
}

static const struct format *format_of(const char *name)
{
    for (size_t i = 0; i < n_elements(formats); i++)
        if (strcmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}

static int fail_format(const char *name)
{
    const char *known[n_elements(formats) + 1] = {NULL};
    char none[NEAREST_NONE];

    for (size_t i = 0; i < n_elements(formats); i++)
        known[i] = formats[i].name;
    return cli_fail(EXIT_USAGE, "report: --format: %s",
                    nearest_none_of(name, known, none));
}

static bool has_beside(const struct args *a)
{
    return a->market || a->accounting.pue > 0 || a->accounting.n_embodied > 0;
}

/* EXIT_OK, or the error in the combination of options. */
static int check(const struct args *a, const struct format *format)
{
    if (!format)
        return fail_format(a->format);
    if (a->waste && a->by)
        return cli_fail(EXIT_USAGE,
                        "report: --by: --waste shows users, projects and jobs at once");
    if (a->waste && (a->gco2e || a->price))
        return cli_fail(EXIT_USAGE, "report: --waste: grams and money are as booked; "
                                    "--carbon and --price do not apply");
    if (has_beside(a) && !a->ledger)
        return cli_fail(EXIT_USAGE, "report: --pue, --market and --embodied go with "
                                    "--ledger; the daemon has its own "
                                    "(underwattd.yaml, accounting; policy.yaml, "
                                    "facility)");
    if (a->waste && has_beside(a))
        return cli_fail(EXIT_USAGE, "report: --waste has no figures of --pue, --market "
                                    "and --embodied");
    if (a->waste && a->columns)
        return cli_fail(EXIT_USAGE, "report: --columns: --waste has columns of its own");
    if (a->columns && format->write != report_text)
        return cli_fail(EXIT_USAGE, "report: --columns: the format %s has all of them",
                        format->name);
    return EXIT_OK;
}

/* The daemon may have another zone, so it receives the name. */
static int name_zone(const struct cli_env *env, struct args *a, uw_error *err)
{
    auto_(zone_free) struct zone *zone = NULL;
    char link[256] = "";

    if (a->ledger || !a->zone || strcmp(a->zone, "local") != 0)
        return 0;
    ssize_t n = readlink("/etc/localtime", link, sizeof link - 1);
    bool none = n < 0 && errno == ENOENT;
    int r = zone_own_name(env->zone, none ? NULL : link, a->own_zone, err);
    if (r == 0)
        r = zone_read(a->own_zone, &zone, err);
    if (r < 0)
        return fail_in(err, r == -ENOENT ? -EINVAL : r, "--zone local");
    a->zone = a->own_zone;
    return 0;
}

static int report(const struct cli_env *env, struct args *a)
{
    auto_(mem_free) char *json = NULL;
    const struct format *format = format_of(a->format);
    struct ledger_query q;
    int64_t now_ns = 0;
    uw_error err = {""};

    int code = check(a, format);
    if (code != EXIT_OK)
        return code;
    int r = now_of(env, &now_ns, &err);
    if (r == 0)
        r = name_zone(env, a, &err);
    if (r == 0)
        r = query_of(a, now_ns, &q, &err);
    if (r == 0 && a->market)
        r = read_market(a, &err);
    q.accounting = &a->accounting;
    if (r == 0)
        r = a->ledger ? from_file(a, &q, &json, &err) : from_daemon(env, a, &json, &err);
    if (r == DAEMON_ABSENT)
        return cli_fail(EXIT_FAIL, "report: %s; without the daemon: --ledger FILE",
                        err.text);
    if (r == 0 && json)
        r = show(a, format, json, &err);
    return r < 0 ? cli_fail(cli_exit_of(r), "report: %s", err.text) : EXIT_OK;
}

/* --json FILE is --format json --output FILE. */
static int one_output(struct args *a)
{
    if (a->json && (a->format || a->output))
        return cli_fail(EXIT_USAGE,
                        "report: --json: it is the format and the file; %s "
                        "does not go with it",
                        a->format ? "--format" : "--output");
    if (a->json)
        a->output = a->json;
    if (!a->format)
        a->format = a->json ? "json" : "text";
    return OPTS_GO;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct args a = {.boards = env->boards};
    const struct opt opts[] = {
        {"by", 'b', "WHAT", "job (the default), user, label:KEY … or two: user,day",
         opt_text, &a.by},
        {"waste", 0, NULL, "boards idle or underused, and who had them", opt_flag,
         &a.waste},
        {"user", 0, "USER", "only jobs of this user", opt_text, &a.user},
        {"job", 0, "ID", "only this job", opt_text, &a.job},
        {"label", 0, "KEY=VALUE", "only jobs with this label", opt_text, &a.label},
        {"from", 0, "TIME", "start: 2026-11-21, 2026-11-21T14:30, today, 7d", opt_text,
         &a.from},
        {"to", 0, "TIME", "end; a date without a time includes its day", opt_text, &a.to},
        {"zone", 0, "utc|local|NAME", "time zone of dates and days (utc)", opt_text,
         &a.zone},
        {"format", 'f', "FORMAT", "text (the default), csv, json or html", opt_text,
         &a.format},
        {"output", 'o', "FILE|-", "write to this file instead of standard output",
         opt_output, &a.output},
        OPT_JSON(&a.json),
        {"columns", 0, "KEY,KEY|all", "of text: one table of these columns", opt_text,
         &a.columns},
        {"ledger", 0, "FILE", "read this ledger file instead of asking the daemon",
         opt_input, &a.ledger},
        {"carbon", 0, "G", "the grid's gCO2e per kWh, for emissions", opt_carbon_text,
         &a.gco2e},
        {"pue", 0, "N", "with --ledger: the facility's energy, of this PUE", opt_pue,
         &a.accounting},
        {"market", 0, "FILE", "with --ledger: emissions by these contracts", opt_input,
         &a.market},
        {"embodied", 0, "\"BOARD=G ORIGIN\"",
         "with --ledger: grams an hour of a board (repeatable)", opt_embodied,
         &a.accounting},
        {"price", 0, "\"P CUR\"", "price of a kWh, for costs: \"0.30 EUR\"",
         opt_price_text, &a.price},
        OPT_BOARDS(&a.boards),
    };

    int r = opts_parse(&cmd_report, opts, n_elements(opts), argc, argv, NULL);
    r = r != OPTS_GO ? r : one_output(&a);
    r = r != OPTS_GO ? r : report(env, &a);
    accounting_fini(&a.accounting);
    return r;
}

const struct cmd cmd_report = {
    "report",
    "[--by WHAT] [--from TIME] [--to TIME] [OPTIONS]",
    "Show energy by job, user and other keys, from the ledger",
    run,
};
