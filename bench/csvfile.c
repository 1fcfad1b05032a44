#include "csvfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"

enum { FIELDS_MAX = 40 };

struct columns {
    size_t n, at[CSV_COLUMNS_MAX];
};

static size_t split(char *line, char *field[FIELDS_MAX])
{
    size_t n = 0;

    line[strcspn(line, "\r\n")] = '\0';
    for (char *at = line; at && n < FIELDS_MAX; n++)
        field[n] = strsep(&at, ",");
    return n;
}

static int find_columns(char *line, const char *const *names, size_t n,
                        struct columns *ret, uw_error *err)
{
    char *field[FIELDS_MAX];
    size_t there = split(line, field);

    if (n > CSV_COLUMNS_MAX)
        return fail(err, -E2BIG, "more than %d columns", CSV_COLUMNS_MAX);
    ret->n = n;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < there && strcmp(field[k], names[i]) != 0)
            k++;
        if (k == there)
            return fail(err, -EINVAL, "there is no column %s", names[i]);
        ret->at[i] = k;
    }
    return 0;
}

static int take_row(char *line, const struct columns *c, csv_row_fn fn, void *user,
                    uw_error *err)
{
    char *field[FIELDS_MAX], *wanted[CSV_COLUMNS_MAX] = {NULL};
    size_t there = split(line, field);

    for (size_t i = 0; i < c->n; i++) {
        if (c->at[i] >= there)
            return fail(err, -EINVAL, "a row of %zu fields", there);
        wanted[i] = field[c->at[i]];
    }
    return fn(wanted, user, err);
}

int csv_read(const char *path, const char *const *names, size_t n, csv_row_fn fn,
             void *user, uw_error *err)
{
    auto_(file_close) FILE *f = fopen(path, "re");
    auto_(mem_free) char *line = NULL;
    struct columns columns = {0};
    size_t size = 0;
    unsigned no = 0;
    int r = 0;

    if (!f)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    while (r >= 0 && getline(&line, &size, f) >= 0)
        r = ++no == 1 ? find_columns(line, names, n, &columns, err)
                      : take_row(line, &columns, fn, user, err);
    if (r < 0)
        return fail_in(err, r, "%s:%u", path, no);
    if (ferror(f) || no < 2)
        return fail(err, -EIO, "%s: %s", path, no < 2 ? "no rows" : "cannot be read");
    return 0;
}
