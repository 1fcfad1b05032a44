#include "cli/preset.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "cli/take.h"
#include "core/policy/policy.h"
#include "io/json.h"

static int built_in(const char *name, struct policy_preset *ret, uw_error *err)
{
    uw_error why = {""};
    int r = policy_preset_find(policy_presets, POLICY_PRESETS_BUILT_IN, name, ret, &why);

    return r < 0 ? fail(err, r, "%s; a preset of a policy needs the daemon", why.text)
                 : 0;
}

static int of_daemon(struct ask *daemon, const char *name, struct policy_preset *ret,
                     uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct policy_preset preset[POLICY_PRESETS_MAX];
    size_t n = 0;

    int r = ask_wait(daemon, "GET", "/v1/policy", NULL, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *presets = json_get(json_root(doc), "presets");
    for (; n < json_count(presets) && n < n_elements(preset); n++) {
        const struct json_value *p = json_at(presets, n);
        preset[n] = (struct policy_preset){take_text(p, "name"), take_number(p, "share")};
    }
    if (n == 0)
        return fail(err, -ENOTSUP, "this daemon is older and has no presets");
    r = policy_preset_find(preset, n, name, ret, err);
    ret->name = name; /* the other name ends with doc */
    return r;
}

int preset_cap(struct ask *daemon, const char *name, struct cap_arg *ret, uw_error *err)
{
    struct policy_preset found = {NULL, 0};
    int r = daemon ? of_daemon(daemon, name, &found, err) : built_in(name, &found, err);

    if (r < 0)
        return r;
    *ret = (struct cap_arg){.percent = found.share * 100};
    return 0;
}

uint32_t preset_mw(struct ask *node, unsigned gpu, const struct cap_arg *share)
{
    auto_(json_free) struct json *doc = NULL;
    char path[48];

    (void)snprintf(path, sizeof path, "/v1/gpus/%u/explain", gpu);
    if (ask_wait(node, "GET", path, NULL, &doc, NULL) < 0 || !doc)
        return 0;
    const struct json_value *bounds = json_get(json_root(doc), "bounds");
    double low_w = fmax(take_mw(bounds, "min_mw"), take_mw(bounds, "lowest_mw"));
    double w = take_mw(bounds, "default_mw") * share->percent / 100;
    return isfinite(w) ? mw_of_w(fmax(w, low_w)) : 0;
}
