#include "tuner/board-caps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

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
    char text[CAP_OUTSIDE_TEXT];

    for (size_t i = 0; i < b->n; i++) {
        const struct gpu_limits lim = board_caps_limits(b, i);
        uint32_t own = cap_of_limits(&b->cap, &lim), mw = own, top = lim.max_mw;
        if (!b->cap.mw)
            mw = mw_of_w(w_of_mw(lim.default_mw) * b->cap.percent / 100);
        if (mw < b->original_mw[i])
            top = board_caps_top_mw(b, i);
        outside += mw < lim.min_mw || mw > top;
        if (outside == (b->cap.mw ? 1 : b->n))
            return fail(err, -ERANGE, "GPU %u (%s): %s",
                        board_view(b->boards[i])->info->index, board_caps_uuid(b, i),
                        cap_outside(&b->cap, mw, lim.min_mw, top, "", text));
        if (own > named_mw)
            named_mw = own;
        lowers |= own < b->original_mw[i];
    }
    /* A percentage may exceed one board's original and still lower others' caps. */
    uint32_t most = original_mw - (b->cap.percent > 0 && lowers);
    b->named_mw = named_mw < most ? named_mw : most;
    return 0;
}

/* ---- reports of the claims ---- */

uint32_t board_caps_enforced_mw(const struct board_caps *b)
{
    uint32_t low = UINT32_MAX;

    for (size_t i = 0; i < b->n; i++)
        if (b->told[i].in_force_mw < low)
            low = b->told[i].in_force_mw;
    return low;
}

uint32_t board_caps_in_force_mw(const struct board_caps *b)
{
    uint32_t mw = board_caps_enforced_mw(b);

    return mw ? mw : b->commanded_mw;
}

uint32_t board_caps_below_mw(const struct board_caps *b, uint32_t mw)
{
    uint32_t low = 0;

    for (size_t i = 0; i < b->n; i++) {
        uint32_t at = b->told[i].in_force_mw;
        if (at && at < mw && at < b->original_mw[i] && (!low || at < low))
            low = at;
    }
    return low;
}

static bool is_in_force(enum claim_progress is)
{
    return is == CLAIM_MET || is == CLAIM_CLAMPED;
}

uint32_t board_caps_lowest_mw(const struct board_caps *b)
{
    uint32_t low = 0;

    for (size_t i = 0; i < b->n; i++) {
        const struct claim_told *told = &b->told[i];
        bool ours = told->claimed && told->answers &&
                    (told->progress == CLAIM_COMING || is_in_force(told->progress));
        if (ours && told->in_force_mw && (!low || told->in_force_mw < low))
            low = told->in_force_mw;
    }
    return low;
}

/* The cap of board i on the way to its claim. */
static uint32_t at_mw(const struct board_caps *b, size_t i)
{
    const struct claim_told *told = &b->told[i];
    uint32_t mw = told->in_force_mw ? told->in_force_mw : told->at_mw;

    return mw > b->asked_mw[i] ? mw : b->asked_mw[i];
}

uint32_t board_caps_at_mw(const struct board_caps *b)
{
    uint32_t low = UINT32_MAX;

    for (size_t i = 0; i < b->n; i++)
        if (b->asked_mw[i] && at_mw(b, i) < low)
            low = at_mw(b, i);
    return low < UINT32_MAX ? low : b->commanded_mw;
}

bool board_caps_lower(const struct board_caps *b, uint32_t original_mw)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->asked_mw[i] && at_mw(b, i) < b->original_mw[i] &&
            at_mw(b, i) < original_mw)
            return true;
    return false;
}

bool board_caps_stop(const struct board_caps *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->told[i].stops)
            return true;
    return false;
}

uint32_t board_caps_ceiling_mw(const struct board_caps *b, bool rules)
{
    uint32_t low = UINT32_MAX;

    for (size_t i = 0; i < b->n; i++) {
        const struct claim_told *told = &b->told[i];
        uint32_t mw = rules ? told->rules_mw : told->without_mw;
        if (mw < low)
            low = mw;
    }
    return low;
}

uint32_t board_caps_other_mw(const struct board_caps *b)
{
    uint32_t low = 0;

    for (size_t i = 0; i < b->n; i++) {
        uint32_t mw = b->told[i].without_mw;
        if (mw < b->asked_mw[i] && (!low || mw < low))
            low = mw;
    }
    return low;
}

bool board_caps_hear(struct board_caps *b, size_t i, const struct claim_told *told,
                     const char *text)
{
    bool pends = b->pending >> i & 1u;
    bool left = told->unrestored && !told->claimed; /* the actuator keeps trying */

    b->told[i] = *told;
    (void)snprintf(b->told_text[i], sizeof b->told_text[i], "%s", text);
    if (told->progress == CLAIM_COMING && !left)
        return false;
    b->pending &= ~(1ull << i);
    return pends;
}

bool board_caps_back(const struct board_caps *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->told[i].claimed || b->told[i].progress != CLAIM_MET)
            return false;
    return true;
}

void board_caps_text(const struct board_caps *b, size_t i, char *ret, size_t size)
{
    static const char *const unmet[] = {
        [UNMET_NONE] = "another limit is in force",
        [UNMET_YIELDED] = "the limit of another program stays in force",
        [UNMET_RELEASED] = "released by an administrator",
        [UNMET_DENIED] = "the right to set limits is missing",
        [UNMET_LOST] = "the board or the actuator does not answer",
        [UNMET_DRY_RUN] = "dry run: caps are decided and not written",
        [UNMET_LATE] = "the cap has not come into force",
    };
    enum claim_unmet why = b->told[i].why;
    const char *text = error_after(b->told_text[i], board_caps_uuid(b, i));

    if (!text[0] && b->told[i].unrestored)
        text = "the actuator has not restored the limit yet";
    else if (!text[0] || why == UNMET_DRY_RUN)
        text = unmet[why];
    (void)snprintf(ret, size, "GPU %u: %s", board_view(b->boards[i])->info->index, text);
}

/* ---- claims ---- */

/* The cap of board i where the highest board is to have mw.  A percentage applies to each
 * board's default limit.  The result is a limit that the actuator accepts, or the
 * original.
 */
static uint32_t cap_of_board(const struct board_caps *b, size_t i, uint32_t mw)
{
    const struct gpu_limits lim = board_caps_limits(b, i);
    uint32_t original = b->original_mw[i];

    if (b->cap.percent > 0 && mw <= b->named_mw)
        mw = cap_of_limits(&b->cap, &lim);
    if (mw > original || mw > board_caps_top_mw(b, i))
        mw = original; /* no limit between the top and the original may be set */
    return mw < lim.min_mw ? lim.min_mw : mw;
}

/* Whether the claim is made and its cap is in force, or no claim is needed yet. */
static bool stands(const struct board_caps *b, size_t i, uint32_t mw)
{
    if (!b->asked_mw[i])
        return mw >= b->original_mw[i];
    return b->asked_mw[i] == mw && !(b->pending >> i & 1u) &&
           is_in_force(b->told[i].progress);
}

bool board_caps_stand(const struct board_caps *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (!stands(b, i, b->asked_mw[i] ? b->asked_mw[i] : UINT32_MAX))
            return false;
    return true;
}

static void state(struct board_caps *b, size_t i, uint32_t mw,
                  const struct claim_way *way)
{
    uw_error err = {""};

    b->asked_mw[i] = mw;
    if (b->table->state(b->of, i, mw, way, &err) >= 0) {
        b->pending |= 1ull << i;
        return;
    }
    b->refused = true;
    (void)snprintf(b->text, sizeof b->text, "%s", err.text);
}

void board_caps_set(struct board_caps *b, uint32_t mw, const uint32_t *each,
                    const struct claim_way *way)
{
    b->commanded_mw = mw;
    for (size_t i = 0; i < b->n; i++) {
        uint32_t own = cap_of_board(b, i, each[i]);
        if (!stands(b, i, own))
            state(b, i, own, way);
        else if (b->table->explain)
            b->table->explain(b->of, i);
    }
}

void board_caps_explain(struct board_caps *b)
{
    for (size_t i = 0; b->table->explain && i < b->n; i++)
        b->table->explain(b->of, i);
}

void board_caps_stay(struct board_caps *b)
{
    b->commanded_mw = board_caps_at_mw(b);
    for (size_t i = 0; i < b->n; i++)
        state(b, i, at_mw(b, i), &CLAIM_AT_ONCE);
}

void board_caps_release(struct board_caps *b)
{
    for (size_t i = 0; i < b->n; i++) {
        b->asked_mw[i] = 0;
        b->pending |= 1ull << i;
        b->table->drop(b->of, i);
    }
}
