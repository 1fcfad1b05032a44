/* A client of the actuator for tests: does what its standard input says, a
 * line each, and prints what it hears.
 *
 *     hold UUID · set UUID MW · clocks UUID MIN MAX · release UUID · quit
 *
 * Prints "ready R TEXT", "WORD UUID RESULT ENFORCED ORIGINAL PID TEXT" for answers
 * and "event NAME UUID TEXT".  Started as: actuator-hold PROGRAM LIBRARY KIND, where KIND
 * is "simulated" or "real", or "service": then PROGRAM is the service's socket.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actuator/client.h"
#include "base/names.h"
#include "base/units.h"

static struct loop *loop;
static struct actuator *act;
static char input[4096];
static size_t filled;

static int on_reply(struct actuator *a, const struct actuator_reply *reply, void *user)
{
    (void)a;
    printf("%s %s %s %u %u %d %s\n", (const char *)user, reply->uuid,
           names_word(NAMES_ACTUATOR_RESULT, reply->result), reply->enforced_mw,
           reply->original_mw, reply->pid, reply->text);
    return 0;
}

static int on_event(struct actuator *a, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    static const char *const names[] = {"yielded", "lease",   "lost",
                                        "ended",   "writing", "board"};

    (void)a;
    (void)user;
    printf("event %s %s %s\n", names[event], what->uuid[0] ? what->uuid : "-",
           what->text);
    return 0;
}

static int on_ready(struct actuator *a, int r, const char *text, void *user)
{
    (void)a;
    (void)user;
    printf("ready %d %s\n", r, text);
    return 0;
}

static uint32_t number(char **at)
{
    const char *word = strsep(at, " ");
    uint64_t n = 0;

    return word && parse_u64(word, &n, NULL) == 0 ? (uint32_t)n : 0;
}

static void obey(char *line)
{
    static char words[4][8] = {"hold", "set", "clocks", "release"};
    const char *word = strsep(&line, " ");
    const char *uuid = line ? strsep(&line, " ") : "";
    int r = -EINVAL;

    if (strcmp(word, "hold") == 0) {
        r = actuator_hold(act, uuid, on_reply, words[0]);
    } else if (strcmp(word, "set") == 0) {
        r = actuator_set_limit(act, uuid, number(&line), on_reply, words[1]);
    } else if (strcmp(word, "clocks") == 0) {
        uint32_t min_mhz = number(&line);
        r = actuator_set_clocks(act, uuid, min_mhz, number(&line), on_reply, words[2]);
    } else if (strcmp(word, "release") == 0) {
        r = actuator_release(act, uuid, on_reply, words[3]);
    } else if (strcmp(word, "quit") == 0) {
        r = 0;
        loop_stop(loop, 0);
    }
    if (r < 0)
        printf("error %s %s %s\n", word, uuid, strerror(-r));
}

static int on_input(struct loop_fd *source, int fd, int events, void *user)
{
    (void)source;
    (void)events;
    (void)user;
    ssize_t n = read(fd, input + filled, sizeof input - 1 - filled);
    if (n <= 0) {
        loop_stop(loop, 0);
        return 0;
    }
    filled += (size_t)n;
    input[filled] = '\0';
    for (char *end = strchr(input, '\n'); end; end = strchr(input, '\n')) {
        *end = '\0';
        obey(input);
        filled -= (size_t)(end + 1 - input);
        memmove(input, end + 1, filled + 1);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct actuator_opts opts = {.on_ready = on_ready, .on_event = on_event};
    struct loop_fd *source = NULL;
    uw_error err = {""};

    if (argc != 4)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    opts.program = argv[1];
    opts.library = argv[2][0] ? argv[2] : NULL; /* "": the system's */
    opts.simulated = strcmp(argv[3], "simulated") == 0;
    int r = loop_new_real((struct loop_clock){.speed = 1}, &loop, &err);
    if (r == 0)
        r = strcmp(argv[3], "service") == 0
                ? actuator_connect(loop, argv[1], &opts, &act, &err)
                : actuator_start_local(loop, &opts, &act, &err);
    if (r == 0)
        r = loop_fd_new(loop, STDIN_FILENO, LOOP_READ, on_input, NULL, &source, &err);
    if (r == 0)
        r = loop_run(loop, &err);
    if (r < 0)
        printf("failed %d %s\n", r, err.text);
    loop_fd_free(source);
    actuator_free(act);
    loop_free(loop);
    return r < 0;
}
