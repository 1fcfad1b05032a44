#include "io/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "io/file.h"

enum { FILE_MAX = 2 * SECRET_MAX, READ_MS = 5000 };

void secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

int secret_check(const char *path, const char *what, uw_error *err)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (st.st_mode & 077 || (st.st_uid != geteuid() && st.st_uid != 0))
        return fail(err, -EPERM,
                    "%s: others may read the %s: its owner must be this user or root, "
                    "its mode 0600",
                    path, what);
    return 0;
}

int secret_read(const char *path, const char *what, bool blanks, char **ret,
                uw_error *err)
{
    char *text = NULL;
    int r = secret_check(path, what, err);

    if (r == 0)
        r = file_read_regular(path, FILE_MAX, READ_MS, &text, NULL, err);
    if (r < 0 || !text)
        return r;
    text[strcspn(text, "\r\n")] = '\0';
    for (const char *p = text; *p; p++)
        if (*p < ' ' || *p > '~' || (*p == ' ' && !blanks))
            r = -EINVAL;
    if (r < 0 || !text[0] || strlen(text) > SECRET_MAX) {
        secret_free(text);
        return fail(err, -EINVAL, "%s: its first line is no %s", path, what);
    }
    *ret = text;
    return 0;
}
