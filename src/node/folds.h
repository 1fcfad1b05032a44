/* A thread that computes windows for all samplers of a process, on copies of their
 * meters: folding one may take a second where a sensor looks part of the time, and a
 * daemon's loop must not wait that long.  One copy at a time.
 */
#ifndef NODE_FOLDS_H
#define NODE_FOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/meter/meter.h"
#include "io/loop.h"

struct folds;

int folds_new(struct loop *loop, struct folds **ret, uw_error *err);
/* After everybody who asks. */
void folds_free(struct folds *f);
DEFINE_AUTO(struct folds *, folds_free);

/* A window of one meter; the asker's own, from folds_add() until done or forgotten. */
struct fold_ask {
    const struct meter *meter;
    uint64_t begin_ns, end_ns;
    int (*done)(struct fold_ask *ask, void *user); /* called once, never from inside */
    void *user;
    /* The answer: */
    int r; /* as meter_window() has it, or -ENOMEM */
    uw_error error;
    struct meter_result result;
    double peak_w;         /* 0 unknown */
    struct fold_ask *next; /* for folds.c */
};
void folds_add(struct folds *f, struct fold_ask *ask);
void folds_forget(struct folds *f, const struct fold_ask *ask); /* none of f's: fine */

#endif
