#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/policy/code.h"
#include "core/policy/condition.h"

/* A truth value.  Operands on the stack are packed into one integer, TRUTH_BITS each,
 * the top of the stack in the lowest bits.  Results that depend on values are computed
 * without branches where possible, because a processor predicts these badly.
 */
enum { IS_UNKNOWN = 0, IS_FALSE = 1, IS_TRUE = 2, TRUTH_BITS = 2, TRUTH_MASK = 3 };
_Static_assert(TRUTH_BITS *POLICY_STACK <= 64, "all truths fit");

struct word {
    union {
        double number;
        const char *text;
    };
    bool known;
};
/* The stack of numbers and texts. */
struct words {
    size_t n;
    struct word word[POLICY_STACK];
};
struct run {
    const char *literals;
    const struct policy_value *values;
    double widen;
    uint64_t now_ns, due_ns;
    uint64_t truths;
    bool blind; /* known() is unknown */
};

static inline unsigned usable(const struct policy_value *v, uint64_t now_ns)
{
    return (unsigned)v->known & (now_ns < v->until_ns);
}

static inline const struct policy_value *value(const struct run *run,
                                               const struct policy_op *op)
{
    return &run->values[op->slot];
}

/* Whether the slot's value is known: 1 or 0. */
static inline unsigned look(struct run *run, const struct policy_op *op)
{
    const struct policy_value *v = value(run, op);
    unsigned is = usable(v, run->now_ns);
    uint64_t until_ns = v->until_ns | ((uint64_t)is - 1); /* UINT64_MAX if unknown */

    run->due_ns = until_ns < run->due_ns ? until_ns : run->due_ns;
    return is;
}

/* Whether the slot's value is known and a finite number: 1 or 0. */
static inline unsigned look_number(struct run *run, const struct policy_op *op)
{
    return look(run, op) & (isfinite(value(run, op)->number) != 0);
}

/* ---- truths ---- */

/* known: 1 or 0. */
static inline void push(struct run *run, unsigned known, bool truth)
{
    run->truths = run->truths << TRUTH_BITS | ((IS_FALSE + (unsigned)truth) & -known);
}

static inline unsigned pop(struct run *run)
{
    unsigned is = run->truths & TRUTH_MASK;

    run->truths >>= TRUTH_BITS;
    return is;
}

/* By how much hysteresis moves the number with which a signal is compared. */
static inline double margin(const struct run *run, const struct policy_op *op)
{
    return op->way * fabs(op->number) * run->widen;
}

static inline double above(const struct run *run, const struct policy_op *op)
{
    return op->number + margin(run, op);
}

static inline double below(const struct run *run, const struct policy_op *op)
{
    return op->number - margin(run, op);
}

/* Kleene's logic: an operand with the truth `by` decides the result even if the other
 * operand is unknown.
 */
static inline void decide(struct run *run, unsigned by)
{
    unsigned a = pop(run), b = pop(run);

    run->truths = run->truths << TRUTH_BITS | ((a | b) & by) | (a & b);
}

/* false: op makes or takes numbers or texts on the stack. */
static inline bool step_truth(struct run *run, const struct policy_op *op)
{
    const struct policy_value *v = value(run, op);
    unsigned is, other;

    switch (op->code) {
    case POLICY_IS_LESS:
        push(run, look_number(run, op), v->number < above(run, op));
        return true;
    case POLICY_IS_AT_MOST:
        push(run, look_number(run, op), v->number <= above(run, op));
        return true;
    case POLICY_IS_GREATER:
        push(run, look_number(run, op), v->number > below(run, op));
        return true;
    case POLICY_IS_AT_LEAST:
        push(run, look_number(run, op), v->number >= below(run, op));
        return true;
    case POLICY_IS_NUMBER:
        push(run, look_number(run, op), v->number == op->number);
        return true;
    case POLICY_IS_TEXT:
        is = look(run, op);
        push(run, is, is && strcmp(v->text, run->literals + op->text) == 0);
        return true;
    case POLICY_READ_TRUTH:
        push(run, look(run, op), v->truth);
        return true;
    case POLICY_IS_KNOWN:
        push(run, !run->blind, look(run, op));
        return true;
    case POLICY_PUSH_TRUTH:
        push(run, true, op->number != 0);
        return true;
    case POLICY_NOT:
        is = pop(run);
        push(run, is != IS_UNKNOWN, is == IS_FALSE);
        return true;
    case POLICY_AND:
        decide(run, IS_FALSE);
        return true;
    case POLICY_OR:
        decide(run, IS_TRUE);
        return true;
    case POLICY_SAME_TRUTH:
        is = pop(run);
        other = pop(run);
        push(run, is != IS_UNKNOWN && other != IS_UNKNOWN, is == other);
        return true;
    case POLICY_TRUTH_KNOWN:
        is = pop(run);
        push(run, !run->blind, is != IS_UNKNOWN);
        return true;
    default:
        return false;
    }
}

/* ---- numbers and texts ---- */

static struct word *push_word(struct words *w)
{
    assert(w->n < POLICY_STACK);
    return &w->word[w->n++];
}

/* Stores an arithmetic result.  A result that is no finite number (division by zero,
 * overflow) is unknown.
 */
static void put_number(struct word *ret, double v)
{
    ret->number = v;
    ret->known &= isfinite(v) != 0;
}

/* Replaces two values by the result. */
static void calculate(struct words *w, const struct policy_op *op)
{
    assert(w->n >= 2);
    struct word *a = &w->word[w->n - 2], *b = a + 1;
    double x = a->number, y = b->number;

    w->n--;
    a->known &= b->known;
    switch (op->code) {
    case POLICY_ADD:
        put_number(a, x + y);
        break;
    case POLICY_SUBTRACT:
        put_number(a, x - y);
        break;
    case POLICY_MULTIPLY:
        put_number(a, x * y);
        break;
    case POLICY_DIVIDE:
        put_number(a, y != 0 ? x / y : NAN);
        break;
    case POLICY_LOWER:
        put_number(a, x < y ? x : y);
        break;
    default:
        put_number(a, x > y ? x : y);
    }
}

/* Replaces two values by a truth. */
static void compare_words(struct run *run, struct words *w, const struct policy_op *op)
{
    assert(w->n >= 2);
    const struct word *a = &w->word[w->n - 2], *b = a + 1;
    double x = a->number, y = b->number, beyond = op->number * run->widen;
    bool known = a->known & b->known;

    w->n -= 2;
    switch (op->code) {
    case POLICY_LESS:
        push(run, known, x < y + beyond);
        break;
    case POLICY_AT_MOST:
        push(run, known, x <= y + beyond);
        break;
    case POLICY_GREATER:
        push(run, known, x > y - beyond);
        break;
    case POLICY_AT_LEAST:
        push(run, known, x >= y - beyond);
        break;
    case POLICY_SAME_NUMBER:
        push(run, known, x == y);
        break;
    default:
        push(run, known, known && strcmp(a->text, b->text) == 0);
    }
}

static void step_word(struct run *run, struct words *w, const struct policy_op *op)
{
    struct word *a;

    switch (op->code) {
    case POLICY_PUSH_NUMBER:
        *push_word(w) = (struct word){.number = op->number, .known = true};
        break;
    case POLICY_PUSH_TEXT:
        *push_word(w) = (struct word){.text = run->literals + op->text, .known = true};
        break;
    case POLICY_READ_NUMBER:
        a = push_word(w);
        a->number = value(run, op)->number;
        a->known = look_number(run, op);
        break;
    case POLICY_READ_TEXT:
        a = push_word(w);
        a->text = value(run, op)->text;
        a->known = look(run, op);
        break;
    case POLICY_WORD_KNOWN:
        assert(w->n >= 1);
        push(run, !run->blind, w->word[--w->n].known);
        break;
    case POLICY_NEGATE:
    case POLICY_ABS:
        assert(w->n >= 1);
        a = &w->word[w->n - 1];
        a->number = op->code == POLICY_ABS ? fabs(a->number) : -a->number;
        break;
    default:
        if (op->code < POLICY_LESS)
            calculate(w, op);
        else
            compare_words(run, w, op);
    }
}

/* ---- whole conditions ---- */

/* The first unknown slot that the condition reads. */
static uint16_t first_unknown(const struct policy_condition *c,
                              const struct policy_value *values, uint64_t now_ns)
{
    for (size_t i = 0; i < c->n_ops; i++) {
        const struct policy_op *op = &c->op[i];
        const struct policy_value *v = &values[op->slot];
        if (!policy_code_reads(op->code) || op->code == POLICY_IS_KNOWN)
            continue;
        if (!usable(v, now_ns) ||
            (policy_code_reads_number(op->code) && !isfinite(v->number)))
            return op->slot;
    }
    return POLICY_NO_SLOT;
}

static void evaluate(const struct policy_condition *c, const struct policy_value *values,
                     double widen, uint64_t now_ns, bool blind, struct policy_result *ret)
{
    static const enum policy_truth truths[] = {[IS_UNKNOWN] = POLICY_UNKNOWN,
                                               [IS_FALSE] = POLICY_FALSE,
                                               [IS_TRUE] = POLICY_TRUE};
    struct run run = {.literals = c->literals,
                      .values = values,
                      .widen = widen,
                      .now_ns = now_ns,
                      .due_ns = UINT64_MAX,
                      .blind = blind};
    struct words words; /* each is written before it is read */

    words.n = 0;
    for (const struct policy_op *op = c->op; op < c->op + c->n_ops; op++)
        if (!step_truth(&run, op))
            step_word(&run, &words, op);
    assert(words.n == 0 && run.truths <= IS_TRUE);
    ret->truth = truths[run.truths];
    ret->due_ns = run.due_ns;
    ret->unknown =
        ret->truth == POLICY_UNKNOWN ? first_unknown(c, values, now_ns) : POLICY_NO_SLOT;
}

void policy_evaluate(const struct policy_condition *c, const struct policy_value *values,
                     double widen, uint64_t now_ns, struct policy_result *ret)
{
    evaluate(c, values, widen, now_ns, false, ret);
}

/* In Kleene's logic, a condition that is known while all values are unknown has that
 * result for any values.  known() is the exception, and counts as unknown here.
 */
enum policy_truth policy_condition_constant(const struct policy_condition *c)
{
    static const struct policy_value unknown[POLICY_READS_MAX];
    struct policy_result result;

    evaluate(c, unknown, 0, 0, true, &result);
    return result.truth;
}
