/* Files whose text may be shown in errors although root reads them. */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "io/file.h"

enum { NOBODY = 65534 }; /* owns no file */

/* A change of the user clears the signal that this process gets when its parent ends. */
static void set_parent_signal(int sig, pid_t parent)
{
    if (sig <= 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, sig);
    if (getppid() != parent) /* it ended meanwhile */
        (void)raise(sig);
}

/* -EPERM: root cannot become nobody here, as in a container. */
static int read_as_nobody(const char *path, size_t max, char **ret_text, size_t *ret_len,
                          uw_error *err)
{
    int n = getgroups(0, NULL);
    auto_(mem_free) gid_t *groups = calloc(n > 0 ? (size_t)n : 1, sizeof *groups);
    auto_(mem_free) char *text = NULL;
    int sig = 0;
    pid_t parent = getppid();

    (void)prctl(PR_GET_PDEATHSIG, &sig);
    if (n < 0 || !groups || getgroups(n, groups) != n || setgroups(0, NULL) < 0)
        return -EPERM;
    int r = -EPERM;
    if (setegid(NOBODY) == 0 && seteuid(NOBODY) == 0)
        r = file_read(path, max, &text, ret_len, err);
    if (seteuid(0) < 0 || setegid(0) < 0 || setgroups((size_t)n, groups) < 0)
        return fail(err, -EIO, "cannot become root again: %s", strerror(errno));
    set_parent_signal(sig, parent);
    if (r == 0)
        *ret_text = take(text);
    return r;
}

int file_read_shown(const char *path, size_t max, char **ret_text, size_t *ret_len,
                    bool *ret_hidden, uw_error *err)
{
    bool hides = file_hides();
    int r = -EPERM;

    if (geteuid() == 0 && getuid() == 0 && getegid() == 0)
        r = read_as_nobody(path, max, ret_text, ret_len, err);
    if (r != -EPERM && r != -EACCES) {
        if (r == 0)
            *ret_hidden = false;
        return r;
    }
    r = file_read(path, max, ret_text, ret_len, err);
    if (r == 0)
        *ret_hidden = hides;
    return r;
}
