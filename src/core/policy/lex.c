#include "core/policy/lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"

enum { NUMBER_MAX = 32 };

int policy_lex_fail(const char *text, size_t at, uw_error *err, const char *format, ...)
{
    uw_error what;
    size_t column = 1;
    va_list ap;

    for (size_t i = 0; i < at; i++)
        column += ((unsigned char)text[i] & 0xc0) != 0x80;
    va_start(ap, format);
    (void)vsnprintf(what.text, sizeof what.text, format, ap);
    va_end(ap);
    return fail(err, -EINVAL, "column %zu: %.170s", column, what.text);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static size_t digits(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && isdigit((unsigned char)text[n]))
        n++;
    return n;
}

/* Length of digits[.digits][e[+-]digits]. */
static size_t number_length(const char *text, size_t len)
{
    size_t n = digits(text, len);

    if (n < len && text[n] == '.')
        n += 1 + digits(text + n + 1, len - n - 1);
    if (n < len && (text[n] == 'e' || text[n] == 'E')) {
        size_t sign = n + 1 < len && (text[n + 1] == '+' || text[n + 1] == '-');
        size_t power = digits(text + n + 1 + sign, len - n - 1 - sign);
        if (power)
            n += 1 + sign + power;
    }
    return n;
}

static bool is_keyword(const char *text, size_t len)
{
    static const char *const words[] = {"and", "or", "not"};

    for (size_t i = 0; i < n_elements(words); i++)
        if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
            return true;
    return false;
}

/* A word behind a number that is not a unit. */
static int fail_unit(const char *text, size_t len, size_t at, uw_error *err)
{
    struct nearest near = {0};
    char hint[NEAREST_TEXT];
    size_t n = 0;
    const char *known;

    while (at + n < len && (is_name(text[at + n]) || (text[at + n] & 0x80)))
        n++;
    for (size_t i = 0; (known = policy_unit_known(i)); i++)
        nearest_try(&near, text + at, n, known);
    return policy_lex_fail(text, at, err, "'%.*s' is no unit%s", n < 40 ? (int)n : 40,
                           text + at, nearest_text(&near, hint));
}

/* The unit behind a number; without one, a plain number. */
static int lex_unit(const char *text, size_t len, struct policy_token *t, uw_error *err)
{
    double factor = 1;
    size_t at = t->to, n = 0;

    while (at < len && is_blank(text[at]))
        at++;
    if (at == len)
        return 0;
    while (at + n < len && is_name(text[at + n]))
        n++;
    if (is_keyword(text + at, n))
        return 0;
    size_t unit = policy_unit_read(text + at, len - at, &t->unit, &factor);
    if (unit == 0)
        return n || (text[at] & 0x80) ? fail_unit(text, len, at, err) : 0;
    if (at + unit < len && text[at + unit - 1] != '%' && is_name(text[at + unit]))
        return fail_unit(text, len, at, err);
    t->to = at + unit;
    t->number *= factor;
    return 0;
}

static int lex_number(const char *text, size_t len, struct policy_token *t, uw_error *err)
{
    size_t n = number_length(text + t->from, len - t->from);
    char copy[NUMBER_MAX + 1];
    uw_error why;

    if (n > NUMBER_MAX)
        return policy_lex_fail(text, t->from, err, "a number has %d characters at most",
                               NUMBER_MAX);
    memcpy(copy, text + t->from, n);
    copy[n] = '\0';
    if (parse_double(copy, &t->number, &why) < 0 || t->number > 1e15)
        return policy_lex_fail(text, t->from, err, "'%s' is too large", copy);
    t->kind = POLICY_TOKEN_NUMBER;
    t->to = t->from + n;
    return lex_unit(text, len, t, err);
}

static int lex_text(const char *text, size_t len, struct policy_token *t, uw_error *err)
{
    const char *end = memchr(text + t->from + 1, '\'', len - t->from - 1);

    if (!end)
        return policy_lex_fail(text, t->from, err, "this quote is not closed");
    t->kind = POLICY_TOKEN_TEXT;
    t->from++;
    t->to = (size_t)(end - text);
    t->next = t->to + 1;
    for (size_t i = t->from, n; i < t->to; i += n) {
        n = utf8_plain_char(text + i, t->to - i);
        if (n == 0)
            return policy_lex_fail(text, i, err, "a character that is not plain text");
    }
    return 0;
}

static void lex_name(const char *text, size_t len, struct policy_token *t)
{
    static const struct {
        const char *word;
        enum policy_token_kind kind;
    } words[] = {{"and", POLICY_TOKEN_AND},
                 {"or", POLICY_TOKEN_OR},
                 {"not", POLICY_TOKEN_NOT},
                 {"true", POLICY_TOKEN_TRUE},
                 {"false", POLICY_TOKEN_FALSE}};
    size_t n = 0;

    while (t->from + n < len && is_name(text[t->from + n]))
        n++;
    t->to = t->from + n;
    t->kind = POLICY_TOKEN_NAME;
    for (size_t i = 0; i < n_elements(words); i++)
        if (strlen(words[i].word) == n && memcmp(words[i].word, text + t->from, n) == 0)
            t->kind = words[i].kind;
}

static int lex_operator(const char *text, size_t len, struct policy_token *t,
                        uw_error *err)
{
    static const struct {
        const char *text;
        enum policy_token_kind kind; /* POLICY_TOKEN_END: another language's */
        const char *instead;
    } operators[] = {
        /* clang-format off */
        {"<=", POLICY_TOKEN_AT_MOST, NULL}, {">=", POLICY_TOKEN_AT_LEAST, NULL},
        {"==", POLICY_TOKEN_EQUAL, NULL}, {"!=", POLICY_TOKEN_DIFFERS, NULL},
        {"&&", POLICY_TOKEN_END, "and"}, {"||", POLICY_TOKEN_END, "or"},
        {"<", POLICY_TOKEN_LESS, NULL}, {">", POLICY_TOKEN_GREATER, NULL},
        {"(", POLICY_TOKEN_OPEN, NULL}, {")", POLICY_TOKEN_CLOSE, NULL},
        {"+", POLICY_TOKEN_PLUS, NULL}, {"-", POLICY_TOKEN_MINUS, NULL},
        {"*", POLICY_TOKEN_TIMES, NULL}, {"/", POLICY_TOKEN_OVER, NULL},
        {",", POLICY_TOKEN_COMMA, NULL}, {"=", POLICY_TOKEN_END, "=="},
        {"!", POLICY_TOKEN_END, "not"}, {"\"", POLICY_TOKEN_END, "single quotes"},
    }; /* clang-format on */

    for (size_t i = 0; i < n_elements(operators); i++) {
        size_t n = strlen(operators[i].text);
        if (n > len - t->from || memcmp(operators[i].text, text + t->from, n) != 0)
            continue;
        if (operators[i].instead)
            return policy_lex_fail(text, t->from, err,
                                   "'%s' means nothing here: write %s", operators[i].text,
                                   operators[i].instead);
        t->kind = operators[i].kind;
        t->to = t->from + n;
        return 0;
    }
    size_t n = utf8_plain_char(text + t->from, len - t->from);
    if (n == 0)
        return policy_lex_fail(text, t->from, err, "a character that is not plain text");
    return policy_lex_fail(text, t->from, err, "'%.*s' means nothing here", (int)n,
                           text + t->from);
}

int policy_lex(const char *text, size_t len, size_t at, struct policy_token *ret,
               uw_error *err)
{
    struct policy_token t = {.kind = POLICY_TOKEN_END, .next = len};
    int r = 0;

    while (at < len && is_blank(text[at]))
        at++;
    t.from = t.to = at;
    if (at == len) {
        *ret = t;
        return 0;
    }
    if (isdigit((unsigned char)text[at]))
        r = lex_number(text, len, &t, err);
    else if (isalpha((unsigned char)text[at]))
        lex_name(text, len, &t);
    else if (text[at] == '\'')
        r = lex_text(text, len, &t, err);
    else
        r = lex_operator(text, len, &t, err);
    if (r < 0)
        return r;
    if (t.kind != POLICY_TOKEN_TEXT)
        t.next = t.to;
    *ret = t;
    return 0;
}
