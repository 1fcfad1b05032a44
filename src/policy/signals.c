#include "policy/signals.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "policy/signal-folds.h"
#include "policy/signal-history.h"

#define NEVER_UTC INT64_MAX
enum { AHEAD_S = 5 }; /* largest difference of clocks at one site */

/* The last value from a source; for a series, the point in force. */
struct given {
    bool has;
    struct signal_value value;
    char source[SIGNAL_SOURCE];
    bool estimated, listed;
    int64_t utc_ns, until_utc_ns;
};

struct hand {
    bool on;
    struct signal_value value;
    char by[SIGNAL_SOURCE];
    int64_t utc_ns;
    uint64_t until_ns;
};

struct entry {
    struct signal_decl decl;
    struct policy_signal shape; /* points into decl */
    double factor;              /* from its unit to W, s, … */
    struct given given;
    struct hand hand;
    struct policy_point *rows; /* a series: replaces history and forecast */
    bool *row_estimates;       /* for each row; NULL: as given.estimated */
    size_t n_rows;
    int64_t rows_end_s;
    int64_t next_utc_ns; /* start of the next point of the series */
    struct signal_history history;
    struct signal_folds folds;  /* folds of rows, else of history */
    char why[SIGNAL_WHY];       /* reason of the source's failure */
    struct signal_facts *facts; /* NULL: none */
    bool declared, had, unlisted;
    bool known; /* as reported last, and … */
    struct signal_value told;
    bool told_estimated;
    int64_t told_until_utc_ns;
};

struct signals {
    struct signals_opts opts;
    struct entry *entry[SIGNALS_MAX];
    size_t n;
};

/* The value in force now. */
struct now {
    bool known, by_hand, estimated;
    const struct signal_value *value;
    const char *source;
    int64_t utc_ns, until_utc_ns;
};

static int64_t floor_s(int64_t utc_ns)
{
    return utc_ns / (int64_t)NS_PER_S - (utc_ns % (int64_t)NS_PER_S < 0);
}

/* a + b, at most NEVER_UTC. */
static int64_t later(int64_t utc_ns, uint64_t by_ns)
{
    return by_ns >= (uint64_t)(NEVER_UTC - utc_ns) ? NEVER_UTC : utc_ns + (int64_t)by_ns;
}

static uint64_t on_loop(int64_t utc_ns, struct signal_time t)
{
    if (utc_ns == NEVER_UTC)
        return UINT64_MAX;
    return utc_ns <= t.utc_ns ? t.now_ns : t.now_ns + (uint64_t)(utc_ns - t.utc_ns);
}

static bool is_forecast(const struct entry *e)
{
    return e->shape.series == POLICY_FORECAST;
}

/* ---- entries ---- */

static void entry_free(struct entry *e)
{
    if (!e)
        return;
    free(e->rows);
    free(e->row_estimates);
    free(e->facts);
    signal_history_fini(&e->history);
    signal_folds_fini(&e->folds);
    free(e);
}

static struct entry *entry_new(const struct signal_decl *d, bool declared)
{
    struct entry *e = calloc(1, sizeof *e);
    struct policy_unit unit;

    if (!e)
        return NULL;
    e->decl = *d;
    e->declared = declared;
    e->next_utc_ns = NEVER_UTC;
    e->shape = (struct policy_signal){
        .name = e->decl.name, .type = d->type, .unit = d->unit[0] ? e->decl.unit : NULL};
    if (signal_is_forecast(d->name))
        e->shape.series = POLICY_FORECAST;
    else if (d->type == POLICY_NUMBER)
        e->shape.series = POLICY_HISTORY;
    (void)policy_signal_unit(&e->shape, &unit, &e->factor);
    return e;
}

static int find_in(struct entry *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] && strcmp(list[i]->decl.name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- declarations ---- */

struct signals_plan {
    size_t n;
    struct entry *list[SIGNALS_MAX];
};

void signals_plan_free(struct signals_plan *plan)
{
    for (size_t i = 0; plan && i < plan->n; i++)
        entry_free(plan->list[i]);
    free(plan);
}

static int add(struct signals_plan *p, const struct signal_decl *d, bool declared,
               uw_error *err)
{
    if (p->n == SIGNALS_MAX)
        return fail(err, -E2BIG, "more than %d signals", SIGNALS_MAX);
    if (!(p->list[p->n] = entry_new(d, declared)))
        return fail(err, -ENOMEM, "out of memory");
    p->n++;
    return 0;
}

/* The declared and the well-known signals. */
int signals_plan_new(const struct signal_decl *decl, size_t n, const char *currency,
                     struct signals_plan **ret, uw_error *err)
{
    auto_(signals_plan_free) struct signals_plan *p = calloc(1, sizeof *p);
    struct signal_decl d;
    int r = 0;

    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && r == 0; i++)
        r = find_in(p->list, p->n, decl[i].name) < 0
                ? add(p, &decl[i], true, err)
                : fail(err, -EINVAL, "%s is declared twice", decl[i].name);
    for (size_t i = 0; r == 0 && signal_well_known(i, currency, &d); i++)
        if (find_in(p->list, p->n, d.name) < 0)
            r = add(p, &d, false, err);
    if (r == 0)
        *ret = take(p);
    return r;
}

static bool same_quantity(const struct signal_decl *a, const struct signal_decl *b)
{
    return a->type == b->type && strcmp(a->unit, b->unit) == 0;
}

/* Moves the entries that remain out of the old ones, which become NULL there. */
static void keep_old(struct signals *s, struct entry *list[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int at = find_in(s->entry, s->n, list[i]->decl.name);
        if (at < 0 || !same_quantity(&list[i]->decl, &s->entry[at]->decl))
            continue;
        struct entry *old = take(s->entry[at]);
        old->decl = list[i]->decl;
        old->declared = list[i]->declared;
        entry_free(list[i]);
        list[i] = old;
    }
}

void signals_use(struct signals *s, struct signals_plan *plan)
{
    keep_old(s, plan->list, plan->n);
    for (size_t i = 0; i < s->n; i++)
        entry_free(s->entry[i]);
    memcpy(s->entry, plan->list, sizeof s->entry);
    s->n = plan->n;
    free(plan);
}

int signals_declare(struct signals *s, const struct signal_decl *decl, size_t n,
                    const char *currency, uw_error *err)
{
    struct signals_plan *plan = NULL;
    int r = signals_plan_new(decl, n, currency, &plan, err);

    if (plan)
        signals_use(s, plan);
    return r;
}

int signals_new(const struct signals_opts *opts, struct signals **ret)
{
    auto_(signals_free) struct signals *s = calloc(1, sizeof *s);

    if (!s)
        return -ENOMEM;
    s->opts = *opts;
    int r = signals_declare(s, NULL, 0, "EUR", NULL);
    if (r == 0)
        *ret = take(s);
    return r;
}

void signals_free(struct signals *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        entry_free(s->entry[i]);
    free(s);
}

size_t signals_count(const struct signals *s)
{
    return s->n;
}

const struct policy_signal *signals_at(const struct signals *s, size_t i)
{
    return &s->entry[i]->shape;
}

int signals_find(const struct signals *s, const char *name)
{
    return find_in(s->entry, s->n, name);
}

/* ---- the value in force ---- */

static struct now now_of(const struct entry *e, struct signal_time t)
{
    const struct given *g = &e->given;
    struct now now = {.source = g->source,
                      .estimated = g->estimated,
                      .utc_ns = g->utc_ns,
                      .until_utc_ns = g->until_utc_ns,
                      .value = is_forecast(e) ? NULL : &g->value,
                      .known = g->has && t.utc_ns < g->until_utc_ns};

    if (e->hand.on && t.now_ns < e->hand.until_ns)
        now = (struct now){.known = true,
                           .by_hand = true,
                           .value = &e->hand.value,
                           .source = e->hand.by,
                           .utc_ns = e->hand.utc_ns,
                           .until_utc_ns = later(t.utc_ns, e->hand.until_ns - t.now_ns)};
    return now;
}

static void tell(struct signals *s, enum signal_event event, size_t i)
{
    if (s->opts.on_event)
        s->opts.on_event(event, i, s->opts.user);
}

/* Adds the value to the history, from now on; a value that ended earlier ended then. */
static void remember(struct entry *e, const struct now *now, struct signal_time t)
{
    if (e->shape.series != POLICY_HISTORY)
        return;
    if (e->known && e->told_until_utc_ns < t.utc_ns)
        signal_history_add(&e->history, floor_s(e->told_until_utc_ns), (double)NAN);
    if (now->known || e->known)
        signal_history_add(&e->history, floor_s(t.utc_ns),
                           now->known ? now->value->number : (double)NAN);
}

/* Reports changes; series: there are new points. */
static void settle(struct signals *s, size_t i, bool series, struct signal_time t)
{
    struct entry *e = s->entry[i];
    struct now now = now_of(e, t);
    bool flips = now.known != e->known;
    bool differs =
        flips || series ||
        (now.known && now.value &&
         (!signal_value_same(now.value, &e->told) || now.estimated != e->told_estimated));

    remember(e, &now, t);
    if (differs)
        signal_folds_forget(&e->folds);
    e->known = now.known;
    e->had |= now.known;
    e->told_until_utc_ns = now.until_utc_ns;
    if (now.known && now.value) {
        e->told = *now.value;
        e->told_estimated = now.estimated;
    }
    if (flips)
        tell(s, now.known ? SIGNAL_KNOWN : SIGNAL_UNKNOWN, i);
    if (differs && s->opts.on_change)
        s->opts.on_change(i, s->opts.user);
}

/* ---- series ---- */

/* The index behind the last point at or before utc_s. */
static size_t rows_until(const struct entry *e, int64_t utc_s)
{
    size_t from = 0, to = e->n_rows;

    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (e->rows[mid].utc_s <= utc_s)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Makes the present point the value. */
static void follow_rows(struct entry *e, struct signal_time t)
{
    size_t k = rows_until(e, floor_s(t.utc_ns));
    int64_t next_s = k < e->n_rows ? e->rows[k].utc_s : e->rows_end_s;
    const struct policy_point *p = k ? &e->rows[k - 1] : NULL;

    e->next_utc_ns = k < e->n_rows ? next_s * (int64_t)NS_PER_S : NEVER_UTC;
    if (is_forecast(e) || !p || !isfinite(p->v))
        return;
    e->given.has = true;
    if (e->row_estimates)
        e->given.estimated = e->row_estimates[k - 1];
    e->given.value = (struct signal_value){.type = POLICY_NUMBER, .number = p->v};
    e->given.utc_ns = p->utc_s * (int64_t)NS_PER_S;
    e->given.until_utc_ns = next_s * (int64_t)NS_PER_S;
}

static void drop_rows(struct entry *e)
{
    if (e->rows)
        signal_folds_forget(&e->folds);
    free(take(e->rows));
    free(take(e->row_estimates));
    e->n_rows = 0;
    e->next_utc_ns = NEVER_UTC;
}

/* ---- sources ---- */

static int check_unit(const struct entry *e, const struct signal_put *p, double *ret,
                      uw_error *err)
{
    return signal_factor(&e->decl, p->unit ? p->unit : "", ret, err);
}

/* Converts the value to the signal's unit and checks it. */
static int check_value(const struct entry *e, const struct signal_put *p,
                       const struct signal_value *v, struct signal_value *ret,
                       uw_error *err)
{
    double factor = 1;
    int r = 0;

    if (v->type != e->decl.type)
        return fail(err, -EINVAL, "%s is %s, not %s", e->decl.name,
                    signal_type_name(e->decl.type), signal_type_name(v->type));
    if (v->type == POLICY_NUMBER)
        r = check_unit(e, p, &factor, err);
    if (r < 0)
        return r;
    *ret = *v;
    ret->number *= factor;
    if (v->type == POLICY_NUMBER && !isfinite(ret->number))
        return fail(err, -ERANGE, "%s: the value is not a finite number", e->decl.name);
    return v->type == POLICY_NUMBER ? signal_in_range(e->decl.name, ret->number, err) : 0;
}

/* The source works from now on.  Returns whether it had failed: reported once the value
 * is set.
 */
static bool took(struct signals *s, size_t i, const struct signal_put *p)
{
    struct entry *e = s->entry[i];
    bool failed = e->why[0];

    (void)snprintf(e->given.source, sizeof e->given.source, "%s", p->source);
    e->given.estimated = p->estimated;
    e->given.listed = p->listed;
    e->unlisted = false;
    e->why[0] = '\0';
    return failed;
}

int signals_put(struct signals *s, size_t i, const struct signal_put *p,
                const struct signal_value *value, struct signal_time t, uw_error *err)
{
    struct entry *e = s->entry[i];
    struct signal_value v;
    int r = is_forecast(e)
                ? fail(err, -EINVAL, "%s is a forecast: it needs a series of values",
                       e->decl.name)
                : check_value(e, p, value, &v, err);

    if (r == 0 && p->utc_ns > later(t.utc_ns, AHEAD_S * NS_PER_S))
        r = fail(err, -ERANGE, "%s: the time of the value is in the future",
                 e->decl.name);
    if (r < 0)
        return r;
    drop_rows(e);
    e->given.has = true;
    e->given.value = v;
    e->given.utc_ns = p->utc_ns;
    e->given.until_utc_ns = later(p->utc_ns, p->age_ns ? p->age_ns : e->decl.age_ns);
    bool failed = took(s, i, p);
    settle(s, i, false, t);
    if (failed)
        tell(s, SIGNAL_WORKS, i);
    return 0;
}

/* Points of a series as rows. */
struct rows {
    struct policy_point *row;
    bool *estimates; /* NULL: no point is marked as estimated */
    size_t n;
};

/* Copies the points; a point older than its age is NaN.  -ENOMEM */
static int copy_rows(const struct policy_point *point, const bool *estimates, size_t n,
                     double factor, int64_t age_s, struct rows *ret)
{
    struct rows to = {.n = 0};

    to.row = malloc((2 * n + 1) * sizeof *to.row);
    to.estimates = estimates ? calloc(2 * n + 1, sizeof *to.estimates) : NULL;
    if (!to.row || (estimates && !to.estimates)) {
        free(to.row);
        return -ENOMEM;
    }
    for (size_t k = 0; k < n; k++) {
        int64_t end_s = point[k].utc_s + age_s;
        if (estimates)
            to.estimates[to.n] = estimates[k];
        to.row[to.n++] = (struct policy_point){point[k].utc_s, point[k].v * factor};
        if (k + 1 < n && point[k + 1].utc_s > end_s)
            to.row[to.n++] = (struct policy_point){end_s, (double)NAN};
    }
    *ret = to;
    return 0;
}

int signals_put_series(struct signals *s, size_t i, const struct signal_put *p,
                       const struct policy_point *point, size_t n, struct signal_time t,
                       uw_error *err)
{
    struct entry *e = s->entry[i];
    uint64_t age_ns = p->age_ns ? p->age_ns : e->decl.age_ns;
    int64_t age_s = (int64_t)(age_ns / NS_PER_S);
    double factor = 1;
    int r = e->shape.series == POLICY_NO_SERIES
                ? fail(err, -EINVAL, "%s is %s, not a series", e->decl.name,
                       signal_type_name(e->decl.type))
                : check_unit(e, p, &factor, err);

    if (r == 0 && n > SIGNAL_POINTS)
        r = fail(err, -E2BIG, "%s: more than %d values", e->decl.name, SIGNAL_POINTS);
    for (size_t k = 0; r == 0 && k < n; k++)
        r = signal_in_range(e->decl.name, point[k].v * factor, err);
    if (r < 0)
        return r;
    struct rows rows = {.n = 0};
    if (n > 0 && copy_rows(point, p->estimates, n, factor, age_s, &rows) < 0)
        return fail(err, -ENOMEM, "out of memory");
    drop_rows(e);
    e->rows = rows.row;
    e->row_estimates = rows.estimates;
    e->n_rows = rows.n;
    e->rows_end_s = n ? point[n - 1].utc_s + age_s : floor_s(t.utc_ns);
    e->given.has = is_forecast(e) && n > 0;
    e->given.utc_ns = p->utc_ns;
    e->given.until_utc_ns = e->rows_end_s * (int64_t)NS_PER_S;
    bool failed = took(s, i, p);
    follow_rows(e, t);
    settle(s, i, true, t);
    if (failed)
        tell(s, SIGNAL_WORKS, i);
    return 0;
}

void signals_tell(struct signals *s, size_t i, const struct signal_facts *facts)
{
    struct entry *e = s->entry[i];

    /* without memory they are not shown */
    if (!e->facts && !(e->facts = malloc(sizeof *e->facts)))
        return;
    *e->facts = *facts;
}

void signals_fail(struct signals *s, size_t i, const char *source, const char *why)
{
    struct entry *e = s->entry[i];

    if (!e->given.source[0])
        (void)snprintf(e->given.source, sizeof e->given.source, "%s", source);
    if (strncmp(e->why, why, sizeof e->why - 1) == 0)
        return;
    (void)snprintf(e->why, sizeof e->why, "%s", why);
    tell(s, SIGNAL_FAILS, i);
}

void signals_unlist(struct signals *s, size_t i)
{
    struct entry *e = s->entry[i];

    e->why[0] = '\0';
    if (!e->given.listed) {
        if (!e->given.has)
            e->given.source[0] = '\0';
        return;
    }
    drop_rows(e);
    free(take(e->facts));
    e->given = (struct given){.has = false};
    e->unlisted = true;
}

/* ---- by hand ---- */

static int check_hand(const struct entry *e, const struct signal_put *p,
                      const struct signal_value *v, uint64_t for_ns, uw_error *err)
{
    if (is_forecast(e))
        return fail(err, -EINVAL, "%s is a forecast: only a file or a source can set it",
                    e->decl.name);
    if (for_ns > SIGNAL_FOR_MAX_S * NS_PER_S)
        return fail(err, -ERANGE,
                    "%g h is longer than 24 h, the limit for a value set by hand",
                    s_of_ns(for_ns) / 3600);
    if (v->type == POLICY_NUMBER && e->decl.type == POLICY_NUMBER && e->decl.unit[0] &&
        !(p->unit && p->unit[0]))
        return fail(err, -EINVAL, "%s needs its unit: '%g %s'", e->decl.name, v->number,
                    e->decl.unit);
    return 0;
}

int signals_set(struct signals *s, size_t i, const struct signal_put *p,
                const struct signal_value *value, uint64_t for_ns, struct signal_time t,
                uw_error *err)
{
    struct entry *e = s->entry[i];
    struct signal_value v;
    int r = check_hand(e, p, value, for_ns, err);

    if (r == 0)
        r = check_value(e, p, value, &v, err);
    if (r < 0)
        return r;
    e->hand =
        (struct hand){.on = true,
                      .value = v,
                      .utc_ns = t.utc_ns,
                      .until_ns = t.now_ns + (for_ns ? for_ns : SIGNAL_FOR_S * NS_PER_S)};
    (void)snprintf(e->hand.by, sizeof e->hand.by, "set by %s", p->source);
    settle(s, i, false, t);
    return 0;
}

int signals_unset(struct signals *s, size_t i, struct signal_time t, uw_error *err)
{
    struct entry *e = s->entry[i];

    if (!e->hand.on)
        return fail(err, -ENOENT, "%s is not set by hand", e->decl.name);
    e->hand.on = false;
    settle(s, i, false, t);
    return 0;
}

/* ---- time ---- */

void signals_step(struct signals *s, struct signal_time t)
{
    for (size_t i = 0; i < s->n; i++) {
        struct entry *e = s->entry[i];
        bool over = e->hand.on && t.now_ns >= e->hand.until_ns;
        if (t.utc_ns >= e->next_utc_ns)
            follow_rows(e, t);
        if (over)
            e->hand.on = false;
        if (over)
            tell(s, SIGNAL_OVER, i);
        settle(s, i, false, t);
    }
}

uint64_t signals_due(const struct signals *s, struct signal_time t)
{
    uint64_t due_ns = UINT64_MAX;

    for (size_t i = 0; i < s->n; i++) {
        const struct entry *e = s->entry[i];
        uint64_t ends[] = {
            e->hand.on ? e->hand.until_ns : UINT64_MAX,
            e->given.has && t.utc_ns < e->given.until_utc_ns
                ? on_loop(e->given.until_utc_ns, t)
                : UINT64_MAX,
            on_loop(e->next_utc_ns, t),
        };
        for (size_t k = 0; k < n_elements(ends); k++)
            due_ns = ends[k] < due_ns ? ends[k] : due_ns;
    }
    return due_ns;
}

/* ---- reading ---- */

static void read_series(struct entry *e, const struct policy_read *read,
                        struct signal_time t, struct policy_value *ret)
{
    struct now now = now_of(e, t);
    struct policy_points points = {.point = e->rows ? e->rows : e->history.point,
                                   .n = e->rows ? e->n_rows : e->history.n,
                                   .end_utc_s = e->rows ? e->rows_end_s
                                                        : floor_s(now.until_utc_ns)};
    struct policy_folded folded;

    signal_folds_read(&e->folds, &points, e->shape.series, read, floor_s(t.utc_ns),
                      &folded);
    ret->known = folded.known;
    ret->number = folded.v * e->factor;
    ret->until_ns = on_loop(folded.next_utc_s * (int64_t)NS_PER_S, t);
}

static void read_now(const struct entry *e, struct signal_time t,
                     struct policy_value *ret)
{
    struct now now = now_of(e, t);

    ret->known = now.known && now.value;
    ret->until_ns = now.known ? on_loop(now.until_utc_ns, t) : UINT64_MAX;
    if (!ret->known)
        return;
    if (e->decl.type == POLICY_NUMBER)
        ret->number = now.value->number * e->factor;
    else if (e->decl.type == POLICY_TEXT)
        ret->text = now.value->text;
    else
        ret->truth = now.value->truth;
}

void signals_read(struct signals *s, size_t i, const struct policy_read *read,
                  struct signal_time t, struct policy_value *ret)
{
    *ret = (struct policy_value){.until_ns = UINT64_MAX};
    if (read->fold == POLICY_NOW)
        read_now(s->entry[i], t, ret);
    else
        read_series(s->entry[i], read, t, ret);
}

/* ---- to show ---- */

static const char *why_of(const struct entry *e, const struct now *now)
{
    if (e->why[0] || now->known)
        return e->why;
    if (e->unlisted)
        return "the source is no longer in policy.yaml";
    return !e->given.has && !e->rows ? "no source has given a value yet"
           : is_forecast(e)          ? "the forecast has ended"
           : e->rows                 ? "the series has no value now"
                                     : "the last value is older than its age limit";
}

/* The last value of a history lasts at least until now: it may be years old. */
static int64_t points_end_s(const struct now *now, struct signal_time t)
{
    return floor_s(now->known && now->until_utc_ns != NEVER_UTC ? now->until_utc_ns
                                                                : t.utc_ns);
}

void signals_look(struct signals *s, size_t i, struct signal_time t,
                  struct signal_view *ret)
{
    const struct entry *e = s->entry[i];
    struct now now = now_of(e, t);

    *ret = (struct signal_view){.decl = &e->decl,
                                .source = now.source,
                                .value = now.known ? now.value : NULL,
                                .known = now.known,
                                .by_hand = now.by_hand,
                                .estimated = now.estimated,
                                .used = e->declared || e->had,
                                .utc_ns = now.utc_ns,
                                .point = e->rows ? e->rows : e->history.point,
                                .points = e->rows ? e->n_rows : e->history.n,
                                .is_series = e->rows,
                                .estimates = e->row_estimates,
                                .why = why_of(e, &now),
                                .facts = e->facts};
    ret->point_end_utc_s = e->rows ? e->rows_end_s : points_end_s(&now, t);
    if (now.utc_ns)
        ret->age_s = (double)(t.utc_ns - now.utc_ns) * 1e-9;
    if (now.known) {
        ret->ends_s = (double)(now.until_utc_ns - t.utc_ns) * 1e-9;
        ret->end_utc_ns = now.until_utc_ns;
    }
}
