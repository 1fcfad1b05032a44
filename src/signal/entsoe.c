/* Day-ahead prices of a bidding zone, from ENTSO-E's transparency platform (document
 * type A44).
 *
 * A document has a series of prices for each day and, in zones with several auctions,
 * for each auction: the first one is the market's.  In curve type A03 a missing position
 * repeats the price before it; otherwise it is unknown.  Without data the answer is an
 * acknowledgement, with status 200 or 400.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/moment.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/xml.h"
#include "signal/kind.h"

enum { GIVES_NOW, GIVES_FORECAST };
enum {
    BACK_S = 24 * 3600,
    AHEAD_S = 48 * 3600,
    PERIOD_MAX_S = 40 * 86400,
    SAYS = 80,
    EIC = 16, /* characters of a zone's code, the last one a check */
};

/* A price and its position, and the progress in the document. */
struct price {
    int64_t from_utc_s, to_utc_s;
    double v;
};
struct prices {
    struct taking *t;
    bool acknowledged, no_data;
    char says[SAYS + 1];
    int64_t issued_utc_s;
    char unit[SIGNAL_UNIT]; /* "EUR/kWh", of the first series */
    /* of a series */
    char currency[8], measure[8];
    bool repeats, other; /* A03; of another auction or contract */
    size_t first;        /* index of the first of its prices */
    /* of a period */
    int64_t start_utc_s, end_utc_s, step_s;
    uint64_t position, last;
    double v;
    bool has_v;
    struct price *price;
    size_t n, cap;
};

/* ---- configuration and request ---- */

static int eic_value(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c == '-' ? 36 : c - 'A' + 10;
}

/* Letters, digits and '-', and the check character over them. */
static bool is_eic(const char *zone)
{
    int sum = 0;

    if (strlen(zone) != EIC ||
        strspn(zone, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != EIC)
        return false;
    for (int i = 0; i < EIC - 1; i++)
        sum += eic_value(zone[i]) * (EIC - i);
    return eic_value(zone[EIC - 1]) == 36 - (sum - 1) % 37;
}

static int check(const struct source_config *c, const char *countries, uw_error *err)
{
    (void)countries;
    if (!is_eic(c->zone))
        return fail(err, -EINVAL,
                    "%s: zone: '%.40s' is not the code of a bidding zone (EIC), as in "
                    "10Y1001A1001A82H",
                    c->name, utf8_is_plain(c->zone) ? c->zone : "?");
    return 0;
}

static void ask(struct asking *a)
{
    int64_t hour = a->utc_s - a->utc_s % 3600;
    char from[MINUTE_TEXT], to[MINUTE_TEXT];

    ask_put(a, "/api");
    ask_query(a, "documentType", "A44");
    ask_query(a, "contract_MarketAgreement.type", "A01");
    ask_query(a, "in_Domain", a->c->zone);
    ask_query(a, "out_Domain", a->c->zone);
    ask_query(a, "periodStart", minute_plain(hour - BACK_S, from));
    ask_query(a, "periodEnd", minute_plain(hour + AHEAD_S, to));
    a->request->secret_query = "securityToken";
}

/* ---- the document ---- */

static bool time_of(const char *text, int64_t *ret_utc_s)
{
    struct moment m;

    if (!moment_read(text, &m) || m.date_only)
        return false;
    *ret_utc_s = moment_utc_s(&m);
    return true;
}

static int add_price(struct prices *d, uint64_t position, uint64_t end, double v)
{
    int64_t start = d->start_utc_s;

    int r = array_grow(&d->price, &d->cap, d->n, SIGNAL_POINTS);
    if (r < 0)
        return r == -ENOMEM
                   ? r
                   : fail(d->t->why, SOURCE_BAD, "more than %d prices", SIGNAL_POINTS);
    d->price[d->n++] = (struct price){start + (int64_t)(position - 1) * d->step_s,
                                      start + (int64_t)(end - 1) * d->step_s, v};
    return 0;
}

/* Positions from d->last + 1 to `next` - 1 are missing. */
static int fill(struct prices *d, uint64_t next)
{
    if (d->last + 1 == next)
        return 0;
    if (d->repeats && d->last > 0) {
        d->price[d->n - 1].to_utc_s = d->start_utc_s + (int64_t)(next - 1) * d->step_s;
        return 0;
    }
    return add_price(d, d->last + 1, next, (double)NAN);
}

static int end_point(struct prices *d)
{
    uint64_t positions;

    if (d->step_s == 0 || d->end_utc_s <= d->start_utc_s ||
        d->end_utc_s - d->start_utc_s > PERIOD_MAX_S)
        return fail(d->t->why, SOURCE_BAD, "a period has no time or no resolution");
    positions = (uint64_t)((d->end_utc_s - d->start_utc_s) / d->step_s);
    if (d->position <= d->last || d->position > positions)
        return fail(d->t->why, SOURCE_BAD,
                    "a position is not in order, or outside 1..%llu",
                    (unsigned long long)positions);
    if (!d->has_v)
        return fail(d->t->why, SOURCE_BAD, "a position has no price");
    int r = fill(d, d->position);
    if (r == 0)
        r = add_price(d, d->position, d->position + 1, d->v);
    d->last = d->position;
    return r;
}

static int end_period(struct prices *d)
{
    if (d->last == 0)
        return 0;
    return fill(d, (uint64_t)((d->end_utc_s - d->start_utc_s) / d->step_s) + 1);
}

static int end_series(struct prices *d)
{
    char unit[SIGNAL_UNIT];
    double factor;

    if (d->other) {
        d->n = d->first;
        return 0;
    }
    if (!is_iso_currency(d->currency))
        return fail(d->t->why, SOURCE_BAD, "a series has no currency");
    if (strcmp(d->measure, "MWH") != 0 && strcmp(d->measure, "KWH") != 0)
        return fail(d->t->why, SOURCE_BAD, "its prices are not of a MWH");
    factor = d->measure[0] == 'M' ? 1000 : 1;
    for (size_t i = d->first; i < d->n; i++)
        d->price[i].v /= factor;
    (void)snprintf(unit, sizeof unit, "%s/kWh", d->currency);
    if (d->unit[0] && strcmp(d->unit, unit) != 0)
        return fail(d->t->why, SOURCE_BAD, "its prices are in two currencies");
    memcpy(d->unit, unit, sizeof unit);
    return 0;
}

/* ---- elements ---- */

static int on_begin(const char *name, unsigned depth, void *user)
{
    struct prices *d = user;

    if (depth == 1) {
        d->acknowledged = strcmp(name, "Acknowledgement_MarketDocument") == 0;
        if (!d->acknowledged && strcmp(name, "Publication_MarketDocument") != 0)
            return fail(d->t->why, SOURCE_BAD, "the answer is not a document of prices");
    } else if (strcmp(name, "TimeSeries") == 0) {
        d->currency[0] = d->measure[0] = '\0';
        d->repeats = d->other = false;
        d->first = d->n;
    } else if (strcmp(name, "Period") == 0) {
        d->start_utc_s = d->end_utc_s = d->step_s = 0;
        d->last = 0;
    } else if (strcmp(name, "Point") == 0) {
        d->position = 0;
        d->has_v = false;
    }
    return 0;
}

static int64_t step_of(const char *text)
{
    static const struct {
        const char *word;
        int64_t s;
    } words[] = {
        {"PT15M", 900}, {"PT30M", 1800}, {"PT60M", 3600}, {"PT1H", 3600}, {"P1D", 86400}};

    for (size_t i = 0; i < n_elements(words); i++)
        if (strcmp(words[i].word, text) == 0)
            return words[i].s;
    return 0;
}

static int take_field(struct prices *d, const char *name, const char *text)
{
    if (strcmp(name, "currency_Unit.name") == 0)
        (void)snprintf(d->currency, sizeof d->currency, "%s", text);
    else if (strcmp(name, "price_Measure_Unit.name") == 0)
        (void)snprintf(d->measure, sizeof d->measure, "%s", text);
    else if (strcmp(name, "curveType") == 0)
        d->repeats = strcmp(text, "A03") == 0;
    else if (strcmp(name, "contract_MarketAgreement.type") == 0)
        d->other |= strcmp(text, "A01") != 0;
    else if (strcmp(name, "classificationSequence_AttributeInstanceComponent.position") ==
             0)
        d->other |= strcmp(text, "1") != 0;
    else if ((strcmp(name, "in_Domain.mRID") == 0 ||
              strcmp(name, "out_Domain.mRID") == 0) &&
             strcmp(text, d->t->c->zone) != 0)
        return fail(d->t->why, SOURCE_BAD, "the answer is of another zone than %s",
                    d->t->c->zone);
    else if (strcmp(name, "resolution") == 0)
        d->step_s = step_of(text);
    else if (strcmp(name, "start") == 0 && !time_of(text, &d->start_utc_s))
        return fail(d->t->why, SOURCE_BAD, "'start' is not a time");
    else if (strcmp(name, "end") == 0 && !time_of(text, &d->end_utc_s))
        return fail(d->t->why, SOURCE_BAD, "'end' is not a time");
    else if (strcmp(name, "createdDateTime") == 0)
        (void)time_of(text, &d->issued_utc_s);
    else if (strcmp(name, "position") == 0 && parse_u64(text, &d->position, NULL) < 0)
        return fail(d->t->why, SOURCE_BAD, "'position' is not a number");
    else if (strcmp(name, "price.amount") == 0)
        d->has_v = parse_double(text, &d->v, NULL) == 0;
    return 0;
}

static int on_end(const char *name, const char *text, unsigned depth, void *user)
{
    struct prices *d = user;
    (void)depth;

    if (d->acknowledged) {
        if (strcmp(name, "text") == 0 && !d->says[0] && utf8_is_plain(text) &&
            !secret_in(text, d->t->secret)) {
            (void)snprintf(d->says, sizeof d->says, "%s", text);
            utf8_mend(d->says);
        }
        d->no_data |=
            strcmp(name, "text") == 0 && strstr(text, "No matching data") != NULL;
        return 0;
    }
    if (strcmp(name, "Point") == 0)
        return end_point(d);
    if (strcmp(name, "Period") == 0)
        return end_period(d);
    if (strcmp(name, "TimeSeries") == 0)
        return end_series(d);
    return take_field(d, name, text);
}

static int put_prices(struct taking *t, const struct prices *d)
{
    int r = 0;
    struct source_series *now = take_series(t, GIVES_NOW, d->unit, d->issued_utc_s);
    struct source_series *ahead =
        take_series(t, GIVES_FORECAST, d->unit, d->issued_utc_s);

    for (size_t i = 0; r == 0 && i < d->n; i++) {
        struct source_point p = {d->price[i].from_utc_s, d->price[i].to_utc_s,
                                 d->price[i].v, false};
        r = take_point(t, now, &p);
        if (r == 0 && p.to_utc_s > t->now_utc_s)
            r = take_point(t, ahead, &p);
    }
    return r;
}

static int read_answer(struct taking *t)
{
    struct prices d = {.t = t};
    struct xml_reader reader = {on_begin, on_end, &d};
    int r =
        xml_read("the answer", t->a->body ? t->a->body : "", t->a->len, &reader, t->why);

    if (r == -EINVAL || r == -EFBIG)
        r = SOURCE_BAD;
    else if (r == 0 && d.acknowledged)
        r = d.no_data ? fail(t->why, SOURCE_NO_DATA, "no prices are published")
                      : fail(t->why, SOURCE_BAD, "it answers: %s",
                             d.says[0] ? d.says : "nothing");
    else if (r == 0)
        r = put_prices(t, &d);
    free(d.price);
    return r;
}

const struct source_kind kind_entsoe = {
    .type = "entsoe",
    .gives = {"price", "price.forecast"},
    .ahead = 1 << GIVES_NOW | 1 << GIVES_FORECAST,
    .must = KEY_ZONE | KEY_KEY_FILE,
    .may = KEY_URL,
    .least_s = 300,
    .usual_s = 3600,
    .steps = 1,
    .own_refusals = true,
    .url = "https://web-api.tp.entsoe.eu",
    .check = check,
    .ask = ask,
    .read = read_answer,
};
