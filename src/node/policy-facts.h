/* The facts of the node, its boards and jobs that a policy's conditions read, and what
 * its caps are parts of, out of the node's view.  Pure.
 */
#ifndef NODE_POLICY_FACTS_H
#define NODE_POLICY_FACTS_H

#include "core/policy/policy.h"
#include "node/view.h"
#include "policy/limits.h"

/* Labels by which whoever registers a job tells what nobody else knows. */
#define FACT_LABEL_KIND "underwatt.kind"         /* training, inference, development */
#define FACT_LABEL_DEADLINE "underwatt.deadline" /* seconds since 1970 */
#define FACT_LABEL_LIMIT "underwatt.limit"       /* "4 h" from its begin on */
#define FACT_LABEL_CLASS "underwatt.class"       /* that its user asked a scheduler for */
#define FACT_LABEL_SHARED "underwatt.shared"     /* of a scheduler's job: "yes" */

/* A built-in signal of the catalogue; board, job: where its scope has one.  The class is
 * not a fact of the view.
 */
void policy_fact(size_t signal, const struct node_view *v, const struct view_board *board,
                 const struct view_job *job, struct policy_value *ret);

/* The job in which it runs; NULL: none is known. */
const struct view_job *policy_outer(const struct node_view *v,
                                    const struct view_job *job);

/* What is known of a job for matches: NULL job: nothing.  Texts are borrowed from it and
 * from the job in which it runs, whose labels it has beside its own.
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

/* Limits, claims of others and, of the searches of its jobs, demand and peak.  hold_mw is
 * where the search of one of its jobs has settled; *ret_measures: it measures again.
 */
void policy_board_of(const struct node_view *v, size_t board, struct policy_board *ret,
                     bool *ret_measures);

/* A board as the limits of a policy see it. */
void policy_limits_board(const struct view_board *b, uint64_t now_ns,
                         struct limits_board *ret);

#endif
