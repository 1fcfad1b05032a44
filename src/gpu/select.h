/* Which boards are meant: a list that a person typed, or CUDA_VISIBLE_DEVICES as
 * CUDA reads it.  Pure.
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
    bool mig;      /* a slice is among them: figures and caps are the whole board's */
    char stop[64]; /* of CUDA's list: the entry that ended it early; "" none */
};

/* A list as --gpus takes it: "all", or entries with commas between them: an index
 * of the driver, a range of them (0-3), a UUID or its beginning (with or without
 * "GPU-") that fits one board alone, a MIG id (its board is meant).  -EINVAL with
 * the entry named: none of these, no such board, several boards, a board twice.
 * n is at most SELECT_MAX.
 */
int select_list(const char *list, const struct gpu_info *const *boards, size_t n,
                struct selection *ret, uw_error *err);

/* Whether one entry of such a list could name boards of some machine.  -EINVAL as above.
 */
int select_check(const char *entry, uw_error *err);

enum {
    /* The entries are indices in CUDA's default order (fastest first) and the
     * boards differ: which board is meant is not known.  *ret follows the order of
     * the bus all the same; *err says what to do about it.
     */
    SELECT_UNSURE = 1,
};

/* visible, order: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, NULL where not set.
 * As CUDA does it (CUDA C++ Programming Guide, "CUDA Environment Variables", and
 * torch.cuda._parse_visible_devices): nothing set means all boards; the first
 * entry says whether indices, GPU UUIDs or MIG ids follow; an entry that is none
 * of these, or that fits no board or several, ends the list; a board twice makes
 * it empty; a program sees one MIG slice only.  0, the outcome above.
 */
int select_cuda(const char *visible, const char *order,
                const struct gpu_info *const *boards, size_t n, struct selection *ret,
                uw_error *err);

#endif
