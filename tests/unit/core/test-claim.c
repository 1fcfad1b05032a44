#include "core/cap/claim.h"

#include <errno.h>

#include "base/names.h"
#include "base/units.h"
#include "tap.h"

#define S(x) ((uint64_t)(x)*NS_PER_S)
#define W(x) ((uint32_t)(x)*MW_PER_W)

static struct claim claim_of(uint64_t id, enum claim_kind kind, uint32_t mw,
                             uint64_t until_ns)
{
    return (struct claim){
        .id = id, .kind = kind, .mw = mw, .made_ns = S(1), .until_ns = until_ns};
}

static bool same(const struct claims *a, const struct claims *b)
{
    bool equal = a->n == b->n;

    for (size_t i = 0; equal && i < a->n; i++) {
        const struct claim *x = &a->claim[i], *y = &b->claim[i];
        equal = x->id == y->id && x->kind == y->kind && x->mw == y->mw &&
                x->made_ns == y->made_ns && x->until_ns == y->until_ns;
    }
    return equal;
}

static void test_refused(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct claim claim;
        int r;
        const char *text;
    } cases[] = {
        {"no id", {.kind = CLAIM_HARD, .mw = 1, .until_ns = 1}, -EINVAL, "id"},
        {"no kind", {.id = 3, .mw = 1, .until_ns = 1}, -EINVAL, "kind"},
        {"another kind", {.id = 3, .kind = CLAIM_HARD + 1, .mw = 1, .until_ns = 1}, -EINVAL, "kind 4"},
        {"no watts", {.id = 3, .kind = CLAIM_SOFT, .until_ns = 1}, -EINVAL, "0 mW"},
        {"over at once", {.id = 3, .kind = CLAIM_SOFT, .mw = 1, .made_ns = 7, .until_ns = 7}, -EINVAL, "ends before"},
        {"over before", {.id = 3, .kind = CLAIM_SOFT, .mw = 1, .made_ns = 7, .until_ns = 6}, -EINVAL, "ends before"},
    };
    /* clang-format on */
    struct claims c = {.n = 1,
                       .claim = {claim_of(9, CLAIM_NAMED, W(200), CLAIM_FOREVER)}};
    const struct claims before = c;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uw_error err = {""};
        int r = claims_put(&c, &cases[i].claim, &err);
        ok(r == cases[i].r && strstr(err.text, cases[i].text), "%s: %s", cases[i].name,
           err.text);
        ok(same(&c, &before), "%s: nothing has changed", cases[i].name);
    }
}

static void test_room(void)
{
    struct claims c = {.n = 0};
    uw_error err = {""};
    struct claim soft = claim_of(1, CLAIM_SOFT, W(200), CLAIM_FOREVER);
    struct claim hard = claim_of(100, CLAIM_HARD, W(200), CLAIM_FOREVER);
    int r = 0;

    while (r == 0) {
        r = claims_put(&c, &soft, &err);
        soft.id++;
    }
    ok(r == -E2BIG && c.n == CLAIMS_MAX - CLAIMS_HARD, "soft ones leave room: %zu, '%s'",
       c.n, err.text);
    struct claim named = claim_of(200, CLAIM_NAMED, W(200), CLAIM_FOREVER);
    is_int(claims_put(&c, &named, NULL), -E2BIG, "named ones take none of it either");
    for (r = 0; r == 0; hard.id++)
        r = claims_put(&c, &hard, &err);
    ok(r == -E2BIG && c.n == CLAIMS_MAX, "hard ones fill it: %zu", c.n);
    struct claims full = c;
    is_int(claims_put(&c, &hard, NULL), -E2BIG, "not one more");
    soft = claim_of(2, CLAIM_SOFT, W(150), CLAIM_FOREVER);
    is_int(claims_put(&c, &soft, &err), 0, "one that is there is replaced all the same");
    ok(c.n == CLAIMS_MAX && c.claim[1].mw == W(150), "… in its place");
    c.claim[1] = full.claim[1];
    ok(same(&c, &full), "… and nothing else");
    hard = claim_of(100, CLAIM_SOFT, W(200), CLAIM_FOREVER);
    is_int(claims_put(&c, &hard, &err), -E2BIG,
           "a hard one turns soft only where one fits");
}

static void note_over(const struct claim *claim, void *user)
{
    uint64_t *sum = user;

    *sum = *sum * 10 + claim->id;
}

static void test_expiry(void)
{
    struct claims c = {.n = 0};
    uint64_t told = 0;
    struct claim put[] = {
        claim_of(1, CLAIM_NAMED, W(200), S(10)),
        claim_of(2, CLAIM_HARD, W(180), CLAIM_FOREVER),
        claim_of(3, CLAIM_SOFT, W(160), S(5)),
        claim_of(4, CLAIM_SOFT, W(150), S(10)),
    };

    ok(claims_next_ns(&c) == CLAIM_FOREVER, "none is over ever");
    for (size_t i = 0; i < 4; i++)
        (void)claims_put(&c, &put[i], NULL);
    ok(claims_next_ns(&c) == S(5), "the next end");
    is_int(claims_expire(&c, S(5) - 1, note_over, &told), 0, "not a moment early");
    is_int(claims_expire(&c, S(5), note_over, &told), 1, "at its time");
    ok(told == 3 && c.n == 3 && !claims_find(&c, 3), "that one and no other");
    ok(claims_next_ns(&c) == S(10), "then the next");
    is_int(claims_expire(&c, S(20), note_over, &told), 2, "both of the same time");
    ok(told == 314 && c.n == 1 && c.claim[0].id == 2, "in their order");
    is_int(claims_expire(&c, CLAIM_FOREVER - 1, NULL, NULL), 0, "for ever is for ever");
    is_int((long long)claims_next_ns(&c), (long long)CLAIM_FOREVER,
           "nothing more is due");
}

static void test_list(void)
{
    struct claims c = {.n = 0};
    struct claim a = claim_of(1, CLAIM_NAMED, W(200), S(10)), b = a;

    memset(a.who, 'x', sizeof a.who);
    b.id = 2;
    (void)claims_put(&c, &a, NULL);
    (void)claims_put(&c, &b, NULL);
    is_int(strlen(claims_find(&c, 1)->who), CLAIM_TEXT - 1, "text ends where it must");
    ok(claims_find(&c, 2) == &c.claim[1] && !claims_find(&c, 3), "found by id");
    ok(!claims_drop(&c, 3) && c.n == 2, "no such claim: none is dropped");
    ok(claims_drop(&c, 1) && c.n == 1 && c.claim[0].id == 2, "dropped");
    ok(!claims_drop(&c, 1), "… once");
    a.source = CLAIM_OF_RULE;
    (void)claims_put(&c, &a, NULL);
    a.id = 3;
    (void)claims_put(&c, &a, NULL);
    claims_drop_of(&c, CLAIM_OF_RULE);
    ok(c.n == 1 && c.claim[0].id == 2, "all of a source are dropped, others stay");
    is_str(names_word(NAMES_CLAIM_KIND, CLAIM_SOFT), "soft", "soft");
    is_str(names_word(NAMES_CLAIM_KIND, CLAIM_NAMED), "named", "named");
    is_str(names_word(NAMES_CLAIM_KIND, CLAIM_HARD), "hard", "hard");
    is_str(names_word(NAMES_CLAIM_KIND, (enum claim_kind)0), "?", "no kind");
}

int main(void)
{
    test_refused();
    test_room();
    test_expiry();
    test_list();
    return done();
}
