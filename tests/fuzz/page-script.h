/* What a job does to its page, as text, played against the node's reader on a virtual
 * loop.  A line each:
 *
 *     AT = VALUE    the number of 8 bytes at this byte of the file
 *     AT + VALUE    … and so much more
 *     cut N         the file has N bytes
 *     wait N        N times 25 ms pass
 *     again N       all since the last such line, or the beginning, N times more
 *
 * Other lines say nothing.
 */
#ifndef TESTS_FUZZ_PAGE_SCRIPT_H
#define TESTS_FUZZ_PAGE_SCRIPT_H

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "fuzz.h"
#include "io/launches.h"
#include "jobs/job-progress.h"
#include "virtual/virtual-loop.h"

enum {
    SCRIPT_OPS = 4000,   /* lines that are played, again and again … */
    SCRIPT_WAITS = 1500, /* … and of 25 ms, in all */
    SCRIPT_FILE = 65536,
};

struct script {
    struct loop *loop;
    struct job_progress *page;
    int fd;
    unsigned ops, waits;
    struct step_mark last;
    unsigned looks;
};

/* What whoever hears of steps relies on. */
static int script_on_steps(const struct steps *steps, uint64_t now_ns, void *user)
{
    struct script *s = user;
    const struct step_mark *mark = &steps->mark;

    s->looks++;
    must(steps->n_seen <= STEPS_SLOTS && steps->phase <= UW_PHASE_STARTUP);
    must(isfinite(steps->step_s) && steps->step_s >= 0);
    must(!isnan(steps_late_s(steps, now_ns, 3, 1)));
    if (!steps->has_mark)
        return 0;
    must(mark->at_ns <= now_ns && mark->generation >= s->last.generation);
    if (mark->generation == s->last.generation)
        must(mark->steps >=
             s->last.steps); /* at_ns: another process may be the slowest */
    s->last = *mark;
    return 0;
}

static int script_on_time(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct script *s = user;
    (void)timer;
    (void)now_ns;
    loop_stop(s->loop, 0);
    return 0;
}

static void script_wait(struct script *s, uint64_t polls)
{
    struct loop_timer *timer = NULL;

    if (polls > SCRIPT_WAITS - s->waits)
        polls = SCRIPT_WAITS - s->waits;
    s->waits += (unsigned)polls;
    uint64_t until = loop_now_ns(s->loop) + polls * LAUNCHES_POLL_MS * NS_PER_MS;
    must(loop_timer_new(s->loop, until, 0, script_on_time, s, &timer, NULL) == 0);
    must(loop_run(s->loop, NULL) == 0);
    loop_timer_free(timer);
}

static void script_write(struct script *s, uint64_t at, uint64_t value, bool add)
{
    uint64_t old = 0;

    if (at > SCRIPT_FILE - sizeof old)
        return;
    if (add && pread(s->fd, &old, sizeof old, (off_t)at) != (ssize_t)sizeof old)
        old = 0;
    value += old;
    must(pwrite(s->fd, &value, sizeof value, (off_t)at) == (ssize_t)sizeof value);
}

static uint64_t script_number(const char **at)
{
    uint64_t v = 0;

    while (**at == ' ')
        (*at)++;
    for (; isdigit((unsigned char)**at); (*at)++)
        v = v * 10 + (uint64_t)(**at - '0');
    return v;
}

static void script_line(struct script *s, const char *line)
{
    const char *at = line + 4;

    if (strncmp(line, "cut ", 4) == 0) {
        uint64_t n = script_number(&at);
        must(ftruncate(s->fd, (off_t)(n < SCRIPT_FILE ? n : SCRIPT_FILE)) == 0);
    } else if (strncmp(line, "wait", 4) == 0) {
        script_wait(s, script_number(&at));
    } else if (isdigit((unsigned char)*line)) {
        at = line;
        uint64_t where = script_number(&at);
        while (*at == ' ')
            at++;
        char op = *at++;
        if (op == '=' || op == '+')
            script_write(s, where, script_number(&at), op == '+');
    }
}

/* text: its newlines become ends of strings. */
static void script_play(struct script *s, char *text)
{
    char *block = text;
    uint64_t again = 0;

    for (char *line = text; line && s->ops < SCRIPT_OPS; s->ops++) {
        char *end = strchr(line, '\n');
        char one[64] = "";
        size_t n = end ? (size_t)(end - line) : strlen(line);
        memcpy(one, line, n < sizeof one ? n : sizeof one - 1);
        char *next = end ? end + 1 : NULL;
        if (strncmp(one, "again ", 6) == 0) {
            const char *at = one + 6;
            if (again++ < script_number(&at)) {
                line = block;
                continue;
            }
            again = 0;
            block = next;
        } else {
            script_line(s, one);
        }
        line = next;
    }
}

/* The page as it is read at the end. */
static uint32_t script_read(struct script *s, struct progress_page *file)
{
    struct progress_read read;

    must(progress_page_read(file, loop_now_ns(s->loop), &read, NULL) == 0);
    must(read.n <= UW_PROGRESS_SLOTS);
    must(!(read.flaws & PROGRESS_MAGIC) || read.n == 0);
    for (size_t i = 0; i < read.n; i++) {
        const struct progress_seen *one = &read.slot[i];
        must(one->index < UW_PROGRESS_SLOTS && one->pid != 0);
        must(i == 0 || one->index > read.slot[i - 1].index);
        must(one->phase <= UW_PHASE_STARTUP && (read.flaws & one->flaws) == one->flaws);
        must(!(one->flaws & PROGRESS_TORN)); /* nobody wrote meanwhile */
    }
    return read.flaws;
}

static void script_tell(struct script *s, uint32_t flaws)
{
    const struct steps *steps = job_progress_steps(s->page);
    char launches[JOB_PROGRESS_LAUNCHES];
    struct rate_found rate;

    job_progress_launches(s->page, launches);
    must(memchr(launches, '\0', sizeof launches) != NULL);
    (void)fuzz_say(!steps->has_mark ? "none"
                   : steps->guessed ? "guessed"
                                    : "told",
                   "%" PRIu64 " steps, generation %" PRIu64
                   ", phase %u, lies %u, flaws %u; %s",
                   steps->mark.steps, steps->mark.generation, steps->phase,
                   steps->lies > 0, flaws, launches);
    if (!job_progress_rate(s->page))
        return;
    rate_find(job_progress_rate(s->page), 0, &rate);
    fuzz_add("; rate %d", (int)rate.why);
    if (rate.why != RATE_FOUND)
        return;
    double sum = 0;
    for (size_t i = 0; i < RATE_KINDS; i++) {
        must(rate.mix[i] >= 0);
        sum += rate.mix[i];
    }
    must(isfinite(rate.per_s) && rate.per_s > 0 && fabs(sum - 1) < 1e-6);
    must(rate.rse >= 0 && rate.rse <= RATE_RSE_MOST && rate.from_ns <= rate.to_ns);
    must(rate.confidence >= 0 && rate.confidence <= 0.95);
    fuzz_add(" %.0f a second", rate.per_s);
}

/* launches: the page has room for them. */
static int script_run(const uint8_t *data, size_t size, bool launches)
{
    struct script s = {.fd = memfd_create("page", MFD_CLOEXEC)};
    struct job_progress_opts opts = {.on_steps = script_on_steps, .user = &s};
    struct uw_progress_page page = {.version = UW_PROGRESS_VERSION,
                                    .slots = UW_PROGRESS_SLOTS};
    struct progress_page *file = NULL;
    char *text = strndup((const char *)data, size);

    memcpy(page.magic, UW_PROGRESS_MAGIC, sizeof page.magic);
    must(s.fd >= 0 && text && loop_new_virtual(NS_PER_S, 0, &s.loop, NULL) == 0);
    must(pwrite(s.fd, &page, sizeof page, 0) == (ssize_t)sizeof page);
    must(progress_page_adopt(dup(s.fd), &file, NULL) == 0);
    must(!launches || launches_add(file, NULL) == 0);
    opts.loop = s.loop;
    must(job_progress_new(&opts, file, &s.page, NULL) == 0);
    script_play(&s, text);
    script_wait(&s, 4); /* a last look, with all that was written */
    uint32_t flaws = script_read(&s, file);
    script_tell(&s, flaws);
    must(job_progress_end(s.page) == 0);
    job_progress_free(s.page);
    loop_free(s.loop);
    (void)close(s.fd);
    free(text);
    return 0;
}

#endif
