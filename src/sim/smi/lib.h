/* nvidia-smi of a simulated node: what clients and shell scripts ask of the real one.
 *
 * Owns: the forms of its output and its exit statuses, which are those of the real
 * program's manual.  May touch: the simulated library alone, loaded as any client loads
 * it; each value comes from a call of that library.
 * Thread: one.
 * Explained in: docs/man/underwatt-sim.1.scd, "nvidia-smi".
 */
#ifndef SIM_SMI_LIB_H
#define SIM_SMI_LIB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sim/nvml/abi.h"

/* Exit statuses are NVML's results; these three have no result of the boards. */
enum smi_exit { SMI_OK = 0, SMI_BAD_ARGUMENT = 2, SMI_NO_LIBRARY = 12, SMI_OTHER = 255 };
enum { SMI_NO_FUNCTION = 13, SMI_TEXT = 96 };

struct smi {
    void *library; /* dlopen's */
    unsigned n;    /* boards */
    unsigned chosen[SIM_BOARDS_MAX], n_chosen;
};

/* Loads the library and counts the boards; all are chosen.  SMI_OK, or an exit status
 * with a message printed.
 */
int smi_open(struct smi *ret);
void smi_close(struct smi *smi);

/* Chooses the boards of a list of indices, UUIDs, serial numbers and bus ids.  SMI_OK, or
 * an exit status with a message printed.
 */
int smi_choose(struct smi *smi, const char *list);

/* The handle of board i.  SMI_OK, or an exit status with a message printed. */
int smi_handle(const struct smi *smi, unsigned i, nv_device *ret);

/* A function of the library by name, to be cast; NULL: none. */
typedef void (*smi_fn)(void);
smi_fn smi_find(const struct smi *smi, const char *function);

/* Calls of the three common forms: results of NVML, SMI_NO_FUNCTION where the library has
 * no such function.
 */
int smi_text(const struct smi *smi, nv_device dev, const char *function,
             char ret[SMI_TEXT]);
int smi_u32(const struct smi *smi, nv_device dev, const char *function, unsigned *ret);
int smi_u32_of(const struct smi *smi, nv_device dev, const char *function, unsigned which,
               unsigned *ret);
/* Two numbers of one call: limits, modes, versions. */
int smi_pair(const struct smi *smi, nv_device dev, const char *function, unsigned *ret_a,
             unsigned *ret_b);

const char *smi_error(const struct smi *smi, int result);
/* The exit status for a result. */
int smi_exit_of(int result);

/* The driver's and CUDA's version, "" where unknown. */
void smi_versions(const struct smi *smi, char ret_driver[SMI_TEXT],
                  char ret_cuda[SMI_TEXT]);

#endif
