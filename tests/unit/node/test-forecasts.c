/* Forecasts of files held against what came, over days of virtual time: errors that are
 * known beforehand, a source that is worse than persistence, a restart, a broken file.
 */
#include "node/forecasts.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/units.h"
#include "io/file.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define T0 INT64_C(1767225600) /* 2026-01-01T00:00:00Z */
enum { HOUR = 3600, DAYS = 4, LATE_S = 600, PATH = 300 };

/* The carbon intensity swings from hour to hour, so that persistence is wrong by SWING an
 * odd number of hours ahead, and right an even one; its forecast is always WRONG.  The
 * price rises by STEP an hour, and its forecast is off by NEAR.
 */
enum { SWING = 10, WRONG = 25 };
#define STEP 0.01
#define NEAR 0.001

static struct loop *loop;
static struct signals *store;
static struct signal_files *files;
static struct forecasts *forecasts;
static char dir[] = "/tmp/uw-forecasts-XXXXXX";
static FILE *err_log;

static double carbon_at(int64_t hour)
{
    return 300 + (hour % 2 ? SWING : 0);
}

static double price_at(int64_t hour)
{
    return 0.1 + STEP * (double)(hour - T0 / HOUR);
}

static const char *path_of(const char *name)
{
    static char path[4][PATH];
    static int at;

    at = (at + 1) % 4;
    (void)snprintf(path[at], PATH, "%s/%s", dir, name);
    return path[at];
}

/* Hours as CSV, each value off by so much. */
static void write_hours(const char *name, int64_t from, int64_t to,
                        double (*value)(int64_t hour), double off)
{
    static char text[20000];
    size_t n = 0;

    for (int64_t h = from; h < to; h++) {
        time_t at = (time_t)(h * HOUR);
        struct tm tm;
        char begin[32];
        (void)strftime(begin, sizeof begin, "%Y-%m-%dT%H:%MZ", gmtime_r(&at, &tm));
        n += (size_t)snprintf(text + n, sizeof text - n, "%s,%.6f\n", begin,
                              value(h) + off);
    }
    if (file_write(path_of(name), text, n, 0644, NULL) < 0)
        ok(false, "%s: not written", name);
}

static struct signal_time now(void)
{
    return (struct signal_time){loop_now_ns(loop), loop_utc_ns(loop)};
}

static int64_t hour_of(void)
{
    return loop_utc_ns(loop) / (int64_t)NS_PER_S / HOUR;
}

static size_t find(const char *signal)
{
    return (size_t)signals_find(store, signal);
}

/* ---- what a site's jobs do: files are written, prices told ---- */

/* The intensity of an hour is published when it has begun for a while. */
static int on_late(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    write_hours("carbon.csv", hour_of() - 30, hour_of() + 1, carbon_at, 0);
    return 0;
}

static int on_hour(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    const struct signal_put p = {.unit = "EUR/kWh", .source = "adapter"};
    struct signal_put put = p;
    const struct signal_value v = {.type = POLICY_NUMBER, .number = price_at(hour_of())};
    (void)timer, (void)now_ns, (void)user;

    put.utc_ns = loop_utc_ns(loop);
    (void)signals_put(store, find("price"), &put, &v, now(), NULL);
    write_hours("ahead.csv", hour_of(), hour_of() + 48, carbon_at, WRONG);
    write_hours("prices.csv", hour_of(), hour_of() + 48, price_at, NEAR);
    return 0;
}

/* ---- the daemon's parts ---- */

static void begin(void)
{
    static const char *const of[][2] = {{"carbon", "carbon.csv"},
                                        {"carbon.forecast", "ahead.csv"},
                                        {"price.forecast", "prices.csv"}};
    struct signal_source source[3] = {0};
    struct signal_decl decl[3];
    struct signal_sources all = {source, 3, "EUR"};
    const struct signals_opts none = {.user = NULL};
    uw_error err = {""};

    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(source[i].decl.name, sizeof source[i].decl.name, "%s", of[i][0]);
        (void)snprintf(source[i].file, sizeof source[i].file, "%s", path_of(of[i][1]));
        if (signal_source_check(&source[i], "EUR", &err) < 0)
            ok(false, "%s: %s", of[i][0], err.text);
        decl[i] = source[i].decl;
    }
    ok(signals_new(&none, &store) == 0 &&
           signals_declare(store, decl, 3, "EUR", &err) == 0 &&
           signal_files_new(loop, store, &all, NULL, NULL, &files, &err) == 0 &&
           forecasts_new(loop, store, dir, &forecasts, &err) == 0,
       "begun %s", err.text);
    signal_files_begin(files);
    forecasts_use(forecasts, files);
}

static void end(void)
{
    forecasts_free(take(forecasts));
    signal_files_free(take(files));
    signals_free(take(store));
}

static int on_end(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    loop_stop(loop, 0);
    return 0;
}

/* Begins where nothing has begun, and runs for so long; returns how many lines of the log
 * have both texts. */
static int run(int64_t s, const char *event, const char *text)
{
    struct loop_timer *timer = NULL;
    char line[1024];
    int found = 0;

    (void)fseek(err_log, 0, SEEK_END);
    long at = ftell(err_log);
    int old = dup(2);
    (void)dup2(fileno(err_log), 2);
    (void)loop_timer_new(loop, loop_now_ns(loop) + (uint64_t)s * NS_PER_S, 0, on_end,
                         NULL, &timer, NULL);
    if (!forecasts)
        begin();
    int r = loop_run(loop, NULL);
    loop_timer_free(timer);
    (void)dup2(old, 2);
    (void)close(old);
    if (r != 0)
        ok(false, "the loop ends with %d", r);
    (void)fseek(err_log, at, SEEK_SET);
    while (fgets(line, sizeof line, err_log))
        found += strstr(line, event) && strstr(line, text);
    return found;
}

static const struct signal_judged *judged(const char *signal, size_t i)
{
    struct signal_view v;

    signals_look(store, find(signal), now(), &v);
    return v.facts && i < v.facts->n_judged ? &v.facts->judged[i] : NULL;
}

static uint64_t values(const char *signal, size_t i)
{
    const struct signal_judged *j = judged(signal, i);

    return j ? j->score.n : 0;
}

/* ---- cases ---- */

static void errors(void)
{
    int worse = run(DAYS * 86400, "event=forecast name=carbon.forecast source=\"file ",
                    "ahead.csv\" state=worse horizons=\"");

    ok(worse >= 1 && worse <= JUDGE_HORIZONS, "the log says which one is worse: %d",
       worse);
    for (size_t i = 0; i < JUDGE_HORIZONS; i++) {
        const struct signal_judged *j = judged("carbon.forecast", i);
        int64_t hours = judge_horizon_s(i) / HOUR;
        ok(j && j->score.n > 60 && fabs(j->score.forecast - WRONG) < 1e-6 &&
               fabs(j->score.last - (hours % 2 ? 0 : SWING)) < 1e-6 && j->worse,
           "carbon, %d h ahead: wrong by %d, persistence (of the hour before) by %d: "
           "worse",
           (int)hours, WRONG, hours % 2 ? 0 : SWING);
        j = judged("price.forecast", i);
        ok(j && j->score.n > 60 && fabs(j->score.forecast - NEAR) < 1e-6 &&
               fabs(j->score.last - STEP * (double)hours) < 1e-6 && !j->worse,
           "price, %d h ahead: wrong by %g, persistence by %g: better", (int)hours, NEAR,
           STEP * (double)hours);
    }
    const struct signal_judged *j = judged("price.forecast", 0);
    ok(j->score.missed == 0, "nothing was missed");
    ok(fabs(j->score.yesterday - 24 * STEP) < 1e-6,
       "what the price was a day before is known, too");
}

/* Of 8 hours ahead of which a price is set by hand for 3: values of the first two judge
 * nothing, a forecast made in the third has no persistence, and what is made in the last
 * one waits.
 */
static void by_hand(void)
{
    const struct signal_put p = {.unit = "EUR/kWh", .source = "anna"};
    const struct signal_value v = {.type = POLICY_NUMBER, .number = 9};
    uint64_t before = values("price.forecast", 0);

    ok(signals_set(store, find("price"), &p, &v, 3 * HOUR * NS_PER_S, now(), NULL) == 0,
       "a price set by hand");
    (void)run(8 * HOUR, "", "");
    const struct signal_judged *j = judged("price.forecast", 0);
    ok(j->score.n == before + 4 && fabs(j->score.forecast - NEAR) < 1e-6 &&
           fabs(j->score.last - STEP) < STEP / 10,
       "its hours judge nothing: %d values more in 8 h", (int)(j->score.n - before));
}

static void restart(void)
{
    struct stat st;

    (void)run(HOUR - 30, "", "");
    uint64_t before = values("price.forecast", 0) + 1;
    write_hours("ahead.csv", hour_of(), hour_of() + 47, carbon_at, WRONG);
    (void)run(60, "", "");
    ok(values("price.forecast", 0) == before,
       "a value within the minute after the file was written");
    end();
    ok(stat(path_of("forecasts.json"), &st) == 0 && (st.st_mode & 0777) == 0600,
       "kept, for its owner alone");
    is_int(run(1, "forecasts-file", ""), 0, "read without a word");
    (void)run(20, "", "");
    const struct signal_judged *j = judged("carbon.forecast", 0);
    ok(j && fabs(j->score.forecast - WRONG) < 1e-6 && j->worse,
       "a restart keeps errors and verdict");
    ok(values("price.forecast", 0) == before, "… of each value");
    is_int(run(3 * HOUR, "event=forecast", ""), 0, "the verdict is not told again");
    ok(values("price.forecast", 0) == before + 3, "three hours later: %d values more",
       (int)(values("price.forecast", 0) - before));
}

static void broken(void)
{
    const char *path = path_of("forecasts.json");
    struct stat st;

    end();
    ok(stat(path, &st) == 0 && truncate(path, st.st_size - 30) == 0, "a torn file");
    is_int(run(1, "event=forecasts-file state=ignored", "damaged"), 1,
           "is ignored, in one line");
    (void)run(20, "", "");
    ok(!judged("carbon.forecast", 0), "judging begins anew");
    (void)run(3 * HOUR, "", "");
    uint64_t n = values("carbon.forecast", 0);
    ok(n > 0, "and goes on: %d values", (int)n);
    end();
    is_int(run(1, "forecasts-file", ""), 0, "the new file is sound");
    (void)run(20, "", "");
    ok(values("carbon.forecast", 0) == n, "and has them");
}

static void not_written(void)
{
    end();
    (void)unlink(path_of("forecasts.json"));
    ok(mkdir(path_of("forecasts.json"), 0700) == 0, "a folder in the file's place");
    is_int(run(1, "event=forecasts-file state=ignored", ""), 1, "one line");
    is_int(run(3 * HOUR, "event=forecasts-file state=not-written", ""), 1,
           "and one that it cannot be written");
    ok(values("carbon.forecast", 0) > 0, "forecasts are judged all the same");
    end();
    (void)rmdir(path_of("forecasts.json"));
}

int main(void)
{
    struct loop_timer *timer[2] = {NULL};
    uw_error err = {""};

    err_log = tmpfile();
    if (!err_log || !mkdtemp(dir) || loop_new_virtual(NS_PER_S, T0, &loop, &err) < 0)
        return skip_all("no loop or file");
    if (loop_timer_new(loop, loop_now_ns(loop), HOUR * NS_PER_S, on_hour, NULL, &timer[0],
                       &err) < 0 ||
        loop_timer_new(loop, loop_now_ns(loop) + LATE_S * NS_PER_S, HOUR * NS_PER_S,
                       on_late, NULL, &timer[1], &err) < 0)
        return skip_all("no timer");
    begin();
    errors();
    by_hand();
    restart();
    broken();
    not_written();
    loop_timer_free(timer[0]);
    loop_timer_free(timer[1]);
    loop_free(loop);
    for (size_t i = 0; i < 3; i++)
        (void)unlink(
            path_of(((const char *[]){"carbon.csv", "ahead.csv", "prices.csv"})[i]));
    (void)rmdir(dir);
    (void)fclose(err_log);
    return done();
}
