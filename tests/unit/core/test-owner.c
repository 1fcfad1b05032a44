/* Who may claim on a board: by the jobs and the processes there. */
#include "core/job/owner.h"
#include "tap.h"

enum { ANNA = 1000, EVE = 1001, NOBODY = 0xffff };

struct who {
    uint32_t uid;
    char kind; /* jobs: f r s(cheduler); processes: c(ompute), g(raphics), ? */
};

static const struct {
    const char *name;
    struct who jobs[4], procs[4]; /* kind 0 ends */
    bool stale;                   /* the list of processes is not known */
    bool anna, eve;
    bool stands; /* what anna claimed before */
} cases[] = {
    /* clang-format off */
    {"nobody there", {{0}}, {{0}}, false, false, false, false},
    {"found, alone", {{ANNA, 'f'}}, {{ANNA, 'c'}}, false, true, false, true},
    {"found, two processes", {{ANNA, 'f'}}, {{ANNA, 'c'}, {ANNA, 'c'}}, false, true, false, true},
    {"found, the list is old", {{ANNA, 'f'}}, {{ANNA, 'c'}}, true, false, false, true},
    {"found, the list is empty", {{ANNA, 'f'}}, {{0}}, false, false, false, true},
    {"found, eve starts a tiny process", {{ANNA, 'f'}, {EVE, 'f'}}, {{ANNA, 'c'}, {EVE, 'c'}}, false, false, false, false},
    {"found, one that nobody can tell", {{ANNA, 'f'}}, {{ANNA, 'c'}, {NOBODY, '?'}}, false, false, false, false},
    {"found, another's desktop", {{ANNA, 'f'}}, {{ANNA, 'c'}, {0, 'g'}}, false, false, false, false},
    {"a process without a job", {{0}}, {{ANNA, 'g'}}, false, false, false, true},
    {"her processes, between two jobs", {{0}}, {{ANNA, 'c'}}, false, false, false, true},
    {"… beside eve's", {{0}}, {{ANNA, 'c'}, {EVE, 'c'}}, false, false, false, false},
    {"run, nothing started yet", {{ANNA, 'r'}}, {{0}}, false, true, false, true},
    {"run, its process", {{ANNA, 'r'}}, {{ANNA, 'c'}}, false, true, false, true},
    {"run, the list is old", {{ANNA, 'r'}}, {{0}}, true, true, false, true},
    {"run, eve computes there, too", {{ANNA, 'r'}}, {{ANNA, 'c'}, {EVE, 'c'}}, false, false, false, false},
    {"run, eve alone computes there", {{ANNA, 'r'}, {EVE, 'f'}}, {{EVE, 'c'}}, false, false, true, false},
    {"run, root's desktop is there", {{ANNA, 'r'}}, {{ANNA, 'c'}, {0, 'g'}}, false, true, false, true},
    {"run, one that nobody can tell", {{ANNA, 'r'}}, {{NOBODY, '?'}}, false, false, false, false},
    {"registered, nothing started", {{ANNA, 's'}}, {{0}}, false, true, false, true},
    {"registered, eve starts a tiny process", {{ANNA, 's'}, {EVE, 'f'}}, {{ANNA, 'c'}, {EVE, 'c'}}, false, true, false, true},
    {"registered, eve is first", {{ANNA, 's'}, {EVE, 'f'}}, {{EVE, 'c'}}, false, true, false, true},
    {"registered, eve runs beside", {{ANNA, 's'}, {EVE, 'r'}}, {{0}}, false, true, false, true},
    {"registered for both", {{ANNA, 's'}, {EVE, 's'}}, {{ANNA, 'c'}}, false, true, true, true},
    {"run, the old list has eve", {{ANNA, 'r'}}, {{EVE, 'c'}}, true, false, false, false},
    {"run and found, the list is old", {{ANNA, 'r'}, {ANNA, 'f'}}, {{ANNA, 'c'}}, true, true, false, true},
    {"found, eve runs beside", {{ANNA, 'f'}, {EVE, 'r'}}, {{ANNA, 'c'}}, false, true, false, true},
    {"found, eve is registered", {{ANNA, 'f'}, {EVE, 's'}}, {{ANNA, 'c'}}, false, false, true, false},
    {"run, eve is registered", {{ANNA, 'r'}, {EVE, 's'}}, {{0}}, false, false, true, false},
    {"both run, nothing started", {{ANNA, 'r'}, {EVE, 'r'}}, {{0}}, false, true, true, true},
    /* clang-format on */
};

static enum owner_kind kind_of(char c)
{
    return c == 'f' ? OWNER_FOUND : c == 'r' ? OWNER_RUN : OWNER_REGISTERED;
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct owner_job jobs[4];
        struct owner_proc procs[4];
        struct owner_board b = {.job = jobs, .proc = procs};

        for (const struct who *w = cases[i].jobs; w->kind; w++)
            jobs[b.n_jobs++] = (struct owner_job){kind_of(w->kind), w->uid};
        for (const struct who *w = cases[i].procs; w->kind; w++)
            procs[b.n_procs++] =
                (struct owner_proc){w->kind != '?', w->uid, w->kind != 'g'};
        b.procs_known = !cases[i].stale;
        ok(owner_may_claim(&b, ANNA) == cases[i].anna, "%s: anna %s", cases[i].name,
           cases[i].anna ? "may" : "may not");
        ok(owner_may_claim(&b, EVE) == cases[i].eve, "%s: eve %s", cases[i].name,
           cases[i].eve ? "may" : "may not");
        ok(owner_keeps_claim(&b, ANNA) == cases[i].stands, "%s: her claim %s",
           cases[i].name, cases[i].stands ? "stands" : "ends");
        ok(owner_may_claim(&b, 0) && owner_keeps_claim(&b, 0), "%s: root may",
           cases[i].name);
        ok(!owner_may_claim(&b, NOBODY) && !owner_keeps_claim(&b, NOBODY),
           "%s: nobody else", cases[i].name);
        ok(!owner_may_claim(&b, ANNA) || owner_keeps_claim(&b, ANNA),
           "%s: who may claim keeps it", cases[i].name);
    }
    return done();
}
