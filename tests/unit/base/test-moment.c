/* Points of the calendar as text. */
#include "base/auto.h"
#include "base/moment.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *text; bool good; int64_t utc_s; } cases[] = {
    {"1970-01-01", true, 0},
    {"2025-11-25T14:30:00Z", true, 1764081000},
    {"2025-11-25 14:30", true, 1764081000},
    {"2025-11-25T15:30:00+01:00", true, 1764081000},
    {"2025-11-25T15:30:00 0100", true, 1764081000},
    {"2025-11-25T09:30-0500", true, 1764081000},
    {"2025-11-25T09:30-05", false, 0},
    {"2025-11-25T14:30:00.250Z", true, 1764081000},
    {"2024-02-29", true, 1709164800},
    {"2025-02-29", false, 0},
    {"2025-13-01", false, 0},
    {"2025-11-25T24:00", false, 0},
    {"2025-11-25T14:30:00.5X", false, 0},
    {"2025-11-25T14", false, 0},
    {"2025-11-25T14:30+15:00", false, 0},
    {"2201-01-01", false, 0},
    {"2025-11-25 ", false, 0},
    {"420", false, 0},
    {"", false, 0},
};
/* clang-format on */

int main(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct moment m = {.year = -7};
        bool good = moment_read(cases[i].text, &m);
        ok(good == cases[i].good, "'%s' is %s", cases[i].text, good ? "one" : "none");
        if (good)
            is_int(moment_utc_s(&m), cases[i].utc_s, "… this one");
        else
            is_int(m.year, -7, "… and nothing is written");
    }
    return done();
}
