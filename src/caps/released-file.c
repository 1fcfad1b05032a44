#include "caps/released-file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { BOOT_ID = 48 };

/* The largest until_ns, in the year 2200: fits an int64_t as a double. */
static const double UNTIL_MAX = 7.3e18;

void released_fini(struct released *r)
{
    free(take(r->board));
}

static int read_text(const struct json_value *v, const char *key, char *ret, size_t size,
                     uw_error *err)
{
    const char *text = NULL;
    int r = json_get_text(v, key, &text, err);

    if (r == 0 && strlen(text) >= size)
        return fail(err, -E2BIG, "%s: more than %zu characters", key, size - 1);
    if (r == 0)
        memcpy(ret, text, strlen(text) + 1);
    return r;
}

static int read_u32(const struct json_value *v, const char *key, uint32_t *ret,
                    uw_error *err)
{
    uint64_t wide = 0;
    int r = json_get_u64(v, key, &wide, err);

    if (r == 0 && wide > UINT32_MAX)
        return fail(err, -ERANGE, "%s: %" PRIu64 " is above %u", key, wide, UINT32_MAX);
    *ret = (uint32_t)wide;
    return r;
}

/* The identity of a board, released or not. */
static int read_info(const struct json_value *v, struct gpu_info *info, uw_error *err)
{
    uint32_t arch = 0;
    int r = read_text(v, "uuid", info->uuid, sizeof info->uuid, err);

    if (r == 0)
        r = read_text(v, "name", info->name, sizeof info->name, err);
    if (r == 0)
        r = read_text(v, "pci_bus_id", info->pci_bus_id, sizeof info->pci_bus_id, err);
    if (r == 0 && json_get(v, "backend")) /* missing in older files */
        r = read_text(v, "backend", info->backend, sizeof info->backend, err);
    info->has_minor = json_get(v, "minor") != NULL; /* missing in older files */
    if (r == 0 && info->has_minor)
        r = read_u32(v, "minor", &info->minor, err);
    if (r == 0)
        r = read_u32(v, "arch", &arch, err);
    if (r == 0)
        r = read_u32(v, "abilities", &info->abilities, err);
    if (r == 0)
        r = json_get_bool(v, "simulated", &info->simulated, err);
    info->arch = (enum gpu_arch)arch;
    return r;
}

static int read_board(const struct json_value *v, size_t i, struct released *ret,
                      uw_error *err)
{
    struct gpu_info *info = &ret->board[i];
    bool away = false;
    double until = -1, since = 0;
    int r = read_info(v, info, err);

    if (r == 0)
        r = json_get_bool(v, "released", &away, err);
    if (r == 0 && away && !info->uuid[0])
        r = fail(err, -EINVAL, "a released board has no uuid");
    if (r == 0 && away)
        r = json_get_double(v, "until_ns", &until, err);
    if (r == 0 && (until < -1 || until > UNTIL_MAX))
        r = fail(err, -ERANGE, "until_ns: %g is outside -1..%g", until, UNTIL_MAX);
    if (r == 0 && away && json_get(v, "since_ns"))
        r = json_get_double(v, "since_ns", &since, err);
    if (r == 0 && (since < 0 || since > UNTIL_MAX))
        r = fail(err, -ERANGE, "since_ns: %g is outside 0..%g", since, UNTIL_MAX);
    if (r < 0)
        return fail_in(err, r, "board %zu", i);
    info->index = (unsigned)i;
    ret->until_ns[i] = (int64_t)until;
    ret->since_ns[i] = (int64_t)since;
    ret->away |= away ? 1ull << i : 0;
    return 0;
}

int released_read(const struct json_value *root, const char *boot, struct released *ret,
                  uw_error *err)
{
    const struct json_value *boards = json_get(root, "boards");
    auto_(released_fini) struct released all = {.n = json_count(boards)};
    char of[BOOT_ID];
    int r = read_text(root, "boot", of, sizeof of, err);

    if (r < 0)
        return r;
    if (strcmp(of, boot) != 0)
        return fail(err, -ESTALE, "from an earlier boot of this machine");
    if (all.n == 0 || all.n > BOARDS_MAX)
        return fail(err, -EINVAL, "%zu boards are outside 1..%d", all.n, BOARDS_MAX);
    all.board = calloc(all.n, sizeof *all.board);
    if (!all.board)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < all.n && r == 0; i++)
        r = read_board(json_at(boards, i), i, &all, err);
    if (r < 0)
        return r;
    *ret = all;
    all.board = NULL;
    return 0;
}
