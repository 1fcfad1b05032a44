/* How a driver presents true power, by generation.
 *
 * Every period the sensor publishes the mean of the last window (a boxcar), lag later,
 * times the board's gain plus its offset and some noise.  If the window is shorter than
 * the period, the rest of the time is not measured.  Periods and windows: Yang, Adamek,
 * Armour, "Accurate and convenient energy measurements for GPUs" (SC 2024); meaning of
 * the plain reading and of fields 185 and 186: NVML documentation,
 * nvmlDeviceGetPowerUsage.
 */
#ifndef PLANT_SENSOR_H
#define PLANT_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

enum plant_plain {
    PLANT_PLAIN_INSTANT, /* nvmlDeviceGetPowerUsage shows the sensor's reading */
    PLANT_PLAIN_AVERAGE, /* nvmlDeviceGetPowerUsage shows its mean over a second */
};

enum plant_counter {
    PLANT_COUNTER_NONE,
    PLANT_COUNTER_TRUE, /* integrates true power, times the board's gain */
    /* sums window mean x period, times the gain: time between windows counts with their
     * mean
     */
    PLANT_COUNTER_SENSED,
};

struct plant_sensor_spec {
    uint64_t period_ns;
    uint64_t window_ns; /* boxcar; <= period_ns */
    /* > 0: time constant of a first-order response, instead of the boxcar */
    double log_tau_s;
    uint64_t lag_ns;        /* from the window's end to the publication */
    double gain_sd;         /* boards differ: gain is 1 + N(0, gain_sd), within 2.5 sd */
    double offset_sd_w;     /* of readings; the counter has no offset */
    double noise_w;         /* standard deviation of one reading */
    enum plant_plain plain; /* meaning of the plain reading */
    bool has_instant;       /* field 186 */
    bool has_average;       /* field 185 */
    uint64_t average_ns;    /* window of the average: a second */
    enum plant_counter counter;
    uint64_t counter_period_ns;
    uint32_t counter_step_mj; /* granularity */
};

/* A board's own errors, drawn at plant_gpu_new(); tests divide by them. */
struct plant_sensor_error {
    double gain;
    double offset_w;
    uint64_t phase_ns;         /* first reading after the start */
    uint64_t counter_phase_ns; /* first counter update after the start */
};

/* Sensors by generation, also of generations without a board in the catalogue, for
 * machine files: "kepler", "maxwell", "pascal", "volta", "turing", "ga100", "ampere",
 * "hopper", "blackwell". NULL: no such generation.
 */
const struct plant_sensor_spec *plant_sensor_generation(const char *name);

#endif
