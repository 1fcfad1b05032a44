#include "priorfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

/* Parses "name v v v …" with exactly n numbers. */
static int take_row(char *line, const char *name, double *v, int n, uw_error *err)
{
    char *word = strsep(&line, " \n");
    if (strcmp(word, name) != 0)
        return fail(err, -EINVAL, "'%.20s' where '%s' should stand", word, name);
    for (int i = 0; i < n; i++) {
        word = strsep(&line, " \n");
        int r = word ? parse_double(word, &v[i], err)
                     : fail(err, -EINVAL, "%s: %d numbers, not %d", name, i, n);
        if (r < 0)
            return r;
    }
    return 0;
}

int prior_read(const char *path, struct prior *ret, uw_error *err)
{
    auto_(file_close) FILE *f = fopen(path, "re");
    auto_(mem_free) char *line = NULL;
    size_t size = 0;
    double scale[2][4];
    struct prior p;
    const struct {
        const char *name;
        double *v;
        int n;
    } rows[] = {
        {"mean", p.t.mean, PRIOR_MEANS},
        {"log_amp", p.t.log_amp, PRIOR_AMPS},
        {"scales", scale[0], 4},
        {"rough", p.t.rough, PRIOR_ROUGHS},
        {"weight", p.t.weight, PRIOR_ROUGHS},
        {"mean", p.p.mean, PRIOR_MEANS},
        {"log_amp", p.p.log_amp, PRIOR_AMPS},
        {"scales", scale[1], 4},
        {"rough", p.p.rough, PRIOR_ROUGHS},
        {"weight", p.p.weight, PRIOR_ROUGHS},
    };

    if (!f)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    for (size_t i = 0; i < n_elements(rows); i++) {
        if (getline(&line, &size, f) < 0)
            return fail(err, -EINVAL, "%s:%zu: no '%s'", path, i + 1, rows[i].name);
        int r = take_row(line, rows[i].name, rows[i].v, rows[i].n, err);
        if (r < 0)
            return fail_in(err, r, "%s:%zu", path, i + 1);
    }
    for (int i = 0; i < 2; i++) {
        struct prior_side *s = i ? &p.p : &p.t;
        s->len_long = scale[i][0];
        s->len_mid = scale[i][1];
        s->len_short = scale[i][2];
        s->share = scale[i][3];
    }
    *ret = p;
    return 0;
}
