/* Reads boards whose caps have ended, until nothing changes by itself any more. */
#ifndef NODE_REREAD_H
#define NODE_REREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "node/boards.h"
#include "underwatt/error.h"

struct reread;

struct reread_board {
    struct board *board;
    uint32_t original_mw;
};

enum { REREAD_TEXT = 320 };

/* restored: every board has been read, and nothing of ours is in force.  text: what is,
 * of each board that is not at its original.  Once, never from inside reread_start().
 */
typedef int (*reread_fn)(bool restored, const char *text, void *user);

struct reread_opts {
    struct loop *loop;
    const void *lib; /* the boards' open NVML */
    const struct reread_board *boards;
    size_t n;
    reread_fn fn;
    void *user;
};

/* Waits for whoever restores, 5 s of the wall's time at most. */
int reread_start(const struct reread_opts *opts, struct reread **ret, uw_error *err);
/* After its boards: their last answers come while they are closed. */
void reread_free(struct reread *r);

#endif
