/* The lists of base/names.h: a word means one number, a number one word. */
#include "base/names.h"

#include <string.h>

#include "tap.h"
#include "underwatt/progress.h"

enum phase { JOB_PHASES(NAME_ENUM) };
enum doubt { METER_DOUBTS(NAME_FLAG) };

/* The public interface has numbers of its own for the same phases. */
_Static_assert((int)PHASE_UNKNOWN == (int)UW_PHASE_UNKNOWN &&
                   (int)PHASE_TRAIN == (int)UW_PHASE_TRAIN &&
                   (int)PHASE_VALIDATE == (int)UW_PHASE_VALIDATE &&
                   (int)PHASE_LOAD == (int)UW_PHASE_LOAD &&
                   (int)PHASE_CHECKPOINT == (int)UW_PHASE_CHECKPOINT &&
                   (int)PHASE_STARTUP == (int)UW_PHASE_STARTUP,
               "phases of progress.h");

static void test_list(enum names of)
{
    const struct names_list *l = &names_lists[of];
    unsigned words = 0, back = 0, texts = 0;

    for (unsigned i = 0; i < l->n; i++) {
        if (!l->name[i].word)
            continue;
        words++;
        back += names_number(of, l->name[i].word) == (int)i;
        texts += l->name[i].text && l->name[i].text[0] && strlen(l->name[i].text) < 100;
    }
    ok(words > 1 && back == words, "%s: %u words, each of one number", l->of, words);
    ok(texts == words, "%s: each has a line for people", l->of);
    ok(strcmp(names_word(of, l->n), "?") == 0, "%s: no more numbers", l->of);
}

static void test_lookups(void)
{
    is_str(names_word(NAMES_CAP_STATE, 3), "yielded", "a word");
    is_str(names_text(NAMES_FINDING, 3), "does not work", "its text");
    is_int(names_number(NAMES_CLAIM_KIND, "hard"), 3, "a number");
    is_int(names_number(NAMES_CLAIM_KIND, "har"), -1, "part of a word is none");
    is_int(names_number(NAMES_CLAIM_KIND, ""), -1, "nor is nothing");
    is_str(names_word(NAMES_CLAIM_KIND, 0), "?", "a number that the list leaves out");
    ok(!names_word_or_null(NAMES_CLAIM_REASON, 0), "an empty word is told as none");
    is_str(names_word_or_null(NAMES_CLAIM_REASON, 3), "range", "… any other as it is");
    is_int(METER_WHY_COARSE, 256, "flags are bits by number");
}

int main(void)
{
    for (int i = 0; i < NAMES_N; i++)
        test_list((enum names)i);
    test_lookups();
    return done();
}
