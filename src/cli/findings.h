/* Findings of `underwatt doctor`, each with a remedy. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/names.h"
#include "io/json.h"

enum finding_state { FINDING_STATES(NAME_ENUM) };

struct finding {
    const char *what; /* one word: "driver" */
    enum finding_state state;
    char text[300];
    char remedy[300]; /* a command or an action; "": none */
};

enum { FINDINGS_MAX = 256 };
struct findings {
    size_t n; /* further findings are dropped */
    struct finding f[FINDINGS_MAX];
};

void finding_add(struct findings *to, const char *what, enum finding_state state,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Sets the remedy of the last finding. */
void finding_remedy(struct findings *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum finding_state findings_worst(const struct findings *of);
/* Prints findings of at least this state. */
void findings_print(const struct findings *of, enum finding_state from, FILE *to);
/* Writes them as an array named key. */
void findings_json(const struct findings *of, struct json_out *o, const char *key);

#endif
