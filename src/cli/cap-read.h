/* Interprets the daemon's answers for `underwatt cap` and `underwatt sweep`.  Pure. */
#ifndef CLI_CAP_READ_H
#define CLI_CAP_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "base/units.h"
#include "cli/cap-target.h"
#include "io/json.h"

/* Computes the target for a board of GET /v1/gpus.  -ENOTSUP (the board has no power
 * limit) or -ERANGE, naming the board; *ret is then unchanged.
 */
int cap_read_target(const struct json_value *gpu, const struct cap_arg *cap,
                    struct cap_target *ret, uw_error *err);

/* Whether a new cap of mw lowers the limit of a board that has a claim of another job
 * than `job`: "GPU 1 is of job 3: its limit goes from 225 W to 170 W".  gpu: of GET
 * /v1/gpus, claims: the list of GET /v1/claims, before the cap is in force.
 */
bool cap_read_lowers(const struct json_value *gpu, const struct json_value *claims,
                     uint32_t mw, uint64_t job, char *line, size_t size);

/* Updates t from the board's answer (NULL: the answer lacks the board): the limit, and
 * whether the cap is in force or was lost.  `line` gets what delays the cap, or "".
 * False: the daemon may not set the limit, and `line` says why.
 */
bool cap_read_board(const struct json_value *gpu, struct cap_target *t, char *line,
                    size_t size);

/* The same of a node of the command's own, where nobody else claims.  CAP_READ_LOST: the
 * board is another's, or gone; CAP_READ_FAILED: a limit was refused; `line` says why.
 */
enum cap_read { CAP_READ_GOES_ON, CAP_READ_LOST, CAP_READ_FAILED };
enum cap_read cap_read_own(const struct json_value *gpu, const struct json_value *claim,
                           struct cap_target *t, char *line, size_t size);
/* After its claim has ended, from GET /v1/gpus/GPU/explain: 1: the original was read
 * back; 0: not yet; -1: it will not be, and `line` says why.
 */
int cap_read_own_back(const struct json_value *explain, char *line, size_t size);

/* After a claim has ended, from GET /v1/gpus/GPU/explain: whether the remaining claims,
 * or the original limit, are in force.  sure: the answer has been the same for a while.
 * (A daemon that always holds its boards never releases them.)
 */
bool cap_read_back(const struct json_value *explain, bool sure);

/* The same for a claim on a clock, from the claim. */
void cap_read_clock(const struct json_value *claim, struct cap_target *t, char *line,
                    size_t size);
/* After a claim on a clock has ended: whether the lock is reset, or another claim keeps
 * it.
 */
bool cap_read_unlocked(const struct json_value *explain);

/* Whether `you` of GET /v1/node made the claim by hand, by source and uid: a job's cap, a
 * search's and a budget's claim are nobody's.
 */
bool cap_read_mine(const struct json_value *claim, const struct json_value *you);

/* Whether the daemon leaves this board alone, so that others may write. */
bool cap_read_left_alone(const struct json_value *gpu);

#endif
