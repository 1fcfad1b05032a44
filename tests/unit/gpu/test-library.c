#include "gpu/library.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "tap.h"

static char top[] = "/tmp/uw-lib-XXXXXX";
static char file[100], folder[100], link_to[100];

static void reset(void)
{
    (void)!chown(top, 0, 0);
    (void)!chown(folder, 0, 0);
    (void)!chown(file, 0, 0);
    (void)chmod(top, 0755);
    (void)chmod(folder, 0755);
    (void)chmod(file, 0644);
}

static int check(const char *path, bool root, uw_error *err)
{
    char real[PATH_MAX];

    return gpu_library_check(path, root, real, sizeof real, err);
}

static void check_as_root(void)
{
    static const struct {
        const char *what;
        mode_t top, folder, file;
        uid_t top_uid, folder_uid, file_uid;
        int r;
    } cases[] = {
        {"all root's", 0755, 0755, 0644, 0, 0, 0, 0},
        {"file another's", 0755, 0755, 0644, 0, 0, 1, -EPERM},
        {"folder another's", 0755, 0755, 0644, 0, 1, 0, -EPERM},
        {"top another's", 0755, 0755, 0644, 1, 0, 0, -EPERM},
        {"file for a group", 0755, 0755, 0664, 0, 0, 0, -EPERM},
        {"file for all", 0755, 0755, 0646, 0, 0, 0, -EPERM},
        {"folder for all", 0755, 0777, 0644, 0, 0, 0, -EPERM},
        {"top for all", 0777, 0755, 0644, 0, 0, 0, -EPERM},
        {"top for all, sticky", 01777, 0755, 0644, 0, 0, 0, 0},
        {"sticky right above the file", 0755, 01777, 0644, 0, 0, 0, -EPERM},
        {"sticky, but another's", 01777, 0755, 0644, 1, 0, 0, -EPERM},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        uw_error err = {{0}};
        (void)chmod(top, cases[i].top);
        (void)chmod(folder, cases[i].folder);
        (void)chmod(file, cases[i].file);
        (void)!chown(top, cases[i].top_uid, 0);
        (void)!chown(folder, cases[i].folder_uid, 0);
        (void)!chown(file, cases[i].file_uid, 0);
        is_int(check(file, true, &err), cases[i].r, "%s", cases[i].what);
        is_int(check(link_to, true, &err), cases[i].r, "%s, through a link",
               cases[i].what);
        is_int(check(file, false, &err), 0, "%s: nothing to a user", cases[i].what);
        reset();
    }
}

static void check_folder(void)
{
    static const struct {
        const char *what;
        mode_t top, folder;
        uid_t top_uid, folder_uid, owner;
        int r;
    } cases[] = {
        {"a folder of root's", 0755, 0755, 0, 0, 0, 0},
        {"one of the owner's", 0755, 0755, 0, 1, 1, 0},
        {"one of another's", 0755, 0755, 0, 2, 1, -EPERM},
        {"one of a user's, to root", 0755, 0755, 0, 1, 0, -EPERM},
        {"one below another's", 0755, 0755, 2, 1, 1, -EPERM},
        {"one for a group", 0755, 0775, 0, 0, 0, -EPERM},
        {"one for all", 0755, 0777, 0, 0, 0, -EPERM},
        {"one for all, sticky", 0755, 01777, 0, 0, 0, -EPERM},
    };
    char real[PATH_MAX];
    uw_error err = {{0}};

    for (size_t i = 0; i < n_elements(cases); i++) {
        (void)chmod(top, cases[i].top);
        (void)chmod(folder, cases[i].folder);
        (void)!chown(top, cases[i].top_uid, 0);
        (void)!chown(folder, cases[i].folder_uid, 0);
        is_int(gpu_folder_check(folder, cases[i].owner, real, sizeof real, &err),
               cases[i].r, "%s", cases[i].what);
        reset();
    }
    is_int(gpu_folder_check(file, 0, real, sizeof real, &err), -EPERM, "a file is none");
    is_int(gpu_folder_check("lib", 0, real, sizeof real, &err), -EINVAL, "no path");
    is_int(gpu_folder_check("/nowhere", 0, real, sizeof real, &err), -ENOENT, "nowhere");
}

int main(void)
{
    char real[PATH_MAX];
    uw_error err = {{0}};

    if (!mkdtemp(top))
        return skip_all("no room in /tmp");
    (void)snprintf(folder, sizeof folder, "%s/lib", top);
    (void)snprintf(file, sizeof file, "%s/lib/libnvidia-ml.so.1", top);
    (void)snprintf(link_to, sizeof link_to, "%s/link.so", top);
    (void)mkdir(folder, 0755);
    (void)close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    (void)!symlink("lib/libnvidia-ml.so.1", link_to);

    is_int(check("lib/x.so", false, &err), -EINVAL, "a path must be absolute");
    is_int(check("/nowhere/x.so", false, &err), -ENOENT, "a file must be there");
    is_int(gpu_library_check(link_to, false, real, sizeof real, &err), 0, "a link");
    is_str(real, file, "… is followed");
    is_int(gpu_library_check(file, false, real, 5, &err), -ENAMETOOLONG, "no room");
    is_int(check(folder, true, &err), -EPERM, "a folder is no library");
    if (geteuid() == 0) {
        check_as_root();
        check_folder();
    } else
        is_int(check(file, true, &err), -EPERM, "a user's file is nothing for root");
    (void)unlink(link_to);
    (void)unlink(file);
    (void)rmdir(folder);
    (void)rmdir(top);
    return done();
}
