#include "plant/board.h"

#include <string.h>

#include "base/auto.h"
#include "base/units.h"

#define GIB(n) ((uint64_t)(n) << 30)

/* Gain: NVML's documentation gives +-5 %; it is random between equal boards and linear
 * (SC 2024, see sensor.h). 5 % are taken as 2.5 standard deviations.
 */
#define SENSOR(period_ms, window_ms, lag_ms)                                           \
    .period_ns = (period_ms)*NS_PER_MS, .window_ns = (window_ms)*NS_PER_MS,            \
    .lag_ns = (lag_ms)*NS_PER_MS, .gain_sd = 0.02, .offset_sd_w = 0.5, .noise_w = 0.5, \
    .average_ns = NS_PER_S
#define COUNTER(kind, period_ms)                                                 \
    .counter = PLANT_COUNTER_##kind, .counter_period_ns = (period_ms)*NS_PER_MS, \
    .counter_step_mj = 1

#define KEPLER                                                             \
    {                                                                      \
        SENSOR(20, 20, 10), .log_tau_s = 0.2, .plain = PLANT_PLAIN_INSTANT \
    }
/* Fields: by NVML's header 186 (instant) exists on all architectures that current drivers
 * support, 185 (average) on Ampere and newer, except the GA100.
 */
#define PASCAL                                                                \
    {                                                                         \
        SENSOR(20, 10, 10), .plain = PLANT_PLAIN_INSTANT, .has_instant = true \
    }
#define VOLTA                                                                  \
    {                                                                          \
        SENSOR(20, 10, 10), .plain = PLANT_PLAIN_INSTANT, .has_instant = true, \
                            COUNTER(TRUE, 100)                                 \
    }
#define TURING                                                                   \
    {                                                                            \
        SENSOR(100, 100, 20), .plain = PLANT_PLAIN_INSTANT, .has_instant = true, \
                              COUNTER(TRUE, 100)                                 \
    }
/* It is not published whether the counter integrates more than the sensor's 25 of 100 ms:
 * the A100 models boards where it does not.
 */
#define GA100                                                                   \
    {                                                                           \
        SENSOR(100, 25, 20), .plain = PLANT_PLAIN_INSTANT, .has_instant = true, \
                             COUNTER(SENSED, 100)                               \
    }
#define AMPERE                                                                   \
    {                                                                            \
        SENSOR(100, 100, 20), .plain = PLANT_PLAIN_AVERAGE, .has_instant = true, \
                              .has_average = true, COUNTER(TRUE, 100)            \
    }
#define HOPPER                                                                  \
    {                                                                           \
        SENSOR(100, 25, 20), .plain = PLANT_PLAIN_AVERAGE, .has_instant = true, \
                             .has_average = true, COUNTER(TRUE, 100)            \
    }

/* clang-format off */
static const struct {
    const char *name;
    struct plant_sensor_spec spec;
} generations[] = {
    {"kepler", KEPLER}, {"maxwell", KEPLER}, {"pascal", PASCAL}, {"volta", VOLTA},
    {"turing", TURING}, {"ga100", GA100}, {"ampere", AMPERE}, {"hopper", HOPPER},
    {"blackwell", HOPPER},
};

/* Limits and clocks are the vendor's; idle power, thermal values and, for boards that are
 * not calibrated, sensors are typical values.
 */
static const struct plant_board boards[] = {
    {
        .key = "rtx6000", .name = "Quadro RTX 6000", .arch = 6, .calibrated = true,
        .min_mw = 100000, .max_mw = 260000, .default_mw = 260000, .idle_w = 15,
        .xmin = 0.1, .sm_min_mhz = 300, .sm_max_mhz = 2100, .sm_step_mhz = 15,
        .mem_mhz = 7001, .memory_bytes = GIB(24), .set_limit_ns = 32 * NS_PER_MS,
        .ambient_c = 30, .resistance_kpw = 0.15, .tau_s = 40, .leak_per_k = 0.004,
        .sensor = TURING,
    },
    {
        .key = "v100", .name = "Tesla V100-SXM2-16GB", .arch = 5, .calibrated = true,
        .min_mw = 150000, .max_mw = 300000, .default_mw = 300000, .idle_w = 42,
        .xmin = 0.1, .sm_min_mhz = 135, .sm_max_mhz = 1530, .sm_step_mhz = 15,
        .mem_mhz = 877, .memory_bytes = GIB(16), .set_limit_ns = 32 * NS_PER_MS,
        .ambient_c = 30, .resistance_kpw = 0.13, .tau_s = 30, .leak_per_k = 0.004,
        .sensor = VOLTA,
    },
    {
        .key = "a100", .name = "NVIDIA A100-SXM4-80GB", .arch = 7,
        .min_mw = 100000, .max_mw = 400000, .default_mw = 400000, .idle_w = 60,
        .xmin = 0.15, .sm_min_mhz = 210, .sm_max_mhz = 1410, .sm_step_mhz = 15,
        .mem_mhz = 1593, .memory_bytes = GIB(80), .set_limit_ns = 32 * NS_PER_MS,
        .ambient_c = 30, .resistance_kpw = 0.1, .tau_s = 30, .leak_per_k = 0.004,
        .sensor = GA100,
    },
    {
        .key = "h100", .name = "NVIDIA H100 80GB HBM3", .arch = 9,
        .min_mw = 200000, .max_mw = 700000, .default_mw = 700000, .idle_w = 70,
        .xmin = 0.15, .sm_min_mhz = 345, .sm_max_mhz = 1980, .sm_step_mhz = 15,
        .mem_mhz = 2619, .memory_bytes = GIB(80), .set_limit_ns = 32 * NS_PER_MS,
        .ambient_c = 30, .resistance_kpw = 0.06, .tau_s = 30, .leak_per_k = 0.004,
        .sensor = HOPPER,
    },
    {
        .key = "b200", .name = "NVIDIA B200", .arch = 10,
        .min_mw = 200000, .max_mw = 1000000, .default_mw = 1000000, .idle_w = 140,
        .xmin = 0.15, .sm_min_mhz = 120, .sm_max_mhz = 1965, .sm_step_mhz = 15,
        .mem_mhz = 3996, .memory_bytes = GIB(180), .set_limit_ns = 32 * NS_PER_MS,
        .ambient_c = 30, .resistance_kpw = 0.045, .tau_s = 30, .leak_per_k = 0.004,
        .sensor = HOPPER,
    },
};
/* clang-format on */

const struct plant_sensor_spec *plant_sensor_generation(const char *name)
{
    for (size_t i = 0; i < n_elements(generations); i++)
        if (strcmp(generations[i].name, name) == 0)
            return &generations[i].spec;
    return NULL;
}

const struct plant_board *plant_board_find(const char *key)
{
    for (size_t i = 0; i < n_elements(boards); i++)
        if (strcmp(boards[i].key, key) == 0)
            return &boards[i];
    return NULL;
}

const struct plant_board *plant_boards(size_t *ret_n)
{
    *ret_n = n_elements(boards);
    return boards;
}
