#include "slurm/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "slurm/gres.h"

enum { FILE_MAX = GRES_CONF_MAX };

/* Slurm takes char *, and does not write to them. */
static char name_cap[] = "gpu-power-cap", name_goal[] = "gpu-power-goal",
            name_class[] = "gpu-power-class";
static char arg_cap[] = "CAP", arg_goal[] = "GOAL", arg_class[] = "NAME";
static char help_cap[] = "power cap of each of the job's GPUs: watts, a percentage, "
                         "aggressive, balanced, minimal";
static char help_goal[] = "search the power cap that serves a goal best: energy, edp, "
                          "eds:K, cost:ETA, slowdown:F, time";
static char help_class[] = "class of the site's power policy";

struct spank_option context_option[OPTIONS] = {
    {name_cap, arg_cap, help_cap, 1, OPTION_CAP, submission_option},
    {name_goal, arg_goal, help_goal, 1, OPTION_GOAL, submission_option},
    {name_class, arg_class, help_class, 1, OPTION_CLASS, submission_option},
};

int context_wish(enum option which, const char *value, struct wish *ret, uw_error *err)
{
    static int (*const read[OPTIONS])(const char *, struct wish *,
                                      uw_error *) = {wish_cap, wish_goal, wish_class};

    return read[which](value, ret, err);
}

int context_arguments(int argc, char **argv, struct arguments *ret, uw_error *err)
{
    struct arguments a = {.socket = "/run/underwatt/underwattd.sock"};
    const struct {
        const char *name;
        const char **to;
    } known[] = {{"socket=", &a.socket},
                 {"boards=", &a.boards},
                 {"gres=", &a.gres},
                 {"times=", &a.times}};
    int r = 0;

    for (int i = 0; i < argc; i++) {
        bool found = false;
        struct nearest near = {0};
        char hint[NEAREST_TEXT];
        for (size_t k = 0; k < n_elements(known); k++) {
            size_t n = strlen(known[k].name);
            nearest_try(&near, argv[i], strcspn(argv[i], "=") + 1, known[k].name);
            if (strncmp(argv[i], known[k].name, n) == 0 && argv[i][n]) {
                *known[k].to = argv[i] + n;
                found = true;
            }
        }
        if (!found)
            r = fail(err, -EINVAL,
                     "'%s' is none of: socket=PATH, boards=FILE, gres=FILE, "
                     "times=FILE%s",
                     argv[i], nearest_text(&near, hint));
    }
    *ret = a;
    return r;
}

int context_file(const char *path, char **ret, uw_error *err)
{
    struct stat st;
    auto_(mem_free) char *text = NULL;
    size_t used = 0;

    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerrordesc_np(errno));
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
        return fail(err, -EINVAL, "%s is no file of at most %d bytes", path, FILE_MAX);
    text = malloc(FILE_MAX);
    if (!text)
        return fail(err, -ENOMEM, "out of memory");
    while (used < FILE_MAX) {
        ssize_t n = read(fd, text + used, FILE_MAX - used);
        if (n < 0 && errno != EINTR)
            return fail(err, -errno, "%s: %s", path, strerrordesc_np(errno));
        if (n == 0)
            break;
        used += n > 0 ? (size_t)n : 0;
    }
    *ret = take(text);
    return (int)used;
}
