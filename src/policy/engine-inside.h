/* Shared by the engine's files: engine.c (what is due, what follows), units.c (rules on
 * boards and jobs), engine-view.c (what is shown).
 */
#ifndef POLICY_ENGINE_INSIDE_H
#define POLICY_ENGINE_INSIDE_H

#include "policy/engine.h"
#include "policy/subject.h"

enum { ENGINE_BOARDS = 64, ENGINE_JOBS_MAX = 1024 };

/* A rule on a board, for a job. */
struct rule_state {
    struct policy_progress progress;
    struct policy_verdict verdict;
    char *why; /* while it is on; NULL: none, or no memory */
};

struct unit {
    size_t board;
    uint64_t job; /* 0: the board has none */
    bool there, fresh;
    struct rule_state *rule; /* one a rule of the policy */
};

struct engine_job_state {
    uint64_t id;
    bool there;
    struct subject values;
    unsigned edition; /* of its facts, from which these follow: */
    int cls;          /* of the policy; -1: none */
    bool is_for[POLICY_RULES_MAX];
    bool phase_ruled; /* a rule of phases is */
    bool has_goal, has_cap, phase_moved;
    struct engine_phase phase;
    struct policy_goal_choice choice;
    uint64_t choice_due_ns;
    bool told; /* a goal was given … */
    struct goal goal;
};

/* A rule's schedule now. */
struct hours {
    bool known, inside;
    uint64_t edge_ns;
};

struct policy_engine {
    struct engine_opts o;
    struct loop_timer *timer;
    const struct policy *policy; /* NULL: none */
    uint64_t every_ns, last_ns;
    int64_t ahead_ns; /* UTC less the loop's time, when the clock was last noticed … */
    bool clock_set;   /* … to have been set: by this evaluation */
    bool changed;     /* something may have */
    bool rests;
    bool gives_goals; /* some of its rules */

    struct slots reads[POLICY_RULES_MAX];                      /* of each rule … */
    bool of_board[POLICY_RULES_MAX], of_job[POLICY_RULES_MAX]; /* … some of these */
    struct hours hours[POLICY_RULES_MAX];
    struct subject node, board[ENGINE_BOARDS];
    size_t n_boards;
    struct engine_job_state *job;
    size_t n_jobs, cap_jobs;
    struct unit *unit;
    size_t n_units, cap_units;
    struct engine_counts counts;
};

/* ---- units.c ---- */

/* The boards and jobs of the world, and the values of their signals.  -ENOMEM: nothing
 * changed.
 */
int engine_take_world(struct policy_engine *e, const struct engine_world *world);
struct engine_job_state *engine_job_find(const struct policy_engine *e, uint64_t id);
/* Steps the rules of all units that have news or are due; returns when the next is. */
uint64_t engine_step_units(struct policy_engine *e, uint64_t now_ns);
/* Rules on all units as another policy has them: rules of the same name and condition go
 * on.  -ENOMEM: nothing changed.
 */
int engine_change_rules(struct policy_engine *e, const struct policy *policy);
/* Forgets boards, jobs and rules. */
void engine_clear(struct policy_engine *e);
static inline bool rule_acts(const struct policy_rule *rule,
                             const struct rule_state *state)
{
    return state->verdict.on && !rule->dry_run;
}

/* ---- engine-view.c ---- */

/* What the rule reads, and its values. */
void engine_why(const struct policy_engine *e, const struct policy_rule *rule,
                const struct engine_of *of, char ret[static ENGINE_WHY]);

#endif
