#include "cli/who.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"

/* Bytes of the UTF-8 sequence at s, 0 where it is none or a control character. */
static size_t sequence(const unsigned char *s)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

    if (s[0] < 0x20 || s[0] == 0x7f || (s[0] >= 0x80 && s[0] < 0xc2) || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    if (s[0] == 0xc2 && s[1] < 0xa0) /* C1 control characters */
        return 0;
    return n;
}

void who_clean(char *text)
{
    unsigned char *s = (unsigned char *)text;

    while (*s) {
        size_t n = sequence(s);
        if (n == 0)
            *s = '?';
        s += n ? n : 1;
    }
}

static ssize_t read_small(const char *path, char *ret, size_t size)
{
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t have = 0;

    while (fd >= 0 && have < size - 1) {
        ssize_t n = read(fd, ret + have, size - 1 - have);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    ret[have] = '\0';
    return fd < 0 ? -1 : (ssize_t)have;
}

static void read_command(const char *root, pid_t pid, struct who *ret)
{
    char path[300], text[512];

    (void)snprintf(path, sizeof path, "%.200s/proc/%d/cmdline", root, (int)pid);
    ssize_t n = read_small(path, text, sizeof text);
    while (n > 0 && text[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    if (n <= 0) { /* a zombie, or a kernel thread */
        (void)snprintf(path, sizeof path, "%.200s/proc/%d/comm", root, (int)pid);
        n = read_small(path, text, sizeof text);
        text[strcspn(text, "\n")] = '\0';
    }
    if (n > (ssize_t)sizeof ret->command - 4) {
        size_t cut = sizeof ret->command - 4;
        while (cut > 0 && ((unsigned char)text[cut] & 0xc0) == 0x80)
            cut--;
        memcpy(text + cut, "…", sizeof "…");
    }
    (void)snprintf(ret->command, sizeof ret->command, "%.*s",
                   (int)sizeof ret->command - 1, text);
    who_clean(ret->command);
}

void who_is(const char *root, pid_t pid, struct who *ret)
{
    struct stat st;
    char path[300];

    *ret = (struct who){0};
    (void)snprintf(path, sizeof path, "%.200s/proc/%d", root, (int)pid);
    if (stat(path, &st) < 0)
        return;
    ret->known = true;
    ret->uid = st.st_uid;
    const struct passwd *pw = getpwuid(st.st_uid);
    if (pw)
        (void)snprintf(ret->user, sizeof ret->user, "%s", pw->pw_name);
    else
        (void)snprintf(ret->user, sizeof ret->user, "%u", (unsigned)st.st_uid);
    read_command(root, pid, ret);
}
