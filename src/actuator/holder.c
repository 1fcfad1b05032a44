#include "actuator/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/file.h"
#include "io/proc.h"

enum { LOCKS_MAX = 1 << 20 };

/* "12: FLOCK  ADVISORY  WRITE 345 fe:00:9979397 0 EOF"; a waiting lock has "->". */
static pid_t parse_line(char *line, const char *where)
{
    const char *word[6] = {NULL};
    uint64_t pid;

    for (size_t n = 0; n < n_elements(word);) {
        char *next = strsep(&line, " ");
        if (!next)
            return 0;
        if (*next)
            word[n++] = next;
    }
    if (strcmp(word[1], "FLOCK") != 0 || strcmp(word[5], where) != 0)
        return 0;
    return parse_u64(word[4], &pid, NULL) == 0 && pid < INT32_MAX ? (pid_t)pid : 0;
}

pid_t holder_parse(const char *locks, unsigned major, unsigned minor, unsigned long inode)
{
    char where[64], line[160];

    (void)snprintf(where, sizeof where, "%02x:%02x:%lu", major, minor, inode);
    for (const char *at = locks; *at;) {
        size_t len = strcspn(at, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)(len < 150 ? len : 150), at);
        pid_t pid = parse_line(line, where);
        if (pid > 0)
            return pid;
        at += len + (at[len] == '\n');
    }
    return 0;
}

void holder_locks_fini(struct holder_locks *locks)
{
    free(locks->text);
}

static pid_t kernels_word(const struct stat *st, struct holder_locks *locks)
{
    if (!locks->read)
        (void)file_read("/proc/locks", LOCKS_MAX, &locks->text, NULL, NULL);
    locks->read = true;
    return locks->text ? holder_parse(locks->text, major(st->st_dev), minor(st->st_dev),
                                      st->st_ino)
                       : 0;
}

/* /proc/PID/stat, which the kernel provides without a lock of the process' memory; the
 * lock may be taken for long while the process is in a driver.  Returns the letter of the
 * state; 0: no such process.
 */
static char read_stat(pid_t pid, struct proc_facts *ret)
{
    auto_(mem_free) char *text = NULL;
    char path[48];
    size_t len = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (file_read(path, 4096, &text, &len, NULL) < 0 ||
        proc_parse_stat(text, len, ret) < 0)
        return 0;
    const char *end = strrchr(text, ')');
    return (char)(end && end[1] == ' ' ? end[2] : 0);
}

static bool runs(char state)
{
    return state && state != 'Z' && state != 'X';
}

/* "PID\nSTART\n"; an older actuator wrote only the first line. */
static bool read_client(int fd, pid_t *ret_pid, uint64_t *ret_start)
{
    char text[64];
    uint64_t pid = 0, start = 0;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    char *at = text;

    text[n > 0 ? n : 0] = '\0';
    const char *first = strsep(&at, "\n"), *second = at ? strsep(&at, "\n") : "";
    if (parse_u64(first, &pid, NULL) < 0 || pid == 0 || pid >= INT32_MAX)
        return false;
    if (parse_u64(second, &start, NULL) < 0)
        start = 0;
    *ret_pid = (pid_t)pid;
    *ret_start = start;
    return true;
}

/* The pid alone may belong to another process by now. */
static void look_client(int fd, struct holder *h)
{
    struct proc_facts facts;
    uint64_t start;
    pid_t pid;

    if (!read_client(fd, &pid, &start))
        return;
    bool there = runs(read_stat(pid, &facts));
    h->client = there && start && facts.start == start ? pid : 0;
    h->client_gone = !there || (start && facts.start != start);
}

/* The kernel keeps 15 bytes of a name: those of the actuator's are completed. */
static void set_name(const char *comm, char *ret, size_t size)
{
    static const char actuator[] = "underwatt-actuator";
    bool is_cut = strlen(comm) == 15 && strncmp(comm, actuator, 15) == 0;

    (void)snprintf(ret, size, "%s", is_cut ? actuator : comm);
    for (char *p = ret; *p; p++)
        if (*p <= ' ' || *p > '~')
            *p = '?';
}

static void look_process(pid_t pid, struct holder *h)
{
    struct proc_facts facts = {.comm = ""};
    char state = read_stat(pid, &facts);

    h->pid = pid;
    if (h->client == pid) { /* a recovery has no client */
        h->client = 0;
        h->client_gone = true;
    }
    h->stopped = state == 'T' || state == 't';
    set_name(facts.comm, h->name, sizeof h->name);
}

void holder_of(int lock_fd, struct holder *ret)
{
    struct holder_locks locks = {.read = false};
    struct stat st;

    *ret = (struct holder){.locked = true};
    look_client(lock_fd, ret);
    pid_t pid = fstat(lock_fd, &st) == 0 ? kernels_word(&st, &locks) : 0;
    holder_locks_fini(&locks);
    if (pid > 0)
        look_process(pid, ret);
}

void holder_look(const char *dir, const char *uuid, struct holder_locks *locks,
                 struct holder *ret)
{
    struct holder_locks own = {.read = false};
    char path[512];
    struct stat st;

    *ret = (struct holder){.locked = false};
    int n = snprintf(path, sizeof path, "%s/%s.lock", dir, uuid);
    if (n < 0 || (size_t)n >= sizeof path || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    pid_t pid = kernels_word(&st, locks ? locks : &own);
    holder_locks_fini(&own);
    if (pid <= 0)
        return;
    ret->locked = true;
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0)
        look_client(fd, ret);
    look_process(pid, ret);
}

int holder_name(int lock_fd, pid_t client)
{
    struct proc_facts facts = {.start = 0};
    char text[64];

    if (proc_read("/proc", client, &facts) < 0)
        facts.start = 0;
    int n = snprintf(text, sizeof text, "%d\n%" PRIu64 "\n", (int)client, facts.start);
    return ftruncate(lock_fd, 0) < 0 || pwrite(lock_fd, text, (size_t)n, 0) != n ? -EIO
                                                                                 : 0;
}

bool holder_passes(const struct holder *h)
{
    return !h->stopped && (!h->client || !h->pid);
}

pid_t holder_pid(const struct holder *h)
{
    return h->client ? h->client : h->pid;
}

const char *holder_text(const struct holder *h, char *ret, size_t size)
{
    struct proc_facts facts;
    char name[sizeof h->name] = "another Underwatt", uid[32] = "", stopped[64] = "";
    pid_t pid = holder_pid(h);
    bool known = pid > 0 && proc_read("/proc", pid, &facts) == 0;

    /* Only root has the same name everywhere: others' would need NSS in this process. */
    if (known && facts.uid == 0)
        (void)snprintf(uid, sizeof uid, ", root");
    else if (known)
        (void)snprintf(uid, sizeof uid, ", uid %u", (unsigned)facts.uid);
    if (!h->client && h->name[0])
        (void)snprintf(name, sizeof name, "%s", h->name);
    else if (known)
        set_name(facts.comm, name, sizeof name);
    if (h->client && h->stopped)
        (void)snprintf(stopped, sizeof stopped, ", its actuator, pid %d, is stopped",
                       (int)h->pid);
    else if (h->stopped)
        (void)snprintf(stopped, sizeof stopped, ", stopped");
    if (pid > 0)
        (void)snprintf(ret, size, "%s (pid %d%s%s)", name, (int)pid, uid, stopped);
    else
        (void)snprintf(ret, size, "%s", name);
    return ret;
}
