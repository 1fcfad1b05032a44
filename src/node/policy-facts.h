/* Derives from the node's view the facts of the node, its boards and jobs that a policy's
 * conditions read, and the values that percentages of caps refer to.  Pure.
 */
#ifndef NODE_POLICY_FACTS_H
#define NODE_POLICY_FACTS_H

#include "core/policy/policy.h"
#include "node/view.h"
#include "policy/limits.h"

/* Labels by which the registrar of a job provides facts that the node cannot know. */
#define FACT_LABEL_KIND "underwatt.kind"         /* training, inference, development */
#define FACT_LABEL_DEADLINE "underwatt.deadline" /* seconds since 1970 */
#define FACT_LABEL_LIMIT "underwatt.limit" /* time limit from the job's begin: "4 h" */
#define FACT_LABEL_CLASS \
    "underwatt.class" /* class that the user requested from a scheduler */
#define FACT_LABEL_SHARED "underwatt.shared" /* of a scheduler's job: "yes" */

/* The value of a built-in signal of the catalogue; board, job: as its scope requires. The
 * class is not a fact of the view.
 */
void policy_fact(size_t signal, const struct node_view *v, const struct view_board *board,
                 const struct view_job *job, struct policy_value *ret);

/* The job inside which it runs; NULL: unknown or none. */
const struct view_job *policy_outer(const struct node_view *v,
                                    const struct view_job *job);

/* The facts of a job for matches; NULL job: none.  Texts are borrowed from the job and
 * from its outer job, whose labels are added to its own.
 */
enum { FACTS_MAX = LABELS_MAX * 4 + 4 };
struct job_facts {
    struct policy_fact fact[FACTS_MAX];
    char key[LABELS_MAX * 2][LABEL_KEY + 8];
    size_t n_keys;
    struct policy_facts all;
};
void policy_job_facts(const struct node_view *v, const struct view_job *job,
                      struct job_facts *ret);

/* Limits, claims of others and, from the searches of its jobs, demand and peak. hold_mw
 * is the settled cap of the search of one of its jobs; *ret_measures: the search measures
 * again.
 */
void policy_board_of(const struct node_view *v, size_t board, struct policy_board *ret,
                     bool *ret_measures);

/* The input of a policy's limits for a board. */
void policy_limits_board(const struct view_board *b, uint64_t now_ns,
                         struct limits_board *ret);

#endif
