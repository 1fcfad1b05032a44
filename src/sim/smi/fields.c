#include "sim/smi/fields.h"

#include <string.h>
#include <time.h>

#include "base/auto.h"

struct smi_field {
    const char *name;
    const char *also[2];
    const char *unit;
    int (*get)(const struct smi *smi, nv_device dev, const struct smi_field *field,
               char ret[SMI_TEXT]);
    const char *function; /* of the library */
    unsigned which;
};

enum { MIB_SHIFT = 20 };

/* ---- common forms ---- */

static void put(char ret[SMI_TEXT], unsigned value)
{
    (void)snprintf(ret, SMI_TEXT, "%u", value);
}

static int text(const struct smi *smi, nv_device dev, const struct smi_field *field,
                char ret[SMI_TEXT])
{
    return smi_text(smi, dev, field->function, ret);
}

static int number(const struct smi *smi, nv_device dev, const struct smi_field *field,
                  char ret[SMI_TEXT])
{
    unsigned v = 0;
    int r = smi_u32(smi, dev, field->function, &v);

    put(ret, v);
    return r;
}

static int number_of(const struct smi *smi, nv_device dev, const struct smi_field *field,
                     char ret[SMI_TEXT])
{
    unsigned v = 0;
    int r = smi_u32_of(smi, dev, field->function, field->which, &v);

    put(ret, v);
    return r;
}

static int pstate(const struct smi *smi, nv_device dev, const struct smi_field *field,
                  char ret[SMI_TEXT])
{
    unsigned v = 0;
    int r = smi_u32(smi, dev, field->function, &v);

    (void)snprintf(ret, SMI_TEXT, "P%u", v);
    return r;
}

static int enabled(const struct smi *smi, nv_device dev, const struct smi_field *field,
                   char ret[SMI_TEXT])
{
    unsigned v = 0;
    int r = smi_u32(smi, dev, field->function, &v);

    (void)snprintf(ret, SMI_TEXT, "%s", v ? "Enabled" : "Disabled");
    return r;
}

static int compute_mode(const struct smi *smi, nv_device dev,
                        const struct smi_field *field, char ret[SMI_TEXT])
{
    static const char *const modes[] = {"Default", "Exclusive_Thread", "Prohibited",
                                        "Exclusive_Process"};
    unsigned v = 0;
    int r = smi_u32(smi, dev, field->function, &v);

    (void)snprintf(ret, SMI_TEXT, "%s", modes[v % n_elements(modes)]);
    return r;
}

/* The first or second of two modes. */
static int mode_pair(const struct smi *smi, nv_device dev, const struct smi_field *field,
                     char ret[SMI_TEXT])
{
    unsigned v[2] = {0, 0};
    int r = smi_pair(smi, dev, field->function, &v[0], &v[1]);

    (void)snprintf(ret, SMI_TEXT, "%s", v[field->which] ? "Enabled" : "Disabled");
    return r;
}

static int number_pair(const struct smi *smi, nv_device dev,
                       const struct smi_field *field, char ret[SMI_TEXT])
{
    unsigned v[2] = {0, 0};
    int r = smi_pair(smi, dev, field->function, &v[0], &v[1]);

    put(ret, v[field->which]);
    return r;
}

static int compute_cap(const struct smi *smi, nv_device dev,
                       const struct smi_field *field, char ret[SMI_TEXT])
{
    unsigned v[2] = {0, 0};
    int r = smi_pair(smi, dev, field->function, &v[0], &v[1]);

    (void)snprintf(ret, SMI_TEXT, "%u.%u", v[0], v[1]);
    return r;
}

/* ---- power ---- */

static void put_watts(char ret[SMI_TEXT], unsigned mw)
{
    (void)snprintf(ret, SMI_TEXT, "%u.%02u", (mw + 5) / 1000, (mw + 5) % 1000 / 10);
}

static int watts(const struct smi *smi, nv_device dev, const struct smi_field *field,
                 char ret[SMI_TEXT])
{
    unsigned mw = 0;
    int r = smi_u32(smi, dev, field->function, &mw);

    put_watts(ret, mw);
    return r;
}

static int watts_pair(const struct smi *smi, nv_device dev, const struct smi_field *field,
                      char ret[SMI_TEXT])
{
    unsigned mw[2] = {0, 0};
    int r = smi_pair(smi, dev, field->function, &mw[0], &mw[1]);

    put_watts(ret, mw[field->which]);
    return r;
}

/* One of nvmlDeviceGetFieldValues, in mW. */
static int watts_field(const struct smi *smi, nv_device dev,
                       const struct smi_field *field, char ret[SMI_TEXT])
{
    typedef int (*values_fn)(nv_device, int, struct nv_field_value *);
    struct nv_field_value v = {.field = field->which};
    values_fn call = (values_fn)smi_find(smi, field->function);

    int r = call ? call(dev, 1, &v) : SMI_NO_FUNCTION;
    put_watts(ret, v.value.u32);
    return r ? r : (int)v.result;
}

static int energy(const struct smi *smi, nv_device dev, const struct smi_field *field,
                  char ret[SMI_TEXT])
{
    typedef int (*energy_fn)(nv_device, unsigned long long *);
    energy_fn call = (energy_fn)smi_find(smi, field->function);
    unsigned long long mj = 0;

    int r = call ? call(dev, &mj) : SMI_NO_FUNCTION;
    (void)snprintf(ret, SMI_TEXT, "%llu", mj);
    return r;
}

/* which: the bit; 0: all of them in hexadecimal. */
static int reasons(const struct smi *smi, nv_device dev, const struct smi_field *field,
                   char ret[SMI_TEXT])
{
    typedef int (*reasons_fn)(nv_device, unsigned long long *);
    reasons_fn call = (reasons_fn)smi_find(smi, field->function);
    unsigned long long bits = 0;

    int r = call ? call(dev, &bits) : SMI_NO_FUNCTION;
    if (field->which)
        (void)snprintf(ret, SMI_TEXT, "%s",
                       bits & field->which ? "Active" : "Not Active");
    else
        (void)snprintf(ret, SMI_TEXT, "0x%016llX", bits);
    return r;
}

/* ---- memory, load, bus ---- */

/* which: 0 total, 1 free, 2 used. */
static int memory(const struct smi *smi, nv_device dev, const struct smi_field *field,
                  char ret[SMI_TEXT])
{
    typedef int (*memory_fn)(nv_device, struct nv_memory *);
    memory_fn call = (memory_fn)smi_find(smi, field->function);
    struct nv_memory m = {0, 0, 0};

    int r = call ? call(dev, &m) : SMI_NO_FUNCTION;
    uint64_t bytes = field->which == 0 ? m.total : field->which == 1 ? m.free : m.used;
    (void)snprintf(ret, SMI_TEXT, "%llu", (unsigned long long)(bytes >> MIB_SHIFT));
    return r;
}

static int load(const struct smi *smi, nv_device dev, const struct smi_field *field,
                char ret[SMI_TEXT])
{
    typedef int (*load_fn)(nv_device, struct nv_utilization *);
    load_fn call = (load_fn)smi_find(smi, field->function);
    struct nv_utilization u = {0, 0};

    int r = call ? call(dev, &u) : SMI_NO_FUNCTION;
    put(ret, field->which ? u.memory : u.gpu);
    return r;
}

enum { BUS_ID, BUS_DOMAIN, BUS_BUS, BUS_DEVICE, BUS_DEVICE_ID, BUS_SUBSYSTEM_ID };

static int bus(const struct smi *smi, nv_device dev, const struct smi_field *field,
               char ret[SMI_TEXT])
{
    typedef int (*pci_fn)(nv_device, struct nv_pci *);
    pci_fn call = (pci_fn)smi_find(smi, field->function);
    struct nv_pci p = {.bus = 0};

    int r = call ? call(dev, &p) : SMI_NO_FUNCTION;
    if (field->which == BUS_ID)
        (void)snprintf(ret, SMI_TEXT, "%s", p.bus_id);
    else if (field->which == BUS_DOMAIN)
        (void)snprintf(ret, SMI_TEXT, "0x%04X", p.domain);
    else if (field->which == BUS_BUS || field->which == BUS_DEVICE)
        (void)snprintf(ret, SMI_TEXT, "0x%02X",
                       field->which == BUS_BUS ? p.bus : p.device);
    else
        (void)snprintf(ret, SMI_TEXT, "0x%08X",
                       field->which == BUS_DEVICE_ID ? p.device_id : p.subsystem_id);
    return r;
}

/* ---- of the node ---- */

/* Now by the user's calendar; the milliseconds of the second. */
static long now(struct tm *ret)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_REALTIME, &at);
    if (!localtime_r(&at.tv_sec, ret))
        *ret = (struct tm){.tm_mday = 1};
    return at.tv_nsec / 1000000;
}

void smi_stamp(char ret[SMI_TEXT])
{
    struct tm tm;
    long ms = now(&tm);
    size_t n = strftime(ret, SMI_TEXT, "%Y/%m/%d %H:%M:%S", &tm);

    (void)snprintf(ret + n, SMI_TEXT - n, ".%03ld", ms);
}

void smi_date(char ret[SMI_TEXT])
{
    struct tm tm;

    (void)now(&tm);
    (void)strftime(ret, SMI_TEXT, "%a %b %e %H:%M:%S %Y", &tm);
}

enum { NODE_TIME, NODE_DRIVER, NODE_COUNT };

static int node(const struct smi *smi, nv_device dev, const struct smi_field *field,
                char ret[SMI_TEXT])
{
    char cuda[SMI_TEXT];

    (void)dev;
    if (field->which == NODE_TIME)
        smi_stamp(ret);
    else if (field->which == NODE_DRIVER)
        smi_versions(smi, ret, cuda);
    else
        put(ret, smi->n);
    return 0;
}

/* A value that no simulated board has. */
static int none(const struct smi *smi, nv_device dev, const struct smi_field *field,
                char ret[SMI_TEXT])
{
    unsigned v;

    (void)ret;
    return field->function ? smi_u32(smi, dev, field->function, &v) : SIM_NOT_SUPPORTED;
}

/* clang-format off */
#define LIMITS "nvmlDeviceGetPowerManagementLimitConstraints"
#define VALUES "nvmlDeviceGetFieldValues"
#define REASONS "nvmlDeviceGetCurrentClocksEventReasons"
#define CLOCK "nvmlDeviceGetClockInfo"
#define MAX_CLOCK "nvmlDeviceGetMaxClockInfo"
#define PCI "nvmlDeviceGetPciInfo_v3"
#define REASON(name, bit) \
    {"clocks_event_reasons." name, {"clocks_throttle_reasons." name}, "", reasons, REASONS, bit}
static const struct smi_field fields[] = {
    {"timestamp", {0}, "", node, NULL, NODE_TIME},
    {"driver_version", {0}, "", node, NULL, NODE_DRIVER},
    {"count", {0}, "", node, NULL, NODE_COUNT},
    {"index", {0}, "", number, "nvmlDeviceGetIndex", 0},
    {"name", {"gpu_name"}, "", text, "nvmlDeviceGetName", 0},
    {"serial", {"gpu_serial"}, "", text, "nvmlDeviceGetSerial", 0},
    {"uuid", {"gpu_uuid"}, "", text, "nvmlDeviceGetUUID", 0},
    {"vbios_version", {0}, "", text, "nvmlDeviceGetVbiosVersion", 0},
    {"pci.bus_id", {"gpu_bus_id"}, "", bus, PCI, BUS_ID},
    {"pci.domain", {0}, "", bus, PCI, BUS_DOMAIN},
    {"pci.bus", {0}, "", bus, PCI, BUS_BUS},
    {"pci.device", {0}, "", bus, PCI, BUS_DEVICE},
    {"pci.device_id", {0}, "", bus, PCI, BUS_DEVICE_ID},
    {"pci.sub_device_id", {0}, "", bus, PCI, BUS_SUBSYSTEM_ID},
    {"pcie.link.gen.current", {"pcie.link.gen.gpucurrent"}, "", number, "nvmlDeviceGetCurrPcieLinkGeneration", 0},
    {"pcie.link.gen.max", {"pcie.link.gen.gpumax"}, "", number, "nvmlDeviceGetMaxPcieLinkGeneration", 0},
    {"pcie.link.width.current", {0}, "", number, "nvmlDeviceGetCurrPcieLinkWidth", 0},
    {"pcie.link.width.max", {0}, "", number, "nvmlDeviceGetMaxPcieLinkWidth", 0},
    {"display_mode", {0}, "", enabled, "nvmlDeviceGetDisplayMode", 0},
    {"display_active", {0}, "", enabled, "nvmlDeviceGetDisplayActive", 0},
    {"persistence_mode", {0}, "", enabled, "nvmlDeviceGetPersistenceMode", 0},
    {"accounting.mode", {0}, "", none, "nvmlDeviceGetAccountingMode", 0},
    {"fan.speed", {0}, "%", number, "nvmlDeviceGetFanSpeed", 0},
    {"pstate", {0}, "", pstate, "nvmlDeviceGetPerformanceState", 0},
    {"compute_mode", {0}, "", compute_mode, "nvmlDeviceGetComputeMode", 0},
    {"compute_cap", {0}, "", compute_cap, "nvmlDeviceGetCudaComputeCapability", 0},
    {"mig.mode.current", {0}, "", mode_pair, "nvmlDeviceGetMigMode", 0},
    {"mig.mode.pending", {0}, "", mode_pair, "nvmlDeviceGetMigMode", 1},
    {"ecc.mode.current", {0}, "", none, "nvmlDeviceGetEccMode", 0},
    {"ecc.mode.pending", {0}, "", none, "nvmlDeviceGetEccMode", 0},
    {"memory.total", {0}, "MiB", memory, "nvmlDeviceGetMemoryInfo", 0},
    {"memory.free", {0}, "MiB", memory, "nvmlDeviceGetMemoryInfo", 1},
    {"memory.used", {0}, "MiB", memory, "nvmlDeviceGetMemoryInfo", 2},
    {"utilization.gpu", {0}, "%", load, "nvmlDeviceGetUtilizationRates", 0},
    {"utilization.memory", {0}, "%", load, "nvmlDeviceGetUtilizationRates", 1},
    {"utilization.encoder", {0}, "%", number_pair, "nvmlDeviceGetEncoderUtilization", 0},
    {"utilization.decoder", {0}, "%", number_pair, "nvmlDeviceGetDecoderUtilization", 0},
    {"temperature.gpu", {0}, "", number_of, "nvmlDeviceGetTemperature", 0},
    {"temperature.memory", {0}, "", none, NULL, 0},
    {"power.management", {0}, "", enabled, "nvmlDeviceGetPowerManagementMode", 0},
    {"power.draw", {0}, "W", watts, "nvmlDeviceGetPowerUsage", 0},
    {"power.draw.average", {0}, "W", watts_field, VALUES, NV_FIELD_POWER_AVERAGE},
    {"power.draw.instant", {0}, "W", watts_field, VALUES, NV_FIELD_POWER_INSTANT},
    {"power.limit", {0}, "W", watts, "nvmlDeviceGetPowerManagementLimit", 0},
    {"enforced.power.limit", {0}, "W", watts, "nvmlDeviceGetEnforcedPowerLimit", 0},
    {"power.default_limit", {0}, "W", watts, "nvmlDeviceGetPowerManagementDefaultLimit", 0},
    {"power.min_limit", {0}, "W", watts_pair, LIMITS, 0},
    {"power.max_limit", {0}, "W", watts_pair, LIMITS, 1},
    {"total_energy_consumption", {0}, "mJ", energy, "nvmlDeviceGetTotalEnergyConsumption", 0},
    {"clocks.current.graphics", {"clocks.gr"}, "MHz", number_of, CLOCK, NV_CLOCK_GRAPHICS},
    {"clocks.current.sm", {"clocks.sm"}, "MHz", number_of, CLOCK, NV_CLOCK_SM},
    {"clocks.current.memory", {"clocks.mem"}, "MHz", number_of, CLOCK, NV_CLOCK_MEM},
    {"clocks.current.video", {"clocks.video"}, "MHz", number_of, CLOCK, NV_CLOCK_VIDEO},
    {"clocks.max.graphics", {"clocks.max.gr"}, "MHz", number_of, MAX_CLOCK, NV_CLOCK_GRAPHICS},
    {"clocks.max.sm", {0}, "MHz", number_of, MAX_CLOCK, NV_CLOCK_SM},
    {"clocks.max.memory", {"clocks.max.mem"}, "MHz", number_of, MAX_CLOCK, NV_CLOCK_MEM},
    REASON("active", 0),
    REASON("gpu_idle", 0x1),
    REASON("applications_clocks_setting", 0x2),
    REASON("sw_power_cap", 0x4),
    REASON("hw_slowdown", 0x8),
    REASON("sync_boost", 0x10),
    REASON("sw_thermal_slowdown", 0x20),
    REASON("hw_thermal_slowdown", 0x40),
    REASON("hw_power_brake_slowdown", 0x80),
    /* of -q alone: no list names them */
    {"q:minor", {0}, "", number, "nvmlDeviceGetMinorNumber", 0},
    {"q:shutdown", {0}, "C", number_of, "nvmlDeviceGetTemperatureThreshold", 0},
    {"q:slowdown", {0}, "C", number_of, "nvmlDeviceGetTemperatureThreshold", 1},
    {"q:temperature", {0}, "C", number_of, "nvmlDeviceGetTemperature", 0},
};
/* clang-format on */

const struct smi_field *smi_field(const char *name)
{
    for (size_t i = 0; i < n_elements(fields); i++) {
        const struct smi_field *f = &fields[i];
        if (strcmp(f->name, name) == 0)
            return f;
        for (size_t k = 0; k < n_elements(f->also) && f->also[k]; k++)
            if (strcmp(f->also[k], name) == 0)
                return f;
    }
    return NULL;
}

const char *smi_field_name(const struct smi_field *field)
{
    return field->name;
}

const char *smi_field_unit(const struct smi_field *field)
{
    return field->unit;
}

int smi_field_get(const struct smi_field *field, const struct smi *smi, nv_device dev,
                  char ret[SMI_TEXT])
{
    ret[0] = '\0';
    return field->get(smi, dev, field, ret);
}

const char *smi_no_value(int result)
{
    switch (result) {
    case SIM_NOT_SUPPORTED:
    case SMI_NO_FUNCTION:
        return "[N/A]";
    case SIM_NO_PERMISSION:
        return "[Insufficient Permissions]";
    case SIM_LOST:
        return "[GPU is lost]";
    default:
        return "[Unknown Error]";
    }
}

void smi_field_show(const struct smi_field *field, const struct smi *smi, nv_device dev,
                    bool units, char ret[SMI_TEXT])
{
    int r = smi_field_get(field, smi, dev, ret);
    size_t n = strlen(ret);

    if (r)
        (void)snprintf(ret, SMI_TEXT, "%s", smi_no_value(r));
    else if (units && field->unit[0])
        (void)snprintf(ret + n, SMI_TEXT - n, " %s", field->unit);
}

void smi_fields_print(FILE *to)
{
    for (size_t i = 0; i < n_elements(fields); i++) {
        if (strncmp(fields[i].name, "q:", 2) == 0)
            continue;
        (void)fprintf(to, "\"%s\"", fields[i].name);
        for (size_t k = 0; k < n_elements(fields[i].also) && fields[i].also[k]; k++)
            (void)fprintf(to, " or \"%s\"", fields[i].also[k]);
        (void)fputc('\n', to);
    }
}
