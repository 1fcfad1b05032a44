/* A budget over boards: tables, then random worlds in which answers are late, lost,
 * wrong, and the one who keeps the books dies.
 *
 * Usage: test-core-grant [SEED [ROUNDS]]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/budget/grant.h"
#include "tap.h"

#define W(w) ((uint32_t)(w)*1000u)
#define NONE UINT32_MAX

/* ---- tables ---- */

/* clang-format off */
static const struct {
    const char *name;
    uint32_t budget_w;
    struct grant_board b[3];
    uint32_t limit_w[3], plan_w[3];
    uint32_t counted_w;
    bool is_short;
} cases[] = {
    {"everything fits", 1000,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE},
      {.min_mw = W(100), .most_mw = W(250), .in_force_mw = W(250), .granted_mw = NONE},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE}},
     {300, 250, 300}, {300, 250, 300}, 850, false},
    {"equal shares, at first all come down", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE}},
     {200, 200, 200}, {200, 200, 200}, 900, false},
    {"who can take less leaves it to the others", 600,
     {{.min_mw = W(100), .most_mw = W(150), .in_force_mw = W(150), .granted_mw = W(150)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(225), .granted_mw = W(225)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(225), .granted_mw = W(225)}},
     {150, 225, 225}, {150, 225, 225}, 600, false},
    {"who needs more takes it from the others", 600,
     {{.min_mw = W(300), .most_mw = W(400), .in_force_mw = W(300), .granted_mw = W(300)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(150), .granted_mw = W(150)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(150), .granted_mw = W(150)}},
     {300, 150, 150}, {300, 150, 150}, 600, false},
    {"nothing goes up before it was read back that another came down", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(180), .granted_mw = W(180)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(220), .granted_mw = W(220)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {180, 200, 200}, {200, 200, 200}, 600, false},
    {"… then it does", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(180), .granted_mw = W(180)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {200, 200, 200}, {200, 200, 200}, 600, false},
    {"a part is raised by a part", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(180), .granted_mw = W(180)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(212), .granted_mw = W(200)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {188, 200, 200}, {200, 200, 200}, 600, false},
    {"what is read back low is granted all the same", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(120), .granted_mw = W(240)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(160), .granted_mw = W(160)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {200, 200, 200}, {200, 200, 200}, 600, false},
    {"an unknown one counts at its most", 700,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = W(200)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(190), .granted_mw = W(190)}},
     {210, 233, 190}, {233, 233, 233}, 700, false},
    {"above the budget nobody goes up, not even who is counted at more", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = W(180)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = W(220)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {180, 200, 200}, {200, 200, 200}, 800, false},
    {"for one that is late the others make room", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = W(200),
       .late = true},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {200, 150, 150}, {200, 150, 150}, 700, false},
    {"… down to their minimums", 450,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = W(150),
       .late = true},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(150), .granted_mw = W(150)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(150), .granted_mw = W(150)}},
     {150, 100, 100}, {150, 100, 100}, 600, true},
    {"late, but no higher than its share: nobody has to", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .late = true},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {200, 200, 200}, {200, 200, 200}, 600, false},
    {"what takes no limit comes first", 600,
     {{.in_force_mw = W(250), .fixed = true},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(175), .granted_mw = W(175)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(175), .granted_mw = W(175)}},
     {0, 175, 175}, {0, 175, 175}, 600, false},
    {"minimums do not fit: everybody is at its own", 290,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = NONE}},
     {100, 100, 100}, {100, 100, 100}, 900, true},
    {"a group shares out its sum", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(180), .granted_mw = W(200),
       .want_mw = W(180), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(220), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {180, 220, 200}, {180, 220, 200}, 600, false},
    {"… lower first", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(180), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(220), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {180, 200, 200}, {180, 220, 200}, 600, false},
    {"… never more than that", 600,
     {{.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(190), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(220), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {200, 200, 200}, {200, 200, 200}, 600, false},
    {"… nor outside a board's range", 600,
     {{.min_mw = W(190), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(180), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(220), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {200, 200, 200}, {200, 200, 200}, 600, false},
    {"a share that may not be set is the end under it, the others have the rest", 700,
     {{.min_mw = W(100), .most_mw = W(300), .top_mw = W(200), .in_force_mw = W(200), .granted_mw = W(200)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(250), .granted_mw = W(250)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(250), .granted_mw = W(250)}},
     {200, 250, 250}, {200, 250, 250}, 700, false},
    {"… two ends", 700,
     {{.min_mw = W(100), .most_mw = W(300), .top_mw = W(150), .in_force_mw = W(150), .granted_mw = W(150)},
      {.min_mw = W(100), .most_mw = W(300), .top_mw = W(260), .in_force_mw = W(260), .granted_mw = W(260)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(290), .granted_mw = W(290)}},
     {150, 260, 290}, {150, 260, 290}, 700, false},
    {"… or all of it, where there is enough", 900,
     {{.min_mw = W(100), .most_mw = W(300), .top_mw = W(200), .in_force_mw = W(300), .granted_mw = W(300)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = W(300)},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(300), .granted_mw = W(300)}},
     {300, 300, 300}, {300, 300, 300}, 900, false},
    {"a group does not get there either", 600,
     {{.min_mw = W(100), .most_mw = W(300), .top_mw = W(200), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(220), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200),
       .want_mw = W(180), .group = 1},
      {.min_mw = W(100), .most_mw = W(300), .in_force_mw = W(200), .granted_mw = W(200)}},
     {200, 200, 200}, {200, 200, 200}, 600, false},
};
/* clang-format on */

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grant got[3];
        struct grant_sum sum;
        bool good = true;

        grant_step(cases[i].b, 3, (uint64_t)cases[i].budget_w * 1000, got, &sum);
        for (int k = 0; k < 3; k++)
            good = good && got[k].limit_mw == W(cases[i].limit_w[k]) &&
                   got[k].plan_mw == W(cases[i].plan_w[k]);
        good = good && sum.counted_mw == (uint64_t)cases[i].counted_w * 1000 &&
               sum.is_short == cases[i].is_short;
        if (!ok(good, "%s", cases[i].name))
            for (int k = 0; k < 3; k++)
                printf("# %d: limit %u plan %u, counted %" PRIu64 "\n", k,
                       got[k].limit_mw, got[k].plan_mw, sum.counted_mw);
    }
}

static void test_check(void)
{
    struct grant_board b[2] = {{.min_mw = W(150), .most_mw = W(300)},
                               {.in_force_mw = W(250), .fixed = true}};
    uw_error err = {""};

    ok(grant_check(b, 2, W(400), &err) == 0, "a budget of the least is one");
    ok(grant_check(b, 2, W(400) - 1, &err) == -ERANGE, "a milliwatt less is none");
    is_str(err.text,
           "a budget of 399.999 W is under 400 W, the least that this node's 2 boards "
           "come to, 1 of which cannot be capped",
           "… said with value and limit");
}

/* ---- random worlds ---- */

enum { N = 8, QUEUE = 4 };

struct board {
    uint32_t min_mw, most_mw, top_mw;
    uint32_t true_mw;      /* what is in force */
    uint32_t known_mw;     /* read back; 0: unknown */
    uint32_t granted_mw;   /* by the last step */
    uint32_t soft_mw;      /* a search wants no more */
    uint32_t queue[QUEUE]; /* writes on their way, in order */
    size_t n_queue;
    unsigned hung; /* answers nothing for so many turns */
    unsigned since;
    bool asks; /* a hold is on its way: its answer comes after the writes */
    bool fixed;
    unsigned group;
    uint32_t want_mw;
};

struct world {
    struct rng g;
    struct board b[N];
    size_t n;
    uint64_t budget_mw;
    bool within; /* what counts was, since there is this budget: so the truth is */
    bool jumps;  /* a board that is unknown may come to its most */
    unsigned long raises, checked, full;
    char bad[200];
};

static uint32_t below(struct world *w, uint32_t n)
{
    return (uint32_t)rng_below(&w->g, n);
}

static uint64_t truth(const struct world *w)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < w->n; i++)
        sum += w->b[i].true_mw;
    return sum;
}

static uint64_t least(const struct world *w)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < w->n; i++)
        sum += w->b[i].fixed ? w->b[i].true_mw : w->b[i].min_mw;
    return sum;
}

static uint32_t counts(const struct board *b)
{
    uint32_t mw = b->known_mw;

    if (!mw || b->fixed)
        return b->most_mw;
    for (size_t i = 0; i < b->n_queue; i++)
        if (b->queue[i] > mw)
            mw = b->queue[i];
    return mw;
}

static void look(struct world *w, const char *when)
{
    uint64_t sum = truth(w);

    w->checked++;
    if (w->jumps)
        w->within = false; /* nobody can hold that: but nothing goes up, see step() */
    if (w->within && sum > w->budget_mw && !w->bad[0])
        (void)snprintf(w->bad, sizeof w->bad, "%" PRIu64 " of %" PRIu64 " mW after %s",
                       sum, w->budget_mw, when);
    for (size_t i = 0; i < w->n; i++)
        if (w->b[i].true_mw < w->b[i].min_mw && !w->bad[0])
            (void)snprintf(w->bad, sizeof w->bad, "board %zu under its minimum", i);
}

static void write_soon(struct board *b, uint32_t mw)
{
    uint32_t last = b->n_queue ? b->queue[b->n_queue - 1] : b->known_mw;

    if (!b->fixed && b->known_mw && mw != last && b->n_queue < QUEUE)
        b->queue[b->n_queue++] = mw;
}

/* What the daemon does after each event. */
static void step(struct world *w)
{
    struct grant_board in[N];
    struct grant out[N];
    struct grant_sum sum;

    for (size_t i = 0; i < w->n; i++) {
        const struct board *b = &w->b[i];
        in[i] = (struct grant_board){.min_mw = b->min_mw,
                                     .most_mw = b->most_mw,
                                     .top_mw = b->top_mw,
                                     .in_force_mw = counts(b),
                                     .granted_mw = b->granted_mw,
                                     .want_mw = b->want_mw,
                                     .group = b->group,
                                     .fixed = b->fixed,
                                     .late = b->since > 5};
    }
    grant_step(in, w->n, w->budget_mw, out, &sum);
    w->within = w->within || sum.counted_mw <= w->budget_mw;
    for (size_t i = 0; i < w->n; i++) {
        struct board *b = &w->b[i];
        if (out[i].limit_mw > b->granted_mw && sum.counted_mw > w->budget_mw &&
            !w->bad[0])
            (void)snprintf(w->bad, sizeof w->bad, "board %zu goes up above the budget",
                           i);
        w->raises += b->granted_mw != NONE && out[i].limit_mw > b->granted_mw;
        b->granted_mw = out[i].limit_mw;
        uint32_t mw = b->soft_mw < b->granted_mw ? b->soft_mw : b->granted_mw;
        if (b->top_mw && mw > b->top_mw && mw < b->most_mw)
            mw = b->top_mw; /* root's range ends there */
        write_soon(b, mw < b->min_mw ? b->min_mw : mw);
        b->since = counts(b) > b->granted_mw ? b->since + 1 : 0;
    }
}

/* One answer of a board: a write, or the hold after it. */
static void answer(struct world *w, struct board *b)
{
    if (b->n_queue) {
        uint32_t mw = b->queue[0], how = below(w, 20);
        memmove(b->queue, b->queue + 1, --b->n_queue * sizeof b->queue[0]);
        if (how != 1)
            b->true_mw = mw; /* 1: refused, and that is known */
        if (b->asks)
            return;
        b->known_mw = how == 0 ? 0 : b->true_mw; /* 0: who knows */
        if (how == 0 && w->jumps)
            b->true_mw = b->most_mw;
    } else if (b->asks || !b->known_mw) {
        b->asks = false;
        b->known_mw = b->true_mw;
    }
}

/* kill -9 and a start: nothing is known but what a look at the driver shows. */
static void restart(struct world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        w->b[i].known_mw = 0;
        w->b[i].asks = true;
        w->b[i].since = 0;
        w->b[i].granted_mw = w->b[i].true_mw;
        w->b[i].want_mw = 0;
    }
}

static void new_budget(struct world *w)
{
    uint64_t low = least(w), high = 0;

    for (size_t i = 0; i < w->n; i++)
        high += w->b[i].most_mw;
    w->budget_mw = low + rng_below(&w->g, high - low + 20000) / 1000 * 1000;
    w->within = false;
}

/* Another split of a group's sum, as slack asks for it; or any. */
static void new_wants(struct world *w)
{
    unsigned group = 1 + below(w, 2);

    for (size_t i = 0; i < w->n; i++)
        if (w->b[i].group == group)
            w->b[i].want_mw =
                below(w, 4) ? w->b[i].granted_mw - below(w, 20000) + below(w, 30000) : 0;
}

static const char *happen(struct world *w)
{
    struct board *b = &w->b[below(w, (uint32_t)w->n)];

    switch (below(w, 24)) {
    case 0:
        new_budget(w);
        return "another budget";
    case 1:
        restart(w);
        return "a restart";
    case 2:
        b->hung = 1 + below(w, 30);
        return "a hung board";
    case 3:
        b->soft_mw = b->min_mw + below(w, b->most_mw - b->min_mw + 1);
        return "a search's cap";
    case 4:
        b->soft_mw = NONE;
        return "the end of a search";
    case 5:
        new_wants(w);
        return "another split";
    default:
        if (b->hung)
            b->hung--;
        else
            answer(w, b);
        return "an answer";
    }
}

static void open_world(struct world *w, uint64_t seed, bool jumps)
{
    *w = (struct world){.jumps = jumps};
    rng_init(&w->g, seed);
    w->n = 2 + below(w, N - 1);
    for (size_t i = 0; i < w->n; i++) {
        struct board *b = &w->b[i];
        b->min_mw = W(100 + below(w, 60));
        b->most_mw = b->min_mw + W(1 + below(w, 200));
        b->true_mw = b->most_mw - below(w, W(1));
        b->granted_mw = b->soft_mw = NONE;
        if (below(w, 4) == 0)
            b->top_mw = b->min_mw + below(w, b->most_mw - b->min_mw);
        b->group = below(w, 3);
        b->fixed = below(w, 12) == 0;
        if (b->fixed)
            b->true_mw = b->most_mw;
        b->known_mw = below(w, 2) ? b->true_mw : 0;
    }
    new_budget(w);
}

/* Everybody answers: what boards can use is granted. */
static void settle(struct world *w)
{
    uint64_t granted = 0, use = 0;
    bool gaps =
        false; /* who is under its own leaves watts that nobody may be able to use */

    for (size_t i = 0; i < w->n; i++) {
        w->b[i].hung = 0;
        w->b[i].want_mw = 0;
        w->b[i].soft_mw = NONE;
    }
    for (int k = 0; k < 200; k++) {
        for (size_t i = 0; i < w->n; i++)
            answer(w, &w->b[i]);
        step(w);
        look(w, "settling");
    }
    for (size_t i = 0; i < w->n; i++) {
        granted += w->b[i].fixed ? w->b[i].most_mw : w->b[i].granted_mw;
        use += w->b[i].most_mw;
        gaps = gaps || (w->b[i].top_mw && w->b[i].granted_mw < w->b[i].most_mw);
    }
    if (use > w->budget_mw)
        use = w->budget_mw;
    if (!w->bad[0] && !w->jumps && !gaps && granted + w->n * GRANT_GRAIN_MW <= use)
        (void)snprintf(w->bad, sizeof w->bad, "%" PRIu64 " of %" PRIu64 " mW granted",
                       granted, use);
    w->full += granted + w->n * GRANT_GRAIN_MW > use;
}

static void play(struct world *w, uint64_t seed, bool jumps)
{
    open_world(w, seed, jumps);
    for (int k = 0; k < 600 && !w->bad[0]; k++) {
        const char *what = happen(w);
        step(w);
        look(w, what);
    }
    settle(w);
    if (w->bad[0])
        ok(false, "seed %" PRIu64 "%s: %s", seed, jumps ? ", with jumps" : "", w->bad);
}

static void test_worlds(uint64_t seed, uint64_t rounds)
{
    static struct world w;
    unsigned long raises = 0, checked = 0, full = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        play(&w, seed + i, i % 3 == 2);
        raises += w.raises;
        checked += w.checked;
        full += w.full;
    }
    ok(raises > 10 * rounds && full > rounds / 2,
       "%" PRIu64 " worlds from seed %" PRIu64
       ": %lu looks, %lu limits raised, %lu ended with all granted",
       rounds, seed, checked, raises, full);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, rounds = 2000;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &rounds, NULL)))
        return 2;
    test_cases();
    test_check();
    test_worlds(seed, rounds);
    return done();
}
