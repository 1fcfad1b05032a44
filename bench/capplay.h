/* The caps of a made-up board, for benches and tests that give a tuner no real ones: its
 * claim, the ramp to it, and what a claimant would be told (caps/claimant.h).  Pure: time
 * is an argument.  Of a lock, all of it is in MHz.
 */
#ifndef BENCH_CAPPLAY_H
#define BENCH_CAPPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "caps/claimant.h"
#include "core/cap/ramp.h"
#include "core/cap/stop.h"

struct cap_play {
    struct ramp ramp;
    struct cap_stop stop;
    struct claim_way way;
    uint64_t claim; /* 0: none */
    uint32_t original_mw, in_force_mw;
};

void cap_play_init(struct cap_play *p, uint32_t original_mw, uint32_t grain_mw,
                   uint64_t now_ns);
void cap_play_state(struct cap_play *p, uint32_t mw, const struct claim_way *way,
                    uint64_t now_ns);
void cap_play_drop(struct cap_play *p, uint64_t now_ns);
void cap_play_progressed(struct cap_play *p, unsigned units, uint64_t now_ns);
/* Puts into force what is due; the next time something is; UINT64_MAX: never. */
uint64_t cap_play_step(struct cap_play *p, uint64_t now_ns);
void cap_play_told(const struct cap_play *p, struct claim_told *ret);

#endif
