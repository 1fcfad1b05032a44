/* Calls a function for every board in parallel, so that a board whose call hangs in the
 * driver delays the others only once, for a bounded time.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "gpu/nvml/dev.h"

enum {
    /* Without persistence mode the driver initialises boards one after another, each in
     * seconds: the wait is extended while boards keep answering.
     */
    FIRST_ANSWER_MS = 10000,
    NEXT_ANSWER_MS = 3000,
};

struct question {
    struct asked *asked;
    struct gpu_dev dev; /* owned by the thread until answered is set */
    bool answered;      /* protected by lock */
};

/* Shared by the board threads and the waiting one; the last user frees it. */
struct asked {
    pthread_mutex_t lock;
    unsigned users;
    int done_fd; /* eventfd, counts the answers */
    void (*fn)(struct gpu_dev *dev);
    struct question q[];
};

static void asked_leave(struct asked *a)
{
    (void)pthread_mutex_lock(&a->lock);
    bool last = --a->users == 0;
    (void)pthread_mutex_unlock(&a->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&a->lock);
    (void)close(a->done_fd);
    free(a);
}

static void *answer(void *user)
{
    struct question *q = user;
    struct asked *a = q->asked;
    const uint64_t one = 1;

    a->fn(&q->dev);
    lib_leave(q->dev.lib); /* the library may be freed from now on */
    (void)pthread_mutex_lock(&a->lock);
    q->answered = true;
    (void)pthread_mutex_unlock(&a->lock);
    (void)!write(a->done_fd, &one, sizeof one);
    asked_leave(a);
    return NULL;
}

/* Starts the thread with all signals blocked; the program's own threads handle them. */
static int start(struct question *q)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;

    int r = pthread_attr_init(&attr);
    if (r)
        return -r;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&thread, &attr, answer, q);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return -r;
}

static struct asked *asked_new(struct lib *lib)
{
    struct asked *a = calloc(1, sizeof *a + lib->n * sizeof *a->q);

    if (!a)
        return NULL;
    a->done_fd = eventfd(0, EFD_CLOEXEC);
    if (a->done_fd < 0 || pthread_mutex_init(&a->lock, NULL) != 0) {
        if (a->done_fd >= 0)
            (void)close(a->done_fd);
        free(a);
        return NULL;
    }
    a->users = 1;
    for (unsigned i = 0; i < lib->n; i++) {
        a->q[i].asked = a;
        a->q[i].dev = lib->dev[i];
    }
    return a;
}

/* Returns the number of threads that were started. */
static unsigned start_all(struct lib *lib, struct asked *a, uint64_t away)
{
    unsigned started = 0;

    for (unsigned i = 0; i < lib->n; i++) {
        if (away >> i & 1) {
            dev_put_away(&a->q[i].dev);
            a->q[i].answered = true;
            continue;
        }
        (void)pthread_mutex_lock(&a->lock);
        a->users++;
        (void)pthread_mutex_unlock(&a->lock);
        lib_enter(lib);
        int r = start(&a->q[i]);
        if (r == 0) {
            started++;
            continue;
        }
        lib_leave(lib);
        (void)pthread_mutex_lock(&a->lock);
        a->users--;
        (void)fail(&a->q[i].dev.error, r, "cannot start a thread for board %u: %s", i,
                   strerror(-r));
        a->q[i].answered = true;
        (void)pthread_mutex_unlock(&a->lock);
    }
    return started;
}

static void wait_for(const struct asked *a, unsigned want)
{
    struct pollfd p = {.fd = a->done_fd, .events = POLLIN};
    uint64_t have = 0, more = 0;

    while (have < want) {
        int r = poll(&p, 1, have ? NEXT_ANSWER_MS : FIRST_ANSWER_MS);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0 || read(a->done_fd, &more, sizeof more) != (ssize_t)sizeof more)
            return;
        have += more;
    }
}

int lib_ask(struct lib *lib, void (*fn)(struct gpu_dev *dev), uint64_t away,
            uw_error *err)
{
    struct asked *a = asked_new(lib);

    if (!a)
        return fail(err, -ENOMEM, "no memory to ask %u boards", lib->n);
    a->fn = fn;
    wait_for(a, start_all(lib, a, away));
    (void)pthread_mutex_lock(&a->lock);
    for (unsigned i = 0; i < lib->n; i++) {
        if (a->q[i].answered)
            lib->dev[i] = a->q[i].dev;
        else
            (void)fail(&lib->dev[i].error, -EIO, "board %u: no answer from the driver",
                       i);
    }
    (void)pthread_mutex_unlock(&a->lock);
    asked_leave(a);
    return 0;
}
