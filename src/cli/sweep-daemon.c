/* Refuses to sweep boards that the daemon controls: one writer per board. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/cap-read.h"
#include "cli/daemon.h"
#include "cli/job-node.h"
#include "cli/sweep.h"
#include "cli/take.h"

/* EXIT_OK: the daemon does not control this board. */
static int check_board(const struct json_value *gpu)
{
    const struct json_value *cap = json_get(gpu, "cap");
    uint64_t at = take_u64(gpu, "gpu");

    if (cap_read_left_alone(gpu))
        return EXIT_OK;
    return cli_fail(
        EXIT_BEFORE,
        "sweep: GPU %" PRIu64 " is the daemon's: %s. For the sweep, `underwatt "
        "release %" PRIu64 "`; after it `underwatt release --take-back %" PRIu64
        "` (administrators)",
        at, take_text(cap, "why"), at, at);
}

static int check_boards(struct httpc *daemon, const struct job_boards *meant)
{
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    int r = httpc_ask(daemon, "GET", "/v1/gpus", NULL, &doc, &err);
    if (r < 0)
        return cli_fail(EXIT_BEFORE, "sweep: %s", err.text);
    const struct json_value *gpus = json_get(json_root(doc), "gpus");
    for (size_t i = 0; i < json_count(gpus); i++) {
        const struct json_value *gpu = json_at(gpus, i);
        const char *uuid = take_text(gpu, "uuid");
        size_t k = 0;
        while (k < meant->n && strcmp(meant->uuid[k], uuid) != 0)
            k++;
        int code = k < meant->n ? check_board(gpu) : EXIT_OK;
        if (code != EXIT_OK)
            return code;
    }
    return EXIT_OK;
}

int sweep_check_daemon(const struct sweep_args *args)
{
    const struct job_run j = {
        .env = args->env, .boards = args->boards, .gpus = args->gpus};
    auto_(httpc_free) struct httpc *daemon = NULL;
    auto_(mem_free) struct job_boards *meant = calloc(1, sizeof *meant);
    uw_error err = {""};

    if (!meant)
        return cli_fail(EXIT_BEFORE, "sweep: out of memory");
    int r = daemon_open(args->env, args->boards, &daemon, &err);
    if (r < 0)
        cli_say("sweep: %s; a board that the daemon holds will be refused", err.text);
    if (r != 0)
        return EXIT_OK;
    auto_(json_free) struct json *gpus = NULL;
    if (httpc_ask(daemon, "GET", "/v1/gpus", NULL, &gpus, NULL) < 0 ||
        job_boards(gpus, &j, meant, NULL) < 0)
        return EXIT_OK; /* the sweep reports an invalid list */
    return check_boards(daemon, meant);
}
