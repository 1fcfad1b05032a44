#include "core/carbon/market-read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/moment.h"
#include "base/units.h"
#include "base/utf8.h"

#define HEADER "from,to,kwh,share,g_per_kwh,origin"
#define KWH_MAX 1e9
#define G_KWH_MAX 10000

enum { FROM, TO, KWH, SHARE, G_PER_KWH, ORIGIN, FIELDS };
enum { FIELD_BYTES = 128, LINE_BYTES = 1024 };
static const char *const names[FIELDS] = {"from",  "to",        "kwh",
                                          "share", "g_per_kwh", "origin"};

struct fields {
    char of[FIELDS][FIELD_BYTES];
};

/* Reads a field of RFC 4180 up to the comma or the end; *at then points behind the
 * field.
 */
static bool read_field(const char **at, char ret[FIELD_BYTES])
{
    const char *p = *at;
    bool quoted = *p == '"';
    size_t n = 0;

    for (p += quoted; *p && (quoted || *p != ','); p++) {
        if (*p == '"' && (!quoted || p[1] != '"'))
            break;
        p += *p == '"';
        if (n + 1 == FIELD_BYTES)
            return false;
        ret[n++] = *p;
    }
    ret[n] = '\0';
    if (quoted && *p++ != '"')
        return false;
    *at = p;
    return *p == ',' || !*p;
}

static int split(const char *line, struct fields *ret, uw_error *err)
{
    size_t i = 0;

    for (;; line++) {
        if (i == FIELDS)
            return fail(err, -EINVAL, "more than the %d fields of " HEADER, FIELDS);
        if (!read_field(&line, ret->of[i]))
            return fail(err, -EINVAL,
                        "%s: no text of up to %d bytes, in double quotes "
                        "where it has a comma",
                        names[i], FIELD_BYTES - 1);
        i++;
        if (!*line)
            break;
    }
    if (i < FIELDS)
        return fail(err, -EINVAL, "%zu fields, not the %d of " HEADER, i, FIELDS);
    return 0;
}

static int read_number(const struct fields *f, int which, double most, double *ret,
                       uw_error *err)
{
    double v = 0;

    int r = parse_double(f->of[which], &v, err);
    if (r < 0)
        return fail_in(err, r, "%s", names[which]);
    if (!(v >= 0 && v <= most))
        return fail(err, -ERANGE, "%s: '%.40s' is outside 0..%g", names[which],
                    f->of[which], most);
    *ret = v;
    return 0;
}

static int read_moment(const struct fields *f, int which, int64_t *ret_ms, uw_error *err)
{
    struct moment m;

    if (!moment_read(f->of[which], &m))
        return fail(err, -EINVAL,
                    "%s: '%.40s' is no time as 2026-11-21 or "
                    "2026-11-21T14:30:00Z",
                    names[which], f->of[which]);
    int64_t day_s = which == TO && m.date_only ? 86400 : 0;
    *ret_ms = (moment_utc_s(&m) + day_s) * 1000;
    return 0;
}

static int read_amount(const struct fields *f, struct market_contract *c, uw_error *err)
{
    bool kwh = f->of[KWH][0], share = f->of[SHARE][0];

    if (kwh && share)
        return fail(err, -EINVAL, "kwh '%.40s' and share '%.40s': one of them is empty",
                    f->of[KWH], f->of[SHARE]);
    c->kind = kwh ? MARKET_ENERGY : share ? MARKET_SHARE : MARKET_RESIDUAL;
    if (kwh)
        return read_number(f, KWH, KWH_MAX, &c->amount, err);
    return share ? read_number(f, SHARE, 1, &c->amount, err) : 0;
}

static int read_contract(const char *line, struct market_contract *ret, uw_error *err)
{
    struct market_contract c = {.amount = 0};
    struct fields f = {{""}};

    int r = split(line, &f, err);
    if (r == 0)
        r = read_moment(&f, FROM, &c.from_ms, err);
    if (r == 0)
        r = read_moment(&f, TO, &c.to_ms, err);
    if (r == 0)
        r = read_amount(&f, &c, err);
    if (r == 0)
        r = read_number(&f, G_PER_KWH, G_KWH_MAX, &c.g_kwh, err);
    if (r < 0)
        return r;
    if (c.from_ms >= c.to_ms)
        return fail(err, -EINVAL, "from (%.40s) is not before to (%.40s)", f.of[FROM],
                    f.of[TO]);
    size_t n = strlen(f.of[ORIGIN]);
    if (n == 0 || n >= sizeof c.origin || !utf8_is_plain(f.of[ORIGIN]))
        return fail(err, -EINVAL, "origin: '%.40s' is no plain text of 1 to %zu bytes",
                    f.of[ORIGIN], sizeof c.origin - 1);
    memcpy(c.origin, f.of[ORIGIN], n + 1);
    *ret = c;
    return 0;
}

/* Reads the next line without its line end; 1: no line is left. */
static int next_line(const char **at, char ret[LINE_BYTES], uw_error *err)
{
    size_t n = strcspn(*at, "\n"), len = n;

    if (!**at)
        return 1;
    len -= n > 0 && (*at)[n - 1] == '\r';
    if (len >= LINE_BYTES)
        return fail(err, -EINVAL, "%zu bytes, %d are allowed", len, LINE_BYTES - 1);
    memcpy(ret, *at, len);
    ret[len] = '\0';
    *at += n + ((*at)[n] == '\n');
    return 0;
}

/* Reads all lines; *ret_no: the last line read; 0: the error concerns no single line. */
static int read_lines(const char *text, struct market_contract **list, size_t *ret_n,
                      unsigned *ret_no, uw_error *err)
{
    char line[LINE_BYTES] = "";
    size_t n = 0, cap = 0;
    bool header = false;
    int r = 0;

    for (*ret_no = 1; (r = next_line(&text, line, err)) == 0; ++*ret_no) {
        if (!line[0] || line[0] == '#')
            continue;
        if (!header && strcmp(line, HEADER) != 0)
            return fail(err, -EINVAL, "'%.60s' is not the header " HEADER, line);
        if (header && array_grow(list, &cap, n, MARKET_CONTRACTS) < 0)
            return fail(err, -E2BIG, "more than %d contracts", MARKET_CONTRACTS);
        if (header && (r = read_contract(line, &(*list)[n], err)) < 0)
            return r;
        n += header;
        header = true;
    }
    if (r < 0)
        return r;
    *ret_no = 0;
    *ret_n = n;
    return header ? 0 : fail(err, -EINVAL, "no header " HEADER);
}

int market_read(const char *name, const char *text, size_t len, bool hidden,
                struct market_contract **ret, size_t *ret_n, uw_error *err)
{
    auto_(mem_free) struct market_contract *list = NULL;
    size_t n = 0;
    unsigned no = 0;

    if (strlen(text) != len)
        return fail(err, -EINVAL, "%.200s: byte %zu is NUL: it is no text", name,
                    strlen(text) + 1);
    int r = read_lines(text, &list, &n, &no, err);
    if (r < 0 && no == 0)
        return fail_in(err, r, "%.200s", name);
    if (r < 0 && hidden)
        return fail(err, r,
                    "%.100s:%u is wrong (its text is not shown: not every user may read "
                    "it)",
                    name, no);
    if (r < 0)
        return fail_in(err, r, "%.200s:%u", name, no);
    *ret = take(list);
    *ret_n = n;
    return 0;
}
