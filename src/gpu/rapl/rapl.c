#include "gpu/rapl/rapl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/counters.h"

enum { ZONES_MAX = 64 };
#define MOST_W 2000.0 /* above the power of any package */
#define LATE_S 0.2    /* age that the last sample may have had when it was read */

struct gpu_dev {
    struct gpu_clock clock;
    struct gpu_given *given; /* or NULL */
    struct gpu_info info;
    char zone[GPU_COUNTER_NAME]; /* "intel-rapl:0:1" */
    char path[300];              /* of its counter */
    int fd;                      /* of its counter, or -errno */
    uint64_t range_uj;
    uint64_t last_uj, total_uj, last_ns;
    bool started;
};

struct lib {
    struct gpu_dev *dev;
    size_t n, cap;
};

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

/* Reads the first line of a small file, from offset 0. */
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
    char path[GPU_COUNTER_NAME + 40];

    int n = snprintf(path, sizeof path, "%s/%s", zone, file);
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    auto_(fd_close) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : read_fd(fd, ret, size);
}

/* Sets the names of a zone that counts a package or its memory; false: another zone. */
static bool name_zone(int dir, struct gpu_dev *dev)
{
    char name[GPU_COUNTER_NAME], parent[GPU_COUNTER_NAME], package[GPU_COUNTER_NAME] = "";
    struct gpu_info *info = &dev->info;

    if (read_at(dir, dev->zone, "name", name, sizeof name) < 0)
        return false;
    if (strncmp(name, "package-", 8) == 0) {
        (void)snprintf(info->uuid, sizeof info->uuid, "rapl:%s", name);
        (void)snprintf(info->name, sizeof info->name, "CPU %s", name);
        (void)snprintf(info->domain, sizeof info->domain, "%.31s", name);
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
    if (strncmp(package, "package-", 8) == 0) /* the name that other tools use */
        (void)snprintf(info->domain, sizeof info->domain, "dram-%.26s", package + 8);
    else
        (void)snprintf(info->domain, sizeof info->domain, "%.26s:dram", package);
    return true;
}

static void open_counter(int dir, const char *root, struct gpu_dev *dev)
{
    char text[40], path[GPU_COUNTER_NAME + 20];

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
    (void)snprintf(dev->zone, sizeof dev->zone, "%.63s", zone);
    if (!name_zone(dir, dev))
        return 0;
    dev->info.abilities = GPU_CAN_ENERGY;
    open_counter(dir, root, dev);
    lib->n++;
    return 0;
}

static int rapl_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    const char *root = opts->source ? opts->source : RAPL_ROOT;
    auto_(dir_close) DIR *dir = opendir(root);
    auto_(rapl_close) struct lib *lib = calloc(1, sizeof *lib);
    const struct dirent *e;

    if (!lib)
        return fail(err, -ENOMEM, "no memory for the RAPL counters");
    if (!dir)
        return fail(err, GPU_ABSENT, "%s: no RAPL counters here (%s)", root,
                    strerror(errno));
    while ((e = readdir(dir)) != NULL) {
        int r = rapl_is_zone(e->d_name) ? add_zone(lib, dirfd(dir), root, e->d_name) : 0;
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
        lib->dev[i].given = opts->given;
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

/* The counter's gain since the last sample, across at most one wrap; false: unknown.
 * After a suspend the counter may have been reset, or have wrapped more than once.
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

/* Updates the total without wraps; resets it to 0 if the gain is unknown, so that the
 * meter detects a reset.
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
    int r;

    s.began_ns = s.energy_began_ns = dev->clock.now_ns(dev->clock.user);
    if (want & GPU_HAS_ENERGY) {
        if (dev->fd < 0 && (r = gpu_given_take(dev->given, dev->zone)) >= 0)
            dev->fd = r;
        r = dev->fd < 0 ? dev->fd : read_fd(dev->fd, text, sizeof text);
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

/* The unit is that of sample(), which returns mJ. */
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

const struct gpu_backend_row rapl_row = {
    .backend = &rapl_backend,
    .role = GPU_ROLE_PROCESSOR,
    .source = GPU_SOURCE_FOLDER,
    .open_counters = rapl_open_counters,
    .is_counter = rapl_is_zone,
};
