#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "policy/file-inside.h"

enum { TERMS_MAX = 32, PATTERNS_MAX = 64, KEY_MAX = 80 };

int policy_file_texts(struct policy_inside *f, const struct yaml_node *node,
                      const char *const **ret, size_t *ret_n, uw_error *err)
{
    bool list = yaml_kind(node) == YAML_SEQ;
    size_t n = list ? yaml_count(node) : 1;
    int r = 0;

    if (n == 0 || n > PATTERNS_MAX)
        return yaml_fail(node, err, -EINVAL, "expected a list of 1 to 64 values");
    const char **texts = policy_file_memory(f, n, sizeof *texts);
    if (!texts)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && r >= 0; i++)
        r = yaml_text(list ? yaml_at(node, i) : node, &texts[i], err);
    if (r < 0)
        return r;
    *ret = texts;
    *ret_n = n;
    return 0;
}

/* ---- a match ---- */

struct reader {
    struct policy_inside *f;
    struct policy_term term[TERMS_MAX];
    size_t n;
    const char *const **cls; /* NULL: the key "class" is none here */
    size_t *n_cls;
};

static int read_kind(const struct yaml_node *node, const struct policy_term *term,
                     uw_error *err)
{
    static const char *const words[] = {"development", "training", "inference", "unknown",
                                        NULL};
    char hint[NEAREST_TEXT];

    for (size_t i = 0; i < term->n; i++) {
        bool known = strchr(term->pattern[i], '*') != NULL;
        for (size_t k = 0; words[k]; k++)
            known = known || strcmp(words[k], term->pattern[i]) == 0;
        if (!known)
            return yaml_fail(node, err, -EINVAL,
                             "kind: '%.40s' is none of: development, training, "
                             "inference, unknown%s",
                             term->pattern[i], nearest_of(term->pattern[i], words, hint));
    }
    return 0;
}

/* key is borrowed and lives as long as the file. */
static int add_term(struct reader *to, const char *key, const struct yaml_node *node,
                    uw_error *err)
{
    struct policy_term *term = &to->term[to->n];

    if (to->n == TERMS_MAX)
        return yaml_fail(node, err, -EINVAL, "a match has at most 32 keys");
    term->key = key;
    int r = policy_file_texts(to->f, node, &term->pattern, &term->n, err);
    if (r >= 0 && strcmp(key, "kind") == 0)
        r = read_kind(node, term, err);
    if (r >= 0)
        to->n++;
    return r;
}

/* A map whose keys follow "label.", "slurm.", …; keys is NULL: any key. */
static int add_terms(struct reader *to, const char *group, const char *const *keys,
                     const struct yaml_node *node, uw_error *err)
{
    int r = keys ? yaml_check_keys(node, keys, err) : yaml_want(node, YAML_MAP, err);

    for (size_t i = 0; r >= 0 && i < yaml_count(node); i++) {
        char *key = policy_file_memory(to->f, KEY_MAX, 1);
        if (!key)
            return fail(err, -ENOMEM, "out of memory");
        if (snprintf(key, KEY_MAX, "%s.%s", group, yaml_key_at(node, i)) >= KEY_MAX)
            return yaml_fail_key(node, i, err, -EINVAL, "this key is too long");
        r = add_term(to, key, yaml_at(node, i), err);
    }
    return r;
}

static const char *const slurm_keys[] = {"account", "partition", "qos", NULL};
static const char *const kubernetes_keys[] = {"namespace", "priority_class", "queue",
                                              NULL};

static int read_match_key(struct reader *to, const char *key,
                          const struct yaml_node *node, uw_error *err)
{
    if (strcmp(key, "label") == 0)
        return add_terms(to, key, NULL, node, err);
    if (strcmp(key, "slurm") == 0)
        return add_terms(to, key, slurm_keys, node, err);
    if (strcmp(key, "kubernetes") == 0)
        return add_terms(to, key, kubernetes_keys, node, err);
    if (to->cls && strcmp(key, "class") == 0)
        return policy_file_texts(to->f, node, to->cls, to->n_cls, err);
    return add_term(to, key, node, err);
}

int policy_file_match(struct policy_inside *f, const struct yaml_node *node,
                      struct policy_match *ret, const char *const **cls,
                      size_t *ret_n_cls, uw_error *err)
{
    static const char *const keys[] = {"user",  "group",      "name",  "kind", "label",
                                       "slurm", "kubernetes", "class", NULL};
    static const char *const no_class[] = {"user",  "group", "name",       "kind",
                                           "label", "slurm", "kubernetes", NULL};
    struct reader to = {.f = f, .cls = cls, .n_cls = ret_n_cls};
    int r = yaml_check_keys(node, cls ? keys : no_class, err);

    for (size_t i = 0; r >= 0 && i < yaml_count(node); i++)
        r = read_match_key(&to, yaml_key_at(node, i), yaml_at(node, i), err);
    if (r < 0)
        return r;
    struct policy_term *terms = policy_file_memory(f, to.n ? to.n : 1, sizeof *terms);
    if (!terms)
        return fail(err, -ENOMEM, "out of memory");
    memcpy(terms, to.term, to.n * sizeof *terms);
    *ret = (struct policy_match){terms, to.n};
    return 0;
}

/* ---- classes ---- */

int policy_file_preset(struct policy_inside *f, const struct yaml_node *node,
                       struct policy_preset *ret, uw_error *err)
{
    const struct policy *p = &f->file.policy;
    const char *text = NULL;
    uw_error why;

    int r = yaml_text(node, &text, err);
    if (r < 0)
        return r;
    r = policy_preset_find(p->preset, p->n_presets, text, ret, &why);
    return r < 0 ? yaml_fail(node, err, r, "preset: %s", why.text) : 0;
}

struct class_keys {
    const char *name;
    const struct yaml_node *match, *goal, *preset, *floor, *ramp;
    bool critical, rule_goals;
};
/* clang-format off */
#define NODE(key) {#key, YAML_TYPE_NODE, offsetof(struct class_keys, key), false, 0, 0, NULL}
static const struct yaml_key class_keys[] = {
    {"name", YAML_TYPE_TEXT, offsetof(struct class_keys, name), true, 0, 0, NULL},
    {"match", YAML_TYPE_NODE, offsetof(struct class_keys, match), true, 0, 0, NULL},
    {"critical", YAML_TYPE_BOOL, offsetof(struct class_keys, critical), false, 0, 0, NULL},
    {"rule_goals", YAML_TYPE_BOOL, offsetof(struct class_keys, rule_goals), false, 0, 0, NULL},
    NODE(goal), NODE(preset), NODE(floor), NODE(ramp),
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

static int read_class(struct policy_inside *f, const struct yaml_node *node,
                      struct policy_class *ret, uw_error *err)
{
    struct class_keys k = {0};
    int r = yaml_read_map(node, class_keys, &k, err);

    if (r >= 0)
        r = policy_file_name(yaml_get(node, "name"), &ret->name, err);
    if (r >= 0 && k.goal && k.preset)
        r = yaml_fail(k.preset, err, -EINVAL, "%s: a goal or a preset, not both",
                      ret->name);
    if (r >= 0)
        r = policy_file_match(f, k.match, &ret->match, NULL, NULL, err);
    if (r >= 0 && k.goal)
        r = policy_file_goal(k.goal, &ret->goal, err);
    if (r >= 0 && k.preset)
        r = policy_file_preset(f, k.preset, &ret->preset, err);
    if (r >= 0 && k.floor)
        r = policy_file_share(k.floor, false, &ret->floor, err);
    if (r >= 0 && k.ramp)
        r = policy_file_ramp(k.ramp, &ret->ramp, err);
    ret->has_goal = k.goal != NULL;
    ret->has_preset = k.preset != NULL;
    ret->critical = k.critical;
    ret->rule_goals = k.rule_goals;
    return r;
}

int policy_file_classes(struct policy_inside *f, const struct yaml_node *node,
                        uw_error *err)
{
    struct policy *p = &f->file.policy;
    size_t n = 0;
    int r = policy_file_count(node, POLICY_CLASSES_MAX, &n, err);

    if (r < 0)
        return r;
    p->cls = policy_file_memory(f, n ? n : 1, sizeof *p->cls);
    if (!p->cls)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && r >= 0; i++) {
        f->cls_node[i] = yaml_at(node, i);
        p->cls[i].ramp = f->defaults.ramp;
        r = read_class(f, f->cls_node[i], &p->cls[i], err);
        f->cls_words[i] = (struct policy_word){p->cls[i].name, p->cls[i].name};
        p->n_classes = i + 1;
    }
    return r;
}
