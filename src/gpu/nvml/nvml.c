#include "gpu/nvml/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/nvml/dev.h"
#include "gpu/select.h"

static void lib_free(struct lib *lib)
{
    if (!lib)
        return;
    nvml_abi_unload(&lib->abi);
    free(lib->dev);
    free(lib);
}
DEFINE_AUTO(struct lib *, lib_free);

/* Records the path of the loaded library. */
static void note_path(struct lib *lib)
{
    struct link_map *map = NULL;

    if (dlinfo(lib->abi.handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name)
        (void)snprintf(lib->about.library, sizeof lib->about.library, "%s", map->l_name);
}

static void note_simulated(struct lib *lib)
{
    struct uw_sim_info sim = {.size = sizeof sim};

    if (!lib->abi.sim_info)
        return;
    (void)lib->abi.sim_info(&sim); /* for a stopped simulation, init() fails */
    lib->about.simulated = true;
    (void)snprintf(lib->about.clock, sizeof lib->about.clock, "%.*s",
                   (int)sizeof sim.clock - 1, sim.clock);
    (void)snprintf(lib->about.state_dir, sizeof lib->about.state_dir, "%.*s",
                   (int)sizeof sim.state_dir - 1, sim.state_dir);
}

/* Drivers 535.43 to 535.98 use another entry size in the _v3 process lists. */
static bool has_odd_v3(const char *driver)
{
    uint64_t minor = 0;
    char digits[8] = "";

    if (strncmp(driver, "535.", 4) != 0)
        return false;
    size_t n = strspn(driver + 4, "0123456789");
    if (n == 0 || n >= sizeof digits)
        return false;
    memcpy(digits, driver + 4, n);
    return parse_u64(digits, &minor, NULL) == 0 && minor < 104;
}

void lib_note_versions(struct lib *lib)
{
    struct gpu_about *about = &lib->about;
    const struct nvml_abi *abi = &lib->abi;

    if (!abi->driver_version ||
        abi->driver_version(about->driver_version, sizeof about->driver_version) !=
            NVML_OK)
        about->driver_version[0] = '\0';
    if (!abi->nvml_version || abi->nvml_version(about->library_version,
                                                sizeof about->library_version) != NVML_OK)
        about->library_version[0] = '\0';
    lib->prefer_v2 = has_odd_v3(about->driver_version);
}

/* For root, the real library creates device nodes even if no driver is loaded, so check
 * before calling it.  (WSL has a driver without /proc/driver/nvidia.)
 */
static bool driver_is_absent(const struct lib *lib)
{
    return !lib->about.simulated && geteuid() == 0 &&
           access("/proc/driver/nvidia", F_OK) != 0 && access("/dev/dxg", F_OK) != 0;
}

static int start(struct lib *lib, uw_error *err)
{
    const struct nvml_abi *abi = &lib->abi;
    unsigned n = 0;

    if (driver_is_absent(lib))
        return fail(err, -ENODEV, "the NVIDIA driver is not loaded");
    nvml_result r = abi->init();
    if (r != NVML_OK)
        return nvml_fail(abi, r, "nvmlInit", err);
    lib_note_versions(lib);
    r = abi->count(&n);
    if (r == NVML_OK && n > 0) {
        lib->n = n < NVML_BOARDS_MAX ? n : NVML_BOARDS_MAX;
        return 0;
    }
    int failed = nvml_fail(abi, r, "nvmlDeviceGetCount", err);
    (void)abi->shutdown();
    if (failed < 0)
        return failed;
    return fail(err, GPU_ABSENT, "the NVIDIA driver is loaded but shows no board");
}

static int load(const char *library, struct lib **ret, uw_error *err)
{
    auto_(lib_free) struct lib *lib = calloc(1, sizeof *lib);

    if (!lib)
        return fail(err, -ENOMEM, "no memory for the NVML library");
    int r = nvml_abi_load(library, &lib->abi, err);
    if (r < 0)
        return r;
    if (r == NVML_ABI_NO_LIBRARY)
        return GPU_ABSENT;
    note_path(lib);
    struct gpu_about *about = &lib->about;
    while (about->n_missing < GPU_MISSING_MAX &&
           nvml_abi_missing(&lib->abi, about->n_missing)) {
        about->missing[about->n_missing] = nvml_abi_missing(&lib->abi, about->n_missing);
        about->n_missing++;
    }
    *ret = take(lib);
    return 0;
}

/* Initialises NVML with all boards of the driver. */
static int begin_all(struct lib *lib, uw_error *err)
{
    int r = start(lib, err);

    if (r != 0)
        return r;
    lib->begun = true;
    lib->dev = calloc(lib->n, sizeof *lib->dev);
    if (!lib->dev)
        return fail(err, -ENOMEM, "no memory for %u boards", lib->n);
    for (unsigned i = 0; i < lib->n; i++) {
        lib->dev[i].lib = lib;
        lib->dev[i].info.index = i;
        lib->dev[i].info.simulated = lib->about.simulated;
    }
    return lib_ask(lib, dev_identify, 0, err);
}

/* Libraries that a call that hangs has kept open, see lib_close_abandoned(). */
static _Atomic(struct lib *) abandoned;

/* Does not free the library while a call hangs, which still uses its memory. */
static void nvml_close(void *user)
{
    struct lib *lib = user;

    if (!lib)
        return;
    if (atomic_load(&lib->busy) > 0) {
        lib->next_abandoned = atomic_exchange(&abandoned, lib);
        return;
    }
    if (lib->begun)
        (void)lib->abi.shutdown();
    lib_free(lib);
}

static int nvml_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    auto_(lib_free) struct lib *lib = NULL;

    int r = load(opts->source, &lib, err);
    if (r != 0 || !lib)
        return r;
    note_simulated(lib);
    lib->clock = opts->clock;
    if (!opts->away || !opts->n_known)
        r = begin_all(lib, err);
    else if (driver_is_absent(lib))
        r = fail(err, -ENODEV, "the NVIDIA driver is not loaded");
    else
        r = lib_begin_known(lib, opts, err);
    if (r == 0)
        *ret_lib = take(lib);
    else if (lib->begun)
        nvml_close(take(lib));
    return r;
}

bool lib_close_abandoned(void)
{
    struct lib *lib = atomic_exchange(&abandoned, NULL);
    bool hangs = false;

    while (lib) {
        struct lib *next = lib->next_abandoned;
        hangs = hangs || atomic_load(&lib->busy) > 0;
        nvml_close(lib); /* puts it back on the list if it still hangs */
        lib = next;
    }
    return !hangs;
}

static int nvml_attach(void *user, uint64_t away, uw_error *err)
{
    return lib_attach(user, away, err);
}

static size_t nvml_count(const void *user)
{
    const struct lib *lib = user;

    return lib->n;
}

static struct gpu_dev *nvml_at(void *user, size_t i)
{
    struct lib *lib = user;

    return i < lib->n ? &lib->dev[i] : NULL;
}

static const struct gpu_info *nvml_info(const struct gpu_dev *dev)
{
    return &dev->info;
}

static void nvml_dev_sensors(const struct gpu_dev *dev, struct sensor_model *ret)
{
    nvml_sensors(dev->info.arch, dev->info.name, ret);
}

static int nvml_driver_mark(void *user, const struct gpu_dev *dev, char *ret, size_t size,
                            uw_error *err)
{
    (void)dev;
    return lib_mark(user, ret, size, err);
}

static uint64_t nvml_calls(const struct gpu_dev *dev)
{
    return atomic_load_explicit(&dev->calls, memory_order_relaxed);
}

static const struct gpu_about *nvml_about(const void *user)
{
    const struct lib *lib = user;

    return &lib->about;
}

const char *nvml_open_error(const struct gpu_dev *dev)
{
    return dev->error.text;
}

static int nvml_look(const char *library, struct gpu_about *ret, uw_error *err)
{
    auto_(lib_free) struct lib *lib = NULL;

    int r = load(library, &lib, err);
    if (r != 0 || !lib)
        return r;
    note_simulated(lib);
    const struct nvml_abi *abi = &lib->abi;
    struct gpu_about *about = &lib->about;
    if (!abi->nvml_version || /* works without a driver */
        abi->nvml_version(about->library_version, sizeof about->library_version) !=
            NVML_OK)
        about->library_version[0] = '\0';
    *ret = lib->about;
    return 0;
}

const struct gpu_backend nvml_backend = {
    .name = "nvml",
    .open = nvml_open,
    .close = nvml_close,
    .count = nvml_count,
    .at = nvml_at,
    .info = nvml_info,
    .sample = dev_sample,
    .sensors = nvml_dev_sensors,
    .limits = dev_limits,
    .set_limit = dev_set_limit,
    .lock_clocks = dev_lock_clocks,
    .reset_clocks = dev_reset_clocks,
    .procs = dev_procs,
    .use = dev_use,
    .calls = nvml_calls,
    .attach = nvml_attach,
    .driver_mark = nvml_driver_mark,
    .about = nvml_about,
    .look = nvml_look,
};

static const char *const id_forms[] = {"GPU-", NULL};
static const char *const devices[] = {"/dev/nvidia*", NULL};
static const struct gpu_job_variables job = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
                                             select_cuda};

const struct gpu_backend_row nvml_row = {
    .backend = &nvml_backend,
    .may_cap = true,
    .id_forms = id_forms,
    .job = &job,
    .devices = devices,
    .ioctl_types = "Fdmn",
};
