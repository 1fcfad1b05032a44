#include <errno.h>

#include "base/error.h"
#include "cli/view.h"

int view_csv(const struct view *v, FILE *to, uw_error *err)
{
    const struct sweep *s = v->sweep;
    const struct sweep_point *ref = &s->point[s->ref];

    (void)fputs("cap_mw,runs,time_s,time_sd_s,energy_j,energy_sd_j,power_w,power_sd_w,"
                "time_rel,energy_rel,edp_rel,eds2,eds1_5,pareto,reference,simulated\n",
                to);
    for (size_t i = 0; i < s->n; i++) {
        const struct sweep_point *p = &s->point[i];
        (void)fprintf(to, "%u,%u,%.9g,%.6g,%.9g,%.6g,%.9g,%.6g,%.9g,%.9g", p->cap_mw,
                      p->runs, p->time_s, p->time_sd_s, p->energy_j, p->energy_sd_j,
                      p->power_w, p->power_sd_w, p->time_s / ref->time_s,
                      p->energy_j / ref->energy_j);
        for (size_t g = 1; g < SWEEP_METRICS; g++)
            (void)fprintf(to, ",%.9g", sweep_value(s, &s->optimum[g].goal, i));
        (void)fprintf(to, ",%d,%d,%d\n", p->pareto, i == s->ref, v->simulated);
    }
    return ferror(to) ? fail(err, -EIO, "cannot write the CSV") : 0;
}
