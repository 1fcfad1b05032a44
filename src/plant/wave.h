/* Power within a step and within a segment; inline, as an event is hardly more than this.
 */
#ifndef PLANT_WAVE_H
#define PLANT_WAVE_H

#include <stdint.h>

#include "base/units.h"

enum { PIECES = 5 };

/* Power over the course of a step; one piece if nothing runs. */
struct wave {
    unsigned n;
    double until_s[PIECES]; /* time in the step at which the piece ends */
    double w[PIECES];
    double step_s, step_j;
};

/* A span of time in which power and temperature are closed-form. */
struct segment {
    uint64_t start_ns;
    double start_j;   /* true energy since the board's start */
    double start_pos; /* position in a step, [0, 1) */
    double step_to_j; /* energy of a step up to start_pos */
    double rate;      /* steps a second; 0 not running */
    struct wave wave;
    double start_c, target_c; /* temperature, and its steady value */
};

/* fmin() and fmax() without their rule for NaN, which costs a call. */
static inline double lesser(double a, double b)
{
    return a < b ? a : b;
}

static inline double greater(double a, double b)
{
    return a > b ? a : b;
}

/* The whole part of a position, which is never negative: floor() costs a call. */
static inline double whole_of(double pos)
{
    return (double)(int64_t)pos;
}

static inline void wave_add(struct wave *wave, double s, double w)
{
    wave->step_s += s;
    wave->step_j += s * w;
    wave->until_s[wave->n] = wave->step_s;
    wave->w[wave->n++] = w;
}

/* Of the first s seconds of a step. */
static inline double wave_energy_j(const struct wave *wave, double s)
{
    double sum = 0, from = 0;

    for (unsigned i = 0; i < wave->n; i++) {
        double to = lesser(wave->until_s[i], s);
        sum += wave->w[i] * greater(0, to - from);
        from = to;
    }
    return sum;
}

static inline double segment_energy_j(const struct segment *s, uint64_t at_ns)
{
    double dt = s_between(s->start_ns, at_ns);

    if (s->rate <= 0)
        return s->start_j + s->wave.w[0] * dt;
    double pos = s->start_pos + s->rate * dt;
    double whole = whole_of(pos);
    return s->start_j + s->wave.step_j * whole +
           wave_energy_j(&s->wave, (pos - whole) * s->wave.step_s) - s->step_to_j;
}

static inline double segment_power_w(const struct segment *s, uint64_t at_ns)
{
    if (s->rate <= 0)
        return s->wave.w[0];
    double pos = s->start_pos + s->rate * s_between(s->start_ns, at_ns);
    double in_s = (pos - whole_of(pos)) * s->wave.step_s;
    unsigned i = 0;
    while (i + 1 < s->wave.n && s->wave.until_s[i] <= in_s)
        i++;
    return s->wave.w[i];
}

#endif
