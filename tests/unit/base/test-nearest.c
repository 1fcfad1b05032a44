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
    static const char *const few[] = {"check", "show", NULL};
    static const char *const many[] = {
        "a-word-of-twenty-five-let", "b-word-of-twenty-five-let",
        "c-word-of-twenty-five-let", "d-word-of-twenty-five-let",
        "e-word-of-twenty-five-let", NULL};
    char none[NEAREST_NONE];
    is_str(nearest_none_of("chek", few, none),
           "'chek' is none of: check, show: did you mean 'check'?", "one of few");
    is_str(nearest_none_of("frob", few, none), "'frob' is none of: check, show", "far");
    is_str(nearest_none_of("e-word-of-twenty-fife-let", many, none),
           "'e-word-of-twenty-fife-let' is none of: a-word-of-twenty-five-let, "
           "b-word-of-twenty-five-let, "
           "…: did you mean 'e-word-of-twenty-five-let'?",
           "a list too long ends with … and keeps the nearest");
    return done();
}
