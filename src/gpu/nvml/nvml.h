/* NVIDIA boards, real or simulated: whatever NVML library is loaded. */
#ifndef GPU_NVML_NVML_H
#define GPU_NVML_NVML_H

#include "gpu/row.h"

/* open(): GPU_ABSENT (no library on this system, or no board; *err says which),
 * -ENOENT (the library of opts.source cannot be loaded), -ENOTSUP (a mandatory
 * function is missing), -ENODEV (no driver is loaded), -EPERM or -EIO (the driver
 * says no).  Boards are asked who they are side by side; one that stays silent is
 * listed with its index alone, and every later call on it fails.
 */
extern const struct gpu_backend nvml_backend;
extern const struct gpu_backend_row nvml_row;

/* Why a board that is listed gave no identity; "" where it did. */
const char *nvml_open_error(const struct gpu_dev *dev);

/* The sensors of a board.  name tells A100, A30, A800 and GH200 from their like; may be
 * NULL.  Update periods and windows: Yang, Adamek, Armour, "Part-time power
 * measurements", SC'24.
 */
void nvml_sensors(enum gpu_arch arch, const char *name, struct sensor_model *ret);

#endif
