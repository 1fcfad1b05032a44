#include "sim/machine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"

enum { BOARDS_KNOWN = 16 };

int sim_machine_no_board(const char *model, uw_error *err)
{
    const char *known[BOARDS_KNOWN + 1] = {NULL};
    char none[NEAREST_NONE];
    size_t n = 0;
    const struct plant_board *boards = plant_boards(&n);

    for (size_t i = 0; i < n && i < BOARDS_KNOWN; i++)
        known[i] = boards[i].key;
    return fail(err, -EINVAL, "%s", nearest_none_of(model, known, none));
}

int sim_machine_builtin(const char *model, unsigned count, struct sim_machine *ret,
                        uw_error *err)
{
    const struct plant_board *board = plant_board_find(model);

    if (!board)
        return sim_machine_no_board(model, err);
    if (count < 1 || count > SIM_MACHINE_BOARDS_MAX)
        return fail(err, -EINVAL, "%u boards are outside 1..%d", count,
                    SIM_MACHINE_BOARDS_MAX);
    memset(ret, 0, sizeof *ret);
    (void)snprintf(ret->name, sizeof ret->name, "%u x %s", count, board->key);
    (void)snprintf(ret->driver_version, sizeof ret->driver_version, "%s",
                   SIM_DRIVER_VERSION);
    ret->seed = 1;
    ret->may_set = SIM_MAY_ANYONE;
    ret->n_boards = count;
    for (unsigned i = 0; i < count; i++) {
        ret->board[i].plant = *board;
        ret->board[i].minor = i;
    }
    return 0;
}

static int parse_kind(const char *word, enum sim_fault_kind *ret, uw_error *err)
{
    int kind = names_number(NAMES_SIM_FAULT, word);
    char none[NEAREST_NONE];

    if (kind < 0)
        return fail(err, -EINVAL, "%s", names_none_of(NAMES_SIM_FAULT, word, none));
    *ret = (enum sim_fault_kind)kind;
    return 0;
}

bool sim_fault_may_last(enum sim_fault_kind kind)
{
    return kind == SIM_FAULT_K_LOST || kind == SIM_FAULT_K_HANG ||
           kind == SIM_FAULT_K_REFUSE || kind == SIM_FAULT_K_UNLOAD ||
           kind == SIM_FAULT_K_STUCK || kind == SIM_FAULT_K_IGNORE;
}

/* Parses the text after the kind: watts for "limit", "for TIME" for faults that end. */
static int parse_rest(char **words, size_t n, struct sim_fault *f, uw_error *err)
{
    const char *kind = names_word(NAMES_SIM_FAULT, f->kind);
    size_t i = 0;

    if (f->kind == SIM_FAULT_K_LIMIT) {
        if (n < 1)
            return fail(err, -EINVAL,
                        "limit: the watts are missing, as in: 0 limit 200W");
        int r = parse_power(words[i++], &f->mw, err);
        if (r)
            return r;
    }
    if (i < n && strcmp(words[i], "for") == 0) {
        if (!sim_fault_may_last(f->kind))
            return fail(err, -EINVAL, "%s: takes no duration", kind);
        if (i + 1 >= n)
            return fail(err, -EINVAL, "%s for: the time is missing, as in: for 5s", kind);
        int r = parse_duration(words[i + 1], &f->for_ns, err);
        if (r)
            return r;
        i += 2;
    }
    return i < n ? fail(err, -EINVAL, "%s: unexpected word '%.40s'", kind, words[i]) : 0;
}

int sim_fault_parse(const char *text, struct sim_fault *ret, uw_error *err)
{
    struct sim_fault f = {.board = SIM_ALL_BOARDS};
    char copy[200];
    char *words[8];
    char *rest = copy;
    char *word;
    size_t n = 0;
    size_t i = 0;

    if (strnlen(text, sizeof copy) >= sizeof copy)
        return fail(err, -E2BIG, "longer than %zu characters", sizeof copy - 1);
    memcpy(copy, text, strlen(text) + 1);
    while ((word = strsep(&rest, " "))) {
        if (!*word)
            continue;
        if (n == n_elements(words))
            return fail(err, -E2BIG, "more than %zu words", n);
        words[n++] = word;
    }
    if (n == 0)
        return fail(err, -EINVAL, "the fault is missing");
    uint64_t board;
    if (strcmp(words[0], "all") == 0) {
        i++;
    } else if (parse_u64(words[0], &board, NULL) == 0) {
        if (board >= SIM_ALL_BOARDS)
            return fail(err, -ERANGE, "'%.40s' is not the number of a board", words[0]);
        f.board = (unsigned)board;
        i++;
    }
    if (i == n)
        return fail(err, -EINVAL, "the fault of board %s is missing", words[0]);
    int r = parse_kind(words[i++], &f.kind, err);
    if (!r)
        r = parse_rest(words + i, n - i, &f, err);
    if (!r)
        *ret = f;
    return r;
}
