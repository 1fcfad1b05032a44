#include <math.h>

#include "base/units.h"
#include "plant/state.h"

double wave_energy_j(const struct wave *wave, double pos)
{
    double sum = 0, from = 0;

    for (unsigned i = 0; i < wave->n && from < pos; i++) {
        double to = wave->until[i] < pos ? wave->until[i] : pos;
        sum += wave->w[i] * (to - from);
        from = to;
    }
    return sum * wave->step_s;
}

void wave_finish(struct wave *wave)
{
    double sum = 0;

    for (unsigned i = 0; i < wave->n; i++)
        sum += wave->until[i];
    wave->step_s = sum;
    double end = 0, mean_w = 0, from = 0;
    for (unsigned i = 0; i < wave->n; i++) {
        end += wave->until[i] / sum;
        wave->until[i] = i + 1 == wave->n ? 1 : end;
        mean_w += wave->w[i] * (wave->until[i] - from);
        from = wave->until[i];
    }
    wave->step_j = mean_w * sum;
}

double segment_energy_j(const struct segment *s, uint64_t at_ns)
{
    double dt = s_between(s->start_ns, at_ns);

    if (s->rate <= 0)
        return s->start_j + s->wave.w[0] * dt;
    double pos = s->start_pos + s->rate * dt;
    double whole = floor(pos);
    return s->start_j + s->wave.step_j * whole + wave_energy_j(&s->wave, pos - whole) -
           s->step_to_j;
}

double segment_power_w(const struct segment *s, uint64_t at_ns)
{
    if (s->rate <= 0)
        return s->wave.w[0];
    double pos = s->start_pos + s->rate * s_between(s->start_ns, at_ns);
    pos -= floor(pos);
    unsigned i = 0;
    while (i + 1 < s->wave.n && s->wave.until[i] <= pos)
        i++;
    return s->wave.w[i];
}

double segment_temp_c(const struct segment *s, uint64_t at_ns, double tau_s)
{
    return s->target_c +
           (s->start_c - s->target_c) * exp(-s_between(s->start_ns, at_ns) / tau_s);
}
