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
    static char path[4][160];
    static unsigned i;

    i = (i + 1) % 4;
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
    ok(file_read("/proc/self/stat", 10000, &text, NULL, &err) == 0 && strlen(text) > 10,
       "a file of /proc, whose size is 0");
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
    reads();
    folders();
    for (size_t i = 0; i < n_elements(made); i++)
        (void)remove(at(made[i]));
    ok(rmdir(dir) == 0, "nothing else was made");
    return done();
}
