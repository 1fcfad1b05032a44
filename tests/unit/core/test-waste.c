/* Idle, held and under-used boards: courses of stretches of 10 s, each with what it comes
 * to, and what must not be called waste.
 */
#include "core/job/waste.h"

#include <stdio.h>

#include "base/units.h"
#include "tap.h"

#define S ((uint64_t)NS_PER_S)
#define MIN (60 * S)
enum { STRETCH_S = 10 };

/* A V100 at rest: 40 W of 300 W; 66 W with a process that runs no kernel. */
static const struct waste_board V100 = {.idle_w = 40, .limit_w = 300};

static const struct waste_limits DEFAULTS = {WASTE_AFTER_S * S, WASTE_UNDER_SHARE,
                                             WASTE_UNDER_S *S};

struct course {
    struct waste_track track;
    struct waste_limits limits;
    struct waste_board board;
    uint64_t now_ns;
    bool anew;
    double waste_s[3]; /* by enum waste_state */
};

static void begin(struct course *c)
{
    *c = (struct course){.limits = DEFAULTS, .board = V100, .now_ns = 1000 * S};
}

static enum waste_state step(struct course *c, unsigned n, double util, double power_w)
{
    struct waste_seen s = {.begin_ns = c->now_ns,
                           .end_ns = c->now_ns + STRETCH_S * S,
                           .n = n,
                           .mean = util,
                           .top = util,
                           .power_w = power_w};
    enum waste_state state = waste_step(&c->track, &c->limits, &c->board, &s, c->anew);

    c->anew = false;
    c->now_ns = s.end_ns;
    c->waste_s[state] += STRETCH_S;
    return state;
}

static void go(struct course *c, double s, unsigned n, double util, double power_w)
{
    for (double at = 0; at < s; at += STRETCH_S)
        (void)step(c, n, util, power_w);
}

static void idle(void)
{
    struct course c;

    begin(&c);
    go(&c, 300, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 0, 0, "5 min without a kernel are a pause");
    go(&c, 3600, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 3600, 0, "all that follows is idle");
    ok(step(&c, 5, 0.5, 200) == WASTE_STATE_BUSY, "one stretch with a kernel works");
    go(&c, 300, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 3600, 0, "and a new pause begins after it");
    go(&c, 10, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 3610, 0, "which ends after 5 min");
    c.anew = true;
    go(&c, 300, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 3610, 0,
            "the time before is not another job's");

    ok(waste_of_job(WASTE_STATE_QUIET, true) == WASTE_HELD, "with a process: held");
    ok(waste_of_job(WASTE_STATE_QUIET, false) == WASTE_ALLOCATED, "without: allocated");
    ok(waste_of_job(WASTE_STATE_UNDER, true) == WASTE_UNDER, "under-used");
    ok(waste_of_job(WASTE_STATE_BUSY, false) == WASTE_WORKING, "working");
}

/* What is not known is no waste. */
static void uncertain(void)
{
    struct course c;

    begin(&c);
    go(&c, 3600, 0, 0, 66);
    is_near(c.waste_s[WASTE_STATE_BUSY], 3600, 0, "no readings of utilisation (MIG)");
    begin(&c);
    go(&c, 3600, 5, 0, -1);
    is_near(c.waste_s[WASTE_STATE_BUSY], 3600, 0, "no power");
    begin(&c);
    go(&c, 3600, 5, 0, 130);
    is_near(c.waste_s[WASTE_STATE_BUSY], 3600, 0, "more power than at rest");
    begin(&c);
    c.board.limit_w = 0;
    go(&c, 3600, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_BUSY], 3600, 0, "no limit is known");
    begin(&c);
    c.board.idle_w = 0;
    go(&c, 3600, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 3300, 0, "the power at rest need not be");
    begin(&c);
    c.limits.after_ns = 0;
    go(&c, 3600, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_BUSY], 3600, 0, "switched off");

    begin(&c);
    go(&c, 320, 5, 0, 66);
    go(&c, 20, 0, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 40, 0, "readings may be missing for 20 s");
    go(&c, 20, 0, 0, 66);
    go(&c, 300, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 50, 0, "but not for 40 s");
    begin(&c);
    go(&c, 320, 5, 0, 66);
    c.now_ns += 5 * S;
    go(&c, 300, 5, 0, 66);
    is_near(c.waste_s[WASTE_STATE_QUIET], 20, 0, "nor may time");
}

/* Ten steps of training, then a pause: epochs with checkpoints of 4 min, validation. */
static void pauses(void)
{
    struct course c;

    begin(&c);
    for (int i = 0; i < 40; i++) {
        go(&c, 600, 5, 0.97, 250);
        go(&c, 240, 5, 0, 66);
    }
    is_near(c.waste_s[WASTE_STATE_BUSY], 40 * 840.0, 0, "checkpoints of 4 min");
    begin(&c);
    for (int i = 0; i < 400; i++) {
        go(&c, 10, 5, 0.3, 110);
        go(&c, 30, 5, 0, 66);
    }
    is_near(c.waste_s[WASTE_STATE_UNDER], 400 * 30 - 660, 0,
            "7.5 %% on average is under-used …");
    ok(step(&c, 5, 0.3, 110) == WASTE_STATE_BUSY, "… but not while it computes");
}

static void under(void)
{
    struct course c;

    begin(&c);
    go(&c, 3600, 5, 0.05, 80);
    is_near(c.waste_s[WASTE_STATE_UNDER], 3600 - 890, 0,
            "5 %% of the time, after 15 min");
    begin(&c);
    go(&c, 3600, 5, 1, 63);
    is_near(c.waste_s[WASTE_STATE_UNDER], 3600 - 890, 0,
            "always a kernel, and 9 %% of the power above rest");
    begin(&c);
    c.board.idle_w = 0;
    go(&c, 3600, 5, 1, 63);
    is_near(c.waste_s[WASTE_STATE_UNDER], 0, 0, "not where the power at rest is unknown");
    begin(&c);
    c.board.cap_w = 66;
    go(&c, 3600, 5, 1, 63);
    is_near(c.waste_s[WASTE_STATE_UNDER], 0, 0, "not where a cap holds the power down");
    begin(&c);
    go(&c, 3600, 5, 0.05, 150);
    is_near(c.waste_s[WASTE_STATE_UNDER], 0, 0, "not where power says otherwise");
    begin(&c);
    c.limits.under_ns = 0;
    go(&c, 3600, 5, 0.05, 80);
    is_near(c.waste_s[WASTE_STATE_UNDER], 0, 0, "not where that is switched off");
    begin(&c);
    go(&c, 3600, 5, 0.11, 80);
    is_near(c.waste_s[WASTE_STATE_UNDER], 0, 0, "11 %% of the time is enough");
    begin(&c);
    go(&c, 1200, 5, 0.05, 80);
    go(&c, 100, 5, 0.9, 250);
    go(&c, 700, 5, 0.05, 80);
    is_near(c.waste_s[WASTE_STATE_UNDER], 1200 - 890, 0,
            "100 s of work count for a quarter of an hour");
    is_near(waste_share(&V100, 170), 0.5, 1e-12, "170 W is half of the range");
    is_near(waste_share(&V100, 20), 0, 0, "under the power at rest is none");
}

int main(void)
{
    idle();
    uncertain();
    pauses();
    under();
    return done();
}
