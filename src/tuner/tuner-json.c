#include "tuner/tuner-json.h"

#include <math.h>

#include "base/names.h"

void tuner_progress_json(const struct tuner_report *r, struct json_out *o)
{
    bool known = r->period_s > 0;

    json_out_text(o, "progress", names_word(NAMES_PROGRESS, r->by));
    json_out_double(o, "period_s", known ? r->period_s : NAN);
    json_out_double(o, "period_confidence", known ? r->confidence : NAN);
    json_out_text(o, "period_unknown", r->unknown[0] ? r->unknown : NULL);
    json_out_double(o, "busy", r->busy);
}

void tuner_caps_json(const struct tuner_report *r, struct json_out *o)
{
    json_out_array(o, "caps");
    for (size_t i = 0; i < r->n_caps; i++) {
        const struct savings_mean *m = &r->cap[i].mean;
        json_out_object(o, NULL);
        json_out_int(o, "cap_mw", r->cap[i].cap_mw);
        json_out_int(o, "windows", m->windows);
        json_out_double(o, "step_s", savings_mean_time(m));
        json_out_double(o, "step_j", savings_mean_energy(m));
        json_out_double(o, "step_s_rse", savings_mean_time_rse(m));
        json_out_double(o, "step_j_rse", savings_mean_energy_rse(m));
        json_out_double(o, "value", r->cap[i].value.v);
        json_out_double(o, "value_rse", r->cap[i].value.rse);
        json_out_end(o);
    }
    json_out_end(o);
}
