/* Signals from outside as JSON. */
#include <math.h>

#include "api/show.h"
#include "base/units.h"
#include "signal/facts.h"

static void show_held(struct json_out *o, const struct signal_view *s)
{
    const struct signal_value *v = s->value;

    if (!v)
        json_out_null(o, "value");
    else if (v->type == POLICY_NUMBER)
        json_out_given(o, "value", v->number);
    else if (v->type == POLICY_TEXT)
        json_out_text(o, "value", v->text);
    else
        json_out_bool(o, "value", v->truth);
}

static void show_known_utc(struct json_out *o, const char *key, int64_t utc_ns)
{
    if (utc_ns)
        show_utc(o, key, utc_ns);
    else
        json_out_null(o, key);
}

/* Only known points. */
static void show_points(struct json_out *o, const struct signal_view *s)
{
    json_out_array(o, "series");
    for (size_t i = 0; i < s->points; i++) {
        const struct policy_point *p = &s->point[i];
        int64_t end_s = i + 1 < s->points ? p[1].utc_s : s->point_end_utc_s;
        if (isnan(p->v) || end_s <= p->utc_s)
            continue;
        json_out_object(o, NULL);
        show_utc(o, "begin_utc", p->utc_s * (int64_t)NS_PER_S);
        show_utc(o, "end_utc", end_s * (int64_t)NS_PER_S);
        json_out_given(o, "value", p->v);
        json_out_end(o);
    }
    json_out_end(o);
}

void show_signal(struct json_out *o, const struct signal_view *s, bool series)
{
    static const char *const types[] = {
        [POLICY_NUMBER] = "number", [POLICY_TEXT] = "text", [POLICY_TRUTH] = "truth"};
    static const struct signal_facts none;

    json_out_object(o, NULL);
    json_out_text(o, "name", s->decl->name);
    json_out_text(o, "type", types[s->decl->type]);
    json_out_text(o, "unit", s->decl->unit);
    show_held(o, s);
    json_out_bool(o, "known", s->known);
    json_out_bool(o, "by_hand", s->by_hand);
    json_out_text(o, "source", s->source);
    show_known_utc(o, "time_utc", s->utc_ns);
    show_known_utc(o, "end_utc", s->end_utc_ns);
    json_out_known_double(o, "age_s", s->utc_ns != 0, s->age_s);
    json_out_double(o, "age_limit_s", s_of_ns(s->decl->age_ns));
    json_out_known_double(o, "ends_s", s->known, s->ends_s);
    if (s->known)
        json_out_bool(o, "estimated", s->estimated);
    else
        json_out_null(o, "estimated");
    json_out_int(o, "points", (int64_t)s->points);
    json_out_text(o, "why", s->why);
    show_known_utc(o, "issued_utc",
                   s->facts ? s->facts->issued_utc_s * (int64_t)NS_PER_S : 0);
    facts_show(o, s->facts ? s->facts : &none);
    if (series)
        show_points(o, s);
    json_out_end(o);
}
