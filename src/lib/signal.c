/* Outside signals, from the daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "lib/inside.h"

static const struct json_value *find_signal(const struct json_value *doc,
                                            const char *name)
{
    const struct json_value *all = json_get(doc, "signals");

    for (size_t i = 0; i < json_count(all); i++) {
        const char *its = json_as_text(json_get(json_at(all, i), "name"));
        if (its && strcmp(its, name) == 0)
            return json_at(all, i);
    }
    return NULL;
}

int uw_signal_value(uw_ctx *ctx, const char *name, double *ret, char *unit, size_t size,
                    uw_error *err)
{
    const struct door *door = NULL;
    auto_(json_free) struct json *doc = NULL;

    if (!ctx || !name || !ret || (size > 0 && !unit))
        return fail(err, -EINVAL, "ctx, name, ret or unit is NULL");
    int r = lib_remote(ctx, "a signal", &door, err);
    if (r == 0)
        r = door_ask(door, "GET", "/v1/signals", NULL, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *s = doc ? find_signal(json_root(doc), name) : NULL;
    if (!s)
        return fail(err, -ENOENT, "the daemon has no signal '%s'", name);
    const char *why = json_as_text(json_get(s, "why"));
    double value = 0;
    if (json_get_double(s, "value", &value, NULL) < 0)
        return fail(err, -ENODATA, "the signal '%s' is no number, or unknown: %s", name,
                    why && *why ? why : "no value");
    const char *its = json_as_text(json_get(s, "unit"));
    if (size > 0)
        (void)snprintf(unit, size, "%s", its ? its : "");
    *ret = value;
    return 0;
}
