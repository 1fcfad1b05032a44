/* Presets: shares of each board's default limit that have a name. */
#ifndef CLI_PRESET_H
#define CLI_PRESET_H

#include <stdint.h>

#include "ask/ask.h"
#include "base/units.h"
#include "gpu/gpu.h"

/* The preset of this name of the daemon's policy; daemon NULL: a built-in one.  -EINVAL
 * with a text that has the names, or as ask_wait().
 */
int preset_cap(struct ask *daemon, const char *name, struct cap_arg *ret, uw_error *err);

/* What a share comes to on a board. */
struct preset_board {
    unsigned index;
    uint32_t mw;
};
/* Within the range that the node may set; 0: it does not answer. */
uint32_t preset_mw(struct ask *node, unsigned gpu, const struct cap_arg *share);

#endif
