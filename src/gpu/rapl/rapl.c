#include "gpu/rapl/rapl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

enum { ZONES_MAX = 64, NAME_MAX_LEN = 64 };
#define MOST_W 2000.0 /* no package's power */
#define LATE_S 0.2    /* the counter may have moved so long before the last look */

struct rapl_given {
    pthread_mutex_t lock;
    struct {
        char zone[NAME_MAX_LEN];
        int fd; /* -1: taken up by the backend */
    } at[ZONES_MAX];
    size_t n;
};

struct gpu_dev {
    struct gpu_clock clock;
    struct rapl_given *given; /* or NULL */
    struct gpu_info info;
    char zone[NAME_MAX_LEN]; /* "intel-rapl:0:1" */
    char path[300];          /* of its counter */
    int fd;                  /* of its counter, or -errno */
    uint64_t range_uj;
    uint64_t last_uj, total_uj, last_ns;
    bool started;
};

struct lib {
    struct gpu_dev *dev;
    size_t n, cap;
};

struct rapl_given *rapl_given_new(void)
{
    struct rapl_given *g = calloc(1, sizeof *g);

    if (g)
        (void)pthread_mutex_init(&g->lock, NULL);
    return g;
}

void rapl_given_free(struct rapl_given *given)
{
    for (size_t i = 0; given && i < given->n; i++)
        if (given->at[i].fd >= 0)
            (void)close(given->at[i].fd);
    if (given)
        (void)pthread_mutex_destroy(&given->lock);
    free(given);
}

int rapl_given_put(struct rapl_given *given, const char *zone, int fd)
{
    auto_(fd_close) int mine = fd;
    size_t i = 0;
    int r = 0;

    if (strlen(zone) >= NAME_MAX_LEN)
        return -EINVAL;
    (void)pthread_mutex_lock(&given->lock);
    while (i < given->n && strcmp(given->at[i].zone, zone) != 0)
        i++;
    if (i == ZONES_MAX) {
        r = -E2BIG;
    } else {
        if (i == given->n) {
            (void)snprintf(given->at[given->n++].zone, NAME_MAX_LEN, "%s", zone);
            given->at[i].fd = -1;
        }
        if (given->at[i].fd >= 0)
            (void)close(given->at[i].fd);
        given->at[i].fd = fd_take(&mine);
    }
    (void)pthread_mutex_unlock(&given->lock);
    return r;
}

/* The descriptor that was given for this zone, if one was. */
static void take_given(struct gpu_dev *dev)
{
    struct rapl_given *g = dev->given;

    if (dev->fd >= 0 || !g)
        return;
    (void)pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n; i++)
        if (g->at[i].fd >= 0 && strcmp(g->at[i].zone, dev->zone) == 0)
            dev->fd = fd_take(&g->at[i].fd);
    (void)pthread_mutex_unlock(&g->lock);
}

static void rapl_close(void *user)
{
    struct lib *lib = user;

    if (!lib)
        return;
    for (size_t i = 0; i < lib->n; i++) {
        if (lib->dev[i].fd >= 0)
            (void)close(lib->dev[i].fd);
    }
    free(lib->dev);
    free(lib);
}
DEFINE_AUTO(struct lib *, rapl_close);

/* A small file's text without its line feed; from its beginning. */
static int read_fd(int fd, char *ret, size_t size)
{
    ssize_t n = pread(fd, ret, size - 1, 0);

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return 0;
}

static int read_at(int dir, const char *zone, const char *file, char *ret, size_t size)
{
    char path[NAME_MAX_LEN + 40];

    int n = snprintf(path, sizeof path, "%s/%s", zone, file);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    auto_(fd_close) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : read_fd(fd, ret, size);
}

/* "intel-rapl:0" and "intel-rapl:0:1", not "intel-rapl" and "intel-rapl-mmio:0"
 * (the same energy a second time).
 */
static bool is_zone(const char *name)
{
    return strncmp(name, "intel-rapl:", 11) == 0 && strlen(name) < NAME_MAX_LEN;
}

/* Names a zone that counts a package or its memory; false for all others. */
static bool name_zone(int dir, struct gpu_dev *dev)
{
    char name[NAME_MAX_LEN], parent[NAME_MAX_LEN], package[NAME_MAX_LEN] = "";
    struct gpu_info *info = &dev->info;

    if (read_at(dir, dev->zone, "name", name, sizeof name) < 0)
        return false;
    if (strncmp(name, "package-", 8) == 0) {
        (void)snprintf(info->uuid, sizeof info->uuid, "rapl:%s", name);
        (void)snprintf(info->name, sizeof info->name, "CPU %s", name);
        return true;
    }
    if (strcmp(name, "dram") != 0)
        return false;
    (void)snprintf(parent, sizeof parent, "%s", dev->zone);
    char *colon = strrchr(parent, ':');
    if (colon)
        *colon = '\0';
    if (read_at(dir, parent, "name", package, sizeof package) < 0)
        (void)snprintf(package, sizeof package, "%s", parent);
    (void)snprintf(info->uuid, sizeof info->uuid, "rapl:%s:dram", package);
    (void)snprintf(info->name, sizeof info->name, "DRAM of %s", package);
    return true;
}

static void open_counter(int dir, const char *root, struct gpu_dev *dev)
{
    char text[40], path[NAME_MAX_LEN + 20];

    if (read_at(dir, dev->zone, "max_energy_range_uj", text, sizeof text) < 0 ||
        parse_u64(text, &dev->range_uj, NULL) < 0)
        dev->range_uj = 0;
    (void)snprintf(path, sizeof path, "%s/energy_uj", dev->zone);
    (void)snprintf(dev->path, sizeof dev->path, "%.200s/%s", root, path);
    dev->fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    if (dev->fd < 0)
        dev->fd = -errno;
}

static int by_zone(const void *a, const void *b)
{
    const struct gpu_dev *x = a, *y = b;

    return strverscmp(x->zone, y->zone);
}

static int add_zone(struct lib *lib, int dir, const char *root, const char *zone)
{
    int r = array_grow(&lib->dev, &lib->cap, lib->n, ZONES_MAX);
    if (r < 0)
        return r;
    struct gpu_dev *dev = &lib->dev[lib->n];
    *dev = (struct gpu_dev){.fd = -ENOENT};
    (void)snprintf(dev->zone, sizeof dev->zone, "%s", zone);
    if (!name_zone(dir, dev))
        return 0;
    dev->info.abilities = GPU_CAN_ENERGY;
    open_counter(dir, root, dev);
    lib->n++;
    return 0;
}

static int rapl_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    const struct rapl_opts *own = opts->backend_user;
    const char *root = own && own->root ? own->root : RAPL_ROOT;
    auto_(dir_close) DIR *dir = opendir(root);
    auto_(rapl_close) struct lib *lib = calloc(1, sizeof *lib);
    const struct dirent *e;

    if (!lib)
        return fail(err, -ENOMEM, "no memory for the RAPL counters");
    if (!dir)
        return fail(err, GPU_ABSENT, "%s: no RAPL counters here (%s)", root,
                    strerror(errno));
    while ((e = readdir(dir)) != NULL) {
        int r = is_zone(e->d_name) ? add_zone(lib, dirfd(dir), root, e->d_name) : 0;
        if (r == -E2BIG)
            break;
        if (r < 0)
            return fail(err, r, "%s: %s", root, strerror(-r));
    }
    if (lib->n == 0)
        return fail(err, GPU_ABSENT, "%s: no RAPL counters here", root);
    qsort(lib->dev, lib->n, sizeof *lib->dev, by_zone);
    for (size_t i = 0; i < lib->n; i++) {
        lib->dev[i].info.index = (unsigned)i;
        lib->dev[i].clock = opts->clock;
        lib->dev[i].given = own ? own->given : NULL;
    }
    *ret_lib = take(lib);
    return 0;
}

static size_t rapl_count(const void *user)
{
    const struct lib *lib = user;

    return lib->n;
}

static struct gpu_dev *rapl_at(void *user, size_t i)
{
    struct lib *lib = user;

    return i < lib->n ? &lib->dev[i] : NULL;
}

static const struct gpu_info *rapl_info(const struct gpu_dev *dev)
{
    return &dev->info;
}

static int refused(const struct gpu_dev *dev, int r, uw_error *err)
{
    if (r == -EACCES || r == -EPERM)
        return fail(
            err, -EPERM,
            "%s: for root only (fine-grained power is a side channel); underwattd gets "
            "it from the actuator; for others: chgrp GROUP FILE && chmod g+r FILE",
            dev->path);
    return fail(err, r == -ENOENT || r == -ENODEV ? -ENODEV : -EIO, "%s: %s", dev->path,
                strerror(-r));
}

/* What the counter gained since the last look, its wrap mended; false: nobody can tell.
 * After a suspend it may have begun anew, or have wrapped more than once.
 */
static bool gained(const struct gpu_dev *dev, uint64_t uj, uint64_t now_ns,
                   uint64_t *ret_uj)
{
    double most_uj = MOST_W * (s_between(dev->last_ns, now_ns) + LATE_S) * 1e6;

    if (dev->range_uj && most_uj >= (double)dev->range_uj)
        return false;
    if (uj >= dev->last_uj)
        *ret_uj = uj - dev->last_uj;
    else if (dev->range_uj > dev->last_uj)
        *ret_uj = dev->range_uj - dev->last_uj + uj;
    else
        return false;
    return uj >= dev->last_uj || (double)*ret_uj <= most_uj;
}

/* The total that goes on; where it cannot, it falls to 0, as a counter does that begins
 * anew: the meter bridges that and says so.
 */
static void count(struct gpu_dev *dev, uint64_t uj, uint64_t now_ns)
{
    uint64_t gain = 0;

    if (!dev->started)
        dev->total_uj = uj;
    else if (gained(dev, uj, now_ns, &gain))
        dev->total_uj += gain;
    else
        dev->total_uj = 0;
    dev->last_uj = uj;
    dev->last_ns = now_ns;
    dev->started = true;
}

static int rapl_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                       uw_error *err)
{
    struct gpu_sample s = {0};
    char text[40];
    uint64_t uj;

    s.began_ns = s.energy_began_ns = dev->clock.now_ns(dev->clock.user);
    if (want & GPU_HAS_ENERGY) {
        take_given(dev);
        int r = dev->fd < 0 ? dev->fd : read_fd(dev->fd, text, sizeof text);
        if (r < 0)
            return refused(dev, r, err);
        s.energy_at_ns = dev->clock.now_ns(dev->clock.user);
        r = parse_u64(text, &uj, err);
        if (r < 0)
            return fail_in(err, -EIO, "%s", dev->path);
        count(dev, uj, s.energy_at_ns);
        s.energy_mj = dev->total_uj / 1000;
        s.has = GPU_HAS_ENERGY;
    }
    s.at_ns = dev->clock.now_ns(dev->clock.user);
    *ret = s;
    return 0;
}

/* sample() gives mJ that do not wrap. */
static void rapl_sensors(const struct gpu_dev *dev, struct sensor_model *ret)
{
    (void)dev;
    *ret = (struct sensor_model){
        .counter_update_s = 0.001, .counter_unit_j = 1e-3, .counter_true = true};
}

const struct gpu_backend rapl_backend = {
    .name = "rapl",
    .open = rapl_open,
    .close = rapl_close,
    .count = rapl_count,
    .at = rapl_at,
    .info = rapl_info,
    .sample = rapl_sample,
    .sensors = rapl_sensors,
};
