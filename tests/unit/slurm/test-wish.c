#include "slurm/wish.h"

#include <errno.h>
#include <stdio.h>

#include "base/auto.h"
#include "tap.h"

#define LONG "0123456789012345678901234567890123456789012345678901234567890123"

/* clang-format off */
static const struct { const char *value; int r; const char *key, *text; uint32_t mw; } caps[] = {
    {"250", 0, "cap", "250 W", 250000}, {"250W", 0, "cap", "250 W", 250000}, {"0.3 kW", 0, "cap", "300 W", 300000},
    {"250.5", 0, "cap", "250.5 W", 250500}, {"85%", 0, "cap", "85%", 0}, {"85 %", 0, "cap", "85 %", 0}, {"balanced", 0, "preset", "balanced", 0},
    {"aggressive", 0, "preset", "aggressive", 0}, {"minimal", 0, "preset", "minimal", 0},
    {"abc", -EINVAL, "kept", "", 7}, {"", -EINVAL, "kept", "", 7}, {"Balanced", -EINVAL, "kept", "", 7},
    {"0", -ERANGE, "kept", "", 7}, {"-5", -ERANGE, "kept", "", 7}, {"101%", -ERANGE, "kept", "", 7}, {LONG, -EINVAL, "kept", "", 7},
};
static const struct { const char *value; int r; const char *text; } goals[] = {
    {"edp", 0, "edp"}, {"energy", 0, "energy"}, {"slowdown:1.10", 0, "slowdown:1.1"}, {"eds:2", 0, "eds:2"},
    {"faster", -EINVAL, ""}, {"", -EINVAL, ""}, {"slowdown", -EINVAL, ""}, {"cost:7", -ERANGE, ""}, {LONG, -EINVAL, ""},
};
static const struct { const char *value; int r; } classes[] = {
    {"training", 0}, {"class with blanks", 0}, {"", -EINVAL}, {LONG, -EINVAL}, {"a\nb", -EINVAL}, {"\xff", -EINVAL},
};
static const struct { const char *name, *text; int r; size_t boards, classes; } tables[] = {
    {"nothing", "", 0, 0, 0},
    {"boards and classes", "# ours\nboard v100 100 W 300 W\nboard h100 200 700W # new\n\nclass training\n", 0, 2, 1},
    {"no line end", "board v100 100 300", 0, 1, 0},
    {"another word", "boards v100 100 300", -EINVAL, 9, 9},
    {"no limits", "board v100", -EINVAL, 9, 9},
    {"one limit", "board v100 100 W", -EINVAL, 9, 9},
    {"one too many", "board v100 100 200 300", -EINVAL, 9, 9},
    {"turned round", "board v100 300 100", -EINVAL, 9, 9},
    {"a percentage", "board v100 30% 100", -EINVAL, 9, 9},
    {"no number", "board v100 many more", -EINVAL, 9, 9},
    {"a class without a name", "class", -EINVAL, 9, 9},
    {"two names", "class a b", -EINVAL, 9, 9},
    {"a long name", "class " LONG, -EINVAL, 9, 9},
};
static const struct { const char *cap, *cls; int r; const char *text; } checks[] = {
    {"100", NULL, 0, ""}, {"300", NULL, 0, ""}, {"450", NULL, 0, ""}, {"85%", NULL, 0, ""}, {"balanced", NULL, 0, ""},
    {"999", NULL, -ERANGE, "999 W is above 700 W, the highest limit of this cluster's boards"},
    {"99", NULL, -ERANGE, "99 W is below 100 W, the lowest limit of this cluster's boards"},
    {"350", NULL, -ERANGE, "350 W is in the range of none of this cluster's boards"},
    {NULL, "training", 0, ""}, {NULL, "training2", -EINVAL, "class 'training2' is none of: training, inference: did you mean 'training'?"},
};
/* clang-format on */

static void check_table(void)
{
    static const char text[] = "board v100 100 W 300 W\nboard h100 400 W 700 W\n"
                               "class training\nclass inference\n";
    static struct table t, none;
    uw_error err;

    is_int(table_read(text, sizeof text - 1, &t, &err), 0, "the table is read");
    for (size_t i = 0; i < n_elements(checks); i++) {
        struct wish w = {0};
        int r = checks[i].cap ? wish_cap(checks[i].cap, &w, NULL)
                              : wish_class(checks[i].cls, &w, NULL);
        err.text[0] = '\0';
        is_int(r, 0, "'%s' has the form", checks[i].cap ? checks[i].cap : checks[i].cls);
        is_int(table_check(&t, &w, &err), checks[i].r, "… is %s",
               checks[i].r ? "refused" : "taken");
        is_str(err.text, checks[i].text, "… so");
        is_int(table_check(&none, &w, NULL), 0, "an empty table refuses nothing");
    }
}

int main(void)
{
    static struct table t;
    uw_error err;

    for (size_t i = 0; i < n_elements(caps); i++) {
        struct wish w = {.key = "kept", .mw = 7};
        is_int(wish_cap(caps[i].value, &w, &err), caps[i].r, "cap '%s'", caps[i].value);
        is_str(w.key, caps[i].key, "its key");
        is_str(w.text, caps[i].text, "its text");
        is_int(w.mw, caps[i].mw, "its watts");
    }
    for (size_t i = 0; i < n_elements(goals); i++) {
        struct wish w = {0};
        is_int(wish_goal(goals[i].value, &w, &err), goals[i].r, "goal '%s'",
               goals[i].value);
        is_str(w.text, goals[i].text, "its text");
    }
    for (size_t i = 0; i < n_elements(classes); i++) {
        struct wish w = {0};
        is_int(wish_class(classes[i].value, &w, &err), classes[i].r, "class '%s'",
               classes[i].value);
    }
    for (size_t i = 0; i < n_elements(tables); i++) {
        t.n_boards = t.n_classes = 9;
        is_int(table_read(tables[i].text, strlen(tables[i].text), &t, &err), tables[i].r,
               "table: %s", tables[i].name);
        is_int(t.n_boards, tables[i].boards, "its boards");
        is_int(t.n_classes, tables[i].classes, "its classes");
    }
    check_table();
    return done();
}
