#include "tuner/board-caps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

const char *board_caps_uuid(const struct board_caps *b, size_t i)
{
    return board_view(b->boards[i])->info->uuid;
}

struct gpu_limits board_caps_limits(const struct board_caps *b, size_t i)
{
    struct gpu_limits limits = board_view(b->boards[i])->limits;

    if (b->range)
        limits.min_mw = b->range[i].min_mw;
    return limits;
}

uint32_t board_caps_top_mw(const struct board_caps *b, size_t i)
{
    return b->range ? b->range[i].max_mw : board_view(b->boards[i])->limits.max_mw;
}

uint32_t board_caps_most_default_mw(const struct board_caps *b)
{
    uint32_t most = 0;

    for (size_t i = 0; i < b->n; i++)
        if (board_view(b->boards[i])->limits.default_mw > most)
            most = board_view(b->boards[i])->limits.default_mw;
    return most;
}

uint32_t cap_of_limits(const struct cap_arg *cap, const struct gpu_limits *limits)
{
    uint32_t mw = cap->mw;

    if (mw)
        return mw;
    mw = mw_of_w(w_of_mw(limits->default_mw) * cap->percent / 100);
    if (mw < limits->min_mw)
        return limits->min_mw;
    return mw > limits->max_mw ? limits->max_mw : mw;
}

int board_caps_common(const struct board_caps *b, struct search_setup *ret, uw_error *err)
{
    struct search_setup s = *ret;

    s.max_mw = s.original_mw = UINT32_MAX;
    for (size_t i = 0; i < b->n; i++) {
        const struct gpu_limits lim = board_caps_limits(b, i);
        if (lim.min_mw > s.min_mw)
            s.min_mw = lim.min_mw;
        if (lim.max_mw < s.max_mw)
            s.max_mw = lim.max_mw;
        if (b->original_mw[i] < s.original_mw)
            s.original_mw = b->original_mw[i];
    }
    s.default_mw = board_caps_most_default_mw(b);
    if (s.default_mw > s.max_mw)
        s.default_mw = s.max_mw;
    if (s.min_mw > s.original_mw)
        return fail(err, -ERANGE,
                    "the boards have no cap in common: at least %" PRIu32 " W, "
                    "at most %" PRIu32 " W",
                    s.min_mw / MW_PER_W, s.original_mw / MW_PER_W);
    *ret = s;
    return 0;
}

int board_caps_take_named(struct board_caps *b, uint32_t original_mw, uw_error *err)
{
    size_t outside = 0;
    bool lowers = false;
    uint32_t named_mw = 0;

    for (size_t i = 0; i < b->n; i++) {
        const struct gpu_limits lim = board_caps_limits(b, i);
        uint32_t own = cap_of_limits(&b->cap, &lim), mw = own, top = lim.max_mw;
        if (!b->cap.mw)
            mw = mw_of_w(w_of_mw(lim.default_mw) * b->cap.percent / 100);
        if (mw < b->original_mw[i])
            top = board_caps_top_mw(b, i);
        outside += mw < lim.min_mw || mw > top;
        if (outside == (b->cap.mw ? 1 : b->n))
            return fail(err, -ERANGE, "%s: a cap of %.0f W is outside %.0f..%.0f W",
                        board_caps_uuid(b, i), w_of_mw(mw), w_of_mw(lim.min_mw),
                        w_of_mw(top));
        if (own > named_mw)
            named_mw = own;
        lowers |= own < b->original_mw[i];
    }
    /* A percentage may exceed one board's original and still lower others' caps. */
    uint32_t most = original_mw - (b->cap.percent > 0 && lowers);
    b->named_mw = named_mw < most ? named_mw : most;
    return 0;
}

uint32_t board_caps_in_force_mw(const struct board_caps *b)
{
    return b->enforced_mw ? b->enforced_mw : b->commanded_mw;
}

/* The cap of board i while the ramp is at mw.  A percentage applies to each board's
 * default limit, and the ramp keeps the boards in proportion; other caps are the same for
 * all boards.  The result is a limit that the actuator accepts, or the original.
 */
static uint32_t cap_of_board(const struct board_caps *b, size_t i, uint32_t mw)
{
    const struct gpu_limits lim = board_caps_limits(b, i);
    uint32_t original = b->original_mw[i];

    if (b->cap.percent > 0) {
        uint32_t own = cap_of_limits(&b->cap, &lim);
        uint32_t way =
            mw_of_w(w_of_mw(mw) * lim.default_mw / board_caps_most_default_mw(b));
        mw = mw <= b->named_mw || way < own ? own : way;
    }
    if (mw > original || mw > board_caps_top_mw(b, i))
        mw = original; /* no limit between the top and the original may be set */
    return mw < lim.min_mw ? lim.min_mw : mw;
}

void board_caps_reply_text(const struct board_caps *b, const struct actuator_reply *reply,
                           char *ret, size_t size)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(board_caps_uuid(b, i), reply->uuid) == 0) {
            (void)snprintf(ret, size, "GPU %u: %s", board_view(b->boards[i])->info->index,
                           reply->text);
            return;
        }
    (void)snprintf(ret, size, "%s", reply->text);
}

bool board_caps_is_refusal(enum actuator_result result)
{
    switch (result) {
    case ACTUATOR_DONE:
    case ACTUATOR_CLAMPED:
    case ACTUATOR_BUSY:    /* replaced by a newer set */
    case ACTUATOR_YIELDED: /* this and GONE are reported by an event */
    case ACTUATOR_GONE:
        return false;
    default:
        return true;
    }
}

static int on_set(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct board_caps *b = user;
    uint32_t mw = reply->enforced_mw;
    (void)act;

    b->pending--;
    b->refused |= board_caps_is_refusal(reply->result);
    if (reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_CLAMPED) {
        if (!b->enforced_mw || mw < b->enforced_mw)
            b->enforced_mw = mw;
        for (size_t i = 0; i < b->n; i++)
            if (strcmp(board_caps_uuid(b, i), reply->uuid) == 0)
                b->got_mw[i] = mw;
    }
    return b->fn(BOARD_CAPS_SET, reply, b->user);
}

void board_caps_set(struct board_caps *b, uint32_t mw, const uint32_t *each)
{
    b->commanded_mw = mw;
    b->enforced_mw = 0;
    for (size_t i = 0; i < b->n; i++) {
        int r = b->table->set(b->of, i, cap_of_board(b, i, each[i]), on_set, b);
        if (r == 0)
            b->pending++;
        else
            b->refused = true;
    }
}

static int on_hold(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct board_caps *b = user;
    (void)act;

    b->pending--;
    return b->fn(BOARD_CAPS_HOLD, reply, b->user);
}

int board_caps_hold(struct board_caps *b, size_t i)
{
    int r = b->table->hold(b->of, i, on_hold, b);

    b->pending += r >= 0;
    return r;
}

static int on_release(struct actuator *act, const struct actuator_reply *reply,
                      void *user)
{
    struct board_caps *b = user;
    (void)act;

    b->releasing--;
    return b->fn(BOARD_CAPS_RELEASE, reply, b->user);
}

int board_caps_release(struct board_caps *b, size_t i)
{
    int r = b->table->release(b->of, i, on_release, b);

    b->releasing += r == 0;
    return r;
}
