/* What rows are charged with, while signals come, change, and go. */
#include "node/charges.h"

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

#define S NS_PER_S

static void tell(struct charges *c, uint64_t at_s, const char *name, double v,
                 const char *source)
{
    struct signal_decl decl = {.type = POLICY_NUMBER};
    struct signal_value value = {.type = POLICY_NUMBER, .number = v};
    struct signal_view view = {.decl = &decl,
                               .source = source ? source : "",
                               .value = source ? &value : NULL,
                               .known = source != NULL};

    (void)snprintf(decl.name, sizeof decl.name, "%s", name);
    (void)snprintf(decl.unit, sizeof decl.unit, "%s",
                   strcmp(name, "price") == 0 ? "EUR/kWh" : "g/kWh");
    charges_signal(c, at_s * S, &view);
}

static struct ledger_energy row(struct charges *c, uint64_t begin_s, uint64_t end_s,
                                uint64_t job, double j)
{
    const struct attribution_row row = {.begin_ns = begin_s * S, .end_ns = end_s * S};
    struct ledger_energy e = {
        .kind = job ? LEDGER_JOB : LEDGER_IDLE, .job = job, .energy_j = j};

    charges_put(c, &row, &e);
    return e;
}

static void signals(void)
{
    auto_(charges_free) struct charges *c = NULL;

    is_int(charges_new(&c), 0, "made");
    struct ledger_energy e = row(c, 0, 10, 0, 1000);
    ok(!e.charge[LEDGER_CO2].factor && !e.charge[LEDGER_COST].factor,
       "no signal: nothing is known");
    tell(c, 5, "carbon", 0, NULL);
    tell(c, 20, "carbon", 300, "file a");
    tell(c, 20, "queue.depth", 7, "slurm");
    e = row(c, 10, 20, 0, 1000);
    ok(!e.charge[LEDGER_CO2].factor, "nor before the value came");
    e = row(c, 20, 30, 0, 1000);
    is_int(e.charge[LEDGER_CO2].amount, 83, "1 kJ at 300 g/kWh");
    ok(e.charge[LEDGER_CO2].covered_uj == 1000000000 && !e.charge[LEDGER_MARGINAL].factor,
       "all of it, and nothing of the marginal");
    ok(strcmp(e.charge[LEDGER_CO2].factor->source, "file a") == 0 &&
           strcmp(e.charge[LEDGER_CO2].factor->unit, "g/kWh") == 0,
       "with its source");
    tell(c, 33, "carbon", 300, "file b");
    e = row(c, 30, 40, 0, 1000);
    ok(e.charge[LEDGER_CO2].covered_uj == 1000000000 &&
           strcmp(e.charge[LEDGER_CO2].factor->source, "file b") == 0,
       "another source of the same value: the one of most time");
    tell(c, 45, "carbon", 0, NULL);
    tell(c, 40, "price", -0.1, "market");
    e = row(c, 40, 50, 0, 3600);
    is_int(e.charge[LEDGER_CO2].covered_uj, 1800000000, "half of it: then it went");
    is_int(e.charge[LEDGER_COST].amount, -100, "1 Wh at -0.1 EUR/kWh, in millionths");
    e = row(c, 50, 60, 0, 3600);
    ok(!e.charge[LEDGER_CO2].factor, "gone");
}

/* More changes than are kept: what is kept is right, what is not is not covered. */
static void many(void)
{
    auto_(charges_free) struct charges *c = NULL;
    enum { CHANGES = 3 * CHARGES_STEPS };
    char source[32];

    (void)charges_new(&c);
    for (uint64_t i = 0; i < CHANGES; i++) {
        (void)snprintf(source, sizeof source, "source %u", (unsigned)i);
        tell(c, i, "carbon", (double)i, source);
    }
    int bad = 0;
    for (uint64_t i = CHANGES - CHARGES_STEPS; i < CHANGES; i++) {
        struct ledger_energy e = row(c, i, i + 1, i + 1, 3.6e6);
        (void)snprintf(source, sizeof source, "source %u", (unsigned)i);
        bad += !e.charge[LEDGER_CO2].factor ||
               strcmp(e.charge[LEDGER_CO2].factor->source, source) != 0 ||
               e.charge[LEDGER_CO2].amount != (int64_t)i * 1000;
    }
    is_int(bad, 0, "the last %d changes count", CHARGES_STEPS);
    struct ledger_energy e = row(c, 0, 2 * CHANGES, 0, 3.6e6);
    is_near((double)e.charge[LEDGER_CO2].covered_uj / 3.6e12,
            (double)(CHANGES + CHARGES_STEPS) / (2 * CHANGES), 1e-9,
            "what was before them is not covered");
}

/* Two jobs that share a board, in turns: each has its own sum. */
static void shared(void)
{
    auto_(charges_free) struct charges *c = NULL;
    double j[2] = {0};
    int64_t mg[2] = {0};
    struct rng g;

    (void)charges_new(&c);
    rng_init(&g, 3);
    tell(c, 0, "carbon", 320, "file a");
    for (uint64_t i = 0; i < 10000; i++)
        for (uint64_t k = 0; k < 2; k++) {
            double part = k ? 6.75 : 4.5; /* 0.6 and 0.4 mg */
            struct ledger_energy e = row(c, i, i + 1, k + 1, part);
            j[k] += part;
            mg[k] += e.charge[LEDGER_CO2].amount;
        }
    for (int k = 0; k < 2; k++)
        is_near((double)mg[k], j[k] / 3.6e6 * 320e3, 1, "the sum of job %d", k + 1);
}

/* Sums of boards and jobs; money begins anew in another currency. */
static void sums(void)
{
    auto_(charges_free) struct charges *c = NULL;
    struct charges_sum sum;

    is_int(charges_new(&c), 0, "made");
    charges_board(c, 0, &sum);
    ok(sum.covered_uj[LEDGER_CO2] == 0 && !sum.currency[0], "nothing yet");
    tell(c, 0, "carbon", 360, "file a");
    tell(c, 10, "price", 0.36, "file p");
    (void)row(c, 0, 10, 7, 10000);
    (void)row(c, 10, 20, 7, 10000);
    (void)row(c, 10, 20, 0, 5000);
    charges_board(c, 0, &sum);
    ok(sum.amount[LEDGER_CO2] == 2500 && sum.covered_uj[LEDGER_CO2] == 25000000000 &&
           sum.amount[LEDGER_COST] == 1500 && sum.covered_uj[LEDGER_MARGINAL] == 0,
       "a board: 25 kJ at 360 g/kWh, and 15 kJ at 0.36 EUR");
    is_str(sum.currency, "EUR", "in euros");
    charges_job(c, 7, &sum);
    ok(sum.amount[LEDGER_CO2] == 2000 && sum.amount[LEDGER_COST] == 1000, "its job");
    charges_job(c, 8, &sum);
    ok(sum.covered_uj[LEDGER_CO2] == 0, "another job");
    for (uint64_t job = 100; job < 100 + 511; job++)
        (void)row(c, 20, 30, job, 10000);
    charges_job(c, 7, &sum);
    is_int(sum.amount[LEDGER_CO2], 2000, "is among the last 512");
    (void)row(c, 20, 30, 1000, 10000);
    charges_job(c, 7, &sum);
    is_int(sum.amount[LEDGER_CO2], 0, "and not any more");
    charges_drop_boards(c);
    charges_board(c, 0, &sum);
    is_int(sum.covered_uj[LEDGER_CO2], 0, "other boards begin anew");
}

int main(void)
{
    sums();
    signals();
    many();
    shared();
    return done();
}
