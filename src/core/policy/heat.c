#include "core/policy/heat.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

/* A heat sink's time constant: for this time a rise is extrapolated. */
#define AHEAD_S 30.0
/* Times over which a rise and a fall are measured. */
#define RISE_S 8.0
#define FALL_S 6.0
/* A cap set within this time does not show in the temperature yet. */
#define FELT_S 5.0
/* A rise counts from this far below the limit. */
#define NEAR_C 10
/* No inlet is colder: the largest effect of a watt on the temperature is (temperature -
 * COLD_C) / power.
 */
#define COLD_C 10.0
/* The least step of a trim, as a fraction of the default limit. */
#define TRIM 0.01

/* The cap that limits the board: a lower cap of others hides this one. */
static uint32_t felt_mw(const struct heat *h, const struct heat_now *now)
{
    uint32_t cap_mw = h->cap_mw ? h->cap_mw : now->in_force_mw;

    return cap_mw < now->top_mw ? cap_mw : now->top_mw;
}

static bool is_hidden(const struct heat *h, const struct heat_now *now)
{
    return h->cap_mw && now->top_mw < now->open_mw && h->cap_mw >= now->top_mw;
}

static void keep(struct heat *h, const struct heat_now *now, uint64_t now_ns)
{
    if (h->n == HEAT_KEPT) {
        memmove(h->past, h->past + 1, (HEAT_KEPT - 1) * sizeof *h->past);
        h->n--;
    }
    h->past[h->n++] = (struct heat_past){now_ns, now->temp_c, felt_mw(h, now)};
}

/* The newest value of at least this age; NULL: none. */
static const struct heat_past *ago(const struct heat *h, double s, uint64_t now_ns)
{
    for (size_t i = h->n; i-- > 0;)
        if (s_of_ns(now_ns - h->past[i].at_ns) >= s - 0.5)
            return &h->past[i];
    return NULL;
}

/* The least rise in Kelvin a second that the readings prove: the last whole degree may
 * be a reading's noise.
 */
static double rise_of(const struct heat *h, const struct heat_now *now, uint64_t now_ns)
{
    const struct heat_past *was = ago(h, RISE_S, now_ns);

    if (!was || now->temp_c <= was->temp_c + 1)
        return 0;
    return (now->temp_c - was->temp_c - 1) / s_of_ns(now_ns - was->at_ns);
}

static bool falls(const struct heat *h, const struct heat_now *now, uint64_t now_ns)
{
    for (size_t i = h->n; i-- > 0;)
        if (s_of_ns(now_ns - h->past[i].at_ns) < FALL_S &&
            h->past[i].temp_c > now->temp_c)
            return true;
    return false;
}

static double draws_w(const struct heat_now *now)
{
    return fmax(now->power_w > 1 ? now->power_w : w_of_mw(now->in_force_mw), 1);
}

/* The largest possible effect of a watt on the temperature, in K/W. */
static double most_kpw(const struct heat_now *now)
{
    return fmax(now->temp_c - COLD_C, 1) / draws_w(now);
}

/* The temperature expected if nothing is done. */
static double heading_c(const struct heat *h, const struct heat_now *now, double rise,
                        uint64_t now_ns)
{
    const struct heat_past *was = ago(h, FELT_S, now_ns);
    uint32_t cap_mw = felt_mw(h, now);
    double lowered_w = was && was->cap_mw > cap_mw ? w_of_mw(was->cap_mw - cap_mw) : 0;

    return now->temp_c + AHEAD_S * rise - lowered_w * most_kpw(now) / 2;
}

/* Restarts the settling if the temperature leaves a range of one degree. */
static void settle(struct heat *h, int temp_c, uint64_t now_ns)
{
    int low = temp_c < h->low_c ? temp_c : h->low_c;
    int high = temp_c > h->high_c ? temp_c : h->high_c;

    if (h->n == 0 || high - low > 1) {
        low = high = temp_c;
        h->settled_ns = now_ns;
    }
    h->low_c = low;
    h->high_c = high;
}

static bool is_settled(const struct heat *h, uint64_t now_ns)
{
    uint64_t since = h->settled_ns > h->changed_ns ? h->settled_ns : h->changed_ns;

    return s_between(since, now_ns) >= HEAT_SETTLED_S;
}

static void lower(struct heat *h, const struct heat_now *now, double w, uint64_t now_ns)
{
    double from_w = w_of_mw(felt_mw(h, now));

    if (!h->cap_mw && now->power_w > 0) /* what it does not draw is no way down */
        from_w = fmin(from_w, now->power_w * 1.02);
    uint32_t mw = mw_of_w(fmax(floor(from_w - w), w_of_mw(now->min_mw)));
    if (mw != h->cap_mw)
        h->changed_ns = now_ns;
    h->cap_mw = mw;
}

static void raise_by(struct heat *h, const struct heat_now *now, double w,
                     uint64_t now_ns)
{
    uint64_t mw = mw_of_w(floor(w_of_mw(h->cap_mw) + w));

    h->cap_mw = mw < now->open_mw ? (uint32_t)mw : 0;
    h->changed_ns = now_ns;
}

static double down_w(const struct heat_now *now, double dt)
{
    return fmax(5, HEAT_DOWN * w_of_mw(now->default_mw)) * fmin(dt, 2);
}

/* Raises the cap under a lower cap of others, so far that the board stays cool when the
 * other cap ends.
 */
static void raise_hidden(struct heat *h, const struct heat_now *now, double over,
                         double trim_w, uint64_t now_ns)
{
    double cool_w = draws_w(now) + (-HEAT_ROOM_C - over) / most_kpw(now);
    double w = cool_w - w_of_mw(h->cap_mw);

    if (w >= trim_w)
        raise_by(h, now, w, now_ns);
}

static void control(struct heat *h, const struct heat_now *now, double dt,
                    uint64_t now_ns)
{
    double rise = rise_of(h, now, now_ns), over = now->temp_c - now->limit_c;
    double trim_w = TRIM * w_of_mw(now->default_mw), kpw = most_kpw(now);
    bool rising =
        rise > 0 && over >= -NEAR_C && heading_c(h, now, rise, now_ns) > now->limit_c;

    if (rising || (over > 0 && !falls(h, now, now_ns)))
        lower(h, now, down_w(now, dt), now_ns);
    else if (over >= 0 && is_settled(h, now_ns))
        lower(h, now, fmax((over + 1) / kpw, trim_w), now_ns);
    else if (h->cap_mw && over < -NEAR_C &&
             s_between(h->slowed_ns, now_ns) >= HEAT_IDLE_S)
        h->cap_mw = 0;
    else if (is_hidden(h, now) && over < -HEAT_ROOM_C && is_settled(h, now_ns))
        raise_hidden(h, now, over, trim_w, now_ns);
    else if (h->cap_mw && over < -HEAT_ROOM_C && now->slowed && !is_hidden(h, now) &&
             is_settled(h, now_ns))
        raise_by(
            h, now,
            fmin(fmax((-HEAT_ROOM_C - over) / kpw, trim_w), HEAT_UP_W_S * HEAT_SETTLED_S),
            now_ns);
}

static enum limit_state state_of(const struct heat *h, const struct heat_now *now,
                                 uint64_t now_ns)
{
    if (!now->known)
        return LIMIT_UNKNOWN;
    if (!h->cap_mw)
        return LIMIT_FREE;
    if (h->cap_mw > now->min_mw)
        return LIMIT_ACTS;
    if (h->state == LIMIT_SHORT)
        return now->temp_c >= now->limit_c ? LIMIT_SHORT : LIMIT_ACTS;
    return now->temp_c > now->limit_c && is_settled(h, now_ns) ? LIMIT_SHORT : LIMIT_ACTS;
}

bool heat_step(struct heat *h, const struct heat_now *now, uint64_t now_ns)
{
    double dt = h->last_ns ? s_between(h->last_ns, now_ns) : 1;
    uint32_t was_mw = h->cap_mw;

    if ((now->slowed && !is_hidden(h, now)) || !h->cap_mw)
        h->slowed_ns = now_ns;
    if (now->known) {
        settle(h, now->temp_c, now_ns);
        keep(h, now, now_ns);
        control(h, now, dt, now_ns);
        h->known_ns = now_ns;
        h->was_known = true;
    } else {
        h->n = 0; /* older values do not measure a rise any more */
        if (h->was_known && h->cap_mw != now->min_mw &&
            s_between(h->known_ns, now_ns) >= HEAT_AGE_S)
            lower(h, now, down_w(now, dt), now_ns);
    }
    h->last_ns = now_ns;
    h->state = state_of(h, now, now_ns);
    return h->cap_mw != was_mw;
}
