#include "cli/doctor-slurm.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/file.h"

enum { CONF_MAX = 1 << 20 };
/* Without files of its own, slurmd may write them up to this time after its pid; the
 * same value as in the plugin (slurm/slurmd.c).
 */
enum { OWN_COPY_S = 120 };
#define PLUGIN "spank_underwatt.so"
#define SLURM_CONF "/etc/slurm/slurm.conf"
#define CONFIGLESS_CONF "/run/slurm/conf/slurm.conf" /* slurmd's link to its spool */

/* ---- reading ---- */

static char *next_word(char **line)
{
    char *word = NULL;

    do
        word = strsep(line, " \t\r");
    while (word && !*word);
    return word;
}

static void beside(const char *conf, const char *name, char *ret, size_t size)
{
    const char *slash = strrchr(conf, '/');

    (void)snprintf(ret, size, "%.*s%s", slash ? (int)(slash + 1 - conf) : 0, conf, name);
}

/* slurm.conf with its included files in their places; relative paths start at its
 * folder.
 */
static int read_conf(const char *path, char **ret, uw_error *err)
{
    auto_(mem_free) char *text = NULL, *whole = NULL;
    size_t size = 0;
    char *rest, *line;

    int r = file_read(path, CONF_MAX, &text, NULL, err);
    if (r < 0)
        return r;
    FILE *out = open_memstream(&whole, &size);
    if (!out)
        return fail(err, -ENOMEM, "out of memory");
    for (rest = text; rest && (line = strsep(&rest, "\n"));) {
        auto_(mem_free) char *more = NULL;
        char other[DOCTOR_SLURM_PATH];
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t");
        if (strncasecmp(line, "include ", 8) == 0) {
            char *name = line + 8;
            const char *word = next_word(&name);
            if (word && *word == '/')
                (void)snprintf(other, sizeof other, "%s", word);
            else
                beside(path, word ? word : "", other, sizeof other);
            if (file_read(other, CONF_MAX, &more, NULL, NULL) >= 0)
                (void)fprintf(out, "%s\n", more);
            continue;
        }
        (void)fprintf(out, "%s\n", line);
    }
    if (fclose(out) != 0)
        return fail(err, -ENOMEM, "out of memory");
    *ret = take(whole);
    return 0;
}

/* The last value of a key of slurm.conf, whose lines have "Key=value" between blanks. */
static void conf_value(const char *text, const char *key, char *ret, size_t size)
{
    auto_(mem_free) char *copy = strdup(text);
    char *rest = copy, *line;
    size_t n = strlen(key);

    while (copy && (line = strsep(&rest, "\n"))) {
        char *word;
        line[strcspn(line, "#")] = '\0';
        while ((word = next_word(&line)))
            if (strncasecmp(word, key, n) == 0 && word[n] == '=')
                (void)snprintf(ret, size, "%s", word + n + 1);
    }
}

/* A path of slurm.conf with %n and %h as the node's name. */
static void expand(const char *path, const char *node, char *ret, size_t size)
{
    size_t used = 0;

    ret[0] = '\0';
    for (const char *c = path; *c && used < size - 1; c++) {
        bool name = c[0] == '%' && (c[1] == 'n' || c[1] == 'h');
        int n =
            snprintf(ret + used, size - used, "%.*s", name ? 255 : 1, name ? node : c);
        used += n > 0 ? (size_t)n : 0;
        c += name || (c[0] == '%' && c[1] == '%');
    }
}

static bool is_file(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether a plugin without a path exists in PluginDir or, without that, in the usual
 * folders of packages.
 */
static bool library_there(const char *plugin, const char *plugin_dir)
{
    static const char usual[] = "/usr/lib/*/slurm-wlm:/usr/lib64/slurm:/usr/lib/slurm:"
                                "/usr/lib/*/slurm:/usr/local/lib/slurm";
    auto_(mem_free) char *dirs = strdup(*plugin_dir ? plugin_dir : usual);
    char *rest = dirs, *dir;

    if (*plugin == '/')
        return is_file(plugin);
    while (dirs && (dir = strsep(&rest, ":"))) {
        char path[2 * DOCTOR_SLURM_PATH + 2];
        glob_t found = {0};
        (void)snprintf(path, sizeof path, "%.*s/%s", DOCTOR_SLURM_PATH, dir, plugin);
        bool there = glob(path, GLOB_NOSORT, NULL, &found) == 0;
        globfree(&found);
        if (there)
            return true;
    }
    return false;
}

/* "optional", and the rest of its line: "spank_underwatt.so socket=…". */
static void read_plugin(const char *need, char *line, const char *node,
                        struct doctor_slurm *ret)
{
    char *plugin = next_word(&line), *word;
    const char *name = plugin ? strrchr(plugin, '/') : NULL;

    if (!plugin || strcmp(name ? name + 1 : plugin, PLUGIN) != 0)
        return;
    ret->listed = true;
    ret->required = strcmp(need, "required") == 0;
    (void)snprintf(ret->plugin, sizeof ret->plugin, "%s", plugin);
    while ((word = next_word(&line))) {
        if (strncmp(word, "socket=", 7) == 0 && word[7])
            expand(word + 7, node, ret->socket, sizeof ret->socket);
        else if (strncmp(word, "gres=", 5) == 0 && word[5])
            (void)snprintf(ret->gres, sizeof ret->gres, "%s", word + 5);
        else if (strncmp(word, "boards=", 7) == 0 && word[7])
            (void)snprintf(ret->boards, sizeof ret->boards, "%s", word + 7);
        else if (strncmp(word, "times=", 6) != 0 || !word[6])
            (void)snprintf(ret->unknown, sizeof ret->unknown, "%s", word);
    }
}

/* Reads a plugstack.conf, and those that it includes. */
/* NOLINTNEXTLINE(misc-no-recursion): one level deep */
static int read_plugstack(const char *path, const char *node, bool may_include,
                          struct doctor_slurm *ret)
{
    auto_(mem_free) char *text = NULL;
    char *rest, *line;

    int r = file_read(path, CONF_MAX, &text, NULL, &ret->conf_error);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    rest = text;
    while (r == 0 && (line = strsep(&rest, "\n"))) {
        glob_t found = {0};
        line[strcspn(line, "#")] = '\0';
        const char *word = next_word(&line);
        if (!word)
            continue;
        if (strcmp(word, "include") != 0) {
            read_plugin(word, line, node, ret);
            continue;
        }
        const char *pattern = next_word(&line);
        if (may_include && pattern && glob(pattern, 0, NULL, &found) == 0)
            for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
                r = read_plugstack(found.gl_pathv[i], node, false, ret);
        globfree(&found);
    }
    return r;
}

/* slurmd writes its pid when it starts. */
static void read_slurmd(const char *pid_file, struct doctor_slurm *ret)
{
    struct stat pid, file;

    ret->slurmd = stat(pid_file, &pid) == 0;
    if (ret->slurmd)
        ret->slurmd_began = pid.st_mtim;
    ret->slurmd_began.tv_sec += ret->configless ? OWN_COPY_S : 0;
    ret->slurmd_older = ret->slurmd && stat(ret->plugstack, &file) == 0 &&
                        ret->slurmd_began.tv_sec < file.st_mtim.tv_sec;
}

static void read_boards(struct doctor_slurm *ret)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    if (!*ret->boards)
        return;
    ret->boards_r =
        file_read(ret->boards, GRES_CONF_MAX, &text, &len, &ret->boards_error);
    if (ret->boards_r < 0)
        return;
    ret->boards_r = table_read(text, len, &ret->table, &ret->boards_error);
    if (ret->boards_r < 0)
        (void)fail_in(&ret->boards_error, ret->boards_r, "%s", ret->boards);
}

static void no_device(unsigned index, const char *file, void *user)
{
    (void)index;
    (void)file;
    (void)user;
}

/* For several types, the plugin knows the order only from slurm.conf itself: it does not
 * follow Include.
 */
static int check_order(const struct doctor_slurm *s, const char *gres, size_t gres_len,
                       const char *node, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    struct gres_types types;
    uw_error why = {""};
    size_t len = 0;

    if (gres_read(gres, gres_len, node, NULL, no_device, NULL, NULL) != -ENOTUNIQ)
        return 0;
    int r = file_read(s->conf, GRES_CONF_MAX, &text, &len, &why);
    if (r >= 0)
        r = gres_types(text, len, node, &types, &why);
    return r < 0 ? fail(err, -ENOTUNIQ,
                        "GPUs of several types, whose order is not known: %s", why.text)
                 : 0;
}

static bool not_before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec >= b.tv_nsec;
}

/* Whether the file, or the file that its name refers to, changed after slurmd started. */
static bool is_young(const struct doctor_slurm *s, const char *path)
{
    static const int how[] = {0, AT_SYMLINK_NOFOLLOW};

    for (size_t i = 0; i < n_elements(how); i++) {
        struct stat st;
        if (s->slurmd && fstatat(AT_FDCWD, path, &st, how[i]) == 0 &&
            (not_before(st.st_mtim, s->slurmd_began) ||
             not_before(st.st_ctim, s->slurmd_began)))
            return true;
    }
    return false;
}

/* Like the plugin's prolog.  argument: gres= is another file than Slurm's. */
static void read_ages(struct doctor_slurm *ret, bool argument, bool typed)
{
    char slurms[DOCTOR_SLURM_PATH];
    const char *young = "";

    beside(ret->conf, "gres.conf", slurms, sizeof slurms);
    bool both = !argument || is_file(slurms);
    typed |= argument && is_young(ret, ret->gres);
    if (is_young(ret, both ? slurms : ret->gres))
        young = both ? slurms : ret->gres;
    else if (typed && is_young(ret, ret->conf))
        young = ret->conf;
    (void)snprintf(ret->unread, sizeof ret->unread, "%s", young);
}

static void read_gres(const char *slurm_conf, const char *node, struct doctor_slurm *ret)
{
    struct gres_types all = {.n = 1, .type = {{.count = GRES_DEVICES_MAX}}};
    auto_(mem_free) char *text = NULL;
    size_t len = 0;
    bool argument = *ret->gres;

    if (!argument)
        beside(ret->conf, "gres.conf", ret->gres, sizeof ret->gres);
    if (!is_file(ret->gres)) {
        ret->gres[0] = '\0';
        return;
    }
    ret->types_r =
        gres_types(slurm_conf, strlen(slurm_conf), node, &ret->types, &ret->types_error);
    ret->gres_r = file_read(ret->gres, GRES_CONF_MAX, &text, &len, &ret->gres_error);
    if (ret->gres_r >= 0)
        ret->gres_r = gres_read(text, len, node, &all, no_device, NULL, &ret->gres_error);
    ret->named = all.type[0].found;
    if (ret->gres_r >= 0)
        read_ages(ret, argument,
                  gres_read(text, len, node, NULL, no_device, NULL, NULL) == -ENOTUNIQ);
    if (ret->gres_r >= 0)
        ret->gres_r = check_order(ret, text, len, node, &ret->gres_error);
    if (ret->gres_r >= 0)
        ret->gres_r = gres_read(text, len, node, ret->types_r == 0 ? &ret->types : NULL,
                                no_device, NULL, &ret->gres_error);
}

void doctor_slurm_read(const char *conf, const char *node, struct doctor_slurm *ret)
{
    auto_(mem_free) char *text = NULL;
    char value[DOCTOR_SLURM_PATH] = "", dir[DOCTOR_SLURM_PATH] = "",
         pid[DOCTOR_SLURM_PATH] = "/var/run/slurmd.pid";

    *ret = (struct doctor_slurm){0};
    (void)snprintf(ret->node, sizeof ret->node, "%s", node);
    if (!conf || !*conf)
        conf = !is_file(SLURM_CONF) && is_file(CONFIGLESS_CONF) ? CONFIGLESS_CONF
                                                                : SLURM_CONF;
    (void)snprintf(ret->conf, sizeof ret->conf, "%s", conf);
    auto_(mem_free) char *real = realpath(conf, NULL);
    ret->configless = real && strstr(real, "/conf-cache/");
    ret->conf_r = read_conf(ret->conf, &text, &ret->conf_error);
    if (ret->conf_r == -ENOENT)
        return;
    ret->found = true;
    if (ret->conf_r < 0 || !text)
        return;
    beside(ret->conf, "plugstack.conf", ret->plugstack, sizeof ret->plugstack);
    conf_value(text, "PlugStackConfig", ret->plugstack, sizeof ret->plugstack);
    conf_value(text, "PrologFlags", value, sizeof value);
    for (char *rest = value, *flag; (flag = strsep(&rest, ","));)
        ret->prolog_contains |= strcasecmp(flag, "Contain") == 0 ||
                                strcasecmp(flag, "X11") == 0 ||
                                strcasecmp(flag, "RunInJob") == 0;
    conf_value(text, "PluginDir", dir, sizeof dir);
    conf_value(text, "SlurmdPidFile", pid, sizeof pid);
    ret->conf_r = read_plugstack(ret->plugstack, node, true, ret);
    if (ret->conf_r < 0 || !ret->listed)
        return;
    ret->library = library_there(ret->plugin, dir);
    ret->socket_there = !*ret->socket || access(ret->socket, F_OK) == 0;
    expand(pid, node, value, sizeof value);
    read_slurmd(value, ret);
    read_boards(ret);
    read_gres(text, node, ret);
}

/* ---- judging ---- */

static void judge_library(const struct doctor_slurm *s, struct findings *ret)
{
    if (s->library)
        return;
    finding_add(ret, "slurm", FINDING_BAD,
                "%s names %s, which does not exist: --gpu-power-cap is unknown here, and "
                "scripts that have it are refused",
                s->plugstack, s->plugin);
    finding_remedy(ret, "sudo apt install underwatt-slurm, on login nodes, too");
}

static void judge_arguments(const struct doctor_slurm *s, struct findings *ret)
{
    if (*s->unknown) {
        finding_add(ret, "slurm", FINDING_WARN,
                    "%s: the plugin has no argument '%s', and ignores it", s->plugstack,
                    s->unknown);
        finding_remedy(ret, "write socket=PATH, boards=FILE, gres=FILE or times=FILE in "
                            "its place; sudo systemctl restart slurmd (jobs go on)");
    }
    if (s->boards_r >= 0)
        return;
    finding_add(ret, "slurm", FINDING_WARN,
                "boards=: %s: caps and classes of jobs submitted here are not checked",
                s->boards_error.text);
    if (s->boards_r == -ENOENT)
        finding_remedy(
            ret,
            "write a line for each kind of board, with its lowest and highest limit "
            "(underwatt list): echo board v100 150 W 300 W | sudo tee -a %s",
            s->boards);
    else
        finding_remedy(ret, "lines are 'board v100 150 W 300 W' and 'class training'");
}

/* The command to type if gres.conf does not assign the GPUs. */
static const char *gres_remedy(int r)
{
    if (r == -ENOTSUP)
        return "write the GPUs that sudo slurmd -G lists into gres.conf, in place of "
               "AutoDetect, a line each: Name=gpu Type=a100 File=/dev/nvidia0; sudo "
               "systemctl restart slurmd";
    if (r == -ENOTUNIQ)
        return "sudo slurmd -G 2>&1 | sed -n 's/.*\\(Name=gpu\\) .*\\(File=[^ "
               "]*\\).*/\\1 "
               "\\2/p' | sudo tee /etc/slurm/gpu-order, after each change of slurm.conf "
               "or "
               "gres.conf; and gres=/etc/slurm/gpu-order in plugstack.conf";
    if (r == -ENODEV)
        return "give jobs whole GPUs (a line each: Name=gpu File=/dev/nvidia0), or leave "
               "it: jobs in MIG instances get no cap";
    return "write a line for each GPU there: Name=gpu File=/dev/nvidia0";
}

/* The counts differ: a GPU type of slurm.conf has no device file, or gres.conf no entry.
 */
static void judge_counts(const struct doctor_slurm *s, struct findings *ret)
{
    size_t before = ret->n;

    for (size_t i = 0; i < s->types.n; i++) {
        const struct gres_type *t = &s->types.type[i];
        if (t->found < t->count)
            finding_add(ret, "slurm", FINDING_WARN,
                        "Gres=gpu%s%s:%u of this node in %s: %s has device files for %u",
                        *t->name ? ":" : "", t->name, t->count, s->conf, s->gres,
                        t->found);
    }
    if (ret->n == before && s->named > (unsigned)s->gres_r)
        finding_add(ret, "slurm", FINDING_WARN,
                    "%s has %u GPUs of this node, Gres in %s has %d: jobs get no others",
                    s->gres, s->named, s->conf, s->gres_r);
    if (ret->n > before)
        finding_remedy(ret,
                       "make types and counts in both files agree (sudo slurmd -G lists "
                       "what jobs get); sudo systemctl restart slurmctld slurmd");
}

static void judge_gres(const struct doctor_slurm *s, struct findings *ret)
{
    if (!s->slurmd || !*s->gres)
        return;
    if (s->gres_r < 0) {
        finding_add(ret, "slurm", FINDING_BAD,
                    "%s: %s: jobs are registered without their boards, and get no cap",
                    s->gres, s->gres_error.text);
        finding_remedy(ret, "%s", gres_remedy(s->gres_r));
    } else if (*s->unread) {
        finding_add(ret, "slurm", FINDING_BAD,
                    "%s was changed after slurmd started: jobs are registered without "
                    "their boards, and get no cap",
                    s->unread);
        finding_remedy(ret, "sudo systemctl restart slurmd (jobs go on)");
    } else if (s->named == 0)
        finding_add(ret, "slurm", FINDING_NOTE, "%s has no GPU for this node", s->gres);
    else if (s->types_r < 0)
        finding_add(ret, "slurm", FINDING_NOTE,
                    "%s: %s: its GPUs are not compared with %s", s->conf,
                    s->types_error.text, s->gres);
    else
        judge_counts(s, ret);
}

static void judge_listed(const struct doctor_slurm *s, struct findings *ret)
{
    finding_add(ret, "slurm", FINDING_NOTE,
                "%s does not name " PLUGIN ": jobs have no --gpu-power-cap",
                s->plugstack);
    finding_remedy(ret,
                   "echo optional " PLUGIN " | sudo tee -a %s%s; sudo systemctl "
                   "restart slurmd",
                   s->configless ? "/etc/slurm/plugstack.conf" : s->plugstack,
                   s->configless ? ", where slurmctld runs; here" : "");
}

/* An error in a file that slurmd gets from slurmctld must be corrected there. */
static void judge_copies(const struct doctor_slurm *s, struct findings *ret)
{
    finding_add(ret, "slurm", FINDING_NOTE,
                "%s and the files beside it are copies, which slurmd gets from slurmctld "
                "when it starts",
                s->conf);
    finding_remedy(ret, "change them where slurmctld runs; sudo scontrol reconfigure "
                        "there; sudo systemctl restart slurmd here (jobs go on)");
}

void doctor_slurm_judge(const struct doctor_slurm *s, struct findings *ret)
{
    size_t before = ret->n;

    if (!s->found)
        return;
    if (s->conf_r < 0) {
        finding_add(ret, "slurm", FINDING_NOTE, "%s", s->conf_error.text);
        return;
    }
    if (!s->listed) {
        judge_listed(s, ret);
        return;
    }
    judge_library(s, ret);
    if (s->required) {
        finding_add(ret, "slurm", FINDING_WARN,
                    "%s says required: where the plugin cannot be loaded, jobs fail",
                    s->plugstack);
        finding_remedy(ret, "write optional in place of required");
    }
    if (s->slurmd_older) {
        finding_add(ret, "slurm", FINDING_WARN, "%s was changed after slurmd started",
                    s->plugstack);
        finding_remedy(ret, "sudo systemctl restart slurmd (jobs go on)");
    }
    if (s->slurmd && !s->socket_there) {
        finding_add(ret, "slurm", FINDING_WARN, "socket=%s does not exist", s->socket);
        finding_remedy(ret, "sudo systemctl enable --now underwattd, or the path of "
                            "api.socket in underwattd.yaml(5)");
    }
    judge_arguments(s, ret);
    if (!s->prolog_contains) {
        finding_add(
            ret, "slurm", FINDING_NOTE,
            "PrologFlags has no Contain: without Alloc prologs run with a job's "
            "first step on a node, and between steps the daemon does not see the job");
        finding_remedy(ret, "PrologFlags=Contain in %s; sudo scontrol reconfigure",
                       s->conf);
    }
    judge_gres(s, ret);
    if (ret->n > before && s->configless)
        judge_copies(s, ret);
    if (ret->n == before && s->slurmd && *s->gres)
        finding_add(ret, "slurm", FINDING_OK,
                    "%s names " PLUGIN "; %s has %d GPU%s of this node", s->plugstack,
                    s->gres, s->gres_r, s->gres_r == 1 ? "" : "s");
    else if (ret->n == before && s->slurmd)
        finding_add(ret, "slurm", FINDING_OK, "%s names " PLUGIN, s->plugstack);
    else if (ret->n == before)
        finding_add(ret, "slurm", FINDING_OK,
                    "%s names " PLUGIN
                    "; no slurmd of node %s runs here: gres.conf is not checked",
                    s->plugstack, s->node);
}

void doctor_slurm_judge_board(const struct doctor_slurm *s, const struct gpu_info *info,
                              const struct gpu_limits *limits, struct findings *ret)
{
    const struct table *t = &s->table;

    if (!s->listed || s->boards_r < 0 || t->n_boards == 0)
        return;
    for (size_t i = 0; i < t->n_boards; i++)
        if (t->board[i].min_mw >= limits->min_mw && t->board[i].max_mw <= limits->max_mw)
            return;
    finding_add(ret, "slurm", FINDING_WARN,
                "%s has no board within %g W to %g W, the limits of GPU %u: caps outside "
                "these limits are accepted",
                s->boards, w_of_mw(limits->min_mw), w_of_mw(limits->max_mw), info->index);
    finding_remedy(ret, "write there: board NAME %g W %g W", w_of_mw(limits->min_mw),
                   w_of_mw(limits->max_mw));
}
