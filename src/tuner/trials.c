#include "tuner/trials.h"

#include <stdio.h>

#include "base/units.h"

static void tell(struct trials *t)
{
    const char *s = t->windows == 1 ? "" : "s";

    if (t->windows == 0)
        return;
    if (t->n == 2)
        tuner_note(t->notes, true, "compared %.0f W and %.0f W: %u more window%s",
                   w_of_mw(t->cap_mw[0]), w_of_mw(t->cap_mw[1]), t->windows, s);
    else
        tuner_note(t->notes, true, "measured %.0f W again: %u more window%s",
                   w_of_mw(t->cap_mw[0]), t->windows, s);
    if (t->result[0])
        tuner_note(t->notes, true, "%s", t->result);
    t->windows = 0;
    t->told = true;
}

static void tell_and_forget(struct trials *t)
{
    tell(t);
    t->n = 0;
    t->told = false;
}

static void add(struct trials *t, uint32_t cap_mw)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->cap_mw[i] == cap_mw)
            return;
    if (t->n == 2)
        tell_and_forget(t);
    t->cap_mw[t->n++] = cap_mw;
    t->told = false;
}

void trials_begin(struct trials *t, uint32_t cap_mw, const char *why, bool again)
{
    if (again)
        add(t, cap_mw);
    else
        tell_and_forget(t);
    t->again = again;
    tuner_note(t->notes, !again, "trying %.0f W (%s)", w_of_mw(cap_mw), why);
}

void trials_reference(struct trials *t, uint32_t cap_mw, const char *why, bool important)
{
    t->again = false;
    tuner_note(t->notes, important, "measuring %.0f W (%s)", w_of_mw(cap_mw), why);
}

void trials_result(struct trials *t, const char *text)
{
    if (t->again) {
        t->windows++;
        (void)snprintf(t->result, sizeof t->result, "%s", text);
    }
    if (text[0])
        tuner_note(t->notes, !t->again, "%s", text);
}

void trials_end(struct trials *t, bool other)
{
    if (other)
        tell_and_forget(t);
    else if (!t->told)
        tell(t);
    t->again = false;
}
