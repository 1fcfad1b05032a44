#include <string.h>

#include "gpu/nvml/nvml.h"

/* GA100 measures 25 of every 100 ms; other Ampere boards average over 100 ms. */
static bool part_time(const char *name)
{
    static const char *const names[] = {"A100", "A30 ", "A30X", "A800", "GA100"};

    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strstr(name, names[i]))
            return true;
    return name && strlen(name) >= 3 && strcmp(name + strlen(name) - 3, "A30") == 0;
}

void nvml_sensors(enum gpu_arch arch, const char *name, struct sensor_model *ret)
{
    static const struct sensor slow = {.update_s = 0.02,
                                       .response_s = 0.2,
                                       .lag_s = 0.01},
                               fine = {.update_s = 0.02, .window_s = 0.01, .lag_s = 0.01},
                               whole = {.update_s = 0.1, .window_s = 0.1, .lag_s = 0.02},
                               part = {.update_s = 0.1, .window_s = 0.025, .lag_s = 0.02},
                               second = {.update_s = 0.1, .window_s = 1.0, .lag_s = 0.02};
    struct sensor_model m = {.counter_update_s = 0.1, .counter_unit_j = 1e-3};

    if (arch >= GPU_ARCH_HOPPER) {
        m.power = m.average = second;
        m.instant = part;
        if (name && strstr(name, "GH200"))
            m.instant.window_s = 0.02;
    } else if (arch == GPU_ARCH_AMPERE && part_time(name)) {
        m.power = part;
    } else if (arch == GPU_ARCH_AMPERE || arch == GPU_ARCH_ADA) {
        m.power = m.instant = whole;
        m.average = second;
    } else if (arch == GPU_ARCH_TURING) {
        m.power = whole;
    } else if (arch == GPU_ARCH_VOLTA || arch == GPU_ARCH_PASCAL) {
        m.power = fine;
        if (arch == GPU_ARCH_PASCAL)
            m.counter_update_s = 0;
    } else if (arch == GPU_ARCH_KEPLER || arch == GPU_ARCH_MAXWELL) {
        m.power = slow;
        m.counter_update_s = 0;
    } else {
        m.power = m.instant = part; /* unknown: assume the least accurate sensor */
        m.average = second;
    }
    *ret = m;
}
