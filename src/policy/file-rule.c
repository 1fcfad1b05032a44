#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "policy/file-inside.h"

enum { KIND_SOFT, KIND_HARD };

struct rule_keys {
    const char *doc, *least;
    const struct yaml_node *name, *jobs, *when, *until, *schedule, *hysteresis,
        *confidence;
    const struct yaml_node *cap, *preset, *floor, *ramp, *goal, *priority, *hold,
        *release;
    const struct yaml_node *wait, *kind_node;
    uint64_t for_ns, release_ns, hold_ns;
    bool phase, always, dry_run, idle_boards;
};
static const struct yaml_word kinds[] = {
    {"soft", KIND_SOFT}, {"hard", KIND_HARD}, {NULL, 0}};

/* clang-format off */
#define KEY(key, kind, field) {key, YAML_TYPE_##kind, offsetof(struct rule_keys, field), false, 0, 0, NULL}
static const struct yaml_key rule_keys[] = {
    {"name", YAML_TYPE_NODE, offsetof(struct rule_keys, name), true, 0, 0, NULL},
    KEY("doc", TEXT, doc), KEY("jobs", NODE, jobs),
    KEY("when", NODE, when), KEY("until", NODE, until), KEY("schedule", NODE, schedule),
    KEY("for", NODE, wait), KEY("release", NODE, release), KEY("hysteresis", NODE, hysteresis),
    KEY("phase", BOOL, phase), KEY("always", BOOL, always), KEY("least", TEXT, least), KEY("confidence", NODE, confidence),
    KEY("cap", NODE, cap), KEY("preset", NODE, preset), KEY("floor", NODE, floor),
    KEY("ramp", NODE, ramp), KEY("kind", NODE, kind_node),
    KEY("goal", NODE, goal), KEY("priority", NODE, priority), KEY("hold", NODE, hold),
    KEY("dry_run", BOOL, dry_run), KEY("idle_boards", BOOL, idle_boards),
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

/* ---- conditions ---- */

static int read_condition(struct policy_inside *f, const struct yaml_node *node,
                          const char *key, struct policy_condition *ret, uw_error *err)
{
    const char *text = NULL;
    uw_error why;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    r = policy_condition_read(text, &f->catalogue, &f->file.policy.reads, ret, &why);
    return r < 0 ? yaml_fail(node, err, r, "%s: %s", key, why.text) : 0;
}

static const char *const day_names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
enum { DAYS = 7 };

static int day_of(const char *text, size_t len)
{
    for (int i = 0; i < DAYS; i++)
        if (len == 3 && memcmp(day_names[i], text, 3) == 0)
            return i;
    return -1;
}

/* "mon", "mon-fri", "sat-mon". */
static int add_days(const char *text, uint8_t *days)
{
    const char *dash = strchr(text, '-');
    int from = day_of(text, dash ? (size_t)(dash - text) : strlen(text));
    int to = dash ? day_of(dash + 1, strlen(dash + 1)) : from;

    if (from < 0 || to < 0)
        return -EINVAL;
    for (int i = from;; i = (i + 1) % DAYS) {
        *days = (uint8_t)(*days | 1u << i);
        if (i == to)
            return 0;
    }
}

static int read_days(struct policy_inside *f, const struct yaml_node *node, uint8_t *ret,
                     uw_error *err)
{
    const char *const *texts = NULL;
    size_t n = 0;
    int r = policy_file_texts(f, node, &texts, &n, err);

    *ret = 0;
    for (size_t i = 0; r >= 0 && i < n; i++)
        if (add_days(texts[i], ret) < 0)
            r = yaml_fail(node, err, -EINVAL,
                          "'%.40s' is not a day or a range of days (mon, sat-sun)",
                          texts[i]);
    return r;
}

/* "06:00" to "24:00". */
static int read_time(const struct yaml_node *node, uint16_t *ret_min, uw_error *err)
{
    const char *text = NULL;
    unsigned hour = 0, minute = 0;
    int end = 0, r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    if (strlen(text) != 5 || strspn(text, "0123456789") != 2 ||
        sscanf(text, "%2u:%2u%n", &hour, &minute, &end) != 2 || end != 5 || minute > 59 ||
        hour * 60 + minute > POLICY_DAY_MIN)
        return yaml_fail(node, err, -EINVAL, "'%.40s' is not a time of day (\"06:00\")",
                         text);
    *ret_min = (uint16_t)(hour * 60 + minute);
    return 0;
}

/* The time zone of a rule; rules of one zone share a file. */
static int read_zone(struct policy_inside *f, const struct yaml_node *node,
                     struct policy_rule *rule, uw_error *err)
{
    uw_error why;
    size_t i = 0;
    int r = yaml_text(node, &rule->zone, err);

    if (r < 0)
        return r;
    while (i < f->n_zones && strcmp(f->zone_name[i], rule->zone) != 0)
        i++;
    f->zone_of[rule - f->file.policy.rule] = (uint16_t)i;
    if (i < f->n_zones)
        return 0;
    r = zone_read(rule->zone, &f->zone[i], &why);
    if (r < 0)
        return yaml_fail(node, err, r == -ENOMEM ? r : -EINVAL, "%s", why.text);
    f->zone_name[i] = rule->zone;
    f->n_zones++;
    return 0;
}

struct schedule_keys {
    const struct yaml_node *days, *from, *to, *zone;
};
/* clang-format off */
#define SCHEDULE(key, must) {#key, YAML_TYPE_NODE, offsetof(struct schedule_keys, key), must, 0, 0, NULL}
static const struct yaml_key schedule_keys[] = {
    SCHEDULE(days, false), SCHEDULE(from, false), SCHEDULE(to, false), SCHEDULE(zone, true),
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

static int read_schedule(struct policy_inside *f, const struct yaml_node *node,
                         struct policy_rule *rule, uw_error *err)
{
    struct schedule_keys k = {0};
    int r = yaml_read_map(node, schedule_keys, &k, err);

    rule->has_schedule = true;
    rule->schedule = (struct policy_schedule){0x7f, 0, POLICY_DAY_MIN};
    if (r >= 0 && k.days)
        r = read_days(f, k.days, &rule->schedule.days, err);
    if (r >= 0 && k.from)
        r = read_time(k.from, &rule->schedule.from_min, err);
    if (r >= 0 && k.to)
        r = read_time(k.to, &rule->schedule.to_min, err);
    return r < 0 ? r : read_zone(f, k.zone, rule, err);
}

static int refuse(const struct yaml_node *node, const char *key, const char *why,
                  uw_error *err)
{
    return node ? yaml_fail(node, err, -EINVAL, "%s: %s", key, why) : 0;
}

/* for, release and hysteresis: the given values, or the defaults. */
static int read_times(struct policy_inside *f, const struct rule_keys *k,
                      struct policy_rule *rule, uw_error *err)
{
    const char *why = k->phase   ? "a phase rule begins and ends with its phase"
                      : k->until ? "a rule with `until` has no such time"
                                 : NULL;
    int r = k->phase ? refuse(k->wait, "for", why, err) : 0;

    rule->for_ns = k->phase ? 0 : f->defaults.for_ns;
    rule->release_ns = k->phase ? 0 : f->defaults.release_ns;
    rule->hysteresis = k->phase ? 0 : f->defaults.hysteresis;
    if (r >= 0 && why)
        r = refuse(k->release, "release", why, err);
    if (r >= 0 && why)
        r = refuse(k->hysteresis, "hysteresis", why, err);
    if (r >= 0 && k->wait)
        r = yaml_duration(k->wait, &rule->for_ns, err);
    if (r >= 0 && k->release)
        r = yaml_duration(k->release, &rule->release_ns, err);
    if (r >= 0 && k->hysteresis)
        r = policy_file_share(k->hysteresis, true, &rule->hysteresis, err);
    return r;
}

static int read_phase(const struct rule_keys *k, const struct yaml_node *node,
                      struct policy_rule *rule, uw_error *err)
{
    uint64_t least_ns = 0;
    int r = 0;

    rule->phase = rule->asks.phase = k->phase;
    rule->confidence = 0.9;
    rule->least_auto = true;
    rule->always = k->always;
    if (!k->phase && (k->least || k->confidence || k->always))
        return yaml_fail(yaml_get(node, k->least        ? "least"
                                        : k->confidence ? "confidence"
                                                        : "always"),
                         err, -EINVAL,
                         "least, confidence and always are for rules with `phase: "
                         "true`");
    if (k->confidence)
        r = policy_file_share(k->confidence, false, &rule->confidence, err);
    if (r < 0 || !k->least || strcmp(k->least, "auto") == 0)
        return r;
    r = yaml_duration(yaml_get(node, "least"), &least_ns, err);
    if (r >= 0 && s_of_ns(least_ns) < POLICY_LEAST_S)
        return yaml_fail(
            yaml_get(node, "least"), err, -ERANGE,
            "least: %s is below %g ms, the shortest phase that a rule acts on", k->least,
            1000 * POLICY_LEAST_S);
    rule->least_auto = false;
    rule->least_s = s_of_ns(least_ns);
    return r;
}

static int read_when(struct policy_inside *f, const struct rule_keys *k,
                     const struct yaml_node *node, struct policy_rule *rule,
                     uw_error *err)
{
    int r = 0;

    rule->has_when = k->when != NULL;
    rule->has_until = k->until != NULL;
    if (!k->when && !k->schedule)
        return yaml_fail(node, err, -EINVAL, "%s: `when` or `schedule` is missing",
                         rule->name);
    if (k->when)
        r = read_condition(f, k->when, "when", &rule->when, err);
    if (r >= 0 && k->until)
        r = read_condition(f, k->until, "until", &rule->until, err);
    if (r >= 0 && k->schedule)
        r = read_schedule(f, k->schedule, rule, err);
    if (r >= 0)
        r = read_times(f, k, rule, err);
    return r < 0 ? r : read_phase(k, node, rule, err);
}

/* ---- actions ---- */

static int read_cap(struct policy_inside *f, const struct yaml_node *node,
                    struct policy_cap *ret, uw_error *err)
{
    const struct policy *p = &f->file.policy;
    const char *text = NULL;
    uw_error why;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    r = policy_cap_read(text, p->preset, p->n_presets, ret, &why);
    return r < 0 ? yaml_fail(node, err, r, "cap: %s", why.text) : 0;
}

static int read_preset(struct policy_inside *f, const struct yaml_node *node,
                       struct policy_cap *ret, uw_error *err)
{
    struct policy_preset preset = {NULL, 0};
    int r = policy_file_preset(f, node, &preset, err);

    *ret = (struct policy_cap){
        .measure = POLICY_OF_DEFAULT, .share = preset.share, .preset = preset.name};
    return r;
}

static int read_asks(struct policy_inside *f, const struct rule_keys *k,
                     struct policy_rule *rule, uw_error *err)
{
    int kind = KIND_SOFT, r = 0;

    r = refuse(k->priority, "priority", "this key applies to goals only", err);
    if (r >= 0)
        r = refuse(k->hold, "hold", "this key applies to goals only", err);
    if (r >= 0)
        r = k->cap ? read_cap(f, k->cap, &rule->asks.cap, err)
                   : read_preset(f, k->preset, &rule->asks.cap, err);
    if (r >= 0 && k->floor)
        r = policy_file_share(k->floor, false, &rule->asks.floor, err);
    if (r >= 0 && k->ramp)
        r = policy_file_ramp(k->ramp, &rule->asks.ramp, err);
    if (r >= 0 && k->kind_node)
        r = yaml_word(k->kind_node, kinds, &kind, err);
    rule->asks.hard = kind == KIND_HARD;
    return r;
}

static int read_goal(const struct rule_keys *k, struct policy_rule *rule, uw_error *err)
{
    static const char why[] = "this key applies to caps only";
    uint64_t priority = 0;
    int r = refuse(k->floor, "floor", why, err);

    if (r >= 0)
        r = refuse(k->ramp, "ramp", why, err);
    if (r >= 0)
        r = refuse(k->kind_node, "kind", why, err);
    if (r >= 0)
        r = policy_file_goal(k->goal, &rule->goal, err);
    if (r >= 0 && k->priority)
        r = yaml_u64_in(k->priority, 0, 1000000, &priority, err);
    if (r >= 0 && k->hold)
        r = yaml_duration(k->hold, &rule->hold_ns, err);
    rule->has_goal = true;
    rule->priority = (int)priority;
    return r;
}

static int read_rule(struct policy_inside *f, const struct yaml_node *node,
                     struct policy_rule *rule, uw_error *err)
{
    struct rule_keys k = {.idle_boards = f->defaults.idle_boards};
    int r = yaml_read_map(node, rule_keys, &k, err);

    if (r >= 0)
        r = policy_file_name(k.name, &rule->name, err);
    if (r < 0)
        return r;
    rule->doc = k.doc;
    rule->dry_run = k.dry_run;
    rule->idle_boards = k.idle_boards;
    rule->asks.name = rule->name;
    rule->asks.ramp = f->defaults.ramp;
    if ((k.cap != NULL) + (k.preset != NULL) + (k.goal != NULL) != 1)
        return yaml_fail(node, err, -EINVAL, "%s: expected one of cap, preset and goal",
                         rule->name);
    if (k.jobs)
        r = policy_file_match(f, k.jobs, &rule->jobs, &rule->cls, &rule->n_cls, err);
    if (r >= 0)
        r = read_when(f, &k, node, rule, err);
    if (r >= 0)
        r = k.goal ? read_goal(&k, rule, err) : read_asks(f, &k, rule, err);
    return r;
}

int policy_file_rules(struct policy_inside *f, const struct yaml_node *node,
                      uw_error *err)
{
    struct policy *p = &f->file.policy;
    size_t n = 0;
    int r = policy_file_count(node, POLICY_RULES_MAX, &n, err);

    if (r < 0)
        return r;
    p->rule = policy_file_memory(f, n ? n : 1, sizeof *p->rule);
    if (!p->rule)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && r >= 0; i++) {
        f->rule_node[i] = yaml_at(node, i);
        r = read_rule(f, f->rule_node[i], &p->rule[i], err);
        p->n_rules = i + 1;
    }
    return r;
}
