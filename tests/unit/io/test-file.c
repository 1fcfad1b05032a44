#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "tap.h"

static char dir[64] = "/tmp/uw-test-file.XXXXXX";

static const char *at(const char *name)
{
    static char path[8][160];
    static unsigned i;

    i = (i + 1) % 8;
    (void)snprintf(path[i], sizeof path[i], "%s/%s", dir, name);
    return path[i];
}

static unsigned mode_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (unsigned)st.st_mode & 07777 : 0;
}

static int entries(void)
{
    int n = 0;
    DIR *d = opendir(dir);

    while (d && readdir(d))
        n++;
    if (d)
        (void)closedir(d);
    return n - 2;
}

static bool holds(const char *path, const char *text)
{
    auto_(mem_free) char *got = NULL;
    size_t len = 0;

    return file_read(path, 1000, &got, &len, NULL) == 0 && len == strlen(text) &&
           strcmp(got, text) == 0;
}

static void writes(void)
{
    uw_error err = {""};

    ok(file_write(at("a"), "one", 3, 0600, &err) == 0 && holds(at("a"), "one"), "a file");
    is_int(mode_of(at("a")), 0600, "its mode");
    ok(file_write(at("a"), "", 0, 0666, &err) == 0 && holds(at("a"), ""),
       "replaced, empty");
    is_int(mode_of(at("a")), 0666, "the mode asked for, whatever the umask");
    mode_t old = umask(027);
    ok(file_write(at("b"), "x", 1, FILE_MODE_UMASK, &err) == 0, "mode by the umask");
    ok(umask(old) == 027, "the umask is what it was");
    is_int(mode_of(at("b")), 0640, "0666 less 027");
    is_int(entries(), 2, "no temporary file is left");

    ok(mkdir(at("d"), 0700) == 0 && file_write(at("d"), "x", 1, 0600, &err) == -EISDIR &&
           strstr(err.text, "/d: "),
       "a folder is not replaced: %s", err.text);
    is_int(entries(), 3, "no temporary file is left after a failure");
    ok(rmdir(at("d")) == 0, "the folder is as it was");
    ok(file_write(at("none/a"), "x", 1, 0600, &err) == -ENOENT, "no such folder");
    ok(file_write("/dev/null", "x", 1, 0600, &err) == 0 && mode_of("/dev/null") != 0600,
       "a device is written to, not replaced");
    ok(file_write("/dev/full", "x", 1, 0600, &err) == -ENOSPC, "no space: %s", err.text);
}

static void checks(void)
{
    uw_error err = {""};

    ok(file_write(at("a"), "one", 3, 0600, NULL) == 0 && mkdir(at("d"), 0700) == 0 &&
           mkfifo(at("f"), 0600) == 0,
       "a file, a folder, a pipe");
    int n = entries();
    const struct {
        const char *path;
        int r;
    } cases[] = {
        {at("a"), 0},          {at("new"), 0},
        {at("d"), -EISDIR},    {at("none/a"), -ENOENT},
        {at("a/b"), -ENOTDIR}, {"", -ENOENT},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        err.text[0] = '\0';
        is_int(file_check_write(cases[i].path, &err), cases[i].r, "'%s'", cases[i].path);
        ok(!cases[i].r || strstr(err.text, "cannot write"), "one line: %s", err.text);
    }
    is_int(file_check_write(at("f"), NULL), 0, "a pipe without a reader");
    int reader = open(at("f"), O_RDONLY | O_NONBLOCK);
    int writer = open(at("f"), O_WRONLY | O_NONBLOCK);
    is_int(file_check_write(at("f"), NULL), 0, "a pipe with one");
    char got[4] = "";
    ok(file_write(at("f"), "one", 3, 0600, NULL) == 0 && read(reader, got, 3) == 3 &&
           strcmp(got, "one") == 0,
       "which reads what is written");
    (void)close(writer);
    (void)close(reader);
    is_int(file_write(at("f"), "x", 1, 0600, &err), -ENXIO,
           "a write to a pipe without a reader does not wait");
    is_int(file_check_write("/dev/null", NULL), 0, "a device");
    is_int(file_check_write("/dev/stdout", NULL), 0, "standard output");
    ok(file_check_write("/proc/uw-none", NULL) < 0, "a file that /proc does not make");
    ok(holds(at("a"), "one") && entries() == n,
       "nothing is changed, nothing left behind");
    (void)remove(at("f"));
    (void)remove(at("d"));
}

static bool is_link(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* A file that the user names and that exists. */
static void keeps(void)
{
    struct stat st;

    ok(mkdir(at("d"), 0700) == 0 && file_write(at("d/a"), "one", 3, 0600, NULL) == 0 &&
           symlink("d/a", at("l")) == 0,
       "a file and a link to it");
    int n = entries();
    is_int(file_check_write(at("l"), NULL), 0, "the link can be written");
    ok(file_write(at("l"), "two", 3, FILE_MODE_UMASK, NULL) == 0 && is_link(at("l")) &&
           holds(at("d/a"), "two"),
       "the link's file is written, the link is kept");
    is_int(mode_of(at("d/a")), 0600, "… and so is the file's mode");
    is_int(entries(), n, "no temporary file is left");
    if (geteuid() == 0 && chown(at("d/a"), 65534, 65534) == 0)
        ok(file_write(at("l"), "three", 5, FILE_MODE_UMASK, NULL) == 0 &&
               stat(at("d/a"), &st) == 0 && st.st_uid == 65534 && st.st_gid == 65534,
           "… and its owner, by root");
    ok(file_write(at("l"), "four", 4, 0600, NULL) == 0 && !is_link(at("l")) &&
           !holds(at("d/a"), "four"),
       "a program's own file replaces a link");
    (void)remove(at("l"));
    (void)remove(at("d/a"));
    (void)remove(at("d"));
}

/* Another user's file in a folder like /tmp: it can be written, not replaced. */
static void sticky(void)
{
    uw_error err = {""};

    if (geteuid() != 0) {
        ok(true, "another user's file # SKIP not root");
        return;
    }
    ok(mkdir(at("d"), 0700) == 0 && file_write(at("d/a"), "one", 3, 0666, NULL) == 0 &&
           chmod(at("d"), 01777) == 0 && chmod(dir, 0711) == 0 && seteuid(65534) == 0,
       "root's file in a folder of all");
    is_int(file_check_write(at("d/a"), &err), -EPERM, "root's file: %s", err.text);
    is_int(file_write(at("d/a"), "x", 1, FILE_MODE_UMASK, NULL), -EPERM,
           "… as when written");
    is_int(file_check_write(at("d/b"), NULL), 0, "a new one");
    ok(file_write(at("d/b"), "one", 3, FILE_MODE_UMASK, NULL) == 0 &&
           file_check_write(at("d/b"), NULL) == 0,
       "the user's own");
    ok(seteuid(0) == 0 && file_check_write(at("d/b"), NULL) == 0, "any file, by root");
    (void)remove(at("d/a"));
    (void)remove(at("d/b"));
    (void)remove(at("d"));
}

/* /dev/fd/N of a file: the file is appended to, and stays the one that is open. */
static void open_file(void)
{
    char path[40];
    struct stat before, after;

    ok(file_write(at("a"), "one", 3, 0600, NULL) == 0, "a file");
    int fd = open(at("a"), O_WRONLY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", fd);
    ok(fstat(fd, &before) == 0 && file_write(path, "two", 3, 0600, NULL) == 0 &&
           holds(at("a"), "onetwo"),
       "an open file is appended to");
    ok(stat(at("a"), &after) == 0 && before.st_ino == after.st_ino,
       "it is the same file");
    (void)close(fd);
}

static void reads(void)
{
    char *text = NULL;
    size_t len = 77;
    uw_error err = {""};
    static char large[20000];

    memset(large, 'x', sizeof large);
    ok(file_write(at("a"), large, sizeof large, 0600, &err) == 0, "20,000 bytes");
    ok(file_read(at("a"), sizeof large, &text, &len, &err) == 0 && len == sizeof large &&
           memcmp(text, large, len) == 0 && text[len] == '\0',
       "read whole");
    free(take(text));
    len = 77;
    ok(file_read(at("a"), sizeof large - 1, &text, &len, &err) == -EFBIG && !text &&
           len == 77,
       "one byte over the bound: %s", err.text);
    ok(file_read(at("none"), 10, &text, &len, &err) == -ENOENT && !text, "not there");
    ok(file_read(dir, 10, &text, &len, &err) == -EISDIR && !text, "a folder");
    ok(file_read("", 10, &text, &len, &err) == -ENOENT &&
           strcmp(err.text, "'': No such file or directory") == 0,
       "an empty name: %s", err.text);
    ok(file_read("/proc/self/stat", 10000, &text, NULL, &err) == 0 && strlen(text) > 10,
       "a file of /proc, whose size is 0");
    free(take(text));
    ok(mkfifo(at("named"), 0600) == 0 &&
           file_read(at("named"), 10, &text, NULL, &err) == -EINVAL && !text &&
           strstr(err.text, "named: not a regular file"),
       "a named pipe without a writer is not waited for: %s", err.text);
    int ends[2];
    char path[40] = "";
    if (pipe(ends) == 0 && write(ends[1], "abc", 3) == 3 && close(ends[1]) == 0)
        (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    ok(file_read(path, 10, &text, NULL, &err) == 0 && strcmp(text, "abc") == 0,
       "an open pipe, as <(…) of a shell");
    (void)close(ends[0]);
    (void)unlink(at("named"));
    free(text);
}

static void folders(void)
{
    uw_error err = {""};
    char path[64] = "kept";

    ok(file_make_dirs(at("x/y//z/"), 0750, &err) == 0 && mode_of(at("x/y/z")) == 0750,
       "mkdir -p");
    ok(file_make_dirs(at("x/y"), 0700, &err) == 0 && mode_of(at("x/y")) == 0750,
       "there already: left as it is");
    ok(file_make_dirs("/", 0700, &err) == 0 && file_make_dirs(".", 0700, &err) == 0,
       "roots");
    ok(file_make_dirs(at("a/b"), 0700, &err) == -ENOTDIR, "through a file: %s", err.text);

    ok(file_runtime_path("/run/user/5", "uw", 5, path, sizeof path, &err) == 0,
       "with XDG");
    is_str(path, "/run/user/5/uw", "its path");
    ok(file_runtime_path(NULL, "uw", 5, path, sizeof path, &err) == 0, "without");
    is_str(path, "/tmp/uw-5", "its path");
    ok(file_runtime_path("run", "uw", 5, path, sizeof path, &err) == -EINVAL,
       "not absolute");
    ok(file_runtime_path("/run/user/5", "uw", 5, path, 14, &err) == -ENAMETOOLONG,
       "no room");

    ok(file_private_dir(at("p"), getuid(), &err) == 0 && mode_of(at("p")) == 0700,
       "private");
    ok(file_private_dir(at("p"), getuid(), &err) == 0, "private already");
    ok(file_private_dir(at("p"), getuid() + 1, &err) == -EPERM, "another's: %s",
       err.text);
    (void)chmod(at("p"), 0710);
    ok(file_private_dir(at("p"), getuid(), &err) == -EPERM, "open to others: %s",
       err.text);
    ok(symlink(at("p"), at("l")) == 0 &&
           file_private_dir(at("l"), getuid(), &err) == -EPERM,
       "a link: %s", err.text);
    ok(file_private_dir(at("a"), getuid(), &err) == -ENOTDIR, "a file: %s", err.text);
    ok(file_private_dir(at("no/p"), getuid(), &err) == -ENOENT, "no parent is made");
    char own[300], taken[300];
    (void)snprintf(own, sizeof own, "%s", at("p2"));
    ok(file_own_dir(own, sizeof own, getuid(), &err) == 0 && strcmp(own, at("p2")) == 0,
       "one's own folder");
    (void)chmod(own, 0777);
    (void)snprintf(taken, sizeof taken, "%s", own);
    ok(file_own_dir(own, sizeof own, getuid(), &err) == 1 &&
           strncmp(own, taken, strlen(taken)) == 0 && strlen(own) == strlen(taken) + 7 &&
           mode_of(own) == 0700,
       "another where that name is taken: %s", own + strlen(own) - 9);
    (void)rmdir(own);
    (void)snprintf(own, sizeof own, "%s", taken);
    ok(file_own_dir(own, strlen(taken) + 4, getuid(), &err) == -ENAMETOOLONG,
       "no room for its name");
    (void)rmdir(taken);
}

int main(void)
{
    static const char *const made[] = {"a", "b", "l", "p", "x/y/z", "x/y", "x"};

    (void)umask(022);
    if (!ok(mkdtemp(dir) != NULL, "a folder to work in"))
        return done();
    writes();
    checks();
    keeps();
    sticky();
    open_file();
    reads();
    folders();
    for (size_t i = 0; i < n_elements(made); i++)
        (void)remove(at(made[i]));
    ok(rmdir(dir) == 0, "nothing else was made");
    return done();
}
