/* Bodies of requests to what the node is asked.  Strict: unknown keys, other types, bare
 * numbers where a quantity needs its unit, and what is out of its range are refused with
 * a text that names key, value and limit.  Pure.
 */
#ifndef API_BODY_H
#define API_BODY_H

#include "io/json.h"
#include "node/node.h"
#include "underwatt/error.h"

enum { BODY_BOARD = 96, BODY_BOARDS_MAX = 64 };

/* The texts of what follows are the document's: it outlives them. */
struct body_claim {
    struct node_claim ask;
    char board[BODY_BOARD]; /* what ask.board points to, where it was a number */
};
/* -EINVAL or -ERANGE; *ret is what it was then, here and below. */
int body_claim(const struct json_value *v, struct body_claim *ret, uw_error *err);

/* The board of this name: what node_board() says. */
typedef int (*body_board_fn)(void *node, const char *name, size_t *ret, uw_error *err);
struct body_job {
    struct node_job ask; /* reg.uid and reg.label too; page_fd -1 */
    struct label label[LABELS_MAX];
    bool has_uid;
};
/* *ret->ask.reg.uid is uid where the body names none. */
int body_job(const struct json_value *v, uid_t uid, body_board_fn board, void *node,
             struct body_job *ret, uw_error *err);

/* {"for": "10 min"}; 0 where it is left out. */
int body_release(const struct json_value *v, uint64_t *ret_ns, uw_error *err);

/* A board's index or UUID, as a number or a text. */
int body_board_name(const struct json_value *v, const char *key, char buf[BODY_BOARD],
                    const char **ret, uw_error *err);
/* "250 W", "85%": a bare number has no unit, and none is guessed. */
int body_cap(const char *key, const char *text, struct cap_arg *ret, uw_error *err);

#endif
