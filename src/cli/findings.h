/* What was found, each with what to do about it. */
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
    char remedy[300]; /* what to type or do; "" nothing */
};

enum { FINDINGS_MAX = 256 };
struct findings {
    size_t n; /* those beyond the bound are dropped */
    struct finding f[FINDINGS_MAX];
};

void finding_add(struct findings *to, const char *what, enum finding_state state,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Of the last one added. */
void finding_remedy(struct findings *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum finding_state findings_worst(const struct findings *of);
/* Those of at least this state, as text. */
void findings_print(const struct findings *of, enum finding_state from, FILE *to);
/* As an array under key. */
void findings_json(const struct findings *of, struct json_out *o, const char *key);

#endif
