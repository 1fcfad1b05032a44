/* How often somebody may ask: token buckets, and a bounded table of them.  Pure: time is
 * an argument.
 */
#ifndef BASE_RATE_H
#define BASE_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rate {
    double per_s, burst;
};
/* {0, 0} has never been used: it is full. */
struct bucket {
    double used; /* of burst */
    uint64_t at_ns;
};
/* Takes one.  false: there is none; *ret_wait_ns (may be NULL): until there is. */
bool bucket_take(struct bucket *b, const struct rate *rate, uint64_t now_ns,
                 uint64_t *ret_wait_ns);

/* A bucket a key.  Where the table is full, whoever's bucket is full again goes for
 * another; where none is, newcomers share one bucket: a crowd cannot make itself
 * forgotten.
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
