/* How many lines of the log come through, and what is said of the rest. */
#include "unit/actuator/guard-scene.h"

#include "actuator/lines.h"
#include "base/auto.h"

enum { MAX = 5 };

/* n lines at at_s; told: how many more than before came through by then. */
struct burst {
    unsigned at_s, n, told;
    const char *last;
};
#define QUIET "more tests: counted, not logged for a minute"
/* clang-format off */
static const struct {
    const char *name;
    struct burst burst[4]; /* n 0: only looks */
} cases[] = {
    {"a few", {{0, 3, 3, "line"}, {70, 0, 0, "line"}}},
    {"as many as may be, a minute after the other", {{0, 5, 5, "line"}, {61, 5, 5, "line"}, {130, 0, 0, "line"}}},
    {"one too many", {{0, 6, 6, QUIET}, {59, 0, 0, QUIET}, {61, 0, 1, "1 more tests were not logged"}}},
    {"a flood", {{0, 100000, 6, QUIET}, {30, 100000, 0, QUIET},
                 {61, 0, 1, "199995 more tests were not logged"}, {130, 0, 0, "199995"}}},
    {"a flood that goes on", {{0, 1000, 6, QUIET}, {61, 1000, 7, QUIET},
                              {125, 0, 1, "995 more"}, {200, 1, 1, "line"}}},
};
/* clang-format on */

static void test_bursts(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct world *w = begin(cases[i].name);
        struct lines l = {
            .loop = w->loop, .say = on_say, .user = w, .what = "tests", .max = MAX};
        unsigned now_s = 0;
        for (size_t k = 0; k < n_elements(cases[i].burst) && cases[i].burst[k].last;
             k++) {
            const struct burst *b = &cases[i].burst[k];
            unsigned before = w->says;
            if (b->at_s > now_s)
                pass(w, (b->at_s - now_s) * 1000);
            now_s = b->at_s;
            for (unsigned n = 0; n < b->n; n++)
                lines_say(&l, "line");
            ok(w->says - before == b->told &&
                   strncmp(w->said, b->last, strlen(b->last)) == 0,
               "%s, %u s: %u (%s)", cases[i].name, b->at_s, w->says - before, w->said);
        }
        lines_fini(&l);
        finish(w);
    }
}

static void test_end(void)
{
    struct world *w = begin("the end");
    struct lines l = {
        .loop = w->loop, .say = on_say, .user = w, .what = "tests", .max = MAX};
    struct lines deaf = {.loop = w->loop, .max = MAX};

    for (int i = 0; i < 7; i++)
        lines_say(&l, "line");
    lines_say(&l, "");
    lines_fini(&l);
    is_str(w->said, "2 more tests were not logged", "the end tells the count");
    lines_say(&deaf, "line");
    lines_fini(&deaf);
    is_int(w->says, MAX + 2, "nobody listens");
    finish(w);
}

/* A client that takes boards and lets their leases go, again and again. */
static void test_lapses(void)
{
    struct world *w = begin("leases that are let go");
    const char *uuids[] = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};
    unsigned lapses = 0;

    for (int i = 0; i < 20; i++) { /* about a minute */
        for (size_t k = 0; k < n_elements(uuids); k++)
            (void)ask(w, PROTO_HOLD, uuids[k], 0);
        pass(w, 3000);
        lapses += events(w, PROTO_LEASE_OVER);
        w->n = 0;
    }
    is_int(lapses, 80, "eighty leases ended");
    ok(w->says >= 20 && w->says <= 44, "and at most twenty a minute were told: %u",
       w->says);
    pass(w, 61000);
    ok(strstr(w->said, "more leases that were not renewed were not logged"),
       "the rest is counted: %s", w->said);
    finish(w);
}

int main(void)
{
    if (!mkdtemp(top))
        return skip_all("no temporary folder");
    test_bursts();
    test_end();
    test_lapses();
    remove_tree(top);
    return done();
}
