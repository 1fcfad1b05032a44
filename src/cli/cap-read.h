/* What the daemon's answers mean for `underwatt cap` and for a sweep beside it.  Pure. */
#ifndef CLI_CAP_READ_H
#define CLI_CAP_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/units.h"
#include "cli/cap-hold.h"
#include "io/json.h"

/* What is asked for on a board of GET /v1/gpus, without a claim yet.  -ENOTSUP (it takes
 * no limit), -ERANGE (outside of its own), with the board in the text: nothing written.
 */
int cap_read_target(const struct json_value *gpu, const struct cap_arg *cap,
                    struct cap_target *ret, uw_error *err);

/* Into t what the board's answer (NULL: it is not in there) says: the limit, whether what
 * was asked for is in force, or was and is no more; into line what holds it up, "" if
 * nothing does.  False: the daemon may not set its limit, and line says why.
 */
bool cap_read_board(const struct json_value *gpu, struct cap_target *t, char *line,
                    size_t size);

/* After a claim's end, out of GET /v1/gpus/GPU/explain: what is claimed now is in force,
 * or what was found before.  sure: it has looked so for a while (who holds boards
 * always, lets go of none).
 */
bool cap_read_back(const struct json_value *explain, bool sure);

/* The same of a clock, out of its claim. */
void cap_read_clock(const struct json_value *claim, struct cap_target *t, char *line,
                    size_t size);
/* After the end of a claim on a clock: nobody's lock is as low as ours was. */
bool cap_read_unlocked(const struct json_value *explain);

/* Claimed by hand by who is called so: searches and budgets have other names. */
bool cap_read_mine(const struct json_value *claim, const char *name);

/* The daemon has no hand on this board: somebody else may write. */
bool cap_read_left_alone(const struct json_value *gpu);

#endif
