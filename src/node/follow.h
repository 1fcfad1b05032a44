/* The phase that a job's boards are in, from what is read of them anyway: hears their
 * samples and asks for none (core/progress/phases.h).  One a job, over the mean of its
 * boards.
 */
#ifndef NODE_FOLLOW_H
#define NODE_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/progress/phases.h"
#include "io/loop.h"
#include "node/sampler.h"

struct follow;

struct follow_board {
    struct sampler *sampler;
    size_t at; /* the board's place in it */
};

/* Nothing is heard yet.  -ENOMEM. */
int follow_new(struct loop *loop, struct follow **ret);
void follow_free(struct follow *f);
DEFINE_AUTO(struct follow *, follow_free);

/* From now on it hears these boards (up to BOARDS_MAX, whose samplers outlive that) and
 * begins anew; n 0: none, and nothing is known.  -ENOMEM: none.
 */
int follow_hear(struct follow *f, const struct follow_board *board, size_t n);

/* The limit or the clock of its boards changes now: their power will, too, and that is no
 * phase.  most_w: the most one of them may draw; INFINITY unknown.  NULL is fine.
 */
void follow_on_cap(struct follow *f, double most_w);

struct follow_look {
    enum phase_kind kind; /* PHASE_UNKNOWN: where nothing is heard, too */
    uint64_t since_ns;    /* 0 unknown */
    uint64_t known_ns;    /* … and since when that is known */
};
void follow_look(const struct follow *f, struct follow_look *ret); /* NULL is fine */

/* See phases_pauses(). */
unsigned follow_pauses(const struct follow *f, uint64_t from_ns, uint64_t to_ns,
                       double *ret_s);

#endif
