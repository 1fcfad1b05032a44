/* Counting launches as CUPTI's callback would: which calls count and where, many threads,
 * forks, an exec, slots of the dead, and pages that are none.
 */
#include "cuda/count.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "cuda/cupti.h"
#include "io/launches.h"
#include "tap.h"

static char dir[64] = "/dev/shm/uw-test-count.XXXXXX";

static void launch(struct count *c, const void *stream)
{
    const struct cupti_kernel_params params = {.stream = stream};
    const int32_t good = 0;
    const struct cupti_call call = {
        .site = CUPTI_SITE_EXIT, .params = &params, .result = &good};

    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_LAUNCH_KERNEL, &call);
}

static struct progress_page *new_page(void)
{
    struct progress_page *page = NULL;

    if (progress_page_new(dir, &page, NULL) < 0 || launches_add(page, NULL) < 0)
        printf("# no page\n");
    return page;
}

static uint64_t sum(const uint64_t *of, size_t n)
{
    uint64_t all = 0;

    for (size_t i = 0; i < n; i++)
        all += of[i];
    return all;
}

/* Kernels and graphs of a process as the reader sees them. */
static uint64_t kernels_of(const struct progress_page *page, pid_t pid, uint64_t *graphs)
{
    struct launches_read got;
    uint64_t kernels = 0;

    if (graphs)
        *graphs = 0;
    if (launches_read(page, &got) != 0)
        return UINT64_MAX;
    for (size_t i = 0; i < got.n; i++) {
        if (got.slot[i].pid != (uint64_t)pid)
            continue;
        kernels += sum(got.slot[i].kernels, UW_LAUNCHES_STREAMS);
        if (graphs)
            *graphs += sum(got.slot[i].graphs, UW_LAUNCHES_GRAPHS);
    }
    return kernels;
}

static void calls(struct count *c, const struct progress_page *page)
{
    const struct cupti_launch_config config = {.stream = &config};
    const struct cupti_kernel_ex_params ex = {&config}, ex_none = {NULL};
    const struct cupti_graph_params graph = {NULL, &config};
    const struct cupti_grid_async_params grid = {.stream = &config};
    const int32_t good = 0, bad = 1;
    struct cupti_call call = {.site = CUPTI_SITE_EXIT, .result = &good};
    uint64_t graphs;
    struct launches_read got;

    static const uint32_t others[] = {CUPTI_LAUNCH, CUPTI_LAUNCH_GRID,
                                      CUPTI_LAUNCH_COOPERATIVE_MULTI};
    for (size_t i = 0; i < n_elements(others); i++)
        count_on_call(c, CUPTI_DOMAIN_DRIVER_API, others[i], &call);
    call.params = &ex;
    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_LAUNCH_KERNEL_EX, &call);
    call.params = &ex_none;
    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_LAUNCH_KERNEL_EX_PTSZ, &call);
    call.params = &grid;
    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_LAUNCH_GRID_ASYNC, &call);
    is_int(kernels_of(page, getpid(), &graphs), 6, "each kind of kernel launch counts");
    is_int(graphs, 0, "… as no graph");
    call.params = &graph;
    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_GRAPH_LAUNCH, &call);
    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_GRAPH_LAUNCH_PTSZ, &call);
    is_int(kernels_of(page, getpid(), &graphs), 6, "graphs are no kernels");
    is_int(graphs, 2, "… and are counted");
    call.site = 0;
    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_GRAPH_LAUNCH, &call);
    call.site = CUPTI_SITE_EXIT;
    call.result = &bad;
    count_on_call(c, CUPTI_DOMAIN_DRIVER_API, CUPTI_GRAPH_LAUNCH, &call);
    call.result = &good;
    count_on_call(c, 2, CUPTI_GRAPH_LAUNCH, &call);
    (void)kernels_of(page, getpid(), &graphs);
    is_int(graphs, 2, "an entry, a failure and the runtime's call do not count");
    ok(launches_read(page, &got) == 0 && got.n == 1 &&
           got.slot[0].state == UW_LAUNCHES_BEGUN && got.slot[0].since_ns > 0,
       "one slot, begun");
    count_state(c, UW_LAUNCHES_ASIDE, 18, 39);
    ok(launches_read(page, &got) == 0 && got.slot[0].state == UW_LAUNCHES_ASIDE &&
           got.slot[0].cupti == 18 && got.slot[0].result == 39,
       "why it stands aside is told");
}

/* Streams are addresses some hundred bytes apart, as a driver hands them out. */
static void streams(struct count *c, const struct progress_page *page)
{
    static char at[24][0x2b0];
    struct launches_read before, after;
    unsigned used = 0, most = 0;

    (void)launches_read(page, &before);
    for (size_t i = 0; i < n_elements(at); i++)
        for (int k = 0; k < 3; k++)
            launch(c, at[i]);
    (void)launches_read(page, &after);
    bool whole = true;
    for (size_t i = 0; i < UW_LAUNCHES_STREAMS; i++) {
        uint64_t d = after.slot[0].kernels[i] - before.slot[0].kernels[i];
        whole = whole && d % 3 == 0;
        used += d > 0;
        most = d > most ? (unsigned)d : most;
    }
    ok(whole, "a stream has one counter");
    ok(used >= 8 && most <= 18, "24 streams are spread: %u counters, %u at most", used,
       most);
}

struct thread {
    struct count *c;
    int n;
};

static void *many(void *user)
{
    const struct thread *t = user;

    for (int i = 0; i < t->n; i++)
        launch(t->c, NULL);
    return NULL;
}

static void threads(struct count *c, const struct progress_page *page)
{
    uint64_t before = kernels_of(page, getpid(), NULL);
    struct thread t = {c, 20000};
    pthread_t id[4];

    for (size_t i = 0; i < n_elements(id); i++)
        (void)pthread_create(&id[i], NULL, many, &t);
    for (size_t i = 0; i < n_elements(id); i++)
        (void)pthread_join(id[i], NULL);
    is_int(kernels_of(page, getpid(), NULL) - before, 80000,
           "four threads: none is lost");
}

static int wait_for(pid_t pid)
{
    int status = -1;

    (void)waitpid(pid, &status, 0);
    return status;
}

static void forked(struct count *c, const struct progress_page *page)
{
    uint64_t before = kernels_of(page, getpid(), NULL);

    pid_t pid = fork();
    if (pid == 0) {
        launch(c, NULL);
        count_state(c, UW_LAUNCHES_ALONE, 1, 1);
        _exit(0);
    }
    is_int(wait_for(pid), 0, "a forked child may launch");
    is_int(kernels_of(page, getpid(), NULL), before, "… and counts nothing for us");
    is_int(kernels_of(page, pid, NULL), 0, "… nor for itself");
    launch(c, NULL);
    is_int(kernels_of(page, getpid(), NULL), before + 1, "we go on");
}

/* Before and after an exec, in one process. */
static void executed(const struct progress_page *page)
{
    struct launches_read got;
    struct count *c;
    unsigned slots = 0;

    pid_t pid = fork();
    if (pid == 0) {
        if (count_open(progress_page_path(page), &c) < 0)
            _exit(1);
        launch(c, NULL);
        launch(c, NULL);
        (void)execl("/proc/self/exe", "test", progress_page_path(page), (char *)NULL);
        _exit(2);
    }
    is_int(wait_for(pid), 0, "a process that executes another program");
    is_int(kernels_of(page, pid, NULL), 5, "… goes on with what it has counted");
    (void)launches_read(page, &got);
    for (size_t i = 0; i < got.n; i++)
        slots += got.slot[i].pid == (uint64_t)pid;
    is_int(slots, 1, "… in its slot");
}

static int again(const char *path)
{
    struct count *c;

    if (count_open(path, &c) < 0)
        return 3;
    for (int i = 0; i < 3; i++)
        launch(c, NULL);
    return 0;
}

static void fill(const struct progress_page *page, unsigned i, uint64_t pid)
{
    off_t at = UW_LAUNCHES_AT + 256 * ((off_t)i + 1);

    if (pwrite(progress_page_fd(page), &pid, sizeof pid, at) != (ssize_t)sizeof pid)
        printf("# the slot could not be written\n");
}

static void slots(void)
{
    auto_(progress_page_free) struct progress_page *page = new_page();
    struct launches_read got;
    struct count *c = NULL;

    for (unsigned i = 0; i < UW_LAUNCHES_SLOTS; i++)
        fill(page, i, 1);
    is_int(count_open(progress_page_path(page), &c), -ENOSPC,
           "63 living processes: no slot");
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    (void)wait_for(dead);
    fill(page, 40, (uint64_t)dead);
    is_int(count_open(progress_page_path(page), &c), 0, "a dead one's is taken");
    ok(launches_read(page, &got) == 0 && got.n == 63 &&
           got.slot[40].pid == (uint64_t)getpid(),
       "… that one");
    launch(c, NULL);
    (void)unlink(progress_page_path(page));
    launch(c, NULL);
    is_int(kernels_of(page, getpid(), NULL), 2, "a page that was removed is counted on");
}

static int open_file(const char *name, const void *head, size_t n, off_t size)
{
    struct count *c = NULL;
    char path[128];

    (void)snprintf(path, sizeof path, "%.63s/%.32s", dir, name);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, size) < 0 ||
        (n > 0 && pwrite(fd, head, n, UW_LAUNCHES_AT) != (ssize_t)n))
        printf("# %s could not be made\n", path);
    (void)close(fd);
    int r = count_open(path, &c);
    (void)unlink(path);
    return r;
}

static void no_place(void)
{
    static struct uw_launches all = {.version = UW_LAUNCHES_VERSION,
                                     .slots = UW_LAUNCHES_SLOTS};
    static char full[UW_LAUNCHES_END];

    memcpy(all.magic, UW_LAUNCHES_MAGIC, sizeof all.magic);
    is_int(open_file("hole", &all, 256, UW_LAUNCHES_END), -ENODEV,
           "a page with holes, which a full disk could not fill");
    memset(full, 7, sizeof full);
    is_int(open_file("other", full, sizeof full - UW_LAUNCHES_AT, UW_LAUNCHES_END),
           -ENODEV, "something else's file");
}

static void refused(void)
{
    auto_(progress_page_free) struct progress_page *page = NULL;
    struct count *c = NULL;
    char path[128];

    is_int(count_open("/nowhere/page", &c), -ENOENT, "no page");
    is_int(count_open(dir, &c), -EISDIR, "a folder");
    (void)progress_page_new(dir, &page, NULL);
    is_int(count_open(progress_page_path(page), &c), -ENODEV, "a page without the place");
    (void)snprintf(path, sizeof path, "%.63s/link", dir);
    is_int(symlink(progress_page_path(page), path), 0, "a link");
    is_int(count_open(path, &c), -ELOOP, "… is not followed");
    (void)unlink(path);
    is_int(mkfifo(path, 0600), 0, "a pipe");
    is_int(count_open(path, &c), -ENODEV, "… is not waited for");
    (void)unlink(path);
    ok(!c, "none of them gave anything");
}

static void reader(void)
{
    auto_(progress_page_free) struct progress_page *page = new_page();
    struct launches_read got;

    ok(launches_read(page, &got) == 0 && got.n == 0, "nobody counts yet");
    ok(ftruncate(progress_page_fd(page), UW_LAUNCHES_END - 1) == 0 &&
           launches_read(page, &got) == LAUNCHES_NO_PLACE && got.n == 0,
       "a page that was cut");
    ok(ftruncate(progress_page_fd(page), UW_LAUNCHES_END) == 0 &&
           pwrite(progress_page_fd(page), "UWLAUNC2", 8, UW_LAUNCHES_AT) == 8 &&
           launches_read(page, &got) == LAUNCHES_NO_PLACE,
       "of another version");
}

int main(int argc, char **argv)
{
    struct count *c = NULL;

    if (argc > 1)
        return again(argv[1]);
    if (!mkdtemp(dir))
        return skip_all("no /dev/shm");
    struct progress_page *page = new_page();
    is_int(count_open(progress_page_path(page), &c), 0, "a slot");
    calls(c, page);
    streams(c, page);
    threads(c, page);
    forked(c, page);
    executed(page);
    progress_page_free(page);
    slots();
    no_place();
    refused();
    reader();
    (void)rmdir(dir);
    return done();
}
