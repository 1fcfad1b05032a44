/* Conditions made at random, against an evaluation of their own.
 *
 * Usage: test-core-policy-random [SEED [CONDITIONS]]
 *
 * A condition is made twice from one seed, as text and as a value by Kleene's logic; both
 * must agree, and what is known while some values are unknown must stay the same whatever
 * these are.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "base/units.h"
#include "policy-signals.h"
#include "tap.h"

enum { SIGNALS = 5, DEPTH = 6, LONGEST = 480 };

static const char *const numbers[SIGNALS] = {"queue.depth", "load", "a", "b", "c"};
static const char *const truths[SIGNALS] = {"shut", "p", "q", "r", "s"};
/* clang-format off */
static const struct policy_signal signals[] = {
    {.name = "queue.depth"}, {.name = "load"}, {.name = "a"}, {.name = "b"}, {.name = "c"},
    {.name = "shut", .type = POLICY_TRUTH}, {.name = "p", .type = POLICY_TRUTH},
    {.name = "q", .type = POLICY_TRUTH}, {.name = "r", .type = POLICY_TRUTH},
    {.name = "s", .type = POLICY_TRUTH},
};
/* clang-format on */
static const struct policy_catalogue catalogue = {signals, n_elements(signals)};

struct result {
    bool known;
    double v; /* of a truth: 0 or 1 */
};
#define UNKNOWN ((struct result){.known = false})

struct maker {
    struct rng rng;
    char text[2 * LONGEST];
    size_t n;
    struct result number[SIGNALS], truth[SIGNALS];
    bool no_known; /* known() is left out */
};

static void put(struct maker *m, const char *text)
{
    size_t n = strlen(text);

    if (m->n + n < sizeof m->text)
        memcpy(m->text + m->n, text, n + 1);
    m->n += n;
}

static struct result checked(bool known, double v)
{
    return known && isfinite(v) ? (struct result){true, v} : UNKNOWN;
}

/* depth bounds how deep these call each other. */
// NOLINTBEGIN(misc-no-recursion)
static struct result make_number(struct maker *m, int depth);

static struct result make_leaf(struct maker *m)
{
    char text[16];

    if (rng_below(&m->rng, 2)) {
        size_t i = rng_below(&m->rng, SIGNALS);
        put(m, numbers[i]);
        return m->number[i];
    }
    double v = (double)rng_below(&m->rng, 6);
    (void)snprintf(text, sizeof text, "%g", v);
    put(m, text);
    return (struct result){true, v};
}

static struct result make_pair(struct maker *m, int depth)
{
    static const char *const how[] = {" + ", " - ", " * ", ", ", ", "};
    size_t i = rng_below(&m->rng, n_elements(how));

    put(m, i == 3 ? "min(" : i == 4 ? "max(" : "(");
    struct result a = make_number(m, depth - 1);
    put(m, how[i]);
    struct result b = make_number(m, depth - 1);
    put(m, ")");
    double v = i == 0   ? a.v + b.v
               : i == 1 ? a.v - b.v
               : i == 2 ? a.v * b.v
               : i == 3 ? fmin(a.v, b.v)
                        : fmax(a.v, b.v);
    return checked(a.known && b.known, v);
}

/* By a signal: a constant 0 is refused. */
static struct result make_quotient(struct maker *m, int depth)
{
    size_t i = rng_below(&m->rng, SIGNALS);

    put(m, "(");
    struct result a = make_number(m, depth - 1);
    put(m, " / ");
    put(m, numbers[i]);
    put(m, ")");
    struct result b = m->number[i];
    return checked(a.known && b.known && b.v != 0, b.v != 0 ? a.v / b.v : 0);
}

static struct result make_number(struct maker *m, int depth)
{
    struct result a;

    if (depth == 0)
        return make_leaf(m);
    switch (rng_below(&m->rng, 6)) {
    case 0:
        put(m, "abs(");
        a = make_number(m, depth - 1);
        put(m, ")");
        return checked(a.known, fabs(a.v));
    case 1:
        put(m, "-");
        a = make_number(m, depth - 1);
        return checked(a.known, -a.v);
    case 2:
        return make_quotient(m, depth);
    case 3:
        return make_leaf(m);
    default:
        return make_pair(m, depth);
    }
}

static struct result make_truth(struct maker *m, int depth);

static struct result make_comparison(struct maker *m, int depth)
{
    static const char *const how[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    size_t i = rng_below(&m->rng, n_elements(how));

    put(m, "(");
    struct result a = make_number(m, depth - 1);
    put(m, how[i]);
    struct result b = make_number(m, depth - 1);
    put(m, ")");
    bool is = i == 0   ? a.v < b.v
              : i == 1 ? a.v <= b.v
              : i == 2 ? a.v > b.v
              : i == 3 ? a.v >= b.v
              : i == 4 ? a.v == b.v
                       : a.v != b.v;
    return checked(a.known && b.known, is);
}

/* and, or, ==, != of two truths. */
static struct result make_logic(struct maker *m, int depth)
{
    static const char *const how[] = {" and ", " or ", " == ", " != "};
    size_t i = rng_below(&m->rng, n_elements(how));

    put(m, "(");
    struct result a = make_truth(m, depth - 1);
    put(m, how[i]);
    struct result b = make_truth(m, depth - 1);
    put(m, ")");
    if (i < 2) {
        double by = i == 0 ? 0 : 1;
        if ((a.known && a.v == by) || (b.known && b.v == by))
            return (struct result){true, by};
        return checked(a.known && b.known, 1 - by);
    }
    return checked(a.known && b.known, (a.v == b.v) == (i == 2));
}

static struct result make_truth(struct maker *m, int depth)
{
    size_t i = rng_below(&m->rng, SIGNALS);
    struct result a;

    switch (depth == 0 ? 0 : rng_below(&m->rng, 7)) {
    case 0:
        put(m, truths[i]);
        return m->truth[i];
    case 1:
        put(m, "(not ");
        a = make_truth(m, depth - 1);
        put(m, ")");
        return checked(a.known, 1 - a.v);
    case 2:
        if (m->no_known)
            return make_comparison(m, depth);
        put(m, "known(");
        a = make_number(m, depth - 1);
        put(m, ")");
        return (struct result){true, a.known};
    case 3:
    case 4:
        return make_comparison(m, depth);
    default:
        return make_logic(m, depth);
    }
}

// NOLINTEND(misc-no-recursion)

/* Values; a third of them unknown. */
static void draw(struct rng *g, struct maker *m)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        m->number[i] = checked(rng_below(g, 3) > 0, (double)rng_below(g, 9) - 3);
        m->truth[i] = checked(rng_below(g, 3) > 0, (double)rng_below(g, 2));
    }
}

/* Draws what is unknown in m. */
static void complete(struct rng *g, struct maker *m)
{
    struct maker all = {0};

    draw(g, &all);
    for (size_t i = 0; i < SIGNALS; i++) {
        if (!m->number[i].known)
            m->number[i] = all.number[i];
        if (!m->truth[i].known)
            m->truth[i] = all.truth[i];
    }
}

static struct result made(struct maker *m, uint64_t seed)
{
    rng_init(&m->rng, seed);
    m->n = 0;
    return make_truth(m, 1 + (int)(seed % DEPTH));
}

static enum policy_truth evaluate(const struct policy_condition *c,
                                  const struct policy_reads *reads, const struct maker *m,
                                  double widen, unsigned char junk)
{
    struct policy_value values[POLICY_READS_MAX];
    struct policy_result result;

    memset(values, junk, sizeof values);
    for (size_t i = 0; i < reads->n; i++) {
        size_t at = reads->read[i].signal;
        const struct result *r = at < SIGNALS ? &m->number[at] : &m->truth[at - SIGNALS];
        values[i] = (struct policy_value){.known = r->known, .until_ns = UINT64_MAX};
        if (at < SIGNALS)
            values[i].number = r->v;
        else
            values[i].truth = r->v != 0;
    }
    policy_evaluate(c, values, widen, junk, &result);
    return result.truth;
}

static enum policy_truth truth_of(struct result r)
{
    return !r.known ? POLICY_UNKNOWN : r.v != 0 ? POLICY_TRUE : POLICY_FALSE;
}

struct counts {
    unsigned conditions, refused, truth[3], same, kept, stayed, filled;
    size_t longest;
    bool bad;
};

static void report(struct counts *n, const char *what, uint64_t seed,
                   const struct maker *m)
{
    if (!n->bad)
        printf("# %s: seed %llu: %s\n", what, (unsigned long long)seed, m->text);
    n->bad = true;
}

static void play(struct counts *n, uint64_t seed)
{
    struct maker m = {.no_known = seed % 2};
    struct policy_condition c;
    struct policy_reads reads = {0};
    struct rng g;
    uw_error err;

    rng_init(&g, seed + 1);
    draw(&g, &m);
    struct result want = made(&m, seed);
    if (m.n > LONGEST ||
        policy_condition_read(m.text, &catalogue, &reads, &c, &err) < 0) {
        n->refused++;
        return;
    }
    n->conditions++;
    n->longest = c.n_ops > n->longest ? c.n_ops : n->longest;
    enum policy_truth got = evaluate(&c, &reads, &m, 0, 0);
    n->truth[got]++;
    if (got == truth_of(want))
        n->same++;
    else
        report(n, "differs", seed, &m);
    if (evaluate(&c, &reads, &m, 0, 0x7f) != got)
        report(n, "is no function of its values", seed, &m);
    if (got != POLICY_TRUE || evaluate(&c, &reads, &m, 0.5, 0) == POLICY_TRUE)
        n->stayed++;
    else
        report(n, "is ended by its hysteresis", seed, &m);
    enum policy_truth constant = policy_condition_constant(&c);
    if (constant != POLICY_UNKNOWN && constant != got)
        report(n, "is not constant", seed, &m);
    complete(&g, &m);
    n->filled++;
    if (!m.no_known || got == POLICY_UNKNOWN || evaluate(&c, &reads, &m, 0, 0) == got)
        n->kept++;
    else
        report(n, "changes when more is known", seed, &m);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, most = 20000;
    struct counts n = {0};

    if (argc > 1 && parse_u64(argv[1], &seed, NULL) < 0)
        return 2;
    if (argc > 2 && parse_u64(argv[2], &most, NULL) < 0)
        return 2;
    for (uint64_t i = 0; i < most; i++)
        play(&n, seed + i);
    ok(n.conditions > most / 2, "%u of %u conditions fit the limits, %u true, %u unknown",
       n.conditions, n.conditions + n.refused, n.truth[POLICY_TRUE],
       n.truth[POLICY_UNKNOWN]);
    ok(n.truth[POLICY_TRUE] && n.truth[POLICY_FALSE] && n.truth[POLICY_UNKNOWN],
       "each of the three truths occurs");
    ok(n.longest <= POLICY_OPS, "none has more than %d instructions: %zu", POLICY_OPS,
       n.longest);
    is_int(n.same, n.conditions, "all come to what Kleene's logic says");
    is_int(n.stayed, n.conditions, "hysteresis ends none that is true");
    is_int(n.kept, n.filled, "what is known stays the same when more is known");
    ok(!n.bad, "nothing else was found from seed %llu on", (unsigned long long)seed);
    return done();
}
