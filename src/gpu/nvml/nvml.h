/* NVIDIA boards through an NVML library, the driver's or the simulator's. */
#ifndef GPU_NVML_NVML_H
#define GPU_NVML_NVML_H

#include "gpu/row.h"

/* open(): GPU_ABSENT (no library or no board; *err says which), -ENOENT (the library of
 * opts.source cannot be loaded), -ENOTSUP (a mandatory function is missing), -ENODEV (no
 * driver is loaded), -EPERM or -EIO (refused by the driver).  Boards are identified in
 * parallel; a board that does not answer is listed with its index only, and every later
 * call on it fails.
 */
extern const struct gpu_backend nvml_backend;
extern const struct gpu_backend_row nvml_row;

/* Why a listed board was not identified; "": it was. */
const char *nvml_open_error(const struct gpu_dev *dev);

/* The sensor model of a board.  name distinguishes A100, A30, A800 and GH200 from others
 * of their generation; may be NULL.  Update periods and windows: Yang, Adamek, Armour,
 * "Part-time power measurements", SC'24.
 */
void nvml_sensors(enum gpu_arch arch, const char *name, struct sensor_model *ret);

#endif
