#include "base/rng.h"

#include "tap.h"

int main(void)
{
    struct rng a, b;
    rng_init(&a, 42);
    rng_init(&b, 42);
    bool same = true;
    for (int i = 0; i < 1000; i++)
        same &= rng_u64(&a) == rng_u64(&b);
    ok(same, "the same seed gives the same numbers");
    rng_init(&b, 43);
    ok(rng_u64(&a) != rng_u64(&b), "another seed gives others");

    double sum = 0, sq = 0;
    bool inside = true, below = true;
    enum { N = 100000 };
    for (int i = 0; i < N; i++) {
        double u = rng_uniform(&a);
        inside &= u >= 0 && u < 1;
        below &= rng_below(&a, 7) < 7;
        double z = rng_normal(&a);
        sum += z;
        sq += z * z;
    }
    ok(inside, "uniform stays in [0, 1)");
    ok(below, "below stays under its bound");
    is_near(sum / N, 0, 0.02, "normal has mean 0");
    is_near(sq / N, 1, 0.03, "normal has variance 1");
    return done();
}
