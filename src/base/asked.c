#include "base/asked.h"

#include <string.h>

#include "base/auto.h"

enum asked asked_for(const char *word)
{
    static const struct {
        const char *word;
        enum asked asked;
    } words[] = {
        {"--help", ASKED_HELP},       {"-h", ASKED_HELP},    {"help", ASKED_HELP},
        {"--version", ASKED_VERSION}, {"-V", ASKED_VERSION}, {"version", ASKED_VERSION},
    };

    for (size_t i = 0; word && i < n_elements(words); i++)
        if (strcmp(word, words[i].word) == 0)
            return words[i].asked;
    return ASKED_NOTHING;
}
