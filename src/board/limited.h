/* Whether its power limit holds a board down: what its samples tell of that. */
#ifndef BOARD_LIMITED_H
#define BOARD_LIMITED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/binding.h"
#include "gpu/gpu.h"

/* Adds a sample that read the counter of limited time or the reasons for the clock. */
void limited_note(struct binding_log *log, const struct gpu_sample *sample);
/* What the next sample has to read besides, for that; searches: a search runs. */
uint32_t limited_wants(const struct gpu_info *info, bool searches);

#endif
