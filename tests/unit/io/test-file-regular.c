/* Regular files, read so that neither pipes nor file systems that hang are waited for. */
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/file.h"
#include "io/proc.h"
#include "tap.h"

enum { LONG_MS = 60000, SHORT_MS = 50 };

static char dir[] = "/tmp/uw-regular-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* A file system that hangs: reads of this file wait. */
static struct {
    atomic_ulong ino;
    sem_t go, returned;
} hang;

/* The linker's --wrap sends each read() here. */
ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
    struct stat st;
    bool hangs = hang.ino && fstat(fd, &st) == 0 && st.st_ino == hang.ino;

    while (hangs && sem_wait(&hang.go) < 0)
        ;
    ssize_t got = __real_read(fd, to, n);
    if (hangs && got == 0)
        (void)sem_post(&hang.returned);
    return got;
}

static void refused(const char *path, int want, const char *says)
{
    char *text = NULL;
    uw_error err = {""};

    int r = file_read_regular(path, 100, LONG_MS, &text, NULL, &err);
    ok(r == want && !text && strstr(err.text, says), "%s: %s", path, err.text);
}

static void kinds(void)
{
    auto_(mem_free) char *text = NULL, *bare = NULL;
    size_t len = 0;
    uw_error err = {""};

    ok(file_write(path_of("file"), "123", 3, 0600, NULL) == 0 &&
           file_read_regular(path_of("file"), 3, LONG_MS, &text, &len, &err) == 0 &&
           len == 3 && strcmp(text, "123") == 0,
       "a file: %s", err.text);
    ok(file_read_regular(path_of("file"), 3, LONG_MS, &bare, NULL, &err) == 0,
       "whose length is not asked for");
    ok(file_read_regular(path_of("file"), 2, LONG_MS, &text, &len, &err) == -EFBIG &&
           strstr(err.text, "larger than 2 bytes"),
       "a larger one: %s", err.text);
    ok(mkfifo(path_of("pipe"), 0600) == 0, "a pipe without a writer");
    refused(path_of("pipe"), -EINVAL, "not a regular file");
    refused("/dev/zero", -EINVAL, "not a regular file");
    refused(dir, -EINVAL, "not a regular file");
    refused(path_of("none"), -ENOENT, "No such file");
}

static void hangs(void)
{
    struct stat st;
    uw_error err = {""};
    char *text = NULL;

    ok(stat(path_of("file"), &st) == 0 && sem_init(&hang.go, 0, 0) == 0 &&
           sem_init(&hang.returned, 0, 0) == 0,
       "a file system that hangs");
    hang.ino = st.st_ino;
    for (int i = 0; i < FILE_HANGING_MAX; i++)
        is_int(file_read_regular(path_of("file"), 3, SHORT_MS, &text, NULL, &err),
               -ETIMEDOUT, "is not waited for for ever");
    ok(strstr(err.text, "the file system does not answer") && !text, "%s", err.text);
    ok(file_hangs(), "which is told");
    is_int(file_read_regular(path_of("file"), 3, SHORT_MS, &text, NULL, &err), -EBUSY,
           "nor has it threads without a bound");
    for (int i = 0; i < 2 * FILE_HANGING_MAX; i++) /* the text, and its end */
        (void)sem_post(&hang.go);
    for (int i = 0; i < FILE_HANGING_MAX; i++)
        while (sem_wait(&hang.returned) < 0)
            ;
    hang.ino = 0;
    int r = -EBUSY;
    for (int i = 0; i < 10000 && r == -EBUSY; i++) { /* until a thread is through */
        r = file_read_regular(path_of("file"), 3, LONG_MS, &text, NULL, &err);
        (void)poll(NULL, 0, 1);
    }
    ok(r == 0 && strcmp(text, "123") == 0, "once it answers again the file is read: %s",
       err.text);
    free(text);
}

/* A process that holds the lock of its memory: one thread waits for it, and no other. */
static void title(void)
{
    static const char stat_text[] =
        "42 (slurmstepd) S 1 42 40 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 99 0\n";
    struct proc_facts f = {.pid = 42, .start = 99};
    struct stat st = {0};

    ok(mkdir(path_of("42"), 0700) == 0 &&
           file_write(path_of("42/stat"), stat_text, sizeof stat_text - 1, 0600, NULL) ==
               0 &&
           file_write(path_of("42/status"), "Uid:\t0\n", 7, 0600, NULL) == 0 &&
           file_write(path_of("42/cmdline"), "slurmstepd: [1.0]", 18, 0600, NULL) == 0 &&
           stat(path_of("42/cmdline"), &st) == 0,
       "a process");
    while (file_hangs())
        (void)poll(NULL, 0, 1);
    hang.ino = st.st_ino;
    for (int i = 0; i < FILE_HANGING_MAX; i++) {
        proc_read_title(dir, &f);
        is_str(f.title, "", "its command line is not waited for for ever");
    }
    char *text = NULL;
    is_int(file_read_regular(path_of("file"), 3, LONG_MS, &text, NULL, NULL), 0,
           "other files are read meanwhile");
    free(text);
    for (int i = 0; i < 2; i++) /* the text, and its end */
        (void)sem_post(&hang.go);
    while (sem_wait(&hang.returned) < 0)
        ;
    hang.ino = 0;
    while (file_hangs())
        (void)poll(NULL, 0, 1);
    proc_read_title(dir, &f);
    is_str(f.title, "slurmstepd: [1.0]", "once it can be read");
    (void)unlink(path_of("42/stat"));
    (void)unlink(path_of("42/status"));
    (void)unlink(path_of("42/cmdline"));
    (void)rmdir(path_of("42"));
}

/* Root reads it as nobody for a moment. */
static void shown(void)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;
    bool hidden = false;
    int sig = 0;

    ok(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0, "a signal for the parent's end");
    is_int(file_read_shown("/proc/self/stat", 4096, &text, &len, &hidden, NULL), 0,
           "a file is read whose text may be shown");
    ok(prctl(PR_GET_PDEATHSIG, &sig) == 0 && sig == SIGUSR1, "the signal is kept");
    (void)prctl(PR_SET_PDEATHSIG, 0);
}

int main(void)
{
    if (!ok(mkdtemp(dir) != NULL, "a folder"))
        return done();
    kinds();
    hangs();
    title();
    shown();
    (void)unlink(path_of("file"));
    (void)unlink(path_of("pipe"));
    ok(rmdir(dir) == 0, "nothing else lies there");
    return done();
}
