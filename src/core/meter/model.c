#include "core/meter/meter.h"

#include <string.h>

enum { KEPLER = 2, MAXWELL, PASCAL, VOLTA, TURING, AMPERE, ADA, HOPPER, BLACKWELL };

/* GA100 reports 25 of every 100 ms; its Ampere cousins average. */
static bool part_time(const char *name)
{
    static const char *const names[] = {"A100", "A30 ", "A30X", "A800", "GA100"};

    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strstr(name, names[i]))
            return true;
    return name && strlen(name) >= 3 && strcmp(name + strlen(name) - 3, "A30") == 0;
}

void meter_model_nvidia(unsigned arch, const char *name, struct meter_model *ret)
{
    static const struct meter_sensor
        slow = {.update_s = 0.02, .response_s = 0.2, .lag_s = 0.01},
        fine = {.update_s = 0.02, .window_s = 0.01, .lag_s = 0.01},
        whole = {.update_s = 0.1, .window_s = 0.1, .lag_s = 0.02},
        part = {.update_s = 0.1, .window_s = 0.025, .lag_s = 0.02},
        second = {.update_s = 0.1, .window_s = 1.0, .lag_s = 0.02};
    struct meter_model m = {.counter_update_s = 0.1, .counter_unit_j = 1e-3};

    if (arch >= HOPPER) {
        m.power = m.average = second;
        m.instant = part;
        if (name && strstr(name, "GH200"))
            m.instant.window_s = 0.02;
    } else if (arch == AMPERE && part_time(name)) {
        m.power = part;
    } else if (arch == AMPERE || arch == ADA) {
        m.power = m.instant = whole;
        m.average = second;
    } else if (arch == TURING) {
        m.power = whole;
    } else if (arch == VOLTA || arch == PASCAL) {
        m.power = fine;
        if (arch == PASCAL)
            m.counter_update_s = 0;
    } else if (arch == KEPLER || arch == MAXWELL) {
        m.power = slow;
        m.counter_update_s = 0;
    } else {
        m.power = m.instant = part; /* unknown: the one that tells least */
        m.average = second;
    }
    *ret = m;
}

void meter_model_rapl(double unit_j, uint64_t wrap, struct meter_model *ret)
{
    *ret = (struct meter_model){
        .counter_update_s = 0.001,
        .counter_unit_j = unit_j,
        .counter_wrap = wrap,
        .counter_true = true,
    };
}
