/* underwatt-signals: queries services and files for outside signals, and provides them
 * to the node daemon.  See underwatt-signals(8).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/asked.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/units.h"
#include "fetcher/feed.h"
#include "fetcher/judges.h"
#include "fetcher/round.h"
#include "fetcher/serve.h"
#include "io/file.h"
#include "io/secret.h"
#include "io/zone.h"
#include "signal/config.h"

#define CONFIG_FILE UNDERWATT_ETC "/signals.yaml"

enum { OK = 0, FAILED = 1, USAGE = 2 };
enum { COUNTRIES_MAX = 1 << 20, CA_MAX = 4 << 20 };

static const char help[] =
    "usage: underwatt-signals [--config FILE]\n"
    "       underwatt-signals --check [FILE]\n"
    "\n"
    "Asks services and files for signals from outside (carbon, prices, whatever a site\n"
    "declares), or another instance that has asked them, and gives them to underwattd on "
    "a\n"
    "unix socket, to other instances over TLS.\n"
    "  --config FILE   read FILE instead of " CONFIG_FILE "\n"
    "  --check [FILE]  check FILE as a configuration, print what each source would do,\n"
    "                  ask none, and exit\n"
    "  --version, --help\n";

static int complain(int code, const char *text)
{
    (void)fprintf(stderr, "underwatt-signals: %s\n", text);
    return code;
}

/* ---- the configuration ---- */

/* path is NULL: the system's. */
static int check_ca(const char *path, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    int r = path ? file_read(path, CA_MAX, &text, NULL, err) : 0;

    if (r == 0 && text && !strstr(text, "-----BEGIN CERTIFICATE-----") &&
        !strstr(text, "-----BEGIN TRUSTED CERTIFICATE-----"))
        r = fail(err, -EINVAL, "%s: it has no certificate (PEM)", path);
    if (text)
        explicit_bzero(text, strlen(text)); /* it may be a key */
    return r;
}

/* Checks that each key and each certificate of an authority is readable, and each key
 * private.
 */
static int check_secrets(const struct signals_config *c, uw_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < c->n; i++) {
        char *secret = NULL;
        if (source_needs_secret(&c->source[i].c))
            r = signals_config_secret(c, i, &secret, err);
        secret_free(secret);
        if (r == 0 && check_ca(c->source[i].ca, err) < 0)
            r = fail_in(err, -EINVAL, "%s:%u: %s", c->name, c->source[i].line,
                        c->source[i].c.name);
    }
    return r;
}

static int check_follow(const struct signals_config *c, uw_error *err)
{
    char *token = NULL;

    if (!c->follow.url)
        return 0;
    int r = serve_token(c->follow.token, &token, err);
    secret_free(token);
    if (r == 0)
        r = check_ca(c->follow.ca, err);
    return r < 0 ? fail_in(err, r, "%s: follow", c->name) : 0;
}

/* ret_token: of serve.tcp; secret_free() it. */
static int configure(struct loop *loop, const char *path, struct signals_config *ret,
                     char **ret_token, uw_error *err)
{
    auto_(mem_free) char *countries = NULL;

    /* without it zones are judged by their form */
    (void)file_read(ZONE_FOLDER "/iso3166.tab", COUNTRIES_MAX, &countries, NULL, NULL);
    int r = signals_config_file(path, countries, ret, err);
    if (r == -ENOENT)
        return fail(err, r, "%s: %s: no source is configured", *path ? path : "''",
                    strerror(-r));
    if (r == 0)
        r = check_secrets(ret, err);
    if (r == 0)
        r = check_follow(ret, err);
    return r < 0 ? r : serve_check(loop, ret, ret_token, err);
}

/* ---- --check ---- */

static void show_gives(const struct signals_source *s)
{
    const char *between = "";
    char name[SIGNAL_NAME];

    for (size_t i = 0; source_kind_gives(s->c.kind, i); i++)
        if (s->c.provides >> i & 1) {
            (void)printf("%s%s", between, source_signal(&s->c, i, name));
            between = ", ";
        }
}

/* Its first request; after a login, the answer determines the others. */
static void show_request(const struct signals_source *s, int64_t utc_s)
{
    static const char *const ways[] = {
        [SOURCE_HTTP] = "GET", [SOURCE_FILE] = "reads", [SOURCE_TABLE] = "its own table"};
    struct source_state *state = calloc(1, sizeof *state);
    struct source_request *q = calloc(1, sizeof *q);
    uw_error err = {""};

    /* the shown request contains no secret */
    if (state && q &&
        source_next(&s->c, source_needs_secret(&s->c) ? "-:-" : NULL, state, utc_s, q,
                    &err) == 0)
        (void)printf("%s%s%s%s", q->is_login ? "login, " : "", ways[q->way],
                     q->url[0] ? " " : "", q->url);
    else
        (void)printf("%s", err.text);
    free(state);
    free(q);
}

static void show_follow(const struct signals_follow *f)
{
    if (f->url)
        (void)printf(SIGNALS_FOLLOW
                     ": what %s gives, every %.6g s: GET %s/v1/signals, token from %s\n",
                     f->url, s_of_ns(f->every_ns), f->url, f->token);
}

static void show_serve(const struct signals_config *c)
{
    if (c->socket)
        (void)printf("serve: socket %s\n", c->socket);
    if (c->listen)
        (void)printf("serve: %s, TLS with %s and %s, token from %s\n", c->listen, c->cert,
                     c->key, c->token);
}

/* Files may be created later: a missing file does not prevent the start. */
static int check_files(const struct signals_config *c, uw_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < c->n; i++) {
        auto_(mem_free) char *text = NULL;
        const struct signals_source *s = &c->source[i];
        struct stat st;
        size_t len = 0;
        if (s->c.file[0])
            r = file_read_owned(s->c.file, SOURCE_BODY_MAX, ROUND_FILE_MS, &text, &len,
                                &st, err);
        if (r < 0)
            r = fail_in(err, r, "%s:%u: %s", c->name, s->line, s->c.name);
    }
    return r;
}

static void show_source(const struct signals_source *s, int64_t utc_s)
{
    char origin[SOURCE_ORIGIN];

    (void)printf("%s: %s gives ", s->c.name, source_kind_type(s->c.kind));
    show_gives(s);
    (void)printf(", every %.6g s: ", s_of_ns(s->every_ns));
    show_request(s, utc_s);
    if (s->secret)
        (void)printf(", key from %s", s->secret);
    source_origin(&s->c, origin);
    (void)printf("%s%s\n", origin[0] ? ", " : "", origin);
}

static int check(const char *path)
{
    auto_(signals_config_fini) struct signals_config config = {.n = 0};
    auto_(loop_free) struct loop *loop = NULL;
    const struct loop_clock real = {0, 1};
    char *token = NULL;
    uw_error err = {""};

    if (loop_new_real(real, &loop, &err) < 0)
        return complain(FAILED, err.text);
    int r = configure(loop, path, &config, &token, &err);
    secret_free(token);
    if (r == 0)
        r = check_files(&config, &err);
    if (r < 0)
        return complain(USAGE, err.text);
    show_serve(&config);
    show_follow(&config.follow);
    for (size_t i = 0; i < config.n; i++)
        show_source(&config.source[i], loop_utc_ns(loop) / (int64_t)NS_PER_S);
    (void)printf("%s: OK\n", path);
    return OK;
}

/* ---- the service ---- */

static int on_end(struct loop_signal *source, int signo, void *user)
{
    (void)source;

    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_SIGNALS_STOP, "signal=%d", signo);
    loop_stop(user, 0);
    return 0;
}

static void say_ready(const struct signals_config *c, const struct serve *server)
{
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_SIGNALS_READY,
              "version=%s sources=%zu follow=%s socket=%s tcp=%s port=%u", UW_VERSION,
              c->n, log_quote(c->follow.url ? c->follow.url : "").text,
              log_quote(c->socket ? c->socket : "").text,
              log_quote(c->listen ? c->listen : "").text, serve_port(server));
}

/* Used by both. */
struct parts {
    struct feed *feed;
    struct follow *follow;
};

static void each(judges_series_fn fn, void *arg, void *user)
{
    const struct parts *p = user;

    if (p->feed)
        feed_each(p->feed, fn, arg);
    if (p->follow)
        follow_each(p->follow, fn, arg);
}

static int serve(struct loop *loop, const struct signals_config *config,
                 const char *token, uw_error *err)
{
    static const int signals[] = {SIGTERM, SIGINT};
    struct loop_signal *source[n_elements(signals)] = {NULL};
    auto_(feed_free) struct feed *feed = NULL;
    auto_(follow_free) struct follow *follow = NULL;
    auto_(judges_free) struct judges *judges = NULL;
    auto_(serve_free) struct serve *server = NULL;
    int r = config->n > 0 ? feed_new(loop, config, &feed, err) : 0;

    if (r == 0 && config->follow.url)
        r = follow_new(loop, config, &follow, err);
    struct parts parts = {feed, follow};
    if (r == 0)
        r = judges_new(loop, config->cache, each, &parts, &judges, err);
    const struct serve_opts opts = {config, token, feed, follow, judges};
    if (r == 0)
        r = serve_new(loop, &opts, &server, err);
    for (size_t i = 0; r == 0 && i < n_elements(signals); i++)
        r = loop_signal_new(loop, signals[i], on_end, loop, &source[i], err);
    if (r == 0) {
        say_ready(config, server);
        r = loop_run(loop, err);
    }
    for (size_t i = 0; i < n_elements(signals); i++)
        loop_signal_free(source[i]);
    return r;
}

static int run(const char *path)
{
    auto_(signals_config_fini) struct signals_config config = {.n = 0};
    auto_(loop_free) struct loop *loop = NULL;
    const struct loop_clock real = {0, 1};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    char *token = NULL;
    uw_error err = {""};

    (void)sigaction(SIGPIPE, &ignore, NULL);
    int r = loop_new_real(real, &loop, &err);
    if (r < 0)
        return complain(FAILED, err.text);
    r = configure(loop, path, &config, &token, &err);
    if (r < 0)
        return complain(USAGE, err.text);
    r = serve(loop, &config, token, &err);
    secret_free(token);
    return r < 0 ? complain(FAILED, err.text) : OK;
}

static int parse(int argc, char **argv, const char **ret_config, bool *ret_checks,
                 uw_error *err)
{
    static const char *const options[] = {"--config", "--check", NULL};
    char hint[NEAREST_TEXT];

    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        bool is_check = strcmp(option, "--check") == 0;
        if (!is_check && strcmp(option, "--config") != 0)
            return fail(err, -EINVAL, "%s '%.80s' (see --help)%s", asked_wrong(option),
                        option, nearest_of(option, options, hint));
        *ret_checks |= is_check;
        if (is_check && (i + 1 == argc || argv[i + 1][0] == '-'))
            continue;
        if (++i == argc)
            return fail(err, -EINVAL, "--config needs a value");
        if (*ret_config)
            return fail(err, -EINVAL, "%s '%.80s': a second file; '%.80s' is given",
                        option, argv[i], *ret_config);
        *ret_config = argv[i];
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *config = NULL;
    bool checks = false;
    uw_error err = {""};

    log_set_journal(getenv("JOURNAL_STREAM"));
    switch (asked_by(argc, argv)) {
    case ASKED_HELP:
        return asked_print("underwatt-signals", help) ? OK : FAILED;
    case ASKED_VERSION:
        return asked_print("underwatt-signals", "underwatt-signals " UW_VERSION "\n")
                   ? OK
                   : FAILED;
    default:
        break;
    }
    int r = parse(argc, argv, &config, &checks, &err);
    if (r < 0)
        return complain(USAGE, err.text);
    if (!config)
        config = CONFIG_FILE;
    return checks ? check(config) : run(config);
}
