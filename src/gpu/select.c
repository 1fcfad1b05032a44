#include "gpu/select.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/units.h"
#include "gpu/row.h"

enum { ENTRY_MAX = 128 };

struct set {
    const struct gpu_info *const *boards;
    size_t n;
};

/* Stores the next entry without surrounding blanks; false at the end.  Truncates entries
 * that are too long to match anything.
 */
static bool next_entry(const char **list, char entry[ENTRY_MAX])
{
    const char *from = *list;

    if (!from)
        return false;
    const char *end = strchr(from, ',');
    *list = end ? end + 1 : NULL;
    if (!end)
        end = from + strlen(from);
    while (from < end && isspace((unsigned char)*from))
        from++;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    size_t len = (size_t)(end - from);
    if (len >= ENTRY_MAX)
        len = ENTRY_MAX - 1;
    memcpy(entry, from, len);
    entry[len] = '\0';
    return true;
}

enum { NONE = -1, SEVERAL = -2 };

/* The only board that matches, NONE or SEVERAL. */
static long by_uuid(const struct set *s, const char *beginning)
{
    const size_t len = strlen(beginning);
    long found = NONE;

    for (size_t i = 0; i < s->n && len > 0; i++) {
        const char *uuid = s->boards[i]->uuid;
        if (strncasecmp(uuid, beginning, len) != 0)
            continue;
        if (uuid[len] == '\0')
            return (long)i; /* an exact match has precedence */
        found = found == NONE ? (long)i : SEVERAL;
    }
    return found;
}

static long by_index(const struct set *s, uint64_t index)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->boards[i]->index == index)
            return (long)i;
    }
    return NONE;
}

/* "MIG-GPU-<uuid>/<gi>/<ci>", the format of drivers before 470. */
static long by_old_mig(const struct set *s, const char *id)
{
    const char *slash = strchr(id, '/');
    char uuid[ENTRY_MAX];
    unsigned gi = 0, ci = 0;
    char rest = 0;

    if (!slash || (size_t)(slash - id) >= sizeof uuid)
        return NONE;
    if (sscanf(slash, "/%3u/%3u%c", &gi, &ci, &rest) != 2) /* NOLINT(cert-err34-c) */
        return NONE;
    memcpy(uuid, id, (size_t)(slash - id));
    uuid[slash - id] = '\0';
    return by_uuid(s, uuid);
}

static long by_mig(const struct set *s, const char *id)
{
    const size_t len = strlen(id);
    long found = NONE;

    if (strncasecmp(id, "MIG-GPU-", 8) == 0)
        return by_old_mig(s, id + 4);
    if (len <= 4) /* "MIG-" alone selects nothing */
        return NONE;
    for (size_t i = 0; i < s->n; i++) {
        const struct gpu_info *b = s->boards[i];
        for (unsigned k = 0; k < b->n_migs && k < GPU_MIGS_MAX; k++) {
            if (strncasecmp(b->mig[k].uuid, id, len) != 0)
                continue;
            if (b->mig[k].uuid[len] == '\0')
                return (long)i;
            found = found == NONE ? (long)i : SEVERAL;
        }
    }
    return found;
}

static bool holds(const struct selection *sel, size_t board)
{
    for (size_t i = 0; i < sel->n; i++) {
        if (sel->at[i] == board)
            return true;
    }
    return false;
}

/* ---- a user's list ---- */

static int no_board(const char *entry, size_t n, uw_error *err)
{
    if (n == 1)
        return fail(err, -EINVAL,
                    "no board '%s': the only board is 0, see underwatt list", entry);
    return fail(err, -EINVAL, "no board '%s': boards are 0..%zu, see underwatt list",
                entry, n > 0 ? n - 1 : 0);
}

static int add(struct selection *sel, const struct set *s, long found, const char *entry,
               uw_error *err)
{
    if (found == SEVERAL)
        return fail(err, -EINVAL, "'%s' matches several boards: write more of the UUID",
                    entry);
    if (found == NONE)
        return no_board(entry, s->n, err);
    if (holds(sel, (size_t)found))
        return fail(err, -EINVAL, "'%s': the list has this board twice", entry);
    sel->at[sel->n++] = (size_t)found;
    return 0;
}

static bool is_range(const char *entry)
{
    return strspn(entry, "0123456789-") == strlen(entry);
}

static int parse_range(const char *entry, uint64_t *ret_from, uint64_t *ret_to,
                       uw_error *err)
{
    const char *dash = strchr(entry, '-');
    char text[ENTRY_MAX];
    uint64_t from = 0, to = 0;

    (void)snprintf(text, sizeof text, "%.*s", (int)(dash ? dash - entry : ENTRY_MAX - 1),
                   entry);
    int r = parse_u64(text, &from, err);
    to = from;
    if (r == 0 && dash)
        r = parse_u64(dash + 1, &to, err);
    if (r < 0 || from > to)
        return fail(err, -EINVAL, "'%.60s' is neither an index nor a range of indices",
                    entry);
    *ret_from = from;
    *ret_to = to;
    return 0;
}

/* "GPU-…", "MIG-…" or the beginning of a UUID without such a prefix. */
static bool is_id(const char *entry)
{
    bool named = strncasecmp(entry, "MIG-", 4) == 0;

    for (size_t i = 0; gpu_backends[i]; i++) {
        const char *const *form = gpu_backends[i]->id_forms;
        for (; form && *form; form++)
            named |= strncasecmp(entry, *form, strlen(*form)) == 0;
    }
    return named || strspn(entry, "0123456789abcdefABCDEF-") == strlen(entry);
}

int select_check(const char *entry, uw_error *err)
{
    uint64_t from = 0, to = 0;

    if (!*entry)
        return fail(err, -EINVAL, "an entry of the list is empty");
    if (is_range(entry))
        return parse_range(entry, &from, &to, err);
    if (strchr(entry, ',') || strlen(entry) >= ENTRY_MAX)
        return fail(err, -EINVAL, "'%.60s' is not a single board", entry);
    if (strcmp(entry, "all") != 0 && !is_id(entry))
        return fail(err, -EINVAL,
                    "'%.60s' is neither an index, nor a range (0-3), nor the beginning "
                    "of a UUID",
                    entry);
    return 0;
}

static int add_range(struct selection *sel, const struct set *s, const char *entry,
                     uw_error *err)
{
    uint64_t from = 0, to = 0;
    int r = parse_range(entry, &from, &to, err);

    if (r < 0)
        return r;
    for (uint64_t i = from; i <= to; i++) {
        r = add(sel, s, by_index(s, i), entry, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Finds a UUID or its beginning, with or without a prefix of id_forms; a part of such a
 * prefix alone selects no single board.
 */
static long by_id(const struct set *s, const char *id)
{
    char full[ENTRY_MAX + 16];
    bool whole = true;
    long found = NONE;

    for (size_t i = 0; gpu_backends[i]; i++) {
        const char *const *form = gpu_backends[i]->id_forms;
        for (; form && *form && found == NONE; form++) {
            whole = whole && strncasecmp(*form, id, strlen(id)) != 0;
            (void)snprintf(full, sizeof full, "%s%s", *form, id);
            found = by_uuid(s, full);
        }
    }
    if (found != NONE)
        return found;
    found = by_uuid(s, id);
    return whole || found == SEVERAL ? found : NONE;
}

static int add_entry(struct selection *sel, const struct set *s, const char *entry,
                     uw_error *err)
{
    if (!*entry)
        return fail(err, -EINVAL, "an entry of the list is empty");
    if (is_range(entry))
        return add_range(sel, s, entry, err);
    if (strncasecmp(entry, "MIG-", 4) == 0) {
        sel->mig = true;
        return add(sel, s, by_mig(s, entry), entry, err);
    }
    return add(sel, s, by_id(s, entry), entry, err);
}

int select_list(const char *list, const struct gpu_info *const *boards, size_t n,
                struct selection *ret, uw_error *err)
{
    const struct set s = {boards, n < SELECT_MAX ? n : SELECT_MAX};
    struct selection sel = {0};
    char entry[ENTRY_MAX];

    if (strcmp(list, "all") == 0) {
        for (size_t i = 0; i < s.n; i++)
            sel.at[sel.n++] = i;
        *ret = sel;
        return 0;
    }
    while (next_entry(&list, entry)) {
        int r = add_entry(&sel, &s, entry, err);
        if (r < 0)
            return r;
    }
    *ret = sel;
    return 0;
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

/* Sorts positions by PCI bus id, or by the driver's index if a bus id is unknown. */
static void bus_order(const struct set *s, size_t order[SELECT_MAX])
{
    for (size_t i = 0; i < s->n; i++) {
        size_t k = i;
        for (; k > 0; k--) {
            const struct gpu_info *a = s->boards[order[k - 1]], *b = s->boards[i];
            int d = a->pci_bus_id[0] && b->pci_bus_id[0]
                        ? strcasecmp(a->pci_bus_id, b->pci_bus_id)
                        : (a->index > b->index) - (a->index < b->index);
            if (d <= 0)
                break;
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
}

/* The number at the start of the text, as strtoul() reads it; -1: none, or negative. */
static long cuda_ordinal(const char *entry)
{
    long v = 0;
    size_t digits = 0;

    if (*entry == '+')
        entry++;
    while (isdigit((unsigned char)entry[digits])) {
        if (v < 1000000)
            v = v * 10 + (entry[digits] - '0');
        digits++;
    }
    return digits > 0 ? v : -1;
}

enum kind { KIND_ORDINAL, KIND_GPU, KIND_MIG };

static enum kind kind_of(const char *entry)
{
    if (strncmp(entry, "GPU-", 4) == 0)
        return KIND_GPU;
    return strncmp(entry, "MIG-", 4) == 0 ? KIND_MIG : KIND_ORDINAL;
}

bool select_is_index(const char *visible)
{
    char entry[ENTRY_MAX];

    return next_entry(&visible, entry) && kind_of(entry) == KIND_ORDINAL;
}

bool select_is_part(const char *visible)
{
    char entry[ENTRY_MAX];

    return next_entry(&visible, entry) && kind_of(entry) == KIND_MIG;
}

static long cuda_entry(const struct set *s, const size_t order[SELECT_MAX],
                       enum kind kind, const char *entry)
{
    if (kind_of(entry) != kind)
        return NONE;
    if (kind == KIND_MIG)
        return by_mig(s, entry);
    if (kind == KIND_GPU)
        return strlen(entry) > 4 ? by_uuid(s, entry) : NONE;
    long i = cuda_ordinal(entry);
    return i >= 0 && (size_t)i < s->n ? (long)order[i] : NONE;
}

static bool boards_differ(const struct set *s)
{
    for (size_t i = 1; i < s->n; i++) {
        if (strcmp(s->boards[i]->name, s->boards[0]->name) != 0)
            return true;
    }
    return false;
}

static void cuda_list(const struct set *s, const char *visible, struct selection *sel,
                      enum kind *ret_kind)
{
    size_t order[SELECT_MAX];
    char entry[ENTRY_MAX];
    bool first = true;

    bus_order(s, order);
    while (next_entry(&visible, entry)) {
        if (first)
            *ret_kind = kind_of(entry);
        first = false;
        long found = cuda_entry(s, order, *ret_kind, entry);
        if (found < 0) {
            (void)snprintf(sel->stop, sizeof sel->stop, "%.60s", entry);
            return;
        }
        if (holds(sel, (size_t)found)) { /* CUDA shows no board then */
            *sel = (struct selection){0};
            (void)snprintf(sel->stop, sizeof sel->stop, "%.60s", entry);
            return;
        }
        sel->at[sel->n++] = (size_t)found;
        if (*ret_kind == KIND_MIG) {
            sel->mig = true;
            return;
        }
    }
}

int select_cuda(const char *visible, const char *order,
                const struct gpu_info *const *boards, size_t n, struct selection *ret,
                uw_error *err)
{
    const struct set s = {boards, n < SELECT_MAX ? n : SELECT_MAX};
    struct selection sel = {0};
    enum kind kind = KIND_GPU;

    if (!visible)
        return select_list("all", boards, n, ret, err);
    if (*visible)
        cuda_list(&s, visible, &sel, &kind);
    *ret = sel;
    if (kind != KIND_ORDINAL || sel.n == 0 || (order && strcmp(order, "PCI_BUS_ID") == 0))
        return 0;
    if (!boards_differ(&s) || sel.n == s.n)
        return 0;
    return fail(
        err, SELECT_UNSURE,
        "CUDA_VISIBLE_DEVICES=%.40s: the boards differ, and CUDA counts the fastest "
        "first: use --gpus, UUIDs, or CUDA_DEVICE_ORDER=PCI_BUS_ID",
        visible);
}
