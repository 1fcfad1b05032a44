#include "tuner/rest.h"

#include <math.h>

#include "base/units.h"
#include "tuner/activity.h"

#define FIRST_S 300.0
#define MOST_S 3600.0

double rest_begin(struct rest *r, uint64_t now_ns)
{
    r->length_s = r->length_s > 0 ? fmin(2 * r->length_s, MOST_S) : FIRST_S;
    r->until_ns = now_ns + ns_of_s(r->length_s);
    return r->length_s;
}

bool rest_lasts(const struct rest *r, uint64_t now_ns)
{
    return now_ns < r->until_ns;
}

void rest_forget(struct rest *r)
{
    r->length_s = 0;
}

const struct tuner_activity activity_rest = {.name = "rest"};
