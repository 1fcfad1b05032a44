/* When a job of Slurm is over whose end nobody tells, and whose steps a process is. */
#include "core/job/lifetime.h"

#include <string.h>

#include "base/auto.h"
#include "tap.h"

#define S UINT64_C(1000000000)

/* Looks at these times, in seconds; what the last one comes to. */
struct look {
    uint64_t at_s;
    enum lifetime_seen seen;
    bool followed;
};

static const struct {
    const char *name;
    uint64_t limit_s;
    struct look look[6];
    enum lifetime_end end;
    bool had;
} cases[] = {
    /* clang-format off */
    {"a step is there", 0, {{110, LIFETIME_SOMEBODY, false}, {9000, LIFETIME_SOMEBODY, false}}, LIFETIME_GOES_ON, true},
    {"the last one is gone, not for long", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, false}, {179, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, true},
    {"… for 60 s", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, false}, {180, LIFETIME_NOBODY, false}}, LIFETIME_IS_ALONE, true},
    {"long between two looks: nobody knows since when", 0, {{110, LIFETIME_SOMEBODY, false}, {9000, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, true},
    {"between two steps", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, false}, {175, LIFETIME_SOMEBODY, false}, {185, LIFETIME_NOBODY, false}, {240, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, true},
    {"it cannot be seen", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, false}, {180, LIFETIME_UNKNOWN, false}}, LIFETIME_GOES_ON, true},
    {"… and is not over at once when it can be", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, false}, {180, LIFETIME_UNKNOWN, false}, {190, LIFETIME_NOBODY, false}, {249, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, true},
    {"not seen is not had", 60, {{110, LIFETIME_UNKNOWN, false}, {120, LIFETIME_NOBODY, false}, {180, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, false},
    {"salloc without a step, no limit, for a day", 0, {{110, LIFETIME_NOBODY, false}, {86499, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, false},
    {"… and longer", 0, {{110, LIFETIME_NOBODY, false}, {86500, LIFETIME_NOBODY, false}}, LIFETIME_IS_UNSEEN, false},
    {"… its first step came in time", 0, {{110, LIFETIME_NOBODY, false}, {86300, LIFETIME_SOMEBODY, false}, {99999, LIFETIME_SOMEBODY, false}}, LIFETIME_GOES_ON, true},
    {"… seen for the first time after it", 0, {{86550, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, false},
    {"with a limit, longer than a day", 99999, {{110, LIFETIME_NOBODY, false}, {99999, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, false},
    {"a later job has its board, not for long", 0, {{110, LIFETIME_NOBODY, false}, {300, LIFETIME_NOBODY, true}, {359, LIFETIME_NOBODY, true}}, LIFETIME_GOES_ON, false},
    {"… for 60 s", 0, {{110, LIFETIME_NOBODY, false}, {300, LIFETIME_NOBODY, true}, {360, LIFETIME_NOBODY, true}}, LIFETIME_IS_FOLLOWED, false},
    {"… which is over by then", 0, {{110, LIFETIME_NOBODY, false}, {300, LIFETIME_NOBODY, true}, {310, LIFETIME_NOBODY, false}, {360, LIFETIME_NOBODY, false}}, LIFETIME_IS_FOLLOWED, false},
    {"… before its limit", 3600, {{110, LIFETIME_NOBODY, true}, {170, LIFETIME_NOBODY, true}}, LIFETIME_IS_FOLLOWED, false},
    {"… and its scheduler says that it runs", 0, {{110, LIFETIME_NOBODY, true}, {160, LIFETIME_UNKNOWN, true}, {170, LIFETIME_NOBODY, true}, {229, LIFETIME_NOBODY, true}}, LIFETIME_GOES_ON, false},
    {"… and it shows a step after all", 0, {{110, LIFETIME_NOBODY, true}, {160, LIFETIME_SOMEBODY, true}, {9000, LIFETIME_SOMEBODY, true}}, LIFETIME_GOES_ON, true},
    {"a later job has the board of one that had a step", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, false}, {130, LIFETIME_NOBODY, true}}, LIFETIME_IS_REPLACED, true},
    {"… at the first look", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, true}}, LIFETIME_IS_REPLACED, true},
    {"… that is there", 0, {{110, LIFETIME_SOMEBODY, false}, {130, LIFETIME_SOMEBODY, true}}, LIFETIME_GOES_ON, true},
    {"… that cannot be seen", 0, {{110, LIFETIME_SOMEBODY, false}, {120, LIFETIME_NOBODY, false}, {130, LIFETIME_UNKNOWN, true}}, LIFETIME_GOES_ON, true},
    {"salloc without a step, before its limit", 3600, {{110, LIFETIME_NOBODY, false}, {3759, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, false},
    {"… after it", 3600, {{110, LIFETIME_NOBODY, false}, {3760, LIFETIME_NOBODY, false}}, LIFETIME_IS_LATE, false},
    {"… its first step came late", 3600, {{110, LIFETIME_NOBODY, false}, {3000, LIFETIME_SOMEBODY, false}, {3700, LIFETIME_SOMEBODY, false}, {3710, LIFETIME_NOBODY, false}, {3760, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, true},
    {"steps may outlive the limit", 60, {{110, LIFETIME_SOMEBODY, false}, {9000, LIFETIME_SOMEBODY, false}}, LIFETIME_GOES_ON, true},
    {"a limit of all time does not wrap", UINT64_MAX / S, {{110, LIFETIME_NOBODY, false}, {999999, LIFETIME_NOBODY, false}}, LIFETIME_GOES_ON, false},
    /* clang-format on */
};

static const struct {
    const char *cmdline;
    uint64_t job;
} titles[] = {
    {"slurmstepd: [42.batch]", 42},
    {"slurmstepd: [42.0]", 42},
    {"slurmstepd: [42.extern]", 42},
    {"slurmstepd: [4294967295.interactive]", 4294967295},
    {"slurmstepd: [42.0+1]", 42},
    {"slurmstepd: [4294967296.0]", 0},
    {"slurmstepd: [042.0]", 0},
    {"slurmstepd: [0.0]", 0},
    {"slurmstepd: [42]", 0},
    {"slurmstepd: [42", 0},
    {"slurmstepd: [", 0},
    {"slurmstepd: [.0]", 0},
    {"slurmstepd: [-1.0]", 0},
    {"slurmstepd infinity", 0},
    {"/usr/sbin/slurmstepd", 0},
    {"sh -c slurmstepd: [42.0]", 0},
    {"slurmd", 0},
    {"", 0},
};

int main(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct lifetime l = {.began_ns = 100 * S, .limit_ns = cases[i].limit_s * S};
        enum lifetime_end end = LIFETIME_GOES_ON;
        for (size_t k = 0; k < n_elements(cases[i].look) && cases[i].look[k].at_s; k++)
            end = lifetime_look(&l, cases[i].look[k].seen, cases[i].look[k].followed,
                                cases[i].look[k].at_s * S);
        ok(end == cases[i].end && l.had == cases[i].had, "%s", cases[i].name);
    }
    const struct lifetime open = {.began_ns = 100 * S},
                          day = {.began_ns = 100 * S, .limit_ns = 86400 * S},
                          hour = {.began_ns = 100 * S, .limit_ns = 3600 * S};
    ok(lifetime_may_come_back(&open, 200 * S, 605000 * S), "no limit: back for a week");
    ok(!lifetime_may_come_back(&open, 200 * S, 605001 * S), "not for longer");
    ok(lifetime_may_come_back(&day, 200 * S, 86559 * S), "back before its limit");
    ok(!lifetime_may_come_back(&day, 200 * S, 86560 * S), "not after it");
    ok(lifetime_may_come_back(&hour, 4000 * S, 4600 * S), "back after ten minutes");
    ok(!lifetime_may_come_back(&hour, 4000 * S, 4600 * S + 1), "not later");
    for (size_t i = 0; i < n_elements(titles); i++)
        is_int((long)lifetime_stepd(titles[i].cmdline, strlen(titles[i].cmdline)),
               (long)titles[i].job, "'%s'", titles[i].cmdline);
    is_int((long)lifetime_stepd("slurmstepd: [42.0]", 15), 0, "cut off");
    return done();
}
