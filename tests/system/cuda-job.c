/* A training program that tells no steps and launches kernels, on a simulated board: the
 * simulator's job does the work, and at the end of each of its steps so many kernels are
 * launched for the next one.
 *
 *     cuda-job LAUNCHES CMD ARG…     CMD: underwatt-sim train …
 *     cuda-job LAUNCHES              so many launches and a graph, no job
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/progress.h"

enum { LOOK_MS = 2 };

static struct {
    int (*init)(unsigned flags);
    int (*launch)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                  unsigned by, unsigned bz, unsigned shared, void *stream, void **params,
                  void **extra);
    int (*graph)(void *graph, void *stream);
} cuda;

static int load(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    const struct {
        void *to;
        const char *name;
    } symbols[] = {{&cuda.init, "cuInit"},
                   {&cuda.launch, "cuLaunchKernel"},
                   {&cuda.graph, "cuGraphLaunch"}};

    for (size_t i = 0; i < n_elements(symbols); i++) {
        void *at = lib ? dlsym(lib, symbols[i].name) : NULL;
        if (!at) {
            (void)fprintf(stderr, "cuda-job: %s\n", dlerror());
            return -1;
        }
        memcpy(symbols[i].to, &at, sizeof at);
    }
    return cuda.init(0);
}

static void launch(uint64_t n)
{
    static char streams[2];

    for (uint64_t i = 0; i < n; i++)
        (void)cuda.launch(NULL, 1, 1, 1, 1, 1, 1, 0, &streams[i % 2], NULL, NULL);
    (void)cuda.graph(NULL, streams);
}

static pid_t start(char **argv, const char *page)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)setenv("UNDERWATT_PROGRESS", page, 1);
        (void)execv(argv[0], argv);
        _exit(127);
    }
    return pid;
}

static int work(uint64_t launches, char **argv)
{
    auto_(progress_page_free) struct progress_page *page = NULL;
    struct progress_read read;
    uint64_t done = 0;
    uw_error err = {""};
    int status = 0;

    if (progress_page_new("/dev/shm", &page, &err) < 0) {
        (void)fprintf(stderr, "cuda-job: %s\n", err.text);
        return 1;
    }
    launch(launches);
    pid_t pid = start(argv, progress_page_path(page));
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        (void)poll(NULL, 0, LOOK_MS);
        if (progress_page_read(page, UINT64_MAX, &read, NULL) < 0 || read.n == 0)
            continue;
        for (; done < read.slot[0].steps; done++)
            launch(launches);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    uint64_t launches = 0;

    if (argc < 2 || parse_u64(argv[1], &launches, NULL) < 0)
        return 2;
    if (load() != 0)
        return 1;
    if (argc > 2)
        return work(launches, argv + 2);
    launch(launches);
    return 0;
}
