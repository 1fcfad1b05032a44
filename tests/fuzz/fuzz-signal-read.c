/* A source's file of any content: a value that can be shown, or a series in the order of
 * time.  The first byte says which source.
 */
#include <math.h>
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "signal/read.h"

enum { NOW_S = 1764081000 }; /* 2025-11-25T14:30Z */

static const struct signal_format sources[] = {
    {.name = "/f.json", .path = "", .column = ""},
    {.name = "/f.json", .path = "data.0.kw", .column = ""},
    {.name = "/f.json", .type = POLICY_TEXT, .path = "state", .column = ""},
    {.name = "/f.csv", .type = POLICY_TRUTH, .csv = true, .path = "", .column = ""},
    {.name = "/f.csv", .csv = true, .path = "", .column = ""},
    {.name = "/f.csv", .csv = true, .path = "", .column = "DE"},
    {.name = "/f.csv", .csv = true, .is_forecast = true, .path = "", .column = ""},
    {.name = "/f.csv", .type = POLICY_TEXT, .csv = true, .path = "", .column = ""},
};

static void check_value(const struct signal_format *s, const struct signal_value *v)
{
    must(v->type == s->type);
    must(v->type != POLICY_NUMBER || isfinite(v->number));
    must(v->type != POLICY_TEXT || (v->text[0] && utf8_is_plain(v->text)));
}

static void check_series(const struct signal_reading *r)
{
    must(r->n > 0 && r->n <= SIGNAL_POINTS);
    for (size_t i = 0; i < r->n; i++) {
        must(!isinf(r->point[i].v));
        must(r->point[i].utc_s <= NOW_S + SIGNAL_DAYS * 86400);
        must(i == 0 || r->point[i].utc_s > r->point[i - 1].utc_s);
        must(i == 0 || r->point[i].utc_s >= NOW_S - SIGNAL_DAYS * 86400);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct signal_reading r = {0};
    char shown[SIGNAL_SHOWN];
    uw_error err = {""};

    if (size < 1)
        return fuzz_say("skipped", "empty");
    const struct signal_format *s =
        &sources[data[0] % (sizeof sources / sizeof *sources)];
    if (signal_read(s, (const char *)data + 1, size - 1, NOW_S, &r, &err) < 0) {
        must(err.text[0] && !r.point);
        return fuzz_say("refused", "%s", err.text);
    }
    if (r.is_series)
        check_series(&r);
    else
        check_value(s, &r.value);
    (void)(r.is_series ? fuzz_say("series", "%zu values, the first %g", r.n, r.point[0].v)
                       : fuzz_say("value", "%s", signal_value_show(&r.value, "", shown)));
    signal_reading_fini(&r);
    return 0;
}
