#include "core/meter/mean.h"

#include <string.h>

#define LEAST_S 0.9 /* far above a counter's update period of 20 to 100 ms */

void mean_reading(struct mean_power *m, double power_w)
{
    if (!(power_w >= 0))
        return;
    m->sum_w += power_w;
    m->n_readings++;
}

/* Mean since the newest mark that is old enough; false: no such mark, or the counter was
 * reset or is stuck.
 */
static bool by_counter(struct mean_power *m, uint64_t counter_mj, uint64_t at_ns,
                       double *ret_w)
{
    for (unsigned i = 0; i < m->n; i++) {
        double dt = (double)(int64_t)(at_ns - m->mark[i].at_ns) * 1e-9;
        if (dt < LEAST_S)
            continue;
        if (counter_mj <= m->mark[i].counter_mj) {
            m->n = 0; /* reset, or stuck */
            return false;
        }
        *ret_w = (double)(counter_mj - m->mark[i].counter_mj) * 1e-3 / dt;
        return true;
    }
    return false;
}

void mean_tick(struct mean_power *m, bool has_counter, uint64_t counter_mj,
               uint64_t at_ns)
{
    double w = 0;
    bool counted = has_counter && by_counter(m, counter_mj, at_ns, &w);

    if (!counted && m->n_readings > 0)
        w = m->sum_w / m->n_readings;
    if (counted || m->n_readings > 0) {
        m->w = w;
        m->w_ns = at_ns;
    }
    m->sum_w = 0;
    m->n_readings = 0;
    if (!has_counter || (m->n > 0 && m->mark[0].at_ns == at_ns))
        return;
    memmove(&m->mark[1], &m->mark[0], (MEAN_MARKS - 1) * sizeof m->mark[0]);
    m->mark[0].at_ns = at_ns;
    m->mark[0].counter_mj = counter_mj;
    m->n = m->n < MEAN_MARKS ? m->n + 1 : MEAN_MARKS;
}

bool mean_known(const struct mean_power *m, uint64_t since_ns, double *ret_w)
{
    if (m->w_ns == 0 || m->w_ns < since_ns)
        return false;
    *ret_w = m->w;
    return true;
}
