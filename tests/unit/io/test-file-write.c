/* Outputs in folders of other users. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/file.h"
#include "remove-tree.h"
#include "tap.h"

enum { NOBODY = 65534 };

static char dir[64] = "/tmp/uw-test-file-write.XXXXXX"; /* the working directory */
static bool swaps; /* the next file's folder is replaced while it is written */

static bool holds(const char *path, const char *text)
{
    auto_(mem_free) char *got = NULL;

    return file_read(path, 1000, &got, NULL, NULL) == 0 && strcmp(got, text) == 0;
}

static bool put(const char *path, const char *text, mode_t mode)
{
    return file_write(path, text, strlen(text), mode, NULL) == 0;
}

/* The linker's --wrap sends each fchmod() here. */
int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode)
{
    if (swaps && (rename("home", "moved") < 0 || symlink("etc", "home") < 0))
        return -1;
    swaps = false;
    return __real_fchmod(fd, mode);
}

/* The folder's user puts a link to another folder in its place. */
static void swapped(void)
{
    ok(mkdir("etc", 0755) == 0 && put("etc/passwd", "root", 0644) &&
           mkdir("home", 0755) == 0 && put("home/passwd", "user", 0644),
       "a folder of root, a folder of a user");
    for (int follow = 0; follow <= 1; follow++) {
        swaps = true;
        is_int(file_write("home/passwd", "new", 3, follow ? FILE_MODE_UMASK : 0600, NULL),
               0, "written while the folder is replaced");
        ok(!swaps && holds("etc/passwd", "root") && holds("moved/passwd", "new"),
           "the file of the folder that was opened is replaced, no other");
        ok(unlink("home") == 0 && rename("moved", "home") == 0, "as before");
    }
}

/* What open() does not follow is not replaced. */
static void links(void)
{
    uw_error err = {""};

    ok(symlink("loop", "loop") == 0, "a loop of links");
    is_int(file_check_write("loop", &err), -ELOOP, "a loop: %s", err.text);
    is_int(file_write("loop", "x", 1, FILE_MODE_UMASK, &err), -ELOOP, "%s", err.text);
    if (geteuid() != 0) {
        ok(true, "links of other users # SKIP not root");
        return;
    }
    ok(mkdir("open", 0777) == 0 && chmod("open", 0777) == 0 && mkdir("shut", 0700) == 0 &&
           put("shut/a", "one", 0666) && symlink("../shut/a", "open/l") == 0 &&
           mkdir("tmp", 0777) == 0 && chmod("tmp", 01777) == 0 &&
           symlink("../open/new", "tmp/l") == 0 && lchown("tmp/l", NOBODY + 1, 0) == 0,
       "a link into a folder of root's, another user's link in a sticky folder");
    static const char *const names[] = {"open/l", "tmp/l"};
    struct stat st;
    for (size_t i = 0; i < n_elements(names); i++) {
        const uid_t me = i == 0 ? NOBODY : 0;
        ok(seteuid(me) == 0, "user %u", (unsigned)me);
        is_int(file_check_write(names[i], &err), -EACCES, "%s", err.text);
        is_int(file_write(names[i], "x", 1, FILE_MODE_UMASK, &err), -EACCES, "%s",
               err.text);
        ok(seteuid(0) == 0 && lstat(names[i], &st) == 0 && S_ISLNK(st.st_mode),
           "the link is kept");
    }
    ok(lchown("tmp/l", 0, 0) == 0 && put("tmp/l", "x", FILE_MODE_UMASK) &&
           holds("open/new", "x"),
       "one's own link is followed");
}

static void same(void)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"none", "./none", true},          {"none", "etc/../none", true},
        {"none", "etc/none", false},       {"etc/passwd", "home/passwd", false},
        {"/dev/null", "/dev/null", false}, {"/dev/stderr", "/dev/fd/2", false},
    };

    for (size_t i = 0; i < n_elements(cases); i++)
        ok(file_is_same(cases[i].a, cases[i].b) == cases[i].same, "%s and %s", cases[i].a,
           cases[i].b);
}

/* Root gives a file to the user of the one before only where no user can have put it. */
static void owners(void)
{
    static const struct {
        const char *what;
        uid_t uid;
        mode_t mode;
        uid_t owner;
    } cases[] = {
        {"root's", 0, 0755, NOBODY},    {"its user's", NOBODY, 0755, NOBODY},
        {"another user's", 1, 0755, 0}, {"a group's", 0, 0775, 0},
        {"a sticky one", 0, 01777, 0},
    };
    struct stat st;

    if (geteuid() != 0) {
        ok(true, "owners # SKIP not root");
        return;
    }
    for (size_t i = 0; i < n_elements(cases); i++) {
        ok(mkdir("o", 0700) == 0 && put("o/a", "one", 0640) &&
               chown("o/a", NOBODY, NOBODY) == 0 && chown("o", cases[i].uid, 0) == 0 &&
               chmod("o", cases[i].mode) == 0,
           "a user's file in a folder: %s", cases[i].what);
        ok(put("o/a", "two", FILE_MODE_UMASK) && stat("o/a", &st) == 0 &&
               st.st_uid == cases[i].owner && st.st_gid == cases[i].owner,
           "replaced, it is user %u's", (unsigned)cases[i].owner);
        is_int(st.st_mode & 0777, 0640, "its mode");
        ok(unlink("o/a") == 0 && rmdir("o") == 0, "removed");
    }
}

/* A file that is a mount point, as in containers. */
static void mounted(void)
{
    struct stat st;
    uw_error err = {""};

    ok(put("outside", "a long text", 0640) && put("m", "", 0600), "two files");
    if (unshare(CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("outside", "m", NULL, MS_BIND, NULL) < 0) {
        ok(true, "a file that is mounted # SKIP cannot mount");
        return;
    }
    is_int(file_check_write("m", &err), 0, "it can be written");
    ok(holds("m", "a long text"), "… and is not changed by the check");
    static const char *const texts[] = {"shorter", "new"};
    for (size_t i = 0; i < n_elements(texts); i++) {
        ok(put("m", texts[i], i ? FILE_MODE_UMASK : 0600) && holds("outside", texts[i]) &&
               stat("m", &st) == 0 && (st.st_mode & 0777) == 0640,
           "the file is written, its mode kept");
    }
    ok(symlink("m", "m2") == 0 && file_is_same("m", "m2"), "two outputs to it are one");
    ok(mount(NULL, "m", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0, "read-only");
    is_int(file_check_write("m", &err), -EROFS, "%s", err.text);
    ok(umount("m") == 0, "not mounted");
}

int main(void)
{
    (void)umask(022);
    if (!ok(mkdtemp(dir) != NULL && chmod(dir, 0755) == 0 && chdir(dir) == 0,
            "a folder to work in"))
        return done();
    swapped();
    links();
    same();
    owners();
    mounted();
    ok(chdir("/") == 0, "the folder is left");
    remove_tree(dir);
    return done();
}
