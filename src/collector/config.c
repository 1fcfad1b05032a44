#include "collector/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/policy/match.h"
#include "io/secret.h"
#include "io/yaml.h"

enum { SOCKET_MAX = 107 };

enum { KIND_DEVELOPMENT, KIND_TRAINING, KIND_INFERENCE };
static const struct yaml_word kind_words[] = {{"development", KIND_DEVELOPMENT},
                                              {"training", KIND_TRAINING},
                                              {"inference", KIND_INFERENCE},
                                              {NULL, 0}};
static const struct yaml_word source_words[] = {
    {"auto", SOURCE_AUTO}, {"json", SOURCE_JSON}, {"text", SOURCE_TEXT}, {NULL, 0}};

/* The file's maps. */
struct top_file {
    struct collector_config *c;
    uint64_t every_ns;
    int source;
    bool sees_all;
    const struct yaml_node *nodes, *kinds;
};

/* clang-format off */
#define TOP(field) offsetof(struct top_file, field)
static const struct yaml_key top_keys[] = {
    {"every", YAML_TYPE_DURATION, TOP(every_ns), false, 1, 300, NULL},
    {"source", YAML_TYPE_WORD, TOP(source), false, 0, 0, source_words},
    {"sees_all", YAML_TYPE_BOOL, TOP(sees_all), false, 0, 0, NULL},
    {"nodes", YAML_TYPE_NODE, TOP(nodes), true, 0, 0, NULL},
    {"kinds", YAML_TYPE_NODE, TOP(kinds), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};
#define NODES(field) offsetof(struct collector_config, field)
static const struct yaml_key nodes_keys[] = {
    {"socket", YAML_TYPE_TEXT, NODES(socket), false, 0, 0, NULL},
    {"url", YAML_TYPE_TEXT, NODES(url), false, 0, 0, NULL},
    {"token", YAML_TYPE_TEXT, NODES(token), false, 0, 0, NULL},
    {"ca", YAML_TYPE_TEXT, NODES(ca), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};
#define KIND(field) offsetof(struct collector_kind, field)
static const struct yaml_key kind_keys[] = {
    {"kind", YAML_TYPE_WORD, KIND(kind), true, 0, 0, kind_words},
    {"partition", YAML_TYPE_TEXT, KIND(partition), false, 0, 0, NULL},
    {"qos", YAML_TYPE_TEXT, KIND(qos), false, 0, 0, NULL},
    {"account", YAML_TYPE_TEXT, KIND(account), false, 0, 0, NULL},
    {"user", YAML_TYPE_TEXT, KIND(user), false, 0, 0, NULL},
    {"name", YAML_TYPE_TEXT, KIND(name), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

void collector_config_fini(struct collector_config *c)
{
    yaml_free(c->doc);
    *c = (struct collector_config){.doc = NULL};
}

/* ---- the file ---- */

static int check_nodes(const struct yaml_node *map, const struct collector_config *c,
                       uw_error *err)
{
    int r = yaml_check_path(map, "socket", c->socket, SOCKET_MAX, err);

    if (r == 0)
        r = yaml_check_path(map, "token", c->token, COLLECTOR_PATH - 1, err);
    if (r == 0)
        r = yaml_check_path(map, "ca", c->ca, COLLECTOR_PATH - 1, err);
    if (r < 0)
        return r;
    if (!c->socket == !c->url)
        return yaml_fail(map, err, -EINVAL, "nodes: give one of socket and url");
    if (c->socket && (c->token || c->ca))
        return yaml_fail(map, err, -EINVAL, "nodes: token and ca belong to url");
    if (c->url && strncmp(c->url, "https://", 8) != 0)
        return yaml_fail(yaml_get(map, "url"), err, -EINVAL,
                         "url: '%.80s' does not begin with https://", c->url);
    if (c->url && (strlen(c->url) >= COLLECTOR_PATH || !strstr(c->url, "%n")))
        return yaml_fail(yaml_get(map, "url"), err, -EINVAL,
                         "url: %%n stands for the node's name: https://%%n:8443");
    if (c->url && !c->token)
        return yaml_fail(map, err, -EINVAL, "nodes: url needs token, a token's file");
    return 0;
}

static int read_kinds(const struct yaml_node *list, struct collector_config *c,
                      uw_error *err)
{
    int r = list ? yaml_want(list, YAML_SEQ, err) : 0;

    if (r == 0 && list && yaml_count(list) > COLLECTOR_KINDS)
        return yaml_fail(list, err, -EINVAL, "kinds: %d at most", COLLECTOR_KINDS);
    for (size_t i = 0; r == 0 && list && i < yaml_count(list); i++) {
        const struct yaml_node *map = yaml_at(list, i);
        r = yaml_want(map, YAML_MAP, err);
        if (r == 0)
            r = yaml_read_map(map, kind_keys, &c->kind[c->n_kinds++], err);
    }
    return r;
}

static int take_doc(struct yaml *doc, struct collector_config *ret, uw_error *err)
{
    auto_(collector_config_fini) struct collector_config c = {.doc = doc};
    struct top_file top = {.every_ns = 30 * NS_PER_S, .source = SOURCE_AUTO};
    const struct yaml_node *root = yaml_root(doc);
    int r = yaml_want(root, YAML_MAP, err);

    if (r == 0)
        r = yaml_read_map(root, top_keys, &top, err);
    if (r == 0)
        r = yaml_want(top.nodes, YAML_MAP, err);
    if (r == 0)
        r = yaml_read_map(top.nodes, nodes_keys, &c, err);
    if (r == 0)
        r = check_nodes(top.nodes, &c, err);
    if (r == 0)
        r = read_kinds(top.kinds, &c, err);
    if (r < 0)
        return r;
    c.every_ns = top.every_ns;
    c.source = top.source;
    c.sees_all = top.sees_all;
    *ret = c;
    c.doc = NULL;
    return 0;
}

int collector_config_file(const char *path, struct collector_config *ret, uw_error *err)
{
    struct yaml *doc = NULL;
    bool hidden = false;
    int r = yaml_read_shown(path, &doc, &hidden, err);

    if (r == 0)
        r = take_doc(doc, ret, err);
    return r < 0 && hidden ? yaml_not_shown(r, err) : r;
}

/* ---- values ---- */

static bool meets(const char *pattern, const char *text)
{
    return !pattern || policy_wildcard(pattern, text);
}

const char *collector_kind(const struct collector_config *c, const struct slurm_job *job)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct collector_kind *k = &c->kind[i];
        if (meets(k->partition, job->partition) && meets(k->qos, job->qos) &&
            meets(k->account, job->account) && meets(k->user, job->user) &&
            meets(k->name, job->name))
            return kind_words[k->kind].word;
    }
    return NULL;
}

int collector_place(const char *pattern, const char *node, char *ret, size_t size)
{
    size_t n = 0, len = strlen(node);

    for (const char *p = pattern; *p; p++) {
        bool name = p[0] == '%' && p[1] == 'n';
        if (n + (name ? len : 1) >= size)
            return -ENAMETOOLONG;
        if (name)
            memcpy(ret + n, node, len);
        else
            ret[n] = *p;
        n += name ? len : 1;
        p += name;
    }
    ret[n] = '\0';
    return 0;
}

/* ---- the token ---- */

int collector_token(const char *path, char **ret, uw_error *err)
{
    return secret_read(path, "token", false, ret, err);
}
