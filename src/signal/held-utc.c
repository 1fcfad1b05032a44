#include "signal/held-utc.h"

#include <time.h>

#include "base/moment.h"

enum { UTC_TEXT = 40 };
/* 2200: in ns it fits an int64_t. */
#define LATEST_UTC_S INT64_C(7258118400)

void held_put_utc(struct json_out *o, const char *key, int64_t utc_s)
{
    time_t t = (time_t)utc_s;
    char text[UTC_TEXT];
    struct tm tm;

    if (utc_s != 0 && gmtime_r(&t, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        json_out_text(o, key, text);
    else
        json_out_null(o, key);
}

bool held_read_time(const struct json_value *v, int64_t *ret_utc_s)
{
    const char *text = json_as_text(v);
    struct moment m;

    if (!text || !moment_read(text, &m) || m.date_only)
        return false;
    *ret_utc_s = moment_utc_s(&m);
    return *ret_utc_s >= 0 && *ret_utc_s <= LATEST_UTC_S;
}

bool held_read_utc(const struct json_value *v, const char *key, int64_t *ret)
{
    const struct json_value *at = json_get(v, key);

    *ret = 0;
    return json_is_none(at) || held_read_time(at, ret);
}
