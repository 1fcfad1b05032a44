#include "actuator/lines.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/auto.h"
#include "base/units.h"

/* Starts a new minute. */
static void begin_anew(struct lines *l)
{
    char text[160];

    if (l->more > 0) {
        (void)snprintf(text, sizeof text, "%" PRIu64 " more %s were not logged", l->more,
                       l->what);
        l->say(text, l->user);
    }
    l->told = 0;
    l->more = 0;
    loop_timer_free(take(l->timer));
}

static int on_over(struct loop_timer *timer, uint64_t now, void *user)
{
    (void)timer;
    (void)now;
    begin_anew(user);
    return 0;
}

/* If the timer cannot be made, the next line reports the count. */
static void go_quiet(struct lines *l)
{
    char text[160];

    (void)snprintf(text, sizeof text, "more %s: counted, not logged for a minute",
                   l->what);
    l->say(text, l->user);
    (void)loop_timer_new(l->loop, l->until_ns, 0, on_over, l, &l->timer, NULL);
}

void lines_say(struct lines *l, const char *text)
{
    uint64_t now = loop_now_ns(l->loop);

    if (!l->say || !text[0])
        return;
    if (now >= l->until_ns) {
        begin_anew(l);
        l->until_ns = now + LINES_S * NS_PER_S;
    }
    if (l->told < l->max) {
        l->told++;
        l->say(text, l->user);
    } else if (l->more++ == 0) {
        go_quiet(l);
    }
}

void lines_fini(struct lines *l)
{
    if (l->say)
        begin_anew(l);
    loop_timer_free(take(l->timer));
}
