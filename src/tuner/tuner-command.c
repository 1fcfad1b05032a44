/* What each board gets when the tuner goes to a cap, and what is answered. */
#include <stdio.h>
#include <string.h>

#include "tuner/tuner-inside.h"

struct gpu_limits tuner_limits(const struct tuner *t, size_t i)
{
    struct gpu_limits limits = board_view(t->o.boards[i])->limits;

    if (t->o.range)
        limits.min_mw = t->o.range[i].min_mw;
    return limits;
}

uint32_t tuner_top_mw(const struct tuner *t, size_t i)
{
    return t->o.range ? t->o.range[i].max_mw : board_view(t->o.boards[i])->limits.max_mw;
}

static const char *uuid_of(const struct tuner *t, size_t i)
{
    return board_view(t->o.boards[i])->info->uuid;
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

/* What board i gets when the job's highest cap is mw: a percentage is each board's own,
 * and keeps boards in proportion on the way there; all else is the same everywhere,
 * never above a board's own original, nor where the actuator would refuse it.
 */
static uint32_t cap_of_board(const struct tuner *t, size_t i, uint32_t mw)
{
    const struct gpu_limits lim = tuner_limits(t, i);
    uint32_t original = t->o.original_mw[i];

    mw = tuner_slack_cap(t, i, mw);
    if (t->o.cap.percent > 0) {
        uint32_t top = 0, own = cap_of_limits(&t->o.cap, &lim);
        for (size_t k = 0; k < t->o.n; k++)
            if (tuner_limits(t, k).default_mw > top)
                top = tuner_limits(t, k).default_mw;
        uint32_t way = mw_of_w(w_of_mw(mw) * lim.default_mw / top);
        mw = mw <= t->asked_mw || way < own ? own : way;
    }
    if (mw > original || mw > tuner_top_mw(t, i))
        mw = original; /* in between nothing may be set */
    return mw < lim.min_mw ? lim.min_mw : mw;
}

void tuner_of_board(const struct actuator_reply *reply, char *ret, size_t size)
{
    bool named = !reply->uuid[0] || strstr(reply->text, reply->uuid);

    (void)snprintf(ret, size, "%s%s%s", named ? "" : reply->uuid, named ? "" : ": ",
                   reply->text);
}

static int tuner_on_set(struct actuator *act, const struct actuator_reply *reply,
                        void *user)
{
    struct tuner *t = user;
    (void)act;

    t->pending--;
    tuner_ran_from_now(t, t->commanded_mw);
    switch (reply->result) {
    case ACTUATOR_CLAMPED:
        if (reply->text[0])
            tuner_note(t, true, "%s", reply->text);
        /* fall through */
    case ACTUATOR_DONE:
        if (!t->enforced_mw || reply->enforced_mw < t->enforced_mw)
            t->enforced_mw = reply->enforced_mw;
        for (size_t i = 0; i < t->o.n; i++)
            if (strcmp(uuid_of(t, i), reply->uuid) == 0)
                t->got_mw[i] = reply->enforced_mw;
        break;
    case ACTUATOR_BUSY:
        break;
    case ACTUATOR_YIELDED: /* the event tells it too */
    case ACTUATOR_GONE:
        break;
    default:
        t->refused = true;
        tuner_of_board(reply, t->report.ended, sizeof t->report.ended);
    }
    return t->state == TUNER_OVER ? tuner_maybe_done(t) : 0;
}

int tuner_command(struct tuner *t, uint32_t mw)
{
    tuner_ran_at(t, mw);
    tuner_rate_moves(t, t->commanded_mw, mw);
    t->commanded_mw = mw;
    t->enforced_mw = 0;
    for (size_t i = 0; i < t->o.n; i++) {
        int r = t->o.caps->set(t->o.caps_of, i, cap_of_board(t, i, mw), tuner_on_set, t);
        if (r == 0)
            t->pending++;
        else
            t->refused = true;
    }
    return 0;
}
