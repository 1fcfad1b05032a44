#include "jobs/job-progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "io/file.h"
#include "io/launches.h"
#include "io/touches.h"

enum { POLL_MS = 100, PEEK_MS = 20, TREE_DEPTH = 64 };

struct job_progress {
    struct job_progress_opts opts;
    struct progress_page *file; /* NULL: the job is over */
    struct loop_timer *poll;
    struct steps steps;
    pid_t reporter[UW_PROGRESS_SLOTS]; /* processes alive at the last read */
    size_t n_reporters;
    struct launches *launches; /* this and rate: NULL: no room for launches */
    struct rate *rate;
    struct launches_budget own_budget, *budget; /* budget: the one in use */
    struct loop_timer *launch_poll;
    unsigned counting;     /* processes whose launches are counted */
    uint32_t cupti_result; /* CUptiResult of a process that CUPTI refused; 0: none */
    bool absent;           /* a process found no CUPTI */
    bool reported;         /* a process reports its steps */
    bool over;
    /* While changes of phase are needed at once. */
    bool hurry;
    struct loop_timer *peek;
    struct touched *touched; /* NULL: touches are not watched */
    bool touches;            /* the job touched its page when its phase last changed */
    uint64_t phases;         /* progress_page_phases() at the last look */
    uint64_t last[UW_PROGRESS_SLOTS]; /* live pids of the last read with any */
    size_t n_last;
};

/* After the job's end all processes are dead: those count that were alive at the last
 * read with any live process, or all processes if there was no such read.
 */
static bool counted_last(const struct job_progress *p, uint64_t pid)
{
    for (size_t i = 0; i < p->n_last; i++)
        if (p->last[i] == pid)
            return true;
    return p->n_last == 0;
}

static void remember(struct job_progress *p, const struct step_slot *slots, size_t n)
{
    size_t live = 0;

    for (size_t i = 0; i < n; i++)
        live += slots[i].live;
    if (live == 0)
        return;
    p->n_last = 0;
    for (size_t i = 0; i < n; i++)
        if (slots[i].live)
            p->last[p->n_last++] = slots[i].pid;
}

static size_t reported_slots(const struct progress_read *read, struct step_slot *ret)
{
    for (size_t i = 0; i < read->n; i++) {
        const struct progress_seen *seen = &read->slot[i];
        ret[i] = (struct step_slot){
            .pid = seen->pid,
            .steps = seen->steps,
            .last_step_ns = seen->last_step_ns,
            .phase = seen->phase,
            .live = seen->alive,
        };
    }
    return read->n;
}

_Static_assert((int)LAUNCHES_PROCESSES <= (int)UW_PROGRESS_SLOTS, "one table for both");

static size_t launched_slots(const struct job_progress *p, struct step_slot *ret)
{
    size_t n = launches_slots(p->launches, ret);

    for (size_t i = 0; i < n; i++) /* alive now, not when it last launched */
        ret[i].live = progress_alive(ret[i].pid);
    return n;
}

static int look(struct job_progress *p, uint64_t now)
{
    struct progress_read read;
    struct step_slot slots[UW_PROGRESS_SLOTS];

    if (progress_page_read(p->file, now, &read, NULL) < 0)
        read.n = 0; /* an unreadable page means unknown progress, not an error */
    size_t n = reported_slots(&read, slots);
    p->reported = n > 0;
    if (n == 0 && p->launches)
        n = launched_slots(p, slots);
    p->steps.guessed = !p->reported;
    p->n_reporters = 0;
    for (size_t i = 0; i < n; i++) {
        if (slots[i].live)
            p->reporter[p->n_reporters++] = (pid_t)slots[i].pid;
        slots[i].live = slots[i].live || loop_is_virtual(p->opts.loop) ||
                        (p->over && counted_last(p, slots[i].pid));
    }
    remember(p, slots, n);
    (void)steps_feed(&p->steps, slots, n, now);
    return p->opts.on_steps ? p->opts.on_steps(&p->steps, now, p->opts.user) : 0;
}

static uint64_t sum(const uint64_t *of, size_t n)
{
    uint64_t all = 0;

    for (size_t i = 0; i < n; i++)
        all += of[i];
    return all;
}

static void note_state(struct job_progress *p, const struct launches_seen *seen)
{
    p->counting += seen->state == UW_LAUNCHES_ALONE || seen->state == UW_LAUNCHES_SHARED;
    p->absent = p->absent || seen->state == UW_LAUNCHES_ABSENT;
    if (seen->state == UW_LAUNCHES_ASIDE)
        p->cupti_result = seen->result;
}

static bool has_pid(const struct launch_count *c, size_t n, uint64_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (c[i].pid == pid)
            return true;
    return false;
}

_Static_assert((int)RATE_PROCESSES >= (int)UW_LAUNCHES_SLOTS, "room for all");

static struct rate_process rate_of(const struct launches_seen *seen)
{
    struct rate_process ret = {.pid = seen->pid, .since_ns = seen->since_ns};

    for (size_t i = 0; i < UW_LAUNCHES_STREAMS; i++)
        ret.kind[i % RATE_STREAMS] += seen->kernels[i];
    ret.kind[RATE_STREAMS] = sum(seen->graphs, UW_LAUNCHES_GRAPHS);
    return ret;
}

/* The page's content is untrusted: only live processes count, each pid once.  When all
 * are dead, the estimate is left unchanged for the last read.
 */
static int page_on_launch_poll(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct job_progress *p = user;
    struct launch_count count[UW_LAUNCHES_SLOTS];
    struct rate_process rate[UW_LAUNCHES_SLOTS];
    struct launches_read read;
    size_t n = 0;
    (void)timer;

    if (launches_read(p->file, &read) != 0)
        read.n = 0;
    p->counting = 0;
    for (size_t i = 0; i < read.n; i++) {
        const struct launches_seen *seen = &read.slot[i];
        note_state(p, seen);
        if (!seen->alive || has_pid(count, n, seen->pid))
            continue;
        rate[n] = rate_of(seen);
        count[n++] = (struct launch_count){
            .pid = seen->pid,
            .since_ns = seen->since_ns,
            .launches = sum(seen->kernels, UW_LAUNCHES_STREAMS) +
                        sum(seen->graphs, UW_LAUNCHES_GRAPHS),
            .live = seen->alive,
        };
    }
    rate_feed(p->rate, rate, n, now_ns);
    if (n > 0)
        launches_feed(p->launches, count, n, now_ns, p->budget);
    return 0;
}

/* Launches need a shorter poll interval: the pauses between them are short. */
static int begin_launches(struct job_progress *p, uw_error *err)
{
    uint64_t period = LAUNCHES_POLL_MS * NS_PER_MS;
    struct launches_read read;

    if (launches_read(p->file, &read) != 0)
        return 0;
    launches_budget_job(&p->own_budget, NULL);
    p->budget = p->opts.budget ? p->opts.budget : &p->own_budget;
    if (launches_new(&p->launches) < 0 || rate_new(&p->rate) < 0)
        return fail(err, -ENOMEM, "out of memory");
    return loop_timer_new(p->opts.loop, loop_now_ns(p->opts.loop) + period, period,
                          page_on_launch_poll, p, &p->launch_poll, err);
}

/* ---- needed at once ---- */

static void peek_later(struct job_progress *p)
{
    bool peeks = p->hurry && !p->touches && !p->over;

    loop_timer_set(p->peek, peeks ? loop_now_ns(p->opts.loop) : UINT64_MAX,
                   peeks ? PEEK_MS * NS_PER_MS : 0);
}

/* Whether phases changed since the last call; heard: by a touch. */
static bool note_phases(struct job_progress *p, bool heard)
{
    uint64_t phases = progress_page_phases(p->file);

    if (phases == p->phases)
        return false;
    p->phases = phases;
    if (p->touches != heard) {
        p->touches = heard;
        peek_later(p);
    }
    return true;
}

static int page_on_peek(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct job_progress *p = user;
    (void)timer;

    return note_phases(p, false) ? look(p, now_ns) : 0;
}

static void page_on_touch(void *user)
{
    struct job_progress *p = user;

    if (!p->over && note_phases(p, true))
        (void)look(p, loop_now_ns(p->opts.loop));
}

void job_progress_hurry(struct job_progress *p, bool on)
{
    if (on == p->hurry || p->over)
        return;
    p->hurry = on;
    p->touches = false;
    p->phases = progress_page_phases(p->file);
    if (on && p->opts.touches)
        (void)touches_add(p->opts.touches, progress_page_fd(p->file), page_on_touch, p,
                          &p->touched);
    else
        touches_remove(take(p->touched));
    peek_later(p);
}

static int page_on_poll(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct job_progress *p = user;
    (void)timer;

    if (p->hurry)
        (void)note_phases(p, false);
    return look(p, now_ns);
}

int job_progress_new(const struct job_progress_opts *opts, struct progress_page *file,
                     struct job_progress **ret, uw_error *err)
{
    auto_(job_progress_free) struct job_progress *p = calloc(1, sizeof *p);
    uint64_t period = opts->poll_ns ? opts->poll_ns : POLL_MS * NS_PER_MS;

    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    p->opts = *opts;
    steps_init(&p->steps);
    int r = loop_timer_new(opts->loop, loop_now_ns(opts->loop) + period, period,
                           page_on_poll, p, &p->poll, err);
    if (r == 0)
        r = loop_timer_new(opts->loop, UINT64_MAX, 0, page_on_peek, p, &p->peek, err);
    p->file = file;
    if (r >= 0)
        r = begin_launches(p, err);
    if (r < 0) {
        p->file = NULL; /* the caller keeps its file */
        return r;
    }
    *ret = take(p);
    return 0;
}

void job_progress_free(struct job_progress *p)
{
    if (!p)
        return;
    touches_remove(p->touched);
    loop_timer_free(p->poll);
    loop_timer_free(p->peek);
    loop_timer_free(p->launch_poll);
    launches_free(p->launches);
    rate_free(p->rate);
    progress_page_free(p->file);
    free(p);
}

int job_progress_fd(const struct job_progress *p)
{
    return p->file ? progress_page_fd(p->file) : -1;
}

const struct steps *job_progress_steps(const struct job_progress *p)
{
    return &p->steps;
}

bool job_progress_alive(const struct job_progress *p)
{
    return p->n_reporters > 0;
}

struct rate *job_progress_rate(const struct job_progress *p)
{
    return p->rate;
}

/* Reports why no process's launches are counted. */
static const char *not_counted(const struct job_progress *p, char *ret, size_t size)
{
    if (p->cupti_result)
        (void)snprintf(ret, size,
                       "no launches counted: CUPTI answers %u (has a profiler taken it?)",
                       p->cupti_result);
    else
        (void)snprintf(ret, size, "no launches counted: %s",
                       p->absent
                           ? "no CUPTI was found"
                           : "no process has started CUDA with Underwatt's library");
    return ret;
}

void job_progress_launches(const struct job_progress *p, char ret[JOB_PROGRESS_LAUNCHES])
{
    static const char *const words[] = {
        [LAUNCHES_NOBODY] = "no launches counted",
        [LAUNCHES_FEW] = "launches counted: too few so far to show steps",
        [LAUNCHES_RESTLESS] = "launches counted: no pauses between them, steps unknown",
        [LAUNCHES_UNEVEN] = "launches counted: no repeating pattern, steps unknown",
    };
    struct launches_found found;

    ret[0] = '\0';
    if (!p->launches)
        return;
    launches_state(p->launches, &found);
    if (p->counting == 0)
        (void)not_counted(p, ret, JOB_PROGRESS_LAUNCHES);
    else if (found.why != LAUNCHES_FOUND)
        (void)snprintf(ret, JOB_PROGRESS_LAUNCHES, "%s", words[found.why]);
    else
        (void)snprintf(ret, JOB_PROGRESS_LAUNCHES,
                       "%" PRIu64 " launches a step, confidence %.2f%s", found.launches,
                       found.confidence,
                       p->reported ? " (not used: the job reports steps)" : "");
}

int job_progress_end(struct job_progress *p)
{
    p->over = true;
    touches_remove(take(p->touched));
    loop_timer_set(p->poll, UINT64_MAX, 0);
    loop_timer_set(p->peek, UINT64_MAX, 0);
    if (p->launch_poll)
        loop_timer_set(p->launch_poll, UINT64_MAX, 0);
    int r = look(p, loop_now_ns(p->opts.loop));
    progress_page_free(take(p->file));
    return r;
}

/* From /proc/PID/stat, where both fields follow the name in parentheses; '\0' and 0: no
 * such process.
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

bool job_progress_stopped(const struct job_progress *p, pid_t own)
{
    if (loop_is_virtual(p->opts.loop))
        return false;
    for (size_t i = 0; i < p->n_reporters; i++)
        if (stat_of(p->reporter[i]).state != 'T')
            return false;
    return p->n_reporters > 0 || (own > 0 && stat_of(own).state == 'T');
}

bool job_progress_owns(const struct loop *loop, pid_t own, pid_t pid)
{
    if (pid == own)
        return true;
    if (loop_is_virtual(loop))
        return false;
    for (int i = 0; i < TREE_DEPTH && pid > 1; i++) {
        pid = stat_of(pid).parent;
        if (pid == own)
            return true;
    }
    return false;
}
