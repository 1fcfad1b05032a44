/* The words of a condition.  Pure. */
#ifndef CORE_POLICY_LEX_H
#define CORE_POLICY_LEX_H

#include <stddef.h>

#include "core/policy/unit.h"
#include "underwatt/error.h"

enum policy_token_kind {
    POLICY_TOKEN_END,
    POLICY_TOKEN_NUMBER,
    POLICY_TOKEN_TEXT, /* from..to without its quotes */
    POLICY_TOKEN_NAME,
    POLICY_TOKEN_OPEN,
    POLICY_TOKEN_CLOSE,
    POLICY_TOKEN_COMMA,
    POLICY_TOKEN_PLUS,
    POLICY_TOKEN_MINUS,
    POLICY_TOKEN_TIMES,
    POLICY_TOKEN_OVER,
    POLICY_TOKEN_LESS,
    POLICY_TOKEN_AT_MOST,
    POLICY_TOKEN_GREATER,
    POLICY_TOKEN_AT_LEAST,
    POLICY_TOKEN_EQUAL,
    POLICY_TOKEN_DIFFERS,
    POLICY_TOKEN_AND,
    POLICY_TOKEN_OR,
    POLICY_TOKEN_NOT,
    POLICY_TOKEN_TRUE,
    POLICY_TOKEN_FALSE,
};

struct policy_token {
    enum policy_token_kind kind;
    size_t from, to;         /* bytes of the text */
    size_t next;             /* where the next token is looked for */
    double number;           /* in watts, seconds, … */
    struct policy_unit unit; /* of a number */
};

/* The token at byte `at` or behind the blanks there.  -EINVAL with "column N: …". */
int policy_lex(const char *text, size_t len, size_t at, struct policy_token *ret,
               uw_error *err);

/* fail() with "column N: " in front, counted in characters from 1. */
int policy_lex_fail(const char *text, size_t at, uw_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
