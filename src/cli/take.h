/* Reads fields of the daemon's answers; a missing or null field is unknown. */
#ifndef CLI_TAKE_H
#define CLI_TAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "io/json.h"

double take_number(const struct json_value *v, const char *key); /* NaN unknown */
/* A limit in mW, converted to W; NaN unknown. */
double take_mw(const struct json_value *v, const char *key);
/* The energy of a job; NaN until some is booked. */
double take_energy(const struct json_value *job);
uint64_t take_u64(const struct json_value *v, const char *key); /* 0 unknown */
bool take_bool(const struct json_value *v, const char *key);    /* false unknown */
/* Borrowed; "" unknown. */
const char *take_text(const struct json_value *v, const char *key);
/* Copied, cut to fit; "" unknown. */
void take_copy(const struct json_value *v, const char *key, char *ret, size_t size);
/* The text of `key` of a board's cap or a job's search and, if a board was released, " at
 * 14:02" in local time, with the date if it was another day.
 */
void take_released(const struct json_value *v, const char *key, char *ret, size_t size);
/* Whether the daemon leaves the board alone: to nobody, or to another command. */
bool take_cap_free(const struct json_value *cap);
/* "released by an administrator at 14:02", or "yielded: TEXT": the state of a board's
 * cap, and why.
 */
void take_cap_state(const struct json_value *cap, char *ret, size_t size);
/* "1500 W for the node; limits of 1498 W count": the budget in the answer of GET
 * /v1/node; "" without one.  Returns whether the limits are above it.
 */
bool take_budget(const struct json_value *node, char *ret, size_t size);
/* The first value of the array whose key has this number; NULL: none. */
const struct json_value *take_entry(const struct json_value *array, const char *key,
                                    uint64_t number);
/* The owner of a job: the name, or "uid 1000". */
void take_owner(const struct json_value *job, char *ret, size_t size);
/* An array of board indices as bits; those above 63 are left out. */
uint64_t take_board_bits(const struct json_value *array);
/* The same as "0-3,5"; "-" none. */
void take_boards(const struct json_value *array, char *ret, size_t size);
void take_runs(uint64_t boards, char *ret, size_t size); /* of bits */

/* The claim's `status`.  From an older daemon only the text of `state` is available,
 * where "in force" is a status too.
 */
enum caps_met take_claim_status(const struct json_value *claim);

#endif
