/* What counting a launch costs the job: the callback as CUPTI makes it, twice a launch
 * (at its entry and its exit), in one thread and in several at once, ns a launch.
 * CUPTI's own part is not in it: that wants a GPU.  Prints one JSON object.
 *
 *     launches [MILLIONS]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/auto.h"
#include "base/units.h"
#include "cuda/count.h"
#include "cuda/cupti.h"
#include "io/launches.h"

enum { ROUNDS = 20, THREADS_MAX = 4 };

struct work {
    struct count *count;
    uint32_t id;
    unsigned streams;
    uint64_t n;
    double ns; /* processor time of this thread for a launch */
};

static double cpu_ns(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_THREAD, &u);
    return 1e9 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e3 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void *launch(void *user)
{
    struct work *w = user;
    const int32_t good = 0;
    double begin = cpu_ns();

    for (uint64_t i = 0; i < w->n; i++) {
        const void *stream = (const char *)w + 688 * (i % w->streams);
        const struct cupti_launch_config config = {.stream = stream};
        const struct cupti_kernel_params kernel = {.stream = stream};
        const struct cupti_kernel_ex_params ex = {&config};
        const struct cupti_graph_params graph = {NULL, stream};
        struct cupti_call call = {.site = 0, .result = &good};
        call.params = w->id == CUPTI_GRAPH_LAUNCH       ? (const void *)&graph
                      : w->id == CUPTI_LAUNCH_KERNEL_EX ? (const void *)&ex
                                                        : &kernel;
        count_on_call(w->count, CUPTI_DOMAIN_DRIVER_API, w->id, &call);
        call.site = CUPTI_SITE_EXIT;
        count_on_call(w->count, CUPTI_DOMAIN_DRIVER_API, w->id, &call);
    }
    w->ns = (cpu_ns() - begin) / (double)w->n;
    return NULL;
}

/* ns per launch of the slowest of so many threads that run the same work. */
static double once(const struct work *w, unsigned threads)
{
    struct work mine[THREADS_MAX];
    pthread_t id[THREADS_MAX];
    double worst = 0;

    for (unsigned i = 0; i < threads; i++) {
        mine[i] = *w;
        if (pthread_create(&id[i], NULL, launch, &mine[i]) != 0)
            return -1;
    }
    for (unsigned i = 0; i < threads; i++) {
        (void)pthread_join(id[i], NULL);
        worst = mine[i].ns > worst ? mine[i].ns : worst;
    }
    return worst;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void measure(const struct work *w, unsigned threads, const char *name,
                    const char *end)
{
    double ns[ROUNDS];

    for (unsigned i = 0; i < ROUNDS; i++)
        ns[i] = once(w, threads);
    qsort(ns, ROUNDS, sizeof ns[0], by_size);
    printf("  \"%s\": {\"threads\": %u, \"median_ns\": %.2f, \"worst_ns\": %.2f}%s\n",
           name, threads, ns[ROUNDS / 2], ns[ROUNDS - 1], end);
}

int main(int argc, char **argv)
{
    auto_(progress_page_free) struct progress_page *page = NULL;
    struct count *count = NULL;
    uint64_t millions = 20;
    uw_error err = {""};

    if (argc > 1 && parse_u64(argv[1], &millions, &err) < 0) {
        (void)fprintf(stderr, "launches: %s\n", err.text);
        return 2;
    }
    int r = progress_page_new("/dev/shm", &page, &err);
    if (r >= 0)
        r = launches_add(page, &err);
    if (r >= 0)
        r = count_open(progress_page_path(page), &count);
    if (r < 0) {
        (void)fprintf(stderr, "launches: %s\n", err.text[0] ? err.text : "no slot");
        return 1;
    }
    struct work w = {count, CUPTI_LAUNCH_KERNEL, 1, millions * 1000000 / ROUNDS, 0};
    struct work ex = w, graph = w, many = w;
    ex.id = CUPTI_LAUNCH_KERNEL_EX;
    graph.id = CUPTI_GRAPH_LAUNCH;
    many.streams = 24;
    printf("{\n");
    measure(&w, 1, "kernel", ",");
    measure(&ex, 1, "kernel_ex", ",");
    measure(&graph, 1, "graph", ",");
    measure(&many, 1, "kernel_24_streams", ",");
    measure(&w, 2, "kernel_one_stream", ",");
    measure(&many, 4, "kernel_24_streams_busy", "");
    printf("}\n");
    return 0;
}
