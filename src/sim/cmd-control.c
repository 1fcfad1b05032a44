/* stop, fault and reset: one request each. */
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
        return complain(EXIT_USAGE, "stop: takes no '%s'", argv[0]);
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
    r = statedir_connect(env->state_dir, &fd, &err);
    if (!r)
        r = statedir_ask(fd, &q, &reply, &err);
    if (r || reply.result)
        return complain(EXIT_FAIL, "%s", r ? err.text : reply.text);
    /* Its process holds the connection until it ends. */
    while (statedir_wait(fd, &reply, NULL) == 0)
        ;
    return EXIT_OK;
}

int cmd_fault(const struct sim_env *env, int argc, char **argv)
{
    struct sim_request q = {.version = SIM_VERSION, .op = SIM_OP_FAULT};
    auto_(fd_close) int fd = -1;
    struct sim_reply reply = {0};
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
    int r = statedir_connect(env->state_dir, &fd, &err);
    if (!r)
        r = statedir_ask(fd, &q, &reply, &err);
    if (r)
        return complain(EXIT_FAIL, "%s", err.text);
    if (reply.result == SIM_INVALID)
        return complain(EXIT_USAGE, "fault: %s", reply.text);
    return reply.result ? complain(EXIT_FAIL, "fault: %s", reply.text) : EXIT_OK;
}

int cmd_reset(const struct sim_env *env, int argc, char **argv)
{
    struct sim_request q = {.version = SIM_VERSION, .op = SIM_OP_RESET};
    auto_(fd_close) int fd = -1;
    struct sim_reply reply = {0};
    uw_error err = {""};
    uint64_t board = 0;

    if (argc != 1 || parse_u64(argv[0], &board, &err) || board >= SIM_BOARDS_MAX)
        return complain(EXIT_USAGE, "reset: names one board, 0 to %d",
                        SIM_BOARDS_MAX - 1);
    q.board = (uint32_t)board;
    int r = statedir_connect(env->state_dir, &fd, &err);
    if (!r)
        r = statedir_ask(fd, &q, &reply, &err);
    if (r)
        return complain(EXIT_FAIL, "%s", err.text);
    if (reply.result == SIM_INVALID)
        return complain(EXIT_USAGE, "reset: %s", reply.text);
    return reply.result ? complain(EXIT_FAIL, "reset: %s", reply.text) : EXIT_OK;
}
