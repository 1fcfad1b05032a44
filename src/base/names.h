/* All states, outcomes and reasons of the programs: number, word, and a description for
 * users.  API, events, metrics, ledger and JSON take their words from here;
 * tools/check-names compares openapi.yaml, the man pages, docs, completions and alert
 * rules with these lists.  Numbers and words are contracts: lists only grow, and no
 * number or word changes its meaning.
 */
#ifndef BASE_NAMES_H
#define BASE_NAMES_H

#include <stddef.h>

#include "base/nearest.h"

/* Defines an enumeration in a header: enum x { LIST(NAME_ENUM) }; NAME_FLAG for flags,
 * where the number is the bit's.
 */
#define NAME_ENUM(id, number, word, text) id = (number),
#define NAME_FLAG(id, number, word, text) id = 1u << (number),

/* clang-format off */

/* ---- caps and claims ---- */

#define CAP_STATES(X) /* enum caps_state, core of docs/caps.md */ \
    X(CAPS_FREE,     0, "free",     "nothing wants less than the limit found, or this is a dry run") \
    X(CAPS_HOLDING,  1, "holding",  "first request to the actuator, not answered yet") \
    X(CAPS_HELD,     2, "held",     "held until the actuator has confirmed the release") \
    X(CAPS_YIELDED,  3, "yielded",  "another program's limit stays in force until claims change or a delay has passed") \
    X(CAPS_RELEASED, 4, "released", "released on request, so that the board can be reset") \
    X(CAPS_LOST,     5, "lost",     "the board or its actuator does not answer, or another Underwatt holds a claimed board; retried") \
    X(CAPS_DENIED,   6, "denied",   "the right to set limits is missing; retried")

#define CAP_DECIDERS(X) /* enum cap_by */ \
    X(CAP_BY_ORIGINAL, 0, "original", "no claim is under the limit found") \
    X(CAP_BY_CLAIM,    1, "claim",    "the lowest claim") \
    X(CAP_BY_FLOOR,    2, "floor",    "soft claims wanted less than the soft floor") \
    X(CAP_BY_MINIMUM,  3, "minimum",  "claims wanted less than the board's minimum") \
    X(CAP_BY_HOLDER,   4, "holder",   "no claim: another Underwatt holds the board") /* shown alone */

#define CAP_EVENTS(X) /* enum caps_event: events of a board's cap */ \
    X(CAPS_EVENT_CLAIM,    0, "made",      "a claim was made or changed") \
    X(CAPS_EVENT_WITHDRAW, 1, "withdrawn", "a claim was withdrawn") \
    X(CAPS_EVENT_EXPIRE,   2, "expired",   "a claim's time is over") \
    X(CAPS_EVENT_CAP,      3, "cap",       "the limit in force changed; in a dry run: the limit decided") \
    X(CAPS_EVENT_FAIL,     4, "fail",      "a hold or a write failed; one event until the reason changes") \
    X(CAPS_EVENT_OTHER,    5, "other",     "another writer changed the limit; one event for each change") \
    X(CAPS_EVENT_CLOCK,    6, "clock",     "Underwatt locked the SM clock, or released the lock") \
    X(CAPS_EVENT_STATE,    7, "state",     "the state changed")

#define CAP_CAUSES(X) /* enum caps_cause: why the limit in force is not Underwatt's */ \
    X(CAPS_CAUSE_OTHER,       0, "other",       "another program has set the limit") \
    X(CAPS_CAUSE_DRIVER,      1, "driver",      "the driver was reloaded") \
    X(CAPS_CAUSE_PERSISTENCE, 2, "persistence", "persistence mode is off, and the driver has lost the limit") \
    X(CAPS_CAUSE_THERMAL,     3, "thermal",     "heat lowers the limit in force") \
    X(CAPS_CAUSE_BOARD,       4, "board",       "the board's management lowers the limit in force")

#define CAP_OTHERS(X) /* enum caps_others: caps.other_writers of underwattd.yaml */ \
    X(CAPS_YIELD,    0, "yield",    "another program's limit stays in force") \
    X(CAPS_REASSERT, 1, "reassert", "Underwatt's limit is set again after a delay")

#define CLAIM_KINDS(X) /* enum claim_kind */ \
    X(CLAIM_SOFT,  1, "soft",  "of a search or a rule: never under the soft floor") \
    X(CLAIM_NAMED, 2, "named", "a cap that a person or a scheduler asked for") \
    X(CLAIM_HARD,  3, "hard",  "a budget: in force from the first tick, ramp or not")

#define CLAIM_SOURCES(X) /* enum claim_source: `source` of claims and of the ledger */ \
    X(CLAIM_OF_PERSON,  0, "person",  "a user, the holder of a token, or a program of either") \
    X(CLAIM_OF_JOB_CAP, 1, "job-cap", "the named cap that a job was started with") \
    X(CLAIM_OF_SEARCH,  2, "search",  "the search for a job's best cap") \
    X(CLAIM_OF_BUDGET,  3, "budget",  "the budget of this node") \
    X(CLAIM_OF_SWEEP,   4, "sweep",   "a run of `underwatt sweep`") \
    X(CLAIM_OF_RULE,    5, "rule",    "a rule of the site's policy") \
    X(CLAIM_OF_SCHEDULER, 6, "scheduler", "a scheduler, for one of its jobs") \
    X(CLAIM_OF_GRANT,   7, "grant",   "the budget of the cluster") \
    X(CLAIM_OF_LIMIT,   8, "limit",   "a limit of the site's policy")

#define CLAIM_STATUSES(X) /* enum caps_met */ \
    X(CAPS_MET,     0, "in force",     "the limit is at or below the claim, or as low as floor and minimum allow") \
    X(CAPS_COMING,  1, "on the way",   "requested, or the ramp is under way") \
    X(CAPS_NOT_MET, 2, "not in force", "see the reason")

#define CLAIM_REASONS(X) /* enum caps_unmet: why a claim is not in force */ \
    X(CAPS_UNMET_NONE,     0, "",           "the claim is in force, or on the way") \
    X(CAPS_UNMET_DRY_RUN,  1, "dry-run",    "decided, not written") \
    X(CAPS_UNMET_CLOCKS,   2, "clocks-off", "locked clocks are off in the configuration") \
    X(CAPS_UNMET_RANGE,    3, "range",      "outside the range of root's configuration") \
    X(CAPS_UNMET_FAILED,   4, "failed",     "the limit or the lock could not be set") \
    X(CAPS_UNMET_ROUNDED,  5, "rounded",    "the driver enforces another value than the one requested") \
    X(CAPS_UNMET_NOT_HELD, 6, "not-held",   "the board is not held: see its cap's state")

#define CLAIM_ENDS(X) /* enum claim_end: `how` of events and of the ledger */ \
    X(CLAIM_END_WITHDRAWN, 0, "withdrawn",     "withdrawn on request") \
    X(CLAIM_END_EXPIRED,   1, "expired",       "the claim has expired") \
    X(CLAIM_END_CHANGED,   2, "changed",       "the same claim goes on in a newer row") \
    X(CLAIM_END_RIGHT,     3, "right lost",    "the user no longer has the board") \
    X(CLAIM_END_JOB,       4, "job ended",     "the job of the claim has ended") \
    X(CLAIM_END_PROCESS,   5, "process ended", "the process that the claim was bound to has ended") \
    X(CLAIM_END_RESTART,   6, "restart",       "the claim was not taken over at a restart of the daemon") \
    X(CLAIM_END_REFUSED,   7, "refused",       "the claim was refused at a restart of the daemon")

#define RULE_STATES(X) /* enum policy_state: why a rule of a policy is in effect, or is not */ \
    X(RULE_ACTS,         0, "acts",         "requests its cap or goal") \
    X(RULE_FALSE,        1, "false",        "its condition is false") \
    X(RULE_UNKNOWN,      2, "unknown",      "a signal of its condition is unknown") \
    X(RULE_WAITS,        3, "waits",        "its condition has not been true for long enough") \
    X(RULE_UNTIL,        4, "until",        "its `until` condition is true") \
    X(RULE_OUT_OF_HOURS, 5, "out-of-hours", "outside its schedule") \
    X(RULE_OTHER_JOB,    6, "other-job",    "does not apply to this job") \
    X(RULE_UNSURE,       7, "unsure",       "the phase is recognised with too little confidence, and not reported") \
    X(RULE_SHORT,        8, "short",        "the phase is shorter than the least length") \
    X(RULE_NO_DEMAND,    9, "no-demand",    "its cap is a percentage of the demand, which is unknown") \
    X(RULE_NO_DEFAULT,  10, "no-default",   "its cap is a percentage of the default limit, which is unknown") \
    X(RULE_OWN_GOAL,    11, "own-goal",     "the job requested a goal, and its class lets the job keep it") \
    X(RULE_DRY_RUN,     12, "dry-run",      "shown, not applied") \
    X(RULE_COSTLY,      13, "costly",       "raises of the cap after its phases cost the job too much training time") \
    X(RULE_NO_GAIN,     14, "no-gain",      "a static cap saves as much in the same time") \
    X(RULE_NO_JOB,      15, "no-job",       "applies to jobs, and the board has no job")

#define LIMIT_STATES(X) /* enum limit_state: what a limit of a policy does on a board */ \
    X(LIMIT_FREE,    0, "free",    "requests no cap") \
    X(LIMIT_ACTS,    1, "acts",    "its cap keeps the board under the temperature") \
    X(LIMIT_SHORT,   2, "short",   "the board's minimum does not keep it under the temperature") \
    X(LIMIT_UNKNOWN, 3, "unknown", "the temperature or the power is unknown: nothing is raised") \
    X(LIMIT_NO_JOB,  4, "no-job",  "held at its minimum until a job begins") \
    X(LIMIT_PAUSED,  5, "paused",  "the job draws little power: held low until the job draws more") \
    X(LIMIT_RISES,   6, "rises",   "the cap is being raised") \
    X(LIMIT_BEHIND,  7, "behind",  "stays slightly above the caps of other claims")

/* ---- jobs and searches ---- */

#define JOB_SOURCES(X) /* enum job_source */ \
    X(JOB_RUN,        0, "run",        "underwatt run") \
    X(JOB_REGISTERED, 1, "registered", "a scheduler's adapter, or an administrator") \
    X(JOB_FOUND,      2, "found",      "the driver's process list and /proc")

#define JOB_EVENTS(X) /* enum job_event */ \
    X(JOB_EVENT_BEGIN,  0, "begin",  "a job has begun") \
    X(JOB_EVENT_CHANGE, 1, "change", "a job's boards or search changed") \
    X(JOB_EVENT_END,    2, "end",    "a job has ended")

/* enum phase_kind.  The first six are enum uw_phase of the public interface. */
#define JOB_PHASES(X) \
    X(PHASE_UNKNOWN,    0, "unknown",    "not known") \
    X(PHASE_TRAIN,      1, "train",      "trains") \
    X(PHASE_VALIDATE,   2, "validate",   "validates") \
    X(PHASE_LOAD,       3, "load",       "loads data") \
    X(PHASE_CHECKPOINT, 4, "checkpoint", "saves a checkpoint") \
    X(PHASE_STARTUP,    5, "startup",    "starts up") \
    X(PHASE_IDLE,       6, "idle",       "idles") \
    X(PHASE_CHANGE,     7, "change",     "trains with a changed pattern")

#define PHASE_TELLERS(X) /* enum phase_by */ \
    X(PHASE_BY_NOBODY,    0, "",          "the phase is unknown") \
    X(PHASE_BY_JOB,       1, "job",       "the job's progress page") \
    X(PHASE_BY_LAUNCHES,  2, "launches",  "the rhythm of its kernel launches") \
    X(PHASE_BY_TELEMETRY, 3, "telemetry", "its boards' telemetry")

#define SEARCH_STATUSES(X) /* enum search_status */ \
    X(SEARCH_IS_OFF,            0,  "",               "the job has no search and no cap") \
    X(SEARCH_WAITS_FOR_BOARDS,  1,  "waits-boards",   "waits for its boards") \
    X(SEARCH_WAITS_PROGRESS,    2,  "waits-progress", "waits for steps, launches or a period") \
    X(SEARCH_WALKS,             3,  "walks",          "on the way to a cap") \
    X(SEARCH_MEASURES,          4,  "measures",       "measures at a cap") \
    X(SEARCH_HOLDS,             5,  "holds",          "holds its cap") \
    X(SEARCH_COMPARES,          6,  "compares",       "compares its cap with a lock of the SM clock") \
    X(SEARCH_IS_SAFE,           7,  "safe",           "no reliable progress: the safe cap, or no cap") \
    X(SEARCH_RESTS,             8,  "rests",          "cannot be measured: not capped for now") \
    X(SEARCH_IS_PAUSED,         9,  "paused",         "the job reports no step: not capped until the next step") \
    X(SEARCH_IS_BARRED,         10, "barred",         "another user computes on a board of the job") \
    X(SEARCH_IS_BEHIND,         11, "behind",         "another job's search has a board of the job") \
    X(SEARCH_LOST_BOARDS,       12, "boards-lost",    "a board of the job is lost, released or limited by another program") \
    X(SEARCH_IS_REFUSED,        13, "refused",        "not capped: see the text") \
    X(SEARCH_HAS_LEFT,          14, "left",           "no longer capped, only measured") \
    X(SEARCH_IS_OVER,           15, "over",           "the job has ended") \
    X(SEARCH_IS_RULED,          16, "ruled",          "rests: a rule or limit of the policy is below its cap") \
    X(SEARCH_IS_PASSED,         17, "passed",         "jobs that run inside the job are searched instead")

#define PROGRESS_UNITS(X) /* enum tuner_by: measure of a job's progress */ \
    X(TUNER_BY_STEPS,    0, "steps",    "steps that the job reports") \
    X(TUNER_BY_LAUNCHES, 1, "launches", "a fixed number of its launches") \
    X(TUNER_BY_PERIOD,   2, "period",   "one period of its boards' power") \
    X(TUNER_BY_NOTHING,  3, "unknown",  "unknown: the safe cap at most")

#define GOALS(X) /* enum goal_kind */ \
    X(GOAL_ENERGY,   0, "energy",   "least energy") \
    X(GOAL_EDP,      1, "edp",      "least energy times time") \
    X(GOAL_EDS,      2, "eds",      "least weighted sum of energy and time, K") \
    X(GOAL_COST,     3, "cost",     "least cost, ETA between energy and time") \
    X(GOAL_SLOWDOWN, 4, "slowdown", "least energy at up to F times the time") \
    X(GOAL_TIME,     5, "time",     "least time")

/* ---- boards and energy ---- */

#define CLOCK_REASONS(X) /* enum gpu_reason: NVML's bits */ \
    X(GPU_REASON_IDLE,           0, "idle",               "nothing runs") \
    X(GPU_REASON_APP_CLOCKS,     1, "application_clocks", "clocks set by a program") \
    X(GPU_REASON_SW_POWER_CAP,   2, "sw_power_cap",       "the power limit") \
    X(GPU_REASON_HW_SLOWDOWN,    3, "hw_slowdown",        "hardware: heat or power") \
    X(GPU_REASON_SYNC_BOOST,     4, "sync_boost",         "boards that keep one clock") \
    X(GPU_REASON_SW_THERMAL,     5, "sw_thermal",         "heat, by the driver") \
    X(GPU_REASON_HW_THERMAL,     6, "hw_thermal",         "heat, by hardware") \
    X(GPU_REASON_HW_POWER_BRAKE, 7, "hw_power_brake",     "an outside power brake")

#define METER_METHODS(X) /* enum meter_method */ \
    X(METER_NONE,       0, "none",       "nothing was measured") \
    X(METER_COUNTER,    1, "counter",    "differences of an energy counter") \
    X(METER_INTEGRATED, 2, "integrated", "power readings, added up") \
    X(METER_FOLDED,     3, "folded",     "power readings, folded on the load's period")

#define METER_DOUBTS(X) /* enum meter_why: why the error of a result is larger than usual */ \
    X(METER_WHY_ALIAS,     0, "aliasing",  "the load repeats in step with the sensor, which may miss parts of it") \
    X(METER_WHY_GAP,       1, "gap",       "the board was not read for some time") \
    X(METER_WHY_RESET,     2, "reset",     "the energy counter was reset: power readings replace it for that time") \
    X(METER_WHY_STUCK,     3, "stuck",     "the counter or the reading was stuck: that time is estimated") \
    X(METER_WHY_SHORT,     4, "short",     "the time is short compared with the sensor's period") \
    X(METER_WHY_EARLY,     5, "early",     "the sensor had not published the end yet: the end is estimated") \
    X(METER_WHY_UNPROVED,  6, "unproved",  "the energy counter was not verified: power readings were used") \
    X(METER_WHY_IRREGULAR, 7, "irregular", "the sensor samples part of the time, and the load has no period") \
    X(METER_WHY_COARSE,    8, "coarse",    "few readings near the start or the end are kept")

#define WASTE_CLASSES(X) /* enum waste_class: what a board does, docs/waste.md */ \
    X(WASTE_WORKING,   0, "working",    "the board works for a job, or what it does is unknown") \
    X(WASTE_ALLOCATED, 1, "allocated",  "a job has the board and no process on it") \
    X(WASTE_HELD,      2, "held",       "processes of a job hold memory of the board and compute nothing") \
    X(WASTE_UNDER,     3, "underused",  "a job uses little of the board") \
    X(WASTE_NOBODY,    4, "nobody",     "the board is idle, and no job has it")

#define ENERGY_KINDS(X) /* enum ledger_kind */ \
    X(LEDGER_JOB,          1, "attributed",   "a job's") \
    X(LEDGER_IDLE,         2, "idle",         "no job used the board") \
    X(LEDGER_UNATTRIBUTED, 3, "unattributed", "the job is not known")

#define ENERGY_METHODS(X) /* enum ledger_method, flags */ \
    X(LEDGER_COUNTED, 0, "counter",        "the board's energy counter") \
    X(LEDGER_SUMMED,  1, "power readings", "readings of power, added up") \
    X(LEDGER_BRIDGED, 2, "bridged gaps",   "a part was not measured, and is estimated")

#define REPORT_KEYS(X) /* enum ledger_by: `by` of a report */ \
    X(LEDGER_BY_JOB,       0,  "job",       "jobs") \
    X(LEDGER_BY_USER,      1,  "user",      "users") \
    X(LEDGER_BY_BOARD,     2,  "gpu",       "boards") \
    X(LEDGER_BY_DAY,       3,  "day",       "days") \
    X(LEDGER_BY_LABEL,     4,  "label",     "values of one label") \
    X(LEDGER_BY_DOMAIN,    5,  "cpu",       "processors and their memory") \
    X(LEDGER_BY_GROUP,     6,  "group",     "primary groups of the users") \
    X(LEDGER_BY_PROJECT,   7,  "project",   "values of the label project, else the scheduler's accounts") \
    X(LEDGER_BY_CLASS,     8,  "class",     "classes of jobs") \
    X(LEDGER_BY_PARTITION, 9,  "partition", "the scheduler's partitions") \
    X(LEDGER_BY_ACCOUNT,   10, "account",   "the scheduler's accounts") \
    X(LEDGER_BY_QOS,       11, "qos",       "the scheduler's qualities of service") \
    X(LEDGER_BY_ARRAY,     12, "array",     "the scheduler's arrays of jobs")

#define LEDGER_TROUBLES(X) /* enum ledger_trouble: why the ledger is not written */ \
    X(LEDGER_WELL,          0, "",          "the ledger is written") \
    X(LEDGER_IS_FULL,       1, "full",      "the disk is full, or the file has reached its size limit") \
    X(LEDGER_IS_READ_ONLY,  2, "read-only", "the file system is mounted read-only") \
    X(LEDGER_IS_NEWER,      3, "newer",     "a newer underwattd has written the file") \
    X(LEDGER_IS_TAKEN,      4, "taken",     "another process writes to the file") \
    X(LEDGER_NEEDS_RESTART, 5, "restart",   "the file has ids that this run has also assigned") \
    X(LEDGER_HAS_FAILED,    6, "failed",    "anything else: see the text")

#define SIGNAL_EVENTS(X) /* enum signal_event: `state` of the log's event signal */ \
    X(SIGNAL_SET,     0, "set",     "a value was set by hand") \
    X(SIGNAL_UNSET,   1, "unset",   "a value set by hand was withdrawn") \
    X(SIGNAL_OVER,    2, "over",    "a value set by hand has expired") \
    X(SIGNAL_KNOWN,   3, "known",   "the signal is known again") \
    X(SIGNAL_UNKNOWN, 4, "unknown", "the signal is no longer known") \
    X(SIGNAL_FAILS,   5, "fails",   "the source gives no value, for a new reason") \
    X(SIGNAL_WORKS,   6, "works",   "the source gives values again")

/* ---- programs ---- */

#define ACTUATOR_RESULTS(X) /* enum actuator_result: on the wire */ \
    X(ACTUATOR_DONE,    0, "done",    "in force as asked (read back); held; restored") \
    X(ACTUATOR_CLAMPED, 1, "clamped", "written, but the driver enforces another value") \
    X(ACTUATOR_REFUSED, 2, "refused", "out of the board's range, or not supported: nothing changed") \
    X(ACTUATOR_DENIED,  3, "denied",  "the right to set limits is missing: nothing changed") \
    X(ACTUATOR_TAKEN,   4, "taken",   "another Underwatt holds the board") \
    X(ACTUATOR_YIELDED, 5, "yielded", "another program set the limit: the cap ended, and that limit stays in force") \
    X(ACTUATOR_UNKNOWN, 6, "unknown", "the call failed or hangs: the cap in force is unknown") \
    X(ACTUATOR_GONE,    7, "gone",    "not held: lease expired, board or actuator lost") \
    X(ACTUATOR_BUSY,    8, "busy",    "a newer set replaced this one before it was written")

#define TOKEN_SCOPES(X) /* enum token_scope */ \
    X(TOKEN_READ,  1, "read",  "may read") \
    X(TOKEN_CLAIM, 2, "claim", "may claim for the jobs of a user, or for one of them") \
    X(TOKEN_ADMIN, 3, "admin", "may do everything")

#define FINDING_STATES(X) /* enum finding_state: underwatt doctor */ \
    X(FINDING_OK,   0, "ok",   "works") \
    X(FINDING_NOTE, 1, "note", "for information") \
    X(FINDING_WARN, 2, "warn", "works with restrictions") \
    X(FINDING_BAD,  3, "bad",  "does not work")

#define STREAM_KINDS(X) /* enum events_kind, flags: selection of GET /v1/events */ \
    X(EVENTS_SAMPLES, 0, "samples", "readings of boards and jobs, once a second") \
    X(EVENTS_CAP,     1, "cap",     "changes of caps") \
    X(EVENTS_CLAIM,   2, "claim",   "claims made, withdrawn and expired") \
    X(EVENTS_JOB,     3, "job",     "jobs that begin, change and end") \
    X(EVENTS_RULE,    4, "rule",    "rules of the policy: effect on a board begins or ends") \
    X(EVENTS_LIMIT,   5, "limit",   "limits of the policy: effect on a board begins or ends, or the limit is exceeded")

#define CGROUP_KINDS(X) /* enum cgroup_kind, in a job's name; later ones are more specific */ \
    X(CGROUP_NONE,       0, "none",    "unknown") \
    X(CGROUP_SERVICE,    1, "service", "a unit of the system: id \"ollama\"") \
    X(CGROUP_SESSION,    2, "session", "of a user: id \"session-3\", \"app-foo\"") \
    X(CGROUP_PODMAN,     3, "podman",  "id: the container's, 12 to 64 hex digits") \
    X(CGROUP_DOCKER,     4, "docker",  "as podman's") \
    X(CGROUP_KUBERNETES, 5, "k8s",     "id: the pod's uid, and the container where known") \
    X(CGROUP_SLURM,      6, "slurm",   "id: the job's number, and the step where known")

#define SIM_FAULTS(X) /* enum sim_fault_kind: the machine file and underwatt-sim fault */ \
    X(SIM_FAULT_K_LOST,    0,  "lost",    "the board falls off the bus") \
    X(SIM_FAULT_K_FOUND,   1,  "found",   "the board comes back") \
    X(SIM_FAULT_K_HANG,    2,  "hang",    "calls on the board block") \
    X(SIM_FAULT_K_RELEASE, 3,  "release", "calls return again") \
    X(SIM_FAULT_K_REFUSE,  4,  "refuse",  "set requests are refused") \
    X(SIM_FAULT_K_ACCEPT,  5,  "accept",  "set requests are accepted again") \
    X(SIM_FAULT_K_LIMIT,   6,  "limit",   "another program sets the limit") \
    X(SIM_FAULT_K_RELOAD,  7,  "reload",  "the driver is reloaded: limits, counters and clock locks are reset") \
    X(SIM_FAULT_K_UNLOAD,  8,  "unload",  "the driver is unloaded until a reload") \
    X(SIM_FAULT_K_STUCK,   9,  "stuck",   "the energy counter is stuck") \
    X(SIM_FAULT_K_UNSTUCK, 10, "unstuck", "the energy counter jumps to its true value") \
    X(SIM_FAULT_K_IGNORE,  11, "ignore",  "clock locks are accepted and not obeyed") \
    X(SIM_FAULT_K_HEED,    12, "heed",    "clock locks are obeyed again")

/* ---- log and ledger ---- */

#define REFUSALS(X) /* enum refusal: `what` of the log's events refused and withdrawn */ \
    X(REFUSAL_CLAIM,    0, "claim",    "to make a claim") \
    X(REFUSAL_WITHDRAW, 1, "withdraw", "to withdraw a claim") \
    X(REFUSAL_JOB,      2, "job",      "to begin a job") \
    X(REFUSAL_PAGE,     3, "page",     "to hand over a job's progress page") \
    X(REFUSAL_END,      4, "end",      "to end a job") \
    X(REFUSAL_RELEASE,  5, "release",  "to release a board or take it back") \
    X(REFUSAL_WINDOW,   6, "window",   "to hold windows of energy open") \
    X(REFUSAL_RIGHT,    7, "right",    "none: a claim ended because its user no longer has the board") \
    X(REFUSAL_SIGNAL,   8, "signal",   "to set a signal from outside by hand")

#define LOG_EVENTS(X) /* enum log_word: `event` of the daemon's log */ \
    X(LOG_EVENT_READY,               0, "ready",              "the daemon serves") \
    X(LOG_EVENT_STOP,                1, "stop",               "a signal ends the daemon") \
    X(LOG_EVENT_START_FAILED,        2, "start-failed",       "the daemon could not start") \
    X(LOG_EVENT_NOTIFY_FAILED,       3, "notify-failed",      "the service manager could not be notified") \
    X(LOG_EVENT_NO_STATE_FOLDER,     4, "no-state-folder",    "no state can be kept over a restart") \
    X(LOG_EVENT_CONFIG_CHANGE,       5, "config-change",      "a key of the configuration has changed") \
    X(LOG_EVENT_CONFIG_REFUSED,      6, "config-refused",     "an invalid configuration was refused: the old one stays in force") \
    X(LOG_EVENT_REALTIME_LOST,       7, "realtime-lost",      "the kernel withdrew the daemon's real-time scheduling class") \
    X(LOG_EVENT_BOARDS,              8, "boards",             "boards were opened") \
    X(LOG_EVENT_NO_BOARDS,           9, "no-boards",          "no board could be opened") \
    X(LOG_EVENT_BOARD_SILENT,       10, "board-silent",       "a board does not answer") \
    X(LOG_EVENT_BOARD_BACK,         11, "board-back",         "a silent board answers again") \
    X(LOG_EVENT_DRIVER_RELOAD,      12, "driver-reload",      "the driver was reloaded") \
    X(LOG_EVENT_DRIVER,             13, "driver",             "boards could not be attached again") \
    X(LOG_EVENT_NO_CPU_ENERGY,      14, "no-cpu-energy",      "a processor's counter is not read") \
    X(LOG_EVENT_ACTUATOR,           15, "actuator",           "the actuator is connected") \
    X(LOG_EVENT_READ_ONLY,          16, "read-only",          "no limit can be set") \
    X(LOG_EVENT_NOT_RESTORED,       17, "not-restored",       "an original limit could not be restored") \
    X(LOG_EVENT_CAP,                18, "cap",                "the limit in force changed") \
    X(LOG_EVENT_CAP_STATE,          19, "cap-state",          "the state of a board's cap changed") \
    X(LOG_EVENT_CAP_FAILED,         20, "cap-failed",         "a hold or a write failed") \
    X(LOG_EVENT_OTHER_WRITER,       21, "other-writer",       "another program has set a limit") \
    X(LOG_EVENT_CLOCK,              22, "clock",              "the SM clock was locked or reset") \
    X(LOG_EVENT_BUDGET,             23, "budget",             "the node's budget is exceeded, or is kept again") \
    X(LOG_EVENT_REFUSED,            24, "refused",            "a request was refused for lack of rights") \
    X(LOG_EVENT_WITHDRAWN,          25, "withdrawn",          "a claim ended because its user no longer has the board") \
    X(LOG_EVENT_CLAIM_LOST,         26, "claim-lost",         "a claim could not be taken over at a restart") \
    X(LOG_EVENT_RELEASED,           27, "released",           "a board was released") \
    X(LOG_EVENT_NOT_RELEASED,       28, "not-released",       "a board could not be released") \
    X(LOG_EVENT_TAKEN_BACK,         29, "taken-back",         "a released board is held again") \
    X(LOG_EVENT_RELEASE_LOST,       30, "release-lost",       "the list of released boards could not be kept") \
    X(LOG_EVENT_JOB_BEGIN,          31, "job-begin",          "a job has begun") \
    X(LOG_EVENT_JOB_END,            32, "job-end",            "a job has ended") \
    X(LOG_EVENT_JOB_TAKEN_OVER,     33, "job-taken-over",     "a job was taken over at a restart") \
    X(LOG_EVENT_JOB_OVER,           34, "job-over",           "a job ended while no daemon ran, or its end was not reported") \
    X(LOG_EVENT_BOARD_PASSED,       35, "board-passed",       "a board requested by a job belongs to another job now") \
    X(LOG_EVENT_SEARCH,             36, "search",             "a job's search reports its next step") \
    X(LOG_EVENT_SEARCH_REFUSED,     37, "search-refused",     "a job's search could not begin") \
    X(LOG_EVENT_SEARCH_LOST,        38, "search-lost",        "a search could not be taken over at a restart") \
    X(LOG_EVENT_LEDGER,             39, "ledger",             "the ledger is written again") \
    X(LOG_EVENT_LEDGER_FAILED,      40, "ledger-failed",      "the ledger cannot be written") \
    X(LOG_EVENT_LEDGER_ASIDE,       41, "ledger-aside",       "a damaged ledger was moved aside") \
    X(LOG_EVENT_LEDGER_ANEW,        42, "ledger-anew",        "a new ledger was created") \
    X(LOG_EVENT_LEDGER_LOST,        43, "ledger-lost",        "rows of the ledger were lost") \
    X(LOG_EVENT_CLOCK_SET,          44, "clock-set",          "UTC was set") \
    X(LOG_EVENT_HTTP,               45, "http",               "the HTTP server has failed") \
    X(LOG_EVENT_HPC_MAPPING_FAILED, 46, "hpc-mapping-failed", "files for dcgm-exporter could not be written") \
    X(LOG_EVENT_SIGNAL,             47, "signal",             "a signal from outside was set, became known or became unknown") \
    X(LOG_EVENT_POLICY,              48, "policy",             "the policy in force changed") \
    X(LOG_EVENT_POLICY_REFUSED,      49, "policy-refused",     "an invalid policy was refused: the old policy, or none, stays in force") \
    X(LOG_EVENT_RULE,                50, "rule",               "a rule of the policy takes effect or ends on a board") \
    X(LOG_EVENT_LIMIT,               51, "limit",              "a limit of the policy takes effect or ends on a board, or cannot") \
    X(LOG_EVENT_JOB_BACK,            52, "job-back",           "a job that was taken to have ended continues") \
    X(LOG_EVENT_ACCOUNTING_REFUSED,  53, "accounting-refused", "the file of contracts is invalid: reports leave contracts out") \
    X(LOG_EVENT_FORECAST,            54, "forecast",           "a file's forecast is worse than persistence, is no longer worse, or is not judged") \
    X(LOG_EVENT_FORECASTS_FILE,      55, "forecasts-file",     "the file of forecast errors could not be read or written") \
    X(LOG_EVENT_CONFIG_WARNING,      56, "config-warning",     "a group or a file that the configuration names is missing")

#define SIM_LOG_EVENTS(X) /* enum log_word: of the log of a simulated world */ \
    X(LOG_EVENT_SIM_START,  100, "start",  "the world is up") \
    X(LOG_EVENT_SIM_READY,  101, "ready",  "no process waits for the readiness byte") \
    X(LOG_EVENT_SIM_STOP,   102, "stop",   "a signal ends the world") \
    X(LOG_EVENT_SIM_CLIENT, 103, "client", "a client was not accepted") \
    X(LOG_EVENT_SIM_FULL,   104, "full",   "there are too many clients") \
    X(LOG_EVENT_SIM_JOB,    105, "job",    "a simulated job has begun") \
    X(LOG_EVENT_SIM_FAULT,  106, "fault",  "a fault was injected") \
    X(LOG_EVENT_SIM_RESET,  107, "reset",  "a board was reset")

#define COLLECTOR_LOG_EVENTS(X) /* enum log_word: of the log of a Slurm cluster's collector */ \
    X(LOG_EVENT_COLLECTOR_READY, 200, "ready", "the collector reads the queue") \
    X(LOG_EVENT_COLLECTOR_STOP,  201, "stop",  "a signal ends the collector") \
    X(LOG_EVENT_COLLECTOR_SLURM, 202, "slurm", "Slurm answers, or no longer answers") \
    X(LOG_EVENT_COLLECTOR_NODE,  203, "node",  "a node's daemon answers, or no longer answers")

#define SIGNALS_LOG_EVENTS(X) /* enum log_word: of the log of underwatt-signals */ \
    X(LOG_EVENT_SIGNALS_READY,   300, "ready",   "the process asks its sources, and its socket is open") \
    X(LOG_EVENT_SIGNALS_STOP,    301, "stop",    "a signal ends the process") \
    X(LOG_EVENT_SIGNALS_SOURCE,  302, "source",  "a source answers, or no longer answers") \
    X(LOG_EVENT_SIGNALS_CACHE,   303, "cache",   "a cache is ignored, or cannot be written") \
    X(LOG_EVENT_SIGNALS_REFUSED, 304, "refused", "a request was refused") \
    X(LOG_EVENT_SIGNALS_FORECAST, 305, "forecast", "a forecast is worse than persistence, or is no longer worse") \
    X(LOG_EVENT_SIGNALS_LARGE,   306, "large",   "the answer is near the largest size that nodes accept") \
    X(LOG_EVENT_SIGNALS_FILES,   307, "files",   "few file descriptors: fewer nodes are served at once")

#define LEDGER_EVENTS(X) /* enum ledger_word: `kind` of the ledger's events */ \
    X(LEDGER_EVENT_START,          0, "start",         "a run of the daemon") \
    X(LEDGER_EVENT_STOP,           1, "stop",          "the end of a run") \
    X(LEDGER_EVENT_CONFIG,         2, "config",        "the configuration was read, or refused") \
    X(LEDGER_EVENT_BOARD_BACK,     3, "board-back",    "a board answers again") \
    X(LEDGER_EVENT_DRIVER_RELOAD,  4, "driver-reload", "the driver was reloaded") \
    X(LEDGER_EVENT_ACTUATOR,       5, "actuator",      "the actuator was connected") \
    X(LEDGER_EVENT_READ_ONLY,      6, "read-only",     "no limit can be set") \
    X(LEDGER_EVENT_OTHER_WRITER,   7, "other-writer",  "another program has set a limit") \
    X(LEDGER_EVENT_CAP_FAILED,     8, "cap-failed",    "a hold or a write failed") \
    X(LEDGER_EVENT_CLOCK,          9, "clock",         "a lock of the SM clock was made or reset") \
    X(LEDGER_EVENT_BUDGET,        10, "budget",        "the node's budget") \
    X(LEDGER_EVENT_REFUSED,       11, "refused",       "a request was refused for lack of rights") \
    X(LEDGER_EVENT_WITHDRAWN,     12, "withdrawn",     "a claim ended because its user no longer has the board") \
    X(LEDGER_EVENT_CLAIM_LOST,    13, "claim-lost",    "a claim could not be taken over at a restart") \
    X(LEDGER_EVENT_BOARD_PASSED,  14, "board-passed",  "a requested board belongs to another job now") \
    X(LEDGER_EVENT_RELEASE,       15, "release",       "the release of a board was requested") \
    X(LEDGER_EVENT_NOT_RELEASED,  16, "not-released",  "a board could not be released") \
    X(LEDGER_EVENT_TAKE_BACK,     17, "take-back",     "a released board was requested back") \
    X(LEDGER_EVENT_RESET,         18, "reset",         "a board was reset while it was released") \
    X(LEDGER_EVENT_CLOCK_SET,     19, "clock-set",     "UTC was set") \
    X(LEDGER_EVENT_SIGNAL_SET,    20, "signal-set",    "a signal from outside was set by hand") \
    X(LEDGER_EVENT_SIGNAL_END,    21, "signal-end",    "a value set by hand has ended") \
    X(LEDGER_EVENT_SIGNAL_KNOWN,  22, "signal-known",  "a signal from outside is known, or known again") \
    X(LEDGER_EVENT_SIGNAL_UNKNOWN, 23, "signal-unknown", "a signal from outside is unknown") \
    X(LEDGER_EVENT_POLICY,        24, "policy",        "a policy was read, or refused") \
    X(LEDGER_EVENT_RULE,          25, "rule",          "a rule of the policy takes effect or ends") \
    X(LEDGER_EVENT_LIMIT,         26, "limit",         "a limit of the policy takes effect or ends, or cannot")

/* Each list and its name in tools/check-names and the documents. */
#define NAMES(X) \
    X(NAMES_CAP_STATE,       "cap.state",       CAP_STATES) \
    X(NAMES_CAP_BY,          "cap.by",          CAP_DECIDERS) \
    X(NAMES_CAP_EVENT,       "cap.event",       CAP_EVENTS) \
    X(NAMES_CAP_CAUSE,       "cap.cause",       CAP_CAUSES) \
    X(NAMES_CAP_OTHERS,      "cap.others",      CAP_OTHERS) \
    X(NAMES_CLAIM_KIND,      "claim.kind",      CLAIM_KINDS) \
    X(NAMES_CLAIM_SOURCE,    "claim.source",    CLAIM_SOURCES) \
    X(NAMES_CLAIM_STATUS,    "claim.status",    CLAIM_STATUSES) \
    X(NAMES_CLAIM_REASON,    "claim.reason",    CLAIM_REASONS) \
    X(NAMES_CLAIM_END,       "claim.how",       CLAIM_ENDS) \
    X(NAMES_RULE_STATE,      "rule.state",      RULE_STATES) \
    X(NAMES_LIMIT_STATE,     "limit.state",     LIMIT_STATES) \
    X(NAMES_JOB_SOURCE,      "job.source",      JOB_SOURCES) \
    X(NAMES_JOB_EVENT,       "job.event",       JOB_EVENTS) \
    X(NAMES_JOB_PHASE,       "job.phase",       JOB_PHASES) \
    X(NAMES_PHASE_BY,        "job.phase_by",    PHASE_TELLERS) \
    X(NAMES_SEARCH_STATUS,   "search.status",   SEARCH_STATUSES) \
    X(NAMES_PROGRESS,        "search.progress", PROGRESS_UNITS) \
    X(NAMES_GOAL,            "goal",            GOALS) \
    X(NAMES_CLOCK_REASON,    "clock.reason",    CLOCK_REASONS) \
    X(NAMES_METER_METHOD,    "meter.method",    METER_METHODS) \
    X(NAMES_METER_WHY,       "meter.why",       METER_DOUBTS) \
    X(NAMES_USE,             "gpu.use",         WASTE_CLASSES) \
    X(NAMES_ENERGY_KIND,     "energy.kind",     ENERGY_KINDS) \
    X(NAMES_ENERGY_METHOD,   "energy.method",   ENERGY_METHODS) \
    X(NAMES_REPORT_BY,       "report.by",       REPORT_KEYS) \
    X(NAMES_LEDGER_TROUBLE,  "ledger.reason",   LEDGER_TROUBLES) \
    X(NAMES_SIGNAL_EVENT,    "signal.event",    SIGNAL_EVENTS) \
    X(NAMES_ACTUATOR_RESULT, "actuator.result", ACTUATOR_RESULTS) \
    X(NAMES_TOKEN_SCOPE,     "token.scope",     TOKEN_SCOPES) \
    X(NAMES_FINDING,         "doctor.state",    FINDING_STATES) \
    X(NAMES_STREAM,          "events.what",     STREAM_KINDS) \
    X(NAMES_CGROUP,          "cgroup.kind",     CGROUP_KINDS) \
    X(NAMES_SIM_FAULT,       "sim.fault",       SIM_FAULTS) \
    X(NAMES_REFUSAL,         "refused.what",    REFUSALS) \
    X(NAMES_LOG_EVENT,       "log.event",       LOG_EVENTS) \
    X(NAMES_SIM_EVENT,       "sim.event",       SIM_LOG_EVENTS) \
    X(NAMES_COLLECTOR_EVENT, "collector.event", COLLECTOR_LOG_EVENTS) \
    X(NAMES_SIGNALS_EVENT,   "signals.event",   SIGNALS_LOG_EVENTS) \
    X(NAMES_LEDGER_EVENT,    "ledger.event",    LEDGER_EVENTS)

/* clang-format on */

/* Enumerations of rooms that may not include each other's headers. */
enum caps_state { CAP_STATES(NAME_ENUM) };
enum caps_cause { CAP_CAUSES(NAME_ENUM) CAPS_CAUSES };
enum caps_met { CLAIM_STATUSES(NAME_ENUM) };
enum ledger_word { LEDGER_EVENTS(NAME_ENUM) };
enum waste_class { WASTE_CLASSES(NAME_ENUM) };
enum { WASTE_N = WASTE_NOBODY + 1 };

#define NAMES_ID(id, of, list) id,
enum names { NAMES(NAMES_ID) NAMES_N };

struct names_row {
    const char *word, *text;
};
struct names_list {
    const char *of;               /* "cap.state" */
    const struct names_row *name; /* by number; word NULL: no such number */
    unsigned n;
};
extern const struct names_list names_lists[NAMES_N];

/* "?": the list has no such number. */
const char *names_word(enum names of, unsigned number);
const char *names_text(enum names of, unsigned number);
/* The same, but NULL if the word is "" (no state, no reason). */
const char *names_word_or_null(enum names of, unsigned number);
/* For a word that the list lacks; as nearest_none_of().  Returns ret. */
const char *names_none_of(enum names of, const char *word, char ret[NEAREST_NONE]);
/* -1: the list has no such word. */
int names_number(enum names of, const char *word);
unsigned names_number_or(enum names of, const char *word, unsigned otherwise);

#endif
