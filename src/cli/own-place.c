#include "cli/own-place.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "io/file.h"

/* A world that is made anew in the same folder is another one. */
static void name_world(const char *boards, struct own_place *ret)
{
    struct gpu_about about = {.simulated = false};
    struct stat st;

    if (gpu_boards_look(boards, &about, NULL) == 0 && about.simulated &&
        stat(about.state_dir, &st) == 0)
        (void)snprintf(ret->world, sizeof ret->world, "sim%jx-%jx", (uintmax_t)st.st_dev,
                       (uintmax_t)st.st_ino);
}

/* The process of node-PID.sock or node-WORLD-PID.sock; 0: another file, or world. */
static int process_of(const struct own_place *place, const char *name)
{
    char prefix[64];
    uint64_t pid = 0;

    size_t n = (size_t)snprintf(prefix, sizeof prefix, "node-%s%s", place->world,
                                place->world[0] ? "-" : "");
    if (strncmp(name, prefix, n) != 0)
        return 0;
    size_t digits = strspn(name + n, "0123456789");
    if (digits == 0 || digits > 9 || strcmp(name + n + digits, ".sock") != 0)
        return 0;
    for (size_t i = 0; i < digits; i++)
        pid = pid * 10 + (uint64_t)(name[n + i] - '0');
    return (int)pid;
}

static bool is_over(int pid)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/%d", pid);
    return access(path, F_OK) < 0;
}

void own_place_each(const struct own_place *place, own_place_fn fn, void *user)
{
    auto_(dir_close) DIR *dir = place->dir[0] ? opendir(place->dir) : NULL;
    const struct dirent *e;
    char path[512];

    while (dir && (e = readdir(dir))) {
        int pid = process_of(place, e->d_name);
        if (!pid)
            continue;
        (void)snprintf(path, sizeof path, "%s/%.255s", place->dir, e->d_name);
        if (is_over(pid))
            (void)unlink(path);
        else if (fn)
            fn(path, pid, user);
    }
}

void own_place_open(const struct cli_env *env, const char *boards, struct own_place *ret)
{
    *ret = (struct own_place){.dir = ""};
    if (file_runtime_path(env->runtime_dir, "underwatt", getuid(), ret->dir,
                          sizeof ret->dir, NULL) < 0 ||
        file_private_dir(ret->dir, getuid(), NULL) < 0) {
        ret->dir[0] = '\0';
        return;
    }
    name_world(boards, ret);
    own_place_each(ret, NULL, NULL);
}

void own_setup(const struct cli_env *env, const char *boards, struct loop *loop,
               struct own_setup *ret)
{
    *ret = (struct own_setup){
        .node = {.loop = loop,
                 .backend = &gpu_boards,
                 .gpu = {.source = boards, .clock = cli_loop_clock(loop)},
                 .version = ""},
        .own = {.node = &ret->node}};
    own_place_open(env, boards, &ret->place);
    ret->own.runtime_dir = ret->place.dir[0] ? ret->place.dir : NULL;
    ret->own.world = ret->place.world[0] ? ret->place.world : NULL;
    log_set_level(LOG_LEVEL_NONE);
}
