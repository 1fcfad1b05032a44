/* NVIDIA boards, real or simulated: whatever NVML library is loaded. */
#ifndef GPU_NVML_NVML_H
#define GPU_NVML_NVML_H

#include "base/sensor.h"
#include "gpu/gpu.h"

/* open(): GPU_ABSENT (no library on this system, or no board; *err says which),
 * -ENOENT (the library named in opts cannot be loaded), -ENOTSUP (a mandatory
 * function is missing), -ENODEV (no driver is loaded), -EPERM or -EIO (the driver
 * says no).  Boards are asked who they are side by side; one that stays silent is
 * listed with its index alone, and every later call on it fails.
 */
extern const struct gpu_backend nvml_backend;

enum { NVML_MISSING_MAX = 16 };

/* What is known of the library and the driver behind it, for a diagnosis. */
struct nvml_about {
    char library[256];       /* the file that was loaded; "" unknown */
    char driver_version[80]; /* "" unknown */
    char nvml_version[80];
    bool simulated;
    char clock[64];      /* of a simulated world: "T0_NS:SPEED" */
    char state_dir[256]; /* of a simulated world */
    /* Functions that this library lacks and somebody would miss. */
    const char *missing[NVML_MISSING_MAX];
    size_t n_missing;
};

/* Of an open library; never blocks (all was asked at open). */
const struct nvml_about *nvml_about(const void *lib);
/* Why a board that is listed gave no identity; "" where it did. */
const char *nvml_open_error(const struct gpu_dev *dev);

/* The library alone, with no driver call: 0 and what is known of it, or what
 * open() would say.
 */
int nvml_look(const char *library, struct nvml_about *ret, uw_error *err);

/* The sensors of a board.  name tells A100, A30, A800 and GH200 from their like; may be
 * NULL.  Update periods and windows: Yang, Adamek, Armour, "Part-time power
 * measurements", SC'24.
 */
void nvml_sensors(enum gpu_arch arch, const char *name, struct sensor_model *ret);

#endif
