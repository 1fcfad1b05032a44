#include "tracefile.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"

enum column {
    COL_TIME,
    COL_POWER,
    COL_SM,
    COL_MEM,
    COL_MHZ,
    COL_ENERGY,
    COLUMNS,
    FIELDS_MAX = 64
};

static const char *const column_names[COLUMNS] = {"t_s",      "power_w", "sm_util",
                                                  "mem_util", "sm_mhz",  "energy_j"};
#define MOST_S 1e10 /* as seconds since 1970 too */

struct header {
    enum column of[FIELDS_MAX]; /* COLUMNS: ignored */
    size_t n;
};

void tracefile_fini(struct tracefile *t)
{
    free(t->name);
    free(t->items);
    *t = (struct tracefile){0};
}

static int read_header(char *line, struct header *ret, uw_error *err)
{
    bool seen[COLUMNS] = {0};
    char *field;

    while ((field = strsep(&line, ","))) {
        if (ret->n == FIELDS_MAX)
            return fail(err, -E2BIG, "more than %d columns", FIELDS_MAX);
        enum column c = 0;
        while (c < COLUMNS && strcmp(field, column_names[c]) != 0)
            c++;
        if (c < COLUMNS && seen[c])
            return fail(err, -EINVAL, "column %s is given twice", field);
        if (c < COLUMNS)
            seen[c] = true;
        ret->of[ret->n++] = c;
    }
    for (enum column c = 0; c <= COL_POWER; c++)
        if (!seen[c])
            return fail(err, -EINVAL, "no column %s in the header", column_names[c]);
    return 0;
}

static int read_fields(char *line, const struct header *h, double v[COLUMNS],
                       uw_error *err)
{
    size_t n = 0;
    char *field;

    for (int c = 0; c < COLUMNS; c++)
        v[c] = NAN;
    for (; (field = strsep(&line, ",")); n++) {
        if (n == h->n)
            return fail(err, -EINVAL, "more fields than the header's %zu", h->n);
        enum column c = h->of[n];
        if (c == COLUMNS || field[0] == '\0')
            continue;
        int r = parse_double(field, &v[c], err);
        if (r < 0)
            return fail_in(err, r, "%s", column_names[c]);
    }
    if (n < h->n)
        return fail(err, -EINVAL, "%zu fields, the header has %zu", n, h->n);
    if (!(v[COL_TIME] >= 0 && v[COL_TIME] <= MOST_S))
        return fail(err, -ERANGE, "t_s %g is outside 0..%g", v[COL_TIME], MOST_S);
    if (v[COL_POWER] < 0)
        return fail(err, -ERANGE, "power_w %g is below 0", v[COL_POWER]);
    return 0;
}

static int add_row(struct tracefile *t, const double v[COLUMNS], uw_error *err)
{
    uint64_t at = (uint64_t)llround(v[COL_TIME] * 1e9);

    if (t->n > 0 && at < t->items[t->n - 1].at_ns)
        return fail(err, -EINVAL, "t_s %g lies before the row above", v[COL_TIME]);
    if (isnan(v[COL_POWER]))
        return 0;
    int r = array_grow(&t->items, &t->cap, t->n, TRACE_ROWS_MAX);
    if (r < 0)
        return fail(err, r, "more than %d rows or no memory", TRACE_ROWS_MAX);
    t->items[t->n++] = (struct activity){.at_ns = at,
                                         .power_w = v[COL_POWER],
                                         .sm_util = v[COL_SM],
                                         .mem_util = v[COL_MEM],
                                         .sm_mhz = v[COL_MHZ],
                                         .energy_j = v[COL_ENERGY]};
    return 0;
}

static int read_rows(FILE *f, struct tracefile *t, unsigned *line_no, uw_error *err)
{
    struct header h = {0};
    auto_(mem_free) char *line = NULL;
    size_t size = 0;
    ssize_t len;
    bool has_header = false;

    while ((len = getline(&line, &size, f)) >= 0) {
        double v[COLUMNS];
        int r;

        ++*line_no;
        while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = '\0';
        if (len == 0 || line[0] == '#')
            continue;
        if (!has_header)
            r = read_header(line, &h, err);
        else {
            r = read_fields(line, &h, v, err);
            if (r == 0)
                r = add_row(t, v, err);
        }
        if (r < 0)
            return r;
        has_header = true;
    }
    if (ferror(f))
        return fail(err, -EIO, "cannot be read");
    return has_header ? 0
                      : fail(err, -EINVAL,
                             "no header: t_s,power_w[,sm_util,mem_util,sm_mhz,energy_j]");
}

int tracefile_read(const char *path, struct tracefile *ret, uw_error *err)
{
    auto_(tracefile_fini) struct tracefile t = {0};
    const char *slash = strrchr(path, '/');
    unsigned line_no = 0;
    FILE *f = fopen(path, "re");

    if (!f)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = read_rows(f, &t, &line_no, err);
    (void)fclose(f);
    if (r < 0)
        return fail_in(err, r, "%s:%u", path, line_no);
    t.name = strdup(slash ? slash + 1 : path);
    if (!t.name)
        return fail(err, -ENOMEM, "%s: no memory", path);
    *ret = t;
    t = (struct tracefile){0};
    return 0;
}
