/* The program of a condition while it is written: types, units, instructions.  Pure. */
#ifndef CORE_POLICY_CODE_H
#define CORE_POLICY_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/condition.h"
#include "core/policy/lex.h"

enum policy_code {
    POLICY_PUSH_NUMBER,
    POLICY_PUSH_TEXT,
    POLICY_PUSH_TRUTH,
    POLICY_READ_NUMBER, /* from here on: of the slot */
    POLICY_READ_TEXT,
    POLICY_READ_TRUTH,
    POLICY_IS_KNOWN,
    POLICY_IS_LESS, /* from here on: a signal and a constant, see policy_shorten() */
    POLICY_IS_AT_MOST,
    POLICY_IS_GREATER,
    POLICY_IS_AT_LEAST,
    POLICY_IS_NUMBER,
    POLICY_IS_TEXT,
    POLICY_WORD_KNOWN, /* a number that was computed, or a text */
    POLICY_TRUTH_KNOWN,
    POLICY_NEGATE,
    POLICY_ABS,
    POLICY_NOT,
    POLICY_ADD, /* from here on: of two values */
    POLICY_SUBTRACT,
    POLICY_MULTIPLY,
    POLICY_DIVIDE,
    POLICY_LOWER,
    POLICY_HIGHER,
    POLICY_LESS,
    POLICY_AT_MOST,
    POLICY_GREATER,
    POLICY_AT_LEAST,
    POLICY_SAME_NUMBER,
    POLICY_SAME_TEXT,
    POLICY_SAME_TRUTH,
    POLICY_AND,
    POLICY_OR,
};
static inline bool policy_code_reads(uint8_t code)
{
    return code >= POLICY_READ_NUMBER && code <= POLICY_IS_TEXT;
}

static inline bool policy_code_reads_number(uint8_t code)
{
    return code == POLICY_READ_NUMBER ||
           (code >= POLICY_IS_LESS && code <= POLICY_IS_NUMBER);
}

/* A part of the text and of the program. */
struct policy_part {
    enum policy_type type;
    struct policy_unit unit;
    size_t from, to; /* bytes of the text */
    size_t first;    /* its first instruction; it goes on to the last one */
    bool constant;   /* one instruction: a number or a text */
    bool read;       /* one instruction: a read … */
    const struct policy_signal *signal; /* … of this */
};

struct policy_writer {
    const char *text;
    const struct policy_catalogue *catalogue;
    struct policy_reads *reads;
    struct policy_condition condition;
    size_t stack; /* values at this instruction */
    uw_error *err;
};

/* All of them: 0 or -EINVAL with "column N: …". */

/* Instructions that push a value; part has from and to, the rest is set. */
int policy_push_number(struct policy_writer *w, double number,
                       const struct policy_unit *unit, struct policy_part *part);
int policy_push_text(struct policy_writer *w, struct policy_part *part);
int policy_push_truth(struct policy_writer *w, bool truth, struct policy_part *part);
int policy_push_read(struct policy_writer *w, const struct policy_read *read,
                     struct policy_part *part);

/* Instructions on the last value, or on the last two; a becomes the result. */
int policy_known(struct policy_writer *w, struct policy_part *a);
int policy_negate(struct policy_writer *w, struct policy_part *a);
int policy_abs(struct policy_writer *w, struct policy_part *a);
int policy_not(struct policy_writer *w, struct policy_part *a);
int policy_calculate(struct policy_writer *w, enum policy_code code,
                     struct policy_part *a, const struct policy_part *b);
int policy_compare(struct policy_writer *w, enum policy_token_kind how,
                   struct policy_part *a, const struct policy_part *b);
int policy_logic(struct policy_writer *w, enum policy_code code, struct policy_part *a,
                 const struct policy_part *b);

/* Of a whole program: a read, a constant and what compares the two in this order become
 * one instruction.
 */
void policy_shorten(struct policy_condition *c);

/* A part of the text for a message, shortened.  Returns ret. */
enum { POLICY_SPAN = 48 };
const char *policy_span(const struct policy_writer *w, const struct policy_part *part,
                        char ret[POLICY_SPAN]);
/* "a text", "true or false", "in g/kWh", "a plain number".  Returns ret. */
const char *policy_kind(const struct policy_part *part, char ret[POLICY_UNIT_NAME + 8]);

#endif
