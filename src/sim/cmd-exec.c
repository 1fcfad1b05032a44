#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "sim/main.h"
#include "sim/statedir.h"

/* nvidia-smi is beside the library that underwatt-sim was installed with: puts its
 * folder first on the program path, once.
 */
static int set_path(const struct sim_env *env)
{
    char text[8192];
    const char *slash = strrchr(env->library, '/');
    size_t dir = slash ? (size_t)(slash - env->library) : 0;
    const char *old = env->path && *env->path ? env->path : "/usr/bin:/bin";

    if (dir == 0 || (strncmp(old, env->library, dir) == 0 && old[dir] == ':'))
        return 0;
    int n = snprintf(text, sizeof text, "%.*s:%s", (int)dir, env->library, old);
    return n < 0 || (size_t)n >= sizeof text ? -1 : setenv("PATH", text, 1);
}

/* The environment of a process in the world: the simulated library first on the library
 * path, nvidia-smi on the program path, the library's path for Underwatt's programs, the
 * clock, and the state directory.
 */
static int set_world(const struct sim_env *env, const struct sim_page *page)
{
    char text[4096];
    const char *old = env->library_path;
    bool has_old = old && *old;

    int n = snprintf(text, sizeof text, "%s/lib%s%s", env->state_dir, has_old ? ":" : "",
                     has_old ? old : "");
    if (n < 0 || (size_t)n >= sizeof text || setenv("LD_LIBRARY_PATH", text, 1) ||
        set_path(env))
        return -1;
    (void)snprintf(text, sizeof text, "%s/lib/libnvidia-ml.so.1", env->state_dir);
    if (setenv("UNDERWATT_NVML", text, 1) || unsetenv("UNDERWATT_BOARDS"))
        return -1;
    (void)snprintf(text, sizeof text, "%llu:%.17g", (unsigned long long)page->t0_ns,
                   page->speed);
    if (setenv("UNDERWATT_CLOCK", text, 1))
        return -1;
    return setenv("UNDERWATT_SIM_STATE", env->state_dir, 1);
}

int cmd_exec(const struct sim_env *env, int argc, char **argv)
{
    auto_(statedir_unmap) const struct sim_page *page = NULL;
    uw_error err = {""};

    if (argc > 0 && strcmp(argv[0], "--") == 0) {
        argv++;
        argc--;
    }
    if (argc == 0)
        return complain(EXIT_USAGE, "exec: the program is missing: exec -- CMD…");
    int r = statedir_map(env->state_dir, &page, &err);
    if (r)
        return complain(EXIT_EXEC, "%s: run underwatt-sim start first", err.text);
    if (statedir_trust(env->state_dir, &err))
        return complain(EXIT_EXEC, "the library of the simulated world is not loaded: %s",
                        err.text);
    if (set_world(env, page))
        return complain(EXIT_EXEC, "the environment cannot be set");
    (void)execvp(argv[0], argv);
    r = errno;
    return complain(r == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT, "%s: %s", argv[0],
                    strerror(r));
}
