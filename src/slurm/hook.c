/* Common to prolog and epilog: the job, the deadline, the daemon, the log. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "slurm/client.h"
#include "slurm/context.h"

/* A hook may take 50 ms; it gives up early enough to end in time. */
#define ASK_NS (40 * NS_PER_MS)

enum { SOCKET_MAX = 128 };

const char *hook_env(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

const char *hook_option(spank_t sp, enum option which)
{
    char *value = NULL;

    if (spank_option_getopt(sp, &context_option[which], &value) != ESPANK_SUCCESS)
        return NULL;
    return value;
}

/* How long this thread has waited for a CPU; 0 if the kernel does not report it. */
static uint64_t queued_ns(void)
{
    char text[64] = "";
    uint64_t ret = 0;

    auto_(fd_close) int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0)
        (void)sscanf(text, "%*u %" SCNu64, &ret);
    return ret;
}

/* The thread's clocks, read without a wait for a CPU between them. */
static struct hook_time time_now(void)
{
    struct hook_time ret = {.queued_ns = queued_ns()};

    for (int i = 0; i < 8; i++) {
        struct timespec cpu = {0};
        uint64_t queued = ret.queued_ns;
        ret.at_ns = client_now_ns();
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
        ret.cpu_ns = (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec;
        ret.queued_ns = queued_ns();
        if (ret.queued_ns == queued)
            break;
    }
    return ret;
}

bool hook_begin(struct hook *h, const char *what, spank_t sp, int argc, char **argv)
{
    *h = (struct hook){.what = what, .until_ns = client_now_ns() + ASK_NS};
    (void)context_arguments(argc, argv, &h->args, NULL); /* slurmd has said so */
    if (h->args.times)
        h->before = time_now();
    h->node = hook_env("SLURMD_NODENAME");
    h->gpus = hook_env("SLURM_JOB_GPUS");
    h->node = h->node ? h->node : "";
    h->gpus = h->gpus ? h->gpus : "";
    for (int i = 0; i < OPTIONS; i++)
        h->concerned |= hook_option(sp, (enum option)i) != NULL;
    h->concerned |= *h->gpus != '\0';
    return spank_get_item(sp, S_JOB_ID, &h->job) == ESPANK_SUCCESS &&
           spank_get_item(sp, S_JOB_UID, &h->uid) == ESPANK_SUCCESS;
}

/* The socket's path with %n as the node's name; %% is %.  -ENAMETOOLONG. */
static int socket_path(const struct hook *h, char ret[SOCKET_MAX])
{
    size_t used = 0;

    for (const char *c = h->args.socket; *c; c++) {
        bool name = c[0] == '%' && c[1] == 'n';
        int n = snprintf(ret + used, SOCKET_MAX - used, "%.*s", name ? SOCKET_MAX : 1,
                         name ? h->node : c);
        if (n < 0 || (size_t)n >= SOCKET_MAX - used)
            return -ENAMETOOLONG;
        used += (size_t)n;
        c += name || (c[0] == '%' && c[1] == '%');
    }
    return 0;
}

void hook_ask(const struct hook *h, const char *request, int len, const char *note)
{
    char path[SOCKET_MAX] = "", answer[MESSAGE_KEPT], said[160] = "";
    const char *between = *note ? "; " : "";
    int r = len < 0 ? len : socket_path(h, path);

    if (r >= 0)
        r = client_ask(path, request, (size_t)len, h->until_ns, answer);
    int status = r < 0 ? r : message_status(answer, (size_t)r);
    if (status == -ENOENT && !h->concerned)
        return; /* a node without boards or daemon */
    if (status < 0) {
        slurm_error("underwatt: %s of job %" PRIu32 ": %s: %s%s%s", h->what, h->job, path,
                    status == -ETIMEDOUT ? "no answer in time"
                    : status == -EPROTO  ? "no answer of underwattd's"
                                         : strerrordesc_np(-status),
                    between, note);
    } else if (status < 200 || status > 299) {
        if (!message_word(answer, (size_t)r, "error", said, sizeof said))
            (void)snprintf(said, sizeof said, "HTTP status %d", status);
        slurm_error("underwatt: %s of job %" PRIu32 ": %s%s%s", h->what, h->job, said,
                    between, note);
    } else if (message_word(answer, (size_t)r, "refused", said, sizeof said) || *note) {
        if (*note && strncmp(said, "GPUs: ", 6) == 0) /* it contains the note */
            *said = '\0';
        slurm_info("underwatt: %s of job %" PRIu32 ": %s%s%s", h->what, h->job, said,
                   *said ? between : "", note);
    }
}

void hook_end(const struct hook *h)
{
    char line[120];

    if (!h->args.times)
        return;
    const struct hook_time now = time_now();
    auto_(fd_close) int fd =
        open(h->args.times,
             O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    uint64_t us = (now.at_ns - h->before.at_ns) / NS_PER_US;
    uint64_t cpu_us = (now.cpu_ns - h->before.cpu_ns) / NS_PER_US;
    uint64_t queued_us = (now.queued_ns - h->before.queued_ns) / NS_PER_US;
    int n = snprintf(line, sizeof line,
                     "%s %" PRIu32 " %" PRIu64 " us, %" PRIu64 " us computing, %" PRIu64
                     " us waiting for a CPU\n",
                     h->what, h->job, us, cpu_us, queued_us);
    if (fd >= 0 && write(fd, line, (size_t)n) < 0)
        return; /* one measurement less */
}
