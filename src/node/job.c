#include "node/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/units.h"
#include "io/file.h"
#include "io/progress.h"

enum { POLL_MS = 100, ENV_MAX = 16, TREE_DEPTH = 64 };

struct job {
    pid_t reporter[UW_PROGRESS_SLOTS]; /* live ones of the last look */
    size_t n_reporters;
    struct loop *loop;
    struct job_opts opts;
    struct loop_child *child;
    struct loop_timer *poll;
    struct progress_page *page;
    struct steps steps;
    bool running;
    uint64_t last[UW_PROGRESS_SLOTS]; /* who was alive when anybody last was */
    size_t n_last;
};

/* At the end all are dead: those count that were alive when anybody last was, or
 * everybody where no look was in time.
 */
static bool counted_last(const struct job *j, uint64_t pid)
{
    for (size_t i = 0; i < j->n_last; i++)
        if (j->last[i] == pid)
            return true;
    return j->n_last == 0;
}

static void remember(struct job *j, const struct step_slot *slots, size_t n)
{
    size_t live = 0;

    for (size_t i = 0; i < n; i++)
        live += slots[i].live;
    if (live == 0)
        return;
    j->n_last = 0;
    for (size_t i = 0; i < n; i++)
        if (slots[i].live)
            j->last[j->n_last++] = slots[i].pid;
}

static int look(struct job *j, uint64_t now)
{
    struct progress_read read;
    struct step_slot slots[UW_PROGRESS_SLOTS];

    if (!j->page)
        return 0;
    if (progress_page_read(j->page, now, &read, NULL) < 0)
        read.n = 0; /* unknown progress, not a failure of ours */
    j->n_reporters = 0;
    for (size_t i = 0; i < read.n; i++) {
        const struct progress_seen *seen = &read.slot[i];
        if (seen->alive)
            j->reporter[j->n_reporters++] = (pid_t)seen->pid;
        slots[i] = (struct step_slot){
            .pid = seen->pid,
            .steps = seen->steps,
            .last_step_ns = seen->last_step_ns,
            .phase = seen->phase,
            .live = seen->alive || loop_is_virtual(j->loop) ||
                    (!j->running && counted_last(j, seen->pid)),
        };
    }
    remember(j, slots, read.n);
    (void)steps_feed(&j->steps, slots, read.n, now);
    return j->opts.on_steps ? j->opts.on_steps(j, &j->steps, now, j->opts.user) : 0;
}

static int job_on_poll(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    return look(user, now_ns);
}

static int job_on_child(struct loop_child *child, int status, void *user)
{
    struct job *j = user;
    (void)child;

    j->running = false;
    loop_timer_free(j->poll);
    j->poll = NULL;
    int r = look(j, loop_now_ns(j->loop));
    if (r < 0)
        return r;
    return j->opts.on_exit ? j->opts.on_exit(j, status, j->opts.user) : 0;
}

static int start_child(struct job *j, uw_error *err)
{
    const char *env[ENV_MAX + 2] = {NULL};
    char page[4200];
    size_t n = 0;

    for (; j->opts.env && j->opts.env[n]; n++) {
        if (n == ENV_MAX)
            return fail(err, -E2BIG, "more than %d variables for the job", ENV_MAX);
        env[n] = j->opts.env[n];
    }
    if (j->page) {
        int len = snprintf(page, sizeof page, "UNDERWATT_PROGRESS=%s",
                           progress_page_path(j->page));
        if (len < 0 || (size_t)len >= sizeof page)
            return fail(err, -ENAMETOOLONG, "the path of the progress page is too long");
        env[n] = page;
    }
    struct loop_child_opts child = {
        .argv = j->opts.argv,
        .env = env,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
    };
    return loop_child_new(j->loop, &child, job_on_child, j, &j->child, err);
}

int job_start(struct loop *loop, const struct job_opts *opts, struct job **ret,
              uw_error *err)
{
    auto_(job_free) struct job *j = calloc(1, sizeof *j);

    if (!j)
        return fail(err, -ENOMEM, "out of memory");
    j->loop = loop;
    j->opts = *opts;
    steps_init(&j->steps);
    int r = 0;
    if (opts->runtime_dir)
        r = progress_page_new(opts->runtime_dir, &j->page, err);
    if (r >= 0)
        r = start_child(j, err);
    if (r < 0)
        return r;
    j->running = true;
    uint64_t period = opts->poll_ns ? opts->poll_ns : POLL_MS * NS_PER_MS;
    r = loop_timer_new(loop, loop_now_ns(loop) + period, period, job_on_poll, j, &j->poll,
                       err);
    if (r < 0) {
        (void)loop_child_kill(j->child, 15);
        return r;
    }
    *ret = take(j);
    return 0;
}

void job_free(struct job *j)
{
    if (!j)
        return;
    loop_timer_free(j->poll);
    loop_child_free(j->child);
    progress_page_free(j->page);
    free(j);
}

pid_t job_pid(const struct job *j)
{
    return loop_child_pid(j->child);
}

int job_kill(struct job *j, int signo)
{
    return j->running ? loop_child_kill(j->child, signo) : -ESRCH;
}

bool job_running(const struct job *j)
{
    return j->running;
}

const struct steps *job_steps(const struct job *j)
{
    return &j->steps;
}

/* State letter and parent of a process, from the fields behind the name in
 * parentheses; '\0' and 0 where there is none.
 */
struct proc_stat {
    char state;
    pid_t parent;
};

static struct proc_stat stat_of(pid_t pid)
{
    struct proc_stat ret = {0};
    char path[64];
    char *text = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (file_read(path, 4096, &text, NULL, NULL) < 0)
        return ret;
    const char *after = strrchr(text, ')');
    if (after && strlen(after) > 4) {
        char digits[16] = "";
        uint64_t v = 0;
        size_t n = strspn(after + 4, "0123456789");
        ret.state = after[2];
        if (n < sizeof digits) {
            memcpy(digits, after + 4, n);
            if (parse_u64(digits, &v, NULL) == 0 && v <= INT32_MAX)
                ret.parent = (pid_t)v;
        }
    }
    free(text);
    return ret;
}

bool job_stopped(const struct job *j)
{
    if (!j->running || loop_is_virtual(j->loop))
        return false;
    for (size_t i = 0; i < j->n_reporters; i++)
        if (stat_of(j->reporter[i]).state != 'T')
            return false;
    return j->n_reporters > 0 || stat_of(job_pid(j)).state == 'T';
}

bool job_owns(const struct job *j, pid_t pid)
{
    pid_t own = job_pid(j);

    if (pid == own)
        return true;
    if (loop_is_virtual(j->loop))
        return false;
    for (int i = 0; i < TREE_DEPTH && pid > 1; i++) {
        pid = stat_of(pid).parent;
        if (pid == own)
            return true;
    }
    return false;
}

int job_exit_code(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1;
}
