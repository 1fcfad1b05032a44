/* Which claims of the policy hold a job's boards low, over made-up boards. */
#include "node/capped-by.h"
#include "tap.h"

static struct claims claims = {
    .claim = {{.id = 5, .source = CLAIM_OF_RULE, .who = "rule dirty-grid"}}, .n = 1};
static unsigned looks;

void caps_look(const struct caps *c, size_t board, struct caps_view *ret)
{
    (void)c;
    looks++;
    *ret = (struct caps_view){.claims = &claims};
    if (board < 2 || board == BOARDS_MAX - 1) {
        ret->state = CAPS_HELD;
        ret->verdict.claim = 5;
        ret->ramp_mw = board == 1 ? 180000 : 200000;
    }
}

int main(void)
{
    struct job_capped capped = {.n = 0};

    capped_by_tick(&capped, NULL, 1ull << (BOARDS_MAX - 1), 2);
    ok(looks == 1 && capped.n == 1, "a job that has the last board that there may be");
    ok(strcmp(capped.by[0].who, "rule dirty-grid") == 0 && capped.by[0].time_s == 2,
       "is capped by a rule for 2 s");
    capped_by_tick(&capped, NULL, 7, 3);
    ok(looks == 4 && capped.n == 1 && capped.by[0].time_s == 5,
       "several boards count once, one that is not held not at all");
    is_int(capped.by[0].lowest_mw, 180000, "the lowest cap of all");
    capped_by_tick(&capped, NULL, 0, 3);
    ok(looks == 4 && capped.by[0].time_s == 5, "a job without boards");
    capped_by_tick(&capped, NULL, UINT64_MAX, 1);
    ok(looks == 4 + BOARDS_MAX && capped.by[0].time_s == 6, "and one with all");
    return done();
}
