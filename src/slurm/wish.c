#include "slurm/wish.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "core/optimum/goal.h"
#include "core/policy/cap.h"

#define CAP_FORMS "watts (250), a percentage (85%%), aggressive, balanced or minimal"

static int keep(const char *key, const char *text, struct wish *ret)
{
    struct wish w = {.key = key};

    (void)snprintf(w.text, sizeof w.text, "%s", text);
    *ret = w;
    return 0;
}

static int no_cap(const char *value, uw_error *err)
{
    struct nearest near = {0};
    char hint[NEAREST_TEXT];

    for (size_t i = 0; i < POLICY_PRESETS_BUILT_IN; i++)
        nearest_try(&near, value, strlen(value), policy_presets[i].name);
    return fail(err, -EINVAL, "'%s' is none of: " CAP_FORMS "%s", value,
                nearest_text(&near, hint));
}

int wish_cap(const char *value, struct wish *ret, uw_error *err)
{
    struct cap_arg cap = {0};
    char watts[WISH_TEXT];

    if (strlen(value) >= WISH_TEXT)
        return fail(err, -EINVAL, "'%.20s…' is none of: " CAP_FORMS, value);
    for (size_t i = 0; i < POLICY_PRESETS_BUILT_IN; i++)
        if (strcmp(policy_presets[i].name, value) == 0)
            return keep("preset", value, ret);
    int r = parse_cap(value, &cap, err);
    if (r == -EINVAL)
        return no_cap(value, err);
    if (r < 0)
        return r;
    if (cap.mw == 0)
        return keep("cap", value, ret);
    if (cap.mw % MW_PER_W == 0)
        (void)snprintf(watts, sizeof watts, "%" PRIu32 " W", cap.mw / MW_PER_W);
    else
        (void)snprintf(watts, sizeof watts, "%.9g W", w_of_mw(cap.mw));
    (void)keep("cap", watts, ret);
    ret->mw = cap.mw;
    return 0;
}

int wish_goal(const char *value, struct wish *ret, uw_error *err)
{
    struct goal g;
    char text[GOAL_TEXT_MAX];

    if (strlen(value) >= WISH_TEXT)
        return fail(err, -EINVAL, "goal '%.20s…' is none of " GOAL_FORMS, value);
    int r = goal_parse(value, &g, err);
    return r < 0 ? r : keep("goal", goal_text(&g, text), ret);
}

int wish_class(const char *value, struct wish *ret, uw_error *err)
{
    if (!*value || strlen(value) >= WISH_TEXT || !utf8_is_plain(value))
        return fail(err, -EINVAL,
                    "class '%.20s%s' is no name of 1 to %d bytes without control or "
                    "invisible characters",
                    value, strlen(value) > 20 ? "…" : "", WISH_TEXT - 1);
    return keep("class", value, ret);
}

/* ---- the table ---- */

/* Takes the first word off a line: its length, 0 at the end. */
static size_t next_word(const char **line, const char **ret)
{
    const char *at = *line;
    size_t n = 0;

    while (isspace((unsigned char)*at))
        at++;
    while (at[n] && !isspace((unsigned char)at[n]))
        n++;
    *ret = at;
    *line = at + n;
    return n;
}

/* Takes "100 W", "100W" or "100" off a line. */
static int next_watts(const char **line, uint32_t *ret_mw, uw_error *err)
{
    const char *number, *unit, *rest;
    char text[WISH_TEXT];
    struct cap_arg cap = {0};
    size_t n = next_word(line, &number);

    rest = *line;
    size_t n_unit = next_word(&rest, &unit);
    if (n_unit > 0 && isalpha((unsigned char)*unit))
        *line = rest;
    else
        n_unit = 0;
    if (n == 0 || n + n_unit >= sizeof text)
        return fail(err, -EINVAL, "a board has a name, its lowest and its highest limit");
    (void)snprintf(text, sizeof text, "%.*s%.*s", (int)n, number, (int)n_unit, unit);
    int r = parse_cap(text, &cap, err);
    if (r == 0 && cap.mw == 0)
        r = fail(err, -EINVAL, "'%s': a limit is in watts", text);
    *ret_mw = cap.mw;
    return r;
}

static int read_board(struct table *t, const char *rest, uw_error *err)
{
    uint32_t min_mw = 0, max_mw = 0;
    const char *word;

    if (next_word(&rest, &word) == 0)
        return fail(err, -EINVAL, "a board has a name, its lowest and its highest limit");
    int r = next_watts(&rest, &min_mw, err);
    if (r == 0)
        r = next_watts(&rest, &max_mw, err);
    if (r < 0)
        return r;
    if (next_word(&rest, &word) > 0)
        return fail(err, -EINVAL, "'%.40s' stands behind the highest limit", word);
    if (min_mw > max_mw)
        return fail(err, -EINVAL, "the lowest limit is above the highest");
    if (t->n_boards == TABLE_MAX)
        return fail(err, -EINVAL, "more than %d boards", TABLE_MAX);
    t->board[t->n_boards].min_mw = min_mw;
    t->board[t->n_boards++].max_mw = max_mw;
    return 0;
}

static int read_class(struct table *t, const char *rest, uw_error *err)
{
    const char *word;
    struct wish w;
    char name[WISH_TEXT];
    size_t n = next_word(&rest, &word);

    if (n >= sizeof name || t->n_classes == TABLE_MAX)
        return fail(err, -EINVAL, "more than %d classes, or a name of more than %d bytes",
                    TABLE_MAX, WISH_TEXT - 1);
    (void)snprintf(name, sizeof name, "%.*s", (int)n, word);
    int r = wish_class(name, &w, err);
    if (r == 0 && next_word(&rest, &word) > 0)
        r = fail(err, -EINVAL, "'%.40s' stands behind the class", word);
    if (r == 0)
        memcpy(t->cls[t->n_classes++], w.text, sizeof w.text);
    return r;
}

static int read_line(struct table *t, const char *line, uw_error *err)
{
    const char *word;
    size_t n = next_word(&line, &word);

    if (n == 0)
        return 0;
    if (n == 5 && memcmp(word, "board", n) == 0)
        return read_board(t, line, err);
    if (n == 5 && memcmp(word, "class", n) == 0)
        return read_class(t, line, err);
    return fail(err, -EINVAL, "'%.*s' is neither board nor class", n > 40 ? 40 : (int)n,
                word);
}

int table_read(const char *text, size_t len, struct table *ret, uw_error *err)
{
    struct table t = {0};
    char line[256];

    for (unsigned no = 1; len > 0; no++) {
        const char *end = memchr(text, '\n', len);
        size_t n = end ? (size_t)(end - text) : len, kept = n;
        const char *comment = memchr(text, '#', n);
        if (comment)
            kept = (size_t)(comment - text);
        if (kept >= sizeof line)
            return fail(err, -EINVAL, "line %u has more than %zu bytes", no,
                        sizeof line - 1);
        memcpy(line, text, kept);
        line[kept] = '\0';
        int r = read_line(&t, line, err);
        if (r < 0)
            return fail_in(err, r, "line %u", no);
        n += end != NULL;
        text += n;
        len -= n;
    }
    *ret = t;
    return 0;
}

static int check_cap(const struct table *t, uint32_t mw, uw_error *err)
{
    uint32_t lowest = UINT32_MAX, highest = 0;
    double w = w_of_mw(mw);

    for (size_t i = 0; i < t->n_boards; i++) {
        if (mw >= t->board[i].min_mw && mw <= t->board[i].max_mw)
            return 0;
        if (t->board[i].min_mw < lowest)
            lowest = t->board[i].min_mw;
        if (t->board[i].max_mw > highest)
            highest = t->board[i].max_mw;
    }
    if (mw > highest)
        return fail(err, -ERANGE,
                    "%g W is above %g W, the highest limit of this "
                    "cluster's boards",
                    w, w_of_mw(highest));
    if (mw < lowest)
        return fail(err, -ERANGE,
                    "%g W is below %g W, the lowest limit of this cluster's "
                    "boards",
                    w, w_of_mw(lowest));
    return fail(err, -ERANGE, "%g W is in the range of none of this cluster's boards", w);
}

int table_check(const struct table *t, const struct wish *w, uw_error *err)
{
    if (w->mw > 0 && t->n_boards > 0)
        return check_cap(t, w->mw, err);
    if (strcmp(w->key, "class") != 0 || t->n_classes == 0)
        return 0;
    const char *known[TABLE_MAX + 1] = {NULL};
    char none[NEAREST_NONE];
    for (size_t i = 0; i < t->n_classes; i++) {
        if (strcmp(t->cls[i], w->text) == 0)
            return 0;
        known[i] = t->cls[i];
    }
    return fail(err, -EINVAL, "class %s", nearest_none_of(w->text, known, none));
}
