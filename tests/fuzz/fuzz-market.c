/* The file of market-based figures: what is read is within its bounds, and what it covers
 * is no more than was used.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "core/carbon/market-read.h"
#include "fuzz.h"

DEFINE_AUTO(struct market *, market_free);

enum { MOST = 200 }; /* contracts that are applied */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(mem_free) char *text = calloc(1, size + 1);
    auto_(mem_free) struct market_contract *c = NULL;
    auto_(market_free) struct market *m = NULL;
    const int64_t day_ms = 86400000, uj = 3600000000000;
    size_t n = 0;
    uw_error err = {""};

    if (!text)
        return 0;
    memcpy(text, data, size);
    if (market_read("fuzz", text, size, false, &c, &n, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    must(n <= MARKET_CONTRACTS);
    for (size_t i = 0; i < n; i++) {
        must(c[i].from_ms < c[i].to_ms && c[i].origin[0]);
        must(c[i].amount >= 0 && c[i].g_kwh >= 0);
    }
    if (market_new(c, n < MOST ? n : MOST, &m) < 0)
        return 0;
    for (size_t i = 0; i < n && i < MOST; i++)
        market_use(m, c[i].from_ms, c[i].from_ms + day_ms, uj);
    market_settle(m);
    for (size_t i = 0; i < n && i < MOST; i++) {
        struct market_part p = market_part(m, c[i].from_ms, c[i].from_ms + day_ms, uj);
        must(p.covered_uj >= 0 && p.covered_uj <= (double)uj * (1 + 1e-9) && p.mg >= 0);
    }
    return fuzz_say("accepted", "%zu contracts", n);
}
