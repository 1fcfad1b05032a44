#include "tuner/tuner-caps.h"

static const char *uuid_of(const struct tuner_local *l, size_t i)
{
    return board_view(l->boards[i])->info->uuid;
}

static int local_set(void *caps, size_t board, uint32_t mw, actuator_reply_fn fn,
                     void *user)
{
    struct tuner_local *l = caps;
    return actuator_set_limit(l->actuator, uuid_of(l, board), mw, fn, user);
}

static int local_hold(void *caps, size_t board, actuator_reply_fn fn, void *user)
{
    struct tuner_local *l = caps;
    return actuator_hold(l->actuator, uuid_of(l, board), fn, user);
}

static int local_release(void *caps, size_t board, actuator_reply_fn fn, void *user)
{
    struct tuner_local *l = caps;
    return actuator_release(l->actuator, uuid_of(l, board), fn, user);
}

/* A board whose release failed may be back at its original later, as the actuator keeps
 * trying.
 */
static bool local_back(void *caps)
{
    struct tuner_local *l = caps;

    for (size_t i = 0; i < l->n; i++) {
        size_t at = board_view(l->boards[i])->at;
        const struct sampler_now *now = sampler_board(l->sampler, at);
        if (!now || now->failures > 0 || !(now->last.has & GPU_HAS_ENFORCED) ||
            now->last.enforced_mw != l->original_mw[i])
            return false;
    }
    return true;
}

const struct tuner_caps tuner_local_caps = {
    .set = local_set,
    .hold = local_hold,
    .release = local_release,
    .back = local_back,
    .lease_over = "was stopped for longer than a lease",
};
