/* The library's binary interface, beside a page made by hand: what stands in the
 * page comes out, in the layouts that clients of NVML use.  argv[1]: the library.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/state.h"
#include "tap.h"
#include "underwatt/sim.h"

static char dir[64];
static struct sim_page *page;
static int lock_fd = -1;
static void *lib;

static const char *in(const char *name)
{
    static char path[4][160];
    static unsigned k;

    char *p = path[k++ % 4];
    (void)snprintf(p, sizeof path[0], "%s/%s", dir, name);
    return p;
}

static uint64_t boot_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool copy(const char *from, const char *to)
{
    char buf[65536];
    ssize_t n = -1;

    int a = open(from, O_RDONLY | O_CLOEXEC);
    int b = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    while (a >= 0 && b >= 0 && (n = read(a, buf, sizeof buf)) > 0)
        if (write(b, buf, (size_t)n) != n)
            break;
    (void)close(a);
    (void)close(b);
    return n == 0;
}

static void fill_board(struct sim_board *b, unsigned i)
{
    (void)snprintf(b->identity.uuid, sizeof b->identity.uuid, "GPU-000%u", i);
    (void)snprintf(b->identity.name, sizeof b->identity.name, "Board (simulated)");
    (void)snprintf(b->identity.bus_id, sizeof b->identity.bus_id, "00000000:%02X:00.0",
                   0x3a + i);
    b->identity.arch = 5;
    b->identity.abilities = SIM_HAS_ENERGY | SIM_HAS_INSTANT | SIM_HAS_LOCKED_CLOCKS;
    b->identity.min_mw = 100000;
    b->identity.max_mw = 300000;
    b->identity.default_mw = 250000;
    b->identity.memory_bytes = 16ull << 30;
    b->identity.sm_min_mhz = 135;
    b->identity.sm_max_mhz = 1530;
    b->identity.sm_step_mhz = 15;
    b->identity.mem_max_mhz = 877;
    b->readings = (struct sim_readings){.power_mw = 123456,
                                        .instant_mw = 124000,
                                        .average_mw = 125000,
                                        .energy_mj = 9876543210ull,
                                        .enforced_mw = 250000,
                                        .requested_mw = 260000,
                                        .temp_c = 55,
                                        .memory_used_bytes = 1ull << 30};
}

static bool make_world(const char *library)
{
    (void)snprintf(dir, sizeof dir, "/tmp/uw-abi-XXXXXX");
    if (!mkdtemp(dir) || mkdir(in("lib"), 0755))
        return false;
    if (!copy(library, in("lib/libnvidia-ml.so.1")))
        return false;
    lock_fd = open(in("lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB))
        return false;
    int fd = open(in("state"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, sizeof *page))
        return false;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (page == MAP_FAILED)
        return false;
    *page = (struct sim_page){.version = SIM_VERSION,
                              .bytes = sizeof *page,
                              .n_boards = 2,
                              .t0_ns = 1234,
                              .speed = 2,
                              .world_id = 7,
                              .load_id = 9,
                              .beat_ns = boot_ns() + 3600000000000ull};
    memcpy(page->magic, SIM_MAGIC, 8);
    (void)snprintf(page->state_dir, sizeof page->state_dir, "%s", dir);
    (void)snprintf(page->driver_version, sizeof page->driver_version, "1.2-simulated");
    fill_board(&page->board[0], 0);
    fill_board(&page->board[1], 1);
    page->board[1].procs = (struct sim_procs){
        .n = 2, .at_us = 50, .proc = {{101, 1000, 90, 40}, {102, 2000, 5, 1}}};
    lib = dlopen(in("lib/libnvidia-ml.so.1"), RTLD_NOW | RTLD_LOCAL);
    return lib != NULL;
}

static void remove_world(void)
{
    static const char *const names[] = {"lib/libnvidia-ml.so.1", "state", "lock"};

    for (size_t i = 0; i < 3; i++)
        (void)unlink(in(names[i]));
    (void)rmdir(in("lib"));
    (void)rmdir(dir);
}

/* f(dev, a) and f(dev, a, b) as any client would call it. */
typedef int (*call_fn)(void *dev, void *a, void *b, void *c);

static int call(const char *name, void *dev, void *a, void *b)
{
    void *p = dlsym(lib, name);
    call_fn f;

    if (!p) {
        printf("# no symbol %s\n", name);
        return -1;
    }
    memcpy(&f, &p, sizeof f);
    return f(dev, a, b, NULL);
}

static int init(void)
{
    return call("nvmlInit_v2", NULL, NULL, NULL);
}

static void *handle(uintptr_t i)
{
    void *dev = NULL;

    (void)call("nvmlDeviceGetHandleByIndex_v2", (void *)i, &dev, NULL);
    return dev;
}

static void test_before_init(void)
{
    unsigned n = 77;
    struct uw_sim_info info = {.size = sizeof info};
    char canary[16];

    is_int(call("nvmlDeviceGetCount_v2", &n, NULL, NULL), 1, "before init: 1");
    is_int(n, 77, "and nothing is written");
    is_int(call("nvmlShutdown", NULL, NULL, NULL), 1, "shutdown before init: 1");
    is_int(call("uw_sim_info", &info, NULL, NULL), 0, "uw_sim_info needs no init");
    is_int(info.simulated, UW_SIM_SIMULATED, "simulated");
    is_str(info.clock, "1234:2", "clock");
    is_str(info.state_dir, dir, "state directory");
    is_int(info.load_id, 9, "load");
    info = (struct uw_sim_info){.size = 4};
    is_int(call("uw_sim_info", &info, NULL, NULL), 2, "a struct too small is refused");
    memset(canary, 'x', sizeof canary);
    is_int(init(), 0, "init");
    is_int(call("nvmlSystemGetDriverVersion", canary, (void *)4, NULL), 7, "no room: 7");
    is_int(canary[0], 'x', "and nothing is written");
}

struct proc16 {
    uint32_t pid;
    uint64_t bytes;
};
struct proc24 {
    uint32_t pid;
    uint64_t bytes;
    uint32_t gi, ci;
};

static void test_processes(void)
{
    struct proc16 small[3];
    struct proc24 large[3];
    unsigned n = 0;
    void *dev = handle(1);

    is_int(call("nvmlDeviceGetComputeRunningProcesses", dev, &n, NULL), 7,
           "(NULL, 0) where processes run: 7");
    is_int(n, 2, "and how many they are");
    memset(small, 0x5a, sizeof small);
    n = 2;
    is_int(call("nvmlDeviceGetComputeRunningProcesses", dev, &n, small), 0,
           "unversioned");
    is_int(sizeof small[0], 16, "entries of 16 bytes");
    is_int(small[0].pid, 101, "first pid");
    is_int(small[1].pid, 102, "second pid");
    is_int(small[1].bytes, 2000, "its memory");
    is_int(small[2].pid, 0x5a5a5a5a, "nothing behind");
    static const char *const wide[] = {"nvmlDeviceGetComputeRunningProcesses_v2",
                                       "nvmlDeviceGetComputeRunningProcesses_v3"};
    for (size_t i = 0; i < 2; i++) {
        memset(large, 0x5a, sizeof large);
        n = 3;
        is_int(call(wide[i], dev, &n, large), 0, "%s", wide[i]);
        is_int(sizeof large[0], 24, "entries of 24 bytes");
        is_int(n, 2, "two of them");
        is_int(large[1].pid, 102, "second pid");
        is_int(large[1].gi, UINT32_MAX, "no instance");
        is_int(large[2].pid, 0x5a5a5a5a, "nothing behind");
    }
    n = 1;
    is_int(call(wide[0], dev, &n, large), 7, "room for one: 7");
    n = 3;
    is_int(call("nvmlDeviceGetGraphicsRunningProcesses", dev, &n, small), 0, "graphics");
    is_int(n, 0, "none");
    n = 3;
    is_int(call("nvmlDeviceGetComputeRunningProcesses", handle(0), &n, small), 0,
           "the idle board");
    is_int(n, 0, "has none");
    n = 0;
    is_int(call("nvmlDeviceGetProcessUtilization", dev, NULL, &n), 7,
           "utilisation: the first call answers 7");
    ok(n >= 2, "and asks for room for %u", n);
}

static void test_structs(void)
{
    struct {
        char legacy[16];
        uint32_t domain, bus, device, id, sub;
        char bus_id[32];
    } pci;
    struct {
        uint32_t version;
        uint64_t total, reserved, free, used;
    } memory = {.version = 0x02000028};
    struct {
        uint32_t field, scope;
        int64_t at, latency;
        uint32_t type, result;
        uint64_t value;
    } v[4] = {{.field = 83}, {.field = 185}, {.field = 186}, {.field = 186, .scope = 1}};
    struct {
        uint32_t version, sensor;
        int32_t c;
    } temp = {.version = 0x0100000c};
    void *dev = handle(0);

    is_int(call("nvmlDeviceGetPciInfo_v3", dev, &pci, NULL), 0, "PCI");
    is_str(pci.bus_id, "00000000:3A:00.0", "bus id");
    is_str(pci.legacy, "0000:3A:00.0", "legacy bus id is filled too");
    is_int(call("nvmlDeviceGetMemoryInfo_v2", dev, &memory, NULL), 0, "memory v2");
    ok(memory.total == 16ull << 30 && memory.used == 1ull << 30, "total and used");
    memory.version = 1;
    is_int(call("nvmlDeviceGetMemoryInfo_v2", dev, &memory, NULL), 25, "another version");
    is_int(call("nvmlDeviceGetFieldValues", dev, (void *)4, v), 0, "field values");
    is_int(v[0].result, 0, "83 is there");
    ok(v[0].value == 9876543210ull && v[0].type == 3, "energy in mJ, 64 bits");
    is_int(v[1].result, 3, "185: this generation has no average");
    is_int(v[2].result, 0, "186 is there");
    is_int(v[2].value, 124000, "instant power");
    is_int(v[3].result, 3, "no module scope");
    is_int(call("nvmlDeviceGetTemperatureV", dev, &temp, NULL), 0, "TemperatureV");
    is_int(temp.c, 55, "55 degrees");
    is_int(call("nvmlDeviceGetC2cModeInfoV", dev, NULL, NULL), 3, "C2C: not supported");
    is_int(call("nvmlDeviceGetMigMode", dev, &memory, &temp), 3, "MIG: not supported");
}

static void test_numbers(void)
{
    unsigned a = 0, b = 0;
    unsigned long long mj = 0;
    void *dev = handle(0), *other = NULL;
    unsigned mhz[200];

    is_int(call("nvmlDeviceGetPowerUsage", dev, &a, NULL), 0, "power");
    is_int(a, 123456, "in mW");
    is_int(call("nvmlDeviceGetTotalEnergyConsumption", dev, &mj, NULL), 0, "energy");
    ok(mj == 9876543210ull, "in mJ");
    (void)call("nvmlDeviceGetEnforcedPowerLimit", dev, &a, NULL);
    (void)call("nvmlDeviceGetPowerManagementLimit", dev, &b, NULL);
    ok(a == 250000 && b == 260000, "enforced and requested are told apart");
    (void)call("nvmlDeviceGetPowerManagementLimitConstraints", dev, &a, &b);
    ok(a == 100000 && b == 300000, "constraints");
    is_int(call("nvmlDeviceGetHandleByUUID", (void *)"GPU-0001", &other, NULL), 0,
           "UUID");
    ok(other == handle(1), "leads to the second board");
    is_int(call("nvmlDeviceGetHandleByPciBusId_v2", (void *)"0000:3b:00.0", &other, NULL),
           0, "a bus id of the old form, small letters");
    ok(other == handle(1), "leads there too");
    is_int(call("nvmlDeviceGetHandleByUUID", (void *)"GPU-9", &other, NULL), 6,
           "an unknown UUID: 6");
    is_int(call("nvmlDeviceGetHandleByIndex_v2", (void *)2, &other, NULL), 2,
           "index 2 of 2: 2");
    is_int(call("nvmlDeviceGetPowerUsage", (void *)page, &a, NULL), 2,
           "a wild handle: 2");
    a = 0;
    is_int(call("nvmlDeviceGetSupportedMemoryClocks", dev, &a, NULL), 7,
           "clocks: 7 first");
    is_int(a, 1, "one memory clock");
    b = 200;
    void *sym = dlsym(lib, "nvmlDeviceGetSupportedGraphicsClocks");
    int (*clocks)(void *, unsigned, unsigned *, unsigned *);
    memcpy(&clocks, &sym, sizeof clocks);
    is_int(clocks(dev, 877, &b, mhz), 0, "graphics clocks");
    is_int(b, 94, "94 of them");
    ok(mhz[0] == 1530 && mhz[93] == 135, "from the highest to the lowest");
}

/* A handle takes calls once its board is attached. */
static void test_attaching(void)
{
    unsigned mw = 0;
    void *dev = NULL, *other = handle(1);

    (void)call("nvmlShutdown", NULL, NULL, NULL);
    is_int(call("nvmlInitWithFlags", (void *)2, NULL, NULL), 0,
           "init, attaching nothing");
    is_int(call("nvmlDeviceGetPowerUsage", other, &mw, NULL), 2, "an old handle: 2");
    is_int(call("nvmlDeviceGetHandleByPciBusId_v2", (void *)"0000:3a:00.0", &dev, NULL),
           0, "a handle by bus id");
    is_int(call("nvmlDeviceGetPowerUsage", dev, &mw, NULL), 0, "takes calls");
    is_int(call("nvmlDeviceGetPowerUsage", other, &mw, NULL), 2, "the other board's not");
    is_int(call("nvmlDeviceGetHandleByUUID", (void *)"GPU-0001", &dev, NULL), 0,
           "a handle by UUID");
    is_int(call("nvmlDeviceGetPowerUsage", other, &mw, NULL), 0, "attaches it");
}

static void test_faults(void)
{
    unsigned mw = 0;
    void *dev = handle(1);

    page->board[1].readings.faults = SIM_FAULT_LOST;
    is_int(call("nvmlDeviceGetPowerUsage", dev, &mw, NULL), 15, "a lost board: 15");
    is_int(call("nvmlDeviceGetPowerUsage", handle(0), &mw, NULL), 0, "not the other");
    void *none = NULL;
    is_int(call("nvmlDeviceGetHandleByIndex_v2", (void *)1, &none, NULL), 15,
           "and it has no handle");
    page->board[1].readings.faults = SIM_FAULT_HANG;
    pid_t pid = fork(); /* the library is fork-safe: the child uses the parent's init */
    if (pid == 0) {
        int r = call("nvmlDeviceGetPowerUsage", dev, &mw, NULL);
        _exit(r == 0 && mw == 123456 ? 0 : 1);
    }
    struct timespec pause = {.tv_nsec = 50000000};
    (void)nanosleep(&pause, NULL);
    int status = -1;
    is_int(waitpid(pid, &status, WNOHANG), 0, "a call on a hanging board waits");
    page->board[1].readings.faults = 0;
    is_int(waitpid(pid, &status, 0), pid, "until it is released");
    is_int(status, 0, "and then answers");
    is_int(call("nvmlDeviceSetPowerManagementLimit", dev, (void *)200000, NULL), 15,
           "nobody takes requests here: 15");
}

/* A call in another process that ends with the power of board 0: 0 where that is mw. */
static pid_t power_asked(unsigned mw)
{
    pid_t pid = fork();

    if (pid == 0) {
        unsigned got = 0;
        int r = call("nvmlDeviceGetPowerUsage", handle(0), &got, NULL);
        _exit(r == 0 && got == mw ? 0 : 1);
    }
    return pid;
}

static void test_late(void)
{
    uint64_t beat = page->beat_ns;
    struct timespec pause = {.tv_nsec = 50000000};
    int status = -1;

    page->beat_ns = boot_ns() - 500000000;
    pid_t pid = power_asked(99000);
    (void)nanosleep(&pause, NULL);
    is_int(waitpid(pid, &status, WNOHANG), 0, "the writer is late: a call waits for it");
    page->board[0].readings.power_mw = 99000;
    page->beat_ns = boot_ns();
    is_int(waitpid(pid, &status, 0), pid, "until it has published");
    is_int(status, 0, "and answers what is published then");

    page->beat_ns = boot_ns();
    page->board[0].readings_seq++;
    pid = power_asked(123456);
    pause.tv_nsec = 500000000;
    (void)nanosleep(&pause, NULL);
    is_int(waitpid(pid, &status, WNOHANG), 0,
           "the writer stands still in mid-change: it waits");
    page->board[0].readings.power_mw = 123456;
    page->board[0].readings_seq++;
    page->beat_ns = beat;
    is_int(waitpid(pid, &status, 0), pid, "until the change is whole");
    is_int(status, 0, "and the board is not lost");
}

static void test_end(void)
{
    unsigned mw;
    void *dev = handle(0);
    struct uw_sim_info info = {.size = sizeof info};

    page->beat_ns = boot_ns() - 5000000000ull;
    is_int(call("nvmlDeviceGetPowerUsage", dev, &mw, NULL), 0,
           "late, but its writer holds the lock");
    (void)close(lock_fd);
    is_int(call("nvmlDeviceGetPowerUsage", dev, &mw, NULL), 15, "the writer was killed");
    is_int(init(), 9, "init: driver not loaded");
    is_int(call("uw_sim_info", &info, NULL, NULL), 9, "uw_sim_info says so");
    is_int(info.simulated, UW_SIM_SIMULATED, "but simulated it is");
    page->beat_ns = boot_ns();
    is_int(init(), 0, "a sign of life, and it is back");
    page->stopped = 1;
    is_int(call("nvmlDeviceGetPowerUsage", dev, &mw, NULL), 15, "stopped");
    is_int(init(), 9, "init: driver not loaded");
    is_int(call("nvmlShutdown", NULL, NULL, NULL), 0, "shutdown");
    is_int(call("nvmlShutdown", NULL, NULL, NULL), 0, "counted");
    is_int(call("nvmlShutdown", NULL, NULL, NULL), 1, "down");
}

int main(int argc, char **argv)
{
    if (argc < 2 || !make_world(argv[1])) {
        printf("Bail out! no world in %s: %s\n", dir, strerror(errno));
        return 1;
    }
    test_before_init();
    test_processes();
    test_structs();
    test_numbers();
    test_attaching();
    test_faults();
    test_late();
    test_end();
    remove_world();
    return done();
}
