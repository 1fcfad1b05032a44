/* The window that a search is given. */
#ifndef CORE_OPTIMUM_WINDOW_H
#define CORE_OPTIMUM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/binding.h"

/* A finished window of whole units of work at a settled cap. */
struct search_window {
    uint32_t cap_mw; /* in force (read back), lowest of the job's GPUs */
    double time_s;   /* per unit of work */
    double energy_j; /* per unit of work, all GPUs of the job */
    double time_rse; /* relative standard error; 0: exact */
    double energy_rse;
    double peak_w;        /* 99th percentile of 100 ms power, highest GPU; 0: unknown */
    unsigned length;      /* as in struct search_step; 0: 1 */
    enum binding binding; /* of the cap, on all GPUs */
    bool known; /* of an earlier search of this job, the reference's first: the errors are
                   those of one window, length only counts for max_windows */
    double start_s;  /* on any clock */
    double lasted_s; /* 0: unknown */
    unsigned parts;  /* whose scatter time_rse states; 0: unknown */
};

#endif
