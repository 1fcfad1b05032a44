#include "core/progress/kind.h"

#include <math.h>

#define ABOVE_FIRST 1.5
#define PAUSE_SHARE 0.35
#define CHANGE_SHARE 0.85
#define FLOOR_SHARE 0.06
#define IDLE_S 45.0
#define VALIDATE_S 180.0
#define FLOOR_MOST 0.25 /* of training's power, if no lower mean was seen */
#define WORKING_SM 50.0

double phase_confidence(enum phase_kind kind)
{
    /* bench/phases --self --only job --first 1001 --util-every 5 */
    static const double right[PHASE_KINDS] = {
        [PHASE_STARTUP] = 0.53, [PHASE_TRAIN] = 0.98,      [PHASE_VALIDATE] = 0.66,
        [PHASE_LOAD] = 0.76,    [PHASE_CHECKPOINT] = 0.06, [PHASE_IDLE] = 0.99,
        [PHASE_CHANGE] = 0.98,
    };
    return right[kind];
}

static bool works(const struct look *l, const struct look_back *b)
{
    bool swings = l->high_w - l->low_w > 10 * l->noise_w + 0.15 * l->level_w;

    if (!isnan(l->sm))
        return l->sm >= WORKING_SM || (swings && l->sm >= WORKING_SM / 2);
    return swings || l->level_w >= ABOVE_FIRST * b->first_w;
}

static enum phase_kind pause_kind(const struct look *l, double share)
{
    if (l->lasted_s >= IDLE_S)
        return PHASE_IDLE;
    if (!isnan(l->sm))
        return l->sm > 8 ? PHASE_LOAD : PHASE_CHECKPOINT;
    return share < FLOOR_SHARE ? PHASE_CHECKPOINT : PHASE_LOAD;
}

enum phase_kind phase_guess(const struct look *l, const struct look_back *b)
{
    if (b->train_w <= 0) {
        if (works(l, b))
            return PHASE_TRAIN;
        return PHASE_STARTUP;
    }
    if (l->level_w >= ABOVE_FIRST * b->train_w)
        return PHASE_TRAIN; /* the regime taken for training was another phase */
    double floor = fmin(b->floor_w, FLOOR_MOST * b->train_w);
    double share = (l->level_w - floor) / fmax(b->train_w - floor, 1);
    if (share < PAUSE_SHARE)
        return pause_kind(l, share);
    if (share < CHANGE_SHARE)
        return l->lasted_s < VALIDATE_S ? PHASE_VALIDATE : PHASE_CHANGE;
    return b->after_train ? PHASE_CHANGE : PHASE_TRAIN;
}
