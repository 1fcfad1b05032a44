/* The node's policy: its file, its engine, and the results: claims of rules, goals of
 * searches, events.
 *
 * Owns the policy that was read, the engine, the rules' claims, the limits.  Touches the
 * file.  Thread: the loop's.  Explained in docs/policies.md.  The engine and the claims
 * are created with the first policy.
 */
#ifndef NODE_NODE_POLICY_H
#define NODE_NODE_POLICY_H

#include "actuator/result.h"
#include "core/optimum/goal.h"
#include "node/view.h"
#include "policy/engine.h"
#include "policy/limits.h"
#include "underwatt/error.h"

struct caps;
struct node_policy;
struct policy_file;
struct policy_trial;

/* A rule takes effect or ends (dry_run: would). */
struct node_rule_event {
    const struct engine_event *rule;
    bool dry_run;
};

/* During a reload the loop waits for these files, one after the other, and renews no
 * lease meanwhile.
 */
enum { NODE_POLICY_READ_MS = 1000, NODE_ACCOUNTING_READ_MS = 400 };
_Static_assert(NODE_POLICY_READ_MS + NODE_ACCOUNTING_READ_MS +
                       2 * (int)ACTUATOR_RENEW_MS <=
                   (int)ACTUATOR_LEASE_MS,
               "caps stay while a file system hangs");

enum { NODE_RULE_TEXT = 200 };
/* "rule night takes effect for job 3". */
void node_rule_text(const struct node_rule_event *event, char ret[NODE_RULE_TEXT]);

struct node_policy_opts {
    struct loop *loop;
    const struct node_view *(*look)(void *user);
    /* The requests of the job itself. */
    void (*asked)(uint64_t job, bool *ret_goal, bool *ret_cap, void *user);
    /* The goal of a policy for the job's search; NULL: its own again. */
    void (*goal)(uint64_t job, const struct goal *goal, const char *by, void *user);
    void (*rule)(const struct node_rule_event *event, void *user);
    /* Logged and booked already. */
    void (*limit)(const struct limits_event *event, void *user);
    /* Whether changes of the job's phase are needed at once; may be repeated. */
    void (*phases)(uint64_t job, bool needed, void *user);
    struct ledger_writer *writer;
    /* The value of a signal from outside; leaves ret as it is where none is known.  May
     * be NULL.  Call node_policy_changed() when one changes.
     */
    void (*outside)(const struct policy_signal *signal, const struct policy_read *read,
                    struct policy_value *ret, void *user);
    void *user;
};
/* -ENOMEM */
int node_policy_new(const struct node_policy_opts *opts, struct node_policy **ret,
                    uw_error *err);
void node_policy_free(struct node_policy *p);
DEFINE_AUTO(struct node_policy *, node_policy_free);

/* Reads and checks a file; *ret NULL: there is none at this path, and no policy is in
 * force; -EINVAL: one is.  A failure is counted; FILE:LINE and the text of the first
 * finding.  Nothing is in force yet.
 */
int node_policy_read(struct node_policy *p, const char *path, struct policy_file **ret,
                     uw_error *err);
/* Evaluates this text as a policy now.  A signal that it declares has the value of the
 * node's signal of the same name.  -EINVAL with the first finding.
 */
int node_policy_try(struct node_policy *p, const char *text, size_t len,
                    struct policy_trial **ret, uw_error *err);
/* Puts a policy in force and owns it; NULL: none. */
int node_policy_use(struct node_policy *p, struct policy_file *file, uw_error *err);
bool node_policy_in_force(const struct node_policy *p);
/* Writes to log and ledger that another policy, or none, is in force; was: there was one
 * before.
 */
void node_policy_book(struct node_policy *p, bool was, const char *path);
/* Frees a policy that is not used (or NULL), records the failure and its reason; returns
 * r.
 */
int node_policy_refused(struct node_policy *p, struct policy_file *file, int r,
                        const uw_error *err);

/* The presets in force; of p NULL, or without a policy, the built-in ones.  Borrowed
 * until node_policy_use().
 */
const struct policy_preset *node_policy_presets(const struct node_policy *p,
                                                size_t *ret_n);
/* Resolves the preset of this name to a cap.  -EINVAL. */
int node_policy_preset(const struct node_policy *p, const char *name, struct cap_arg *ret,
                       uw_error *err);

/* The name of the i-th class of the policy in force; NULL: no more; p NULL: none. */
const char *node_policy_class_at(const struct node_policy *p, size_t i);

/* The facility's PUE now; 0: unknown, or p NULL. */
double node_policy_pue(const struct node_policy *p);

/* The boards are open: evaluates at once, before the actuator is there. */
int node_policy_open(struct node_policy *p, struct caps *caps, size_t n_boards,
                     uw_error *err);
/* The boards are being closed: call it after the actuator is closed and before the caps
 * are.
 */
void node_policy_close(struct node_policy *p);

/* The daemon ends: evaluation stops, claims stay. */
void node_policy_rest(struct node_policy *p);
/* A value that rules may read has changed. */
void node_policy_changed(struct node_policy *p);
/* The phase of a job has changed; see policy_engine_hurry(). */
void node_policy_hurry(struct node_policy *p, uint64_t job);
/* Whether a limit needs temperatures each second. */
bool node_policy_is_hot(const struct node_policy *p);
/* p NULL: no policy. */
void node_policy_look(const struct node_policy *p, struct view_policy *ret);

#endif
