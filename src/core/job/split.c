#include "core/job/split.h"

#include <math.h>

#include "base/auto.h"

static enum split_method choose(const struct split_user *user, size_t n)
{
    size_t jobs = 0;
    bool known = true, used = false;

    for (size_t i = 0; i < n; i++) {
        jobs += user[i].job != 0;
        known &= user[i].use_known && isfinite(user[i].use_s) && user[i].use_s >= 0;
        used |= user[i].use_s > 0;
    }
    if (n == 0)
        return SPLIT_IDLE;
    if (jobs == 0)
        return SPLIT_UNATTRIBUTED;
    if (n == 1)
        return SPLIT_SOLE;
    return known && used ? SPLIT_USE : SPLIT_EQUAL;
}

static double weight(const struct split_user *u, enum split_method method)
{
    return method == SPLIT_USE ? u->use_s : 1;
}

/* Splits energy_j by weight; returns the unattributed part. */
static double share_out(const struct split_user *user, size_t n, enum split_method method,
                        double energy_j, struct split_share *share)
{
    double sum = 0, given = 0;
    size_t last = 0, outsiders = 0;

    for (size_t i = 0; i < n; i++)
        sum += weight(&user[i], method);
    if (!(sum > 0))
        return energy_j;
    for (size_t i = 0; i < n; i++) {
        double part = energy_j * (weight(&user[i], method) / sum);
        if (user[i].job == 0) {
            outsiders++;
            continue;
        }
        share[i].energy_j = fmin(part, fmax(energy_j - given, 0));
        given += share[i].energy_j;
        if (part > 0)
            last = i;
    }
    if (outsiders == 0) { /* the last share takes the rounding error */
        share[last].energy_j += fmax(energy_j - given, 0);
        return 0;
    }
    return fmax(energy_j - given, 0);
}

void split_energy(const struct split_user *user, size_t n, double energy_j,
                  struct split_share *share, struct split *ret)
{
    struct split s = {.method = choose(user, n)};

    for (size_t i = 0; i < n; i++)
        share[i] = (struct split_share){.job = user[i].job};
    if (s.method == SPLIT_IDLE)
        s.idle_j = energy_j;
    else if (s.method == SPLIT_UNATTRIBUTED)
        s.unattributed_j = energy_j;
    else
        s.unattributed_j = share_out(user, n, s.method, energy_j, share);
    *ret = s;
}
