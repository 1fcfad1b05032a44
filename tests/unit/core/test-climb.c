/* Which lock to measure next. */
#include "core/optimum/climb.h"

#include <math.h>

#include "base/auto.h"
#include "tap.h"

#define ANY INFINITY

/* A board of 300..1500 MHz whose cap is seen at 1200; 60 % of the time at the top follows
 * the clock: that long under a lock, over the held cap's.
 */
static double time_at(double mhz)
{
    return (0.4 + 0.6 * 1500 / mhz) / (0.4 + 0.6 * 1500 / 1150);
}

static void choices(void)
{
    static const double seen = 1200;
    /* clang-format off */
    static const struct {
        const char *name;
        double most_t;     /* 0: any */
        double mhz[4], g[4];
        uint32_t least, most;
    } cases[] = {
        {"first: a little under the clock seen", 0, {0}, {0}, 1150, 1165},
        {"… no slower than the cap where that is the bound", 1, {0}, {0}, 1170, 1200},
        {"… and above, where the cap is over the bound", 0.98, {0}, {0}, 1215, 1290},
        {"nothing is fast enough", 0.80, {0}, {0}, 0, 0},
        {"down first", 0, {1155}, {-0.01}, 1110, 1125},
        {"on while it gets better", 0, {1155, 1110}, {-0.01, -0.02}, 1065, 1080},
        {"up when it does not", 0, {1155, 1110}, {-0.01, 0.0}, 1200, 1215},
        {"then between the three", 0, {1155, 1110, 1215}, {-0.010, -0.009, 0.01}, 1125, 1140},
        {"… unless it promises nothing", 0, {1155, 1110, 1215}, {-0.01, 0.0, 0.0}, 0, 0},
        {"down to the bound's end", 1.01, {1185}, {-0.01}, 1125, 1155},
        {"back from beyond it", 1.0, {1110}, {-0.02}, 1140, 1170},
        {"there already", 1.0, {1155}, {-0.02}, 0, 0},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct climb_point point[4];
        struct climb c = {
            .min_mhz = 300,
            .max_mhz = 1500,
            .step_mhz = 15,
            .seen_mhz = seen,
            .most_log_t = cases[i].most_t > 0 ? log(cases[i].most_t) : ANY,
            .least_gain = 0.001,
            .top = {1500, log(time_at(1500)), 0.1, 0},
            .point = point,
        };
        for (; c.n < 4 && cases[i].mhz[c.n] > 0; c.n++)
            point[c.n] = (struct climb_point){
                cases[i].mhz[c.n], log(time_at(cases[i].mhz[c.n])), cases[i].g[c.n], 0};
        uint32_t mhz = climb_next(&c);
        ok(mhz >= cases[i].least && mhz <= cases[i].most, "%s: %u MHz", cases[i].name,
           mhz);
    }
}

static void range(void)
{
    struct climb_point point = {600, log(time_at(600)), -0.2, 0};
    struct climb c = {
        .min_mhz = 600,
        .max_mhz = 1500,
        .step_mhz = 15,
        .seen_mhz = 610,
        .most_log_t = ANY,
        .least_gain = 0.001,
        .top = {1500, log(time_at(1500)), 0.1, 0},
        .point = &point,
    };

    is_int(climb_next(&c), 600, "not below the lowest clock");
    c.n = 1;
    is_int(climb_next(&c), 630, "… from there up alone");
    c.seen_mhz = 1500;
    c.n = 0;
    is_int(climb_next(&c), 1440, "a cap that does not bite: under the top");
    c.step_mhz = 90;
    is_int(climb_next(&c), 0, "coarse clocks: none is between");
}

int main(void)
{
    choices();
    range();
    return done();
}
