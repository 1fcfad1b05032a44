#include "policy/rule-claims.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "caps/caps.h"
#include "caps/claimant.h"
#include "io/loop.h"

#define RENEW_NS (10 * NS_PER_S) /* a third of the lease */

/* A claim as it was made last. */
struct stated {
    struct engine_claim claim;
    bool failed; /* refused, and reported */
};

struct rule_claims {
    struct loop *loop;
    struct caps *caps;
    size_t n;
    enum claim_kind kind[2];
    struct claimant *claimant[2];
    struct stated stated[BOARDS_MAX][2];
    struct loop_timer *timer;
    bool renews;
    uint64_t refused;
};

static bool has_claims(const struct rule_claims *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (claimant_claim(c->claimant[0], i) || claimant_claim(c->claimant[1], i))
            return true;
    return false;
}

static int on_renew(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rule_claims *c = user;

    c->renews = has_claims(c);
    if (!c->renews)
        return 0;
    claimant_renew(c->claimant[0], NULL);
    claimant_renew(c->claimant[1], NULL);
    loop_timer_set(timer, now_ns + RENEW_NS, 0);
    return 0;
}

static void renew_later(struct rule_claims *c)
{
    if (c->renews)
        return;
    c->renews = true;
    loop_timer_set(c->timer, loop_now_ns(c->loop) + RENEW_NS, 0);
}

static bool is_same_way(const struct claim_way *a, const struct claim_way *b)
{
    return a->own == b->own && a->rate_mw_s >= b->rate_mw_s &&
           a->rate_mw_s <= b->rate_mw_s && a->first_mw == b->first_mw;
}

static bool is_same(const struct engine_claim *a, const struct engine_claim *b)
{
    return a->mw == b->mw && is_same_way(&a->way, &b->way) &&
           strcmp(a->who, b->who) == 0 && strcmp(a->why, b->why) == 0;
}

static void refuse(struct rule_claims *c, size_t board, struct stated *s, const char *who,
                   const uw_error *why)
{
    char text[300];

    if (!s->failed) {
        c->refused++;
        (void)snprintf(text, sizeof text, "%s: %s", who, why->text);
        caps_say_failed(c->caps, board, text);
    }
    s->failed = true;
}

void rule_claims_state(struct rule_claims *c, size_t board, size_t which,
                       const struct engine_claim *claim)
{
    struct claimant *k = c->claimant[which];
    uw_error err = {""};

    if (board >= c->n)
        return;
    struct stated *s = &c->stated[board][which];
    if (!claim) {
        if (claimant_claim(k, board))
            claimant_drop(k, board);
        s->failed = false;
        return;
    }
    if (claimant_claim(k, board) && is_same(claim, &s->claim))
        return;
    const struct claimant_ask ask = {.mw = claim->mw,
                                     .way = claim->way,
                                     .who = claim->who,
                                     .why = claim->why,
                                     .kind = c->kind[which]};
    if (claimant_state(k, board, &ask, &err) < 0) {
        refuse(c, board, s, claim->who, &err);
        if (claimant_claim(k, board)) /* another rule's claim, which has ended */
            claimant_drop(k, board);
        return;
    }
    *s = (struct stated){.claim = *claim};
    renew_later(c);
}

uint64_t rule_claims_id(const struct rule_claims *c, size_t board, size_t which)
{
    return claimant_claim(c->claimant[which], board);
}

uint64_t rule_claims_refused(const struct rule_claims *c)
{
    return c->refused;
}

int rule_claims_new(struct loop *loop, struct caps *caps, enum claim_source source,
                    size_t n, struct rule_claims **ret, uw_error *err)
{
    auto_(rule_claims_free) struct rule_claims *c = calloc(1, sizeof *c);
    const struct claimant_who who = {
        .source = source,
        .boards = n < BOARDS_MAX ? (1ull << n) - 1 : UINT64_MAX,
        .name = "the policy",
    };

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->loop = loop;
    c->caps = caps;
    c->n = n < BOARDS_MAX ? n : BOARDS_MAX;
    c->kind[0] = source == CLAIM_OF_RULE ? CLAIM_SOFT : CLAIM_HARD;
    c->kind[1] = CLAIM_HARD;
    int r = loop_timer_new(loop, UINT64_MAX, 0, on_renew, c, &c->timer, err);
    for (size_t i = 0; r == 0 && i < 2; i++)
        r = claimant_new(loop, caps, &who, &c->claimant[i], err);
    if (r < 0)
        return r;
    *ret = take(c);
    return 0;
}

void rule_claims_free(struct rule_claims *c)
{
    if (!c)
        return;
    claimant_free(c->claimant[0]);
    claimant_free(c->claimant[1]);
    loop_timer_free(c->timer);
    free(c);
}
