#include "base/names.h"

#include <stdio.h>
#include <string.h>

#define ROW(id, number, word, text) [number] = {word, text},
#define ROWS(id, of, list) static const struct names_row rows_##id[] = {list(ROW)};
#define LIST(id, of, list) [id] = {of, rows_##id, sizeof rows_##id / sizeof *rows_##id},

NAMES(ROWS)
const struct names_list names_lists[NAMES_N] = {NAMES(LIST)};

static const struct names_row *find(enum names of, unsigned number)
{
    static const struct names_row none = {"?", "?"};
    const struct names_list *l = &names_lists[of];

    return number < l->n && l->name[number].word ? &l->name[number] : &none;
}

const char *names_word(enum names of, unsigned number)
{
    return find(of, number)->word;
}

const char *names_text(enum names of, unsigned number)
{
    return find(of, number)->text;
}

const char *names_word_or_null(enum names of, unsigned number)
{
    const char *word = names_word(of, number);

    return *word ? word : NULL;
}

enum { WORDS_MAX = 32 }; /* no list of which users give a word is longer */

const char *names_none_of(enum names of, const char *word, char ret[NEAREST_NONE])
{
    const struct names_list *l = &names_lists[of];
    const char *known[WORDS_MAX + 1] = {NULL};
    size_t n = 0;

    for (unsigned i = 0; i < l->n && n < WORDS_MAX; i++)
        if (l->name[i].word && *l->name[i].word)
            known[n++] = l->name[i].word;
    return nearest_none_of(word, known, ret);
}

int names_number(enum names of, const char *word)
{
    const struct names_list *l = &names_lists[of];

    for (unsigned i = 0; i < l->n; i++)
        if (l->name[i].word && strcmp(l->name[i].word, word) == 0)
            return (int)i;
    return -1;
}

unsigned names_number_or(enum names of, const char *word, unsigned otherwise)
{
    int number = names_number(of, word);

    return number < 0 ? otherwise : (unsigned)number;
}
