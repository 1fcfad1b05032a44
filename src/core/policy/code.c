#include "core/policy/code.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

#define refuse(w, at, ...) policy_lex_fail((w)->text, (at), (w)->err, __VA_ARGS__)

const char *policy_span(const struct policy_writer *w, const struct policy_part *part,
                        char ret[POLICY_SPAN])
{
    size_t n = part->to - part->from, most = POLICY_SPAN - sizeof "…";

    if (n <= most) {
        (void)snprintf(ret, POLICY_SPAN, "%.*s", (int)n, w->text + part->from);
        return ret;
    }
    while (((unsigned char)w->text[part->from + most] & 0xc0) == 0x80)
        most--;
    (void)snprintf(ret, POLICY_SPAN, "%.*s…", (int)most, w->text + part->from);
    return ret;
}

const char *policy_kind(const struct policy_part *part, char ret[POLICY_UNIT_NAME + 8])
{
    char unit[POLICY_UNIT_NAME];

    if (part->type == POLICY_NUMBER && !policy_unit_is_plain(&part->unit))
        (void)snprintf(ret, POLICY_UNIT_NAME + 8, "in %s",
                       policy_unit_name(&part->unit, unit));
    else
        (void)snprintf(ret, POLICY_UNIT_NAME + 8, "%s",
                       part->type == POLICY_NUMBER ? "a plain number"
                       : part->type == POLICY_TEXT ? "a text"
                                                   : "true or false");
    return ret;
}

/* Emits an instruction that takes `takes` values and leaves one. */
static int emit(struct policy_writer *w, size_t at, const struct policy_op *op,
                size_t takes)
{
    struct policy_condition *c = &w->condition;

    if (c->n_ops == POLICY_OPS)
        return refuse(w, at, "too long: a condition has at most %d values and operators",
                      POLICY_OPS);
    if (w->stack - takes + 1 > POLICY_STACK)
        return refuse(w, at, "too deep: at most %d values wait for their operator",
                      POLICY_STACK);
    w->stack = w->stack - takes + 1;
    c->op[c->n_ops++] = *op;
    return 0;
}

static int push(struct policy_writer *w, const struct policy_op *op,
                enum policy_type type, struct policy_part *part)
{
    part->type = type;
    part->first = w->condition.n_ops;
    return emit(w, part->from, op, 0);
}

int policy_push_number(struct policy_writer *w, double number,
                       const struct policy_unit *unit, struct policy_part *part)
{
    part->unit = *unit;
    part->constant = true;
    return push(w, &(struct policy_op){.code = POLICY_PUSH_NUMBER, .number = number},
                POLICY_NUMBER, part);
}

static int add_literal(struct policy_writer *w, size_t at, const char *text, size_t n,
                       uint16_t *ret)
{
    struct policy_condition *c = &w->condition;

    if (n + 1 > (size_t)(POLICY_LITERALS - c->n_literals))
        return refuse(w, at, "too long: all texts of a condition have at most %d bytes",
                      POLICY_LITERALS);
    *ret = c->n_literals;
    memcpy(c->literals + c->n_literals, text, n);
    c->literals[c->n_literals + n] = '\0';
    c->n_literals = (uint16_t)(c->n_literals + n + 1);
    return 0;
}

int policy_push_text(struct policy_writer *w, struct policy_part *part)
{
    struct policy_op op = {.code = POLICY_PUSH_TEXT};
    int r =
        add_literal(w, part->from, w->text + part->from, part->to - part->from, &op.text);

    if (r < 0)
        return r;
    part->constant = true;
    return push(w, &op, POLICY_TEXT, part);
}

int policy_push_truth(struct policy_writer *w, bool truth, struct policy_part *part)
{
    return push(w, &(struct policy_op){.code = POLICY_PUSH_TRUTH, .number = truth},
                POLICY_TRUTH, part);
}

int policy_push_read(struct policy_writer *w, const struct policy_read *read,
                     struct policy_part *part)
{
    const struct policy_signal *signal = &w->catalogue->signal[read->signal];
    int slot = policy_reads_add(w->reads, read);
    double factor;

    if (slot < 0)
        return refuse(w, part->from, "too many: all conditions read at most %d values",
                      POLICY_READS_MAX);
    if (!policy_signal_unit(signal, &part->unit, &factor))
        return refuse(w, part->from, "%s: its unit '%s' is none", signal->name,
                      signal->unit);
    w->condition.reads[slot / 64] |= UINT64_C(1) << (slot % 64);
    part->signal = signal;
    part->read = true;
    return push(
        w,
        &(struct policy_op){.code = signal->type == POLICY_NUMBER ? POLICY_READ_NUMBER
                                    : signal->type == POLICY_TEXT ? POLICY_READ_TEXT
                                                                  : POLICY_READ_TRUTH,
                            .slot = (uint16_t)slot},
        signal->type, part);
}

/* a becomes the result of the last instruction. */
static void becomes(struct policy_part *a, enum policy_type type)
{
    a->type = type;
    a->constant = a->read = false;
    a->signal = NULL;
    if (type != POLICY_NUMBER)
        a->unit = (struct policy_unit){0};
}

static bool is_order(const struct policy_op *op)
{
    return op->code >= POLICY_LESS && op->code <= POLICY_AT_LEAST;
}

/* Multiplies the effect of hysteresis on the comparisons from `first` on. */
static void turn(struct policy_writer *w, size_t first, double by)
{
    for (size_t i = first; i < w->condition.n_ops; i++)
        if (is_order(&w->condition.op[i]))
            w->condition.op[i].number *= by;
}

int policy_known(struct policy_writer *w, struct policy_part *a)
{
    struct policy_op *last = &w->condition.op[a->first];
    struct policy_op op = {.code = a->type == POLICY_TRUTH ? POLICY_TRUTH_KNOWN
                                                           : POLICY_WORD_KNOWN};
    bool read = a->read;

    becomes(a, POLICY_TRUTH);
    if (read) {
        last->code = POLICY_IS_KNOWN;
        return 0;
    }
    turn(w, a->first, 0);
    return emit(w, a->from, &op, 1);
}

static int want_number(struct policy_writer *w, const struct policy_part *a,
                       const char *what)
{
    char span[POLICY_SPAN], kind[POLICY_UNIT_NAME + 8];

    if (a->type != POLICY_NUMBER)
        return refuse(w, a->from, "%s is %s, %s takes numbers", policy_span(w, a, span),
                      policy_kind(a, kind), what);
    return 0;
}

/* For operators on differences, which temperatures in °C are not. */
static int want_amount(struct policy_writer *w, const struct policy_part *a,
                       const char *what)
{
    char span[POLICY_SPAN];
    int r = want_number(w, a, what);

    if (r == 0 && a->unit.point)
        return refuse(w, a->from, "%s is a temperature in °C: %s takes differences, in K",
                      policy_span(w, a, span), what);
    return r;
}

int policy_negate(struct policy_writer *w, struct policy_part *a)
{
    if (a->constant && a->type == POLICY_NUMBER) {
        w->condition.op[a->first].number = -w->condition.op[a->first].number;
        return 0;
    }
    int r = want_amount(w, a, "'-'");
    if (r < 0)
        return r;
    becomes(a, POLICY_NUMBER);
    return emit(w, a->from, &(struct policy_op){.code = POLICY_NEGATE}, 1);
}

int policy_abs(struct policy_writer *w, struct policy_part *a)
{
    int r = want_amount(w, a, "abs");

    if (r < 0)
        return r;
    becomes(a, POLICY_NUMBER);
    return emit(w, a->from, &(struct policy_op){.code = POLICY_ABS}, 1);
}

static int want_truth(struct policy_writer *w, const struct policy_part *a,
                      const char *what)
{
    char span[POLICY_SPAN], kind[POLICY_UNIT_NAME + 8];

    if (a->type != POLICY_TRUTH)
        return refuse(w, a->from, "%s is %s, '%s' takes what is true or false",
                      policy_span(w, a, span), policy_kind(a, kind), what);
    return 0;
}

int policy_not(struct policy_writer *w, struct policy_part *a)
{
    int r = want_truth(w, a, "not");

    if (r < 0)
        return r;
    turn(w, a->first, -1);
    becomes(a, POLICY_TRUTH);
    return emit(w, a->from, &(struct policy_op){.code = POLICY_NOT}, 1);
}

static int fail_fit(struct policy_writer *w, const struct policy_part *a,
                    const struct policy_part *b)
{
    char as[POLICY_SPAN], bs[POLICY_SPAN];
    char kind[POLICY_UNIT_NAME + 8], other[POLICY_UNIT_NAME + 8];
    /* a constant is measured by the other one */
    const struct policy_part *by = a->constant && !b->constant ? b : a,
                             *not = by == a ? b : a;

    return refuse(w, not ->from, "%s is %s, %s is %s", policy_span(w, by, as),
                  policy_kind(by, kind), policy_span(w, not, bs),
                  policy_kind(not, other));
}

/* The unit of a sum or difference. */
static int unit_of_sum(struct policy_writer *w, bool minus, const struct policy_part *a,
                       const struct policy_part *b, struct policy_unit *ret)
{
    struct policy_unit x = a->unit, y = b->unit;

    x.point = y.point = false;
    if (!policy_unit_same(&x, &y))
        return fail_fit(w, a, b);
    if (minus ? b->unit.point && !a->unit.point : a->unit.point && b->unit.point)
        return refuse(w, b->from,
                      minus ? "a temperature in °C is not taken from a difference"
                            : "two temperatures in °C have no sum");
    x.point = minus ? a->unit.point && !b->unit.point : a->unit.point || b->unit.point;
    *ret = x;
    return 0;
}

static int unit_of_product(struct policy_writer *w, enum policy_code code,
                           const struct policy_part *a, const struct policy_part *b,
                           struct policy_unit *ret)
{
    const char *what = code == POLICY_MULTIPLY ? "'*'" : "'/'";
    char kind[POLICY_UNIT_NAME + 8], other[POLICY_UNIT_NAME + 8];
    int r = want_amount(w, a, what);

    if (r == 0)
        r = want_amount(w, b, what);
    if (r < 0)
        return r;
    if (!(code == POLICY_MULTIPLY ? policy_unit_times : policy_unit_over)(&a->unit,
                                                                          &b->unit, ret))
        return refuse(w, b->from, "%s of what is %s and what is %s has no unit", what,
                      policy_kind(a, kind), policy_kind(b, other));
    return 0;
}

static int unit_of(struct policy_writer *w, enum policy_code code,
                   const struct policy_part *a, const struct policy_part *b,
                   struct policy_unit *ret)
{
    switch (code) {
    case POLICY_ADD:
    case POLICY_SUBTRACT:
        return unit_of_sum(w, code == POLICY_SUBTRACT, a, b, ret);
    case POLICY_MULTIPLY:
    case POLICY_DIVIDE:
        return unit_of_product(w, code, a, b, ret);
    default: /* min, max */
        if (!policy_unit_same(&a->unit, &b->unit))
            return fail_fit(w, a, b);
        *ret = a->unit;
        return 0;
    }
}

static double calculated(enum policy_code code, double a, double b)
{
    switch (code) {
    case POLICY_ADD:
        return a + b;
    case POLICY_SUBTRACT:
        return a - b;
    case POLICY_MULTIPLY:
        return a * b;
    case POLICY_DIVIDE:
        return b != 0 ? a / b : INFINITY;
    case POLICY_LOWER:
        return fmin(a, b);
    default:
        return fmax(a, b);
    }
}

int policy_calculate(struct policy_writer *w, enum policy_code code,
                     struct policy_part *a, const struct policy_part *b)
{
    static const char *const names[] = {"'+'", "'-'", "'*'", "'/'", "min", "max"};
    struct policy_op *op = w->condition.op;
    struct policy_unit unit;
    int r = want_number(w, a, names[code - POLICY_ADD]);

    if (r == 0)
        r = want_number(w, b, names[code - POLICY_ADD]);
    if (r == 0)
        r = unit_of(w, code, a, b, &unit);
    if (r < 0)
        return r;
    a->unit = unit;
    a->to = b->to;
    if (!a->constant || !b->constant) {
        becomes(a, POLICY_NUMBER);
        return emit(w, a->from, &(struct policy_op){.code = (uint8_t)code}, 2);
    }
    double v = calculated(code, op[a->first].number, op[b->first].number);
    if (!isfinite(v))
        return refuse(w, b->from, "%s",
                      code == POLICY_DIVIDE ? "division by zero" : "too large");
    op[a->first].number = v;
    w->condition.n_ops--;
    w->stack--;
    return 0;
}

/* A quoted text that is compared with a signal must be a possible value of the signal;
 * it is replaced by its meaning.
 */
static int check_word(struct policy_writer *w, const struct policy_part *signal,
                      const struct policy_part *text)
{
    const struct policy_word *words = signal->signal->words;
    size_t n = text->to - text->from;
    struct nearest near = {0};
    char hint[NEAREST_TEXT], span[POLICY_SPAN];

    for (; words && words->word; words++) {
        if (strlen(words->word) == n && memcmp(words->word, w->text + text->from, n) == 0)
            return strcmp(words->word, words->means) == 0
                       ? 0
                       : add_literal(w, text->from, words->means, strlen(words->means),
                                     &w->condition.op[text->first].text);
        nearest_try(&near, w->text + text->from, n, words->word);
    }
    if (!signal->signal->words)
        return 0;
    return refuse(w, text->from, "%s is never '%s'%s", signal->signal->name,
                  policy_span(w, text, span), nearest_text(&near, hint));
}

static int compare_texts(struct policy_writer *w, const struct policy_part *a,
                         const struct policy_part *b)
{
    if (a->read && b->constant)
        return check_word(w, a, b);
    if (b->read && a->constant)
        return check_word(w, b, a);
    return 0;
}

/* == and !=: operands of any type, both of the same. */
static int compare_same(struct policy_writer *w, bool differs, struct policy_part *a,
                        const struct policy_part *b)
{
    struct policy_op op = {.code = a->type == POLICY_NUMBER ? POLICY_SAME_NUMBER
                                   : a->type == POLICY_TEXT ? POLICY_SAME_TEXT
                                                            : POLICY_SAME_TRUTH};
    int r = a->type == POLICY_TEXT ? compare_texts(w, a, b) : 0;

    if (r < 0)
        return r;
    turn(w, a->first, 0); /* either truth of the operand may make it true */
    r = emit(w, a->from, &op, 2);
    if (r == 0 && differs)
        r = emit(w, a->from, &(struct policy_op){.code = POLICY_NOT}, 1);
    return r;
}

/* The value to which hysteresis is relative: the number with which a signal is compared.
 */
static double margin(const struct policy_writer *w, const struct policy_part *a,
                     const struct policy_part *b)
{
    if (a->read && b->constant)
        return fabs(w->condition.op[b->first].number);
    if (b->read && a->constant)
        return fabs(w->condition.op[a->first].number);
    return 0;
}

int policy_compare(struct policy_writer *w, enum policy_token_kind how,
                   struct policy_part *a, const struct policy_part *b)
{
    bool same = how == POLICY_TOKEN_EQUAL || how == POLICY_TOKEN_DIFFERS;
    char span[POLICY_SPAN], kind[POLICY_UNIT_NAME + 8];

    if (a->type != b->type ||
        (a->type == POLICY_NUMBER && !policy_unit_same(&a->unit, &b->unit)))
        return fail_fit(w, a, b);
    if (!same && a->type != POLICY_NUMBER)
        return refuse(w, a->from, "%s is %s: only == and != compare it",
                      policy_span(w, a, span), policy_kind(a, kind));
    int r;
    if (same) {
        r = compare_same(w, how == POLICY_TOKEN_DIFFERS, a, b);
    } else {
        struct policy_op op = {.code = how == POLICY_TOKEN_LESS      ? POLICY_LESS
                                       : how == POLICY_TOKEN_AT_MOST ? POLICY_AT_MOST
                                       : how == POLICY_TOKEN_GREATER ? POLICY_GREATER
                                                                     : POLICY_AT_LEAST,
                               .number = margin(w, a, b)};
        r = emit(w, a->from, &op, 2);
    }
    a->to = b->to;
    becomes(a, POLICY_TRUTH);
    return r;
}

int policy_logic(struct policy_writer *w, enum policy_code code, struct policy_part *a,
                 const struct policy_part *b)
{
    const char *what = code == POLICY_AND ? "and" : "or";
    int r = want_truth(w, a, what);

    if (r == 0)
        r = want_truth(w, b, what);
    if (r < 0)
        return r;
    a->to = b->to;
    becomes(a, POLICY_TRUTH);
    return emit(w, a->from, &(struct policy_op){.code = (uint8_t)code}, 2);
}

static bool shortens(const struct policy_op *read, const struct policy_op *constant,
                     const struct policy_op *comparison)
{
    if (read->code == POLICY_READ_NUMBER && constant->code == POLICY_PUSH_NUMBER)
        return comparison->code >= POLICY_LESS && comparison->code <= POLICY_SAME_NUMBER;
    return read->code == POLICY_READ_TEXT && constant->code == POLICY_PUSH_TEXT &&
           comparison->code == POLICY_SAME_TEXT;
}

void policy_shorten(struct policy_condition *c)
{
    uint16_t n = 0;

    for (size_t i = 0; i < c->n_ops; i++) {
        const struct policy_op *op = &c->op[i];
        if (i + 2 >= c->n_ops || !shortens(op, op + 1, op + 2)) {
            c->op[n++] = *op;
            continue;
        }
        double margin = op[2].number;
        c->op[n++] = (struct policy_op){
            .code = (uint8_t)(op[2].code - POLICY_LESS + POLICY_IS_LESS),
            .way = (int8_t)((margin > 0) - (margin < 0)),
            .slot = op->slot,
            .text = op[1].text,
            .number = op[1].number};
        i += 2;
    }
    c->n_ops = n;
}
