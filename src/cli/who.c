#include "cli/who.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/utf8.h"
#include "cli/cmd.h"

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

/* cmdline: n bytes, each word with a 0 behind it, and one more 0 at n. */
static bool is_daemon(const char *cmdline, size_t n)
{
    const char *slash = strrchr(cmdline, '/'), *name = slash ? slash + 1 : cmdline;

    if (strcmp(name, "underwattd") == 0)
        return true;
    for (size_t at = strlen(cmdline) + 1;
         at < n && strcmp(name, "underwatt-actuator") == 0;
         at += strlen(cmdline + at) + 1)
        if (strcmp(cmdline + at, "--serve") == 0)
            return true;
    return false;
}

static void read_command(const char *root, pid_t pid, struct who *ret)
{
    char path[300], text[512];

    (void)snprintf(path, sizeof path, "%.200s/proc/%d/cmdline", root, (int)pid);
    ssize_t n = read_small(path, text, sizeof text);
    ret->daemon = n > 0 && is_daemon(text, (size_t)n);
    while (n > 0 && text[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    if (n <= 0) { /* a zombie or a kernel thread */
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
    utf8_mend(ret->command);
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
    utf8_mend(ret->user);
    read_command(root, pid, ret);
}

void who_say_daemon(const char *command, pid_t pid)
{
    struct who who = {0};

    if (pid > 0)
        who_is("", pid, &who);
    if (who.known && who.daemon)
        cli_say("%s: process %d is the node's daemon: omit --local to use it", command,
                (int)pid);
}
