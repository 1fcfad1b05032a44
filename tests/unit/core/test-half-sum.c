/* Half widths of sums: what is in proportion to the energy adds up, noise in squares. */
#include <math.h>

#include "core/meter/half-sum.h"
#include "core/meter/meter.h"
#include "tap.h"

static struct half_sum of_rows(unsigned n, double energy_j, double half_j, bool counted)
{
    struct half_sum sum = {0};

    for (unsigned i = 0; i < n; i++) {
        struct half_sum row = half_sum_of(energy_j, half_j, counted);
        half_sum_add(&sum, &row);
    }
    return sum;
}

int main(void)
{
    struct half_sum none = {0}, one = half_sum_of(1000, 50, true);
    struct half_sum many = of_rows(100, 1000, 50, true);
    struct half_sum narrow = of_rows(100, 1000, 4, true);
    struct half_sum readings = of_rows(100, 1000, 50, false);

    is_near(half_sum_j(&none), 0, 0, "of nothing");
    is_near(half_sum_j(&one), 50, 1e-9, "of one stretch: its own");
    /* 0.4 % of 100 kJ, and ten times the noise of one stretch. */
    is_near(half_sum_j(&many), hypot(400, 10 * sqrt(50 * 50 - 4 * 4)), 1e-9,
            "of a counter's: the noise in squares");
    is_near(half_sum_j(&narrow), 400, 1e-9, "never below 0.4 %% of the energy");
    is_near(half_sum_j(&readings), 5000, 1e-9, "of readings: added up");

    /* Ten minutes of ten rows each, kept as energy and half width. */
    struct half_sum rolled = {0};
    for (unsigned i = 0; i < 10; i++) {
        struct half_sum minute = of_rows(10, 1000, 50, true);
        struct half_sum row = half_sum_of(10000, half_sum_j(&minute), true);
        half_sum_add(&rolled, &row);
    }
    is_near(half_sum_j(&rolled), half_sum_j(&many), 1e-9,
            "of sums: as of all their stretches");

    static const double shares[] = {0.5, 0.3, 0.2};
    for (int counted = 0; counted < 2; counted++) {
        struct half_sum whole = half_sum_of(1000, 50, counted), back = {0};
        for (size_t i = 0; i < 3; i++) {
            struct half_sum share = half_sum_share(&whole, shares[i]);
            struct half_sum row =
                half_sum_of(1000 * shares[i], half_sum_j(&share), counted);
            half_sum_add(&back, &row);
        }
        is_near(half_sum_j(&back), 50, 1e-9, "of all shares of a stretch, %s: its own",
                counted ? "counted" : "from readings");
    }
    ok(meter_counted(METER_COUNTER, METER_WHY_GAP), "a counter over a gap counts");
    ok(!meter_counted(METER_COUNTER, METER_WHY_STUCK), "readings for a stuck one do not");
    ok(!meter_counted(METER_COUNTER, METER_WHY_RESET), "nor over a reset");
    ok(!meter_counted(METER_INTEGRATED, 0), "nor at other times");
    return done();
}
