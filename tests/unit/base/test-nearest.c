/* Words that are near to mistyped ones. */
#include "base/nearest.h"

#include "base/auto.h"
#include "tap.h"

int main(void)
{
    static const char *const known[] = {"carbon", "carbon.forecast", "price",
                                        "queue.depth", "W"};
    static const struct {
        const char *text, *word;
    } cases[] = {
        {"carbon", "carbon"},
        {"carbn", "carbon"},
        {"CARBON", "carbon"},
        {"cabron", "carbon"},
        {"carbon.forcast", "carbon.forecast"},
        {"queue.detph", "queue.depth"},
        {"pirce", "price"},
        {"prize", "price"},
        {"xyz", ""},
        {"p", ""},
        {"w", "W"},
        {"", ""},
        {"qeuue.dpethx", "queue.depth"},
        {"qxuxexdxpth", ""},
        {"a word of more than forty characters for which none is near", ""},
    };
    char text[NEAREST_TEXT];

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct nearest near = {0};
        for (size_t k = 0; k < n_elements(known); k++)
            nearest_try(&near, cases[i].text, strlen(cases[i].text), known[k]);
        is_str(near.word ? near.word : "", cases[i].word, cases[i].text);
    }
    struct nearest near = {0};
    is_str(nearest_text(&near, text), "", "nothing is near: no text");
    nearest_try(&near, "pricex", 6, "price");
    is_str(nearest_text(&near, text), ": did you mean 'price'?", "the text of a message");
    return done();
}
