/* Which jobs a rule or a class is for.  Pure; texts are borrowed. */
#ifndef CORE_POLICY_MATCH_H
#define CORE_POLICY_MATCH_H

#include <stdbool.h>
#include <stddef.h>

/* What is known of a job: "user", "group", "name", "kind", "label.tier",
 * "slurm.partition", "kubernetes.queue".  A key may stand there several times (groups).
 */
struct policy_fact {
    const char *key, *value;
};
struct policy_facts {
    const struct policy_fact *fact;
    size_t n;
};

/* One of the patterns matches a fact of this key. */
struct policy_term {
    const char *key;
    const char *const *pattern;
    size_t n;
};
/* All terms match; without a term: any job. */
struct policy_match {
    const struct policy_term *term;
    size_t n;
};

/* Whole texts; * is any number of characters. */
bool policy_wildcard(const char *pattern, const char *text);
/* Whether `wide` matches each job that `narrow` matches; false: it may not. */
bool policy_match_covers(const struct policy_match *wide,
                         const struct policy_match *narrow);
bool policy_matches(const struct policy_match *match, const struct policy_facts *facts);

#endif
