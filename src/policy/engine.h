/* The engine of policy rules: steps each rule for each board and job when a value that it
 * reads has changed or its time has come, and derives one soft and one hard claim a board
 * and a goal a job.
 *
 * Owns: the state of each rule on each board, and the last value of each signal.  Touches
 * nothing: boards, jobs and signals come through the functions of engine_opts, and
 * results go out through them.  Thread: the loop's.  Without a policy no timer runs.
 * Explained in docs/policies.md.
 */
#ifndef POLICY_ENGINE_H
#define POLICY_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/policy/policy.h"
#include "policy/subject.h"
#include "underwatt/error.h"

struct loop;
struct policy_engine;

enum { ENGINE_WHY = 96, ENGINE_WHO = 96, ENGINE_UNITS_MAX = 2048 };

/* The present phase of a job. */
struct engine_phase {
    bool told; /* reported by the job itself; else recognised, with … */
    double confidence;
    struct maybe length_s; /* length of such a phase of this job */
    double break_even_s;   /* length from which a change of cap pays */
    bool costly;           /* raises after phase caps cost the job too much time: … */
    double lost, worst_s;  /* … this share of it, and the longest delay; for messages */
    bool no_gain;          /* a static cap would save as much in the same time */
    struct maybe saved; /* saving of phase caps compared with a static cap, as a fraction
                           of energy … */
    double static_w;    /* … and that cap */
};

struct engine_job {
    uint64_t id;
    uint64_t boards; /* bit i: board i */
    struct policy_facts facts;
    unsigned edition;       /* changes when the facts change */
    bool has_goal, has_cap; /* the job requested a goal, or a named cap */
    struct engine_phase phase;
};
/* All members are borrowed for the call. */
struct engine_world {
    const struct policy_board *board; /* floor and ramp are the engine's */
    size_t n_boards;
    const struct engine_job *job;
    size_t n_jobs;
};

struct engine_claim {
    uint32_t mw;
    struct claim_way way;
    char who[ENGINE_WHO], why[ENGINE_WHY];
};

/* A rule takes effect or ends; with dry_run it does not act. */
struct engine_event {
    const struct policy_rule *rule;
    size_t board;
    uint64_t job; /* 0: a board without one */
    bool begins;
    const char
        *how; /* reason of the end: a word of rule.state, "job gone", "policy gone" */
    const char *why; /* values read at the beginning */
};

struct engine_opts {
    struct loop *loop;
    void (*look)(struct engine_world *ret, void *user);
    engine_value_fn value;
    /* The zone of a rule's schedule. */
    void (*zone)(size_t rule, int64_t utc_s, struct policy_zone *ret, void *user);
    /* Called with each evaluation, for each board; NULL: no claim. */
    void (*claim)(size_t board, bool hard, const struct engine_claim *claim, void *user);
    /* Called for a change; NULL: the job's own goal, if any.  by: "rule night", "class
     * batch".
     */
    void (*goal)(uint64_t job, const struct goal *goal, const char *by, void *user);
    void (*event)(const struct engine_event *event, void *user);
    /* Called with each evaluation, for each job: whether phase rules apply to it.  Call
     * policy_engine_hurry() when its phase changes.  May be NULL.
     */
    void (*phases)(uint64_t job, bool ruled, void *user);
    void *user;
};
/* -ENOMEM */
int policy_engine_new(const struct engine_opts *opts, struct policy_engine **ret,
                      uw_error *err);
/* Calls no function of engine_opts. */
void policy_engine_free(struct policy_engine *e);
DEFINE_AUTO(struct policy_engine *, policy_engine_free);

/* Sets another policy; borrowed until the next call; NULL: none, and all requests end.
 * Rules of the same name and condition continue.  -ENOMEM: nothing changed.
 */
int policy_engine_use(struct policy_engine *e, const struct policy *policy,
                      uint64_t every_ns, uw_error *err);
/* A value, a board or a job may have changed. */
void policy_engine_changed(struct policy_engine *e);
/* The same for a job's phase: if phase rules apply to the job, they are evaluated in the
 * next turn of the loop, regardless of the policy's `every`, but no sooner than 20 ms
 * after the last time.
 */
void policy_engine_hurry(struct policy_engine *e, uint64_t job);
/* Evaluates at once. */
void policy_engine_step(struct policy_engine *e);
/* Suspends evaluation and keeps the state until the next call with false.  Goals that
 * hold are then reported again, as their receivers may be gone.
 */
void policy_engine_rest(struct policy_engine *e, bool rests);

/* ---- views ---- */

/* A rule on a board, for a job or none. */
struct engine_row {
    const struct policy_rule *rule;
    size_t board;
    uint64_t job;
    enum policy_state state;
    bool on;
    uint64_t since_ns; /* begin of the present stage and reason */
    const char
        *unknown; /* RULE_UNKNOWN: the unknown signal; NULL: a result is not a number */
    const char *why;           /* on: the values read at the beginning; else "" */
    struct engine_phase phase; /* of the job; {0}: there is none */
};
/* Rows are ordered by boards and jobs: with n rules, those of the k-th rule are k, k + n,
 * k + 2 n, and so on.  false: no i-th row.
 */
bool policy_engine_row(const struct policy_engine *e, size_t i, struct engine_row *ret);
/* The n-th value that the row's rule reads: "carbon 420 g/kWh"; false: there is none. */
bool policy_engine_read(const struct policy_engine *e, size_t i, size_t n,
                        char ret[static ENGINE_VALUE]);
/* Evaluations of the engine, steps of rules; units that did not fit. */
struct engine_counts {
    uint64_t evaluations, steps, left_out;
};
void policy_engine_counts(const struct policy_engine *e, struct engine_counts *ret);

#endif
