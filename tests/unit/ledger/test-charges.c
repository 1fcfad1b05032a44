/* Emissions and money of rows: written, rolled up, merged in memory, refused. */
#include <errno.h>

#include "help.h"
#include "tap.h"

static const struct ledger_factor grid = {"carbon", "file /srv/grid.csv", "g/kWh", false},
                                  guess = {"carbon", "file /srv/grid.csv", "g/kWh", true},
                                  market = {"price", "market", "EUR/kWh", false};

/* 1 kJ in interval i, half of it charged with 300 g/kWh; factor NULL: none is known. */
static int put_charged(struct ledger_batch *b, int64_t i,
                       const struct ledger_factor *factor)
{
    struct ledger_energy e = {.begin_utc_ns = T0 + i * 10 * S,
                              .end_utc_ns = T0 + (i + 1) * 10 * S,
                              .kind = LEDGER_IDLE,
                              .energy_j = 1000,
                              .simulated = true};

    if (factor)
        e.charge[LEDGER_CO2] = (struct ledger_amount){factor, 42, 500000000};
    if (factor == &grid)
        e.charge[LEDGER_COST] = (struct ledger_amount){&market, -14, 1000000000};
    return ledger_add_energy(b, &e);
}

static void charges_are(const char *path, const char *when)
{
    is_int(help_number(path, "SELECT sum(energy_uj) FROM energy"), 12000000000,
           "%s: the energy", when);
    is_int(help_number(path, "SELECT sum(co2_mg) FROM energy"), 8 * 42, "%s: emissions",
           when);
    is_int(help_number(path, "SELECT sum(co2_covered_uj) FROM energy"), 8 * 500000000LL,
           "%s: of how much energy", when);
    is_int(help_number(path, "SELECT sum(e.co2_mg) FROM energy e JOIN factor f ON f.id ="
                             " e.co2_factor WHERE f.estimated"),
           4 * 42, "%s: estimated ones", when);
    is_int(help_number(path, "SELECT sum(e.cost) FROM energy e JOIN factor f ON f.id ="
                             " e.cost_factor WHERE f.unit = 'EUR/kWh'"),
           4 * -14, "%s: money", when);
    is_int(help_number(path, "SELECT count(*) FROM energy WHERE co2_factor IS NULL AND"
                             " co2_mg IS NULL AND co2_covered_uj = 0 AND energy_uj > 0"),
           help_number(path, "SELECT count(*) FROM energy WHERE co2_mg IS NULL"),
           "%s: what no factor covers has no emissions, not 0", when);
    is_int(help_number(path, "SELECT sum(energy_uj) FROM energy WHERE co2_mg IS NULL"),
           4000000000, "%s: that is a third", when);
    is_int(help_number(path, "SELECT count(*) FROM energy WHERE marginal_mg NOT NULL"), 0,
           "%s: no marginal", when);
}

static void test_charges(void)
{
    struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    const char *path = help_path("co2.sqlite");
    const struct ledger_factor nameless = {"carbon", "", "g/kWh", false};
    struct ledger_energy bad = {.kind = LEDGER_IDLE, .energy_j = 1};
    uw_error err = {{0}};

    (void)help_open("co2.sqlite", T0, &l, &err);
    (void)help_boards(l, 1);
    for (int64_t i = 0; i < 12; i++)
        (void)put_charged(b, i, i % 3 == 0 ? &grid : i % 3 == 1 ? &guess : NULL);
    is_int(ledger_write(l, b, &err), 0, "rows with emissions %s", err.text);
    charges_are(path, "as booked");
    is_int(help_number(path, "SELECT count(*) FROM factor"), 3,
           "each factor is there once");
    int64_t days[] = {3, 20, 500};
    for (size_t i = 0; i < n_elements(days); i++) {
        while (ledger_tidy(l, T0 + days[i] * DAY, &err) == 1)
            ;
        charges_are(path, i == 0   ? "by the minute"
                          : i == 1 ? "by the hour"
                                   : "by the day");
    }
    is_int(help_number(path, "SELECT count(*) FROM energy WHERE res = 86400"), 3,
           "a row of each factor is left");
    ledger_close(take(l));
    (void)unlink(path);
    (void)help_open("co2.sqlite", T0, &l, &err);
    (void)help_boards(l, 1);
    auto_(ledger_batch_free) struct ledger_batch *first = take(b), *next = NULL;
    b = ledger_batch_new();
    next = ledger_batch_new();
    is_int(ledger_batch_join(b, first), 0, "rows move to another batch");
    is_int(ledger_batch_join(b, next), 0, "with nothing behind them");
    ledger_batch_free(take(first));
    is_int(ledger_batch_squeeze(b), 3, "merged in memory");
    is_int(ledger_write(l, b, &err), 0, "and written %s", err.text);
    charges_are(path, "merged");
    ledger_close(take(l));
    bad.charge[LEDGER_CO2] = (struct ledger_amount){&grid, 1, 1000001};
    is_int(ledger_add_energy(b, &bad), -EINVAL, "more is covered than there is");
    bad.charge[LEDGER_CO2] = (struct ledger_amount){NULL, 1, 0};
    is_int(ledger_add_energy(b, &bad), -EINVAL, "emissions by no factor");
    bad.charge[LEDGER_CO2] = (struct ledger_amount){&nameless, 1, 1000000};
    is_int(ledger_add_energy(b, &bad), -EINVAL, "by one without a source");
}

int main(void)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    test_charges();
    help_end();
    return done();
}
