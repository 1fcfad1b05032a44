/* Messages for users about what a search does, and why. */
#ifndef TUNER_NOTES_H
#define TUNER_NOTES_H

#include <stdbool.h>

enum { TUNER_TEXT = 320 };

/* important: show it on a line of its own. */
typedef void (*tuner_note_fn)(const char *text, bool important, void *user);

struct tuner_notes {
    tuner_note_fn fn; /* NULL: messages are dropped */
    void *user;
};

void tuner_note(const struct tuner_notes *n, bool important, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
