/* Rate limits: token buckets, and a bounded table of them.  Pure: time is an argument. */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate {
    double per_s, burst;
};
/* {0, 0} is a full bucket. */
struct bucket {
    double used; /* part of the burst */
    uint64_t at_ns;
};
/* Takes one token. false: no token; *ret_wait_ns (may be NULL) is the time until one. */
bool bucket_take(struct bucket *b, const struct rate *rate, uint64_t now_ns,
                 uint64_t *ret_wait_ns);

/* One bucket per key.  If the table is full, a bucket that is full again is reused for
 * another key; if none is, new keys share one bucket, so that many keys cannot evict a
 * used bucket.
 */
enum { RATES_MAX = 256 };
struct rates {
    struct rate rate;
    struct {
        uint64_t key;
        struct bucket bucket;
    } slot[RATES_MAX];
    size_t n;
    struct bucket others;
};
struct bucket *rates_bucket(struct rates *r, uint64_t key, uint64_t now_ns);

#endif
