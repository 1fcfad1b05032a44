#include "jobs/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct history {
    struct ledger_search *item;
    size_t n, room;
};

struct history *history_new(void)
{
    return calloc(1, sizeof(struct history));
}

void history_free(struct history *h)
{
    if (!h)
        return;
    free(h->item);
    free(h);
}

static bool is_of(const struct ledger_search *s, uid_t uid, const char *same,
                  const char *model, unsigned boards)
{
    return s->uid == uid && s->boards == boards && strcmp(s->same, same) == 0 &&
           strcmp(s->model, model) == 0;
}

static struct ledger_search *find(const struct history *h, uid_t uid, const char *same,
                                  const char *model, unsigned boards)
{
    for (size_t i = 0; i < h->n; i++)
        if (is_of(&h->item[i], uid, same, model, boards))
            return &h->item[i];
    return NULL;
}

/* The oldest entry of uid if `one`, else of all; *ret_n: the number of these entries. */
static struct ledger_search *oldest(struct history *h, bool one, uid_t uid, size_t *ret_n)
{
    struct ledger_search *old = NULL;

    *ret_n = 0;
    for (size_t i = 0; i < h->n; i++) {
        struct ledger_search *s = &h->item[i];
        if (one && s->uid != uid)
            continue;
        ++*ret_n;
        if (!old || s->utc_ns < old->utc_ns)
            old = s;
    }
    return old;
}

int history_put(struct history *h, const struct ledger_search *s)
{
    struct ledger_search *at = find(h, s->uid, s->same, s->model, s->boards);
    size_t n = 0;

    if (!at) {
        at = oldest(h, true, s->uid, &n);
        if (n < LEDGER_USER_SEARCHES)
            at = NULL;
    }
    if (!at && h->n == LEDGER_SEARCHES)
        at = oldest(h, false, 0, &n);
    if (!at) {
        int r = array_grow(&h->item, &h->room, h->n, LEDGER_SEARCHES);
        if (r < 0)
            return r;
        at = &h->item[h->n++];
    }
    *at = *s;
    return 0;
}

const struct ledger_search *history_find(const struct history *h, uid_t uid,
                                         const char *same, const char *model,
                                         unsigned boards, int64_t since_utc_ns)
{
    const struct ledger_search *s = find(h, uid, same, model, boards);

    return s && s->utc_ns >= since_utc_ns ? s : NULL;
}

size_t history_count(const struct history *h)
{
    return h->n;
}

const struct ledger_search *history_at(const struct history *h, size_t i)
{
    return i < h->n ? &h->item[i] : NULL;
}
