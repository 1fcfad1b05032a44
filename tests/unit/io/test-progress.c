/* The progress page under honest, lying and truncating jobs, and the very code of
 * docs/progress.md (argv[1]) compiled and run.
 */
#include "io/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/file.h"
#include "io/loop.h"
#include "tap.h"

static char dir[64] = "/tmp/uw-test-progress.XXXXXX";

static void put_slot(const struct progress_page *page, unsigned i, uint64_t pid,
                     uint64_t steps, uint64_t at_ns, uint32_t phase)
{
    struct uw_progress_slot slot = {pid, steps, at_ns, phase, {0}};
    auto_(fd_close) int fd = open(progress_page_path(page), O_WRONLY | O_CLOEXEC);

    if (pwrite(fd, &slot, sizeof slot, 64 * (off_t)(i + 1)) != (ssize_t)sizeof slot)
        printf("# the slot could not be written\n");
}

static void slots(struct progress_page *page)
{
    struct progress_read got;
    struct stat st;

    ok(stat(progress_page_path(page), &st) == 0 && (st.st_mode & 07777) == 0600 &&
           st.st_size == UW_PROGRESS_BYTES,
       "a page, mode 0600");
    ok(progress_page_read(page, 100, &got, NULL) == 0 && got.n == 0 && got.flaws == 0,
       "empty");
    put_slot(page, 0, (uint64_t)getpid(), 5, 90, UW_PHASE_TRAIN);
    put_slot(page, 62, 1, 7, 0, UW_PHASE_STARTUP);
    put_slot(page, 3, UINT64_MAX, 1, 1, 0);
    ok(progress_page_read(page, 100, &got, NULL) == 0 && got.n == 3 && got.flaws == 0,
       "three slots");
    ok(got.slot[0].index == 0 && got.slot[0].alive && got.slot[0].steps == 5 &&
           got.slot[0].last_step_ns == 90 && got.slot[0].phase == UW_PHASE_TRAIN,
       "ours");
    ok(got.slot[1].index == 3 && !got.slot[1].alive, "a pid that cannot be");
    ok(got.slot[2].index == 62 && got.slot[2].alive && got.slot[2].pid == 1, "another's");
}

static void lies(struct progress_page *page)
{
    struct progress_read got;

    put_slot(page, 0, (uint64_t)getpid(), 4, 90, UW_PHASE_TRAIN);
    put_slot(page, 62, 1, 8, 101, 77);
    ok(progress_page_read(page, 100, &got, NULL) == 0 && got.n == 3, "read");
    is_int(got.slot[0].flaws, PROGRESS_BACK, "steps went backwards");
    is_int(got.slot[2].flaws, PROGRESS_FUTURE | PROGRESS_PHASE,
           "a future time, no phase");
    is_int(got.slot[2].phase, UW_PHASE_UNKNOWN, "read as unknown");
    is_int(got.flaws, PROGRESS_BACK | PROGRESS_FUTURE | PROGRESS_PHASE, "of the page");
    put_slot(page, 0, 1, 2, 90, UW_PHASE_TRAIN);
    ok(progress_page_read(page, 100, &got, NULL) == 0 && got.slot[0].flaws == 0,
       "fewer steps of another process are no lie");

    ok(truncate(progress_page_path(page), 320) == 0 &&
           progress_page_read(page, 200, &got, NULL) == 0 && got.n == 2 &&
           got.flaws == PROGRESS_SHORT,
       "cut: what is left is read");
    ok(truncate(progress_page_path(page), 64 * 4 + 63) == 0 &&
           progress_page_read(page, 200, &got, NULL) == 0 && got.n == 1,
       "cut within a slot");
    ok(truncate(progress_page_path(page), 0) == 0 &&
           progress_page_read(page, 200, &got, NULL) == 0 && got.n == 0 &&
           got.flaws == PROGRESS_SHORT,
       "cut to nothing");
    ok(truncate(progress_page_path(page), 1 << 20) == 0 &&
           progress_page_read(page, 200, &got, NULL) == 0 && got.n == 0 &&
           got.flaws == PROGRESS_MAGIC,
       "another header");
}

static void life(void)
{
    struct progress_page *page = NULL;
    uw_error err = {""};
    char path[128] = "";

    ok(progress_page_new("/no/such/folder", &page, &err) == -ENOENT && !page &&
           strstr(err.text, "/no/such/folder"),
       "no folder: %s", err.text);
    if (!ok(progress_page_new(dir, &page, &err) == 0, "a page"))
        return;
    (void)snprintf(path, sizeof path, "%s", progress_page_path(page));
    slots(page);
    lies(page);
    progress_page_free(take(page));
    ok(access(path, F_OK) < 0, "removed");
    progress_page_free(NULL);

    if (!ok(progress_page_new(dir, &page, &err) == 0, "another page"))
        return;
    (void)snprintf(path, sizeof path, "%s", progress_page_path(page));
    ok(unlink(path) == 0 && file_write(path, "mine", 4, 0600, NULL) == 0, "replaced");
    progress_page_free(page);
    ok(unlink(path) == 0, "what the job put in its place is left alone");
}

/* ---- what makers leave ---- */

/* A page whose maker was killed: nobody has it open. */
static void leave_page(const char *name, uint64_t writer, char path[128])
{
    struct uw_progress_page page = {.slot = {{writer, 1, 1, UW_PHASE_TRAIN, {0}}}};

    (void)snprintf(path, 128, "%s/%s", dir, name);
    if (file_write(path, &page, sizeof page, 0600, NULL) < 0)
        printf("# %s could not be written\n", path);
}

/* Somebody with the page in the environment, until the pipe is closed. */
static pid_t begin_told(const char *path, int *ret_end)
{
    char variable[160];
    char *argv[] = {(char[]){"cat"}, NULL}, *env[] = {variable, NULL};
    int in[2], out[2];
    char back = 0;

    (void)snprintf(variable, sizeof variable, "UNDERWATT_PROGRESS=/elsewhere//%s",
                   strrchr(path, '/') + 1);
    if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(in[0], 0);
        (void)dup2(out[1], 1);
        (void)execvpe(argv[0], argv, env);
        _exit(1);
    }
    (void)close(in[0]);
    (void)close(out[1]);
    bool runs = write(in[1], "x", 1) == 1 && read(out[0], &back, 1) == 1 && back == 'x';
    (void)close(out[0]);
    *ret_end = in[1];
    return runs ? pid : -1;
}

static void left_alone(void)
{
    auto_(progress_page_free) struct progress_page *page = NULL;
    static const char *const others[] = {"progress-abc", "progress-abcdefg",
                                         "progress-abc-ef", "xprogress-abcdef", "page"};
    char path[128], target[128];

    ok(progress_page_new(dir, &page, NULL) == 0 && progress_clear(dir) == 0 &&
           access(progress_page_path(page), F_OK) == 0,
       "a page that its maker has open stays");
    for (size_t i = 0; i < n_elements(others); i++) {
        leave_page(others[i], 0, path);
        ok(progress_clear(dir) == 0 && unlink(path) == 0, "%s is none of ours",
           others[i]);
    }
    leave_page("page", 0, target);
    (void)snprintf(path, sizeof path, "%s/progress-aLink1", dir);
    ok(symlink(target, path) == 0 && progress_clear(dir) == 0 && unlink(path) == 0 &&
           unlink(target) == 0,
       "a link stays, and what it leads to");
    (void)snprintf(path, sizeof path, "%s/progress-aPipe1", dir);
    ok(mkfifo(path, 0600) == 0 && progress_clear(dir) == 0 && unlink(path) == 0,
       "so does a pipe, and nobody waits at it");
    (void)snprintf(path, sizeof path, "%s/progress-aFoldr", dir);
    ok(mkdir(path, 0700) == 0 && progress_clear(dir) == 0 && rmdir(path) == 0,
       "… and a folder");
    leave_page("progress-Other1", 0, path);
    if (geteuid() != 0)
        skip_one("another user's page", "only root can make one");
    else
        ok(chown(path, 65534, (gid_t)-1) == 0 && progress_clear(dir) == 0 &&
               access(path, F_OK) == 0,
           "… and another user's page");
    (void)unlink(path);
    is_int((int)progress_clear("/no/such/folder"), 0, "no folder, nothing to clear");
}

static void cleared(void)
{
    char path[128];
    int end = -1;

    leave_page("progress-aB3xyZ", 0, path);
    ok(progress_clear(dir) == 1 && access(path, F_OK) < 0,
       "a page that nobody has is removed");
    leave_page("progress-Writer", UINT64_MAX, path);
    ok(progress_clear(dir) == 1, "so is one whose processes have gone");
    leave_page("progress-Writer", (uint64_t)getpid(), path);
    ok(progress_clear(dir) == 0 && unlink(path) == 0, "one stays whose process lives");

    leave_page("progress-Handed", 0, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* as the daemon has it */
    ok(flock(fd, LOCK_SH | LOCK_NB) == 0 && progress_clear(dir) == 0,
       "one that was handed over stays");
    (void)close(fd);
    ok(progress_clear(dir) == 1, "… until it is let go of");

    leave_page("progress-Told01", 0, path);
    pid_t pid = begin_told(path, &end);
    ok(pid > 0 && progress_clear(dir) == 0 && access(path, F_OK) == 0,
       "one stays that a process was told of, by whatever path");
    (void)close(end);
    (void)waitpid(pid, NULL, 0);
    ok(progress_clear(dir) == 1 && access(path, F_OK) < 0, "… until that has ended");
}

/* ---- the documentation's code ---- */

/* The fenced block of that language; free() it. */
static char *snippet(const char *doc, const char *fence)
{
    const char *from = strstr(doc, fence);
    const char *to = from ? strstr(from + 3, "```") : NULL;

    if (!to)
        return NULL;
    from += strlen(fence);
    return strndup(from, (size_t)(to - from));
}

static int on_end(struct loop_child *child, int status, void *user)
{
    (void)child;
    *(int *)user = status;
    return 0;
}

/* The exit status; -1 when it could not be started. */
static int run(const char *const *argv, const char *const *env)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = 2, .stderr_fd = -1};
    struct loop_child *child;
    int status = -1;

    if (loop_new_real((struct loop_clock){0, 1}, &loop, NULL) < 0 ||
        loop_child_new(loop, &opts, on_end, &status, &child, NULL) < 0 ||
        loop_run(loop, NULL) < 0 || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static bool write_program(const char *path, const char *before, const char *code,
                          const char *after)
{
    auto_(mem_free) char *text = NULL;
    int n = asprintf(&text, "%s%s%s", before, code, after);

    return n > 0 && file_write(path, text, (size_t)n, 0600, NULL) == 0;
}

/* Three steps of a process of rank 2 by argv. */
static void sees_steps(const char *name, const char *const *argv)
{
    auto_(progress_page_free) struct progress_page *page = NULL;
    struct progress_read got;
    char variable[160];
    const char *env[] = {variable, "LOCAL_RANK=2", NULL};
    auto_(loop_free) struct loop *clock = NULL;

    if (!ok(progress_page_new(dir, &page, NULL) == 0 &&
                loop_new_real((struct loop_clock){0, 1}, &clock, NULL) == 0,
            "%s: a page", name))
        return;
    (void)snprintf(variable, sizeof variable, "UNDERWATT_PROGRESS=%s",
                   progress_page_path(page));
    uint64_t before = loop_now_ns(clock);
    is_int(run(argv, env), 0, "%s: runs", name);
    uint64_t after = loop_now_ns(clock);
    ok(progress_page_read(page, after, &got, NULL) == 0 && got.n == 1 && got.flaws == 0,
       "%s: one slot, without a flaw", name);
    ok(got.slot[0].index == 2 && got.slot[0].steps == 3 && !got.slot[0].alive &&
           got.slot[0].pid > 0,
       "%s: three steps in slot 2", name);
    ok(got.slot[0].last_step_ns >= before && got.slot[0].last_step_ns <= after,
       "%s: the last of them just now", name);
}

static void in_python(const char *doc)
{
    auto_(mem_free) char *code = snippet(doc, "```python\n");
    char path[128];
    const char *argv[] = {"python3", path, NULL},
               *probe[] = {"python3", "--version", NULL};

    (void)snprintf(path, sizeof path, "%s/job.py", dir);
    if (!ok(code && write_program(path, "", code, "\nfor i in range(3):\n    step()\n"),
            "the documentation's Python"))
        return;
    if (run(probe, NULL) == 0)
        sees_steps("Python", argv);
    else
        skip_one("Python", "no python3");
    (void)unlink(path);
}

static void in_c(const char *doc, const char *include)
{
    static const char before[] =
        "#include <fcntl.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
        "#include <sys/mman.h>\n#include <time.h>\n#include <unistd.h>\n"
        "#include <underwatt/progress.h>\n";
    static const char after[] =
        "int main(void)\n{\n"
        "    progress_open(getenv(\"UNDERWATT_PROGRESS\"),\n"
        "                  (unsigned)atoi(getenv(\"LOCAL_RANK\")));\n"
        "    for (int i = 0; i < 3; i++)\n"
        "        progress_step();\n"
        "    return slot == NULL;\n}\n";
    auto_(mem_free) char *code = snippet(doc, "```c\n");
    char path[128], program[128];
    const char *compile[] = {"cc", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
                             "-I", include, "-o",      program,   path,
                             NULL};
    const char *argv[] = {program, NULL}, *probe[] = {"cc", "--version", NULL};

    (void)snprintf(path, sizeof path, "%s/job.c", dir);
    (void)snprintf(program, sizeof program, "%s/job", dir);
    if (!ok(code && write_program(path, before, code, after), "the documentation's C"))
        return;
    if (run(probe, NULL) == 0) {
        is_int(run(compile, NULL), 0, "C: compiles without a warning");
        sees_steps("C", argv);
    } else {
        skip_one("C", "no C compiler");
    }
    (void)unlink(path);
    (void)unlink(program);
}

/* Pages that somebody else made: a descriptor is all there is. */
static void handed_over(void)
{
    struct uw_progress_page raw = {
        .version = UW_PROGRESS_VERSION,
        .slots = UW_PROGRESS_SLOTS,
        .slot = {{(uint64_t)getpid(), 7, 90, UW_PHASE_TRAIN, {0}}}};
    struct progress_page *page = NULL;
    struct progress_read got;
    uw_error err = {""};
    char path[100];
    int ends[2];

    memcpy(raw.magic, UW_PROGRESS_MAGIC, sizeof raw.magic);
    int fd = memfd_create("page", MFD_CLOEXEC);
    ok(write(fd, &raw, sizeof raw) == (ssize_t)sizeof raw &&
           progress_page_adopt(fd, &page, &err) == 0,
       "a page in memory is taken %s", err.text);
    is_str(progress_page_path(page), "", "… it has no path here");
    ok(progress_page_read(page, 100, &got, NULL) == 0 && got.n == 1 &&
           got.slot[0].steps == 7 && got.slot[0].alive && got.flaws == 0,
       "… and is read");
    ok(ftruncate(fd, 70) == 0 && progress_page_read(page, 100, &got, NULL) == 0 &&
           got.n == 0 && (got.flaws & PROGRESS_SHORT),
       "… cut by its job: that is all");
    progress_page_free(page);
    ok(fcntl(fd, F_GETFD) < 0, "it is closed with the page");

    (void)snprintf(path, sizeof path, "%s/slow", dir);
    fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    struct statfs fs;
    if (fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
        skip_one("a file that is not in memory", "/tmp is a tmpfs");
    else
        ok(progress_page_adopt(fd, &page, &err) == -EINVAL &&
               strstr(err.text, "in memory") && fcntl(fd, F_GETFD) >= 0,
           "a file that is not in memory is refused, and stays its owner's: %s",
           err.text);
    (void)close(fd);
    (void)unlink(path);
    ok(pipe(ends) == 0 && progress_page_adopt(ends[0], &page, &err) == -EINVAL,
       "a pipe is refused: %s", err.text);
    (void)close(ends[0]);
    (void)close(ends[1]);
    ok(progress_page_adopt(ends[0], &page, &err) == -EBADF, "so is no descriptor: %s",
       err.text);
}

int main(int argc, char **argv)
{
    auto_(mem_free) char *doc = NULL;
    uw_error err = {""};

    if (!ok(argc == 3 && mkdtemp(dir), "arguments: DOC INCLUDE"))
        return done();
    life();
    handed_over();
    left_alone();
    cleared();
    if (ok(file_read(argv[1], 1 << 20, &doc, NULL, &err) == 0, "%s %s", argv[1],
           err.text)) {
        in_python(doc);
        in_c(doc, argv[2]);
    }
    ok(rmdir(dir) == 0, "nothing is left behind");
    return done();
}
