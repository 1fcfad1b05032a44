#include "core/carbon/accounting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"

#define PUE_MAX 10
#define G_HOUR_MAX 10000

void accounting_fini(struct accounting *a)
{
    free(a->contract);
    *a = (struct accounting){.pue = 0};
}

struct accounting *accounting_copy(const struct accounting *a)
{
    auto_(accounting_free) struct accounting *copy = malloc(sizeof *copy);
    size_t size = a->n_contracts * sizeof *a->contract;

    if (!copy)
        return NULL;
    *copy = *a;
    copy->contract = NULL;
    if (size == 0)
        return take(copy);
    copy->contract = malloc(size);
    if (!copy->contract)
        return NULL;
    memcpy(copy->contract, a->contract, size);
    return take(copy);
}

void accounting_free(struct accounting *a)
{
    if (!a)
        return;
    accounting_fini(a);
    free(a);
}

bool accounting_is_pue(double v)
{
    return v >= 1 && v <= PUE_MAX;
}

int accounting_pue(struct accounting *a, const char *text, uw_error *err)
{
    double v = 0;

    int r = parse_double(text, &v, err);
    if (r < 0)
        return r;
    if (!accounting_is_pue(v))
        return fail(err, -ERANGE, "'%.40s' is outside 1..%d", text, PUE_MAX);
    a->pue = v;
    return 0;
}

static bool is_text(const char *text, size_t size)
{
    return *text && strlen(text) < size && utf8_is_plain(text);
}

int accounting_embodied(struct accounting *a, const char *model, double g_hour,
                        const char *origin, uw_error *err)
{
    struct embodied *e = &a->embodied[a->n_embodied];

    if (!is_text(model, sizeof e->model))
        return fail(err, -EINVAL, "the board '%.60s' is no plain text of 1 to %zu bytes",
                    model, sizeof e->model - 1);
    if (!(g_hour >= 0 && g_hour <= G_HOUR_MAX))
        return fail(err, -ERANGE, "%.60s: %g g an hour is outside 0..%d", model, g_hour,
                    G_HOUR_MAX);
    if (!is_text(origin, sizeof e->origin))
        return fail(err, -EINVAL,
                    "%.60s: the origin '%.60s' is no plain text of 1 to %zu "
                    "bytes",
                    model, origin, sizeof e->origin - 1);
    if (accounting_board(a, model))
        return fail(err, -EEXIST, "%.60s is there twice", model);
    if (a->n_embodied == EMBODIED_MODELS)
        return fail(err, -E2BIG, "more than %d boards", EMBODIED_MODELS);
    (void)snprintf(e->model, sizeof e->model, "%s", model);
    (void)snprintf(e->origin, sizeof e->origin, "%s", origin);
    e->g_hour = g_hour;
    a->n_embodied++;
    return 0;
}

int accounting_embodied_text(struct accounting *a, const char *text, uw_error *err)
{
    char model[EMBODIED_MODEL], number[32];
    const char *is = strchr(text, '=');
    size_t n = is ? (size_t)(is - text) : 0, len = is ? strcspn(is + 1, " ") : 0;
    double v = 0;

    if (n == 0 || n >= sizeof model || len == 0 || len >= sizeof number || !is[1 + len])
        return fail(err, -EINVAL, "'%.80s' is not of the form 'BOARD=12.3 ORIGIN'", text);
    (void)snprintf(model, sizeof model, "%.*s", (int)n, text);
    (void)snprintf(number, sizeof number, "%.*s", (int)len, is + 1);
    int r = parse_double(number, &v, err);
    if (r < 0)
        return fail_in(err, r, "%.60s", model);
    return accounting_embodied(a, model, v, is + 1 + len + 1, err);
}

const struct embodied *accounting_board(const struct accounting *a, const char *model)
{
    for (size_t i = 0; i < a->n_embodied; i++)
        if (strcmp(a->embodied[i].model, model) == 0)
            return &a->embodied[i];
    return NULL;
}

double embodied_ms(const struct embodied_hour *h, bool other, int64_t ms)
{
    int64_t used_ms = h->used_ms < h->board_ms ? h->used_ms : h->board_ms;
    int64_t rows_ms = other ? h->other_ms : h->held_ms;

    if (h->board_ms <= 0)
        return (double)ms;
    if (h->other_ms == 0) /* no row has the remaining time */
        used_ms = h->board_ms;
    int64_t of_ms = other ? h->board_ms - used_ms : used_ms;
    return rows_ms > 0 ? (double)ms * (double)of_ms / (double)rows_ms : 0;
}

int64_t embodied_used_ms(const struct embodied_hour *h, int64_t longest_ms)
{
    int64_t rest_ms = h->board_ms - h->other_ms;

    if (h->held_ms < rest_ms)
        rest_ms = h->held_ms;
    return rest_ms > longest_ms ? rest_ms : longest_ms;
}
