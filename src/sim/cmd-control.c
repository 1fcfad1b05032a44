/* stop, fault and reset: one request each; the world says which boards it has. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "sim/machine.h"
#include "sim/main.h"
#include "sim/statedir.h"

int cmd_stop(const struct sim_env *env, int argc, char **argv)
{
    struct sim_request q = {.version = SIM_VERSION, .op = SIM_OP_STOP};
    auto_(statedir_unmap) const struct sim_page *page = NULL;
    auto_(fd_close) int fd = -1;
    struct sim_reply reply = {0};
    uw_error err = {""};

    if (argc > 0)
        return complain(EXIT_USAGE, "stop: unexpected argument '%s'", argv[0]);
    int r = statedir_map(env->state_dir, &page, &err);
    if (r == STATEDIR_DEAD) {
        if (statedir_clean(env->state_dir, &err))
            return complain(EXIT_FAIL, "%s", err.text);
        printf("the simulated world in %s had been killed: its files are removed\n",
               env->state_dir);
        return EXIT_OK;
    }
    if (r)
        return complain(EXIT_FAIL, "%s", err.text);
    r = statedir_request(env->state_dir, &q, &fd, &reply, &err);
    if (r || reply.result)
        return complain(EXIT_FAIL, "%s", r ? err.text : reply.text);
    /* The world's process holds the connection until it ends. */
    while (statedir_wait(fd, &reply, NULL) == 0)
        ;
    return EXIT_OK;
}

/* Sends one request; returns an enum exit_code. */
static int request(const struct sim_env *env, const struct sim_request *q,
                   const char *command)
{
    auto_(fd_close) int fd = -1;
    struct sim_reply reply = {0};
    uw_error err = {""};

    if (statedir_request(env->state_dir, q, &fd, &reply, &err))
        return complain(EXIT_FAIL, "%s", err.text);
    if (reply.result == SIM_OK)
        return EXIT_OK;
    return complain(reply.result == SIM_INVALID ? EXIT_USAGE : EXIT_FAIL, "%s: %s",
                    command, reply.text);
}

int cmd_fault(const struct sim_env *env, int argc, char **argv)
{
    struct sim_request q = {.version = SIM_VERSION, .op = SIM_OP_FAULT};
    struct sim_fault fault;
    uw_error err = {""};
    size_t at = 0;

    for (int i = 0; i < argc; i++) {
        int n = snprintf(q.text + at, sizeof q.text - at, "%s%s", i ? " " : "", argv[i]);
        if (n < 0 || (size_t)n >= sizeof q.text - at)
            return complain(EXIT_USAGE, "fault: longer than %zu characters",
                            sizeof q.text - 1);
        at += (size_t)n;
    }
    if (sim_fault_parse(q.text, &fault, &err))
        return complain(EXIT_USAGE, "fault: %s", err.text);
    return request(env, &q, "fault");
}

int cmd_reset(const struct sim_env *env, int argc, char **argv)
{
    struct sim_request q = {.version = SIM_VERSION, .op = SIM_OP_RESET};
    uint64_t board = 0;

    if (argc != 1)
        return complain(EXIT_USAGE, "reset: give the number of one board");
    if (parse_u64(argv[0], &board, NULL) || board > UINT32_MAX)
        return complain(EXIT_USAGE, "reset: '%.40s' is not the number of a board",
                        argv[0]);
    q.board = (uint32_t)board;
    return request(env, &q, "reset");
}
