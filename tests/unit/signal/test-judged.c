/* Judges of forecasts as JSON: what is written is read back, what is damaged is refused
 * whole; scores through an answer of the socket.
 */
#include "signal/judged.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "signal/facts.h"
#include "tap.h"

static struct judged made;

static void make(void)
{
    made = (struct judged){.signal = "carbon.forecast", .source = "gb", .unit = "g/kWh"};
    made.judge = (struct judge){
        .seen = 0xfedcba9876543210u,
        .issued_utc_s = 1780000000,
        .worse = 5,
        .n = 2,
        .open = {{1780000000, 0, 250.5, 240, NAN}, {1780000000, 4, -3, 240, 1e-3}}};
    made.judge.day[0] = (struct judge_day){
        .day = 20601, .sum = {{60, 50, 3, 600.25, 500, 400}, {1, 0, 0, 0.1, 0.2, 0}}};
}

static bool is_same(const struct judged *a, const struct judged *b)
{
    const struct judge *x = &a->judge, *y = &b->judge;
    bool same = strcmp(a->signal, b->signal) == 0 && strcmp(a->source, b->source) == 0 &&
                strcmp(a->unit, b->unit) == 0 && x->seen == y->seen &&
                x->issued_utc_s == y->issued_utc_s && x->worse == y->worse &&
                x->n == y->n && memcmp(x->day, y->day, sizeof x->day) == 0;

    for (size_t i = 0; same && i < x->n; i++)
        same =
            x->open[i].issued_utc_s == y->open[i].issued_utc_s &&
            x->open[i].horizon == y->open[i].horizon &&
            x->open[i].forecast == y->open[i].forecast &&
            x->open[i].last == y->open[i].last &&
            (isnan(x->open[i].yesterday) ? isnan(y->open[i].yesterday)
                                         : x->open[i].yesterday == y->open[i].yesterday);
    return same;
}

static int read_text(const char *text, size_t len, struct judged *list[JUDGED_MAX],
                     size_t *n)
{
    uw_error err = {""};

    return judged_read("x", text, len, list, n, &err);
}

static void round_trip(void)
{
    const struct judged *list[] = {&made, &made};
    struct judged *got[JUDGED_MAX] = {NULL};
    uw_error err = {""};
    char *text = NULL;
    size_t n = 0;

    make();
    ok(judged_write(list, 2, &text, &err) == 0, "written: %s", err.text);
    int r = read_text(text, strlen(text), got, &n);
    ok(r == 0 && n == 2 && is_same(got[0], &made) && is_same(got[1], &made),
       "read back as it was");
    while (n > 0)
        free(got[--n]);
    bool refused = true;
    for (size_t len = 0; len + 1 < strlen(text); len++) {
        size_t k = 7;
        refused = refused && read_text(text, len, got, &k) == -EINVAL && k == 7;
    }
    ok(refused, "cut anywhere: refused, nothing is taken");
    free(text);
}

static void damaged(void)
{
    static const struct {
        const char *name, *judge;
    } cases[] = {
        {"a horizon that is none", "\"open\":[[1,5,1,1,null]],\"days\":[]"},
        {"a case without a value", "\"open\":[[1,0,null,1,null]],\"days\":[]"},
        {"a negative time", "\"open\":[[-1,0,1,1,null]],\"days\":[]"},
        {"a negative error",
         "\"open\":[],\"days\":[{\"day\":1,\"sums\":[[1,0,0,-1,0,0],"
         "[0,0,0,0,0,0],[0,0,0,0,0,0],[0,0,0,0,0,0],[0,0,0,0,0,0]]}]"},
        {"too few horizons", "\"open\":[],\"days\":[{\"day\":1,\"sums\":[]}]"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct judged *got[JUDGED_MAX];
        char text[600];
        size_t n = 7;
        (void)snprintf(text, sizeof text,
                       "{\"judged\":1,\"forecasts\":[{\"signal\":\"c.forecast\","
                       "\"source\":\"a\",\"unit\":\"g/kWh\",\"seen\":\"1\",\"issued\":1,"
                       "\"worse\":0,%s}]}",
                       cases[i].judge);
        ok(read_text(text, strlen(text), got, &n) == -EINVAL && n == 7, "%s",
           cases[i].name);
    }
}

/* As it goes from underwatt-signals to the daemon, and from there to commands. */
static void facts(void)
{
    struct signal_facts f = {.asked = {"gb", 7, 2, 1780000000, 1780001800}}, got;
    struct json_out *o = json_out_new();
    struct json *doc = NULL;
    uw_error err = {""};
    char *text = NULL, worse[FACTS_WORSE];

    make();
    facts_judge(&f, &made.judge, INT64_C(20602) * 86400);
    ok(f.n_judged == 2 && f.judged[0].worse && !f.judged[1].worse &&
           f.judged[0].score.n == 60,
       "scores of the horizons that have any");
    json_out_object(o, NULL);
    facts_show(o, &f);
    json_out_end(o);
    ok(json_out_string(o, &text, &err) == 0 &&
           json_read("x", text, strlen(text), &doc, &err) == 0,
       "shown: %s", err.text);
    facts_read(json_root(doc), &got);
    ok(memcmp(&got.asked, &f.asked, sizeof f.asked) == 0, "the source's counters");
    ok(got.n_judged == 2 && got.judged[0].horizon_s == 3600 && got.judged[0].worse &&
           fabs(got.judged[0].score.forecast - 600.25 / 60) < 1e-5 &&
           fabs(got.judged[0].score.yesterday - 8) < 1e-9 &&
           isnan(got.judged[1].score.yesterday),
       "the errors");
    is_str(facts_worse(&got, worse), "1 h", "where it is worse");
    json_free(doc);
    doc = NULL;
    static const char bad[] =
        "{\"asked\":{\"by\":\"\\u202e\"},\"judged\":[{\"horizon_s\":1},"
        "7,{\"horizon_s\":3600,\"n\":1,\"missed\":0,\"mae\":-1,"
        "\"persistence_mae\":1,\"worse\":true}]}";
    ok(json_read("x", bad, strlen(bad), &doc, &err) == 0, "damaged: %s", err.text);
    facts_read(json_root(doc), &got);
    ok(got.n_judged == 0 && !got.asked.by[0], "… is left out");
    json_free(doc);
    json_out_free(o);
    free(text);
}

int main(void)
{
    round_trip();
    damaged();
    facts();
    return done();
}
