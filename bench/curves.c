#include "curves.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"

enum { CURVES_MAX = 10000, COLUMNS = 4 };
#define HEADER "curve,cap_w,time_s,energy_j"
/* Caps are whole watts; the search counts in milliwatts of 32 bits. */
#define LEAST_CAP_W 1.0
#define MOST_CAP_W 100000.0
#define REPEATS 0.005 /* scatter of repeated recordings */

struct draft { /* a curve being read */
    char *name;
    unsigned line; /* of its first row */
    struct curve_point *points;
    size_t n, cap;
};

struct drafts {
    struct draft *items;
    size_t n, cap;
};

static void drafts_fini_p(struct drafts *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->items[i].name);
        free(d->items[i].points);
    }
    free(d->items);
}

void records_fini(struct records *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->items[i].name);
        free(r->items[i].cap_w);
        curve_free(r->items[i].curve);
    }
    free(r->items);
    *r = (struct records){0};
}

static int draft_named(struct drafts *d, const char *name, unsigned line,
                       struct draft **ret)
{
    for (size_t i = d->n; i-- > 0;) /* the rows of a curve are mostly adjacent */
        if (strcmp(d->items[i].name, name) == 0) {
            *ret = &d->items[i];
            return 0;
        }
    int r = array_grow(&d->items, &d->cap, d->n, CURVES_MAX);
    if (r < 0)
        return r;
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    d->items[d->n] = (struct draft){.name = copy, .line = line};
    *ret = &d->items[d->n++];
    return 0;
}

static int split(char *line, char *col[COLUMNS])
{
    for (int i = 0; i < COLUMNS; i++)
        col[i] = strsep(&line, ",");
    return col[COLUMNS - 1] && !line ? 0 : -EINVAL;
}

static int parse_point(char *const col[COLUMNS], struct curve_point *ret, uw_error *err)
{
    static const char *const names[] = {"curve", "cap_w", "time_s", "energy_j"};
    double v[COLUMNS];

    if (col[0][0] == '\0')
        return fail(err, -EINVAL, "the curve has no name");
    for (int i = 1; i < COLUMNS; i++) {
        int r = parse_double(col[i], &v[i], err);
        if (r < 0)
            return fail_in(err, r, "%s", names[i]);
        if (v[i] <= 0)
            return fail(err, -EINVAL, "%s %s is not above 0", names[i], col[i]);
    }
    if (v[1] < LEAST_CAP_W || v[1] > MOST_CAP_W)
        return fail(err, -ERANGE, "cap_w %s is outside %g..%.0f", col[1], LEAST_CAP_W,
                    MOST_CAP_W);
    *ret = (struct curve_point){v[1], v[2], v[3]};
    return 0;
}

static int add_row(struct drafts *d, char *line, unsigned no, uw_error *err)
{
    char *col[COLUMNS];
    struct curve_point p = {0};
    struct draft *c;

    if (line[strspn(line, " \t")] == '\0')
        return fail(err, -EINVAL, "the row is empty");
    if (split(line, col) < 0)
        return fail(err, -EINVAL, "not 4 columns: %s", HEADER);
    int r = parse_point(col, &p, err);
    if (r < 0)
        return r;
    r = draft_named(d, col[0], no, &c);
    if (r < 0)
        return fail(err, r, "more than %d curves or no memory", CURVES_MAX);
    for (size_t i = 0; i < c->n; i++)
        if (!(c->points[i].cap_w < p.cap_w) && !(c->points[i].cap_w > p.cap_w))
            return fail(err, -EINVAL, "cap %g W of curve '%s' is given twice", p.cap_w,
                        c->name);
    r = array_grow(&c->points, &c->cap, c->n, CURVE_POINTS_MAX);
    if (r < 0)
        return fail(err, r, "more than %d rows of a curve or no memory",
                    CURVE_POINTS_MAX);
    c->points[c->n++] = p;
    return 0;
}

static int finish(const struct drafts *d, const char *path, struct records *ret,
                  uw_error *err)
{
    auto_(records_fini) struct records out = {0};

    for (size_t i = 0; i < d->n; i++) {
        struct draft *c = &d->items[i];
        if (c->n < 3)
            return fail(err, -EINVAL, "%s:%u: curve '%s' has %zu rows: 3 at least", path,
                        c->line, c->name, c->n);
        int r = array_grow(&out.items, &out.cap, out.n, CURVES_MAX);
        if (r < 0)
            return fail(err, r, "%s: no memory", path);
        struct record *rec = &out.items[out.n++];
        *rec = (struct record){.name = take(c->name), .n = c->n};
        rec->cap_w = calloc(c->n, sizeof *rec->cap_w);
        if (!rec->cap_w)
            return fail(err, -ENOMEM, "%s: no memory", path);
        for (size_t k = 0; k < c->n; k++)
            rec->cap_w[k] = c->points[k].cap_w;
        r = curve_new(c->points, c->n, &rec->curve, err);
        if (r < 0)
            return fail_in(err, r, "%s:%u", path, c->line);
        rec->min_w = curve_min_w(rec->curve);
        rec->max_w = curve_max_w(rec->curve);
        rec->reference = curve_at(rec->curve, rec->max_w);
    }
    *ret = out;
    memset(&out, 0, sizeof out); /* ownership moved to the caller */
    return 0;
}

static int read_rows(FILE *f, const char *path, struct drafts *d, uw_error *err)
{
    auto_(mem_free) char *line = NULL;
    size_t size = 0;
    unsigned no = 0;
    ssize_t len;

    while ((len = getline(&line, &size, f)) >= 0) {
        no++;
        if (strlen(line) != (size_t)len)
            return fail(err, -EINVAL, "%s:%u: a NUL byte", path, no);
        line[strcspn(line, "\r\n")] = '\0';
        if (no == 1 && strcmp(line, HEADER) != 0)
            return fail(err, -EINVAL, "%s:1: header '%.40s' is not %s", path, line,
                        HEADER);
        int r = no == 1 ? 0 : add_row(d, line, no, err);
        if (r < 0)
            return fail_in(err, r, "%s:%u", path, no);
    }
    if (ferror(f))
        return fail(err, -EIO, "%s: %s", path, strerror(errno));
    if (d->n == 0)
        return fail(err, -EINVAL, "%s:%u: no curve", path, no ? no : 1);
    return 0;
}

int records_read(const char *path, struct records *ret, uw_error *err)
{
    auto_(drafts_fini) struct drafts d = {0};
    auto_(file_close) FILE *f = fopen(path, "re");
    if (!f)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = read_rows(f, path, &d, err);
    return r < 0 ? r : finish(&d, path, ret, err);
}

bool record_binds(const struct record *rec, double cap_w)
{
    double top_w = curve_max_w(rec->curve);

    for (unsigned i = 0; top_w - i >= cap_w; i++) {
        struct curve_value v = curve_at(rec->curve, top_w - i);
        if (fabs(v.time_s / rec->reference.time_s - 1) > REPEATS ||
            fabs(v.power_w / rec->reference.power_w - 1) > REPEATS)
            return true;
    }
    return false;
}
