/* A ledger that temporarily cannot be written: its disk is full or missing, its file was
 * removed or replaced, or is damaged.  The run continues in memory, and in the next file
 * that can be written.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/store/inside.h"

bool ledger_is_open(const struct ledger *l)
{
    return l->db && !l->read_only;
}

bool ledger_is_readable(const struct ledger *l)
{
    return l->db != NULL;
}

/* Ids for a run that does not know which were used before: far above any counted from 1,
 * within the integers that JSON readers keep exact (2^53).  They differ from those of
 * another second, and from those of another boot in the same second (except one time in
 * 512).
 */
static uint64_t ids_from(const struct ledger_opts *o)
{
    enum { SECOND_BITS = 31, BOOT_BITS = 9, ID_BITS = 12 };
    const int64_t since_s = INT64_C(1577836800); /* 2020: enough for 68 years */
    uint64_t s = (uint64_t)(o->utc_ns / (int64_t)NS_PER_S - since_s), boot = 5381;

    for (const char *c = o->boot_id; *c; c++)
        boot = boot * 33 + (unsigned char)*c;
    s &= (UINT64_C(1) << SECOND_BITS) - 1;
    boot &= (UINT64_C(1) << BOOT_BITS) - 1;
    return UINT64_C(1) << (SECOND_BITS + BOOT_BITS + ID_BITS) |
           s << (BOOT_BITS + ID_BITS) | boot << ID_BITS;
}

/* Reads the state that earlier runs left for this run; nothing if it cannot be read. */
static void read_earlier(struct ledger *l)
{
    struct ledger *from = NULL;

    if (guard_look(l->path, NULL) < 0 ||
        ledger_open(&(struct ledger_opts){.path = l->path, .read_only = true}, &from,
                    NULL) < 0)
        return;
    if (from->simulated == l->simulated) {
        l->db = take(from->db);
        l->read_only = true;
        l->run = INT64_MAX;
    }
    ledger_abandon(from);
}

int ledger_open_later(const struct ledger_opts *opts, int why, struct ledger **ret,
                      uw_error *err)
{
    auto_(ledger_abandon) struct ledger *l = NULL;

    if (!opts->boot_id || !opts->boot_id[0] || opts->utc_ns < 0)
        return fail(err, -EINVAL, "%s: no boot id or no time", opts->path);
    int r = store_new(opts, opts->path, &l, err);
    if (r < 0)
        return r;
    l->first_job = l->next_job = l->reserved_job = ids_from(opts);
    l->first_claim = l->next_claim = l->reserved_claim = l->first_job;
    l->began_ms = l->last_ms = ms_of_ns(opts->utc_ns);
    if (why == -ENOSPC || why == -EROFS || why == -EACCES || why == -EIO)
        read_earlier(l);
    *ret = take(l);
    return 0;
}

static void let_go(struct ledger *l)
{
    store_close_db(l);
    fd_close_p(&l->fd);
    l->fd = -1;
    l->read_only = false;
}

enum ledger_trouble ledger_trouble(int r)
{
    switch (r) {
    case -ENOSPC:
        return LEDGER_IS_FULL;
    case -EROFS:
        return LEDGER_IS_READ_ONLY;
    case -EPROTONOSUPPORT:
        return LEDGER_IS_NEWER;
    case -EBUSY:
        return LEDGER_IS_TAKEN;
    case -EEXIST:
        return LEDGER_NEEDS_RESTART;
    default:
        return r < 0 ? LEDGER_HAS_FAILED : LEDGER_WELL;
    }
}

void ledger_leave(struct ledger *l)
{
    let_go(l);
    read_earlier(l);
}

/* ---- continuing in another file ---- */

static int keep_boards(struct ledger *l, const struct ledger *old, uw_error *err)
{
    struct ledger_board boards[LEDGER_BOARDS];
    struct ledger_domain domains[LEDGER_DOMAINS];

    for (size_t i = 0; i < old->n_boards; i++)
        boards[i] = (struct ledger_board){old->board_text[i][0], old->board_text[i][1],
                                          old->board_text[i][2]};
    for (size_t i = 0; i < old->n_domains; i++) {
        size_t at = LEDGER_DOMAIN(i);
        domains[i] =
            (struct ledger_domain){old->board_text[at][0], old->board_text[at][1],
                                   old->place_kind[at] == PLACE_MEMORY};
    }
    int r = ledger_boards(l, boards, old->n_boards, err);
    return r < 0 ? r : ledger_domains(l, domains, old->n_domains, err);
}

/* Opens the file again with the options of *l.  0 or LEDGER_ASIDE. */
static int reopen(struct ledger **l, int64_t utc_ns, uw_error *err)
{
    auto_(ledger_abandon) struct ledger *fresh = NULL;
    struct ledger *old = *l;
    const struct ledger_opts opts = {.path = old->path,
                                     .simulated = old->simulated,
                                     .boot_id = old->boot_id,
                                     .version = old->program,
                                     .utc_ns = utc_ns,
                                     .keep = old->keep,
                                     .disk_max = old->disk_max};

    let_go(old);
    int outcome = store_open(&opts, old, &fresh, err);
    int r = outcome < 0 ? outcome : keep_boards(fresh, old, err);
    if (r < 0)
        return r;
    if (old->clock.seen)
        fresh->clock = old->clock;
    *l = take(fresh);
    ledger_abandon(old);
    return outcome;
}

int ledger_renew(struct ledger **l, int64_t utc_ns, uw_error *err)
{
    struct ledger *old = *l;
    uw_error name = {{0}}, why = {{0}};

    old->damaged = true;
    let_go(old);
    int r = guard_aside(old->path, "damaged", ms_of_ns(utc_ns), &name);
    if (r < 0 && r != -ENOENT)
        return fail(err, r, "%s", name.text);
    auto_(mem_free) char *path = strdup(old->path);
    if (!path)
        return fail(err, -ENOMEM, "out of memory");
    r = reopen(l, utc_ns, &why);
    if (r < 0)
        return fail(err, r, "%s", why.text);
    return fail(err, LEDGER_ASIDE, "%.80s is damaged; it is kept as %.90s", path,
                name.text);
}

static bool is_ours(const struct ledger *l)
{
    struct guard_file now[GUARD_BESIDE];

    if (!guard_same(l->path, l->fd))
        return false;
    guard_beside(l->path, now);
    for (size_t i = 0; i < GUARD_BESIDE; i++)
        if (now[i].ino != l->beside[i].ino || now[i].dev != l->beside[i].dev)
            return false;
    return true;
}

/* The open file no longer has this name.  Writes SQLite's pending data to it, wherever
 * it is now, and removes its -wal and -shm, so that the next file at the path does not
 * find them.
 */
static void part(struct ledger *l)
{
    (void)db_exec(l, "PRAGMA wal_checkpoint(TRUNCATE)", NULL);
    store_close_db(l);
    guard_clear(l->path, l->beside);
}

int ledger_ready(struct ledger **l, int64_t utc_ns, uw_error *err)
{
    static const char *const texts[] = {"is written from now on",
                                        "was removed; a new file is written",
                                        "was replaced; what lies there is written"};
    uw_error why = {{0}};
    int was = 0;

    if (ledger_is_open(*l)) {
        if (is_ours(*l))
            return 0;
        was = access((*l)->path, F_OK) < 0 ? 1 : 2;
        part(*l);
    }
    int r = reopen(l, utc_ns, &why);
    if (r != 0)
        return fail(err, r, "%s", why.text);
    return fail(err, LEDGER_ANEW, "%s: %s", (*l)->path, texts[was]);
}

void ledger_settle(struct ledger *l, int64_t utc_ns)
{
    l->settle_ms = ms_of_ns(utc_ns);
}
