/* A program of somebody else that uses libunderwatt with or without the daemon, told
 * what to do on stdin, a word a line; each is answered by a line on stdout (end: one a
 * board).  C99, the public header alone.  lib-client NVML|- FLAGS
 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "underwatt/underwatt.h"

static uw_ctx *ctx;
static uw_window *win;
static uw_job *job;

static void say(int r, const char *good, const uw_error *err)
{
    if (r < 0)
        printf("%d %s\n", r, err->text);
    else
        printf("0 %s\n", good);
}

static int energies(uw_error *err)
{
    int r;
    for (size_t i = 0; i < uw_device_count(ctx); i++) {
        uw_energy e;
        r = uw_window_energy(win, uw_device_at(ctx, i), &e, err);
        if (r < 0)
            say(r, "", err);
        else
            printf("0 %.6f %.4f %.4f %s\n", e.time_s, e.energy_j, e.half_j, e.method);
    }
    uw_window_free(win);
    win = NULL;
    return 0;
}

static int end(uw_error *err)
{
    int r = uw_window_end(win, err);
    if (r < 0)
        say(r, "", err);
    return r < 0 ? r : energies(err);
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { MANY_MAX = 2000 };
static uw_window *many_win[MANY_MAX];
static double began_s[MANY_MAX], stopped_s[MANY_MAX], asked_s[MANY_MAX];

/* Waits for all of them; the sum of the first board's energies and half widths. */
static int sum_up(int n, double *ret_j, double *ret_half, double *ret_s, uw_error *err)
{
    int r = 0;
    for (int i = 0; i < n; i++) {
        uw_energy e;
        if (r == 0)
            r = uw_window_wait(many_win[i], 60, err);
        if (r == 0)
            r = uw_window_energy(many_win[i], uw_device_at(ctx, 0), &e, err);
        if (r == 0) {
            *ret_j += e.energy_j;
            *ret_half += e.half_j;
            *ret_s += e.time_s;
        }
        uw_window_free(many_win[i]);
    }
    return r;
}

/* "N MS": so many windows in a row, of so many milliseconds, read when all have ended.
 * Tells medians and 99th percentiles of begin, stop and ready in microseconds, the
 * energy, and its half width.
 */
static int many(const char *words, char *text, size_t size, uw_error *err)
{
    double j = 0, half = 0, s = 0;
    int n = 0, ms = 0, r = 0, i;
    struct timespec nap = {0, 0};

    if (sscanf(words, "%d %d", &n, &ms) != 2 || n < 1 || n > MANY_MAX)
        return -1;
    nap.tv_nsec = ms * 1000000L;
    for (i = 0; i < n && r == 0; i++) {
        double t0 = now_s();
        r = uw_window_begin(ctx, &many_win[i], err);
        double t1 = now_s();
        if (r < 0)
            break;
        (void)nanosleep(&nap, NULL);
        double t2 = now_s();
        r = uw_window_stop(many_win[i], err);
        double t3 = now_s();
        if (r == 0)
            r = uw_window_ready(many_win[i / 2], err);
        r = r > 0 ? 0 : r;
        began_s[i] = t1 - t0;
        stopped_s[i] = t3 - t2;
        asked_s[i] = now_s() - t3;
    }
    int bad = sum_up(i, &j, &half, &s, err);
    qsort(began_s, (size_t)n, sizeof *began_s, by_size);
    qsort(stopped_s, (size_t)n, sizeof *stopped_s, by_size);
    qsort(asked_s, (size_t)n, sizeof *asked_s, by_size);
    (void)snprintf(text, size, "%.1f %.1f %.2f %.2f %.1f %.1f %.3f %.3f %.4f",
                   began_s[n / 2] * 1e6, began_s[n * 99 / 100] * 1e6,
                   stopped_s[n / 2] * 1e6, stopped_s[n * 99 / 100] * 1e6,
                   asked_s[n / 2] * 1e6, asked_s[n * 99 / 100] * 1e6, j, half, s);
    return r < 0 ? r : bad;
}

static int claim(char *words, char *text, size_t size, uw_error *err)
{
    unsigned dev = 0, mw = 0;
    double for_s = 0;
    uint64_t id = 0;

    if (sscanf(words, "%u %u %lf", &dev, &mw, &for_s) != 3)
        return -1;
    int r = uw_device_claim(uw_device_at(ctx, dev), mw, for_s, "a test", &id, err);
    (void)snprintf(text, size, "%" PRIu64, id);
    return r;
}

static int begin_job(const char *goal, char *text, size_t size, uw_error *err)
{
    uw_device *dev = uw_device_at(ctx, 0);
    uw_label label[2] = {{"project", "tests"}, {"run", "7"}};
    uw_job_options o;

    memset(&o, 0, sizeof o);
    o.size = sizeof o;
    o.name = "lib\u200bclient"; /* is refused */
    int r = uw_job_begin(ctx, &o, &job, err);
    if (r != -EINVAL)
        return r == 0 ? -EDOM : r;
    o.name = "lib-client";
    o.labels = label;
    o.n_labels = 2;
    o.devices = &dev;
    o.n_devices = 1;
    o.goal = *goal ? goal : NULL;
    r = uw_job_begin(ctx, &o, &job, err);
    (void)snprintf(text, size, "%" PRIu64, uw_job_id(job));
    return r;
}

/* A job without a goal, of a group. */
static int begin_rank(const char *group, char *text, size_t size, uw_error *err)
{
    const uw_job_options o = {.size = sizeof o, .name = "rank", .group = group};
    int r = uw_job_begin(ctx, &o, &job, err);

    (void)snprintf(text, size, "%" PRIu64, uw_job_id(job));
    return r;
}

static int steps(long n)
{
    while (n-- > 0)
        uw_job_step(job, UW_PHASE_TRAIN);
    return 0;
}

/* In a child: does the context go on there? */
static int forked(char *text, size_t size)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        double w;
        uw_error err = {""};
        int r = uw_device_power(uw_device_at(ctx, 0), &w, &err);
        uw_job_step(job, UW_PHASE_TRAIN);
        uw_ctx_free(ctx);
        _exit(r == 0 ? 0 : -r);
    }
    (void)waitpid(pid, &status, 0);
    (void)snprintf(text, size, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

/* In a child: which job is that process of? */
static int found(char *text, size_t size)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        uw_job *own = NULL;
        uw_error err;
        int r = uw_job_find(ctx, 0, &own, &err);
        _exit(r < 0 ? 1 : uw_job_id(own) == uw_job_id(job) ? 0 : 2);
    }
    (void)waitpid(pid, &status, 0);
    (void)snprintf(text, size, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

static int search(char *text, size_t size, uw_error *err)
{
    uw_search s;
    uw_energy e;
    size_t n = 0;

    s.size = sizeof s;
    int r = uw_job_search(job, &s, err);
    if (r == 0)
        r = uw_job_curve(job, NULL, 0, &n, err);
    if (r == 0)
        r = uw_job_energy(job, &e, err);
    if (r == 0)
        (void)snprintf(text, size, "%s;%s;%s;%u;%u;%.1f", s.goal, s.status, s.text,
                       (unsigned)s.original_mw, (unsigned)n, e.energy_j);
    return r;
}

/* "DEV N": how many samples of N at most, their sum in J, when the last one ends. */
static int samples(const char *words, char *text, size_t size, uw_error *err)
{
    static uw_sample buf[4096];
    unsigned dev = 0, room = 0;
    size_t n = 0;
    double j = 0;

    if (sscanf(words, "%u %u", &dev, &room) != 2 || room > 4096)
        return -1;
    int r = uw_window_samples(win, uw_device_at(ctx, dev), buf, room, &n, err);
    for (size_t i = 0; r == 0 && i < n; i++)
        j += buf[i].power_w * buf[i].over_s;
    (void)snprintf(text, size, "%u %.3f %.6f", (unsigned)n, j, n ? buf[n - 1].time_s : 0);
    return r;
}

static int obey(char *line)
{
    uw_error err = {""};
    char text[160] = "", *words = strchr(line, ' ');
    int r = -1;

    words = words ? words + 1 : line + strlen(line);
    if (strncmp(line, "processors", 10) == 0) {
        uw_energy e = {.method = ""};
        r = uw_window_processor(win, 0, &e, &err);
        (void)snprintf(text, sizeof text, "%u %s %.3f %.3f",
                       (unsigned)uw_window_processors(win),
                       uw_window_processor_name(win, 0), e.energy_j, e.half_j);
    } else if (strncmp(line, "begin", 5) == 0)
        r = uw_window_begin(ctx, &win, &err);
    else if (strncmp(line, "stop", 4) == 0)
        r = uw_window_stop(win, &err);
    else if (strncmp(line, "ready", 5) == 0) {
        r = uw_window_ready(win, &err);
        (void)snprintf(text, sizeof text, "%d", r);
    } else if (strncmp(line, "wait", 4) == 0)
        r = uw_window_wait(win, atof(words), &err);
    else if (strncmp(line, "energy", 6) == 0)
        return energies(&err);
    else if (strncmp(line, "samples", 7) == 0)
        r = samples(words, text, sizeof text, &err);
    else if (strncmp(line, "many", 4) == 0)
        r = many(words, text, sizeof text, &err);
    else if (strncmp(line, "end", 3) == 0)
        return end(&err);
    else if (strncmp(line, "claim", 5) == 0)
        r = claim(words, text, sizeof text, &err);
    else if (strncmp(line, "withdraw", 8) == 0)
        r = uw_claim_withdraw(ctx, strtoul(words, NULL, 10), &err);
    else if (strncmp(line, "goal", 4) == 0)
        r = uw_job_goal(job, *words ? words : NULL, &err);
    else if (strncmp(line, "search", 6) == 0)
        r = search(text, sizeof text, &err);
    else if (strncmp(line, "found", 5) == 0)
        r = found(text, sizeof text);
    else if (strncmp(line, "cap", 3) == 0) {
        uint64_t id = 0;
        r = uw_job_cap(job, words, 60, "a test", &id, &err);
        (void)snprintf(text, sizeof text, "%" PRIu64, id);
    } else if (strncmp(line, "job", 3) == 0)
        r = begin_job(words, text, sizeof text, &err);
    else if (strncmp(line, "rank", 4) == 0)
        r = begin_rank(words, text, sizeof text, &err);
    else if (strncmp(line, "steps", 5) == 0)
        r = steps(atol(words));
    else if (strncmp(line, "phase", 5) == 0)
        uw_job_step(job, (enum uw_phase)atol(words)), r = 0;
    else if (strncmp(line, "renew", 5) == 0)
        r = uw_job_renew(job, &err);
    else if (strncmp(line, "over", 4) == 0)
        r = uw_job_end(job, &err);
    else if (strncmp(line, "fork", 4) == 0)
        r = forked(text, sizeof text);
    say(r, text, &err);
    return r;
}

int main(int argc, char **argv)
{
    uw_options opts;
    uw_error err;
    char line[256];

    if (argc != 3)
        return 2;
    memset(&opts, 0, sizeof opts);
    opts.size = sizeof opts;
    opts.boards = strcmp(argv[1], "-") == 0 ? NULL : argv[1];
    opts.flags = (unsigned)atol(argv[2]);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    int r = uw_ctx_open(&opts, &ctx, &err);
    if (r < 0) {
        say(r, "", &err);
        return 1;
    }
    printf("0 %d %u\n", uw_ctx_has_daemon(ctx), (unsigned)uw_device_count(ctx));
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        (void)obey(line);
    }
    uw_job_free(job);
    uw_window_free(win);
    uw_ctx_free(ctx);
    return 0;
}
