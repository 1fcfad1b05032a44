#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "core/policy/code.h"

#define WINDOW_MAX_S (14.0 * 86400)

struct parser {
    struct policy_writer w;
    size_t len;
    struct policy_token token; /* the next token */
    size_t taken;              /* end of the last token that was taken */
    unsigned nested;
};

#define refuse(p, at, ...) policy_lex_fail((p)->w.text, (at), (p)->w.err, __VA_ARGS__)

/* nest() bounds the depth of this recursion. */
// NOLINTBEGIN(misc-no-recursion)
static int parse_or(struct parser *p, struct policy_part *ret);

static int advance(struct parser *p)
{
    p->taken = p->token.next;
    return policy_lex(p->w.text, p->len, p->token.next, &p->token, p->w.err);
}

static bool is(const struct parser *p, enum policy_token_kind kind)
{
    return p->token.kind == kind;
}

static int nest(struct parser *p)
{
    if (++p->nested > POLICY_NESTED_MAX)
        return refuse(p, p->token.from, "too deep: at most %d inside each other",
                      POLICY_NESTED_MAX);
    return 0;
}

static int want(struct parser *p, enum policy_token_kind kind, const char *what)
{
    if (!is(p, kind))
        return refuse(p, p->token.from, "%s is expected here", what);
    return advance(p);
}

static int parse_inside(struct parser *p, size_t open, struct policy_part *ret)
{
    int r = nest(p);

    if (r == 0)
        r = advance(p);
    if (r == 0)
        r = parse_or(p, ret);
    if (r < 0)
        return r;
    if (!is(p, POLICY_TOKEN_CLOSE))
        return is(p, POLICY_TOKEN_END)
                   ? refuse(p, open, "this parenthesis is not closed")
                   : refuse(p, p->token.from, "an operator or ')' is expected here");
    r = advance(p);
    p->nested--;
    ret->from = open;
    ret->to = p->taken;
    return r;
}

/* ---- names ---- */

static const struct {
    const char *name;
    enum policy_fold fold;
} folds[] = {{".mean", POLICY_MEAN},
             {".min", POLICY_MIN},
             {".max", POLICY_MAX},
             {".percentile", POLICY_PERCENTILE}};

/* Whether the name ends with a fold of a series; *len is then the length of the signal's
 * name.
 */
static enum policy_fold fold_of(const char *name, size_t *len)
{
    for (size_t i = 0; i < n_elements(folds); i++) {
        size_t n = strlen(folds[i].name);
        if (*len > n && memcmp(name + *len - n, folds[i].name, n) == 0) {
            *len -= n;
            return folds[i].fold;
        }
    }
    return POLICY_NOW;
}

/* Whether "==" or "!=" precedes it. */
static bool is_compared(const struct parser *p, size_t from)
{
    while (from > 0 && p->w.text[from - 1] == ' ')
        from--;
    return from >= 2 && p->w.text[from - 1] == '=' && strchr("=!", p->w.text[from - 2]);
}

static int fail_signal(struct parser *p, size_t from, size_t len)
{
    const struct policy_catalogue *c = p->w.catalogue;
    struct nearest near = {0};
    char hint[NEAREST_TEXT];

    for (size_t i = 0; i < c->n; i++)
        nearest_try(&near, p->w.text + from, len, c->signal[i].name);
    const char *nearest = nearest_text(&near, hint);
    bool is_text = !*nearest && is_compared(p, from); /* job.phase == validate */
    return refuse(p, from, "there is no signal '%.*s'%s", len < 60 ? (int)len : 60,
                  p->w.text + from,
                  is_text ? "; a text stands in quotes: 'text'" : nearest);
}

static int parse_percent(struct parser *p, double *ret)
{
    struct policy_token t = p->token;
    bool percent = is(p, POLICY_TOKEN_NUMBER) && p->w.text[t.to - 1] == '%';
    double v = percent ? t.number * 100 : t.number;

    if (t.kind != POLICY_TOKEN_NUMBER || !policy_unit_is_plain(&t.unit) || v > 100)
        return refuse(p, t.from, "a percentile is a number from 0 to 100");
    int r = advance(p);
    if (r < 0)
        return r;
    *ret = v;
    return want(p, POLICY_TOKEN_COMMA, "a comma and a time ('24 h')");
}

static int parse_window(struct parser *p, double *ret)
{
    static const struct policy_unit second = {.power[POLICY_SECOND] = 1};
    struct policy_token t = p->token;

    if (t.kind != POLICY_TOKEN_NUMBER)
        return refuse(p, t.from, "a time is expected here, up to 14 days ('24 h')");
    if (!policy_unit_same(&t.unit, &second) || t.number <= 0 || t.number > WINDOW_MAX_S)
        return refuse(p, t.from,
                      "'%.*s' must be a time above 0 s and at most 14 days ('24 h')",
                      (int)(t.to - t.from), p->w.text + t.from);
    *ret = t.number;
    return advance(p);
}

/* NAME.mean(24 h): the parenthesis is the token. */
static int parse_fold(struct parser *p, const struct policy_signal *signal,
                      struct policy_read *read, struct policy_part *ret)
{
    int r;

    if (signal->series == POLICY_NO_SERIES || signal->type != POLICY_NUMBER)
        return refuse(p, ret->from, "%s has neither history nor forecast", signal->name);
    r = advance(p);
    if (r == 0 && read->fold == POLICY_PERCENTILE)
        r = parse_percent(p, &read->percent);
    if (r == 0)
        r = parse_window(p, &read->window_s);
    if (r == 0)
        r = want(p, POLICY_TOKEN_CLOSE, "')'");
    ret->to = p->taken;
    return r < 0 ? r : policy_push_read(&p->w, read, ret);
}

static int parse_signal(struct parser *p, struct policy_part *ret)
{
    const char *name = p->w.text + ret->from;
    size_t len = ret->to - ret->from;
    struct policy_read read = {0};

    if (is(p, POLICY_TOKEN_OPEN))
        read.fold = fold_of(name, &len);
    int at = policy_signal_find(p->w.catalogue, name, len);
    if (at < 0)
        return fail_signal(p, ret->from, len);
    const struct policy_signal *signal = &p->w.catalogue->signal[at];
    read.signal = (uint16_t)at;
    if (read.fold != POLICY_NOW)
        return parse_fold(p, signal, &read, ret);
    if (is(p, POLICY_TOKEN_OPEN))
        return refuse(p, ret->from,
                      "%s is a signal: .mean, .min, .max, .percentile stand before '('",
                      signal->name);
    if (signal->series == POLICY_FORECAST)
        return refuse(p, ret->from, "%s has no value now: write %s.mean(24 h)",
                      signal->name, signal->name);
    return policy_push_read(&p->w, &read, ret);
}

/* min and max: at least two values. */
static int parse_list(struct parser *p, enum policy_code code, struct policy_part *ret)
{
    struct policy_part next;
    size_t open = p->token.from;
    int r = nest(p), n = 0;

    if (r == 0)
        r = advance(p);
    if (r == 0)
        r = parse_or(p, ret);
    for (; r == 0 && is(p, POLICY_TOKEN_COMMA); n++) {
        r = advance(p);
        if (r == 0)
            r = parse_or(p, &next);
        if (r == 0)
            r = policy_calculate(&p->w, code, ret, &next);
    }
    if (r < 0)
        return r;
    if (n == 0)
        return refuse(p, open,
                      "min and max take two values or more, with commas between");
    p->nested--;
    return want(p, POLICY_TOKEN_CLOSE, "a comma or ')'");
}

static int parse_name(struct parser *p, struct policy_part *ret)
{
    static const struct {
        const char *name;
        enum policy_code code;
    } functions[] = {{"min", POLICY_LOWER},
                     {"max", POLICY_HIGHER},
                     {"abs", POLICY_ABS},
                     {"known", POLICY_WORD_KNOWN}};
    struct policy_part name = *ret;
    size_t i = 0;
    int r;

    while (is(p, POLICY_TOKEN_OPEN) && i < n_elements(functions) &&
           (strlen(functions[i].name) != name.to - name.from ||
            memcmp(functions[i].name, p->w.text + name.from, name.to - name.from) != 0))
        i++;
    if (!is(p, POLICY_TOKEN_OPEN) || i == n_elements(functions))
        return parse_signal(p, ret);
    if (functions[i].code == POLICY_LOWER || functions[i].code == POLICY_HIGHER)
        r = parse_list(p, functions[i].code, ret);
    else
        r = parse_inside(p, p->token.from, ret);
    if (r == 0 && functions[i].code == POLICY_ABS)
        r = policy_abs(&p->w, ret);
    if (r == 0 && functions[i].code == POLICY_WORD_KNOWN)
        r = policy_known(&p->w, ret);
    ret->from = name.from;
    ret->to = p->taken;
    return r;
}

/* ---- operators ---- */

static int parse_primary(struct parser *p, struct policy_part *ret)
{
    struct policy_token t = p->token;
    int r;

    *ret = (struct policy_part){.from = t.from, .to = t.to};
    if (t.kind == POLICY_TOKEN_OPEN)
        return parse_inside(p, t.from, ret);
    if (t.kind == POLICY_TOKEN_END)
        return refuse(p, t.from, "a value is missing at the end");
    r = advance(p);
    if (r < 0)
        return r;
    switch (t.kind) {
    case POLICY_TOKEN_NUMBER:
        return policy_push_number(&p->w, t.number, &t.unit, ret);
    case POLICY_TOKEN_TEXT:
        return policy_push_text(&p->w, ret);
    case POLICY_TOKEN_TRUE:
    case POLICY_TOKEN_FALSE:
        return policy_push_truth(&p->w, t.kind == POLICY_TOKEN_TRUE, ret);
    case POLICY_TOKEN_NAME:
        return parse_name(p, ret);
    default:
        return refuse(p, t.from, "a value is expected here, not '%.*s'",
                      (int)(t.to - t.from), p->w.text + t.from);
    }
}

static int parse_unary(struct parser *p, struct policy_part *ret)
{
    size_t from = p->token.from;
    int r;

    if (!is(p, POLICY_TOKEN_MINUS))
        return parse_primary(p, ret);
    r = nest(p);
    if (r == 0)
        r = advance(p);
    if (r == 0)
        r = parse_unary(p, ret);
    if (r == 0)
        r = policy_negate(&p->w, ret);
    ret->from = from;
    p->nested--;
    return r;
}

static int parse_product(struct parser *p, struct policy_part *ret)
{
    struct policy_part next;
    int r = parse_unary(p, ret);

    while (r == 0 && (is(p, POLICY_TOKEN_TIMES) || is(p, POLICY_TOKEN_OVER))) {
        enum policy_code code =
            is(p, POLICY_TOKEN_TIMES) ? POLICY_MULTIPLY : POLICY_DIVIDE;
        r = advance(p);
        if (r == 0)
            r = parse_unary(p, &next);
        if (r == 0)
            r = policy_calculate(&p->w, code, ret, &next);
    }
    return r;
}

static int parse_sum(struct parser *p, struct policy_part *ret)
{
    struct policy_part next;
    int r = parse_product(p, ret);

    while (r == 0 && (is(p, POLICY_TOKEN_PLUS) || is(p, POLICY_TOKEN_MINUS))) {
        enum policy_code code = is(p, POLICY_TOKEN_PLUS) ? POLICY_ADD : POLICY_SUBTRACT;
        r = advance(p);
        if (r == 0)
            r = parse_product(p, &next);
        if (r == 0)
            r = policy_calculate(&p->w, code, ret, &next);
    }
    return r;
}

static bool is_comparison(const struct parser *p)
{
    return p->token.kind >= POLICY_TOKEN_LESS && p->token.kind <= POLICY_TOKEN_DIFFERS;
}

static int parse_comparison(struct parser *p, struct policy_part *ret)
{
    struct policy_part next;
    int r = parse_sum(p, ret);

    if (r < 0 || !is_comparison(p))
        return r;
    enum policy_token_kind how = p->token.kind;
    r = advance(p);
    if (r == 0)
        r = parse_sum(p, &next);
    if (r == 0)
        r = policy_compare(&p->w, how, ret, &next);
    if (r == 0 && is_comparison(p))
        return refuse(p, p->token.from, "compare two values: 'a < b and b < c'");
    return r;
}

static int parse_not(struct parser *p, struct policy_part *ret)
{
    size_t from = p->token.from;
    int r;

    if (!is(p, POLICY_TOKEN_NOT))
        return parse_comparison(p, ret);
    r = nest(p);
    if (r == 0)
        r = advance(p);
    if (r == 0)
        r = parse_not(p, ret);
    if (r == 0)
        r = policy_not(&p->w, ret);
    ret->from = from;
    p->nested--;
    return r;
}

static int parse_and(struct parser *p, struct policy_part *ret)
{
    struct policy_part next;
    int r = parse_not(p, ret);

    while (r == 0 && is(p, POLICY_TOKEN_AND)) {
        r = advance(p);
        if (r == 0)
            r = parse_not(p, &next);
        if (r == 0)
            r = policy_logic(&p->w, POLICY_AND, ret, &next);
    }
    return r;
}

static int parse_or(struct parser *p, struct policy_part *ret)
{
    struct policy_part next;
    int r = parse_and(p, ret);

    while (r == 0 && is(p, POLICY_TOKEN_OR)) {
        r = advance(p);
        if (r == 0)
            r = parse_and(p, &next);
        if (r == 0)
            r = policy_logic(&p->w, POLICY_OR, ret, &next);
    }
    return r;
}

// NOLINTEND(misc-no-recursion)

static int parse_whole(struct parser *p, struct policy_part *ret)
{
    char span[POLICY_SPAN], kind[POLICY_UNIT_NAME + 8];
    int r = policy_lex(p->w.text, p->len, 0, &p->token, p->w.err);

    if (r == 0 && is(p, POLICY_TOKEN_END))
        return refuse(p, 0, "a condition is expected");
    if (r == 0)
        r = parse_or(p, ret);
    if (r < 0)
        return r;
    if (is(p, POLICY_TOKEN_CLOSE))
        return refuse(p, p->token.from, "this parenthesis was never opened");
    if (!is(p, POLICY_TOKEN_END))
        return refuse(p, p->token.from, "an operator is expected here");
    if (ret->type != POLICY_TRUTH)
        return refuse(p, ret->from, "a condition is true or false, %s is %s",
                      policy_span(&p->w, ret, span), policy_kind(ret, kind));
    return 0;
}

int policy_condition_read(const char *text, const struct policy_catalogue *catalogue,
                          struct policy_reads *reads, struct policy_condition *ret,
                          uw_error *err)
{
    struct parser p = {
        .w = {.text = text, .catalogue = catalogue, .reads = reads, .err = err},
        .len = strnlen(text, POLICY_TEXT_MAX + 1)};
    struct policy_part whole = {0};
    size_t known = reads->n;

    if (p.len > POLICY_TEXT_MAX)
        return fail(err, -EINVAL, "column 1: too long: a condition has at most %d bytes",
                    POLICY_TEXT_MAX);
    int r = parse_whole(&p, &whole);
    if (r < 0) {
        reads->n = known;
        return r;
    }
    policy_shorten(&p.w.condition);
    *ret = p.w.condition;
    return 0;
}
