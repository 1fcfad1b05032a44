/* underwatt-slurm-collector: reports the length of a Slurm cluster's queue, and Slurm's
 * data on their jobs, to the nodes.  See underwatt-slurm-collector(8).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/asked.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/units.h"
#include "collector/cluster.h"

enum { OK = 0, FAILED = 1, USAGE = 2 };

static const char help[] =
    "usage: underwatt-slurm-collector [--config FILE]\n"
    "       underwatt-slurm-collector --check FILE\n"
    "\n"
    "Sends the nodes of a Slurm cluster the length of its queue, and facts of their\n"
    "jobs.\n"
    "  --config FILE   read FILE instead of " COLLECTOR_CONFIG_FILE "\n"
    "  --check FILE    check FILE as a configuration and exit\n"
    "  --version, --help\n";

static int complain(int code, const char *text)
{
    (void)fprintf(stderr, "underwatt-slurm-collector: %s\n", text);
    return code;
}

static int on_end(struct loop_signal *source, int signo, void *user)
{
    (void)source;

    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_COLLECTOR_STOP, "signal=%d", signo);
    loop_stop(user, 0);
    return 0;
}

static int serve(struct loop *loop, const struct collector_config *config,
                 const char *token, uw_error *err)
{
    static const int signals[] = {SIGTERM, SIGINT};
    static const char *const sources[] = {"auto", "json", "text"};
    struct loop_signal *source[n_elements(signals)] = {NULL};
    auto_(cluster_free) struct cluster *cluster = NULL;
    int r = cluster_new(loop, config, token, &cluster, err);

    for (size_t i = 0; r == 0 && i < n_elements(signals); i++)
        r = loop_signal_new(loop, signals[i], on_end, loop, &source[i], err);
    if (r == 0) {
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_COLLECTOR_READY,
                  "version=%s every_s=%.6g source=%s nodes=%s", UW_VERSION,
                  s_of_ns(config->every_ns), sources[config->source],
                  log_quote(config->socket ? config->socket : config->url).text);
        r = loop_run(loop, err);
    }
    for (size_t i = 0; i < n_elements(signals); i++)
        loop_signal_free(source[i]);
    return r;
}

static int run(const char *path)
{
    auto_(collector_config_fini) struct collector_config config = {.doc = NULL};
    auto_(loop_free) struct loop *loop = NULL;
    const struct loop_clock real = {0, 1};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    char *token = NULL;
    uw_error err = {""};
    int r = collector_config_file(path, &config, &err);

    if (r == 0 && config.token)
        r = collector_token(config.token, &token, &err);
    if (r < 0)
        return complain(USAGE, err.text);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    r = loop_new_real(real, &loop, &err);
    if (r == 0)
        r = serve(loop, &config, token, &err);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    return r < 0 ? complain(FAILED, err.text) : OK;
}

static int check(const char *path)
{
    auto_(collector_config_fini) struct collector_config config = {.doc = NULL};
    char *token = NULL;
    uw_error err = {""};
    int r = collector_config_file(path, &config, &err);

    if (r == 0 && config.token)
        r = collector_token(config.token, &token, &err);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    if (r == 0 && config.ca && access(config.ca, R_OK) < 0)
        r = fail(&err, -errno, "%s: %s", config.ca, strerror(errno));
    if (r < 0)
        return complain(USAGE, err.text);
    (void)printf("%s: OK\n", path);
    return OK;
}

int main(int argc, char **argv)
{
    const char *config = NULL;
    static const char *const options[] = {"--config", "--check", NULL};
    bool checks = false;
    char hint[NEAREST_TEXT];
    uw_error err = {""};

    log_set_journal(getenv("JOURNAL_STREAM"));
    switch (asked_by(argc, argv)) {
    case ASKED_HELP:
        return asked_print("underwatt-slurm-collector", help) ? OK : FAILED;
    case ASKED_VERSION:
        return asked_print("underwatt-slurm-collector",
                           "underwatt-slurm-collector " UW_VERSION "\n")
                   ? OK
                   : FAILED;
    default:
        break;
    }
    for (int i = 1; i < argc; i++) {
        bool is_check = strcmp(argv[i], "--check") == 0;
        if (!is_check && strcmp(argv[i], "--config") != 0) {
            (void)fail(&err, -EINVAL, "%s '%.80s' (see --help)%s", asked_wrong(argv[i]),
                       argv[i], nearest_of(argv[i], options, hint));
            return complain(USAGE, err.text);
        }
        if (i + 1 == argc) {
            (void)fail(&err, -EINVAL, "%s needs a value", argv[i]);
            return complain(USAGE, err.text);
        }
        if (config) {
            (void)fail(&err, -EINVAL, "%s '%.80s': a second file; '%.80s' is given",
                       argv[i], argv[i + 1], config);
            return complain(USAGE, err.text);
        }
        checks |= is_check;
        config = argv[++i];
    }
    if (!config)
        config = COLLECTOR_CONFIG_FILE;
    return checks ? check(config) : run(config);
}
