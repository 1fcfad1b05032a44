/* Token buckets. */
#include "base/rate.h"

#include "base/units.h"

/* Part of the burst that is still used at now_ns. */
static double used_at(const struct bucket *b, const struct rate *rate, uint64_t now_ns)
{
    double since = now_ns > b->at_ns ? s_of_ns(now_ns - b->at_ns) : 0;
    double used = b->used - since * rate->per_s;

    return used > 0 ? used : 0;
}

bool bucket_take(struct bucket *b, const struct rate *rate, uint64_t now_ns,
                 uint64_t *ret_wait_ns)
{
    double used = used_at(b, rate, now_ns);

    if (used + 1 > rate->burst) {
        if (ret_wait_ns)
            *ret_wait_ns = ns_of_s((used + 1 - rate->burst) / rate->per_s);
        return false;
    }
    b->used = used + 1;
    if (now_ns > b->at_ns)
        b->at_ns = now_ns;
    return true;
}

struct bucket *rates_bucket(struct rates *r, uint64_t key, uint64_t now_ns)
{
    size_t free_slot = r->n;

    for (size_t i = 0; i < r->n; i++) {
        if (r->slot[i].key == key)
            return &r->slot[i].bucket;
        if (free_slot == r->n && used_at(&r->slot[i].bucket, &r->rate, now_ns) <= 0)
            free_slot = i;
    }
    if (r->n < RATES_MAX)
        free_slot = r->n++;
    else if (free_slot == r->n)
        return &r->others;
    r->slot[free_slot].key = key;
    r->slot[free_slot].bucket = (struct bucket){0};
    return &r->slot[free_slot].bucket;
}
