#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "tuner/tuner.h"

struct slot {     /* a board */
    size_t at;    /* index in the set of caps */
    bool watched; /* the clock is watched */
};

struct tuner_claims {
    struct tuner_claims_opts o;
    char why[CLAIM_TEXT];
    struct claimant *claimant;
    struct slot slot[BOARDS_MAX];
    struct tuner *tuner;
};

static int on_told(size_t board, const struct claim_told *told, const char *text,
                   void *user)
{
    struct tuner_claims *c = user;

    for (size_t i = 0; c->tuner && i < c->o.n; i++)
        if (c->slot[i].at == board)
            return tuner_on_told(c->tuner, i, told, text);
    return 0;
}

/* ---- claims ---- */

static void why_percent(const struct tuner_claims *c, const struct caps_view *v,
                        uint32_t mw, char ret[CLAIM_TEXT])
{
    double default_w = w_of_mw(v->limits.default_mw);
    uint32_t plain_mw = mw_of_w(default_w * c->o.percent / 100);
    bool named = c->o.preset && c->o.preset[0];

    (void)snprintf(ret, CLAIM_TEXT, "%s%s%s%g %% of this board's default limit, %g W%s",
                   named ? "preset " : "", named ? c->o.preset : "", named ? ": " : "",
                   c->o.percent, default_w,
                   mw > plain_mw ? ", raised to its minimum" : "");
}

/* A search claims even the original, so that the actuator keeps holding the board. */
static int claims_state(void *caps, size_t board, uint32_t mw,
                        const struct claim_way *way, uw_error *err)
{
    struct tuner_claims *c = caps;
    size_t at = c->slot[board].at;
    char why[CLAIM_TEXT];
    struct caps_view v;

    caps_look(c->o.caps, at, &v);
    if (c->o.kind == CLAIM_NAMED)
        claimant_adopt(c->claimant, at); /* made by an earlier daemon */
    if (mw >= v.bounds.original_mw && c->o.kind == CLAIM_NAMED) {
        claimant_drop(c->claimant, at);
        return 0;
    }
    memcpy(why, c->why, sizeof why);
    if (c->o.percent > 0)
        why_percent(c, &v, mw, why);
    const struct claimant_ask ask = {
        .mw = mw < v.bounds.original_mw ? mw : v.bounds.original_mw,
        .way = *way,
        .why = why};
    return claimant_state(c->claimant, at, &ask, err);
}

/* The reason of a percentage is the percentage. */
static void claims_explain_board(void *caps, size_t board)
{
    const struct tuner_claims *c = caps;

    if (c->o.percent <= 0)
        claimant_explain(c->claimant, c->slot[board].at, c->why);
}

static void claims_progressed(void *caps, unsigned units)
{
    const struct tuner_claims *c = caps;

    claimant_progressed(c->claimant, units);
}

static void claims_look(const void *caps, size_t board, struct claim_told *ret)
{
    const struct tuner_claims *c = caps;

    claimant_look(c->claimant, c->slot[board].at, ret);
}

static int claims_clock(void *caps, size_t board, uint32_t mhz,
                        const struct claim_way *way, uw_error *err)
{
    struct tuner_claims *c = caps;

    if (!mhz) {
        claimant_drop_clock(c->claimant, c->slot[board].at);
        return 0;
    }
    const struct claimant_ask ask = {.mhz = mhz, .way = *way, .why = c->why};
    return claimant_state(c->claimant, c->slot[board].at, &ask, err);
}

static void claims_clock_watch(void *caps, size_t board, bool watch)
{
    struct tuner_claims *c = caps;

    c->slot[board].watched = watch;
    caps_watch_clock(c->o.caps, c->slot[board].at, watch);
}

static void claims_clock_look(void *caps, size_t board, struct caps_clock_view *ret)
{
    const struct tuner_claims *c = caps;
    struct caps_view v;

    caps_look(c->o.caps, c->slot[board].at, &v);
    *ret = v.clock;
}

static uint32_t claims_share(void *caps, size_t board)
{
    const struct tuner_claims *c = caps;
    struct caps_view v;

    caps_look(c->o.caps, c->slot[board].at, &v);
    return v.share_mw < v.bounds.original_mw ? v.share_mw : 0;
}

static void claims_split(void *caps, const uint32_t *mw)
{
    struct tuner_claims *c = caps;
    uint32_t each[BOARDS_MAX] = {0};

    for (size_t i = 0; mw && i < c->o.n; i++)
        each[c->slot[i].at] = mw[i];
    claimant_split(c->claimant, mw ? each : NULL);
}

/* Withdraws the claim on the board's clock and stops the watch. */
static void leave_clock(struct tuner_claims *c, size_t board)
{
    claimant_drop_clock(c->claimant, c->slot[board].at);
    if (c->slot[board].watched)
        claims_clock_watch(c, board, false);
}

static void claims_leave(void *caps, size_t board)
{
    struct tuner_claims *c = caps;

    leave_clock(c, board);
    claimant_split(c->claimant, NULL);
    if (c->o.kind == CLAIM_NAMED)
        claimant_adopt(c->claimant, c->slot[board].at);
    claimant_drop(c->claimant, c->slot[board].at);
}

const struct tuner_caps tuner_claims_caps = {
    .state = claims_state,
    .drop = claims_leave,
    .progressed = claims_progressed,
    .look = claims_look,
    .clock = claims_clock,
    .clock_watch = claims_clock_watch,
    .clock_look = claims_clock_look,
    .share = claims_share,
    .split = claims_split,
    .explain = claims_explain_board,
};

/* ---- life ---- */

int tuner_claims_new(const struct tuner_claims_opts *opts, struct tuner_claims **ret,
                     uw_error *err)
{
    auto_(tuner_claims_free) struct tuner_claims *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    if (opts->n > BOARDS_MAX)
        return fail(err, -E2BIG, "%zu boards are more than %d", opts->n, BOARDS_MAX);
    c->o = *opts;
    struct claimant_who who = {.source = opts->kind == CLAIM_NAMED ? CLAIM_OF_JOB_CAP
                                                                   : CLAIM_OF_SEARCH,
                               .uid = opts->uid,
                               .job = opts->job,
                               .fn = on_told,
                               .user = c};
    (void)snprintf(who.name, sizeof who.name, "%s", opts->who);
    for (size_t i = 0; i < opts->n; i++) {
        c->slot[i].at = board_view(opts->boards[i])->at;
        who.boards |= 1ull << c->slot[i].at;
    }
    int r = claimant_new(opts->loop, opts->caps, &who, &c->claimant, err);
    if (r < 0)
        return r;
    *ret = take(c);
    return 0;
}

void tuner_claims_free(struct tuner_claims *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->claimant && i < c->o.n; i++)
        leave_clock(c, i);
    claimant_free(c->claimant);
    free(c);
}

int tuner_claims_keep(struct tuner_claims *c, uw_error *err)
{
    int r = 0;

    tuner_claims_why(c,
                     "the limit found at the start, until the original limit is known");
    for (size_t i = 0; i < c->o.n && r >= 0; i++)
        r = claims_state(c, i, UINT32_MAX, &CLAIM_AT_ONCE, err);
    return r;
}

void tuner_claims_tell(struct tuner_claims *c, struct tuner *tuner)
{
    c->tuner = tuner;
}

void tuner_claims_why(struct tuner_claims *c, const char *why)
{
    size_t n = strlen(why);

    (void)snprintf(c->why, sizeof c->why, "%s", why);
    if (n < sizeof c->why)
        return;
    char *end = strrchr(c->why, ' '); /* whole words */
    while (end && end > c->why && strchr(" :,;(", end[-1]))
        end--;
    if (end)
        *end = '\0';
}
