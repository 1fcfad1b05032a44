#include "gpu/rapl/rapl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static uint64_t ticks;
static uint64_t tick(void *user)
{
    (void)user;
    return ++ticks;
}

static char root[] = "/tmp/uw-rapl-XXXXXX";

static void put(const char *zone, const char *file, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s/%s", root, zone);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, zone, file);
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    (void)fprintf(f, "%s\n", text);
    (void)fclose(f);
}

static void make_zone(const char *zone, const char *name, const char *uj)
{
    put(zone, "name", name);
    put(zone, "max_energy_range_uj", "262143328850");
    put(zone, "energy_uj", uj);
}

/* A machine of two packages; zones in no order, some that are not for us. */
static void make_tree(void)
{
    make_zone("intel-rapl:1", "package-1", "5000");
    make_zone("intel-rapl:0", "package-0", "262143000000");
    make_zone("intel-rapl:0:1", "dram", "7000");
    make_zone("intel-rapl:0:0", "core", "1000");
    make_zone("intel-rapl:1:0", "dram", "9000");
    make_zone("intel-rapl:2", "psys", "1");
    make_zone("intel-rapl-mmio:0", "package-0", "1");
    (void)put("intel-rapl", "enabled", "1");
}

static void remove_tree(void)
{
    char command[100];

    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    (void)!system(command);
}

static void check_counter(void *lib)
{
    struct gpu_dev *dev = rapl_backend.at(lib, 0);
    struct gpu_sample s = {.has = 7};
    uw_error err = {{0}};

    is_int(rapl_backend.sample(dev, GPU_HAS_ENERGY | GPU_HAS_POWER, &s, &err), 0,
           "sample");
    is_int(s.has, GPU_HAS_ENERGY, "energy is all there is");
    is_int(s.energy_mj, 262143000, "in millijoules");
    ok(s.energy_began_ns < s.energy_at_ns && s.energy_at_ns <= s.at_ns, "time stamps");
    put("intel-rapl:0", "energy_uj", "262143328000");
    (void)rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err);
    is_int(s.energy_mj, 262143328, "counts on");
    put("intel-rapl:0", "energy_uj", "999150");
    (void)rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err);
    is_int(s.energy_mj, 262144328, "does not fall where the kernel's counter wraps");
    put("intel-rapl:0", "energy_uj", "1999150");
    (void)rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err);
    is_int(s.energy_mj, 262145328, "… and counts on");
    put("intel-rapl:0", "energy_uj", "1000");
    (void)rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err);
    is_int(s.energy_mj, 0, "a fall that no wrap explains: it began anew");
    put("intel-rapl:0", "energy_uj", "2001000");
    (void)rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err);
    is_int(s.energy_mj, 2000, "… and counts from there");
    ticks += UINT64_C(130) * 1000000000;
    put("intel-rapl:0", "energy_uj", "26002001000");
    (void)rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err);
    is_int(s.energy_mj, 26002000, "130 s later it cannot have wrapped twice");
    ticks += UINT64_C(131) * 1000000000;
    put("intel-rapl:0", "energy_uj", "52002001000");
    (void)rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err);
    is_int(s.energy_mj, 0, "after 131 s nobody can tell: anew");
    put("intel-rapl:0", "energy_uj", "rubbish");
    s.has = 7;
    is_int(rapl_backend.sample(dev, GPU_HAS_ENERGY, &s, &err), -EIO,
           "rubbish is a fault");
    is_int(s.has, 7, "… and the sample is untouched");
}

static void check_permission(void)
{
    struct gpu_open_opts opts = {.source = root, .clock = {tick, NULL}};
    char path[200];
    void *lib = NULL;
    struct gpu_sample s;
    uw_error err = {{0}};

    (void)snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", root);
    (void)chmod(path, 0);
    (void)chmod(root, 0755);
    if (geteuid() == 0 && seteuid(65534) < 0) {
        skip_one("permission", "cannot become another user");
        return;
    }
    (void)snprintf(path, sizeof path, "%s/intel-rapl:1", root);
    is_int(rapl_backend.open(&opts, &lib, &err), geteuid() == 65534 ? GPU_ABSENT : 0,
           "folders that may not be read show nothing");
    rapl_backend.close(lib);
    if (geteuid() == 65534) {
        (void)!seteuid(0);
        char command[100];
        (void)snprintf(command, sizeof command, "chmod 755 %s/*", root);
        (void)!system(command);
        (void)!seteuid(65534);
    }
    lib = NULL;
    is_int(rapl_backend.open(&opts, &lib, &err), 0, "opens though a counter is closed");
    is_int(rapl_backend.count(lib), 4, "… and lists it");
    is_int(rapl_backend.sample(rapl_backend.at(lib, 0), GPU_HAS_ENERGY, &s, &err), -EPERM,
           "no right to read it");
    ok(strstr(err.text, "intel-rapl:0/energy_uj") && strstr(err.text, "chgrp"),
       "says what is needed: %s", err.text);
    is_int(rapl_backend.sample(rapl_backend.at(lib, 2), GPU_HAS_ENERGY, &s, &err), 0,
           "others are read");
    rapl_backend.close(lib);
    (void)!seteuid(0);
}

int main(void)
{
    static const char *const want[] = {"rapl:package-0", "rapl:package-0:dram",
                                       "rapl:package-1", "rapl:package-1:dram"};
    if (!mkdtemp(root))
        return skip_all("no room in /tmp");
    struct gpu_open_opts opts = {.source = root, .clock = {tick, NULL}};
    void *lib = NULL;
    uw_error err = {{0}};

    is_int(rapl_backend.open(&opts, &lib, &err), GPU_ABSENT, "an empty tree is no fault");
    make_tree();
    is_int(rapl_backend.open(&opts, &lib, &err), 0, "opens");
    is_int(rapl_backend.count(lib), 4, "packages and their memory, nothing twice");
    for (size_t i = 0; i < 4 && lib; i++) {
        const struct gpu_info *info = rapl_backend.info(rapl_backend.at(lib, i));
        is_str(info->uuid, want[i], "in order");
        ok(info->index == i && info->abilities == GPU_CAN_ENERGY, "… energy alone");
    }
    check_counter(lib);
    rapl_backend.close(lib);
    check_permission();
    remove_tree();
    opts.source = "/nowhere";
    lib = NULL;
    is_int(rapl_backend.open(&opts, &lib, &err), GPU_ABSENT, "no tree is no fault");
    ok(strstr(err.text, "/nowhere") != NULL, "… and named");
    return done();
}
