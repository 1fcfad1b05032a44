#include <errno.h>
#include <stdio.h>

#include "base/auto.h"
#include "base/units.h"
#include "caps/types.h"
#include "cli/daemon.h"
#include "cli/options.h"

enum { ANSWER_S = 60 }; /* a board that wakes up on attach takes seconds */

struct release {
    const char *boards;
    struct opt_time hold; /* 0: without an end */
    bool take_back;
};

/* Whether the daemon has the board.  EXIT_OK, or another exit code after a line on
 * stderr.
 */
static int find(struct httpc *daemon, const char *board)
{
    auto_(json_free) struct json *doc = NULL;
    char path[160];
    uw_error err = {""};

    if (!daemon_is_board(board))
        return cli_fail(EXIT_USAGE, "release: '%s' is not the index or UUID of a GPU",
                        board);
    (void)snprintf(path, sizeof path, "/v1/gpus/%s", board);
    int r = httpc_ask(daemon, "GET", path, NULL, &doc, &err);
    if (r == -ENOENT) /* the error names the board */
        return cli_fail(EXIT_USAGE, "release: %s", err.text);
    return r < 0 ? cli_fail(cli_exit_of(r), "release: GPU %s: %s", board, err.text)
                 : EXIT_OK;
}

/* Handles one board.  EXIT_OK, or another exit code after a line on stderr. */
static int one(struct httpc *daemon, const struct release *o, const char *board)
{
    auto_(json_free) struct json *doc = NULL;
    auto_(json_out_free) struct json_out *body = NULL;
    char path[160], time[40];
    uw_error err = {""};

    (void)snprintf(path, sizeof path, "/v1/gpus/%s/%s", board,
                   o->take_back ? "take-back" : "release");
    if (o->hold.ns) {
        body = json_out_new();
        (void)snprintf(time, sizeof time, "%.3f s", s_of_ns(o->hold.ns));
        json_out_object(body, NULL);
        json_out_text(body, "for", time);
        json_out_end(body);
    }
    int r = httpc_ask(daemon, "POST", path, take(body), &doc, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "release: GPU %s: %s", board, err.text);
    printf("GPU %s: %s\n", board,
           o->take_back ? "taken back"
                        : "released: original limit restored, driver closed; the board "
                          "can be reset (underwatt-release(1))");
    return EXIT_OK;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct release o = {
        .boards = env->boards,
        .hold = {.least_ns = OPT_TIME_LEAST, .most_ns = CAPS_FOR_MAX_NS},
    };
    auto_(httpc_free) struct httpc *daemon = NULL;
    const struct opt opts[] = {
        {"for", 0, "TIME", "take the board back after this time", opt_time, &o.hold},
        {"take-back", 0, NULL, "after the reset: take the board back", opt_flag,
         &o.take_back},
        OPT_BOARDS(&o.boards),
    };
    struct opts_rest rest;
    int done = 0, worst = EXIT_OK;

    int code = opts_parse(&cmd_release, opts, n_elements(opts), argc, argv, &rest);
    if (code != OPTS_GO)
        return code;
    if (rest.argc < 1)
        return opts_missing(&cmd_release, cmd_release.args);
    if (o.take_back && o.hold.ns)
        return cli_fail(EXIT_USAGE, "release: --for and --take-back exclude each other");
    code = daemon_need_within(&cmd_release, env, o.boards, ANSWER_S * NS_PER_S, &daemon);
    for (int i = 0; code == EXIT_OK && i < rest.argc; i++)
        code = find(daemon, rest.argv[i]);
    for (int i = 0; code == EXIT_OK && i < rest.argc; i++) {
        int r = one(daemon, &o, rest.argv[i]);
        done += r == EXIT_OK;
        worst = r != EXIT_OK ? r : worst;
    }
    return code != EXIT_OK    ? code
           : worst == EXIT_OK ? EXIT_OK
           : done             ? EXIT_PARTIAL
                              : worst;
}

const struct cmd cmd_release = {
    "release",
    "[OPTIONS] GPU…",
    "Release boards with their original limits, or take them back",
    run,
};
