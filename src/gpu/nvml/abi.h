/* The part of NVML that Underwatt uses, loaded at run time.  Layouts and numbers follow
 * the NVML API Reference Manual; no vendor header is copied.  Supports drivers from 450.
 */
#ifndef GPU_NVML_ABI_H
#define GPU_NVML_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"
#include "underwatt/sim.h"

typedef void *nvml_device;
typedef unsigned nvml_result; /* 0, or an error, see nvml_fail() */

/* The results that callers compare with; nvml_fail() handles all others. */
enum {
    NVML_OK = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_DEPRECATED = 26,
};

enum {
    NVML_INIT_NO_ATTACH = 2,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_TEMPERATURE_GPU = 0,
    NVML_FI_TOTAL_ENERGY = 83,
    NVML_FI_POWER_AVERAGE = 185,
    NVML_FI_POWER_INSTANT = 186,
    NVML_FI_POWER_CURRENT_LIMIT = 190, /* the enforced limit */
    NVML_FI_POWER_REQUESTED_LIMIT = 192,
};

struct nvml_field_value {
    uint32_t field;
    uint32_t scope; /* 0: the GPU */
    int64_t timestamp_us;
    int64_t latency_us;
    uint32_t type;
    nvml_result result;
    union {
        double d;
        uint32_t u32;
        uint64_t u64;
    } value;
};
_Static_assert(sizeof(struct nvml_field_value) == 40, "nvmlFieldValue_t");
enum { /* nvml_field_value.type */
       NVML_VALUE_DOUBLE = 0,
       NVML_VALUE_UINT = 1,
       NVML_VALUE_ULONG = 2,
       NVML_VALUE_ULONGLONG = 3,
};

struct nvml_pci { /* of _v3; in _v2, reserved words take the place of bus_id */
    char bus_id_legacy[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci) == 68, "nvmlPciInfo_t");

/* Of nvmlDeviceGetViolationStatus. */
enum { NVML_PERF_POLICY_POWER = 0 };
struct nvml_violation {
    uint64_t reference_us, violation_ns;
};

struct nvml_utilization {
    uint32_t gpu, memory;
};

struct nvml_temperature {
    uint32_t version, sensor;
    int32_t temperature_c;
};
#define NVML_TEMPERATURE_V1 0x0100000cu

struct nvml_power_value {
    uint32_t version;
    uint8_t scope; /* 0: the GPU */
    uint32_t mw;
};
#define NVML_POWER_VALUE_V2 0x0200000cu
_Static_assert(sizeof(struct nvml_power_value) == 12, "nvmlPowerValue_v2_t");

struct nvml_proc_v1 { /* the unversioned process lists */
    uint32_t pid;
    uint64_t used_bytes;
};
_Static_assert(sizeof(struct nvml_proc_v1) == 16, "nvmlProcessInfo_v1_t");

struct nvml_proc_v2 { /* _v2 and _v3 */
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nvml_proc_v2) == 24, "nvmlProcessInfo_v2_t");

struct nvml_proc_util {
    uint32_t pid;
    uint64_t at_us;             /* UTC */
    uint32_t sm, mem, enc, dec; /* percent */
};
_Static_assert(sizeof(struct nvml_proc_util) == 32, "nvmlProcessUtilizationSample_t");

/* The three versions of a process list call. */
struct nvml_proc_calls {
    nvml_result (*v3)(nvml_device, unsigned *, void *);
    nvml_result (*v2)(nvml_device, unsigned *, void *);
    nvml_result (*v1)(nvml_device, unsigned *, void *);
};

/* Optional functions are NULL if the library lacks them. */
struct nvml_abi {
    void *handle; /* dlopen's */
    uw_sim_info_fn sim_info;

    /* Mandatory. */
    nvml_result (*init)(void);
    nvml_result (*shutdown)(void);
    nvml_result (*count)(unsigned *);
    nvml_result (*by_index)(unsigned, nvml_device *);
    nvml_result (*uuid)(nvml_device, char *, unsigned);
    nvml_result (*name)(nvml_device, char *, unsigned);
    nvml_result (*power_usage)(nvml_device, unsigned *);

    nvml_result (*init_flags)(unsigned);
    nvml_result (*by_bus)(const char *, nvml_device *);
    const char *(*error_string)(nvml_result);
    nvml_result (*driver_version)(char *, unsigned);
    nvml_result (*nvml_version)(char *, unsigned);
    nvml_result (*architecture)(nvml_device, unsigned *);
    nvml_result (*compute_capability)(nvml_device, int *, int *);
    nvml_result (*minor)(nvml_device, unsigned *);
    nvml_result (*pci_v3)(nvml_device, struct nvml_pci *);
    nvml_result (*pci_v2)(nvml_device, struct nvml_pci *);
    nvml_result (*energy)(nvml_device, unsigned long long *);
    nvml_result (*field_values)(nvml_device, int, struct nvml_field_value *);
    nvml_result (*constraints)(nvml_device, unsigned *, unsigned *);
    nvml_result (*default_limit)(nvml_device, unsigned *);
    nvml_result (*requested_limit)(nvml_device, unsigned *);
    nvml_result (*enforced_limit)(nvml_device, unsigned *);
    nvml_result (*set_limit)(nvml_device, unsigned);
    nvml_result (*set_limit_v2)(nvml_device, struct nvml_power_value *);
    nvml_result (*lock_clocks)(nvml_device, unsigned, unsigned);
    nvml_result (*reset_clocks)(nvml_device);
    nvml_result (*clock)(nvml_device, unsigned, unsigned *);
    nvml_result (*memory_clocks)(nvml_device, unsigned *, unsigned *);
    nvml_result (*sm_clocks)(nvml_device, unsigned, unsigned *, unsigned *);
    nvml_result (*max_clock)(nvml_device, unsigned, unsigned *);
    nvml_result (*event_reasons)(nvml_device, unsigned long long *);
    nvml_result (*throttle_reasons)(nvml_device, unsigned long long *);
    nvml_result (*violation)(nvml_device, unsigned, struct nvml_violation *);
    nvml_result (*utilization)(nvml_device, struct nvml_utilization *);
    nvml_result (*temperature_v)(nvml_device, struct nvml_temperature *);
    nvml_result (*temperature)(nvml_device, unsigned, unsigned *);
    nvml_result (*persistence)(nvml_device, unsigned *);
    nvml_result (*mig_mode)(nvml_device, unsigned *, unsigned *);
    nvml_result (*max_migs)(nvml_device, unsigned *);
    nvml_result (*mig)(nvml_device, unsigned, nvml_device *);
    nvml_result (*gpu_instance)(nvml_device, unsigned *);
    nvml_result (*compute_instance)(nvml_device, unsigned *);
    struct nvml_proc_calls compute, graphics, mps;
    nvml_result (*proc_use)(nvml_device, struct nvml_proc_util *, unsigned *,
                            unsigned long long);
};

enum {
    NVML_ABI_NO_LIBRARY = 1, /* the system has no library; *err names it */
};

/* Loads the library at path; NULL: the system's.  0, NVML_ABI_NO_LIBRARY, -ENOENT (path
 * cannot be loaded) or -ENOTSUP (a mandatory function is missing).
 */
int nvml_abi_load(const char *path, struct nvml_abi *ret, uw_error *err);
void nvml_abi_unload(struct nvml_abi *abi);

/* The name of the i-th optional function that the library lacks in all versions; NULL: no
 * more.
 */
const char *nvml_abi_missing(const struct nvml_abi *abi, size_t i);

/* Converts an NVML result to 0 or an error of gpu.h, with the driver's text in *err.
 * call: the name of the NVML function.
 */
int nvml_fail(const struct nvml_abi *abi, nvml_result result, const char *call,
              uw_error *err);

/* Whether the board or driver does not support the call, now or later. */
bool nvml_is_unable(nvml_result result);
/* Whether the handle has become unusable: board lost, driver unloaded. */
bool nvml_is_fatal(nvml_result result);

#endif
