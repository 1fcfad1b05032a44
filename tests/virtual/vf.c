#include "virtual/vf.h"

#include <math.h>

double plant_vf_dynamic(const struct plant_vf *vf, double x)
{
    double v = fmax(vf->vmin, 1 - vf->s * (1 - x));
    return x * v * v;
}

uint32_t plant_vf_clock_at(const struct plant_vf *vf, unsigned i)
{
    uint32_t down = i * vf->sm_step_mhz;

    return vf->sm_max_mhz - vf->sm_min_mhz >= down ? vf->sm_max_mhz - down : 0;
}

static double part_s(const struct plant_vf_part *p, double x)
{
    return p->tc_s / x + p->tm_s;
}

static double part_w(const struct plant_vf *vf, const struct plant_vf_part *p, double x)
{
    return vf->ps_w + p->mem_w + p->d_w * plant_vf_dynamic(vf, x);
}

/* Mean power of parts [from, until) at one clock. */
static double mean_w(const struct plant_vf *vf, unsigned from, unsigned until, double x)
{
    double s = 0, j = 0;

    for (unsigned i = from; i < until; i++) {
        s += part_s(&vf->part[i], x);
        j += part_s(&vf->part[i], x) * part_w(vf, &vf->part[i], x);
    }
    return s > 0 ? j / s : 0;
}

/* The highest clock of these parts up to `most` that keeps the limit. */
static double clock_of(const struct plant_vf *vf, unsigned from, unsigned until,
                       double limit_w, double most)
{
    double least = (double)vf->sm_min_mhz / vf->sm_max_mhz;

    if (mean_w(vf, from, until, most) <= limit_w)
        return most;
    for (int k = 0; k < 50; k++) {
        double x = (least + most) / 2;
        if (mean_w(vf, from, until, x) <= limit_w)
            least = x;
        else
            most = x;
    }
    return least;
}

struct plant_steady plant_vf_step(const struct plant_vf *vf, double cap_w,
                                  uint32_t lock_mhz)
{
    struct plant_steady r = {.time_s = vf->gap_s, .energy_j = vf->gap_s * vf->gap_w};
    double most =
        lock_mhz && lock_mhz < vf->sm_max_mhz ? (double)lock_mhz / vf->sm_max_mhz : 1;
    double limit_w = cap_w > 0 ? vf->eta * cap_w : HUGE_VAL;
    double busy_j = 0;

    for (unsigned i = 0; i < vf->n_parts; i++) {
        double x = vf->slow ? clock_of(vf, i, i + 1, limit_w, most)
                            : clock_of(vf, 0, vf->n_parts, limit_w, most);
        double s = part_s(&vf->part[i], x);
        r.active_s += s;
        r.x += x * s;
        busy_j += s * part_w(vf, &vf->part[i], x);
    }
    r.x /= r.active_s;
    r.active_w = busy_j / r.active_s;
    r.time_s += r.active_s;
    r.energy_j += busy_j;
    r.power_w = r.energy_j / r.time_s;
    return r;
}
