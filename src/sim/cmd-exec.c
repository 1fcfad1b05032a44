#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/program.h"
#include "sim/main.h"
#include "sim/statedir.h"

enum { PATH_ROOM = 8192 };

/* nvidia-smi is beside the library that underwatt-sim was installed with: puts its
 * folder first on the program path, once.
 */
static int set_path(const struct sim_env *env, char ret[PATH_ROOM])
{
    const char *slash = strrchr(env->library, '/');
    size_t dir = slash ? (size_t)(slash - env->library) : 0;
    const char *old = env->path && *env->path ? env->path : "/usr/bin:/bin";

    bool has_it = dir == 0 || (strncmp(old, env->library, dir) == 0 && old[dir] == ':');
    int n = has_it ? snprintf(ret, PATH_ROOM, "%s", old)
                   : snprintf(ret, PATH_ROOM, "%.*s:%s", (int)dir, env->library, old);
    return n < 0 || n >= PATH_ROOM ? -1 : setenv("PATH", ret, 1);
}

/* The environment of a process in the world: the simulated library first on the library
 * path, nvidia-smi on the program path, the library's path for Underwatt's programs, the
 * clock, and the state directory.  Writes the program path.
 */
static int set_world(const struct sim_env *env, const struct sim_page *page,
                     char ret_path[PATH_ROOM])
{
    char text[4096];
    const char *old = env->library_path;
    bool has_old = old && *old;

    int n = snprintf(text, sizeof text, "%s/lib%s%s", env->state_dir, has_old ? ":" : "",
                     has_old ? old : "");
    if (n < 0 || (size_t)n >= sizeof text || setenv("LD_LIBRARY_PATH", text, 1) ||
        set_path(env, ret_path))
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
    char folders[PATH_ROOM], path[4096];
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
    if (set_world(env, page, folders))
        return complain(EXIT_EXEC, "the environment cannot be set");
    r = program_find(argv[0], folders, path, sizeof path, &err);
    if (r == 0)
        r = program_fail(argv[0], path, program_exec(path, argv, environ), &err);
    return complain(r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT, "%s", err.text);
}
