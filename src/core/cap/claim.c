#include "core/cap/claim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

static size_t position(const struct claims *c, uint64_t id)
{
    size_t i = 0;

    while (i < c->n && c->claim[i].id != id)
        i++;
    return i;
}

bool claim_is_at_once(const struct claim *claim)
{
    return claim->kind == CLAIM_HARD || (claim->way.own && !(claim->way.rate_mw_s > 0));
}

static int check(const struct claim *claim, uw_error *err)
{
    if (!claim->id)
        return fail(err, -EINVAL, "a claim needs an id");
    if (claim->kind < CLAIM_SOFT || claim->kind > CLAIM_HARD)
        return fail(err, -EINVAL, "claim of kind %d, not soft, named or hard",
                    (int)claim->kind);
    if (!claim->mw && !claim->mhz)
        return fail(err, -EINVAL, "a claim of 0 mW and no clock");
    if (claim->mw && claim->mhz)
        return fail(err, -EINVAL, "a claim on both watts and clock: make two");
    if (claim->until_ns <= claim->made_ns)
        return fail(err, -EINVAL, "a claim that ends before it begins");
    if (!isfinite(claim->way.rate_mw_s) || claim->way.rate_mw_s < 0)
        return fail(err, -EINVAL, "a claim whose way down has no rate");
    return 0;
}

bool claims_has_room(const struct claims *c, const struct claim *claim)
{
    size_t n = 0, mild = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (c->claim[i].id == claim->id)
            continue;
        n++;
        mild += c->claim[i].kind != CLAIM_HARD;
    }
    return claim->kind == CLAIM_HARD ? n < CLAIMS_MAX : mild < CLAIMS_MAX - CLAIMS_HARD;
}

int claims_put(struct claims *c, const struct claim *claim, uw_error *err)
{
    int r = check(claim, err);

    if (r < 0)
        return r;
    size_t i = position(c, claim->id);
    if (!claims_has_room(c, claim) || i == CLAIMS_MAX)
        return fail(err, -E2BIG,
                    "there are %zu claims: at most %d, %d of them reserved for hard ones",
                    c->n, CLAIMS_MAX, CLAIMS_HARD);
    c->claim[i] = *claim;
    c->claim[i].who[CLAIM_TEXT - 1] = '\0';
    c->claim[i].why[CLAIM_TEXT - 1] = '\0';
    c->n += i == c->n;
    return 0;
}

void claims_explain(struct claims *c, uint64_t id, const char *why)
{
    size_t i = position(c, id);

    if (i < c->n)
        (void)snprintf(c->claim[i].why, CLAIM_TEXT, "%s", why);
}

static void drop_at(struct claims *c, size_t i)
{
    c->n--;
    memmove(&c->claim[i], &c->claim[i + 1], (c->n - i) * sizeof c->claim[0]);
}

bool claims_drop(struct claims *c, uint64_t id)
{
    size_t i = position(c, id);

    if (i == c->n)
        return false;
    drop_at(c, i);
    return true;
}

void claims_drop_of(struct claims *c, enum claim_source source)
{
    for (size_t i = c->n; i-- > 0;)
        if (c->claim[i].source == source)
            drop_at(c, i);
}

size_t claims_expire(struct claims *c, uint64_t now_ns, claims_over_fn fn, void *user)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n;) {
        if (c->claim[i].until_ns == CLAIM_FOREVER || c->claim[i].until_ns > now_ns) {
            i++;
            continue;
        }
        if (fn)
            fn(&c->claim[i], user);
        drop_at(c, i);
        n++;
    }
    return n;
}

uint64_t claims_next_ns(const struct claims *c)
{
    uint64_t next_ns = CLAIM_FOREVER;

    for (size_t i = 0; i < c->n; i++)
        if (c->claim[i].until_ns < next_ns)
            next_ns = c->claim[i].until_ns;
    return next_ns;
}

const struct claim *claims_find(const struct claims *c, uint64_t id)
{
    size_t i = position(c, id);

    return i < c->n ? &c->claim[i] : NULL;
}
