#include "cli/cap-read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "caps/caps.h"
#include "cli/take.h"
#include "core/cap/claim.h"

int cap_read_target(const struct json_value *gpu, const struct cap_arg *cap,
                    struct cap_target *ret, uw_error *err)
{
    const struct json_value *limits = json_get(gpu, "limits");
    struct cap_target t = {.index = (unsigned)take_u64(gpu, "gpu"),
                           .default_mw = (uint32_t)take_u64(limits, "default_mw"),
                           .original_mw = (uint32_t)take_u64(limits, "original_mw")};
    double min_w = take_mw(limits, "min_mw"), max_w = take_mw(limits, "max_mw");

    if (!take_bool(gpu, "can_cap") || !t.default_mw || isnan(min_w + max_w))
        return fail(err, -ENOTSUP, "GPU %u takes no power limit", t.index);
    t.cap_mw = cap->mw ? cap->mw : mw_of_w(w_of_mw(t.default_mw) * cap->percent / 100);
    double w = w_of_mw(t.cap_mw);
    char text[CAP_OUTSIDE_TEXT];
    if (w < min_w || w > max_w)
        return fail(err, -ERANGE, "GPU %u: %s", t.index,
                    cap_outside(cap, t.cap_mw, mw_of_w(min_w), mw_of_w(max_w), "", text));
    take_copy(gpu, "uuid", t.uuid, sizeof t.uuid);
    *ret = t;
    return 0;
}

bool cap_read_lowers(const struct json_value *gpu, const struct json_value *claims,
                     uint32_t mw, uint64_t job, char *line, size_t size)
{
    uint64_t index = take_u64(gpu, "gpu");
    uint64_t now_mw = take_u64(json_get(gpu, "limits"), "enforced_mw");

    for (size_t i = 0; i < json_count(claims) && now_mw > mw; i++) {
        const struct json_value *c = json_at(claims, i);
        uint64_t of = take_u64(c, "job");
        if (!of || of == job || take_u64(c, "gpu") != index ||
            take_u64(c, "cap_mw") <= mw)
            continue;
        (void)snprintf(line, size,
                       "GPU %" PRIu64 " is of job %" PRIu64 ": its limit goes from %g W "
                       "to %g W",
                       index, of, (double)now_mw / MW_PER_W, w_of_mw(mw));
        return true;
    }
    return false;
}

bool cap_read_board(const struct json_value *gpu, struct cap_target *t, char *line,
                    size_t size)
{
    const struct json_value *cap = json_get(gpu, "cap"),
                            *limits = json_get(gpu, "limits");
    const char *state = take_text(cap, "state"), *text = take_text(cap, "text");
    const char *holder = take_text(cap, "holder"); /* another Underwatt */
    bool held = strcmp(state, "held") == 0 || take_cap_free(cap);
    bool others = !held && *holder;

    line[0] = '\0';
    t->enforced_mw = (uint32_t)take_u64(limits, "enforced_mw");
    if (!t->original_mw)
        t->original_mw = (uint32_t)take_u64(limits, "original_mw");
    if (strcmp(state, "denied") == 0) {
        (void)snprintf(line, size, "%s",
                       *text ? text : "the daemon may not set its limit");
        return false;
    }
    /* the sampler's reading may lag behind the ramp */
    bool there = !others && t->enforced_mw > 0 && t->enforced_mw <= t->cap_mw &&
                 take_u64(cap, "ramp_mw") <= t->cap_mw;
    if (others)
        (void)snprintf(
            line, size,
            "%.150s: no cap until that command ends; the cap is then tried within 5 s",
            holder);
    else if (!held && strcmp(state, "holding") != 0)
        take_cap_state(cap, line, size);
    else if (!there && take_bool(cap, "ramping"))
        (void)snprintf(line, size, "on the way down to %g W", w_of_mw(t->cap_mw));
    else if (!there && *text)
        (void)snprintf(line, size, "not at %g W yet: %.180s", w_of_mw(t->cap_mw), text);
    t->reached |= there;
    t->lost = t->reached && !there;
    return true;
}

static bool is_reached(const struct json_value *cap, const struct cap_target *t)
{
    bool below = t->enforced_mw > 0 && t->enforced_mw < t->cap_mw; /* heat, for a while */

    return !take_bool(cap, "ramping") && take_u64(cap, "ramp_mw") == t->cap_mw &&
           (t->enforced_mw == t->cap_mw || (below && t->cap_mw <= t->original_mw));
}

enum cap_read cap_read_own(const struct json_value *gpu, const struct json_value *claim,
                           struct cap_target *t, char *line, size_t size)
{
    const struct json_value *cap = json_get(gpu, "cap"),
                            *limits = json_get(gpu, "limits");
    const char *state = take_text(cap, "state"), *text = take_text(cap, "text");
    int reason = names_number(NAMES_CLAIM_REASON, take_text(claim, "reason"));

    line[0] = '\0';
    t->asked = false;
    if (strcmp(state, "holding") == 0 || take_cap_free(cap))
        return CAP_READ_GOES_ON;
    (void)snprintf(line, size, "%s", *text ? text : state);
    if (*text)
        take_released(cap, "text", line, size);
    if (strcmp(state, "held") != 0)
        return CAP_READ_LOST;
    t->enforced_mw = (uint32_t)take_u64(limits, "enforced_mw");
    t->original_mw = (uint32_t)take_u64(limits, "original_mw");
    if (reason == CAPS_UNMET_FAILED)
        return CAP_READ_FAILED;
    bool rounded = reason == CAPS_UNMET_ROUNDED;
    t->reached |= rounded || is_reached(cap, t);
    t->asked = !t->reached && !take_bool(cap, "ramping") &&
               take_u64(cap, "ramp_mw") == t->cap_mw;
    if (!rounded)
        line[0] = '\0';
    return CAP_READ_GOES_ON;
}

int cap_read_own_back(const struct json_value *explain, char *line, size_t size)
{
    const struct json_value *cap = json_get(explain, "cap");
    const char *state = take_text(cap, "state"), *text = take_text(cap, "text");

    line[0] = '\0';
    if (strcmp(state, "held") == 0 || strcmp(state, "holding") == 0)
        return 0;
    if (take_cap_free(cap) && !take_bool(explain, "unrestored"))
        return 1;
    (void)snprintf(line, size, "%s", text);
    return -1;
}

bool cap_read_back(const struct json_value *explain, bool sure)
{
    const struct json_value *cap = json_get(explain, "cap");
    uint64_t original_mw = take_u64(json_get(explain, "bounds"), "original_mw");
    uint64_t target_mw = take_u64(cap, "target_mw");
    bool there = take_u64(explain, "enforced_mw") == target_mw;
    const char *state = take_text(cap, "state");

    if (strcmp(state, "held") != 0) /* released, or set by another program */
        return (take_cap_free(cap) && !take_bool(explain, "unrestored")) ||
               strcmp(state, "yielded") == 0 || strcmp(state, "released") == 0;
    if (target_mw < original_mw) /* another claim sets the target */
        return there || take_bool(cap, "ramping");
    return there && sure;
}

void cap_read_clock(const struct json_value *claim, struct cap_target *t, char *line,
                    size_t size)
{
    const char *state = take_text(claim, "state");
    bool in_force = take_claim_status(claim) == CAPS_MET;

    t->reached |= in_force;
    t->lost = t->reached && !in_force;
    (void)snprintf(line, size, "at most %s: %.180s", cap_target_text(t), state);
}

bool cap_read_unlocked(const struct json_value *explain)
{
    const struct json_value *clock = json_get(explain, "clock");
    bool reset = take_u64(clock, "locked_mhz") == 0 && !take_bool(explain, "unrestored");

    return reset || take_u64(clock, "claim") > 0; /* another claim keeps the lock */
}

bool cap_read_mine(const struct json_value *claim, const struct json_value *you)
{
    return names_number(NAMES_CLAIM_SOURCE, take_text(claim, "source")) ==
               CLAIM_OF_PERSON &&
           take_number(claim, "uid") == take_number(you, "uid"); /* NaN equals nothing */
}

bool cap_read_left_alone(const struct json_value *gpu)
{
    const struct json_value *cap = json_get(gpu, "cap");
    const char *state = take_text(cap, "state");

    return !*state || take_cap_free(cap) || strcmp(state, "released") == 0;
}
