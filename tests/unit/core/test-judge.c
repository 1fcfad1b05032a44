/* Forecasts against known series: perfect ones, persistence itself, a day's cycle,
 * revisions, gaps, estimates, and clocks that are set.
 */
#include "core/carbon/judge.h"

#include <stdint.h>

#include "tap.h"

enum { H = 3600, DAY = 24 * H, HOURS = 40 * 24 };
#define BEGIN (INT64_C(20000) * DAY)

static double truth[HOURS + 48]; /* of each hour from BEGIN on */

static void make_truth(double swing)
{
    for (int i = 0; i < HOURS + 48; i++)
        truth[i] = 300 + swing * sin(i * 2 * 3.14159265358979 / 24) + i % 7;
}

/* A run of `hours` hours, each with an issue of the next 25 hours. */
struct run {
    struct judge j;
    double (*guess)(int hour, int ahead); /* made in this hour, of that one */
    bool (*has)(int hour);                /* NULL: every hour has a value */
    bool (*estimated)(int hour, int now); /* NULL: none */
    int64_t issued_s;                     /* behind the full hour; < 0: it does not say */
    int every;                            /* seconds between steps */
};

static double perfect(int hour, int ahead)
{
    return truth[hour + ahead];
}

static double persistent(int hour, int ahead)
{
    (void)ahead;
    return truth[hour];
}

static double bad(int hour, int ahead)
{
    return truth[hour] + 500 + ahead;
}

static size_t actual_of(const struct run *r, int hour, struct judge_point *ret)
{
    size_t n = 0;

    for (int i = hour > 300 ? hour - 300 : 0; i <= hour; i++)
        if (!r->has || r->has(i))
            ret[n++] = (struct judge_point){BEGIN + i * H, BEGIN + (i + 1) * H, truth[i],
                                            r->estimated && r->estimated(i, hour)};
    return n;
}

static void play(struct run *r, int from, int hours)
{
    static struct judge_point actual[301], ahead[26];

    for (int hour = from; hour < from + hours; hour++) {
        struct judge_series a = {actual, actual_of(r, hour, actual)}, f = {ahead, 26};
        for (int i = 0; i < 26; i++)
            ahead[i] =
                (struct judge_point){BEGIN + (hour + i) * H, BEGIN + (hour + i + 1) * H,
                                     r->guess(hour, i), false};
        for (int s = 60; s < H; s += r->every)
            judge_step(&r->j, r->issued_s < 0 ? 0 : BEGIN + hour * H + r->issued_s,
                       BEGIN + hour * H + s, &f, &a);
    }
}

static struct judge_score score_of(const struct run *r, size_t h, int hour)
{
    struct judge_score s = {0};

    (void)judge_score(&r->j, h, BEGIN + hour * H, &s);
    return s;
}

static void known(void)
{
    static struct run r;

    make_truth(100);
    r = (struct run){.guess = perfect, .issued_s = 0, .every = 1800};
    play(&r, 0, 240);
    for (size_t h = 0; h < JUDGE_HORIZONS; h++) {
        struct judge_score s = score_of(&r, h, 240);
        ok(s.n > 200 && s.forecast == 0 && s.last > 0,
           "a perfect forecast at %jd h: 0, persistence %.1f",
           (intmax_t)judge_horizon_s(h) / H, s.last);
    }
    ok(!judge_verdict(&r.j, BEGIN + 240 * H) && r.j.worse == 0, "… is not worse");
    ok(r.j.n <= 46 + 5, "%zu values wait: each horizon's own", r.j.n);
    struct judge_score day = score_of(&r, 4, 240), noon = score_of(&r, 3, 240);
    ok(fabs(day.yesterday - day.last) < 0.5 && day.n_yesterday == day.n,
       "24 h ahead persistence is the value of the day before");
    ok(noon.yesterday < noon.last / 10,
       "12 h ahead of a day's cycle the day before is the better guess: %.1f, %.1f",
       noon.yesterday, noon.last);

    r = (struct run){.guess = persistent, .issued_s = 0, .every = 1800};
    play(&r, 0, 240);
    for (size_t h = 0; h < JUDGE_HORIZONS; h++) {
        struct judge_score s = score_of(&r, h, 240);
        ok(s.last > 0 && s.forecast == s.last, "persistence against itself: ratio 1");
    }
    ok(!judge_verdict(&r.j, BEGIN + 240 * H), "… is not worse");

    r = (struct run){.guess = bad, .issued_s = 0, .every = 1800};
    play(&r, 0, 47);
    ok(!judge_verdict(&r.j, BEGIN + 47 * H) && r.j.worse == 0, "two days are no verdict");
    play(&r, 47, 193);
    ok(judge_verdict(&r.j, BEGIN + 240 * H) && r.j.worse == 31,
       "a bad one is worse at each horizon: told once");
    ok(!judge_verdict(&r.j, BEGIN + 241 * H) && r.j.worse == 31, "… and stays so");
    ok(!judge_verdict(&r.j, BEGIN + 1100 * H) && r.j.worse == 31,
       "… as well where all values are too old");
    r.guess = perfect;
    play(&r, 240, 700);
    ok(judge_verdict(&r.j, BEGIN + 940 * H) && r.j.worse == 0,
       "errors of four weeks before do not count");
}

static bool no_night(int hour)
{
    return hour % 24 >= 6;
}

static bool not_yet(int hour, int now)
{
    return now < hour + 5;
}

static bool always(int hour, int now)
{
    (void)hour;
    (void)now;
    return true;
}

static void gaps(void)
{
    static struct run r;

    make_truth(100);
    r = (struct run){.guess = perfect, .has = no_night, .every = 1800};
    play(&r, 0, 240);
    struct judge_score s = score_of(&r, 2, 240);
    ok(s.n > 0 && s.forecast == 0 && s.missed > 0,
       "hours without a value: %ju judged, %ju missed", (uintmax_t)s.n,
       (uintmax_t)s.missed);
    ok(r.j.n <= JUDGE_OPEN, "… and what waits is bounded: %zu", r.j.n);

    r = (struct run){.guess = bad, .estimated = not_yet, .every = 1800};
    play(&r, 0, 6);
    ok(score_of(&r, 0, 6).n == 0, "an estimate judges nothing");
    play(&r, 6, 100);
    s = score_of(&r, 0, 106);
    ok(s.n == 100 && s.missed == 0, "the value that replaces it does: %ju",
       (uintmax_t)s.n);

    r = (struct run){.guess = perfect, .estimated = always, .every = 1800};
    play(&r, 0, 240);
    s = score_of(&r, 0, 240);
    ok(s.n == 0 && s.missed > 100 && r.j.n <= JUDGE_OPEN,
       "estimates alone: none is judged, %ju missed", (uintmax_t)s.missed);
}

static void revised(void)
{
    static struct run r;

    make_truth(100);
    r = (struct run){.guess = perfect, .issued_s = -1, .every = 600};
    play(&r, 0, 48);
    struct judge_score s = score_of(&r, 0, 48);
    ok(s.n == 47, "asked six times an hour, an unchanged issue counts once: %ju",
       (uintmax_t)s.n);
}

/* One issue of the hours 0 to 25 with this value, made then. */
static void issue(struct judge *j, int64_t made, int64_t now, double v, double actual,
                  int hours)
{
    struct judge_point f = {BEGIN, BEGIN + 48 * H, v, false};
    struct judge_point a = {BEGIN - 48 * H, BEGIN + hours * H, actual, false};
    const struct judge_series forecast = {&f, 1}, came = {&a, 1};

    judge_step(j, made, now, &forecast, &came);
}

static void issues(void)
{
    static struct judge j;
    struct judge_score s;

    j = (struct judge){.n = 0};
    issue(&j, BEGIN, BEGIN + 60, 110, 100, 1);
    issue(&j, BEGIN + 600, BEGIN + 660, 500, 100, 1);
    ok(j.n == 5, "an issue within 15 min of the last one is not judged");
    issue(&j, BEGIN + 3 * H, BEGIN + 3 * H + 60, 103, 100, 4);
    ok(j.n == 8, "two horizons are over: judged");
    ok(judge_score(&j, 0, BEGIN + 4 * H, &s) && s.n == 1 && s.forecast == 10,
       "1 h after the first issue: 10 off");
    issue(&j, BEGIN + 3 * H, BEGIN + 6 * H + 60, 103, 100, 7);
    ok(judge_score(&j, 2, BEGIN + 7 * H, &s) && s.n == 1 && s.forecast == 10 &&
           judge_score(&j, 1, BEGIN + 7 * H, &s) && s.n == 2 && s.forecast == 6.5,
       "each issue is judged at its own horizon: 6 h by the first, 3 h by both");
    size_t n = j.n;
    issue(&j, BEGIN + 2 * H, BEGIN + 6 * H + 120, 1, 100, 7);
    ok(j.n == n, "an issue that is older than the last one is not taken");
    ok(!judge_score(&j, JUDGE_HORIZONS, BEGIN, &s), "no other horizon");

    j = (struct judge){.n = 0};
    issue(&j, BEGIN, BEGIN + 10 * H, 1, 100, 11);
    ok(j.n == 2, "a forecast that is 10 h old when it comes counts for what is ahead");
    j = (struct judge){.n = 0};
    issue(&j, BEGIN, BEGIN, 1, NAN, 1);
    ok(j.n == 0, "without a value of now there is no persistence, and no case");
    issue(&j, BEGIN + 9 * DAY, BEGIN + 60, 2, 100, 1);
    ok(j.n == 5 && j.issued_utc_s == BEGIN + 60, "an issue of the future is made now");
}

static void clocks(void)
{
    static struct judge j;
    struct judge_score s;

    j = (struct judge){.n = 0};
    issue(&j, 0, BEGIN + 10 * H, 1, 100, 11);
    ok(j.n == 5, "an issue");
    issue(&j, 0, BEGIN, 2, 100, 1);
    ok(j.n == 5 && j.open[0].issued_utc_s == BEGIN,
       "set back by 10 h: what was made in the future is forgotten");
    issue(&j, 0, BEGIN + 400 * DAY, 3, 100, 1);
    ok(j.n == 0, "set ahead by a year: what waits is over");
    ok(judge_score(&j, 0, BEGIN + DAY, &s) && s.n == 0 && s.missed == 1, "… and missed");
    issue(&j, 0, BEGIN + 1000, 4, 100, 48);
    ok(j.n == 5, "set back again: the next issue is kept");
    issue(&j, 0, BEGIN + 25 * H, 4, 100, 48);
    ok(judge_score(&j, 0, BEGIN + DAY, &s) && s.n == 1, "… and judged");
}

int main(void)
{
    known();
    gaps();
    revised();
    issues();
    clocks();
    return done();
}
