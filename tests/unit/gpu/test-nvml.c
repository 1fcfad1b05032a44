/* The NVML backend on stubs of several generations: argv names them in the order
 * of enum gen.
 */
#include "gpu/nvml/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "base/auto.h"
#include "stub.h"
#include "tap.h"

enum gen { GEN_OLDEST, GEN_450, GEN_535, GEN_580, GEN_BROKEN, GEN_REAL, GEN_N };
static const char *const gen_names[] = {"oldest", "450", "535", "580"};
static char **paths;

static uint64_t ticks;
static uint64_t tick(void *user)
{
    (void)user;
    return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

/* The stub's state, set to a machine of n boards. */
static struct stub *stub_of(enum gen gen, unsigned n)
{
    void *handle = dlopen(paths[gen], RTLD_NOW | RTLD_LOCAL); /* stays */
    struct stub *s = handle ? dlsym(handle, "stub") : NULL;

    if (!s)
        return NULL;
    memset(s, 0, sizeof *s);
    s->n = n;
    s->load_id = 3;
    for (unsigned i = 0; i < n; i++) {
        struct stub_board *b = &s->board[i];
        b->power_mw = 200000 + i;
        b->average_mw = 190000;
        b->instant_mw = 210000;
        b->requested_mw = 300000;
        b->enforced_mw = 250000;
        b->min_mw = 100000;
        b->max_mw = 300000;
        b->default_mw = 300000;
        b->energy_mj = 123456789;
        b->reason_bits = GPU_REASON_SW_POWER_CAP;
        b->compute[0] = (struct stub_proc){4711, 1 << 20};
        b->compute[1] = (struct stub_proc){4712, UINT64_MAX};
        b->graphics[0] = (struct stub_proc){4711, 1 << 20};
        b->graphics[1] = (struct stub_proc){99, 5};
    }
    return s;
}

static void *open_gen(enum gen gen, int want, uw_error *err)
{
    struct gpu_open_opts opts = {.source = paths[gen], .clock = {tick, NULL}};
    void *lib = NULL;

    int r = nvml_backend.open(&opts, &lib, err);
    is_int(r, want, "open: %d", want);
    if ((r == 0) != (want == 0)) {
        printf("# %s\n", err->text);
        return NULL;
    }
    return lib;
}

#define HAS_ALL 0xffffffffu
#define HAS_OLDEST GPU_HAS_POWER
#define HAS_450                                                              \
    (GPU_HAS_POWER | GPU_HAS_ENERGY | GPU_HAS_ENFORCED | GPU_HAS_REQUESTED | \
     GPU_HAS_UTIL | GPU_HAS_TEMP | GPU_HAS_CLOCKS | GPU_HAS_REASONS)
#define HAS_535 (HAS_450 | GPU_HAS_INSTANT | GPU_HAS_AVERAGE)
#define CAN_450                                                                 \
    (GPU_CAN_ENERGY | GPU_CAN_LIMIT | GPU_CAN_SET_LIMIT | GPU_CAN_LOCK_CLOCKS | \
     GPU_CAN_REASONS | GPU_CAN_UTIL | GPU_CAN_TEMP | GPU_CAN_CLOCKS | GPU_CAN_PROCS)
#define CAN_535 (CAN_450 | GPU_CAN_INSTANT | GPU_CAN_AVERAGE)

static const struct {
    uint32_t can, has;
    int limits, set, lock;
    int32_t temp;
    size_t missing, procs;
} expect[] = {
    [GEN_OLDEST] = {0, HAS_OLDEST, -ENOTSUP, -ENOTSUP, -ENOTSUP, 0, 15, 0},
    [GEN_450] = {CAN_450, HAS_450, 0, 0, 0, 61, 0, 3},
    [GEN_535] = {CAN_535, HAS_535, 0, 0, 0, 61, 0, 3},
    [GEN_580] = {CAN_535, HAS_535, 0, 0, 0, -3, 0, 3},
};

static void check_sample(enum gen gen, struct gpu_dev *dev)
{
    const char *name = gen_names[gen];
    struct gpu_sample s = {0};
    uw_error err = {{0}};

    is_int(nvml_backend.sample(dev, HAS_ALL, &s, &err), 0, "%s: sample", name);
    is_int(s.has, expect[gen].has, "%s: what a sample has", name);
    is_near(s.power_w, 200.001, 1e-9, "%s: power in watts", name);
    ok(s.began_ns < s.at_ns, "%s: clock on both sides", name);
    if (s.has & GPU_HAS_ENERGY) {
        is_int(s.energy_mj, 123456789, "%s: energy", name);
        ok(s.began_ns < s.energy_began_ns && s.energy_at_ns == s.energy_began_ns + 1 &&
               s.energy_at_ns < s.at_ns,
           "%s: the counter's stamps stand right beside it", name);
        is_int(s.enforced_mw, 250000, "%s: limit in force", name);
        is_int(s.requested_mw, 300000, "%s: limit asked for", name);
        is_int(s.util_gpu * 1000 + s.util_mem, 88044, "%s: utilisation", name);
        is_int(s.sm_mhz * 10000 + s.mem_mhz, 13800877, "%s: clocks", name);
        is_int(s.temp_c, expect[gen].temp, "%s: temperature", name);
        is_int(s.reasons, GPU_REASON_SW_POWER_CAP, "%s: reasons", name);
    }
    if (s.has & GPU_HAS_INSTANT) {
        is_near(s.instant_w, 210, 1e-9, "%s: instant power", name);
        is_near(s.average_w, 190, 1e-9, "%s: average power", name);
    }
    is_int(nvml_backend.sample(dev, GPU_HAS_POWER, &s, &err), 0, "%s: power alone", name);
    is_int(s.has, GPU_HAS_POWER, "%s: only what was asked for", name);
    uint64_t calls = nvml_backend.calls(dev);
    is_int(nvml_backend.sample(dev, GPU_HAS_POWER, &s, &err), 0, "%s: again", name);
    is_int((long)(nvml_backend.calls(dev) - calls), 1, "%s: one call was made", name);
    if (s.has & GPU_HAS_ENERGY) {
        calls = nvml_backend.calls(dev);
        is_int(nvml_backend.sample(dev, GPU_HAS_ENERGY, &s, &err), 0, "%s: energy", name);
        is_int((long)(nvml_backend.calls(dev) - calls), 1, "%s: one call, too", name);
    }
}

static void check_limits(enum gen gen, struct gpu_dev *dev, struct stub *stub)
{
    const char *name = gen_names[gen];
    struct gpu_limits lim = {1, 1, 1};
    uw_error err = {{0}};

    is_int(nvml_backend.limits(dev, &lim, &err), expect[gen].limits, "%s: limits", name);
    if (expect[gen].limits == 0)
        ok(lim.min_mw == 100000 && lim.max_mw == 300000 && lim.default_mw == 300000,
           "%s: limits' values", name);
    else
        ok(lim.min_mw == 1, "%s: limits untouched by a failure", name);
    is_int(nvml_backend.set_limit(dev, 200000, &err), expect[gen].set, "%s: set", name);
    is_int(nvml_backend.lock_clocks(dev, 135, 900, &err), expect[gen].lock, "%s: lock",
           name);
    if (expect[gen].set == 0) {
        is_int(stub->board[1].enforced_mw, 200000, "%s: it arrived", name);
        is_int(stub->last_call_v2, gen == GEN_580, "%s: by the right function", name);
        is_int(nvml_backend.set_limit(dev, 99999, &err), -ERANGE, "%s: too low", name);
        is_int(stub->board[1].enforced_mw, 200000, "%s: nothing changed", name);
        stub->board[1].set = 4;
        is_int(nvml_backend.set_limit(dev, 150000, &err), -EPERM, "%s: no right", name);
        ok(strstr(err.text, "Insufficient Permissions") != NULL, "%s: driver's words",
           name);
        stub->board[1].set = 0;
        is_int(stub->board[1].locked_max, 900, "%s: clocks locked", name);
        is_int(nvml_backend.lock_clocks(dev, 901, 900, &err), -ERANGE, "%s: upside down",
               name);
        is_int(nvml_backend.reset_clocks(dev, &err), 0, "%s: reset", name);
        is_int(stub->board[1].locked_max, 0, "%s: clocks free", name);
    }
}

static void check_procs(enum gen gen, struct gpu_dev *dev, struct stub *stub)
{
    const char *name = gen_names[gen];
    struct gpu_proc p[GPU_PROCS_MAX];
    size_t n = 77;
    uw_error err = {{0}};

    if (expect[gen].procs == 0) {
        is_int(nvml_backend.procs(dev, p, &n, &err), -ENOTSUP, "%s: no lists", name);
        is_int(n, 77, "%s: count untouched", name);
        return;
    }
    is_int(nvml_backend.procs(dev, p, &n, &err), 0, "%s: nobody there", name);
    is_int(n, 0, "%s: none", name);
    stub->board[1].n_compute = stub->board[1].n_graphics = 2;
    is_int(nvml_backend.procs(dev, p, &n, &err), 0, "%s: processes", name);
    is_int(n, 3, "%s: three, one of them on both lists", name);
    ok(p[0].pid == 4711 && p[0].used_bytes == 1 << 20 && p[0].compute, "%s: first", name);
    ok(p[1].pid == 4712 && p[1].used_bytes == 0, "%s: unknown memory is 0", name);
    ok(p[2].pid == 99 && !p[2].compute, "%s: graphics", name);
    for (unsigned i = 0; i < STUB_PROCS; i++)
        stub->board[1].compute[i] = (struct stub_proc){1000 + i, i};
    stub->board[1].n_compute = 40;
    stub->board[1].grow = 20; /* more than the slack for newcomers */
    is_int(nvml_backend.procs(dev, p, &n, &err), 0, "%s: the list grows", name);
    ok(n >= 41, "%s: %zu processes", name, n);
    stub->board[1].n_compute = STUB_PROCS;
    is_int(nvml_backend.procs(dev, p, &n, &err), 0, "%s: very many", name);
    is_int(n, GPU_PROCS_MAX, "%s: up to the bound", name);
    ok(p[255].pid == 1255 && p[255].used_bytes == 255, "%s: the last is right", name);
}

static void check_generation(enum gen gen)
{
    const char *name = gen_names[gen];
    struct stub *stub = stub_of(gen, 2);
    uw_error err = {{0}};
    void *lib = open_gen(gen, 0, &err);

    if (!lib || !stub)
        return;
    is_int(nvml_backend.count(lib), 2, "%s: boards", name);
    struct gpu_dev *dev = nvml_backend.at(lib, 1);
    const struct gpu_info *info = nvml_backend.info(dev);
    ok(nvml_backend.at(lib, 2) == NULL, "%s: no third board", name);
    is_str(info->uuid, "GPU-01010101-0000-0000-0000-000000000001", name);
    is_str(info->name, "Stub 1", name);
    ok(info->index == 1 && info->simulated, "%s: index, simulated", name);
    is_int(info->abilities, expect[gen].can, "%s: abilities", name);
    is_int(info->arch, gen == GEN_OLDEST ? 0 : GPU_ARCH_VOLTA, "%s: generation", name);
    is_str(info->pci_bus_id, gen == GEN_OLDEST ? "" : "00000000:01:00.0", name);
    is_int(nvml_backend.about(lib)->n_missing, expect[gen].missing,
           "%s: functions missing", name);
    check_sample(gen, dev);
    check_limits(gen, dev, stub);
    check_procs(gen, dev, stub);
    nvml_backend.close(lib);
    is_int(atomic_load(&stub->inits), 1, "%s: one init", name);
    is_int(atomic_load(&stub->shutdowns), 1, "%s: one shutdown", name);
}

/* 535.54 writes 32 bytes an entry into the _v3 list. */
static void check_odd_v3(void)
{
    struct stub *stub = stub_of(GEN_535, 1);
    uw_error err = {{0}};

    stub->driver = "535.54.03";
    stub->board[0].n_compute = 2;
    void *lib = open_gen(GEN_535, 0, &err);
    struct gpu_proc p[GPU_PROCS_MAX];
    size_t n = 0;
    is_int(nvml_backend.procs(nvml_backend.at(lib, 0), p, &n, &err), 0, "535.54: list");
    ok(n == 2 && p[1].pid == 4712, "535.54: second entry is right");
    nvml_backend.close(lib);
}

/* One board fails in one way; the other must not notice. */
static void check_broken_board(void)
{
    struct stub *stub = stub_of(GEN_535, 3);
    struct gpu_sample s = {.has = 7};
    uw_error err = {{0}};

    stub->board[0].by_index = 15; /* lost from the start */
    stub->board[1].uuid = 999;
    void *lib = open_gen(GEN_535, 0, &err);
    is_int(nvml_backend.count(lib), 3, "a board that fails at open is listed");
    struct gpu_dev *lost = nvml_backend.at(lib, 0);
    is_str(nvml_backend.info(lost)->uuid, "", "… without a UUID");
    is_int(nvml_backend.info(lost)->index, 0, "… with its index");
    ok(strstr(nvml_open_error(lost), "NVML 15") != NULL, "… and why");
    is_int(nvml_backend.sample(lost, HAS_ALL, &s, &err), -ENODEV, "… no sample");
    is_int(s.has, 7, "… and the sample is untouched");
    ok(strstr(err.text, "NVML 15") != NULL, "… the reason again");
    is_int(nvml_backend.set_limit(lost, 200000, &err), -ENODEV, "… no set");
    struct gpu_dev *nameless = nvml_backend.at(lib, 1);
    is_int(nvml_backend.sample(nameless, HAS_ALL, &s, &err), 0,
           "a board without a UUID is measured all the same");
    ok(strstr(nvml_open_error(nameless), "Unknown Error") != NULL,
       "a driver without words gets ours");
    struct gpu_dev *good = nvml_backend.at(lib, 2);

    stub->board[2].temp = 999; /* one reading of many fails */
    is_int(nvml_backend.sample(good, HAS_ALL, &s, &err), 0, "one reading less");
    is_int(s.has, HAS_535 & ~(uint32_t)GPU_HAS_TEMP, "… is left out");
    is_int(nvml_backend.sample(good, GPU_HAS_TEMP, &s, &err), -EIO, "nothing at all");
    stub->board[2].temp = 0;
    stub->board[2].util = 15;
    is_int(nvml_backend.sample(good, HAS_ALL, &s, &err), -ENODEV,
           "a board lost half way is no sample");
    stub->board[2].all = 16;
    is_int(nvml_backend.sample(good, HAS_ALL, &s, &err), -ENODEV, "lost altogether");
    nvml_backend.close(lib);
}

/* A driver may say anything. */
static void check_names(void)
{
    struct stub *stub = stub_of(GEN_535, 1);
    uw_error err = {{0}};

    stub->name = "Tesla\x1b[2J\u200b V100\u202e\xff";
    void *lib = open_gen(GEN_535, 0, &err);
    is_str(nvml_backend.info(nvml_backend.at(lib, 0))->name, "Tesla?[2J? V100??",
           "a board's name is shown with nothing in it to obey");
    nvml_backend.close(lib);
    stub->name = NULL;
}

static void check_mig(void)
{
    struct stub *stub = stub_of(GEN_535, 2);
    uw_error err = {{0}};

    stub->board[1].mig = 1;
    void *lib = open_gen(GEN_535, 0, &err);
    const struct gpu_info *plain = nvml_backend.info(nvml_backend.at(lib, 0));
    const struct gpu_info *mig = nvml_backend.info(nvml_backend.at(lib, 1));
    ok(!plain->mig_enabled && plain->n_migs == 0, "no slices without MIG mode");
    ok(!plain->has_minor, "a library without that call tells no device file");
    ok(mig->mig_enabled && mig->n_migs == 2, "two slices with it");
    is_str(mig->mig[1].uuid, "MIG-5c", "… with their names");
    is_int(mig->mig[1].gpu_instance, 9, "… and numbers");
    nvml_backend.close(lib);
}

static const struct {
    unsigned result;
    int r;
} results[] = {
    {1, -ENODEV}, {2, -ERANGE},  {3, -ENOTSUP}, {4, -EPERM},   {6, -ENODEV},
    {9, -ENODEV}, {10, -EIO},    {15, -ENODEV}, {16, -ENODEV}, {17, -EPERM},
    {19, -EIO},   {24, -ERANGE}, {999, -EIO},   {4242, -EIO},
};

static void check_results(void)
{
    struct stub *stub = stub_of(GEN_450, 1);
    uw_error err = {{0}};

    stub->init = 9;
    (void)open_gen(GEN_450, -ENODEV, &err);
    ok(strstr(err.text, "nvmlInit") != NULL, "names the call: %s", err.text);
    stub->init = 0;
    stub->n = 0;
    (void)open_gen(GEN_450, GPU_ABSENT, &err);
    ok(strstr(err.text, "no board") != NULL, "says that there is none: %s", err.text);
    is_int(atomic_load(&stub->shutdowns), 1, "… and shuts down");
    stub->n = 1;
    void *lib = open_gen(GEN_450, 0, &err);
    for (size_t i = 0; i < n_elements(results); i++) {
        stub->board[0].set = results[i].result;
        is_int(nvml_backend.set_limit(nvml_backend.at(lib, 0), 200000, &err),
               results[i].r, "NVML %u is %d", results[i].result, results[i].r);
    }
    nvml_backend.close(lib);
}

static void check_library(void)
{
    struct gpu_open_opts opts = {.source = "/nowhere/libnvidia-ml.so.1",
                                 .clock = {tick, NULL}};
    void *lib = NULL;
    uw_error err = {{0}};

    is_int(nvml_backend.open(&opts, &lib, &err), -ENOENT, "a named library is missing");
    ok(strstr(err.text, "/nowhere/libnvidia-ml.so.1") && !lib, "… named");
    (void)stub_of(GEN_BROKEN, 1);
    (void)open_gen(GEN_BROKEN, -ENOTSUP, &err);
    ok(strstr(err.text, "nvmlDeviceGetPowerUsage") != NULL,
       "a mandatory function is missing, named: %s", err.text);

    struct stub *stub = stub_of(GEN_REAL, 1);
    struct gpu_about about;
    is_int(nvml_backend.look(paths[GEN_REAL], &about, &err), 0, "a look at a library");
    ok(!about.simulated && strcmp(about.library_version, "11.450") == 0,
       "a library without uw_sim_info is real");
    is_int(atomic_load(&stub->inits), 0, "… and a look calls no init");
    if (geteuid() == 0 && access("/proc/driver/nvidia", F_OK) != 0) {
        (void)open_gen(GEN_REAL, -ENODEV, &err);
        is_int(atomic_load(&stub->inits), 0, "root with no driver: init is not called");
    } else {
        nvml_backend.close(open_gen(GEN_REAL, 0, &err));
    }
    (void)stub_of(GEN_535, 1);
    is_int(nvml_backend.look(paths[GEN_535], &about, &err), 0,
           "a look at a simulated one");
    ok(about.simulated && strcmp(about.state_dir, "/nowhere") == 0, "… says so");
}

static void check_mark(void)
{
    struct stub *stub = stub_of(GEN_535, 1);
    char before[64], after[64];
    uw_error err = {{0}};
    void *lib = open_gen(GEN_535, 0, &err);

    is_int(nvml_backend.driver_mark(lib, NULL, before, sizeof before, &err), 0, "mark");
    ok(before[0] != '\0', "is there: %s", before);
    (void)nvml_backend.driver_mark(lib, NULL, after, sizeof after, &err);
    is_str(after, before, "stays");
    stub->load_id = 4;
    (void)nvml_backend.driver_mark(lib, NULL, after, sizeof after, &err);
    ok(strcmp(after, before) != 0, "changes with the driver's load");
    is_int(nvml_backend.driver_mark(lib, NULL, after, 4, &err), -ERANGE,
           "no room is told");
    nvml_backend.close(lib);
}

static void check_many(void)
{
    struct stub *stub = stub_of(GEN_535, 24);
    uw_error err = {{0}};
    void *lib = open_gen(GEN_535, 0, &err);
    bool right = true;

    is_int(nvml_backend.count(lib), 24, "24 boards");
    for (unsigned i = 0; i < 24; i++) {
        char name[16];
        struct gpu_dev *dev = nvml_backend.at(lib, i);
        (void)snprintf(name, sizeof name, "Stub %u", i);
        right = right && strcmp(nvml_backend.info(dev)->name, name) == 0 &&
                nvml_backend.info(dev)->index == i;
    }
    ok(right, "each at its index");
    nvml_backend.close(lib);
    is_int(atomic_load(&stub->shutdowns), 1, "closed");
}

int main(int argc, char **argv)
{
    if (argc != GEN_N + 1) {
        printf("Bail out! usage: %s STUB…\n", argv[0]);
        return 2;
    }
    paths = argv + 1;
    for (enum gen g = GEN_OLDEST; g <= GEN_580; g++)
        check_generation(g);
    check_odd_v3();
    check_broken_board();
    check_results();
    check_library();
    check_mark();
    check_mig();
    check_names();
    check_many();
    return done();
}
