#include "node/refusals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"

enum {
    REFUSALS_MAX = 64,
    AGAIN_S = 60,    /* least time between two records of a cause */
    USER_CAUSES = 8, /* causes of one user recorded within that time */
};

/* One cause for several boards: a user who tries every board for a claim is recorded
 * once.
 */
struct cause {
    enum refusal of;
    int r;
    uid_t uid;
    size_t board;
};

struct refused {
    struct cause cause;
    uint64_t told_ns, again;
};

struct refusals {
    struct loop *loop;
    struct ledger_writer *writer;
    struct refused refused[REFUSALS_MAX];
};

int refusals_new(struct loop *loop, struct ledger_writer *writer, struct refusals **ret)
{
    struct refusals *rs = calloc(1, sizeof *rs);

    if (!rs)
        return -ENOMEM;
    rs->loop = loop;
    rs->writer = writer;
    *ret = rs;
    return 0;
}

void refusals_free(struct refusals *rs)
{
    free(rs);
}

static bool told_lately(const struct refused *f, uint64_t now)
{
    return f->told_ns && s_between(f->told_ns, now) < AGAIN_S;
}

static bool is_same(const struct cause *a, const struct cause *b)
{
    return a->of == b->of && a->r == b->r && a->uid == b->uid && a->board == b->board;
}

/* The entry that counts this cause; NULL: too many were recorded recently. */
static struct refused *refused_of(struct refusals *rs, const struct cause *cause,
                                  uint64_t now)
{
    struct refused *oldest = &rs->refused[0];
    unsigned of_uid = 0;

    for (size_t i = 0; i < REFUSALS_MAX; i++) {
        struct refused *f = &rs->refused[i];
        if (f->told_ns && is_same(&f->cause, cause))
            return f;
        of_uid += f->cause.uid == cause->uid && told_lately(f, now) &&
                  (f->cause.of == REFUSAL_RIGHT) == (cause->of == REFUSAL_RIGHT);
        if (f->told_ns < oldest->told_ns)
            oldest = f;
    }
    if (of_uid >= USER_CAUSES || told_lately(oldest, now))
        return NULL;
    *oldest = (struct refused){.cause = *cause};
    return oldest;
}

void refusals_say(struct refusals *rs, enum refusal of, int r, size_t board, uid_t uid,
                  const char *who, const uw_error *why)
{
    const struct cause cause = {.of = of, .r = r, .uid = uid, .board = board};
    bool right = of == REFUSAL_RIGHT;
    uint64_t now = loop_now_ns(rs->loop);
    struct refused *f = refused_of(rs, &cause, now);
    char text[320];

    if (!f || told_lately(f, now)) {
        if (f)
            f->again++;
        return;
    }
    (void)snprintf(text, sizeof text, "%s: %s", who ? who : "somebody", why->text);
    log_event(LOG_LEVEL_WARNING, right ? LOG_EVENT_WITHDRAWN : LOG_EVENT_REFUSED,
              "uid=%u who=%s what=%s reason=%s again=%" PRIu64, (unsigned)uid,
              log_quote(who ? who : "").text, names_word(NAMES_REFUSAL, of),
              log_quote(why->text).text, f->again);
    ledger_writer_event(rs->writer, right ? LEDGER_EVENT_WITHDRAWN : LEDGER_EVENT_REFUSED,
                        board, uid, text);
    f->told_ns = now ? now : 1;
    f->again = 0;
}
