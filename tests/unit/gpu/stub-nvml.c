/* STUB_GEN: 0 the seven mandatory functions under their oldest names, 450, 535,
 * 580, or 1: one mandatory function is missing; 2: driver 450 without uw_sim_info.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stub.h"
#include "underwatt/sim.h"

#define API __attribute__((visibility("default")))
#define GEN_450 (STUB_GEN >= 450 || STUB_GEN == 2)
#define GEN_535 (STUB_GEN >= 535)
#define GEN_580 (STUB_GEN >= 580)

API struct stub stub;

static struct stub_board *at(void *dev)
{
    struct stub_board *b = dev;

    while (atomic_load(&b->hang))
        (void)usleep(2000);
    return b;
}

static unsigned number(const struct stub_board *b)
{
    return (unsigned)(b - stub.board);
}

#define OR(b, what) ((b)->all ? (b)->all : (b)->what)

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#if STUB_GEN != 2
API int uw_sim_info(struct uw_sim_info *info)
{
    info->simulated = UW_SIM_SIMULATED;
    info->load_id = stub.load_id;
    info->world_id = 7;
    (void)snprintf(info->clock, sizeof info->clock, "0:1");
    (void)snprintf(info->state_dir, sizeof info->state_dir, "/nowhere");
    return 0;
}
#endif

#if STUB_GEN == 0
#define INIT nvmlInit
#define COUNT nvmlDeviceGetCount
#define BY_INDEX nvmlDeviceGetHandleByIndex
#else
#define INIT nvmlInit_v2
#define COUNT nvmlDeviceGetCount_v2
#define BY_INDEX nvmlDeviceGetHandleByIndex_v2
#endif

API unsigned INIT(void)
{
    atomic_fetch_add(&stub.inits, 1);
    return stub.init;
}

API unsigned nvmlShutdown(void)
{
    atomic_fetch_add(&stub.shutdowns, 1);
    atomic_store(&stub.attached, 0);
    return 0;
}

API unsigned COUNT(unsigned *n)
{
    *n = stub.n;
    return 0;
}

API unsigned BY_INDEX(unsigned i, void **dev)
{
    if (i >= stub.n)
        return 2;
    struct stub_board *b = at(&stub.board[i]);
    *dev = b;
    atomic_fetch_or(&stub.attached, 1ull << i);
    return b->by_index;
}

#if GEN_450
API unsigned nvmlInitWithFlags(unsigned flags)
{
    atomic_fetch_add(&stub.inits, 1);
    atomic_store(&stub.bare, flags == 2);
    return stub.init;
}

API unsigned nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **dev)
{
    unsigned i = 0;

    if (sscanf(bus, "00000000:%2X:00.0", &i) != 1 || i >= stub.n)
        return 6;
    return BY_INDEX(i, dev);
}
#endif

API unsigned nvmlDeviceGetUUID(void *dev, char *text, unsigned size)
{
    struct stub_board *b = at(dev);

    if (b->uuid == STUB_MIG) {
        (void)snprintf(text, size, "MIG-5c");
        return 0;
    }
    if (b->uuid)
        return b->uuid;
    (void)snprintf(text, size, "GPU-%08x-0000-0000-0000-00000000%04x",
                   number(b) * 0x01010101, number(b));
    return 0;
}

API unsigned nvmlDeviceGetName(void *dev, char *text, unsigned size)
{
    struct stub_board *b = at(dev);

    if (stub.name)
        (void)snprintf(text, size, "%s", stub.name);
    else
        (void)snprintf(text, size, "Stub %u", number(b));
    return b->all;
}

#if STUB_GEN != 1
API unsigned nvmlDeviceGetPowerUsage(void *dev, unsigned *mw)
{
    struct stub_board *b = at(dev);

    *mw = b->power_mw;
    return b->all;
}
#endif

#if GEN_450
API const char *nvmlErrorString(unsigned r)
{
    return r == 999 ? "" : r == 4 ? "Insufficient Permissions" : "Stub says no";
}

API unsigned nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    (void)snprintf(text, size, "%s", stub.driver ? stub.driver : "450.80.02");
    return 0;
}

API unsigned nvmlSystemGetNVMLVersion(char *text, unsigned size)
{
    (void)snprintf(text, size, "11.450");
    return 0;
}

API unsigned nvmlDeviceGetArchitecture(void *dev, unsigned *arch)
{
    (void)at(dev);
    *arch = 5;
    return 0;
}

API unsigned nvmlDeviceGetPciInfo_v3(void *dev, char *pci)
{
    struct stub_board *b = at(dev);

    memset(pci, 0, 68);
    (void)snprintf(pci + 36, 32, "00000000:%02X:00.0", number(b));
    return 0;
}

API unsigned nvmlDeviceGetTotalEnergyConsumption(void *dev, unsigned long long *mj)
{
    struct stub_board *b = at(dev);

    *mj = b->energy_mj;
    return OR(b, energy);
}

struct field {
    uint32_t id, scope;
    int64_t at, took;
    uint32_t type, result;
    uint64_t value;
};

API unsigned nvmlDeviceGetFieldValues(void *dev, int n, struct field *f)
{
    struct stub_board *b = at(dev);

    for (int i = 0; i < n; i++) {
        f[i].type = 1;
        f[i].result = GEN_535 ? b->field : 3;
        f[i].value = f[i].id == 185 ? b->average_mw : b->instant_mw;
        if (f[i].scope != 0 || (f[i].id != 185 && f[i].id != 186))
            f[i].result = 2;
    }
    return OR(b, fields);
}

API unsigned nvmlDeviceGetPowerManagementLimitConstraints(void *dev, unsigned *min,
                                                          unsigned *max)
{
    struct stub_board *b = at(dev);

    *min = b->min_mw;
    *max = b->max_mw;
    return OR(b, constraints);
}

API unsigned nvmlDeviceGetPowerManagementDefaultLimit(void *dev, unsigned *mw)
{
    struct stub_board *b = at(dev);

    *mw = b->default_mw;
    return OR(b, constraints);
}

API unsigned nvmlDeviceGetPowerManagementLimit(void *dev, unsigned *mw)
{
    struct stub_board *b = at(dev);

    *mw = b->requested_mw;
    return OR(b, enforced);
}

API unsigned nvmlDeviceGetEnforcedPowerLimit(void *dev, unsigned *mw)
{
    struct stub_board *b = at(dev);

    *mw = b->enforced_mw;
    return OR(b, enforced);
}

static unsigned set(struct stub_board *b, unsigned mw)
{
    if (b->all || b->set)
        return OR(b, set);
    if (mw < b->min_mw || mw > b->max_mw)
        return 2;
    b->requested_mw = b->enforced_mw = mw;
    return 0;
}

#if GEN_580
struct power_value {
    uint32_t version;
    uint8_t scope;
    uint32_t mw;
};

API unsigned nvmlDeviceSetPowerManagementLimit_v2(void *dev, const struct power_value *v)
{
    if (v->version != 0x0200000c || v->scope != 0)
        return 25;
    stub.last_call_v2 = 1;
    return set(at(dev), v->mw);
}

struct temperature {
    uint32_t version, sensor;
    int32_t c;
};

API unsigned nvmlDeviceGetTemperatureV(void *dev, struct temperature *t)
{
    struct stub_board *b = at(dev);

    if (t->version != 0x0100000c || t->sensor != 0)
        return 25;
    t->c = -3;
    return OR(b, temp);
}
#else
API unsigned nvmlDeviceSetPowerManagementLimit(void *dev, unsigned mw)
{
    stub.last_call_v2 = 0;
    return set(at(dev), mw);
}

API unsigned nvmlDeviceGetTemperature(void *dev, unsigned sensor, unsigned *c)
{
    struct stub_board *b = at(dev);

    *c = 61;
    return sensor ? 2 : OR(b, temp);
}
#endif

API unsigned nvmlDeviceSetGpuLockedClocks(void *dev, unsigned min, unsigned max)
{
    struct stub_board *b = at(dev);

    if (b->all || b->set)
        return OR(b, set);
    b->locked_min = min;
    b->locked_max = max;
    return 0;
}

API unsigned nvmlDeviceResetGpuLockedClocks(void *dev)
{
    struct stub_board *b = at(dev);

    b->locked_min = b->locked_max = 0;
    return OR(b, set);
}

API unsigned nvmlDeviceGetClockInfo(void *dev, unsigned type, unsigned *mhz)
{
    struct stub_board *b = at(dev);

    *mhz = type == 1 ? 1380 : 877;
    return OR(b, clock);
}

API unsigned nvmlDeviceGetMaxClockInfo(void *dev, unsigned type, unsigned *mhz)
{
    (void)at(dev);
    *mhz = type == 1 ? 1530 : 877;
    return 0;
}

#if GEN_535
API unsigned nvmlDeviceGetCurrentClocksEventReasons(void *dev, unsigned long long *bits)
#else
API unsigned nvmlDeviceGetCurrentClocksThrottleReasons(void *dev,
                                                       unsigned long long *bits)
#endif
{
    struct stub_board *b = at(dev);

    *bits = b->reason_bits;
    return OR(b, reasons);
}

struct utilization {
    uint32_t gpu, memory;
};

API unsigned nvmlDeviceGetUtilizationRates(void *dev, struct utilization *u)
{
    struct stub_board *b = at(dev);

    u->gpu = 88;
    u->memory = 44;
    return OR(b, util);
}

API unsigned nvmlDeviceGetPersistenceMode(void *dev, unsigned *on)
{
    *on = at(dev)->persistence;
    return 0;
}

API unsigned nvmlDeviceGetMigMode(void *dev, unsigned *on, unsigned *pending)
{
    *on = *pending = at(dev)->mig;
    return 0;
}

/* Two slices, with a gap between them. */
API unsigned nvmlDeviceGetMaxMigDeviceCount(void *dev, unsigned *n)
{
    (void)at(dev);
    *n = 7;
    return 0;
}

API unsigned nvmlDeviceGetMigDeviceHandleByIndex(void *dev, unsigned i, void **slice)
{
    static struct stub_board none;

    (void)at(dev);
    none.uuid = STUB_MIG;
    *slice = &none;
    return i == 1 || i == 3 ? 0 : 6;
}

API unsigned nvmlDeviceGetGpuInstanceId(void *dev, unsigned *id)
{
    (void)at(dev);
    *id = 9;
    return 0;
}

/* stride: bytes an entry; every byte of it is written, as the driver does. */
static unsigned list(struct stub_board *b, const struct stub_proc *p, unsigned have,
                     size_t stride, unsigned *n, char *to)
{
    unsigned room = *n;

    if (b->all || b->procs)
        return OR(b, procs);
    *n = have;
    if (have == 0)
        return 0;
    if (to && b->grow) { /* somebody came in between */
        have += b->grow;
        b->grow = 0;
        *n = have;
    }
    if (!to || room < have)
        return 7;
    for (unsigned i = 0; i < have; i++) {
        memset(to + i * stride, 0xee, stride);
        memcpy(to + i * stride, &p[i].pid, 4);
        memcpy(to + i * stride + 8, &p[i].bytes, 8);
    }
    return 0;
}

API unsigned nvmlDeviceGetComputeRunningProcesses(void *dev, unsigned *n, char *to)
{
    struct stub_board *b = at(dev);

    return list(b, b->compute, b->n_compute, 16, n, to);
}

API unsigned nvmlDeviceGetGraphicsRunningProcesses(void *dev, unsigned *n, char *to)
{
    struct stub_board *b = at(dev);

    return list(b, b->graphics, b->n_graphics, 16, n, to);
}
#endif

#if GEN_535
API unsigned nvmlDeviceGetComputeRunningProcesses_v2(void *dev, unsigned *n, char *to)
{
    struct stub_board *b = at(dev);

    return list(b, b->compute, b->n_compute, 24, n, to);
}

API unsigned nvmlDeviceGetComputeRunningProcesses_v3(void *dev, unsigned *n, char *to)
{
    struct stub_board *b = at(dev);
    int odd = stub.driver && strncmp(stub.driver, "535.54", 6) == 0;

    return list(b, b->compute, b->n_compute, odd ? 32 : 24, n, to);
}

API unsigned nvmlDeviceGetGraphicsRunningProcesses_v3(void *dev, unsigned *n, char *to)
{
    struct stub_board *b = at(dev);

    return list(b, b->graphics, b->n_graphics, 24, n, to);
}
#endif
