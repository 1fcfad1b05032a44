/* underwatt: finds the command in the table and runs it.  Only this file reads the
 * environment.
 */
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/asked.h"
#include "base/auto.h"
#include "base/nearest.h"
#include "cli/cmd.h"
#include "cli/drop.h"
#include "cli/figures.h"
#include "cli/gate.h"
#include "io/loop.h"

#define CLI_ENTRY(name) &cmd_##name,
static const struct cmd *const commands[] = {CLI_COMMANDS(CLI_ENTRY)};
#undef CLI_ENTRY

static void print_usage(FILE *to)
{
    (void)fprintf(to, "usage: underwatt COMMAND [OPTIONS] [-- CMD [ARG…]]\n\n"
                      "Measures and lowers the energy of AI training.\n\nCommands:\n");
    for (size_t i = 0; i < n_elements(commands); i++)
        text_wrap(to, (unsigned)fprintf(to, "  %-8s  ", commands[i]->name), 12,
                  commands[i]->help);
    (void)fprintf(to, "\nunderwatt COMMAND --help shows a command's options, "
                      "underwatt --version\n(-V, version) the version.\n");
}

static const struct cmd *find(const char *name)
{
    for (size_t i = 0; i < n_elements(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}

static int unknown_option(const char *name)
{
    static const char *const known[] = {"--help", "--version", NULL};
    char near[NEAREST_TEXT];

    return cli_fail(EXIT_USAGE,
                    "unknown option '%s'%s: one of --help, --version; the options of a "
                    "command follow its name",
                    name, nearest_of(name, known, near));
}

static int unknown(const char *name)
{
    char known[400] = "";
    struct nearest nearest = {0};
    size_t at = 0;

    for (size_t i = 0; i < n_elements(commands); i++) {
        nearest_try(&nearest, name, strlen(name), commands[i]->name);
        int n = snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                         commands[i]->name);
        if (n < 0 || (size_t)n >= sizeof known - at)
            break;
        at += (size_t)n;
    }
    if (nearest.word)
        return cli_fail(EXIT_USAGE,
                        "unknown command '%s' (see --help): did you mean '%s'?", name,
                        nearest.word);
    return cli_fail(EXIT_USAGE, "unknown command '%s': one of %s", name, known);
}

/* Under sudo, switch to the calling user before anything is opened. */
static int give_up_root(struct cli_env *env)
{
    uw_error err = {{0}};
    uid_t uid = 0;

    int r = drop_sudo(getenv("SUDO_UID"), getenv("SUDO_GID"), &uid, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "started through sudo: %s", err.text);
    if (r == DROP_DONE) {
        env->dropped = true;
        cli_say("started through sudo: runs as the calling user (uid %u), not as root. "
                "sudo has reset the environment (lists of boards, UNDERWATT_… are "
                "gone unless sudo -E kept them); sudo is not needed here",
                (unsigned)uid);
    }
    env->root = geteuid() == 0;
    return EXIT_OK;
}

static void read_environment(struct cli_env *env)
{
    env->boards = gpu_boards_named(getenv);
    env->clock = getenv("UNDERWATT_CLOCK");
    env->data = getenv("UNDERWATT_DATA");
    gpu_visible_read(getenv, &env->visible);
    env->cuda_injection = getenv("CUDA_INJECTION64_PATH");
    env->path = getenv("PATH");
    env->runtime_dir = getenv("XDG_RUNTIME_DIR");
    env->socket = getenv("UNDERWATT_SOCKET");
    env->sim_state = getenv("UNDERWATT_SIM_STATE");
    env->slurm_conf = getenv("SLURM_CONF");
    env->slurm_node = getenv("SLURMD_NODENAME");
    env->zone = getenv("TZ");
    const char *no_color = getenv("NO_COLOR");
    env->no_color = no_color && *no_color;
}

/* For root, only a library that root alone can change.  Other users may name any. */
static int check_boards(struct cli_env *env)
{
    static char checked[GPU_BOARDS_TEXT];
    uw_error err = {{0}};

    if (!env->boards)
        return EXIT_OK;
    if (gpu_boards_check(env->boards, env->root, checked, sizeof checked, &err) == 0)
        env->boards = checked;
    else if (env->root)
        return cli_fail(EXIT_USAGE, "boards of the environment: %s", err.text);
    return EXIT_OK;
}

static int end(int code, const char *name, const char *colon)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_fail(code ? code : EXIT_FAIL, "%s%scannot write to stdout", name,
                        colon);
    return code;
}

static int run_command(const struct cli_env *env, int argc, char **argv)
{
    const struct cmd *cmd = find(argv[0]);

    if (!cmd)
        return argv[0][0] == '-' ? unknown_option(argv[0]) : unknown(argv[0]);
    return end(cmd->run(env, argc, argv), cmd->name, ": ");
}

/* Whether the standard streams are open: otherwise other files could get their numbers.
 */
static bool has_streams(void)
{
    int fd = STDIN_FILENO;

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = fcntl(fd, F_GETFD) >= 0 ? fd + 1 : open("/dev/null", O_RDWR);
    return fd >= 0;
}

int main(int argc, char **argv)
{
    struct cli_env env = {0};

    if (!has_streams())
        return EXIT_FAIL;
    if (argc > 2 && strcmp(argv[1], GATE_WORD) == 0)
        return gate_run(argc - 2, argv + 2, getenv("PATH"));
    loop_child_keep_inherited();
    int code = give_up_root(&env);
    if (code != EXIT_OK)
        return code;
    (void)setlocale(LC_CTYPE, ""); /* determines the width of characters */
    read_environment(&env);
    code = check_boards(&env);
    if (code != EXIT_OK)
        return code;
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (asked_for(argv[1]) == ASKED_VERSION) {
        printf("underwatt %s\n", UW_VERSION);
        return end(EXIT_OK, "", "");
    }
    if (asked_for(argv[1]) == ASKED_HELP && (argc == 2 || strcmp(argv[1], "help") != 0)) {
        print_usage(stdout);
        return end(EXIT_OK, "", "");
    }
    if (strcmp(argv[1], "help") == 0 && argc == 3) { /* help CMD = CMD --help */
        static char help[] = "--help";
        char *words[] = {argv[2], help, NULL};
        return run_command(&env, 2, words);
    }
    return run_command(&env, argc - 1, argv + 1);
}
