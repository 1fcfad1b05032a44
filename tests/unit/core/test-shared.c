/* Boards that several jobs have at once, for a day after the last look that showed it. */
#include "core/job/shared.h"

#include "tap.h"

#define S UINT64_C(1000000000)

int main(void)
{
    struct shared s = {{0}};

    is_int((long)shared_boards(&s, 100 * S), 0, "none at first");
    shared_seen(&s, 1ull << 63 | 5, 100 * S);
    ok(shared_boards(&s, 100 * S) == (1ull << 63 | 5), "boards 0, 2 and 63");
    shared_seen(&s, 4, 200 * S);
    ok(shared_boards(&s, 100 * S + SHARED_NS - 1) == (1ull << 63 | 5), "for a day");
    is_int((long)shared_boards(&s, 100 * S + SHARED_NS), 4,
           "… after the last look that showed it");
    is_int((long)shared_boards(&s, 200 * S + SHARED_NS), 0, "not for longer");
    return done();
}
