/* Selection of boards by a user's list or by CUDA_VISIBLE_DEVICES, as CUDA reads it.
 * Pure.
 */
#ifndef GPU_SELECT_H
#define GPU_SELECT_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu/gpu.h"
#include "underwatt/error.h"

enum { SELECT_MAX = 64 };

/* Positions in the caller's array of boards, in the order of the list. */
struct selection {
    size_t n;
    size_t at[SELECT_MAX];
    bool mig;      /* a slice is selected: figures and caps are of the whole board */
    char stop[64]; /* of CUDA's list: the entry that ended it early; "": none */
};

/* Parses a list as for --gpus: "all", or entries separated by commas: an index of the
 * driver, a range of indices (0-3), a UUID or its unique beginning (with or without
 * "GPU-"), a MIG id (selects its board).  -EINVAL: an entry has another form, selects no
 * board or several, or a board twice; *err names it.  Uses the first SELECT_MAX boards.
 */
int select_list(const char *list, const struct gpu_info *const *boards, size_t n,
                struct selection *ret, uw_error *err);

/* Checks the form of one entry of such a list, without the boards: an id without prefix
 * must be hexadecimal.  -EINVAL.
 */
int select_check(const char *entry, uw_error *err);

/* Whether the first entry of CUDA_VISIBLE_DEVICES is an index, which counts the boards
 * that the process may use, and not the id of a board or of a slice.
 */
bool select_is_index(const char *visible);
/* Whether the first entry of a list is a part of a board, in MIG mode. */
bool select_is_part(const char *visible);

enum {
    /* The entries are indices in CUDA's default order (fastest first), but the boards
     * differ, so the selected boards are not known.  *ret assumes the order of the bus;
     * *err says what the user can do.
     */
    SELECT_UNSURE = 1,
};

/* visible, order: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER; NULL: not set.  Follows
 * CUDA (CUDA C++ Programming Guide, "CUDA Environment Variables", and
 * torch.cuda._parse_visible_devices): visible NULL means all boards; the first entry
 * decides between indices, GPU UUIDs and MIG ids; an entry of another form, or that
 * matches no board or several, ends the list; a board named twice makes the list empty; a
 * program sees only one MIG slice.  Returns 0 or SELECT_UNSURE.
 */
int select_cuda(const char *visible, const char *order,
                const struct gpu_info *const *boards, size_t n, struct selection *ret,
                uw_error *err);

#endif
