/* The energy of windows over boards of one or several samplers, added up: what a tuner
 * asks.  In the daemon each board has a sampler of its own for ever, and a job has some
 * of the boards.
 */
#ifndef NODE_METERS_H
#define NODE_METERS_H

#include <stddef.h>
#include <stdint.h>

#include "node/sampler.h"

struct meters;

struct meters_window {
    int r; /* 0, or -ENODATA, -ENOMEM: some board cannot say; see error */
    uw_error error;
    uint64_t begin_ns, end_ns;
    double energy_j, half_j;    /* sums; half: 95 %, boards independent */
    double board_j[BOARDS_MAX]; /* of each board, in the order of the samplers' boards */
    double peak_w;              /* observed peak of the hungriest board; 0 unknown */
    uint32_t why;               /* enum meter_why of all boards */
};
typedef int (*meters_fn)(const struct meters_window *w, void *user);

/* Over all boards of these n samplers that count in; they outlive the meters. */
int meters_new(struct sampler *const *samplers, size_t n, struct meters **ret,
               uw_error *err);
/* Windows still waited for are forgotten. */
void meters_free(struct meters *m);
DEFINE_AUTO(struct meters *, meters_free);

/* A window will begin or end about then. */
void meters_mark(struct meters *m, uint64_t at_ns);
/* As sampler_window(): fn is called once, never from inside.  0, -EAGAIN, -ENOMEM. */
int meters_window(struct meters *m, uint64_t begin_ns, uint64_t end_ns, meters_fn fn,
                  void *user);

#endif
