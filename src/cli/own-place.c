#include "cli/own-place.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "io/file.h"

enum { STAT_MAX = 4096 };

/* A world created again in the same folder is a different one. */
static void name_world(const char *boards, struct own_place *ret)
{
    struct gpu_about about = {.simulated = false};
    struct stat st;

    if (gpu_boards_look(boards, &about, NULL) == 0 && about.simulated &&
        stat(about.state_dir, &st) == 0)
        (void)snprintf(ret->world, sizeof ret->world, "sim%jx-%jx", (uintmax_t)st.st_dev,
                       (uintmax_t)st.st_ino);
}

/* The process number in a name: PREFIX, number, END; 0: another name. */
static int number_in(const char *name, const char *prefix, const char *end)
{
    size_t n = strlen(prefix);
    uint64_t pid = 0;

    if (strncmp(name, prefix, n) != 0)
        return 0;
    size_t digits = strspn(name + n, "0123456789");
    if (digits == 0 || digits > 9 || strcmp(name + n + digits, end) != 0)
        return 0;
    for (size_t i = 0; i < digits; i++)
        pid = pid * 10 + (uint64_t)(name[n + i] - '0');
    return (int)pid;
}

/* The process of node-PID.sock or node-WORLD-PID.sock; 0: another file, or another
 * world.
 */
static int process_of(const struct own_place *place, const char *name)
{
    char prefix[64];

    (void)snprintf(prefix, sizeof prefix, "node-%s%s", place->world,
                   place->world[0] ? "-" : "");
    return number_in(name, prefix, ".sock");
}

/* Also true for a process that its parent has not waited for. */
static bool is_over(int pid)
{
    auto_(mem_free) char *text = NULL;
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int r = file_read(path, STAT_MAX, &text, NULL, NULL);
    const char *state = r == 0 ? strrchr(text, ')') : NULL;
    return r == -ENOENT || r == -ESRCH ||
           (state && state[1] == ' ' && (state[2] == 'Z' || state[2] == 'X'));
}

/* ---- a folder of one process ---- */

static void folder_of(const struct own_place *place, int pid, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s/keep-%d", place->dir, pid);
}

static void remove_folder(const struct own_place *place, int pid)
{
    static const char *const names[] = {OWN_PLACE_NODE, OWN_PLACE_JOB};
    char dir[OWN_PLACE_PATH], path[OWN_PLACE_PATH + 16];

    folder_of(place, pid, dir, sizeof dir);
    for (size_t i = 0; i < n_elements(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

/* The name node-PID.sock beside the folder, as for any other node. */
static void link_of(const struct own_place *place, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s/node-%s%s%d.sock", place->dir, place->world,
                   place->world[0] ? "-" : "", (int)getpid());
}

int own_place_folder(const struct own_place *place, char *ret, size_t size, uw_error *err)
{
    char dir[OWN_PLACE_PATH], path[OWN_PLACE_PATH + 64], to[64];

    if (!place->dir[0])
        return fail(err, -EACCES,
                    "no folder for sockets: set XDG_RUNTIME_DIR to a folder of yours");
    folder_of(place, getpid(), dir, sizeof dir);
    int r = file_private_dir(dir, getuid(), err);
    if (r < 0)
        return r;
    link_of(place, path, sizeof path);
    (void)snprintf(to, sizeof to, "keep-%d/" OWN_PLACE_NODE, (int)getpid());
    (void)unlink(path);
    if (symlink(to, path) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    (void)snprintf(ret, size, "%s", dir);
    return 0;
}

void own_place_remove_folder(const struct own_place *place)
{
    char path[OWN_PLACE_PATH + 64];

    if (!place->dir[0])
        return;
    link_of(place, path, sizeof path);
    (void)unlink(path);
    remove_folder(place, getpid());
}

/* ---- all of them ---- */

void own_place_each(const struct own_place *place, own_place_fn fn, void *user)
{
    auto_(dir_close) DIR *dir = place->dir[0] ? opendir(place->dir) : NULL;
    const struct dirent *e;
    char path[512];

    while (dir && (e = readdir(dir))) {
        int keeper = number_in(e->d_name, "keep-", "");
        if (keeper && is_over(keeper))
            remove_folder(place, keeper);
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
