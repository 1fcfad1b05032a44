#include "cli/policy-limits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/auto.h"
#include "base/units.h"
#include "cli/daemon.h"
#include "cli/take.h"
#include "policy/limits.h"

#define WAIT_NS (2 * NS_PER_S)

static bool ask_boards(const struct cli_env *env, struct json **ret)
{
    auto_(httpc_free) struct httpc *daemon = NULL;
    uw_error err = {""};

    return daemon_open_within(env, env->boards, WAIT_NS, &daemon, &err) == 0 &&
           daemon_get(daemon, "/v1/gpus", NULL, ret, &err) >= 0;
}

static void print_temperature(const struct json_value *gpus, double limit_c)
{
    for (size_t i = 0; i < json_count(gpus); i++) {
        const struct json_value *b = json_at(gpus, i);
        double temp_c = take_number(b, "temperature_c"), margin_k = limit_c - temp_c;
        printf("  GPU %" PRIu64 ": ", take_u64(b, "gpu"));
        if (!isfinite(temp_c))
            printf("the temperature is unknown: no cap\n");
        else if (margin_k > 0)
            printf("%g °C, %g K below it: no cap\n", temp_c, margin_k);
        else
            printf("%g °C: its cap would fall\n", temp_c);
    }
}

static void print_rise(const struct json_value *gpus)
{
    double first_w = 0, held_w = 0;
    size_t n = 0;

    for (size_t i = 0; i < json_count(gpus); i++) {
        const struct json_value *b = json_at(gpus, i);
        double min_w = take_mw(json_get(b, "limits"), "min_mw");
        double power_w = take_number(b, "power_w");
        const char *free = json_count(json_get(b, "jobs")) > 0
                               ? "it has a job: held low while that draws little"
                           : !isfinite(power_w) ? "its power is unknown: no cap"
                                                : NULL;
        if (!isfinite(min_w))
            continue;
        printf("  GPU %" PRIu64 ": ", take_u64(b, "gpu"));
        if (free) {
            printf("%s\n", free);
            continue;
        }
        printf("%g W, hard, by limit rise: no job\n", min_w);
        n++;
        held_w += min_w;
        first_w += fmax(0, min_w - power_w);
    }
    printf("  boards without a job, to be held at their minimum: %zu, %.0f W together; "
           "the step up when they begin: %.0f W\n",
           n, held_w, first_w);
}

void policy_limits_print(const struct cli_env *env, const struct policy_limits *limits)
{
    auto_(json_free) struct json *doc = NULL;
    char asks[LIMIT_TEXT];

    if (limits->temperature_c <= 0 && limits->rise_w_s <= 0)
        return;
    bool known = ask_boards(env, &doc);
    const struct json_value *gpus = known ? json_get(json_root(doc), "gpus") : NULL;
    for (enum limit_kind kind = 0; kind < LIMIT_KINDS; kind++) {
        if (!limit_asks(limits, kind, asks)[0])
            continue;
        printf("limit %s: %s\n", limit_word(kind), asks);
        if (known && kind == LIMIT_TEMPERATURE)
            print_temperature(gpus, limits->temperature_c);
        else if (known)
            print_rise(gpus);
    }
    if (!known)
        printf("  no daemon answers: what the limits would hold now is unknown\n");
}
