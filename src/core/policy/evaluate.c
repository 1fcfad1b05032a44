#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/policy/code.h"
#include "core/policy/condition.h"

union word {
    double number;
    const char *text;
    bool truth;
};

/* Words and whether they are known lie apart: a word is read as it was written. */
struct run {
    const struct policy_condition *c;
    const struct policy_value *values;
    double widen;
    uint64_t now_ns;
    struct policy_result *ret;
    union word word[POLICY_STACK]; /* unknown: 0 */
    bool known[POLICY_STACK];
};

static bool usable(const struct run *run, const struct policy_value *v)
{
    if (!v->known || run->now_ns >= v->until_ns)
        return false;
    if (v->until_ns < run->ret->due_ns)
        run->ret->due_ns = v->until_ns;
    return true;
}

static void read_slot(struct run *run, const struct policy_op *op, size_t n)
{
    const struct policy_value *v = &run->values[op->slot];

    run->word[n].number = 0;
    run->known[n] = usable(run, v) && (op->code == POLICY_READ || isfinite(v->number));
    if (run->known[n])
        memcpy(&run->word[n], v, sizeof run->word[n]);
    else if (run->ret->unknown == POLICY_NO_SLOT)
        run->ret->unknown = op->slot;
}

static inline void forget(struct run *run, size_t n)
{
    run->known[n] = false;
    run->word[n].number = 0;
}

/* Writes the word n. */
static inline void push(struct run *run, const struct policy_op *op, size_t n)
{
    run->known[n] = true;
    switch (op->code) {
    case POLICY_PUSH_NUMBER:
        run->word[n].number = op->number;
        break;
    case POLICY_PUSH_TEXT:
        run->word[n].text = run->c->literals + op->slot;
        break;
    case POLICY_PUSH_TRUTH:
        run->word[n].truth = op->number != 0;
        break;
    case POLICY_IS_KNOWN:
        run->word[n].truth = usable(run, &run->values[op->slot]);
        break;
    default:
        read_slot(run, op, n);
    }
}

/* Changes the word n. */
static inline void one(struct run *run, const struct policy_op *op, size_t n)
{
    union word *a = &run->word[n];

    switch (op->code) {
    case POLICY_KNOWN:
        a->truth = run->known[n];
        run->known[n] = true;
        break;
    case POLICY_FORGET:
        forget(run, n);
        break;
    case POLICY_NEGATE:
        a->number = -a->number;
        break;
    case POLICY_ABS:
        a->number = fabs(a->number);
        break;
    default:
        a->truth = !a->truth;
    }
}

/* An arithmetic result; what no number can be (a division by zero, an overflow) is
 * unknown.
 */
static inline bool put_number(union word *ret, double v)
{
    ret->number = isfinite(v) ? v : 0;
    return isfinite(v);
}

/* Of known values.  Returns whether the result is known, too. */
static inline bool both(const struct policy_op *op, union word *a, const union word *b,
                        double widen)
{
    double x = a->number, y = b->number, beyond = op->number * widen;

    switch (op->code) {
    case POLICY_ADD:
        return put_number(a, x + y);
    case POLICY_SUBTRACT:
        return put_number(a, x - y);
    case POLICY_MULTIPLY:
        return put_number(a, x * y);
    case POLICY_DIVIDE:
        return put_number(a, y != 0 ? x / y : NAN);
    case POLICY_LOWER:
        return put_number(a, x < y ? x : y);
    case POLICY_HIGHER:
        return put_number(a, x > y ? x : y);
    case POLICY_LESS:
        a->truth = x < y + beyond;
        break;
    case POLICY_AT_MOST:
        a->truth = x <= y + beyond;
        break;
    case POLICY_GREATER:
        a->truth = x > y - beyond;
        break;
    case POLICY_AT_LEAST:
        a->truth = x >= y - beyond;
        break;
    case POLICY_SAME_NUMBER:
        a->truth = x == y;
        break;
    case POLICY_SAME_TEXT:
        a->truth = strcmp(a->text, b->text) == 0;
        break;
    default:
        a->truth = a->truth == b->truth;
    }
    return true;
}

/* Kleene's: what one of the two decides is known. */
static inline void decide(struct run *run, size_t a, size_t b, bool by)
{
    bool decided = (run->known[a] && run->word[a].truth == by) ||
                   (run->known[b] && run->word[b].truth == by);

    run->known[a] = decided || (run->known[a] && run->known[b]);
    run->word[a].truth = decided ? by : !by;
}

/* Does op; returns how many values there are now. */
static inline size_t step(struct run *run, const struct policy_op *op, size_t n)
{
    if (op->code < POLICY_KNOWN) {
        assert(n < POLICY_STACK);
        push(run, op, n);
        return n + 1;
    }
    if (op->code < POLICY_ADD) {
        assert(n >= 1);
        one(run, op, n - 1);
        return n;
    }
    assert(n >= 2);
    if (op->code == POLICY_AND || op->code == POLICY_OR)
        decide(run, n - 2, n - 1, op->code == POLICY_OR);
    else if (run->known[n - 2] && run->known[n - 1])
        run->known[n - 2] = both(op, &run->word[n - 2], &run->word[n - 1], run->widen);
    else
        forget(run, n - 2);
    return n - 1;
}

void policy_evaluate(const struct policy_condition *c, const struct policy_value *values,
                     double widen, uint64_t now_ns, struct policy_result *ret)
{
    struct run run;
    size_t n = 0;

    *ret = (struct policy_result){.unknown = POLICY_NO_SLOT, .due_ns = UINT64_MAX};
    run.c = c;
    run.values = values;
    run.widen = widen;
    run.now_ns = now_ns;
    run.ret = ret;
    for (size_t i = 0; i < c->n_ops; i++)
        n = step(&run, &c->op[i], n);
    assert(n == 1);
    ret->truth = !run.known[0]       ? POLICY_UNKNOWN
                 : run.word[0].truth ? POLICY_TRUE
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
