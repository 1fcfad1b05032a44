/* What another instance has answered: read, taken, shown and cached. */
#include "signal/followed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "source-play.h"

#define SITE "https://site:9446"
#define POINT(h, v)                                                          \
    "{\"begin_utc\":\"2026-11-26T" h ":00:00Z\",\"end_utc\":\"2026-11-26T" h \
    ":30:00Z\",\"value\":" v ",\"estimated\":true}"
#define SIGNAL(name, rest)                                                              \
    "{\"name\":\"" name "\",\"unit\":\"g/kWh\",\"source\":\"gb\",\"type\":\"uk\"," rest \
    "}"

/* clang-format off */
static const char good[] =
    "{\"signals\":["
    SIGNAL("carbon", "\"licence\":\"CC BY 4.0\",\"error\":null,\"issued_utc\":\"2026-11-26T11:00:00Z\",\"series\":[" POINT("12", "250.5") "," POINT("13", "null") "]") ","
    SIGNAL("price", "\"error\":\"gb: no data\",\"series\":[]") "],\"error\":null}";

static const struct { const char *name, *text; } wrong[] = {
    {"nothing", ""},
    {"half of it", "{\"signals\":["},
    {"no signals", "{}"},
    {"signals that are no list", "{\"signals\":{}}"},
    {"no name", "{\"signals\":[{\"source\":\"a\"}]}"},
    {"no source", "{\"signals\":[{\"name\":\"carbon\"}]}"},
    {"a name that is none", "{\"signals\":[" SIGNAL("a b", "\"series\":[]") "]}"},
    {"a node's own name", "{\"signals\":[" SIGNAL("job.id", "\"series\":[]") "]}"},
    {"a name twice", "{\"signals\":[" SIGNAL("carbon", "\"series\":[]") "," SIGNAL("carbon", "\"series\":[]") "]}"},
    {"a source with a line's end", "{\"signals\":[{\"name\":\"carbon\",\"source\":\"a\\nb\"}]}"},
    {"a licence that is a number", "{\"signals\":[" SIGNAL("carbon", "\"licence\":1,\"series\":[]") "]}"},
    {"values that go back", "{\"signals\":[" SIGNAL("carbon", "\"series\":[" POINT("13", "1") "," POINT("12", "1") "]") "]}"},
    {"a value that is a text", "{\"signals\":[" SIGNAL("carbon", "\"series\":[" POINT("13", "\"1\"") "]") "]}"},
};
/* clang-format on */

static int read_text(const char *text, struct followed *ret, uw_error *err)
{
    return followed_read("site", text, strlen(text), ret, err);
}

static const struct followed_signal *find(const struct followed *f, const char *signal)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->signal[i].series.signal, signal) == 0)
            return &f->signal[i];
    return NULL;
}

static void check_wrong(void)
{
    for (size_t i = 0; i < n_elements(wrong); i++) {
        struct followed f = {.n = 7};
        uw_error err = {""};
        int r = read_text(wrong[i].text, &f, &err);
        ok(r == -EINVAL && f.n == 7 && !strchr(err.text, '\n'), "refused: %s",
           wrong[i].name);
        is_str(err.text, "site: no values of signals, or damaged", "… and why");
    }
}

static void check_good(void)
{
    auto_(followed_fini) struct followed f = {.n = 0};
    uw_error err = {""};

    ok(read_text(good, &f, &err) == 0 && f.n == 2, "two signals: %s", err.text);
    const struct followed_signal *s = find(&f, "carbon");
    ok(s && strcmp(s->source, "gb") == 0 && strcmp(s->type, "uk") == 0 &&
           strcmp(s->licence, "CC BY 4.0") == 0 && !s->error[0],
       "a source and its licence");
    ok(s && s->series.n == 2 && s->series.point[0].v > 250 &&
           s->series.point[0].estimated && isnan(s->series.point[1].v) &&
           s->series.point[0].from_utc_s == utc_of("2026-11-26T12:00:00Z") &&
           s->series.issued_utc_s == utc_of("2026-11-26T11:00:00Z"),
       "its values, with their times");
    s = find(&f, "price");
    ok(s && s->series.n == 0 && strcmp(s->error, "gb: no data") == 0 && !s->licence[0],
       "a signal without a value says why");
    ok(!find(&f, "rack.power"), "no other one");
}

/* A site that restarts knows less than it did. */
static void check_take(void)
{
    auto_(followed_fini) struct followed held = {.n = 0}, next = {.n = 0};
    static const char none[] =
        "{\"signals\":[" SIGNAL("carbon", "\"error\":\"x\",\"series\":[]") "]}";
    static const char other[] =
        "{\"signals\":[{\"name\":\"carbon\",\"source\":\"de\",\"series\":[]}]}";

    static const char later[] =
        "{\"signals\":[" SIGNAL("carbon", "\"issued_utc\":null,\"series\":[" POINT(
                                              "13", "7") "," POINT("14", "8") "]") "]}";

    ok(read_text(good, &held, NULL) == 0 && read_text(later, &next, NULL) == 0, "read");
    followed_take(&held, &next);
    const struct source_series *s = &held.signal[0].series;
    ok(held.n == 1 && s->n == 3 && s->point[0].v > 250 && s->point[1].v > 6 &&
           s->point[1].v < 8 && s->point[2].v > 7,
       "values from before the answer's first one stay");
    followed_fini(&held);
    ok(read_text(good, &held, NULL) == 0 && read_text(none, &next, NULL) == 0, "read");
    followed_take(&held, &next);
    ok(held.n == 1 && next.n == 0 && held.signal[0].series.n == 2 &&
           strcmp(held.signal[0].error, "x") == 0,
       "values stay where none have come, the error is new");
    ok(read_text(other, &next, NULL) == 0, "read");
    followed_take(&held, &next);
    ok(held.n == 1 && held.signal[0].series.n == 0, "those of another source do not");
}

static void check_cache(void)
{
    auto_(followed_fini) struct followed f = {.n = 0}, back = {.n = 0};
    auto_(mem_free) char *text = NULL;
    uw_error err = {""};

    ok(read_text(good, &f, NULL) == 0, "read");
    f.asked_utc_s = utc_of("2026-11-26T12:10:00Z");
    ok(followed_write(SITE, &f, &text, &err) == 0 && text, "written: %s", err.text);
    ok(followed_load(SITE, "f.json", text, strlen(text), &back, &err) == 0 &&
           back.n == 2 && back.asked_utc_s == f.asked_utc_s &&
           back.signal[0].series.n == 2 && back.signal[0].series.point[0].estimated &&
           strcmp(back.signal[0].licence, "CC BY 4.0") == 0,
       "and read again: %s", err.text);
    followed_fini(&back);
    ok(followed_load("https://other", "f.json", text, strlen(text), &back, &err) ==
           -EINVAL,
       "another site's are not taken");
    is_str(err.text, "f.json: of another site", "… and why");
    size_t taken = 0;
    for (size_t n = 0; n + 1 < strlen(text); n++)
        taken += followed_load(SITE, "f.json", text, n, &back, &err) == 0;
    is_int(taken, 0, "none of its beginnings is taken");
}

int main(void)
{
    check_wrong();
    check_good();
    check_take();
    check_cache();
    return done();
}
