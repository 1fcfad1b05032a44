#include "core/policy/signal.h"

#include <string.h>

int policy_signal_find(const struct policy_catalogue *c, const char *name, size_t len)
{
    for (size_t i = 0; i < c->n; i++) {
        const char *known = c->signal[i].name;
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            return (int)i;
    }
    return -1;
}

bool policy_signal_unit(const struct policy_signal *s, struct policy_unit *ret,
                        double *ret_factor)
{
    if (!s->unit) {
        *ret = (struct policy_unit){0};
        *ret_factor = 1;
        return true;
    }
    size_t len = strlen(s->unit);
    return len > 0 && policy_unit_read(s->unit, len, ret, ret_factor) == len;
}

static bool same_read(const struct policy_read *a, const struct policy_read *b)
{
    return a->signal == b->signal && a->fold == b->fold && a->percent == b->percent &&
           a->window_s == b->window_s;
}

int policy_reads_add(struct policy_reads *r, const struct policy_read *read)
{
    for (size_t i = 0; i < r->n; i++)
        if (same_read(&r->read[i], read))
            return (int)i;
    if (r->n == POLICY_READS_MAX)
        return -1;
    r->read[r->n] = *read;
    return (int)r->n++;
}
