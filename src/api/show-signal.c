/* Signals from outside as JSON. */
#include "api/show.h"
#include "base/units.h"

static void show_held(struct json_out *o, const struct signal_view *s)
{
    const struct signal_value *v = s->value;

    if (!v)
        json_out_null(o, "value");
    else if (v->type == POLICY_NUMBER)
        json_out_double(o, "value", v->number);
    else if (v->type == POLICY_TEXT)
        json_out_text(o, "value", v->text);
    else
        json_out_bool(o, "value", v->truth);
}

void show_signal(struct json_out *o, const struct signal_view *s)
{
    static const char *const types[] = {
        [POLICY_NUMBER] = "number", [POLICY_TEXT] = "text", [POLICY_TRUTH] = "truth"};

    json_out_object(o, NULL);
    json_out_text(o, "name", s->decl->name);
    json_out_text(o, "type", types[s->decl->type]);
    json_out_text(o, "unit", s->decl->unit);
    show_held(o, s);
    json_out_bool(o, "known", s->known);
    json_out_bool(o, "by_hand", s->by_hand);
    json_out_text(o, "source", s->source);
    if (s->utc_ns)
        show_utc(o, "time_utc", s->utc_ns);
    else
        json_out_null(o, "time_utc");
    json_out_known_double(o, "age_s", s->utc_ns != 0, s->age_s);
    json_out_double(o, "age_limit_s", s_of_ns(s->decl->age_ns));
    json_out_known_double(o, "ends_s", s->known, s->ends_s);
    json_out_int(o, "points", (int64_t)s->points);
    json_out_text(o, "why", s->why);
    json_out_end(o);
}
