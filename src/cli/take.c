#include "cli/take.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/moment.h"
#include "base/names.h"

double take_number(const struct json_value *v, const char *key)
{
    double got = (double)NAN;

    (void)json_get_double(v, key, &got, NULL);
    return got;
}

double take_mw(const struct json_value *v, const char *key)
{
    return take_number(v, key) * 1e-3;
}

double take_energy(const struct json_value *job)
{
    double j = take_number(job, "energy_j");

    return j > 0 || !isnan(take_number(job, "half_j")) ? j : (double)NAN;
}

uint64_t take_u64(const struct json_value *v, const char *key)
{
    uint64_t got = 0;

    (void)json_get_u64(v, key, &got, NULL);
    return got;
}

bool take_bool(const struct json_value *v, const char *key)
{
    bool got = false;

    (void)json_get_bool(v, key, &got, NULL);
    return got;
}

const char *take_text(const struct json_value *v, const char *key)
{
    const char *got = json_as_text(json_get(v, key));

    return got ? got : "";
}

void take_copy(const struct json_value *v, const char *key, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", take_text(v, key));
}

/* " at 14:02"; "": unknown. */
static void at_local(const char *utc, char ret[32])
{
    char seconds[] = "2026-11-21T14:03:22"; /* without the fraction and the zone */
    struct moment m;
    struct tm then, now;

    ret[0] = '\0';
    (void)snprintf(seconds, sizeof seconds, "%s", utc);
    if (!moment_read(seconds, &m))
        return;
    time_t then_s = (time_t)moment_utc_s(&m), now_s = time(NULL);
    if (!localtime_r(&then_s, &then) || !localtime_r(&now_s, &now))
        return;
    bool today = then.tm_year == now.tm_year && then.tm_yday == now.tm_yday;
    if (strftime(ret, 32, today ? " at %H:%M" : " at %Y-%m-%d %H:%M", &then) == 0)
        ret[0] = '\0';
}

void take_released(const struct json_value *v, const char *key, char *ret, size_t size)
{
    char at[32];

    at_local(take_text(v, "released_utc"), at);
    (void)snprintf(ret, size, "%s%s", take_text(v, key), at);
}

bool take_cap_free(const struct json_value *cap)
{
    return strcmp(take_text(cap, "state"), "free") == 0;
}

void take_cap_state(const struct json_value *cap, char *ret, size_t size)
{
    const char *state = take_text(cap, "state"), *text = take_text(cap, "text");

    const char *holder = take_text(cap, "holder");

    if (*take_text(cap, "released_utc"))
        take_released(cap, "text", ret, size);
    else if (*holder)
        (void)snprintf(ret, size, "%s", holder);
    else
        (void)snprintf(ret, size, "%s%s%s", state, *text ? ": " : "", text);
}

const struct json_value *take_entry(const struct json_value *array, const char *key,
                                    uint64_t number)
{
    for (size_t i = 0; i < json_count(array); i++)
        if (take_u64(json_at(array, i), key) == number)
            return json_at(array, i);
    return NULL;
}

void take_owner(const struct json_value *job, char *ret, size_t size)
{
    take_copy(job, "user", ret, size);
    if (!ret[0])
        (void)snprintf(ret, size, "uid %" PRIu64, take_u64(job, "uid"));
}

/* Appends "0-3" or "5", after a comma.  False: no room. */
static bool add_run(char *ret, size_t size, uint64_t from, uint64_t to)
{
    size_t at = strlen(ret);
    int n = snprintf(ret + at, size - at, from == to ? "%s%u" : "%s%u-%u", at ? "," : "",
                     (unsigned)from, (unsigned)to);

    if (n < 0 || (size_t)n >= size - at) {
        ret[at] = '\0';
        return false;
    }
    return true;
}

uint64_t take_board_bits(const struct json_value *array)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < json_count(array); i++) {
        uint64_t index = 0;
        if (json_as_u64(json_at(array, i), &index) && index < 64)
            bits |= 1ull << index;
    }
    return bits;
}

void take_boards(const struct json_value *array, char *ret, size_t size)
{
    take_runs(take_board_bits(array), ret, size);
}

void take_runs(uint64_t bits, char *ret, size_t size)
{
    ret[0] = '\0';
    for (unsigned i = 0; i < 64; i++) {
        unsigned from = i;
        if (!(bits >> i & 1))
            continue;
        while (i < 63 && bits >> (i + 1) & 1)
            i++;
        if (!add_run(ret, size, from, i))
            return;
    }
    if (!ret[0])
        (void)snprintf(ret, size, "-");
}

enum caps_met take_claim_status(const struct json_value *claim)
{
    const char *word = take_text(claim, "status");
    int got = names_number(NAMES_CLAIM_STATUS, *word ? word : take_text(claim, "state"));

    return got < 0 ? CAPS_NOT_MET : (enum caps_met)got;
}

bool take_budget(const struct json_value *node, char *ret, size_t size)
{
    const struct json_value *v = json_get(node, "budget");
    double budget_w = take_number(v, "budget_w"), counted_w = take_number(v, "counted_w");

    ret[0] = '\0';
    if (isnan(budget_w))
        return false;
    if (isnan(counted_w))
        (void)snprintf(ret, size, "%.0f W for the node; its limits are unknown",
                       budget_w);
    else
        (void)snprintf(ret, size, "%.0f W for the node; limits of %.0f W count", budget_w,
                       ceil(counted_w));
    return ceil(counted_w) > budget_w;
}
