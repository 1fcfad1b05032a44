#include "core/policy/rise.h"

#include <math.h>

#include "base/units.h"

/* A board that pauses is not slowed by its cap, and draws little: at most LITTLE_MIN of
 * its minimum plus LITTLE of the range that others allow above the minimum.
 */
#define LITTLE_MIN 0.7
#define LITTLE 0.25
/* Such a board may draw this multiple of its power, … */
#define ROOM 1.25
/* … and needs more once it draws this part of its cap, which exceeds 1 / ROOM by more
 * than the difference of two readings.
 */
#define AGAIN 0.9

static double grain_w(const struct rise_now *now)
{
    return fmax(1, floor(RISE_GRAIN * w_of_mw(now->default_mw)));
}

static bool is_open(const struct rise_board *b, const struct rise_now *now)
{
    return !b->cap_mw || b->cap_mw >= now->top_mw;
}

/* The power that the board may draw now. */
static double allowed_w(const struct rise_board *b, const struct rise_now *now)
{
    return w_of_mw(is_open(b, now) ? now->top_mw : b->cap_mw);
}

static bool draws_much(const struct rise_now *now)
{
    double min_w = w_of_mw(now->min_mw), above_w = w_of_mw(now->top_mw) - min_w;

    return now->has_job && (now->slowed || now->power_w >= LITTLE_MIN * min_w +
                                                               LITTLE * fmax(0, above_w));
}

static bool wants_more(const struct rise_board *b, const struct rise_now *now)
{
    return draws_much(now) || (now->has_job && now->power_w >= AGAIN * allowed_w(b, now));
}

/* Lowers the cap of a board that is held low with the power that it draws; never raises
 * it.
 */
static void hold_low(struct rise_board *b, const struct rise_now *now)
{
    double min_w = w_of_mw(now->min_mw), was_w = allowed_w(b, now);
    double low_w = now->has_job ? fmax(min_w, ceil(ROOM * b->level_w)) : min_w;

    b->state = now->has_job ? LIMIT_PAUSED : LIMIT_NO_JOB;
    if (b->low && low_w > min_w && low_w > was_w - grain_w(now))
        return;
    b->low = true;
    b->behind_ns = 0;
    b->cap_w = fmax(min_w, fmin(was_w, low_w));
    b->cap_mw = mw_of_w(b->cap_w);
}

/* The board draws power again: what it may draw in addition is charged.  One reading may
 * be noise: the cap stays until the next one.
 */
static void let_go(struct rise *r, struct rise_board *b, const struct rise_now *now,
                   uint64_t now_ns)
{
    r->credit_w -= fmax(0, allowed_w(b, now) - b->level_w);
    b->low = false;
    b->little_ns = now_ns;
}

/* Averages the power of the last seconds.  While the board is held low, a change of the
 * average is charged or repaid.
 */
static void look_level(struct rise *r, struct rise_board *b, const struct rise_now *now)
{
    double was_w = b->level_w;

    b->level_w = (b->level_w + now->power_w) / 2;
    if (b->low)
        r->credit_w -= b->level_w - was_w;
}

static void look(struct rise *r, struct rise_board *b, const struct rise_now *now,
                 uint64_t now_ns)
{
    if (wants_more(b, now)) {
        if (b->low)
            let_go(r, b, now, now_ns);
        else
            b->little_ns = 0;
        return;
    }
    if (!b->little_ns) {
        b->little_ns = now_ns;
        b->level_w = now->power_w;
    }
    look_level(r, b, now);
    bool idles = !b->seen && now->power_w < LITTLE_MIN * w_of_mw(now->min_mw);
    if (b->low || idles || s_between(b->little_ns, now_ns) >= RISE_PAUSE_S)
        hold_low(b, now);
}

/* ---- up ---- */

static bool climbs(const struct rise_board *b, const struct rise_now *now)
{
    return now->known && !b->low && b->cap_mw && b->cap_mw < now->top_mw;
}

/* The missing power.  A cap that does not slow its board stays near the power that the
 * board draws.
 */
static double missing_w(const struct rise_board *b, const struct rise_now *now)
{
    double top_w = w_of_mw(now->top_mw);

    if (b->little_ns)
        return 0;
    if (!draws_much(now))
        top_w = fmin(top_w, ROOM * now->power_w);
    return fmax(0, top_w - b->cap_w);
}

/* The equal share of each climbing board with which sum_w is used up or all boards are
 * at their top.
 */
static double share_of(const struct rise *r, const struct rise_now *now, size_t n,
                       double sum_w)
{
    double share_w = 0, left_w = sum_w;

    for (size_t round = 0; round < n && left_w > 1e-6; round++) {
        size_t want = 0;
        double least_w = INFINITY;
        for (size_t i = 0; i < n; i++) {
            double more_w = missing_w(&r->board[i], &now[i]) - share_w;
            if (!climbs(&r->board[i], &now[i]) || more_w <= 1e-9)
                continue;
            want++;
            least_w = fmin(least_w, more_w);
        }
        if (want == 0)
            break;
        double step_w = fmin(left_w / (double)want, least_w);
        share_w += step_w;
        left_w -= step_w * (double)want;
    }
    return share_w;
}

static void climb(struct rise *r, const struct rise_now *now, size_t n)
{
    double share_w = r->credit_w > 0 ? share_of(r, now, n, r->credit_w) : 0;

    for (size_t i = 0; i < n; i++) {
        struct rise_board *b = &r->board[i];
        if (!climbs(b, &now[i]))
            continue;
        double more_w = fmin(share_w, missing_w(b, &now[i]));
        b->state = LIMIT_RISES;
        b->cap_w += more_w;
        r->credit_w -= more_w;
        uint32_t mw = mw_of_w(floor(b->cap_w + 1e-6));
        if (b->cap_w > w_of_mw(now[i].top_mw) - 1e-6)
            b->cap_mw = now[i].top_mw;
        else if (w_of_mw(mw) >= w_of_mw(b->cap_mw) + grain_w(&now[i]))
            b->cap_mw = mw;
    }
}

/* A board at its top needs no claim at its original, and otherwise a claim a little
 * above the others', so that theirs decide.
 */
static void follow(struct rise_board *b, const struct rise_now *now, uint64_t now_ns)
{
    double room_w = grain_w(now), follow_w = w_of_mw(now->top_mw) + room_w;

    if (b->low || !is_open(b, now))
        return;
    if (follow_w >= w_of_mw(now->original_mw)) {
        b->cap_mw = 0;
        b->behind_ns = 0;
        b->state = LIMIT_FREE;
        return;
    }
    b->state = b->cap_mw ? LIMIT_BEHIND : LIMIT_FREE;
    bool is_near = b->cap_mw && w_of_mw(b->cap_mw) <= follow_w + room_w;
    bool is_tight = b->cap_mw && w_of_mw(b->cap_mw) < w_of_mw(now->top_mw) + 1;
    if (is_near && !is_tight) {
        b->behind_ns = 0;
        return;
    }
    if (!b->behind_ns)
        b->behind_ns = now_ns;
    if (!is_tight && s_between(b->behind_ns, now_ns) < RISE_PAUSE_S)
        return;
    b->cap_w = follow_w;
    b->cap_mw = mw_of_w(follow_w);
    b->state = LIMIT_BEHIND;
    b->behind_ns = 0;
}

/* ---- all boards ---- */

static void measure(struct rise *r, const struct rise_now *now, size_t n)
{
    double sum_w = 0;

    r->first_w = 0;
    for (size_t i = 0; i < n; i++) {
        const struct rise_board *b = &r->board[i];
        if (!now[i].known)
            sum_w = -INFINITY;
        sum_w += now[i].power_w;
        if (b->low && now[i].known)
            r->first_w += fmax(0, allowed_w(b, &now[i]) - now[i].power_w);
    }
    if (sum_w >= 0 && r->power_w >= 0 && r->last_ns)
        r->fall_w = fmax(r->fall_w, r->power_w - sum_w);
    r->power_w = sum_w >= 0 ? sum_w : -1;
}

void rise_step(struct rise *r, double rate_w_s, const struct rise_now *now, size_t n,
               uint64_t now_ns)
{
    double dt = r->last_ns ? s_between(r->last_ns, now_ns) : 0;

    r->credit_w = fmin(r->credit_w + rate_w_s * dt, rate_w_s * fmin(dt, 2));
    for (size_t i = 0; i < n; i++) {
        struct rise_board *b = &r->board[i];
        if (!now[i].known) {
            b->state = LIMIT_UNKNOWN; /* the power that it may draw stays */
            continue;
        }
        look(r, b, &now[i], now_ns);
        b->seen = true;
    }
    climb(r, now, n);
    for (size_t i = 0; i < n; i++)
        if (now[i].known)
            follow(&r->board[i], &now[i], now_ns);
    measure(r, now, n);
    r->last_ns = now_ns;
}
