/* Shared by the files that read policy.yaml: file.c (the whole), file-class.c (classes
 * and matches), file-rule.c (rules).
 */
#ifndef POLICY_FILE_INSIDE_H
#define POLICY_FILE_INSIDE_H

#include "io/yaml.h"
#include "io/zone.h"
#include "policy/file.h"

struct policy_block; /* memory that lives as long as the file's values */

/* The defaults of rules and classes. */
struct policy_defaults {
    uint64_t every_ns, for_ns, release_ns;
    double hysteresis;
    struct policy_ramp ramp;
    bool idle_boards;
};

struct policy_inside {
    struct policy_file file; /* first: what callers see */
    char *name;
    struct yaml *doc; /* texts are borrowed from it */
    struct policy_block *blocks;
    struct policy_signal signal[POLICY_SIGNALS_MAX];
    struct policy_catalogue catalogue;
    struct policy_defaults defaults;
    struct policy_word cls_words[POLICY_CLASSES_MAX + 2]; /* what job.class may be */
    struct zone *zone[POLICY_RULES_MAX];
    const char *zone_name[POLICY_RULES_MAX];
    size_t n_zones;
    uint16_t zone_of[POLICY_RULES_MAX]; /* by rule: which of them */
    char price_unit[16];
    const struct yaml_node *rule_node[POLICY_RULES_MAX], *cls_node[POLICY_CLASSES_MAX];
};

/* Zeroed memory that is freed with the file; NULL: out of memory. */
void *policy_file_memory(struct policy_inside *f, size_t n, size_t size);

/* A name: plain text of at most 48 bytes. */
int policy_file_name(const struct yaml_node *node, const char **ret, uw_error *err);
/* "70 %"; zero: 0 % too. */
int policy_file_share(const struct yaml_node *node, bool zero, double *ret,
                      uw_error *err);
int policy_file_ramp(const struct yaml_node *node, struct policy_ramp *ret,
                     uw_error *err);
int policy_file_goal(const struct yaml_node *node, struct goal *ret, uw_error *err);
/* The name of a preset of this policy. */
int policy_file_preset(struct policy_inside *f, const struct yaml_node *node,
                       struct policy_preset *ret, uw_error *err);

/* The number of items of a list, at most max; -EINVAL. */
int policy_file_count(const struct yaml_node *node, size_t max, size_t *ret_n,
                      uw_error *err);
/* A value, or a list of values. */
int policy_file_texts(struct policy_inside *f, const struct yaml_node *node,
                      const char *const **ret, size_t *ret_n, uw_error *err);
/* A match; the key "class", where cls is not NULL, is read into that. */
int policy_file_match(struct policy_inside *f, const struct yaml_node *node,
                      struct policy_match *ret, const char *const **cls,
                      size_t *ret_n_cls, uw_error *err);

int policy_file_classes(struct policy_inside *f, const struct yaml_node *node,
                        uw_error *err);
int policy_file_rules(struct policy_inside *f, const struct yaml_node *node,
                      uw_error *err);

#endif
