#include "base/asked.h"

#include <stdio.h>
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

bool asked_print(const char *program, const char *text)
{
    if (fputs(text, stdout) >= 0 && fflush(stdout) == 0)
        return true;
    (void)fprintf(stderr, "%s: cannot write to stdout\n", program);
    return false;
}

const char *asked_wrong(const char *word)
{
    return word[0] == '-' ? "unknown option" : "unexpected argument";
}

enum asked asked_by(int argc, char **argv)
{
    enum asked asked = asked_for(argc > 1 ? argv[1] : NULL);

    for (int i = 2; asked == ASKED_NOTHING && i < argc && strcmp(argv[i - 1], "--") != 0;
         i++)
        if (argv[i][0] == '-')
            asked = asked_for(argv[i]);
    return asked;
}
