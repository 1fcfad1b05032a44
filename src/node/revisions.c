#include "node/revisions.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/carbon/account.h"

enum {
    QUARTERS = REVISIONS_BACK_S / LEDGER_QUARTER_S,
    ROW_S = 600, /* longest row as booked */
};

static const char *const names[LEDGER_CHARGES] = {"carbon", "carbon.marginal", "price"};

/* A signal's values. */
struct course {
    char source[SIGNAL_SOURCE], unit[SIGNAL_UNIT];
    struct ledger_value *value;
    size_t n;
    int64_t at; /* the next quarter to check, in quarters since 1970 */
    bool again; /* rows were lost: after the last quarter, check all again */
    struct {
        int64_t quarter;
        uint64_t hash;
    } done[QUARTERS]; /* by quarter, modulo: the values with which it was revised */
};

struct revisions {
    struct course course[LEDGER_CHARGES];
    struct ledger_value value[LEDGER_VALUES]; /* of what revisions_next() returned */
    uint64_t lost;
};

int revisions_new(struct revisions **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : -ENOMEM;
}

void revisions_free(struct revisions *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < LEDGER_CHARGES; i++)
        free(r->course[i].value);
    free(r);
}

void revisions_values(struct revisions *r, const struct signal_values *v)
{
    size_t i = 0, n = 0;

    while (i < LEDGER_CHARGES && strcmp(v->name, names[i]) != 0)
        i++;
    if (i == LEDGER_CHARGES)
        return;
    struct course *c = &r->course[i];
    struct ledger_value *value = calloc(v->n + 1, sizeof *value);
    if (!value)
        return;
    for (size_t k = 0; k < v->n; k++) {
        const struct source_point *p = &v->point[k];
        struct ledger_value *to = &value[n];
        *to = (struct ledger_value){p->from_utc_s * (int64_t)NS_PER_S,
                                    p->to_utc_s * (int64_t)NS_PER_S, 0, p->estimated};
        n += p->from_utc_s < p->to_utc_s &&
             account_factor((enum account_signal)i, p->v, &to->factor) &&
             (n == 0 || to[-1].to_utc_ns <= to->from_utc_ns);
    }
    free(c->value);
    c->value = value;
    c->n = n;
    c->at = 0;
    (void)snprintf(c->source, sizeof c->source, "%s", v->source);
    (void)snprintf(c->unit, sizeof c->unit, "%s", v->unit);
}

static uint64_t mix(uint64_t h, const void *p, size_t size)
{
    for (const unsigned char *at = p; size > 0; size--)
        h = (h ^ *at++) * 0x100000001b3u;
    return h;
}

/* Stores the values of a quarter and of the rows that begin in it, and returns their
 * number; 0: there are none, or too many.
 */
static size_t values_of(const struct course *c, int64_t quarter,
                        struct ledger_value ret[LEDGER_VALUES], uint64_t *ret_hash)
{
    int64_t begin_ns = quarter * LEDGER_QUARTER_S * (int64_t)NS_PER_S;
    int64_t over_ns = begin_ns + LEDGER_QUARTER_S * (int64_t)NS_PER_S;
    int64_t end_ns = over_ns + ROW_S * (int64_t)NS_PER_S;
    uint64_t h = mix(0xcbf29ce484222325u, c->source, strlen(c->source) + 1);
    size_t n = 0;

    h = mix(h, c->unit, strlen(c->unit) + 1);
    for (size_t i = 0; i < c->n && c->value[i].from_utc_ns < end_ns; i++) {
        const struct ledger_value *v = &c->value[i];
        if (v->to_utc_ns <= begin_ns)
            continue;
        if (n == LEDGER_VALUES || (n == 0 && v->from_utc_ns >= over_ns))
            return 0;
        h = mix(h, &v->from_utc_ns, sizeof v->from_utc_ns);
        h = mix(h, &v->to_utc_ns, sizeof v->to_utc_ns);
        h = mix(h, &v->factor, sizeof v->factor);
        h = mix(h, &v->estimated, sizeof v->estimated);
        ret[n++] = *v;
    }
    *ret_hash = h;
    return n;
}

void revisions_lost(struct revisions *r, uint64_t rows)
{
    if (rows <= r->lost)
        return;
    r->lost = rows;
    for (size_t i = 0; i < LEDGER_CHARGES; i++) {
        struct course *c = &r->course[i];
        c->again = c->n > 0;
        if (!c->again)
            memset(c->done, 0, sizeof c->done);
    }
}

/* Returns whether there is a quarter before `last` to check. */
static bool has_quarter(struct course *c, int64_t first, int64_t last)
{
    if (c->at >= last && c->again) {
        c->again = false;
        c->at = first;
        memset(c->done, 0, sizeof c->done);
    }
    return c->at < last;
}

static bool next_of(struct revisions *r, struct course *c, int64_t utc_ns,
                    struct ledger_revision *ret)
{
    int64_t now_s = utc_ns / (int64_t)NS_PER_S;
    int64_t last = (now_s - REVISIONS_LAG_S) / LEDGER_QUARTER_S; /* not over yet */
    int64_t first = (now_s - REVISIONS_BACK_S) / LEDGER_QUARTER_S + 1;

    if (c->at < first)
        c->at = first;
    while (c->n > 0 && has_quarter(c, first, last)) {
        int64_t quarter = c->at++;
        size_t slot = (size_t)(quarter % QUARTERS);
        uint64_t hash = 0;
        size_t n = values_of(c, quarter, r->value, &hash);
        if (n == 0 || (c->done[slot].quarter == quarter && c->done[slot].hash == hash))
            continue;
        c->done[slot].quarter = quarter;
        c->done[slot].hash = hash;
        *ret = (struct ledger_revision){.signal = names[c - r->course],
                                        .charge = (enum ledger_charge)(c - r->course),
                                        .source = c->source,
                                        .unit = c->unit,
                                        .begin_utc_ns = quarter * LEDGER_QUARTER_S *
                                                        (int64_t)NS_PER_S,
                                        .utc_ns = utc_ns,
                                        .value = r->value,
                                        .n = n};
        return true;
    }
    return false;
}

bool revisions_next(struct revisions *r, int64_t utc_ns, struct ledger_revision *ret)
{
    if (utc_ns < REVISIONS_BACK_S * (int64_t)NS_PER_S)
        return false;
    for (size_t i = 0; i < LEDGER_CHARGES; i++)
        if (next_of(r, &r->course[i], utc_ns, ret))
            return true;
    return false;
}
