#include "tuner/saved-fields.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "base/error.h"

/* NOLINTBEGIN(misc-no-recursion): as deep as the tables, which are constants */

/* Whether the field has a value to save. */
static bool has(const struct saved_field *f, const void *of)
{
    return !f->when || *(const uint32_t *)((const char *)of + f->when) > 0;
}

static void put_one(struct json_out *o, const struct saved_field *f, const void *at)
{
    if (f->type == COUNT)
        json_out_int(o, f->key, *(const uint32_t *)at);
    else if (f->type == NUMBER)
        json_out_exact_double(o, f->key, *(const double *)at);
    else if (f->type == FLAG)
        json_out_bool(o, f->key, *(const bool *)at);
    if (f->type < SUMS)
        return;
    json_out_object(o, f->key);
    if (f->type == OBJECT)
        saved_fields_put(o, f->fields, f->n, at);
    for (size_t i = 0; f->type != OBJECT && i < f->n; i++) {
        const void *sum = (const char *)at + f->sums[i];
        json_out_exact_double(o, (const char[]){(char)('0' + i), '\0'},
                              *(const double *)sum);
    }
    json_out_end(o);
}

void saved_fields_put(struct json_out *o, const struct saved_field *f, size_t n,
                      const void *of)
{
    for (; n > 0; f++, n--)
        if (has(f, of))
            put_one(o, f, (const char *)of + f->at);
}

int saved_count_get(const struct json_value *v, const char *key, uint32_t *ret,
                    uw_error *err)
{
    uint64_t n;

    int r = json_get_u64(v, key, &n, err);
    if (r < 0)
        return r;
    if (n > UINT32_MAX)
        return fail(err, -ERANGE, "%s: %llu is too large", key, (unsigned long long)n);
    *ret = (uint32_t)n;
    return 0;
}

static int get_sums(const struct json_value *o, const struct saved_field *f, void *ret,
                    uw_error *err)
{
    int r = 0;

    for (size_t i = 0; i < f->n && r >= 0; i++) {
        void *at = (char *)ret + f->sums[i];
        double *sum = at;
        r = json_get_double(o, (const char[]){(char)('0' + i), '\0'}, sum, err);
        if (r >= 0 && (!isfinite(*sum) || (f->type == SUMS && *sum < 0)))
            r = fail(err, -ERANGE, "%g is not a valid sum", *sum);
    }
    return r;
}

static int get_one(const struct json_value *v, const struct saved_field *f, void *ret,
                   uw_error *err)
{
    double *number = ret;
    int r;

    if (f->type == COUNT)
        return saved_count_get(v, f->key, ret, err);
    if (f->type == FLAG)
        return json_get_bool(v, f->key, ret, err);
    if (f->type == NUMBER) {
        r = json_get_double(v, f->key, number, err);
        if (r >= 0 && !(*number >= 0))
            r = fail(err, -ERANGE, "%s: %g is negative", f->key, *number);
        return r;
    }
    if (f->type == OBJECT)
        r = saved_fields_get(json_get(v, f->key), f->fields, f->n, ret, err);
    else
        r = get_sums(json_get(v, f->key), f, ret, err);
    return r < 0 ? fail_in(err, r, "%s", f->key) : 0;
}

int saved_fields_get(const struct json_value *v, const struct saved_field *f, size_t n,
                     void *ret, uw_error *err)
{
    int r = 0;

    for (; n > 0 && r >= 0; f++, n--)
        if (f->since ? json_get(v, f->since) != NULL : has(f, ret))
            r = get_one(v, f, (char *)ret + f->at, err);
    return r;
}

/* NOLINTEND(misc-no-recursion) */
