/* Boards on real threads: one whose driver call hangs delays no other one. */
#include "board/boards.h"

#include <errno.h>
#include <pthread.h>

#include "base/auto.h"
#include "base/error.h"
#include "tap.h"

enum { BOARDS = 4, HANGS = 1, ROUNDS = 3 };

/* The call that is given up at the end is left, with what it uses.  LeakSanitizer asks
 * this.
 */
int __lsan_is_turned_off(void); /* NOLINT: its name */
int __lsan_is_turned_off(void)  /* NOLINT: its name */
{
    return 1;
}

/* ---- a driver: the calls of one board may be made to hang ---- */

struct gpu_dev {
    struct gpu_info info;
};

static struct driver {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool hangs; /* under the lock, as the next */
    unsigned inside;
    bool closed;
    struct gpu_dev dev[BOARDS];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int driver_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    (void)opts, (void)err;
    for (unsigned i = 0; i < BOARDS; i++) {
        driver.dev[i].info.index = i;
        (void)snprintf(driver.dev[i].info.uuid, sizeof driver.dev[i].info.uuid, "GPU-%u",
                       i);
    }
    *ret_lib = &driver;
    return 0;
}

static void driver_close(void *lib)
{
    (void)lib;
    driver.closed = true;
}

static size_t driver_count(const void *lib)
{
    (void)lib;
    return BOARDS;
}

static struct gpu_dev *driver_at(void *lib, size_t i)
{
    (void)lib;
    return &driver.dev[i];
}

static const struct gpu_info *driver_info(const struct gpu_dev *dev)
{
    return &dev->info;
}

static int driver_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                         uw_error *err)
{
    (void)want, (void)err;
    (void)pthread_mutex_lock(&driver.lock);
    driver.inside++;
    while (driver.hangs && dev->info.index == HANGS)
        (void)pthread_cond_wait(&driver.changed, &driver.lock);
    driver.inside--;
    (void)pthread_mutex_unlock(&driver.lock);
    *ret = (struct gpu_sample){.has = GPU_HAS_POWER, .power_w = dev->info.index};
    return 0;
}

static void driver_hangs(bool hangs)
{
    (void)pthread_mutex_lock(&driver.lock);
    driver.hangs = hangs;
    (void)pthread_cond_broadcast(&driver.changed);
    (void)pthread_mutex_unlock(&driver.lock);
}

static const struct gpu_backend backend = {
    .name = "test",
    .open = driver_open,
    .close = driver_close,
    .count = driver_count,
    .at = driver_at,
    .info = driver_info,
    .sample = driver_sample,
};

/* ---- what is seen of it ---- */

static struct {
    struct loop *loop;
    struct boards *boards;
    unsigned told[BOARDS]; /* good answers */
    int last[BOARDS];
} w;

static int on_ready(struct boards *set, int r, const uw_error *err, void *user)
{
    (void)set, (void)err, (void)user;
    loop_stop(w.loop, r);
    return 0;
}

/* Board by board anew, until all that do not hang have been read ROUNDS times. */
static int on_sample(struct board *b, int r, const struct gpu_sample *sample,
                     const uw_error *err, void *user)
{
    size_t i = board_view(b)->at;
    bool all = true;
    (void)err, (void)user;

    w.last[i] = r;
    if (r == 0 && sample->power_w == (double)i)
        w.told[i]++;
    if (i == HANGS || r < 0)
        return 0;
    for (size_t k = 0; k < BOARDS; k++)
        all &= k == HANGS || w.told[k] >= ROUNDS;
    if (all)
        loop_stop(w.loop, 0);
    else if (w.told[i] < ROUNDS)
        return board_sample(b, GPU_HAS_POWER, on_sample, NULL);
    return 0;
}

static int on_recovered(struct board *b, int r, const struct gpu_sample *sample,
                        const uw_error *err, void *user)
{
    (void)sample, (void)err, (void)user;
    w.last[board_view(b)->at] = r;
    loop_stop(w.loop, 0);
    return 0;
}

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static void one_hangs(void)
{
    driver_hangs(true);
    for (size_t i = 0; i < BOARDS; i++)
        (void)board_sample(boards_at(w.boards, i), GPU_HAS_POWER, on_sample, NULL);
    is_int(loop_run(w.loop, NULL), 0, "the others are read again and again");
    is_int(w.told[HANGS], 0, "the one that hangs has told nothing");
    driver_hangs(false);
    w.last[HANGS] = -EAGAIN;
    (void)board_sample(boards_at(w.boards, HANGS), GPU_HAS_POWER, on_recovered, NULL);
    (void)loop_run(w.loop, NULL);
    is_int(w.last[HANGS], 0, "it is read again when it has returned");
}

static void freed_in_a_hang(void)
{
    driver_hangs(true);
    for (size_t i = 0; i < BOARDS; i++) {
        w.told[i] = 0;
        (void)board_sample(boards_at(w.boards, i), GPU_HAS_POWER, on_sample, NULL);
    }
    (void)loop_run(w.loop, NULL);
    boards_free(w.boards);
    is_int(w.last[HANGS], -ETIMEDOUT, "freed: the call that hangs is given up");
    (void)pthread_mutex_lock(&driver.lock);
    bool inside = driver.inside > 0;
    (void)pthread_mutex_unlock(&driver.lock);
    ok(inside && !driver.closed, "its thread is in the driver, which stays open");
}

int main(void)
{
    struct gpu_open_opts opts = {.clock = {.now_ns = clock_of}};
    uw_error err;
    int r = loop_new_real((struct loop_clock){0, 1}, &w.loop, &err);

    if (r == 0) {
        opts.clock.user = w.loop;
        r = boards_open(w.loop, &backend, &opts, on_ready, NULL, &w.boards, &err);
    }
    if (!ok(r == 0 && loop_run(w.loop, &err) == 0, "boards are opened"))
        return done();
    is_int(boards_count(w.boards), BOARDS, "all of them");
    one_hangs();
    freed_in_a_hang();
    driver_hangs(false);
    loop_free(w.loop);
    return done();
}
