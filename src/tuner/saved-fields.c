#include "tuner/saved-fields.h"

#include <errno.h>
#include <stdbool.h>

#include "base/error.h"

void saved_fields_put(struct json_out *o, const struct saved_field *f, size_t n,
                      const void *of)
{
    for (; n > 0; f++, n--) {
        const void *at = (const char *)of + f->at;
        if (f->type == COUNT)
            json_out_int(o, f->key, *(const uint32_t *)at);
        else if (f->type == NUMBER)
            json_out_double(o, f->key, *(const double *)at);
        else
            json_out_bool(o, f->key, *(const bool *)at);
    }
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

int saved_fields_get(const struct json_value *v, const struct saved_field *f, size_t n,
                     void *ret, uw_error *err)
{
    int r = 0;

    for (; n > 0 && r >= 0; f++, n--) {
        void *at = (char *)ret + f->at;
        double *number = at;
        if (f->since && !json_get(v, f->since))
            continue;
        if (f->type == COUNT)
            r = saved_count_get(v, f->key, at, err);
        else if (f->type == FLAG)
            r = json_get_bool(v, f->key, at, err);
        else if ((r = json_get_double(v, f->key, number, err)) >= 0 && !(*number >= 0))
            r = fail(err, -ERANGE, "%s: %g is negative", f->key, *number);
    }
    return r;
}
