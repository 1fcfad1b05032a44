/* Which boards a process may use by their device files.  A process under a control group
 * of devices, or in a container, has some of the node's boards and counts them from 0.
 */
#ifndef GPU_DEVICE_FILES_H
#define GPU_DEVICE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"

enum device_file {
    DEVICE_FILE_UNKNOWN, /* the board has no minor number, or the question failed */
    DEVICE_FILE_OPEN,    /* this process may read and write it */
    DEVICE_FILE_CLOSED,
    DEVICE_FILE_ABSENT,
};

/* Asks the kernel whether this process may open the board's file; does not open it.
 * sim_state: the state directory of a simulated world, whose boards have their files in
 * its folder `dev`; NULL: none is known.
 */
enum device_file device_file_of(const struct gpu_info *board, const char *sim_state);

/* Whether board `at` of n is one of this process.  A board whose file is absent is none
 * where another's is there.  Pure.
 */
bool device_file_allows(const enum device_file *file, size_t n, size_t at);

/* Removes the boards that this process may not use from list; returns how many are
 * left.  Looks at the first SELECT_MAX.
 */
size_t device_files_filter(const struct gpu_info **list, size_t n, const char *sim_state);

#endif
