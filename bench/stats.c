#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double quantile_of(const double *v, size_t n, double share)
{
    double at = share * (double)(n - 1);
    size_t k = (size_t)at;
    return k + 1 < n ? v[k] + (at - (double)k) * (v[k + 1] - v[k]) : v[n - 1];
}

struct stats stats_of(double *v, size_t n)
{
    struct stats s = {0};

    qsort(v, n, sizeof *v, ascending);
    for (size_t i = 0; i < n; i++)
        s.mean += v[i] / (double)n;
    s.p95 = quantile_of(v, n, 0.95);
    s.max = v[n - 1];
    return s;
}

void stats_json(FILE *f, const struct stats *s)
{
    (void)fprintf(f, "{\"mean\":%.9g,\"p95\":%.9g,\"max\":%.9g}", s->mean, s->p95,
                  s->max);
}

void text_json(FILE *f, const char *text)
{
    (void)fputc('"', f);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            (void)fprintf(f, "\\%c", c);
        else if (c < 0x20)
            (void)fprintf(f, "\\u%04x", c);
        else
            (void)fputc(c, f);
    }
    (void)fputc('"', f);
}
