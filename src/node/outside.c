#include "node/outside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "node/forecasts.h"
#include "node/rights.h"
#include "policy/signal-files.h"

enum { STEP_S = 60 }; /* longest time until a changed clock is noticed */

struct outside {
    struct loop *loop;
    struct ledger_writer *writer;
    struct signals *signals;
    struct signal_files *files;  /* NULL: none */
    struct forecasts *forecasts; /* NULL: there was no file yet */
    struct loop_timer *timer;
    void (*changed)(void *user);
    void *user;
    struct signal_view view[SIGNALS_MAX];
};

static struct signal_time time_of(const struct outside *o)
{
    return (struct signal_time){loop_now_ns(o->loop), loop_utc_ns(o->loop)};
}

/* ---- the audit trail ---- */

/* The value as text; "unknown". */
static const char *value_text(const struct signal_view *v, char ret[SIGNAL_SHOWN])
{
    if (v->value)
        return signal_value_show(v->value, v->decl->unit, ret);
    (void)snprintf(ret, SIGNAL_SHOWN, "%s", v->known ? "a forecast" : "unknown");
    return ret;
}

static void log_signal(enum log_level level, enum signal_event event,
                       const struct signal_view *v)
{
    char value[SIGNAL_SHOWN];

    log_event(level, LOG_EVENT_SIGNAL, "name=%s state=%s value=%s source=%s reason=%s",
              v->decl->name, names_word(NAMES_SIGNAL_EVENT, event),
              log_quote(value_text(v, value)).text, log_quote(v->source).text,
              log_quote(v->why).text);
}

static void book(struct outside *o, enum ledger_word kind, uid_t uid,
                 const struct signal_view *v, const char *how)
{
    char text[SIGNAL_NAME + SIGNAL_SHOWN + SIGNAL_SOURCE + SIGNAL_WHY + 8];
    char value[SIGNAL_SHOWN];

    (void)snprintf(text, sizeof text, "%s: %s, %s", v->decl->name, value_text(v, value),
                   how);
    ledger_writer_event(o->writer, kind, SIZE_MAX, uid, text);
}

static void on_event(enum signal_event event, size_t i, void *user)
{
    struct outside *o = user;
    struct signal_view v;

    signals_look(o->signals, i, time_of(o), &v);
    log_signal(event == SIGNAL_FAILS || event == SIGNAL_UNKNOWN ? LOG_LEVEL_WARNING
                                                                : LOG_LEVEL_NOTICE,
               event, &v);
    if (event == SIGNAL_OVER)
        book(o, LEDGER_EVENT_SIGNAL_END, (uid_t)-1, &v, "expired");
    else if (event == SIGNAL_UNKNOWN)
        book(o, LEDGER_EVENT_SIGNAL_UNKNOWN, (uid_t)-1, &v, v.why);
    else if (event == SIGNAL_KNOWN && !v.by_hand)
        book(o, LEDGER_EVENT_SIGNAL_KNOWN, (uid_t)-1, &v, v.source);
}

/* ---- factors of energy ---- */

static void tell_factor(struct outside *o, size_t i)
{
    struct signal_view v;

    signals_look(o->signals, i, time_of(o), &v);
    ledger_writer_signal(o->writer, &v);
}

void outside_tick(struct outside *o)
{
    static const char *const names[] = {"carbon", "carbon.marginal", "price"};

    for (size_t i = 0; i < n_elements(names); i++) {
        int at = signals_find(o->signals, names[i]);
        if (at >= 0)
            tell_factor(o, (size_t)at);
    }
}

static void on_change(size_t i, void *user)
{
    struct outside *o = user;

    tell_factor(o, i);
    o->changed(o->user);
}

/* ---- time ---- */

static void rearm(struct outside *o)
{
    struct signal_time t = time_of(o);
    uint64_t due_ns = signals_due(o->signals, t), most_ns = t.now_ns + STEP_S * NS_PER_S;

    loop_timer_set(o->timer, due_ns == UINT64_MAX || due_ns < most_ns ? due_ns : most_ns,
                   0);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct outside *o = user;
    (void)timer;
    (void)now_ns;

    signals_step(o->signals, time_of(o));
    rearm(o);
    return 0;
}

static void on_files(void *user)
{
    rearm(user);
}

/* ---- sources ---- */

struct outside_plan {
    struct signals_plan *signals;
    struct signal_files *files;
    struct forecasts *forecasts; /* NULL: none, or it exists already */
};

void outside_plan_free(struct outside_plan *plan)
{
    if (!plan)
        return;
    signals_plan_free(plan->signals);
    signal_files_free(plan->files);
    forecasts_free(plan->forecasts);
    free(plan);
}

static void on_values(const struct signal_values *v, void *user)
{
    const struct outside *o = user;

    ledger_writer_values(o->writer, v);
}

static int declare(const struct signal_sources *sources, struct signals_plan **ret,
                   uw_error *err)
{
    struct signal_decl *decl = calloc(sources->n + 1, sizeof *decl);

    if (!decl)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < sources->n; i++)
        decl[i] = sources->source[i].decl;
    int r = signals_plan_new(decl, sources->n, sources->currency, ret, err);
    free(decl);
    return r;
}

static bool has_file_forecast(const struct signal_sources *sources)
{
    for (size_t i = 0; i < sources->n; i++)
        if (sources->source[i].file[0] &&
            signal_is_forecast(sources->source[i].decl.name))
            return true;
    return false;
}

static int plan_forecasts(struct outside *o, const struct signal_sources *sources,
                          struct outside_plan *p, uw_error *err)
{
    char folder[CONFIG_PATH];

    if (o->forecasts || !has_file_forecast(sources))
        return 0;
    ledger_writer_folder(o->writer, folder, sizeof folder);
    return forecasts_new(o->loop, o->signals, folder, &p->forecasts, err);
}

int outside_plan_new(struct outside *o, const struct signal_sources *sources,
                     struct outside_plan **ret, uw_error *err)
{
    auto_(outside_plan_free) struct outside_plan *p = calloc(1, sizeof *p);

    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    int r = declare(sources, &p->signals, err);
    if (r == 0)
        r = signal_files_new(o->loop, o->signals, sources, on_files, o, &p->files, err);
    if (r == 0)
        r = plan_forecasts(o, sources, p, err);
    if (r == 0) {
        signal_files_hear(p->files, on_values);
        *ret = take(p);
    }
    return r;
}

void outside_use(struct outside *o, struct outside_plan *plan)
{
    if (!plan)
        return;
    signal_files_free(o->files); /* it has indices of the old declarations */
    o->files = take(plan->files);
    signals_use(o->signals, take(plan->signals));
    signal_files_begin(o->files);
    if (plan->forecasts)
        o->forecasts = take(plan->forecasts);
    if (o->forecasts)
        forecasts_use(o->forecasts, o->files);
    outside_plan_free(plan);
    outside_tick(o); /* prices may have another currency */
    loop_timer_set(o->timer, loop_now_ns(o->loop), 0); /* sources may have been removed */
}

/* Whether values of one signal are valid for the other. */
static bool is_same_kind(const struct policy_signal *a, const struct policy_signal *b)
{
    struct policy_unit of_a, of_b;
    double factor;

    if (a->type != b->type || !a->unit != !b->unit)
        return false;
    return !a->unit || strcmp(a->unit, b->unit) == 0 ||
           (policy_signal_unit(a, &of_a, &factor) &&
            policy_signal_unit(b, &of_b, &factor) && policy_unit_same(&of_a, &of_b));
}

void outside_read(const struct outside *o, const struct policy_signal *signal,
                  const struct policy_read *read, struct policy_value *ret)
{
    int at = signals_find(o->signals, signal->name);

    if (at >= 0 && is_same_kind(signals_at(o->signals, (size_t)at), signal))
        signals_read(o->signals, (size_t)at, read, time_of(o), ret);
}

/* ---- by hand ---- */

static int find(const struct outside *o, const char *name, size_t *ret, uw_error *err)
{
    int at = signals_find(o->signals, name);
    struct nearest near = {0};
    char hint[NEAREST_TEXT];

    for (size_t i = 0; at < 0 && i < signals_count(o->signals); i++)
        nearest_try(&near, name, strlen(name), signals_at(o->signals, i)->name);
    if (at < 0)
        return fail(err, -EINVAL,
                    "there is no signal '%.63s'%s (`signals` of policy.yaml declares "
                    "others)",
                    utf8_is_plain(name) ? name : "?", nearest_text(&near, hint));
    *ret = (size_t)at;
    return 0;
}

/* Stores a value from a program that watches the source: the ledger has no row for each
 * value.
 */
static int give(struct outside *o, size_t i, const struct node_signal *ask, uw_error *err)
{
    struct signal_time t = time_of(o);
    const struct signal_put p = {.unit = ask->unit,
                                 .source = ask->source,
                                 .utc_ns = t.utc_ns,
                                 .age_ns = ask->for_ns};

    if (ask->for_ns > SIGNAL_FOR_MAX_S * NS_PER_S)
        return fail(err, -ERANGE, "a value holds for %d h at most",
                    SIGNAL_FOR_MAX_S / 3600);
    int r = signals_put(o->signals, i, &p, &ask->value, t, err);
    if (r == 0)
        rearm(o);
    return r;
}

int outside_set(struct outside *o, const struct node_who *who, const char *name,
                const struct node_signal *ask, uw_error *err)
{
    struct signal_put p = {.unit = ask->unit, .source = rights_name(who)};
    struct signal_view v;
    char how[SIGNAL_SOURCE];
    size_t i = 0;
    int r = find(o, name, &i, err);

    if (r == 0 && ask->source && ask->source[0])
        return give(o, i, ask, err);
    if (r == 0)
        r = signals_set(o->signals, i, &p, &ask->value, ask->for_ns, time_of(o), err);
    if (r < 0)
        return r;
    signals_look(o->signals, i, time_of(o), &v);
    (void)snprintf(how, sizeof how, "set by %.100s for %.0f s", rights_name(who),
                   v.ends_s);
    log_signal(LOG_LEVEL_NOTICE, SIGNAL_SET, &v);
    book(o, LEDGER_EVENT_SIGNAL_SET, who->uid, &v, how);
    rearm(o);
    return 0;
}

int outside_unset(struct outside *o, const struct node_who *who, const char *name,
                  uw_error *err)
{
    struct signal_view v;
    char how[SIGNAL_SOURCE];
    size_t i = 0;
    int r = find(o, name, &i, err);

    if (r == 0)
        r = signals_unset(o->signals, i, time_of(o), err);
    if (r < 0)
        return r;
    signals_look(o->signals, i, time_of(o), &v);
    (void)snprintf(how, sizeof how, "unset by %.100s", rights_name(who));
    log_signal(LOG_LEVEL_NOTICE, SIGNAL_UNSET, &v);
    book(o, LEDGER_EVENT_SIGNAL_END, who->uid, &v, how);
    rearm(o);
    return 0;
}

const struct signal_view *outside_look(struct outside *o, size_t *ret_n)
{
    struct signal_time t = time_of(o);

    *ret_n = signals_count(o->signals);
    for (size_t i = 0; i < *ret_n; i++)
        signals_look(o->signals, i, t, &o->view[i]);
    return o->view;
}

/* ---- life ---- */

int outside_new(struct loop *loop, struct ledger_writer *writer,
                void (*changed)(void *user), void *user, struct outside **ret,
                uw_error *err)
{
    auto_(outside_free) struct outside *o = calloc(1, sizeof *o);
    const struct signals_opts opts = {
        .on_change = on_change, .on_event = on_event, .user = o};

    if (!o)
        return fail(err, -ENOMEM, "out of memory");
    o->loop = loop;
    o->writer = writer;
    o->changed = changed;
    o->user = user;
    int r = signals_new(&opts, &o->signals);
    if (r < 0)
        return fail(err, r, "out of memory");
    r = loop_timer_new(loop, UINT64_MAX, 0, on_timer, o, &o->timer, err);
    if (r == 0)
        *ret = take(o);
    return r;
}

void outside_free(struct outside *o)
{
    if (!o)
        return;
    forecasts_free(o->forecasts);
    signal_files_free(o->files);
    loop_timer_free(o->timer);
    signals_free(o->signals);
    free(o);
}
