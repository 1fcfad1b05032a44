/* Whose joules: tables, and sums over random boards. */
#include "core/job/split.h"

#include "base/rng.h"
#include "tap.h"

#define U -1.0 /* use unknown */

static const struct {
    const char *name;
    size_t n;
    struct {
        uint64_t job;
        double use_s;
    } user[4];
    enum split_method method;
    double share[4], idle, rest; /* of 600 J */
} cases[] = {
    /* clang-format off */
    {"nobody", 0, {{0, 0}}, SPLIT_IDLE, {0}, 600, 0},
    {"one job, use unknown", 1, {{7, U}}, SPLIT_SOLE, {600}, 0, 0},
    {"one job that used nothing", 1, {{7, 0}}, SPLIT_SOLE, {600}, 0, 0},
    {"processes of no job", 1, {{0, 3}}, SPLIT_UNATTRIBUTED, {0}, 0, 600},
    {"two jobs, 1 to 2", 2, {{7, 1}, {8, 2}}, SPLIT_USE, {200, 400}, 0, 0},
    {"two jobs, one at rest", 2, {{7, 4}, {8, 0}}, SPLIT_USE, {600, 0}, 0, 0},
    {"two jobs, neither computes", 2, {{7, 0}, {8, 0}}, SPLIT_EQUAL, {300, 300}, 0, 0},
    {"two jobs and processes of none, nobody computes", 3, {{7, 0}, {0, 0}, {8, 0}}, SPLIT_EQUAL, {200, 0, 200}, 0, 200},
    {"a job and processes of none, nobody computes", 2, {{7, 0}, {0, 0}}, SPLIT_EQUAL, {300, 0}, 0, 300},
    {"two jobs, use unknown", 2, {{7, U}, {8, U}}, SPLIT_EQUAL, {300, 300}, 0, 0},
    {"two jobs, use of one unknown", 2, {{7, 9}, {8, U}}, SPLIT_EQUAL, {300, 300}, 0, 0},
    {"a job and processes of none", 2, {{7, 1}, {0, 3}}, SPLIT_USE, {150, 0}, 0, 450},
    {"a job and quiet processes of none", 2, {{7, 1}, {0, 0}}, SPLIT_USE, {600, 0}, 0, 0},
    {"a job and processes of none, unknown", 2, {{7, U}, {0, U}}, SPLIT_EQUAL, {300, 0}, 0, 300},
    {"a use that is no number", 2, {{7, NAN}, {8, 1}}, SPLIT_EQUAL, {300, 300}, 0, 0},
    {"an endless use", 2, {{7, INFINITY}, {8, 1}}, SPLIT_EQUAL, {300, 300}, 0, 0},
    {"three and a rest", 4, {{7, 1}, {8, 2}, {0, 2}, {9, 1}}, SPLIT_USE, {100, 200, 0, 100}, 0, 200},
    /* clang-format on */
};

static void table(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct split_user user[4] = {{0}};
        struct split_share share[4];
        struct split s;

        for (size_t k = 0; k < cases[i].n; k++)
            user[k] =
                (struct split_user){cases[i].user[k].job, cases[i].user[k].use_s != U,
                                    cases[i].user[k].use_s};
        split_energy(user, cases[i].n, 600, share, &s);
        is_int(s.method, cases[i].method, "%s", cases[i].name);
        is_near(s.idle_j, cases[i].idle, 0, "  idle");
        is_near(s.unattributed_j, cases[i].rest, 1e-9, "  unattributed");
        for (size_t k = 0; k < cases[i].n; k++) {
            is_near(share[k].energy_j, cases[i].share[k], 1e-9, "  share %zu", k);
            ok(share[k].job == cases[i].user[k].job, "  … is its job's");
        }
    }
}

/* Whatever is fed: nothing lost, nothing double, nothing negative, and more use never
 * means less.
 */
static void sums(void)
{
    struct rng rng;
    double worst = 0;
    bool negative = false, ordered = true, beyond = false;

    rng_init(&rng, 4711);
    for (int round = 0; round < 20000; round++) {
        struct split_user user[8];
        struct split_share share[8];
        struct split s;
        size_t n = (size_t)(rng_uniform(&rng) * 8.99);
        double e = exp(20 * rng_uniform(&rng) - 4), sum;
        bool outsider = false;

        if (n > 8)
            n = 8;
        for (size_t i = 0; i < n; i++) {
            user[i] = (struct split_user){i + 1, rng_uniform(&rng) < 0.97,
                                          exp(12 * rng_uniform(&rng) - 8)};
            if (rng_uniform(&rng) < 0.2)
                user[i].use_s = 0;
        }
        if (n > 0 && rng_uniform(&rng) < 0.3) {
            user[n - 1].job = 0;
            outsider = true;
        }
        split_energy(user, n, e, share, &s);
        sum = s.idle_j + s.unattributed_j;
        for (size_t i = 0; i < n; i++) {
            sum += share[i].energy_j;
            negative |= share[i].energy_j < 0;
            for (size_t k = 0; k < i && s.method == SPLIT_USE; k++)
                if (user[i].job && user[k].job && user[i].use_s > user[k].use_s &&
                    share[i].energy_j < share[k].energy_j * (1 - 1e-12))
                    ordered = false;
        }
        beyond |= n > 1 && !outsider && s.method == SPLIT_EQUAL && s.unattributed_j != 0;
        negative |= s.idle_j < 0 || s.unattributed_j < 0;
        worst = fmax(worst, fabs(sum / e - 1));
    }
    ok(worst <= 4e-15, "20,000 boards: the sum is the energy (worst %.2g)", worst);
    ok(!negative, "20,000 boards: nothing is negative");
    ok(ordered, "20,000 boards: who used more has no less");
    ok(!beyond, "20,000 boards: equal parts leave no rest");
}

int main(void)
{
    table();
    sums();
    return done();
}
