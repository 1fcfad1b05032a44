#include "cli/take.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

void take_boards(const struct json_value *array, char *ret, size_t size)
{
    uint64_t bits = 0;

    for (size_t i = 0; i < json_count(array); i++) {
        uint64_t index = 0;
        if (json_as_u64(json_at(array, i), &index) && index < 64)
            bits |= 1ull << index;
    }
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
