/* Reads boards whose caps have ended, until nothing changes by itself any more. */
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

/* restored: every board has been read, and nothing of ours is in force.  text: what is,
 * of each board that is not at its original.  Once, never from inside final_read_start().
 */
typedef int (*final_read_fn)(bool restored, const char *text, void *user);

struct final_read_opts {
    struct loop *loop;
    const void *lib; /* of the open boards (gpu_boards) */
    const struct final_read_board *boards;
    size_t n;
    final_read_fn fn;
    void *user;
};

/* Waits for whoever restores, 5 s of the wall's time at most. */
int final_read_start(const struct final_read_opts *opts, struct final_read **ret,
                     uw_error *err);
/* After its boards: their last answers come while they are closed. */
void final_read_free(struct final_read *r);

#endif
