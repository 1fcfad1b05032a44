/* Which notes of trials are lines of their own. */
#include "tuner/trials.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

#define W(w) ((uint32_t)(w)*1000u)

static char said[2000];

static void on_note(const char *text, bool important, void *user)
{
    unsigned *all = user;
    size_t at = strlen(said);

    ++*all;
    if (important)
        (void)snprintf(said + at, sizeof said - at, "%s\n", text);
}

static void a_window(struct trials *t, uint32_t cap_mw, bool again, const char *result)
{
    trials_begin(t, cap_mw, "why", again);
    trials_result(t, result);
}

/* The notes since the last call. */
static void is_said(const char *want, const char *name)
{
    is_str(said, want, name);
    said[0] = '\0';
}

int main(void)
{
    unsigned all = 0;
    const struct tuner_notes notes = {on_note, &all};
    struct trials t = {.notes = &notes};

    a_window(&t, W(153), false, "153 W: best so far");
    a_window(&t, W(160), false, "160 W: best: 153 W");
    is_said("trying 153 W (why)\n153 W: best so far\ntrying 160 W (why)\n160 W: best: "
            "153 W\n",
            "caps that are tried for the first time");
    for (int i = 0; i < 6; i++) {
        a_window(&t, W(153), true, "153 W: best so far");
        a_window(&t, W(160), true, "160 W: still best: 153 W");
    }
    is_said("", "another twelve windows there: no line each");
    ok(all == 28, "each has its notes all the same: %u", all);
    trials_end(&t, true);
    is_said("compared 153 W and 160 W: 12 more windows\n160 W: still best: 153 W\n",
            "one line, with what the last one has shown, when a cap is held");
    trials_end(&t, true);
    is_said("", "once");

    a_window(&t, W(160), true, "160 W: back to 153 W");
    trials_end(&t, false);
    is_said("measured 160 W again: 1 more window\n160 W: back to 153 W\n",
            "a trial out of the hold");
    for (int i = 0; i < 3; i++) {
        a_window(&t, W(160), true, "160 W: back to 153 W");
        trials_end(&t, false);
    }
    is_said("", "the same trial out of the same hold is no news");
    a_window(&t, W(170), false, "170 W: back to 153 W");
    is_said("measured 160 W again: 3 more windows\n160 W: back to 153 W\n"
            "trying 170 W (why)\n170 W: back to 153 W\n",
            "they are counted before another cap is tried");

    a_window(&t, W(153), true, "a");
    a_window(&t, W(160), true, "b");
    a_window(&t, W(170), true, "c");
    is_said("compared 153 W and 160 W: 2 more windows\nb\n", "a third cap");
    trials_reference(&t, W(300), "reference", true);
    trials_result(&t, "");
    trials_end(&t, true);
    is_said("measuring 300 W (reference)\nmeasured 170 W again: 1 more window\nc\n",
            "a window of the reference is not counted");
    return done();
}
