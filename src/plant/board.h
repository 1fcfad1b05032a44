/* The catalogue of simulated boards. */
#ifndef PLANT_BOARD_H
#define PLANT_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plant/sensor.h"

struct plant_board {
    const char *key;  /* "v100" */
    const char *name; /* as a driver reports it */
    unsigned arch;    /* NVML's number: 5 Volta, 6 Turing, 7 Ampere, 9 Hopper, … */
    bool calibrated;  /* its workloads reproduce published measurements */
    uint32_t min_mw, max_mw, default_mw;
    double idle_w; /* with no program on it */
    double xmin;   /* lowest clock relative to the highest boost clock */
    uint32_t sm_min_mhz, sm_max_mhz, sm_step_mhz, mem_mhz;
    uint64_t memory_bytes;
    uint64_t set_limit_ns; /* duration of a set request in the driver */
    double ambient_c; /* air temperature; the steady temperature is ambient + R x power */
    double resistance_kpw; /* R, K/W */
    double tau_s;          /* of the heat sink */
    double leak_per_k;     /* relative growth of static power per kelvin */
    struct plant_sensor_spec sensor;
};

/* "rtx6000", "v100", "a100", "h100", "b200"; NULL: no such board. */
const struct plant_board *plant_board_find(const char *key);
/* The whole catalogue, for listings. */
const struct plant_board *plant_boards(size_t *ret_n);

#endif
