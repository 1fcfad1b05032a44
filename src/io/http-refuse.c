/* The log of refusals: repeated refusals become one line with a count. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "io/http-refuse.h"

static const uint64_t AGAIN_NS = 60 * NS_PER_S;

/* FNV-1a, over both texts with a NUL between. */
static uint64_t key_of(const char *cause, const char *peer)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (const char *p = cause; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    h *= 0x100000001b3u;
    for (const char *p = peer; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return h;
}

/* Copies text; unprintable characters and quotes become "?". */
static void clean(char *text)
{
    for (; *text != '\0'; text++)
        if (*text < 0x20 || *text > 0x7e || *text == '"' || *text == '\\')
            *text = '?';
}

static void say(const struct refuse_log *log, const char *line)
{
    if (log->fn)
        log->fn(line, log->user);
}

static struct refuse_slot *find(struct refuse_log *log, uint64_t key)
{
    for (size_t i = 0; i < log->n; i++)
        if (log->slot[i].key == key)
            return &log->slot[i];
    return NULL;
}

void refuse_note(struct refuse_log *log, const struct refuse_what *what, uint64_t now_ns)
{
    uint64_t key = key_of(what->cause, what->peer);
    struct refuse_slot *slot;
    char peer[HTTP_PEER_MAX], detail[128], line[REFUSE_LINE];

    (void)refuse_tick(log, now_ns);
    slot = find(log, key);
    if (slot) {
        slot->again++;
        return;
    }
    if (log->n == REFUSE_SLOTS) {
        if (log->others++ == 0)
            log->others_ns = now_ns;
        return;
    }
    (void)snprintf(peer, sizeof peer, "%s", what->peer);
    (void)snprintf(detail, sizeof detail, "%s", what->detail ? what->detail : "");
    clean(peer);
    clean(detail);
    slot = &log->slot[log->n++];
    *slot = (struct refuse_slot){.key = key, .began_ns = now_ns};
    (void)snprintf(slot->line, sizeof slot->line, "cause=\"%.48s\" peer=\"%.95s\"",
                   what->cause, peer);
    (void)snprintf(line, sizeof line, "%s%s%s%s", slot->line, *detail ? " detail=\"" : "",
                   detail, *detail ? "\"" : "");
    say(log, line);
}

bool refuse_tick(struct refuse_log *log, uint64_t now_ns)
{
    char line[REFUSE_LINE];

    for (size_t i = 0; i < log->n;) {
        struct refuse_slot *slot = &log->slot[i];
        if (now_ns < slot->began_ns + AGAIN_NS) {
            i++;
            continue;
        }
        if (slot->again ==
            0) { /* no refusal for a minute: the next one is logged at once */
            *slot = log->slot[--log->n];
            continue;
        }
        (void)snprintf(line, sizeof line, "%s again=%" PRIu64, slot->line, slot->again);
        say(log, line);
        slot->again = 0;
        slot->began_ns = now_ns;
        i++;
    }
    if (log->others > 0 && now_ns >= log->others_ns + AGAIN_NS) {
        (void)snprintf(line, sizeof line, "cause=\"others\" again=%" PRIu64, log->others);
        say(log, line);
        log->others = 0;
    }
    return log->n > 0 || log->others > 0;
}
