/* The energy of windows over boards of one or several samplers: what a tuner asks.
 * In the daemon each board has a sampler of its own for ever and a job has some of the
 * boards; folding a window may take 0.1 s there, so it is done beside the loop, on a
 * copy of the meter.
 */
#ifndef NODE_METERS_H
#define NODE_METERS_H

#include <stddef.h>
#include <stdint.h>

#include "io/loop.h"
#include "node/sampler.h"

struct meters;

struct meters_window {
    int r; /* 0, or -ENODATA, -ENOMEM: some board cannot say; see error */
    uw_error error;
    uint64_t begin_ns, end_ns;
    double energy_j, half_j; /* sums; half: 95 %, boards independent */
    double peak_w;           /* observed peak of the hungriest board; 0 unknown */
    uint32_t why;            /* enum meter_why of all boards */
};
typedef int (*meters_fn)(const struct meters_window *w, void *user);

/* A thread that computes windows, one board's at a time, for all that share it. */
struct meters_shop;
int meters_shop_new(struct loop *loop, struct meters_shop **ret, uw_error *err);
/* After every meters that uses it. */
void meters_shop_free(struct meters_shop *shop);
DEFINE_AUTO(struct meters_shop *, meters_shop_free);

struct meters_opts {
    struct loop *loop;
    struct sampler *const *sampler; /* all boards of each that count in; borrowed */
    size_t n;
    /* Where windows are computed; NULL: by the one sampler, in the loop's thread. */
    struct meters_shop *shop;
};
/* -EINVAL: several samplers and no shop. */
int meters_new(const struct meters_opts *opts, struct meters **ret, uw_error *err);
/* Windows still waited for are forgotten. */
void meters_free(struct meters *m);
DEFINE_AUTO(struct meters *, meters_free);

/* A window will begin or end about then. */
void meters_mark(struct meters *m, uint64_t at_ns);
/* As sampler_window(): fn is called once, never from inside.  0, -EAGAIN (32 are waited
 * for already), -ENOMEM.
 */
int meters_window(struct meters *m, uint64_t begin_ns, uint64_t end_ns, meters_fn fn,
                  void *user);

#endif
