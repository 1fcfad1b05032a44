#include "base/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 40 }; /* longer words are near to none */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Optimal string alignment: Levenshtein's distance with swaps of neighbours.  Both words
 * are at most WORD_MAX long.
 */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t row[3][WORD_MAX + 1];

    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3];
        const size_t *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1,
                           last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

void nearest_try(struct nearest *n, const char *text, size_t len, const char *known)
{
    size_t m = strlen(known), most = least((len > m ? len : m) / 3, 3);

    if (len == 0 || len > WORD_MAX || m > WORD_MAX)
        return;
    size_t d = distance(text, len, known, m);
    if (d <= most && (!n->word || d < n->distance))
        *n = (struct nearest){.word = known, .distance = d};
}

const char *nearest_text(const struct nearest *n, char ret[NEAREST_TEXT])
{
    ret[0] = '\0';
    if (n->word)
        (void)snprintf(ret, NEAREST_TEXT, ": did you mean '%.*s'?", WORD_MAX, n->word);
    return ret;
}

const char *nearest_of(const char *text, const char *const *known, char ret[NEAREST_TEXT])
{
    struct nearest near = {0};

    for (; *known; known++)
        nearest_try(&near, text, strlen(text), *known);
    return nearest_text(&near, ret);
}

const char *nearest_none_of(const char *text, const char *const *known,
                            char ret[NEAREST_NONE])
{
    char near[NEAREST_TEXT];

    (void)nearest_of(text, known, near);
    int n = snprintf(ret, NEAREST_NONE, "'%.*s' is none of: ", WORD_MAX, text);
    size_t at = n > 0 ? (size_t)n : 0, end = NEAREST_NONE - strlen(near);
    for (size_t i = 0; known[i]; i++) {
        size_t more = known[i + 1] ? sizeof ", …" - 1 : 0;
        if (at + strlen(known[i]) + sizeof ", " + more > end) {
            (void)snprintf(ret + at, end - at, "%s…", i ? ", " : "");
            break;
        }
        (void)snprintf(ret + at, end - at, "%s%s", i ? ", " : "", known[i]);
        at += strlen(ret + at);
    }
    at = strlen(ret);
    (void)snprintf(ret + at, NEAREST_NONE - at, "%s", near);
    return ret;
}
