#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/policy/code.h"
#include "core/policy/condition.h"

struct cell {
    union {
        double number;
        const char *text;
        bool truth;
    };
    bool known;
};

static struct cell truth(bool known, bool is)
{
    return (struct cell){.truth = is, .known = known};
}

/* What no number can be is unknown: a division by zero, an overflow. */
static struct cell number(bool known, double v)
{
    return (struct cell){.number = v, .known = known && isfinite(v)};
}

/* a is within s beyond b.  s negative: before b. */
static struct cell compare(unsigned code, bool known, double a, double b, double s)
{
    switch (code) {
    case POLICY_LESS:
        return truth(known, a < b + s);
    case POLICY_AT_MOST:
        return truth(known, a <= b + s);
    case POLICY_GREATER:
        return truth(known, a > b - s);
    default:
        return truth(known, a >= b - s);
    }
}

/* Kleene's: what one of the two decides is known. */
static struct cell decide(const struct cell *a, const struct cell *b, bool by)
{
    if ((a->known && a->truth == by) || (b->known && b->truth == by))
        return truth(true, by);
    return truth(a->known && b->known, !by);
}

static struct cell both(const struct policy_op *op, const struct cell *a,
                        const struct cell *b, double widen)
{
    bool known = a->known && b->known;

    switch (op->code) {
    case POLICY_AND:
        return decide(a, b, false);
    case POLICY_OR:
        return decide(a, b, true);
    case POLICY_SAME_TRUTH:
        return truth(known, known && a->truth == b->truth);
    case POLICY_SAME_TEXT:
        return truth(known, known && strcmp(a->text, b->text) == 0);
    default:
        break;
    }
    if (!known)
        return (struct cell){.known = false};
    switch (op->code) {
    case POLICY_ADD:
        return number(true, a->number + b->number);
    case POLICY_SUBTRACT:
        return number(true, a->number - b->number);
    case POLICY_MULTIPLY:
        return number(true, a->number * b->number);
    case POLICY_DIVIDE:
        return number(b->number != 0, b->number != 0 ? a->number / b->number : 0);
    case POLICY_LOWER:
        return number(true, a->number < b->number ? a->number : b->number);
    case POLICY_HIGHER:
        return number(true, a->number > b->number ? a->number : b->number);
    case POLICY_SAME_NUMBER:
        return truth(true, a->number == b->number);
    default:
        return compare(op->code, true, a->number, b->number, op->number * widen);
    }
}

static struct cell one(const struct policy_op *op, const struct cell *a)
{
    switch (op->code) {
    case POLICY_KNOWN:
        return truth(true, a->known);
    case POLICY_FORGET:
        return truth(false, false);
    case POLICY_NEGATE:
        return number(a->known, a->known ? -a->number : 0);
    case POLICY_ABS:
        return number(a->known, a->known ? fabs(a->number) : 0);
    default:
        return truth(a->known, a->known && !a->truth);
    }
}

struct run {
    const struct policy_condition *c;
    const struct policy_value *values;
    double widen;
    uint64_t now_ns;
    struct policy_result *ret;
};

static bool usable(const struct run *run, const struct policy_value *v)
{
    if (!v->known || run->now_ns >= v->until_ns)
        return false;
    if (v->until_ns < run->ret->due_ns)
        run->ret->due_ns = v->until_ns;
    return true;
}

static struct cell push(const struct run *run, const struct policy_op *op)
{
    const struct policy_value *v;

    switch (op->code) {
    case POLICY_PUSH_NUMBER:
        return number(true, op->number);
    case POLICY_PUSH_TEXT:
        return (struct cell){.text = run->c->literals + op->slot, .known = true};
    case POLICY_PUSH_TRUTH:
        return truth(true, op->number != 0);
    case POLICY_IS_KNOWN:
        return truth(true, usable(run, &run->values[op->slot]));
    default:
        break;
    }
    v = &run->values[op->slot];
    if (usable(run, v)) {
        struct cell cell = {.known = true};
        memcpy(&cell, v, sizeof cell.number);
        if (op->code == POLICY_READ || isfinite(v->number))
            return cell;
    }
    if (run->ret->unknown == POLICY_NO_SLOT)
        run->ret->unknown = op->slot;
    return (struct cell){.known = false};
}

/* Does op; returns how many values there are now. */
static size_t step(const struct run *run, const struct policy_op *op, struct cell *stack,
                   size_t n)
{
    if (op->code >= POLICY_ADD) {
        assert(n >= 2);
        stack[n - 2] = both(op, &stack[n - 2], &stack[n - 1], run->widen);
        return n - 1;
    }
    if (op->code >= POLICY_KNOWN) {
        assert(n >= 1);
        stack[n - 1] = one(op, &stack[n - 1]);
        return n;
    }
    assert(n < POLICY_STACK);
    stack[n] = push(run, op);
    return n + 1;
}

void policy_evaluate(const struct policy_condition *c, const struct policy_value *values,
                     double widen, uint64_t now_ns, struct policy_result *ret)
{
    struct cell stack[POLICY_STACK];
    const struct run run = {c, values, widen, now_ns, ret};
    size_t n = 0;

    *ret = (struct policy_result){.unknown = POLICY_NO_SLOT, .due_ns = UINT64_MAX};
    for (size_t i = 0; i < c->n_ops; i++)
        n = step(&run, &c->op[i], stack, n);
    assert(n == 1);
    ret->truth = !stack[0].known  ? POLICY_UNKNOWN
                 : stack[0].truth ? POLICY_TRUE
                                  : POLICY_FALSE;
}

/* By Kleene's logic a condition that is known while all values are unknown is the same
 * for any values; known() alone is not so, and counts as unknown here.
 */
enum policy_truth policy_condition_constant(const struct policy_condition *c)
{
    static const struct policy_value unknown[POLICY_READS_MAX];
    struct policy_condition all = *c;
    struct policy_result result;

    for (size_t i = 0; i < all.n_ops; i++) {
        if (all.op[i].code == POLICY_IS_KNOWN)
            all.op[i].code = POLICY_READ;
        else if (all.op[i].code == POLICY_KNOWN)
            all.op[i].code = POLICY_FORGET;
    }
    policy_evaluate(&all, unknown, 0, 0, &result);
    return result.truth;
}
