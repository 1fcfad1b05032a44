/* A file is changed before and after a process with slurmd's name began. */
#include "slurm/slurmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "tap.h"

static char place[] = "/tmp/uw-slurmd-XXXXXX";

static const char *at(const char *name)
{
    static char path[100];

    (void)snprintf(path, sizeof path, "%s/%s", place, name);
    return path;
}

static void write_file(const char *name)
{
    FILE *f = fopen(at(name), "we");

    ok(f && fputs("x", f) >= 0 && fclose(f) == 0, "%s is written", name);
}

/* files' times are no finer than a clock tick */
static void pause_ms(int ms)
{
    struct pollfd none = {.fd = -1};

    (void)poll(&none, 1, ms);
}

static void is(const char *name, int want, const char *text)
{
    uw_error err = {""};

    is_int(slurmd_has_read(at(name), &err), want, "%s (%s)", text, err.text);
}

/* The child of a process goes on in its place, and ends it. */
static void go_on_in_child(const char *name)
{
    int status = 0;

    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_NAME, "slurmstepd");
        return;
    }
    (void)prctl(PR_SET_NAME, name);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        _exit(1);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void parent_is(const char *name)
{
    char path[60], comm[20] = "";

    /* The parent may name itself after the child goes on. */
    (void)snprintf(path, sizeof path, "/proc/%d/comm", getppid());
    for (int i = 0; i < 6000 && strncmp(comm, name, strlen(name)) != 0; i++) {
        FILE *f = fopen(path, "re");
        if (f && !fgets(comm, sizeof comm, f))
            comm[0] = '\0';
        if (f)
            (void)fclose(f);
        pause_ms(10);
    }
    comm[strcspn(comm, "\n")] = '\0';
    is_str(comm, name, "the parent's name");
}

static void changes(void)
{
    struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    char from[100];

    is("same", 0, "a file from before");
    is("none", -ENOENT, "no file");
    write_file("written");
    is("written", -ESTALE, "a file that was written anew");
    ok(utimensat(AT_FDCWD, at("dated"), old, 0) == 0, "a file is dated back");
    is("dated", -ESTALE, "… which is a change");
    (void)snprintf(from, sizeof from, "%s", at("moved"));
    ok(rename(from, at("over")) == 0, "a file from before is moved over another");
    is("over", -ESTALE, "… which is a change");
    ok(symlink("same", at("link")) == 0, "a link");
    is("link", -ESTALE, "… to a file from before");
}

static void own_copies(void)
{
    struct timespec now = {0};

    write_file("conf-cache/gres.conf");
    is("conf-cache/gres.conf", 0, "what slurmd itself writes when it starts");
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct timespec later[2] = {now, now};
    later[1].tv_sec += 600;
    ok(utimensat(AT_FDCWD, at("conf-cache/gres.conf"), later, 0) == 0, "ten minutes on");
    is("conf-cache/gres.conf", -ESTALE, "… it is a change");
}

int main(void)
{
    static const char *const made[] = {
        "same", "written", "dated", "over", "link", "conf-cache/gres.conf", "conf-cache"};

    if (!mkdtemp(place) || mkdir(at("conf-cache"), 0700) < 0)
        return 1;
    write_file("same");
    write_file("written");
    write_file("dated");
    write_file("moved");
    write_file("over");
    is("same", -ESRCH, "without slurmd");
    go_on_in_child("sh");
    parent_is("sh");
    is("same", -ESRCH, "a child of another program");
    pause_ms(100);
    go_on_in_child("sh"); /* what becomes slurmd begins here */
    go_on_in_child("slurmd");
    parent_is("slurmd");
    changes();
    own_copies();
    pause_ms(100);
    go_on_in_child("sh");
    parent_is("sh");
    is("same", 0, "slurmd is the parent's parent");
    is("written", -ESTALE, "… and knows no more");
    go_on_in_child("slurmd");
    parent_is("slurmd");
    is("written", 0, "a slurmd that began later");
    write_file("written");
    pause_ms(100);
    go_on_in_child("slurmd");
    go_on_in_child("slurmd");
    parent_is("slurmd");
    is("written", -ESTALE, "of a slurmd that has forked the first one counts");
    for (size_t i = 0; i < n_elements(made); i++)
        (void)remove(at(made[i]));
    is_int(rmdir(place), 0, "nothing else was written");
    return done();
}
