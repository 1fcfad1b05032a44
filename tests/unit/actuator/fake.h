/* A backend of four boards for tests: obeys, and misbehaves when told to. */
#ifndef TESTS_UNIT_ACTUATOR_FAKE_H
#define TESTS_UNIT_ACTUATOR_FAKE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "virtual/virtual-loop.h"

struct gpu_dev { // NOLINT(clang-analyzer-optin.performance.Padding)
    struct gpu_info info;
    uint32_t set_mw, ceiling_mw;            /* enforced: the lower of the two; 0: none */
    uint32_t min_mhz, max_mhz;              /* locked clocks */
    int set_fails, read_fails, reset_fails; /* results, or 0 */
    int lock_fails;
    bool lock_takes; /* … and the lock is in force all the same */
    unsigned resets; /* of clocks */
    unsigned writes;
    uint64_t set_takes_ns, read_takes_ns;
    const char *mark_in_set; /* the driver is loaded anew right before a set; or NULL */
};

static struct gpu_dev fake_dev[4];
static struct loop *fake_loop;
static const char *fake_mark = "load-1";

static void fake_reset(struct loop *loop)
{
    fake_loop = loop;
    fake_mark = "load-1";
    memset(fake_dev, 0, sizeof fake_dev);
    for (unsigned i = 0; i < 4; i++) {
        fake_dev[i].info = (struct gpu_info){
            .index = i,
            .abilities = GPU_CAN_LIMIT | GPU_CAN_SET_LIMIT | GPU_CAN_LOCK_CLOCKS,
            .simulated = true,
            .clock_max_mhz = 1500};
        (void)snprintf(fake_dev[i].info.uuid, sizeof fake_dev[i].info.uuid, "GPU-%u", i);
        fake_dev[i].set_mw = 250000;
    }
}

static int fake_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    (void)opts;
    (void)ret_lib;
    (void)err;
    return 0;
}

static void fake_close(void *lib)
{
    (void)lib;
}

static size_t fake_count(const void *lib)
{
    (void)lib;
    return 4;
}

static struct gpu_dev *fake_at(void *lib, size_t i)
{
    (void)lib;
    return &fake_dev[i];
}

static const struct gpu_info *fake_info(const struct gpu_dev *dev)
{
    return &dev->info;
}

static int fake_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                       uw_error *err)
{
    (void)want;
    loop_spend(fake_loop, dev->read_takes_ns);
    if (dev->read_fails)
        return fail(err, dev->read_fails, "cannot be read");
    ret->has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED;
    ret->requested_mw = dev->set_mw;
    ret->enforced_mw =
        dev->ceiling_mw && dev->ceiling_mw < dev->set_mw ? dev->ceiling_mw : dev->set_mw;
    return 0;
}

static int fake_limits(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err)
{
    (void)dev;
    (void)err;
    *ret = (struct gpu_limits){100000, 300000, 250000};
    return 0;
}

static int fake_set_limit(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    dev->writes++;
    if (dev->mark_in_set)
        fake_mark = dev->mark_in_set;
    dev->mark_in_set = NULL;
    loop_spend(fake_loop, dev->set_takes_ns);
    if (dev->set_fails)
        return fail(err, dev->set_fails, "the driver says no");
    dev->set_mw = mw;
    return 0;
}

static int fake_lock(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                     uw_error *err)
{
    if (!dev->lock_fails || dev->lock_takes) {
        dev->min_mhz = min_mhz;
        dev->max_mhz = max_mhz;
    }
    return dev->lock_fails ? fail(err, dev->lock_fails, "no lock") : 0;
}

static int fake_unlock(struct gpu_dev *dev, uw_error *err)
{
    dev->resets++;
    if (dev->reset_fails)
        return fail(err, dev->reset_fails, "clocks stay");
    dev->min_mhz = dev->max_mhz = 0;
    return 0;
}

static int fake_driver_mark(void *lib, const struct gpu_dev *dev, char *ret, size_t size,
                            uw_error *err)
{
    (void)dev;
    (void)lib;
    (void)err;
    (void)snprintf(ret, size, "%s", fake_mark);
    return 0;
}

static const struct gpu_backend fake_backend = {
    .name = "fake",
    .open = fake_open,
    .close = fake_close,
    .count = fake_count,
    .at = fake_at,
    .info = fake_info,
    .sample = fake_sample,
    .limits = fake_limits,
    .set_limit = fake_set_limit,
    .lock_clocks = fake_lock,
    .reset_clocks = fake_unlock,
    .driver_mark = fake_driver_mark,
};

#endif
