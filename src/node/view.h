/* Everything that the node shows, as plain values: the source of API, metrics, live
 * views and zeusd's API.  Filled by node_look(); borrowed until the next turn of the
 * loop.
 */
#ifndef NODE_VIEW_H
#define NODE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "caps/caps.h"
#include "energy/attribution.h"
#include "energy/processors.h"
#include "gpu/gpu.h"
#include "io/ledger.h"
#include "jobs/job-records.h"
#include "jobs/roster.h"
#include "node/charges.h"
#include "node/view-phases.h"
#include "policy/signals.h"
#include "tuner/searches.h"

enum { VIEW_JOBS_MAX = ROSTER_MAX, VIEW_REASONS = 8 };

struct view_board {
    const struct gpu_info *info;
    struct caps_view cap;
    struct gpu_sample last; /* has == 0: none yet */
    struct maybe power_w;   /* mean of the last second or two, from the meter */
    double energy_j;        /* since the ledger began, from the meter: a counter */
    double idle_j, unattributed_j, attributed_j; /* parts of it: their sum is energy_j */
    double today_j;                              /* since midnight UTC */
    double throttle_s[VIEW_REASONS];       /* seconds under each bit of enum gpu_reason */
    double use_j[WASTE_N], use_s[WASTE_N]; /* by enum waste_class; energy_j in parts */
    enum waste_class use;                  /* class of the last booked stretch */
    double use_for_s;                      /* duration of that class; 0: WASTE_WORKING */
    uint64_t memory_bytes;                 /* of processes on it; 0: unknown, or none */
    struct charges_sum charged;            /* emissions and money */
    uint64_t calls, failures; /* driver calls of the sampler; those that failed */
    uint64_t job[8];          /* jobs on it */
    size_t n_jobs;
    uint64_t lost_ns;      /* last loss of a claim's right; 0: none within an hour */
    const char *lost_text; /* the claim, its owner and the reason of the loss */
};

struct view_job {
    const struct job_entry *job;
    struct view_phase phase;
    const struct job_capped *capped; /* NULL: nothing is known */
    const struct job_notes *notes;   /* NULL: none */
    const char *ask, *refused;       /* of a job_record; NULL: nothing */
    bool cap_held;                   /* its scheduler has a claim on its boards, … */
    uint32_t lower_mw; /* … and another claim decides there, with this cap; 0: none */
    const char *lower_who;
    uint64_t goal_of; /* the outer job whose goal its search has; 0: none */
    struct view_phases phases;
    bool settled;    /* the job has ended and all of its energy is booked */
    double energy_j; /* attributed to it so far: the sum of its parts, by board */
    struct maybe half_j;
    const struct attribution_part *part;
    size_t n_parts;
    double booked_s; /* time of that energy: without the time before its boards were
                        known, and the newest seconds */
    double time_s;
    struct charges_sum charged; /* emissions and money, since the daemon began */
    uint64_t steps;
    double step_s; /* 0 unknown */
    struct searches_view search;
};

struct config_class;
struct wasters;
struct limits;
struct policy_class;
struct policy_engine;
struct policy_rule;

/* The policy in force and its engine (policy/engine.h); borrowed as the view. */
struct view_policy {
    const struct policy_engine *engine; /* NULL: no policy */
    const struct policy_rule *rule;
    size_t n_rules;
    const struct policy_preset *preset; /* built-in ones without a policy */
    size_t n_presets;
    const struct policy_class *cls; /* of the policy in force */
    size_t n_classes;
    const struct config_class *caps_cls; /* of caps.classes; [0] is "default" */
    size_t n_caps_classes;
    const struct limits *limits; /* policy/limits.h; NULL: none */
    const char *file;            /* path of its file */
    const char *error;           /* why the file was refused last; "" */
    uint64_t loads, failures;    /* policies in force; files that were refused */
    uint64_t evaluations;
    uint64_t left_out; /* boards and jobs for which there was no room */
    uint64_t refused;  /* claims of rules that could not be made */
};

struct node_view {
    const char *hostname, *version;
    bool simulated, dry_run, read_only; /* read_only: no actuator */
    char actuator[200];                 /* "" connected, else the reason */
    uint64_t now_ns, began_ns;
    uint64_t fresh_ns; /* age from which a board's readings are stale */
    int64_t utc_ns;
    const struct view_board *board;
    size_t n_boards;
    const struct view_job *job;
    size_t n_jobs;
    const struct view_rapl *rapl;
    size_t n_rapl;
    uint64_t rapl_ns; /* boards.rapl_period */
    struct caps_budget_view budget;
    const struct signal_view *signal; /* from outside; none while none is in use */
    size_t n_signals;
    struct view_policy policy;
    uint64_t config_loads, config_failures;
    const char *config_error; /* why the last reload was refused; "": not refused */
    uint64_t ledger_rows, ledger_failures;
    uint64_t ledger_waiting, ledger_lost; /* rows in memory; rows lost */
    struct ledger_revised ledger_revised;
    const struct wasters *wasters; /* waste by user and project; NULL: none */
    bool ledger_up;
    enum ledger_trouble ledger_trouble;
    char ledger[200]; /* "" working, else the reason */
};

#endif
