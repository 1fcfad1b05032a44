#include "core/policy/never.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/policy/code.h"

enum { SLOTS_MAX = 12, NUMBERS_MAX = 24, VALUES_MAX = 2 * NUMBERS_MAX + 2 };
enum { TRIES_MAX = 2000 };

/* The values that matter for a signal that a condition reads. */
struct domain {
    uint16_t slot;
    enum policy_type type;
    double number[NUMBERS_MAX]; /* numbers with which it is compared */
    const char *text[NUMBERS_MAX];
    size_t n; /* number of them */
    struct policy_value value[VALUES_MAX];
    size_t n_values, at;
};
struct domains {
    const struct policy_catalogue *catalogue;
    const struct policy_reads *reads;
    struct domain domain[SLOTS_MAX];
    size_t n;
    struct policy_value values[POLICY_READS_MAX]; /* the combination under test */
};

static struct domain *domain_of(struct domains *d, uint16_t slot)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->domain[i].slot == slot)
            return &d->domain[i];
    if (d->n == SLOTS_MAX)
        return NULL;
    const struct policy_signal *s = &d->catalogue->signal[d->reads->read[slot].signal];
    d->domain[d->n] = (struct domain){.slot = slot, .type = s->type};
    return &d->domain[d->n++];
}

/* The constant with which the read at i is compared; NULL: the read is used otherwise. */
static const struct policy_op *compared(const struct policy_condition *c, size_t i)
{
    const struct policy_op *op = &c->op[i];

    if (op->code >= POLICY_IS_LESS)
        return op;
    if (i == 0 || i + 1 == c->n_ops || op[1].code < POLICY_LESS ||
        op[1].code > POLICY_SAME_TEXT)
        return NULL;
    return op[-1].code == POLICY_PUSH_NUMBER || op[-1].code == POLICY_PUSH_TEXT ? op - 1
                                                                                : NULL;
}

static bool add_read(struct domains *d, const struct policy_condition *c, size_t i)
{
    const struct policy_op *op = &c->op[i];
    struct domain *to = domain_of(d, op->slot);

    if (!to || to->n == NUMBERS_MAX)
        return false;
    if (op->code == POLICY_IS_KNOWN || to->type == POLICY_TRUTH)
        return true;
    const struct policy_op *with = compared(c, i);
    if (!with)
        return false;
    if (to->type == POLICY_NUMBER)
        to->number[to->n++] = with->number;
    else
        to->text[to->n++] = c->literals + with->text;
    return true;
}

/* Finds the comparisons of the condition; false: it calculates. */
static bool add_condition(struct domains *d, const struct policy_condition *c)
{
    for (size_t i = 0; i < c->n_ops; i++) {
        uint8_t code = c->op[i].code;
        bool calculates = (code >= POLICY_WORD_KNOWN && code <= POLICY_ABS) ||
                          (code >= POLICY_ADD && code <= POLICY_HIGHER);
        if (calculates || (policy_code_reads(code) && !add_read(d, c, i)))
            return false;
    }
    return true;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void add_value(struct domain *d, struct policy_value v)
{
    v.until_ns = UINT64_MAX;
    d->value[d->n_values++] = v;
}

/* A step that changes n at any size of n. */
static double step_from(double n)
{
    return fmax(1, fabs(n) / 2);
}

/* One value below, at, between and above all numbers; each text and another one. */
static void fill(struct domain *d)
{
    add_value(d, (struct policy_value){.known = false});
    if (d->type == POLICY_TRUTH) {
        add_value(d, (struct policy_value){.known = true, .truth = false});
        add_value(d, (struct policy_value){.known = true, .truth = true});
    } else if (d->type == POLICY_TEXT) {
        for (size_t i = 0; i < d->n; i++)
            add_value(d, (struct policy_value){.known = true, .text = d->text[i]});
        add_value(d, (struct policy_value){.known = true, .text = "\n"});
    } else {
        qsort(d->number, d->n, sizeof d->number[0], by_size);
        for (size_t i = 0; i < d->n; i++) {
            double n = d->number[i];
            double low = i ? (d->number[i - 1] + n) / 2 : n - step_from(n);
            add_value(d, (struct policy_value){.known = true, .number = low});
            add_value(d, (struct policy_value){.known = true, .number = n});
        }
        double last = d->n ? d->number[d->n - 1] + step_from(d->number[d->n - 1]) : 0;
        add_value(d, (struct policy_value){.known = true, .number = last});
    }
}

/* Advances to the next combination of values; false: there is none. */
static bool next(struct domains *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (++d->domain[i].at < d->domain[i].n_values)
            return true;
        d->domain[i].at = 0;
    }
    return false;
}

static bool acts(struct domains *d, const struct policy_condition *when,
                 const struct policy_condition *until)
{
    struct policy_result result;

    for (size_t i = 0; i < d->n; i++)
        d->values[d->domain[i].slot] = d->domain[i].value[d->domain[i].at];
    policy_evaluate(when, d->values, 0, 0, &result);
    if (result.truth != POLICY_TRUE || !until)
        return result.truth == POLICY_TRUE;
    policy_evaluate(until, d->values, 0, 0, &result);
    return result.truth == POLICY_FALSE;
}

bool policy_never(const struct policy_condition *when,
                  const struct policy_condition *until,
                  const struct policy_catalogue *catalogue,
                  const struct policy_reads *reads)
{
    struct domains d = {.catalogue = catalogue, .reads = reads};
    size_t tries = 1;

    if (!add_condition(&d, when) || (until && !add_condition(&d, until)))
        return false;
    for (size_t i = 0; i < d.n; i++) {
        fill(&d.domain[i]);
        tries *= d.domain[i].n_values;
        if (tries > TRIES_MAX)
            return false;
    }
    do {
        if (acts(&d, when, until))
            return false;
    } while (next(&d));
    return true;
}
