#include "core/job/waste.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"

/* A board with processes but without kernels keeps its clocks up: it draws 16 to 28 % of
 * the range above idle at most (docs/design/waste.md).
 */
#define QUIET_SHARE (1.0 / 3)
#define AT_CAP 0.9 /* of the cap in force: the cap holds the power down, not the job */
#define UNREAD_NS (30 * NS_PER_S) /* longest time without readings */
#define GAP_NS NS_PER_S           /* longest gap between consecutive stretches */

double waste_share(const struct waste_board *b, double power_w)
{
    double range_w = b->limit_w - b->idle_w;

    if (!(power_w >= 0) || !(b->limit_w > 0) || !(range_w > 0))
        return -1;
    return fmax(power_w - b->idle_w, 0) / range_w;
}

/* Whether the power allows that no kernel runs.  Without a known idle power the range
 * begins at 0.
 */
static bool is_low_power(const struct waste_board *b, double power_w)
{
    double share = waste_share(b, power_w);

    return share >= 0 && share <= QUIET_SHARE;
}

static bool is_under(const struct waste_limits *limits, const struct waste_board *b,
                     double util, double power_w)
{
    double share = waste_share(b, power_w);

    if (share < 0 || (b->cap_w > 0 && power_w > AT_CAP * b->cap_w))
        return false;
    return (util < limits->under && share <= QUIET_SHARE) ||
           (b->idle_w > 0 && share < limits->under);
}

/* ---- averages over the slots ---- */

static void put(struct waste_track *t, double slot_s, double s, double util,
                double power_w)
{
    struct waste_slot *slot = &t->slot[t->at];

    if (slot->s >= slot_s && slot->s > 0) {
        t->at = (t->at + 1) % WASTE_SLOTS;
        slot = &t->slot[t->at];
        *slot = (struct waste_slot){0};
    }
    slot->s += s;
    slot->util_s += util * s;
    slot->power_j += power_w * s;
}

static struct waste_slot sum_of(const struct waste_track *t)
{
    struct waste_slot sum = {0};

    for (size_t i = 0; i < WASTE_SLOTS; i++) {
        sum.s += t->slot[i].s;
        sum.util_s += t->slot[i].util_s;
        sum.power_j += t->slot[i].power_j;
    }
    return sum;
}

static bool was_under(const struct waste_track *t, const struct waste_limits *limits,
                      const struct waste_board *b)
{
    struct waste_slot sum = sum_of(t);

    return limits->under_ns > 0 && sum.s > 0 && sum.s >= s_of_ns(limits->under_ns) &&
           is_under(limits, b, sum.util_s / sum.s, sum.power_j / sum.s);
}

/* ---- one stretch ---- */

/* Whether the board is quiet.  While readings are missing for a short time, a quiet
 * board stays quiet.
 */
static bool is_quiet(const struct waste_track *t, const struct waste_board *b,
                     const struct waste_seen *s)
{
    if (!is_low_power(b, s->power_w))
        return false;
    return s->n > 0 ? s->top <= 0 : t->quiet_ns != 0;
}

static bool is_unread(const struct waste_track *t, const struct waste_seen *s)
{
    return s->n == 0 && (t->read_ns == 0 || s->end_ns - t->read_ns > UNREAD_NS);
}

enum waste_state waste_step(struct waste_track *t, const struct waste_limits *limits,
                            const struct waste_board *board, const struct waste_seen *s,
                            bool anew)
{
    bool follows =
        t->end_ns != 0 && s->begin_ns >= t->end_ns && s->begin_ns - t->end_ns <= GAP_NS;

    if (anew || !follows || is_unread(t, s) || !(s->power_w >= 0))
        *t = (struct waste_track){0};
    t->end_ns = s->end_ns;
    if (limits->after_ns == 0 || s->end_ns <= s->begin_ns || is_unread(t, s) ||
        !(s->power_w >= 0))
        return WASTE_STATE_BUSY;
    if (s->n > 0)
        t->read_ns = s->end_ns;
    if (!is_quiet(t, board, s))
        t->quiet_ns = 0;
    else if (t->quiet_ns == 0)
        t->quiet_ns = s->begin_ns;
    if (t->quiet_ns != 0 && s->begin_ns - t->quiet_ns >= limits->after_ns)
        return WASTE_STATE_QUIET;
    if (s->n == 0)
        return WASTE_STATE_BUSY;
    put(t, s_of_ns(limits->under_ns) / (WASTE_SLOTS - 1),
        s_between(s->begin_ns, s->end_ns), s->mean, s->power_w);
    return is_under(limits, board, s->mean, s->power_w) && was_under(t, limits, board)
               ? WASTE_STATE_UNDER
               : WASTE_STATE_BUSY;
}

enum waste_class waste_of_job(enum waste_state state, bool has_process)
{
    switch (state) {
    case WASTE_STATE_QUIET:
        return has_process ? WASTE_HELD : WASTE_ALLOCATED;
    case WASTE_STATE_UNDER:
        return WASTE_UNDER;
    default:
        return WASTE_WORKING;
    }
}
