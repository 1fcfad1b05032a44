/* More forecasts than there are places for: said once, and again after there was room.
 * A series that is published late is not compared with itself.
 */
#include "fetcher/judges.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "signal/judged.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define T0 INT64_C(1767225600) /* 2026-01-01T00:00:00Z */
enum { HOUR = 3600, DAY = 86400, MANY = JUDGED_MAX + 2 };

/* What is held: carbon-N and its forecast, N from `first` on. */
static struct {
    struct loop *loop;
    int first, n;
} held;

static void each(judges_series_fn fn, void *arg, void *user)
{
    int64_t now_s = loop_utc_ns(held.loop) / (int64_t)NS_PER_S;
    int64_t at = now_s - now_s % HOUR;
    struct source_point known = {at, at + HOUR, 300, false};
    struct source_point ahead[2] = {known, {at + HOUR, at + 2 * HOUR, 310, false}};
    static const struct signals_source limits;
    (void)user;

    for (int i = held.first; i < held.first + held.n; i++) {
        struct source_series s = {.unit = "g/kWh", .point = &known, .n = 1};
        (void)snprintf(s.signal, sizeof s.signal, "site%d.carbon", i);
        fn("grid", &limits, &s, arg);
        (void)snprintf(s.signal, sizeof s.signal, "site%d.carbon.forecast", i);
        s.point = ahead;
        s.n = n_elements(ahead);
        s.issued_utc_s = at;
        fn("grid", &limits, &s, arg);
    }
}

static int on_end(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

/* Lines in the log of so many rounds with these forecasts. */
static int lines(int first, int n, FILE *log)
{
    struct loop_timer *timer = NULL;
    char line[512];
    int found = 0;

    held.first = first;
    held.n = n;
    (void)fseek(log, 0, SEEK_END);
    long begin = ftell(log);
    int old = dup(2);
    (void)dup2(fileno(log), 2);
    int r = loop_timer_new(held.loop, loop_now_ns(held.loop) + 60 * NS_PER_S, 0, on_end,
                           held.loop, &timer, NULL);
    if (r == 0)
        r = loop_run(held.loop, NULL);
    loop_timer_free(timer);
    (void)dup2(old, 2);
    (void)close(old);
    is_int(r, 0, "rounds with %d forecasts", n);
    (void)fseek(log, begin, SEEK_SET);
    while (fgets(line, sizeof line, log))
        found += strstr(line, "state=not-judged") != NULL;
    return found;
}

/* As of a file: an hour's value is published when ten minutes of it have passed, each one
 * 10 above the one before, and counts until the next one.  The forecast is right.
 */
static void each_late(judges_series_fn fn, void *arg, void *user)
{
    enum { PAST = 30, AHEAD = 30, LATE_S = 600, RISE = 10 };
    static const struct signals_source limits;
    struct source_point point[PAST], ahead[AHEAD];
    int64_t now_s = loop_utc_ns(held.loop) / (int64_t)NS_PER_S;
    int64_t hour = now_s / HOUR, known = (now_s - LATE_S) / HOUR;
    struct source_series s = {.unit = "g/kWh", .signal = "carbon", .n = PAST};
    (void)user;

    for (int i = 0; i < PAST; i++) {
        int64_t h = known - PAST + 1 + i;
        int64_t end = i + 1 < PAST ? h + 1 : h; /* as held: the last one has none */
        point[i] = (struct source_point){h * HOUR, end * HOUR,
                                         (double)(h - T0 / HOUR) * RISE, false};
    }
    for (int i = 0; i < AHEAD; i++)
        ahead[i] = (struct source_point){(hour + i) * HOUR, (hour + i + 1) * HOUR,
                                         (double)(hour + i - T0 / HOUR) * RISE, false};
    s.point = point;
    fn("file", &limits, &s, arg);
    (void)snprintf(s.signal, sizeof s.signal, "carbon.forecast");
    s.point = ahead;
    s.n = AHEAD;
    fn("file", &limits, &s, arg);
}

static void late(void)
{
    auto_(judges_free) struct judges *j = NULL;
    struct signal_facts f = {.n_judged = 0};
    struct loop_timer *timer = NULL;
    uw_error err = {""};

    is_int(judges_new(held.loop, NULL, each_late, NULL, &j, &err), 0, "judges %s",
           err.text);
    (void)loop_timer_new(held.loop, loop_now_ns(held.loop) + 10 * HOUR * NS_PER_S, 0,
                         on_end, held.loop, &timer, NULL);
    is_int(loop_run(held.loop, NULL), 0, "ten hours");
    loop_timer_free(timer);
    judges_facts(j, "carbon.forecast", loop_utc_ns(held.loop) / (int64_t)NS_PER_S, &f);
    ok(f.n_judged > 0 && f.judged[0].score.n >= 7, "%d values",
       f.n_judged ? (int)f.judged[0].score.n : 0);
    is_near(f.judged[0].score.forecast, 0, 1e-9, "a forecast that is right has no error");
    is_near(f.judged[0].score.last, 20, 1e-9,
            "persistence, of the hour before, is wrong by two hours' rise");
}

int main(void)
{
    auto_(loop_free) struct loop *loop = NULL;
    auto_(judges_free) struct judges *j = NULL;
    FILE *log = tmpfile();
    uw_error err = {""};

    if (!log || loop_new_virtual(NS_PER_S, T0, &loop, &err) < 0)
        return skip_all("no loop or file");
    held.loop = loop;
    is_int(judges_new(loop, NULL, each, NULL, &j, &err), 0, "judges %s", err.text);
    is_int(lines(0, JUDGED_MAX, log), 0, "as many as there are places: nothing");
    is_int(lines(0, MANY, log), 1, "two more: one line");
    is_int(lines(0, MANY, log), 0, "once");
    is_int(lines(0, JUDGED_MAX, log), 0, "without them nothing");
    is_int(lines(0, MANY, log), 1, "they are back: a line again");
    loop_shift_utc(loop, 40 * DAY * (int64_t)NS_PER_S);
    is_int(lines(100, MANY - 2, log), 0, "others have places that became free");
    is_int(lines(100, MANY, log), 1, "and two more have none: a line again");
    (void)fclose(log);
    late();
    return done();
}
