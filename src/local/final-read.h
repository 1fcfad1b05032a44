/* Reads the limits of boards whose caps have ended, until they no longer change. */
#ifndef LOCAL_FINAL_READ_H
#define LOCAL_FINAL_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "board/boards.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct final_read;

struct final_read_board {
    struct board *board;
    uint32_t original_mw;
};

enum { FINAL_READ_TEXT = 320 };

/* restored: every board was read, and no limit of ours is in force.  text: the limit in
 * force on each board that is not at its original.  Called once, never from inside
 * final_read_start().
 */
typedef int (*final_read_fn)(bool restored, const char *text, void *user);

struct final_read_opts {
    struct loop *loop;
    const void *lib; /* the open boards (gpu_boards) */
    const struct final_read_board *boards;
    size_t n;
    final_read_fn fn;
    void *user;
};

/* Waits for processes that restore limits, 5 s of the wall's time at most. */
int final_read_start(const struct final_read_opts *opts, struct final_read **ret,
                     uw_error *err);
/* Free the boards first: pending answers come while they are closed. */
void final_read_free(struct final_read *r);

#endif
