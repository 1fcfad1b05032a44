/* More forecasts than there are places for: said once, and again after there was room. */
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
    return done();
}
