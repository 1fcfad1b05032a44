#include "cli/cap-target.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/units.h"

void cap_hold_tell(const struct cap_hold *h, size_t n, double spent_s)
{
    const char *what = n > 1 ? "limits" : "limit";
    double for_s = s_of_ns(h->for_ns);

    if (h->for_ns > 0)
        cli_say("cap: held for %g s; ^C restores the original %s sooner",
                fmin(for_s, fmax(ceil(for_s - spent_s), 0)), what);
    else
        cli_say("cap: held until this command ends; ^C restores the original %s", what);
}

const char *cap_target_text(const struct cap_target *t)
{
    static char text[32];

    if (t->clock_mhz)
        (void)snprintf(text, sizeof text, "%" PRIu32 " MHz", t->clock_mhz);
    else
        (void)snprintf(text, sizeof text, "%g W", w_of_mw(t->cap_mw));
    return text;
}

const char *cap_preset_text(const struct cap_hold *h)
{
    static char text[80];

    text[0] = '\0';
    if (h->preset)
        (void)snprintf(text, sizeof text, ", preset %.48s (%g %%)", h->preset,
                       h->percent);
    return text;
}

int cap_hold_code(const struct cap_hold *h)
{
    size_t good = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct cap_target *t = &h->target[i];
        good += t->reached && !t->lost && (t->restored || t->clock_mhz);
        if (!t->reached && !t->lost)
            cli_say("cap: GPU %u: ended before it reached %s", t->index,
                    cap_target_text(t));
    }
    if (good == 0 && h->n > 0)
        return EXIT_FAIL;
    return good == h->n ? EXIT_OK : EXIT_PARTIAL;
}
