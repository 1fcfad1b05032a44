/* Values over rounds and restarts: what stays, what counts now, caches that are none. */
#include "signal/held.h"

#include <stdlib.h>

#include "base/units.h"
#include "source-play.h"

static struct signals_source own = {.c = {.name = "grid", .provides = 3}};

static void put(struct source_values *v, const char *signal, int64_t from_s, size_t n,
                double first)
{
    struct source_series *s = &v->series[v->n++];

    *s = (struct source_series){.unit = "g/kWh", .n = n, .cap = n};
    (void)snprintf(s->signal, sizeof s->signal, "%s", signal);
    s->point = calloc(n, sizeof *s->point);
    for (size_t i = 0; s->point && i < n; i++) {
        int64_t at = from_s + 1800 * (int64_t)i;
        s->point[i] = (struct source_point){
            .from_utc_s = at, .to_utc_s = at + 1800, .v = first + (double)i};
    }
}

static double now_of(const struct source_values *v, const char *signal, int64_t utc_s)
{
    const struct source_point *p = held_now(&own, held_find(v, signal), utc_s);

    return p ? p->v : (double)NAN;
}

static void rounds(void)
{
    auto_(source_values_fini) struct source_values held = {.n = 0}, next = {.n = 0};
    const int64_t t = utc_of("2026-11-26T12:00:00Z");

    put(&held, "carbon", t, 4, 100);
    put(&held, "carbon.forecast", t, 4, 500);
    put(&next, "carbon", t + 3600, 2, 200);
    put(&next, "carbon.forecast", t + 3600, 2, 600);
    ok(held_add(&held, &next) == 0 && next.n == 0, "a round is added");
    is_int(held_find(&held, "carbon")->n, 4,
           "what lies before the first new value stays");
    is_near(now_of(&held, "carbon", t), 100, 0, "… of before");
    is_near(now_of(&held, "carbon", t + 3600), 200, 0, "… and the new one");
    is_int(held_find(&held, "carbon.forecast")->n, 2, "a forecast is another one");
    is_near(now_of(&held, "carbon.forecast", t), 600, 0, "… which lies before us");
    ok(isnan(now_of(&held, "carbon", t - 1)), "before the first value");
    is_near(now_of(&held, "carbon", t + 7199), 201, 0, "to the end of the last one");
    ok(isnan(now_of(&held, "carbon", t + 7200)), "after it the signal is unknown");
    own.age_ns = 600 * NS_PER_S;
    ok(now_of(&held, "carbon", t + 599) >= 100 && isnan(now_of(&held, "carbon", t + 600)),
       "no value is older than its source's age");
    own.age_ns = 0;
    for (int64_t i = 1; i < 8; i++) {
        put(&next, "carbon", t + i * 1800 * 2000, 2000, 0);
        (void)held_add(&held, &next);
    }
    is_int(held_find(&held, "carbon")->n, SIGNAL_POINTS, "the oldest go");
}

static void caches(void)
{
    struct held h = {.asked_utc_s = 1000, .rest_utc_s = 2000}, back = {.asked_utc_s = 0};
    struct source_config other = own.c;
    const int64_t t = utc_of("2026-11-26T12:00:00Z");
    auto_(mem_free) char *text = NULL;
    uw_error err = {""};

    put(&h.values, "carbon", t, 3, 0.1);
    h.values.series[0].point[1].v = NAN;
    h.values.series[0].point[2].estimated = true;
    ok(held_write(&own.c, &h, &text, &err) == 0 &&
           held_read(&own.c, "grid.json", text, strlen(text), &back, &err) == 0,
       "written and read");
    const struct source_series *s = held_find(&back.values, "carbon");
    ok(s && s->n == 3 && s->point[0].v >= 0.1 && s->point[0].v <= 0.1 &&
           s->point[0].from_utc_s == t && isnan(s->point[1].v) && s->point[2].estimated &&
           !s->point[0].estimated && strcmp(s->unit, "g/kWh") == 0,
       "the values, with their times");
    ok(back.asked_utc_s == 1000 && back.rest_utc_s == 2000 && back.known_utc_s == 0,
       "when it was asked");
    held_fini(&back);
    size_t taken = 0;
    for (size_t n = 0; n + 1 < strlen(text); n++)
        taken += held_read(&own.c, "grid.json", text, n, &back, &err) == 0;
    is_int(taken, 0, "none of its beginnings is taken");
    is_str(err.text, "grid.json: no values of signals, or damaged", "… and why");
    (void)snprintf(other.zone, sizeof other.zone, "FR");
    ok(held_read(&other, "grid.json", text, strlen(text), &back, &err) == -EINVAL &&
           strstr(err.text, "another configuration of grid"),
       "another zone's values are none");
    held_fini(&h);
}

/* What is served comes to the same with who asks. */
static void served(void)
{
    auto_(source_values_fini) struct source_values v = {.n = 0};
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(held_signal_fini) struct held_signal got = {.n = 0};
    auto_(mem_free) char *text = NULL;
    const struct held_origin from = held_origin(&own);
    const int64_t t = utc_of("2026-11-26T12:00:00Z");
    uw_error err = {""};

    put(&v, "carbon", t, 3, 100);
    v.series[0].point[1].estimated = true;
    v.series[0].point[2].from_utc_s += 600;
    v.series[0].point[2].to_utc_s = t + 4500;
    json_out_object(o, NULL);
    json_out_array(o, "signals");
    held_show(o, &from, "carbon", &v.series[0], t + 2000, "");
    held_show(o, &from, "carbon.forecast", NULL, t + 2000, "grid: no data");
    json_out_end(o);
    json_out_end(o);
    ok(json_out_string(o, &text, &err) == 0 && strstr(text, "\"state\"") &&
           strstr(text, "2026-11-26T12:30:00Z"),
       "served");
    ok(held_take("sock", text, strlen(text), "carbon", t + 2000, &got, &err) == 0,
       "taken: %s", err.text);
    ok(strcmp(got.source, "grid") == 0 && strcmp(got.unit, "g/kWh") == 0 && !got.error[0],
       "its source");
    ok(got.time_utc_s == t + 1800 && got.age_s == 1800, "the time of the value");
    ok(got.n == 5 && isnan(got.point[2].v) && got.point[2].utc_s == t + 3600 &&
           isnan(got.point[4].v) && got.point[4].utc_s == t + 4500,
       "a gap and an early end are unknown");
    ok(!got.estimated[0] && got.estimated[1] && !got.estimated[2] && !got.estimated[3],
       "what is estimated");
    held_signal_fini(&got);
    ok(held_take("sock", text, strlen(text), "carbon.forecast", t, &got, &err) == 0 &&
           got.n == 0 && strcmp(got.error, "grid: no data") == 0,
       "a source that fails says so");
    ok(held_take("sock", text, strlen(text), "price", t, &got, &err) == -ENOENT &&
           strstr(err.text, "no source there gives price"),
       "a signal that is not there");
    ok(held_take("sock", "{\"gpus\":[]}", 11, "price", t, &got, &err) == -EINVAL,
       "another server's answer");
}

/* A full series with gaps has more points than a store takes. */
static void gaps(void)
{
    auto_(source_values_fini) struct source_values v = {.n = 0};
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(held_signal_fini) struct held_signal got = {.n = 0};
    auto_(mem_free) char *text = NULL;
    const struct held_origin from = held_origin(&own);
    const int64_t t = utc_of("2026-11-26T12:00:00Z");
    uw_error err = {""};

    put(&v, "carbon", t, SIGNAL_POINTS, 0);
    for (size_t i = 0; i < SIGNAL_POINTS; i += 2)
        v.series[0].point[i].to_utc_s -= 60;
    json_out_object(o, NULL);
    json_out_array(o, "signals");
    held_show(o, &from, "carbon", &v.series[0], t, "");
    json_out_end(o);
    json_out_end(o);
    ok(json_out_string(o, &text, &err) == 0 &&
           held_take("sock", text, strlen(text), "carbon", t, &got, &err) == 0 &&
           got.n == SIGNAL_POINTS,
       "a full series with gaps is taken: %s", err.text);
    const struct source_point *last = &v.series[0].point[SIGNAL_POINTS - 1];
    ok(got.n > 0 && got.point[got.n - 1].utc_s == last->from_utc_s &&
           got.point[got.n - 1].v >= last->v,
       "the oldest go");
}

int main(void)
{
    own.c.kind = source_kind_find("uk");
    rounds();
    caches();
    served();
    gaps();
    return done();
}
