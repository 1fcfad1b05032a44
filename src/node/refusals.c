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
    AGAIN_S = 60,    /* before a cause is recorded again */
    USER_CAUSES = 8, /* causes of one user recorded in that time */
};

struct refusal {
    enum refusal_kind kind;
    uid_t uid;
    uint64_t cause, told_ns, again;
};

struct refusals {
    struct loop *loop;
    struct ledger_writer *writer;
    struct refusal refusal[REFUSALS_MAX];
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

/* Texts that differ only in numbers are one cause: a user who tries every board is
 * recorded once.
 */
static uint64_t cause_of(const char *text)
{
    uint64_t h = 1469598103934665603ull; /* FNV-1a */

    for (const char *p = text; *p; p++)
        if (*p < '0' || *p > '9')
            h = (h ^ (unsigned char)*p) * 1099511628211ull;
    return h;
}

static bool told_lately(const struct refusal *f, uint64_t now)
{
    return f->told_ns && s_between(f->told_ns, now) < AGAIN_S;
}

/* The entry that counts this cause; NULL: too many were recorded lately. */
static struct refusal *refusal_of(struct refusals *rs, enum refusal_kind kind, uid_t uid,
                                  uint64_t cause, uint64_t now)
{
    struct refusal *oldest = &rs->refusal[0];
    unsigned of_uid = 0;

    for (size_t i = 0; i < REFUSALS_MAX; i++) {
        struct refusal *f = &rs->refusal[i];
        if (f->told_ns && f->kind == kind && f->uid == uid && f->cause == cause)
            return f;
        of_uid += f->kind == kind && f->uid == uid && told_lately(f, now);
        if (f->told_ns < oldest->told_ns)
            oldest = f;
    }
    if (of_uid >= USER_CAUSES || told_lately(oldest, now))
        return NULL;
    *oldest = (struct refusal){.kind = kind, .uid = uid, .cause = cause};
    return oldest;
}

void refusals_say(struct refusals *rs, enum refusal_kind kind, size_t board, uid_t uid,
                  const char *who, const uw_error *why)
{
    bool refused = kind == REFUSAL_REFUSED;
    uint64_t now = loop_now_ns(rs->loop);
    struct refusal *f = refusal_of(rs, kind, uid, cause_of(why->text) + board, now);
    char text[320];

    if (!f || told_lately(f, now)) {
        if (f)
            f->again++;
        return;
    }
    (void)snprintf(text, sizeof text, "%s: %s", who ? who : "somebody", why->text);
    log_event(LOG_LEVEL_WARNING, refused ? LOG_EVENT_REFUSED : LOG_EVENT_WITHDRAWN,
              "uid=%u who=%s reason=%s again=%" PRIu64, (unsigned)uid,
              log_quote(who ? who : "").text, log_quote(why->text).text, f->again);
    ledger_writer_event(rs->writer,
                        refused ? LEDGER_EVENT_REFUSED : LEDGER_EVENT_WITHDRAWN, board,
                        uid, text);
    f->told_ns = now ? now : 1;
    f->again = 0;
}
