/* NVML's binary interface as clients use it, written independently: layouts and numbers
 * follow the published interface (NVML API Reference Manual); no vendor header is copied.
 */
#ifndef SIM_NVML_ABI_H
#define SIM_NVML_ABI_H

#include <stdint.h>

#include "sim/state.h"

#define NVML_API __attribute__((visibility("default")))

/* Exports function as a second name of target, which is defined above in the same file.
 */
#define NVML_SAME(function, target) \
    NVML_API __typeof__(target) function __attribute__((alias(#target)));

/* A handle is the address of one of these; clients do not read the target. */
typedef struct nv_handle *nv_device;

enum nv_clock {
    NV_CLOCK_GRAPHICS = 0,
    NV_CLOCK_SM = 1,
    NV_CLOCK_MEM = 2,
    NV_CLOCK_VIDEO = 3
};

enum nv_field {
    NV_FIELD_TOTAL_ENERGY = 83,
    NV_FIELD_NVLINK_COUNT = 91,
    NV_FIELD_POWER_AVERAGE = 185,
    NV_FIELD_POWER_INSTANT = 186,
    NV_FIELD_POWER_MIN_LIMIT = 187,
    NV_FIELD_POWER_MAX_LIMIT = 188,
    NV_FIELD_POWER_DEFAULT_LIMIT = 189,
    NV_FIELD_POWER_CURRENT_LIMIT = 190,
    NV_FIELD_POWER_REQUESTED_LIMIT = 192,
};

enum nv_value_type {
    NV_VALUE_DOUBLE = 0,
    NV_VALUE_UINT = 1,
    NV_VALUE_ULONG = 2,
    NV_VALUE_ULONGLONG = 3
};

struct nv_field_value {
    uint32_t field;
    uint32_t scope; /* 0: the GPU */
    int64_t timestamp_us;
    int64_t latency_us;
    uint32_t type;
    uint32_t result;
    union {
        double d;
        uint32_t u32;
        uint64_t u64;
    } value;
};
_Static_assert(sizeof(struct nv_field_value) == 40, "nvmlFieldValue_t");

struct nv_pci { /* nvmlPciInfo_t since _v3 */
    char bus_id_legacy[16];
    uint32_t domain, bus, device;
    uint32_t device_id, subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct nv_pci) == 68, "nvmlPciInfo_t");

struct nv_pci_v2 {
    char bus_id[16];
    uint32_t domain, bus, device;
    uint32_t device_id, subsystem_id;
    uint32_t reserved[4];
};

struct nv_pci_ext {
    uint32_t version, domain, bus, device;
    uint32_t device_id, subsystem_id, base_class, sub_class;
    char bus_id[32];
};

struct nv_memory {
    uint64_t total, free, used;
};

struct nv_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};
#define NV_MEMORY_V2 0x02000028u
_Static_assert(sizeof(struct nv_memory_v2) == 0x28, "nvmlMemory_v2_t");

struct nv_utilization {
    uint32_t gpu, memory;
};

struct nv_proc_v1 { /* the unversioned lists */
    uint32_t pid;
    uint64_t used_bytes;
};
_Static_assert(sizeof(struct nv_proc_v1) == 16, "nvmlProcessInfo_v1_t");

struct nv_proc_v2 { /* _v2 and _v3 */
    uint32_t pid;
    uint64_t used_bytes;
    uint32_t gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct nv_proc_v2) == 24, "nvmlProcessInfo_v2_t");

struct nv_proc_util {
    uint32_t pid;
    uint64_t at_us;
    uint32_t sm, mem, enc, dec;
};
_Static_assert(sizeof(struct nv_proc_util) == 32, "nvmlProcessUtilizationSample_t");

struct nv_violation {
    uint64_t reference_us, violation_ns;
};

struct nv_temperature {
    uint32_t version;
    uint32_t sensor;
    int32_t temperature_c;
};
#define NV_TEMPERATURE_V1 0x0100000cu

struct nv_power_value {
    uint32_t version;
    uint32_t scope;
    uint32_t mw;
};
#define NV_POWER_VALUE_V2 0x0200000cu

struct nv_sample {
    uint64_t at_us;
    union {
        double d;
        uint32_t u32;
        uint64_t u64;
    } value;
};

#define NV_NO_INSTANCE UINT32_MAX

#endif
