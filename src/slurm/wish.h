/* A user's request by one of the plugin's options: its form, and whether the boards of
 * the cluster allow it.  Pure; used at submission, and again in the prolog, because
 * checks at submission can be bypassed.
 */
#ifndef SLURM_WISH_H
#define SLURM_WISH_H

#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"

enum { WISH_TEXT = 64 };

/* key: "cap", "preset", "goal" or "class" of the request to the daemon. */
struct wish {
    const char *key;
    char text[WISH_TEXT];
    uint32_t mw; /* of a cap in watts, else 0 */
};

/* The value of --gpu-power-cap, -goal and -class.  -EINVAL or -ERANGE with a text that
 * names the value and the forms.
 */
int wish_cap(const char *value, struct wish *ret, uw_error *err);
int wish_goal(const char *value, struct wish *ret, uw_error *err);
int wish_class(const char *value, struct wish *ret, uw_error *err);

/* The table of the cluster's boards and of the policy's classes, a line each:
 *
 *     board v100  100 W  300 W     # name, lowest and highest power limit
 *     class training
 */
enum { TABLE_MAX = 64 };
struct table {
    size_t n_boards, n_classes;
    struct {
        uint32_t min_mw, max_mw;
    } board[TABLE_MAX];
    char cls[TABLE_MAX][WISH_TEXT];
};
/* -EINVAL with the line. */
int table_read(const char *text, size_t len, struct table *ret, uw_error *err);

/* Whether some board allows the cap, or the policy has the class; a table without boards,
 * or without classes, does not restrict them.  -ERANGE, -EINVAL.
 */
int table_check(const struct table *t, const struct wish *w, uw_error *err);

#endif
