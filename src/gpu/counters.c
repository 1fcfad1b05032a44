#include "gpu/counters.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GIVEN_MAX = 64 };

struct gpu_given {
    pthread_mutex_t lock;
    struct {
        char name[GPU_COUNTER_NAME];
        int fd; /* -1: taken by the backend */
    } at[GIVEN_MAX];
    size_t n;
};

void gpu_counters_close(struct gpu_counters *c)
{
    for (size_t i = 0; i < c->n; i++)
        (void)close(c->at[i].fd);
    c->n = 0;
}

struct gpu_given *gpu_given_new(void)
{
    struct gpu_given *g = calloc(1, sizeof *g);

    if (g)
        (void)pthread_mutex_init(&g->lock, NULL);
    return g;
}

void gpu_given_free(struct gpu_given *given)
{
    for (size_t i = 0; given && i < given->n; i++)
        if (given->at[i].fd >= 0)
            (void)close(given->at[i].fd);
    if (given)
        (void)pthread_mutex_destroy(&given->lock);
    free(given);
}

int gpu_given_put(struct gpu_given *given, const char *name, int fd)
{
    auto_(fd_close) int mine = fd;
    size_t i = 0;
    int r = 0;

    if (strlen(name) >= GPU_COUNTER_NAME)
        return -EINVAL;
    (void)pthread_mutex_lock(&given->lock);
    while (i < given->n && strcmp(given->at[i].name, name) != 0)
        i++;
    if (i == GIVEN_MAX) {
        r = -E2BIG;
    } else {
        if (i == given->n) {
            (void)snprintf(given->at[given->n++].name, GPU_COUNTER_NAME, "%s", name);
            given->at[i].fd = -1;
        }
        if (given->at[i].fd >= 0)
            (void)close(given->at[i].fd);
        given->at[i].fd = fd_take(&mine);
    }
    (void)pthread_mutex_unlock(&given->lock);
    return r;
}

int gpu_given_take(struct gpu_given *given, const char *name)
{
    int fd = -1;

    if (!given)
        return -1;
    (void)pthread_mutex_lock(&given->lock);
    for (size_t i = 0; fd < 0 && i < given->n; i++)
        if (given->at[i].fd >= 0 && strcmp(given->at[i].name, name) == 0)
            fd = fd_take(&given->at[i].fd);
    (void)pthread_mutex_unlock(&given->lock);
    return fd;
}
