#include "cli/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/file.h"

enum { PATH_LEN = 512 };

static bool exists(const char *root, const char *path)
{
    char full[PATH_LEN];

    (void)snprintf(full, sizeof full, "%s%s", root, path);
    return access(full, F_OK) == 0;
}

static bool read_line(const char *path, char *ret, size_t size)
{
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

    if (n < 0)
        return false;
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return true;
}

static void read_bus(const char *root, struct machine *m)
{
    char path[PATH_LEN], text[32];
    const struct dirent *e;

    (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices", root);
    auto_(dir_close) DIR *dir = opendir(path);
    if (!dir)
        return;
    m->pci_known = true;
    while ((e = readdir(dir)) != NULL) {
        (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%.64s/vendor", root,
                       e->d_name);
        if (e->d_name[0] == '.' || !read_line(path, text, sizeof text) ||
            strcmp(text, "0x10de") != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%.64s/class", root,
                       e->d_name);
        if (read_line(path, text, sizeof text) && strncmp(text, "0x03", 4) == 0)
            m->nvidia_boards++;
    }
}

static void read_node(const char *root, struct machine *m)
{
    char path[PATH_LEN];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/dev/nvidiactl", root);
    if (stat(path, &st) < 0)
        return;
    m->nvidiactl =
        access(path, R_OK | W_OK) == 0 ? MACHINE_NODE_OPEN : MACHINE_NODE_CLOSED;
    if ((st.st_mode & 0060) == 0060 && st.st_gid != 0) {
        const struct group *g = getgrgid(st.st_gid);
        if (g)
            (void)snprintf(m->node_group, sizeof m->node_group, "%s", g->gr_name);
    }
}

/* Programs known to set power limits, as the kernel names them (15 bytes). */
static bool sets_limits(const char *comm)
{
    static const char *const known[] = {"nv-hostengine", "zeusd", "nvidia-powerd",
                                        "underwatt-actua"};
    for (size_t i = 0; i < n_elements(known); i++) {
        if (strcmp(comm, known[i]) == 0)
            return true;
    }
    return false;
}

static void read_library(const char *root, const char *pid, struct machine_writer *w)
{
    char path[PATH_LEN];
    auto_(mem_free) char *text = NULL;
    size_t len = 0;
    bool next = false;

    (void)snprintf(path, sizeof path, "%s/proc/%.20s/cmdline", root, pid);
    if (file_read(path, 65536, &text, &len, NULL) < 0)
        return;
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        if (next)
            (void)snprintf(w->library, sizeof w->library, "%s", text + at);
        next = strcmp(text + at, "--library") == 0;
    }
}

static void read_programs(const char *root, struct machine *m)
{
    char path[PATH_LEN], comm[24];
    const struct dirent *e;

    (void)snprintf(path, sizeof path, "%s/proc", root);
    auto_(dir_close) DIR *dir = opendir(path);
    while (dir && (e = readdir(dir)) != NULL && m->n_writers < MACHINE_WRITERS_MAX) {
        uint64_t pid = 0;
        if (!isdigit((unsigned char)e->d_name[0]) || parse_u64(e->d_name, &pid, NULL) < 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/proc/%.20s/comm", root, e->d_name);
        if (!read_line(path, comm, sizeof comm) || !sets_limits(comm))
            continue;
        struct machine_writer *w = &m->writer[m->n_writers++];
        w->pid = (pid_t)pid;
        (void)snprintf(w->name, sizeof w->name, "%s", comm);
        read_library(root, e->d_name, w);
    }
}

void machine_read(const char *root, struct machine *ret)
{
    struct machine m = {0};

    read_bus(root, &m);
    m.module = exists(root, "/proc/driver/nvidia");
    m.nouveau = exists(root, "/sys/module/nouveau");
    m.wsl = exists(root, "/dev/dxg");
    m.container = exists(root, "/.dockerenv") || exists(root, "/run/.containerenv") ||
                  exists(root, "/var/run/secrets/kubernetes.io");
    m.sudo = exists(root, "/usr/bin/sudo");
    read_node(root, &m);
    read_programs(root, &m);
    *ret = m;
}
