#include "config/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "core/optimum/gap-probe.h"
#include "gpu/select.h"
#include "io/address.h"
#include "io/yaml.h"

/* ---- keys ---- */

enum type {
    TEXT,
    PATH,   /* absolute, or "" */
    SOCKET, /* the same, limited to the size of sun_path */
    LIST,   /* texts, joined with commas */
    COUNT,
    DURATION,
    BOOL,
    WORD,
    POWER,    /* watts; "none" is 0 */
    LIMIT,    /* watts or percent */
    GOAL,     /* "none" or a goal */
    PERCENT,  /* a double, 1 % is 0.01 */
    CLASSES,  /* maps by name */
    EMBODIED, /* a list of maps */
};

struct key {
    const char *key;
    enum type type;
    size_t at, size;
    double min, max; /* COUNT, DURATION (s), PERCENT */
    bool restart;
    const struct yaml_word *words;
};

static const struct yaml_word log_words[] = {
    {"error", LOG_LEVEL_ERROR},   {"warning", LOG_LEVEL_WARNING},
    {"notice", LOG_LEVEL_NOTICE}, {"info", LOG_LEVEL_INFO},
    {"debug", LOG_LEVEL_DEBUG},   {NULL, 0},
};
#define WORD_OF(id, number, word, text) {word, id},
static const struct yaml_word others_words[] = {CAP_OTHERS(WORD_OF){NULL, 0}};

enum { LIVE = false, RESTART = true };
#define AT(field) \
    offsetof(struct node_config, field), sizeof(((struct node_config *)0)->field)
#define DAY_S 86400.0
#define YEAR_S (365 * DAY_S)

/* clang-format off */
static const struct key keys[] = {
    {"node.admin_group", TEXT, AT(node.admin_group), 0, 0, LIVE, NULL},
    {"node.hostname", TEXT, AT(node.hostname), 0, 0, RESTART, NULL},
    {"node.interval", DURATION, AT(node.interval_ns), 1, 600, RESTART, NULL},
    {"node.log", WORD, AT(node.log), 0, 0, LIVE, log_words},
    {"node.dry_run", BOOL, AT(node.dry_run), 0, 0, LIVE, NULL},
    {"node.realtime", BOOL, AT(node.realtime), 0, 0, RESTART, NULL},
    {"budget.node", POWER, AT(budget_mw), 0, 0, LIVE, NULL},
    {"boards.only", LIST, AT(boards.only), 0, 0, RESTART, NULL},
    {"boards.library", PATH, AT(boards.library), 0, 0, RESTART, NULL},
    {"boards.rapl", BOOL, AT(boards.rapl), 0, 0, RESTART, NULL},
    {"boards.rapl_period", DURATION, AT(boards.rapl_ns), 1, 60, LIVE, NULL},
    {"boards.powercap", PATH, AT(boards.powercap), 0, 0, RESTART, NULL},
    {"sampling.rest", DURATION, AT(sampling.rest_ns), 0.05, 10, LIVE, NULL},
    {"sampling.job", DURATION, AT(sampling.job_ns), 0.02, 10, LIVE, NULL},
    {"sampling.search", DURATION, AT(sampling.search_ns), 0.02, 10, LIVE, NULL},
    {"caps.users.from", LIMIT, AT(caps.from), 0, 0, LIVE, NULL},
    {"caps.users.to", LIMIT, AT(caps.to), 0, 0, LIVE, NULL},
    {"caps.users.longest", DURATION, AT(caps.longest_ns), 1, YEAR_S, LIVE, NULL},
    {"caps.other_writers", WORD, AT(caps.others), 0, 0, LIVE, others_words},
    {"caps.reassert_after", DURATION, AT(caps.reassert_ns), 1, 3600, LIVE, NULL},
    {"caps.yield_for", DURATION, AT(caps.yield_ns), 1, DAY_S, LIVE, NULL},
    {"caps.clocks", BOOL, AT(caps.clocks), 0, 0, LIVE, NULL},
    {"caps.always_hold", BOOL, AT(caps.always_hold), 0, 0, LIVE, NULL},
    {"caps.classes", CLASSES, AT(caps.cls), 0, 0, LIVE, NULL},
    {"jobs.discover", BOOL, AT(jobs.discover), 0, 0, RESTART, NULL},
    {"jobs.look", DURATION, AT(jobs.look_ns), 0.5, 60, RESTART, NULL},
    {"jobs.phases", BOOL, AT(jobs.phases), 0, 0, RESTART, NULL},
    {"search.found_jobs", GOAL, AT(search), 0, 0, LIVE, NULL},
    {"search.slack", PERCENT, AT(slack), 0, 5, RESTART, NULL},
    {"search.clocks", BOOL, AT(search_clocks), 0, 0, RESTART, NULL},
    {"search.history", DURATION, AT(history_ns), 0, 10 * YEAR_S, LIVE, NULL},
    {"search.looks", COUNT, AT(gap_checks), 0, GAP_PROBES_MAX, RESTART, NULL},
    {"search.reference_share", PERCENT, AT(reference_share), 0, 5, RESTART, NULL},
    {"policy.file", PATH, AT(policy_file), 0, 0, LIVE, NULL},
    {"waste.idle_after", DURATION, AT(waste.after_ns), 0, DAY_S, LIVE, NULL},
    {"waste.under", PERCENT, AT(waste.under), 0, 100, LIVE, NULL},
    {"waste.under_for", DURATION, AT(waste.under_ns), 60, DAY_S, LIVE, NULL},
    {"accounting.market", PATH, AT(accounting.market), 0, 0, LIVE, NULL},
    {"accounting.embodied", EMBODIED, AT(accounting.embodied), 0, 0, LIVE, NULL},
    {"ledger.path", PATH, AT(ledger.path), 0, 0, RESTART, NULL},
    {"ledger.keep.fine", DURATION, AT(ledger.keep_fine_ns), 3600, 100 * YEAR_S, LIVE, NULL},
    {"ledger.keep.minute", DURATION, AT(ledger.keep_minute_ns), 3600, 100 * YEAR_S, LIVE, NULL},
    {"ledger.keep.hour", DURATION, AT(ledger.keep_hour_ns), DAY_S, 100 * YEAR_S, LIVE, NULL},
    {"api.socket", SOCKET, AT(api.socket), 0, 0, RESTART, NULL},
    {"api.job_socket", SOCKET, AT(api.job_socket), 0, 0, RESTART, NULL},
    {"api.tcp.listen", TEXT, AT(api.tcp.listen), 0, 0, RESTART, NULL},
    {"api.tcp.certificate", PATH, AT(api.tcp.certificate), 0, 0, RESTART, NULL},
    {"api.tcp.key", PATH, AT(api.tcp.key), 0, 0, RESTART, NULL},
    {"api.tcp.tokens", PATH, AT(api.tcp.tokens), 0, 0, LIVE, NULL},
    {"api.limits.connections", COUNT, AT(api.limits.connections), 8, 65536, RESTART, NULL},
    {"api.limits.per_client", COUNT, AT(api.limits.per_client), 4, 65536, LIVE, NULL},
    {"api.limits.requests", COUNT, AT(api.limits.requests), 1, 1e6, LIVE, NULL},
    {"api.limits.followers", COUNT, AT(api.limits.followers), 1, 1024, LIVE, NULL},
    {"api.limits.idle", DURATION, AT(api.limits.idle_ns), 1, 3600, LIVE, NULL},
    {"metrics.enabled", BOOL, AT(metrics.on), 0, 0, LIVE, NULL},
    {"metrics.per_job", BOOL, AT(metrics.per_job), 0, 0, LIVE, NULL},
    {"metrics.max_jobs", COUNT, AT(metrics.max_jobs), 1, 256, LIVE, NULL},
    {"metrics.listen", TEXT, AT(metrics.listen), 0, 0, RESTART, NULL},
    {"metrics.hpc_job_mapping_dir", PATH, AT(metrics.hpc_dir), 0, 0, RESTART, NULL},
    {"zeusd.socket", SOCKET, AT(zeusd_socket), 0, 0, RESTART, NULL},
    {"actuator.socket", SOCKET, AT(actuator_socket), 0, 0, RESTART, NULL},
};
/* clang-format on */

const char *node_config_key(size_t i)
{
    return i < n_elements(keys) ? keys[i].key : NULL;
}

bool node_config_needs_restart(const char *key)
{
    for (size_t i = 0; i < n_elements(keys); i++)
        if (strcmp(keys[i].key, key) == 0)
            return keys[i].restart;
    return false;
}

/* ---- values ---- */

/* The position that errors refer to. */
struct place {
    const struct yaml_node *node;
    const char *key; /* in dotted form */
    uw_error *err;
};

static int out_of_range(const struct place *p, double v, const struct key *k,
                        const char *unit)
{
    if (k->type == DURATION && k->max > DAY_S)
        return yaml_fail(p->node, p->err, -ERANGE, "%s: %g s is outside %g s..%g d",
                         p->key, v, k->min, k->max / DAY_S);
    return yaml_fail(p->node, p->err, -ERANGE, "%s: %g%s is outside %g..%g%s", p->key, v,
                     unit, k->min, k->max, unit);
}

static int read_text(const struct place *p, const struct key *k, char *field)
{
    const char *text = NULL;
    int r = yaml_text(p->node, &text, p->err);

    if (r < 0)
        return r;
    if (strlen(text) >= k->size)
        return yaml_fail(p->node, p->err, -EINVAL, "%s: longer than %zu bytes", p->key,
                         k->size - 1);
    if (k->type != TEXT && text[0] && text[0] != '/')
        return yaml_fail(p->node, p->err, -EINVAL, "%s: '%.60s' is not an absolute path",
                         p->key, text);
    if (!text[0] && k->at == offsetof(struct node_config, node.hostname))
        return yaml_fail(p->node, p->err, -EINVAL,
                         "%s: is empty: leave the key out for the machine's name",
                         p->key);
    if (!utf8_is_plain(text))
        return yaml_fail(p->node, p->err, -EINVAL,
                         "%s: contains a control or invisible character", p->key);
    memset(field, 0, k->size);
    (void)snprintf(field, k->size, "%s", text);
    return 0;
}

static int read_list(const struct place *p, const struct key *k, char *field)
{
    size_t used = 0;

    if (yaml_kind(p->node) != YAML_SEQ)
        return yaml_fail(p->node, p->err, -EINVAL, "%s: must be a list, as in [0, 2-3]",
                         p->key);
    if (yaml_count(p->node) == 0)
        return yaml_fail(p->node, p->err, -EINVAL,
                         "%s: is empty: leave the key out for all boards", p->key);
    memset(field, 0, k->size);
    for (size_t i = 0; i < yaml_count(p->node); i++) {
        const struct yaml_node *item = yaml_at(p->node, i);
        const char *text = NULL;
        int r = yaml_text(item, &text, p->err);
        if (r < 0)
            return r;
        uw_error why = {""};
        r = select_check(text, &why);
        if (r < 0)
            return yaml_fail(item, p->err, r, "%s: %s", p->key, why.text);
        int n = snprintf(field + used, k->size - used, "%s%s", used > 0 ? "," : "", text);
        if (n < 0 || (size_t)n >= k->size - used)
            return yaml_fail(item, p->err, -EINVAL, "%s: longer than %zu bytes", p->key,
                             k->size - 1);
        used += (size_t)n;
    }
    return 0;
}

static int read_number(const struct place *p, const struct key *k, void *field)
{
    uint64_t v = 0;
    bool time = k->type == DURATION;
    int r = time ? yaml_duration(p->node, &v, p->err) : yaml_u64(p->node, &v, p->err);

    if (r < 0)
        return r;
    double at = time ? (double)v / NS_PER_S : (double)v; /* exact at min and max */
    if (at < k->min || at > k->max)
        return out_of_range(p, at, k, time ? " s" : "");
    memcpy(field, &v, sizeof v);
    return 0;
}

static int read_power(const struct place *p, uint32_t *field)
{
    const char *text = NULL;
    uint32_t mw = 0;
    uw_error why;
    int r = yaml_text(p->node, &text, p->err);

    if (r < 0)
        return r;
    if (strcmp(text, "none") != 0) {
        r = parse_power(text, &mw, &why);
        if (r == 0 && mw == 0)
            r = fail(&why, -ERANGE, "'%s': a budget is more than 0 W, or none", text);
    }
    if (r < 0)
        return yaml_fail(p->node, p->err, r, "%s: %s", p->key, why.text);
    *field = mw;
    return 0;
}

static int read_limit(const struct place *p, struct cap_arg *field)
{
    const char *text = NULL;
    struct cap_arg cap = {0};
    uw_error why;
    int r = yaml_text(p->node, &text, p->err);

    if (r < 0)
        return r;
    r = parse_limit(text, &cap, &why);
    if (r < 0)
        return yaml_fail(p->node, p->err, r, "%s: %s", p->key, why.text);
    memset(field, 0, sizeof *field); /* node_config_diff() compares bytes */
    field->mw = cap.mw;
    field->percent = cap.percent;
    return 0;
}

static int read_goal(const struct place *p, struct config_search *field)
{
    const char *text = NULL;
    struct goal goal;
    uw_error why;
    int r = yaml_text(p->node, &text, p->err);

    if (r < 0)
        return r;
    memset(field, 0, sizeof *field);
    if (strcmp(text, "none") == 0)
        return 0;
    memset(&goal, 0, sizeof goal);
    r = goal_parse(text, &goal, &why);
    if (r < 0)
        return yaml_fail(p->node, p->err, r, "%s: %s", p->key, why.text);
    field->found = true;
    field->goal = goal;
    return 0;
}

/* "90 %", where after must follow the percent sign ("/s" of a rate). */
static int read_percent(const struct place *p, const char *after, const struct key *range,
                        double *ret)
{
    const char *text = NULL;
    char number[32];
    double v = 0;
    int r = yaml_text(p->node, &text, p->err);

    if (r < 0)
        return r;
    const char *sign = strchr(text, '%');
    size_t len = sign ? (size_t)(sign - text) : sizeof number;
    bool form = sign && strcmp(sign + 1, after) == 0 && len < sizeof number;
    if (form) {
        memcpy(number, text, len);
        number[len] = '\0';
        form = parse_double(number, &v, NULL) >= 0;
    }
    if (!form)
        return yaml_fail(p->node, p->err, -EINVAL,
                         "%s: '%.40s' is not of the form '%g %%%s'", p->key, text,
                         range->max, after);
    if (!(v >= range->min && v <= range->max))
        return yaml_fail(p->node, p->err, -ERANGE, "%s: %g %% is outside %g..%g %%",
                         p->key, v, range->min, range->max);
    *ret = v / 100;
    return 0;
}

static int read_class(const struct place *p, struct cap_class *cls)
{
    static const char *const names[] = {"first", "floor", "ramp", NULL};
    static const struct key first = {.min = 85, .max = 100},
                            floor = {.min = 1, .max = 100},
                            ramp = {.min = 0.01, .max = 100};
    int r = yaml_check_keys(p->node, names, p->err);

    for (size_t i = 0; r == 0 && i < yaml_count(p->node); i++) {
        const char *name = yaml_key_at(p->node, i);
        const char *text = NULL;
        char key[200];
        struct place at = {yaml_at(p->node, i), key, p->err};
        (void)snprintf(key, sizeof key, "%s.%s", p->key, name);
        if (strcmp(name, "first") == 0)
            r = read_percent(&at, "", &first, &cls->first);
        else if (strcmp(name, "floor") == 0)
            r = read_percent(&at, "", &floor, &cls->floor);
        else if ((r = yaml_text(at.node, &text, p->err)) == 0 &&
                 strcmp(text, "at once") == 0)
            cls->rate = 0;
        else if (r == 0)
            r = read_percent(&at, "/s", &ramp, &cls->rate);
    }
    return r;
}

static int read_classes(const struct place *p, struct config_caps *caps)
{
    int r = yaml_want(p->node, YAML_MAP, p->err);

    for (size_t i = 0; r == 0 && i < yaml_count(p->node); i++) {
        const char *name = yaml_key_at(p->node, i);
        char key[160];
        struct place at = {yaml_at(p->node, i), key, p->err};
        struct config_class *cls = &caps->cls[0];

        (void)snprintf(key, sizeof key, "%s.%.64s", p->key, name);
        if (!*name)
            return yaml_fail(at.node, p->err, -EINVAL, "%s: a class has no name", p->key);
        if (strlen(name) >= sizeof cls->name)
            return yaml_fail(at.node, p->err, -EINVAL, "%s: longer than %zu bytes", key,
                             sizeof cls->name - 1);
        if (!utf8_is_plain(name))
            return yaml_fail(
                at.node, p->err, -EINVAL,
                "%s: a class's name contains a control or invisible character", p->key);
        if (strcmp(name, "default") != 0) {
            if (caps->n_classes == CONFIG_CLASSES_MAX)
                return yaml_fail(at.node, p->err, -E2BIG, "%s: more than %d classes", key,
                                 CONFIG_CLASSES_MAX);
            cls = &caps->cls[caps->n_classes++];
            memcpy(cls->name, name, strlen(name));
            cls->cls = CAP_CLASS_DEFAULT;
        }
        r = read_class(&at, &cls->cls);
    }
    return r;
}

struct embodied_keys {
    const char *board, *origin;
    double g_hour;
};
static const struct yaml_key embodied_keys[] = {
    {"board", YAML_TYPE_TEXT, offsetof(struct embodied_keys, board), true, 0, 0, NULL},
    {"g_per_hour", YAML_TYPE_DOUBLE, offsetof(struct embodied_keys, g_hour), true, 0, 0,
     NULL},
    {"origin", YAML_TYPE_TEXT, offsetof(struct embodied_keys, origin), true, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};

static int read_embodied(const struct place *p, struct config_embodied *ret)
{
    struct accounting list = {.pue = 0};
    int r = yaml_want(p->node, YAML_SEQ, p->err);

    for (size_t i = 0; r == 0 && i < yaml_count(p->node); i++) {
        const struct yaml_node *item = yaml_at(p->node, i);
        struct embodied_keys k = {.board = ""};
        uw_error why = {""};
        r = yaml_read_map(item, embodied_keys, &k, p->err);
        if (r < 0)
            return r;
        r = accounting_embodied(&list, k.board, k.g_hour, k.origin, &why);
        if (r < 0)
            return yaml_fail(item, p->err, r, "%s: %s", p->key, why.text);
    }
    if (r == 0) {
        memcpy(ret->of, list.embodied, sizeof ret->of);
        ret->n = list.n_embodied;
    }
    return r;
}

static int read_value(const struct place *p, const struct key *k, struct node_config *c)
{
    char *field = (char *)c + k->at;

    switch (k->type) {
    case TEXT:
    case PATH:
    case SOCKET:
        return read_text(p, k, field);
    case LIST:
        return read_list(p, k, field);
    case COUNT:
    case DURATION:
        return read_number(p, k, field);
    case BOOL:
        return yaml_bool(p->node, (bool *)field, p->err);
    case WORD:
        return yaml_word(p->node, k->words, (int *)(void *)field, p->err);
    case POWER:
        return read_power(p, (uint32_t *)(void *)field);
    case LIMIT:
        return read_limit(p, (struct cap_arg *)(void *)field);
    case GOAL:
        return read_goal(p, &c->search);
    case PERCENT:
        return read_percent(p, "", k, (double *)(void *)field);
    case CLASSES:
        return read_classes(p, &c->caps);
    case EMBODIED:
        return read_embodied(p, &c->accounting.embodied);
    }
    return -EINVAL;
}

/* ---- the tree ---- */

enum { KEY_TEXT = 96 };

/* The key of this name; *ret_goes_on: the name is a section of keys. */
static const struct key *find(const char *name, bool *ret_goes_on)
{
    size_t len = strlen(name);

    *ret_goes_on = false;
    for (size_t i = 0; i < n_elements(keys); i++) {
        if (strncmp(keys[i].key, name, len) != 0)
            continue;
        if (keys[i].key[len] == '\0')
            return &keys[i];
        *ret_goes_on |= keys[i].key[len] == '.';
    }
    return NULL;
}

static int unknown_key(const struct yaml_node *map, size_t i, const char *prefix,
                       uw_error *err)
{
    const char *name = yaml_key_at(map, i);
    size_t skip = *prefix ? strlen(prefix) + 1 : 0;
    char part[KEY_TEXT], best[KEY_TEXT], hint[NEAREST_TEXT];
    struct nearest near = {0};

    for (size_t k = 0; k < n_elements(keys); k++) {
        const char *key = keys[k].key;
        if (strncmp(key, prefix, skip ? skip - 1 : 0) != 0 ||
            (skip && key[skip - 1] != '.'))
            continue;
        (void)snprintf(part, sizeof part, "%.*s", (int)strcspn(key + skip, "."),
                       key + skip);
        nearest_try(&near, name, strlen(name), part);
        if (near.word == part)
            near.word = memcpy(best, part, sizeof best);
    }
    (void)nearest_text(&near, hint);
    return yaml_fail_key(map, i, err, -EINVAL, "unknown key '%.40s%s%.60s'%s", prefix,
                         *prefix ? "." : "", name, hint);
}

/* Recurses four levels at most: no key has more parts. */
// NOLINTNEXTLINE(misc-no-recursion)
static int read_tree(const struct yaml_node *map, const char *prefix, unsigned depth,
                     struct node_config *c, uw_error *err)
{
    const char *empty = NULL;

    if (yaml_kind(map) == YAML_SCALAR && yaml_text(map, &empty, err) == 0 && !*empty)
        return 0; /* a section whose keys are all commented out */
    int r = yaml_want(map, YAML_MAP, err);
    for (size_t i = 0; r == 0 && i < yaml_count(map); i++) {
        const char *name = yaml_key_at(map, i);
        char full[KEY_TEXT];
        bool goes_on = false;
        int n = snprintf(full, sizeof full, "%s%s%s", prefix, *prefix ? "." : "", name);
        const struct key *k = NULL;
        if (n > 0 && (size_t)n < sizeof full && *name && !strchr(name, '.'))
            k = find(full, &goes_on);
        struct place at = {yaml_at(map, i), full, err};
        if (k)
            r = read_value(&at, k, c);
        else if (goes_on && depth < 4)
            r = read_tree(at.node, full, depth + 1, c, err);
        else
            return unknown_key(map, i, prefix, err);
    }
    return r;
}

/* The node that a key was read from; the root where the key is absent. */
static const struct yaml_node *node_of(const struct yaml_node *root, const char *key)
{
    const struct yaml_node *at = root;
    char part[KEY_TEXT];

    while (at && *key) {
        size_t len = strcspn(key, ".");
        (void)snprintf(part, sizeof part, "%.*s", (int)len, key);
        at = yaml_get(at, part);
        key += len + (key[len] == '.');
    }
    return at ? at : root;
}

/* Conditions on several keys. */
static int check_caps(const struct yaml_node *root, const struct config_caps *caps,
                      uw_error *err)
{
    bool percent = caps->from.percent > 0;

    if ((caps->from.mw && caps->to.mw && caps->from.mw > caps->to.mw) ||
        (percent && caps->to.percent > 0 && caps->from.percent > caps->to.percent))
        return yaml_fail(
            node_of(root, "caps.users.from"), err, -ERANGE,
            "caps.users.from is above caps.users.to (%g%s, %g%s)",
            percent ? caps->from.percent : w_of_mw(caps->from.mw), percent ? " %" : " W",
            percent ? caps->to.percent : w_of_mw(caps->to.mw), percent ? " %" : " W");
    return 0;
}

static int check_api(const struct yaml_node *root, const struct config_api *api,
                     uw_error *err)
{
    const struct config_tcp *tcp = &api->tcp;

    if (tcp->listen[0] && !strrchr(tcp->listen, ':'))
        return yaml_fail(node_of(root, "api.tcp.listen"), err, -EINVAL,
                         "api.tcp.listen: '%.60s' is not of the form HOST:PORT",
                         tcp->listen);
    if (tcp->listen[0] && (!tcp->certificate[0] || !tcp->key[0] || !tcp->tokens[0]))
        return yaml_fail(node_of(root, "api.tcp.listen"), err, -EINVAL,
                         "api.tcp.listen needs api.tcp.%s: TCP requires TLS and tokens",
                         !tcp->certificate[0] ? "certificate"
                         : !tcp->key[0]       ? "key"
                                              : "tokens");
    if (!api->socket[0])
        return yaml_fail(node_of(root, "api.socket"), err, -EINVAL,
                         "api.socket may not be empty");
    if (api->limits.connections < api->limits.per_client)
        return yaml_fail(node_of(root, "api.limits"), err, -ERANGE,
                         "api.limits: connections (%" PRIu64
                         ") is below per_client (%" PRIu64 ")",
                         api->limits.connections, api->limits.per_client);
    return 0;
}

static int check_metrics(const struct yaml_node *root, const char *listen, uw_error *err)
{
    uw_error why = {""};
    int r = listen[0] ? address_is_loopback(listen, &why) : 0;

    return r < 0 ? yaml_fail(node_of(root, "metrics.listen"), err, r,
                             "metrics.listen: %s%s", why.text,
                             r == -EPERM ? ": other addresses need TLS (api.tcp)" : "")
                 : 0;
}

static int check_times(const struct yaml_node *root, const struct node_config *c,
                       uw_error *err)
{
    if (c->sampling.search_ns > c->sampling.job_ns ||
        c->sampling.job_ns > c->sampling.rest_ns)
        return yaml_fail(node_of(root, "sampling"), err, -ERANGE,
                         "sampling: search <= job <= rest does not hold (%g s, %g s, "
                         "%g s)",
                         s_of_ns(c->sampling.search_ns), s_of_ns(c->sampling.job_ns),
                         s_of_ns(c->sampling.rest_ns));
    if (c->ledger.keep_fine_ns > c->ledger.keep_minute_ns ||
        c->ledger.keep_minute_ns > c->ledger.keep_hour_ns)
        return yaml_fail(
            node_of(root, "ledger.keep"), err, -ERANGE,
            "ledger.keep: fine <= minute <= hour does not hold (%g d, %g d, %g d)",
            s_of_ns(c->ledger.keep_fine_ns) / DAY_S,
            s_of_ns(c->ledger.keep_minute_ns) / DAY_S,
            s_of_ns(c->ledger.keep_hour_ns) / DAY_S);
    return 0;
}

static int check_whole(const struct yaml_node *root, const struct node_config *c,
                       uw_error *err)
{
    int r = check_caps(root, &c->caps, err);

    if (r == 0)
        r = check_api(root, &c->api, err);
    if (r == 0)
        r = check_metrics(root, c->metrics.listen, err);
    if (r == 0)
        r = check_times(root, c, err);
    if (r == 0 && !c->ledger.path[0])
        r = yaml_fail(node_of(root, "ledger.path"), err, -EINVAL,
                      "ledger.path may not be empty");
    return r;
}

static int read_document(struct node_config *config, const struct yaml *doc,
                         uw_error *err)
{
    struct node_config c = *config;
    int r = read_tree(yaml_root(doc), "", 0, &c, err);

    if (r == 0)
        r = check_whole(yaml_root(doc), &c, err);
    if (r == 0)
        *config = c;
    return r;
}

int node_config_read(struct node_config *config, const char *name, const char *text,
                     size_t len, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;
    int r = yaml_read(name, text, len, &doc, err);

    return r < 0 ? r : read_document(config, doc, err);
}

int node_config_file(struct node_config *config, const char *path, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;
    int r = yaml_read_file(path, &doc, err);

    return r < 0 ? r : read_document(config, doc, err);
}

int node_config_shown(struct node_config *config, const char *path, bool *ret_hidden,
                      uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;
    bool hidden = false;
    int r = yaml_read_shown(path, &doc, &hidden, err);

    if (r == 0)
        r = read_document(config, doc, err);
    *ret_hidden = hidden;
    return r < 0 && hidden ? yaml_not_shown(r, err) : r;
}

/* ---- queries ---- */

static bool same_classes(const struct config_caps *a, const struct config_caps *b)
{
    bool same = a->n_classes == b->n_classes;

    for (size_t i = 0; same && i < a->n_classes; i++) {
        const struct cap_class *x = &a->cls[i].cls, *y = &b->cls[i].cls;
        same = strcmp(a->cls[i].name, b->cls[i].name) == 0 && x->first >= y->first &&
               x->first <= y->first && x->floor >= y->floor && x->floor <= y->floor &&
               x->rate >= y->rate && x->rate <= y->rate;
    }
    return same;
}

static bool same_search(const struct config_search *a, const struct config_search *b)
{
    return a->found == b->found && a->goal.kind == b->goal.kind &&
           a->goal.param >= b->goal.param && a->goal.param <= b->goal.param;
}

size_t node_config_diff(const struct node_config *from, const struct node_config *to,
                        config_diff_fn fn, void *user)
{
    size_t n = 0;

    for (size_t i = 0; i < n_elements(keys); i++) {
        const struct key *k = &keys[i];
        bool same =
            memcmp((const char *)from + k->at, (const char *)to + k->at, k->size) == 0;
        if (k->type == CLASSES)
            same = same_classes(&from->caps, &to->caps);
        else if (k->type == GOAL)
            same = same_search(&from->search, &to->search);
        if (same)
            continue;
        n++;
        if (fn)
            fn(k->key, k->restart, user);
    }
    return n;
}

void node_config_take_live(struct node_config *config, const struct node_config *from)
{
    for (size_t i = 0; i < n_elements(keys); i++)
        if (!keys[i].restart)
            memcpy((char *)config + keys[i].at, (const char *)from + keys[i].at,
                   keys[i].size);
    config->caps.n_classes = from->caps.n_classes; /* belongs to caps.classes */
}

const struct cap_class *node_config_class(const struct node_config *config,
                                          const char *name)
{
    for (size_t i = 0; i < config->caps.n_classes; i++)
        if (strcmp(config->caps.cls[i].name, name) == 0)
            return &config->caps.cls[i].cls;
    return NULL;
}

const char *node_config_no_class(const struct node_config *config, const char *name,
                                 char ret[NEAREST_NONE])
{
    const char *known[CONFIG_CLASSES_MAX + 1] = {NULL};

    for (size_t i = 0; i < config->caps.n_classes; i++)
        known[i] = config->caps.cls[i].name;
    return nearest_none_of(name, known, ret);
}

static uint32_t bound(const struct cap_arg *arg, const struct gpu_limits *limits,
                      uint32_t otherwise)
{
    uint32_t mw = otherwise;

    if (arg->mw)
        mw = arg->mw;
    else if (arg->percent > 0)
        mw = mw_of_w(w_of_mw(limits->default_mw) * arg->percent / 100);
    if (mw < limits->min_mw)
        return limits->min_mw;
    return mw > limits->max_mw ? limits->max_mw : mw;
}

void node_config_range(const struct node_config *config, const struct gpu_limits *limits,
                       uint32_t *ret_from_mw, uint32_t *ret_to_mw)
{
    *ret_from_mw = bound(&config->caps.from, limits, limits->min_mw);
    *ret_to_mw = bound(&config->caps.to, limits, limits->max_mw);
}
