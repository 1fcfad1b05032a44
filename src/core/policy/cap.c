#include "core/policy/cap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"

const struct policy_preset policy_presets[POLICY_PRESETS_BUILT_IN] = {
    {"aggressive", 0.70}, {"balanced", 0.85}, {"minimal", 0.95}};

enum { FORM_MAX = 63 };

static const struct policy_preset *find_preset(const struct policy_preset *presets,
                                               size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

static const char *nearest_preset(const struct policy_preset *presets, size_t n,
                                  const char *name, char ret[NEAREST_TEXT])
{
    struct nearest near = {0};

    for (size_t i = 0; i < n; i++)
        nearest_try(&near, name, strlen(name), presets[i].name);
    return nearest_text(&near, ret);
}

static int fail_preset(const char *text, const struct policy_preset *presets, size_t n,
                       uw_error *err)
{
    char hint[NEAREST_TEXT];

    return fail(err, -EINVAL,
                "'%.60s' is no cap (250 W, 75 %%, 85 %% of demand, -25 %%, -100 W, or a "
                "preset)%s",
                text, nearest_preset(presets, n, text, hint));
}

int policy_preset_find(const struct policy_preset *presets, size_t n, const char *name,
                       struct policy_preset *ret, uw_error *err)
{
    const struct policy_preset *found = find_preset(presets, n, name);
    char hint[NEAREST_TEXT], names[100] = "";
    size_t at = 0;

    if (found) {
        *ret = *found;
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        bool fits = at + strlen(presets[i].name) + 8 < sizeof names;
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                               fits ? presets[i].name : "...");
        if (!fits)
            break;
    }
    return fail(err, -EINVAL, "'%.40s' is no preset%s (known: %s)", name,
                nearest_preset(presets, n, name, hint), names);
}

/* Reads a number without a sign, followed by '%' and the end of the text. */
static bool read_percent(const char *text, double *ret)
{
    char number[FORM_MAX + 1];
    size_t n = strlen(text);

    while (n > 0 && text[n - 1] == ' ')
        n--;
    if (n < 2 || n > FORM_MAX || text[n - 1] != '%' || *text < '0' || *text > '9')
        return false;
    memcpy(number, text, n - 1);
    number[n - 1] = '\0';
    return parse_double(number, ret, NULL) == 0;
}

int policy_share_read(const char *text, double *ret, uw_error *err)
{
    double percent = 0;

    if (!read_percent(text, &percent))
        return fail(err, -EINVAL, "'%.60s' is no share: write '70 %%'", text);
    if (!(percent > 0 && percent <= 100))
        return fail(err, -ERANGE, "'%.60s' must be above 0 %% and at most 100 %%", text);
    *ret = percent / 100;
    return 0;
}

/* A share of `measure` or watts of `watts`, without a sign. */
static int read_amount(const char *text, enum policy_measure measure,
                       enum policy_measure watts, struct policy_cap *ret, uw_error *err)
{
    struct cap_arg limit = {0};
    int r = parse_limit(text, &limit, err);

    if (r == 0 && measure == POLICY_LESS_SHARE && limit.percent >= 100)
        r = fail(err, -ERANGE, "'-%s' leaves nothing", text);
    if (r < 0)
        return r;
    *ret = limit.mw
               ? (struct policy_cap){.measure = watts, .mw = limit.mw}
               : (struct policy_cap){.measure = measure, .share = limit.percent / 100};
    return 0;
}

int policy_cap_read(const char *text, const struct policy_preset *presets, size_t n,
                    struct policy_cap *ret, uw_error *err)
{
    const char *of = strstr(text, "of demand");
    char share[FORM_MAX + 1];

    if (*text == '-')
        return read_amount(text + 1 + strspn(text + 1, " "), POLICY_LESS_SHARE,
                           POLICY_LESS_WATTS, ret, err);
    if (of && strcmp(of, "of demand") == 0 && of - text <= FORM_MAX) {
        memcpy(share, text, (size_t)(of - text));
        share[of - text] = '\0';
        struct policy_cap cap = {.measure = POLICY_OF_DEMAND};
        int r = policy_share_read(share, &cap.share, err);
        if (r == 0)
            *ret = cap;
        return r;
    }
    if (*text >= '0' && *text <= '9')
        return read_amount(text, POLICY_OF_DEFAULT, POLICY_WATTS, ret, err);
    const struct policy_preset *preset = find_preset(presets, n, text);
    if (!preset)
        return fail_preset(text, presets, n, err);
    *ret = (struct policy_cap){
        .measure = POLICY_OF_DEFAULT, .share = preset->share, .preset = preset->name};
    return 0;
}

const char *policy_cap_text(const struct policy_cap *cap, char ret[POLICY_CAP_TEXT])
{
    bool less = cap->measure == POLICY_LESS_SHARE || cap->measure == POLICY_LESS_WATTS;

    if (cap->preset)
        (void)snprintf(ret, POLICY_CAP_TEXT, "%.48s (%g %%)", cap->preset,
                       cap->share * 100);
    else if (cap->measure == POLICY_WATTS || cap->measure == POLICY_LESS_WATTS)
        (void)snprintf(ret, POLICY_CAP_TEXT, "%s%g W", less ? "-" : "", w_of_mw(cap->mw));
    else
        (void)snprintf(ret, POLICY_CAP_TEXT, "%s%g %%%s", less ? "-" : "",
                       cap->share * 100,
                       cap->measure == POLICY_OF_DEMAND ? " of demand" : "");
    return ret;
}

int policy_ramp_read(const char *text, struct policy_ramp *ret, uw_error *err)
{
    struct policy_ramp ramp = {.pace = POLICY_AT_RATE};
    char share[FORM_MAX + 1];
    size_t n = strlen(text);

    if (strcmp(text, "class") == 0) {
        ramp.pace = POLICY_AS_CLASS;
    } else if (strcmp(text, "at once") == 0) {
        ramp.pace = POLICY_AT_ONCE;
    } else {
        if (n < 3 || n > FORM_MAX || strcmp(text + n - 2, "/s") != 0)
            return fail(err, -EINVAL, "'%.60s' is no ramp (class, at once, 2 %%/s)",
                        text);
        memcpy(share, text, n - 2);
        share[n - 2] = '\0';
        int r = policy_share_read(share, &ramp.rate, err);
        if (r < 0)
            return r;
    }
    *ret = ramp;
    return 0;
}

/* ---- which claim ---- */

static bool is_relative(const struct policy_asks *asks)
{
    return asks->cap.measure == POLICY_LESS_SHARE ||
           asks->cap.measure == POLICY_LESS_WATTS;
}

/* Rounds like lround(), for values that are not negative and fit, without a call. */
static uint32_t nearest_mw(double mw)
{
    uint32_t whole = (uint32_t)mw;

    return whole + (mw - whole >= 0.5);
}

/* The requested cap before floors; 0: the value it is a share of is unknown. */
static double asked(const struct policy_board *board, const struct policy_cap *cap,
                    uint32_t base_mw)
{
    switch (cap->measure) {
    case POLICY_WATTS:
        return cap->mw;
    case POLICY_OF_DEFAULT:
        return cap->share * board->default_mw;
    case POLICY_OF_DEMAND:
        return cap->share * board->demand_mw;
    case POLICY_LESS_SHARE:
        return (1 - cap->share) * base_mw;
    default:
        return cap->mw < base_mw ? base_mw - cap->mw : 1;
    }
}

/* The claim of one request; *ret_floored: a floor has raised it. */
static uint32_t claim_mw(const struct policy_board *board, const struct policy_asks *asks,
                         uint32_t base_mw, bool *ret_floored)
{
    double share = asks->hard || asks->floor > board->floor ? asks->floor : board->floor;
    uint32_t mw = nearest_mw(asked(board, &asks->cap, base_mw));
    uint32_t floor_mw = nearest_mw(share * board->demand_mw);

    *ret_floored = mw > 0 && mw < floor_mw;
    if (mw == 0)
        return 0;
    if (*ret_floored)
        mw = floor_mw;
    if (board->max_mw && mw > board->max_mw)
        mw = board->max_mw;
    return mw > board->min_mw ? mw : board->min_mw;
}

static void lower_to(uint32_t *mw, uint32_t other_mw)
{
    if (other_mw && (!*mw || other_mw < *mw))
        *mw = other_mw;
}

static uint32_t base_of(const struct policy_board *board, const struct policy_asks *asks,
                        size_t n)
{
    uint32_t mw = board->original_mw;
    bool floored;

    lower_to(&mw, board->lowest_mw);
    lower_to(&mw, board->hold_mw);
    lower_to(&mw, board->peak_mw);
    for (size_t i = 0; i < n; i++)
        if (!is_relative(&asks[i]))
            lower_to(&mw, claim_mw(board, &asks[i], 0, &floored));
    return mw;
}

/* For a phase rule: the ramp continues from the lowest cap under which the phase ran. */
static struct claim_way way_from(const struct policy_board *board,
                                 const struct policy_ramp *ramp)
{
    double rate = ramp->pace == POLICY_AS_CLASS ? board->class_rate : ramp->rate;

    return (struct claim_way){
        .own = true, .rate_mw_s = rate * board->default_mw, .first_mw = board->ran_mw};
}

static struct claim_way way_of(const struct policy_board *board,
                               const struct policy_asks *asks, uint32_t mw)
{
    struct policy_ramp ramp =
        asks->ramp.pace == POLICY_AS_CLASS ? board->ramp : asks->ramp;

    if (asks->hard || ramp.pace == POLICY_AT_ONCE ||
        (asks->phase && board->ran_mw && mw >= board->ran_mw))
        return CLAIM_AT_ONCE;
    if (asks->phase && board->ran_mw && board->default_mw)
        return way_from(board, &ramp);
    if (ramp.pace == POLICY_AS_CLASS || !board->default_mw)
        return (struct claim_way){.own = false};
    return (struct claim_way){.own = true, .rate_mw_s = ramp.rate * board->default_mw};
}

void policy_claims_of(const struct policy_board *board, const struct policy_asks *asks,
                      size_t n, uint32_t *each_mw, struct policy_claims *ret)
{
    struct policy_claims c = {
        .base_mw = base_of(board, asks, n), .soft.asks = -1, .hard.asks = -1};

    for (size_t i = 0; i < n; i++) {
        struct policy_won *won = asks[i].hard ? &c.hard : &c.soft;
        bool floored;
        uint32_t mw = claim_mw(board, &asks[i], c.base_mw, &floored);
        if (each_mw)
            each_mw[i] = mw;
        if (mw && (won->asks < 0 || mw < won->mw))
            *won = (struct policy_won){(int)i, mw, floored, way_of(board, &asks[i], mw)};
    }
    *ret = c;
}
