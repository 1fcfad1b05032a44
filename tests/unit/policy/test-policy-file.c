/* policy.yaml: the example, every way to be wrong, findings with their lines.
 *
 * Usage: test-policy-file EXAMPLE PAGE
 */
#include "policy/file.h"

#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/text.h"
#include "io/file.h"
#include "oom.h"
#include "tap.h"

static int read_text(const char *text, struct policy_file **ret, uw_error *err)
{
    return policy_file_read("p.yaml", text, strlen(text), false, ret, err);
}

static const struct policy_rule *rule_of(const struct policy_file *f, const char *name)
{
    for (size_t i = 0; i < f->policy.n_rules; i++)
        if (strcmp(f->policy.rule[i].name, name) == 0)
            return &f->policy.rule[i];
    return NULL;
}

static void on_finding(bool error, const char *text, void *user)
{
    (void)user;
    ok(false, "a finding: %d %s", error, text);
}

static void test_rules(const struct policy_file *f)
{
    const struct policy_rule *r = rule_of(f, "dirty-grid");

    ok(r && r->has_when && r->has_until && r->for_ns == 600 * NS_PER_S &&
           r->asks.cap.measure == POLICY_LESS_SHARE && r->asks.cap.share == 0.25 &&
           r->asks.ramp.rate == 0.01 && r->n_cls == 2 && !r->asks.hard && r->doc,
       "a rule with `until`");
    r = rule_of(f, "price-peak");
    ok(r && r->for_ns == 60 * NS_PER_S && r->release_ns == 60 * NS_PER_S &&
           r->hysteresis == 0.05 && r->asks.floor == 0.6 &&
           r->asks.ramp.pace == POLICY_AS_CLASS && r->n_cls == 0 && !r->idle_boards,
       "a rule with the defaults");
    r = rule_of(f, "validation");
    ok(r && r->phase && r->asks.phase && r->for_ns == 0 && r->release_ns == 0 &&
           r->hysteresis == 0 && r->confidence == 0.9 && r->least_auto,
       "a phase rule");
    r = rule_of(f, "nobody-waits");
    ok(r && r->has_goal && r->goal.kind == GOAL_EDP && r->priority == 10 &&
           r->hold_ns == 1800 * NS_PER_S,
       "a rule with a goal");
    r = rule_of(f, "night");
    ok(r && r->has_schedule && r->schedule.days == 0x1f && r->schedule.from_min == 1320 &&
           r->schedule.to_min == 360 && strcmp(r->zone, "Europe/Berlin") == 0 &&
           r->asks.cap.share == 0.6,
       "a rule with a schedule and a preset");
    struct policy_zone zone;
    struct policy_hours hours;
    policy_file_zone(f, (size_t)(r - f->policy.rule), 1774745999, &zone);
    policy_schedule_at(&r->schedule, &zone, 1774745999, &hours);
    ok(zone.offset_s == 3600 && zone.after_s == 7200 && zone.change_utc_s == 1774746000 &&
           !hours.inside && hours.edge_utc_s == 1774900800,
       "the zone of its schedule on the day of a change");
    r = rule_of(f, "warm-water");
    ok(r && r->dry_run && r->asks.cap.measure == POLICY_OF_DEMAND, "a dry run");
    r = rule_of(f, "fuse");
    ok(r && r->asks.hard && r->for_ns == 0 && r->asks.cap.mw == 250000, "a hard rule");
}

static void test_example(const char *path)
{
    auto_(policy_file_free) struct policy_file *f = NULL;
    auto_(mem_free) char *text = NULL;
    size_t len = 0;
    uw_error err = {{0}};

    if (file_read(path, POLICY_FILE_MAX, &text, &len, &err) >= 0)
        (void)policy_file_read(path, text, len, false, &f, &err);
    ok(f != NULL, "the example is read: %s", err.text);
    if (!f)
        return;
    is_int(policy_file_check(f, on_finding, NULL), 0, "nothing is found in it");
    const struct policy *p = &f->policy;
    ok(p->n_rules == 7 && p->n_classes == 3 && p->n_presets == 4 && p->hard &&
           f->every_ns == NS_PER_S,
       "its rules, classes and presets");
    ok(p->cls[0].critical && p->cls[0].has_goal && p->cls[0].goal.kind == GOAL_TIME &&
           p->cls[0].floor == 0.7 && p->cls[0].match.n == 11,
       "a class with a goal");
    ok(p->cls[1].has_preset && p->cls[1].preset.share == 0.7 && p->cls[1].rule_goals &&
           p->cls[2].match.n == 0,
       "a class with a preset, and one for every job");
    test_rules(f);
    ok(f->limits.temperature_c == 83 && fabs(f->limits.rise_w_s - 5000.0 / 60) < 1e-9,
       "its limits");
    ok(strcmp(f->facility.zone, "DE") == 0 && f->facility.pue == 1.35, "its facility");
    struct policy_fact fact[] = {{"slurm.partition", "dev"}};
    is_int(policy_class_of(p, &(struct policy_facts){fact, 1}), 1, "a job's class");
}

/* clang-format off */
#define RULE "policy: 1\nrules:\n- name: a\n"
static const struct {
    const char *text, *error;
} wrong[] = {
    {"", "p.yaml:1: key 'policy' is missing"},
    {"policy: 2", "p.yaml:1: version 2 is not supported: the supported version is 1"},
    {"policy: 1\nrule: []", "p.yaml:2: unknown key 'rule': did you mean 'rules'?"},
    {"policy: 1\ndefaults: {fro: 3 s}", "p.yaml:2: unknown key 'fro': did you mean 'for'?"},
    {"policy: 1\ndefaults: {every: 1 ms}", "p.yaml:2: defaults.every: 0.001 s is outside 0.1..3600 s"},
    {"policy: 1\ndefaults: {hysteresis: 120 %}", "p.yaml:2: '120 %' must be above 0 % and at most 100 %"},
    {"policy: 1\ndefaults: {ramp: fast}", "p.yaml:2: 'fast' is no ramp (class, at once, 2 %/s)"},
    {"policy: 1\npresets: {\"7x\": 3 %}", "p.yaml:2: a preset's name begins with a letter"},
    {"policy: 1\npresets: {a23456789012345678901234567890123456789012345678x: 3 %}", "p.yaml:2: a preset's name is plain text of 1 to 48 bytes"},
    {"policy: 1\npresets: {x: 3}", "p.yaml:2: '3' is no share: write '70 %'"},
    {"policy: 1\nsignals: [{name: a, unit: kWx, age: 60 s}]", "p.yaml:2: 'kWx' is no unit"},
    {"policy: 1\nsignals: [{name: a-b, unit: kW, age: 60 s}]", "p.yaml:2: 'a-b' is not the name of a signal"},
    {"policy: 1\nsignals: [{name: carbon, unit: kW}]", "p.yaml:2: carbon is in g/kWh, kW is not"},
    {"policy: 1\nfacility: {currency: Euro}", "p.yaml:2: 'Euro' is not a currency (EUR)"},
    {"policy: 1\nfacility: {\n zone: DE_LU}", "p.yaml:3: 'DE_LU' is not a zone of the grid: a country in two capital letters and parts of it (DE, US-CAL-CISO)"},
    {"policy: 1\nfacility: {zone: UK}", "p.yaml:2: 'UK' is not a zone of the grid: no country has this code; did you mean 'GB'?"},
    {"policy: 1\nfacility: {pue: 0.5}", "p.yaml:2: pue: 0.5 is outside 1..10"},
    {"policy: 1\nfacility: {pue: carbon}", "p.yaml:2: pue: 'carbon' is neither a number nor a signal from outside without a unit"},
    {"policy: 1\nfacility: {pue: job.confidence}", "p.yaml:2: pue: 'job.confidence' is neither a number nor a signal from outside without a unit"},
    {"policy: 1\nlimits: [{boards: all}]", "p.yaml:2: a limit is {boards: all, temperature: T} or {node: true, rise: R}"},
    {"policy: 1\nlimits: [{boards: all, temperature: 83 K}]", "p.yaml:2: '83 K' is not in °C"},
    {"policy: 1\nlimits: [{node: true, rise: 5 kW}]", "p.yaml:2: '5 kW' is not in W/s"},
    {"policy: 1\nlimits: [{boards: all, temperature: 20 °C}]", "p.yaml:2: 20 °C is outside 30..120 °C"},
    {"policy: 1\nlimits: [{node: true, rise: 0.5 W/s}]", "p.yaml:2: 0.5 W/s is outside 1..1e+06 W/s"},
    {"policy: 1\nlimits: [{node: true, rise: -5 W/s}]",
     "p.yaml:2: -5 W/s is outside 1..1e+06 W/s"},
    {"policy: 1\nlimits: [{node: true, rise: '- W/s'}]", "p.yaml:2: '-' is not a number"},
    {"policy: 1\nlimits: [{node: true, rise: 5 W/s},\n {node: true, rise: 6 W/s}]", "p.yaml:3: the policy already has a limit of this kind"},
    {"policy: 1\nclasses: [{match: {}}]", "p.yaml:2: key 'name' is missing"},
    {"policy: 1\nclasses: [{name: a}]", "p.yaml:2: key 'match' is missing"},
    {"policy: 1\nclasses: [{name: \"\", match: {}}]", "p.yaml:2: a name is plain text of 1 to 48 bytes"},
    {"policy: 1\nclasses: [{name: a, match: {usr: b}}]", "p.yaml:2: unknown key 'usr': did you mean 'user'?"},
    {"policy: 1\nclasses: [{name: a, match: {slurm: {acount: b}}}]", "p.yaml:2: unknown key 'acount': did you mean 'account'?"},
    {"policy: 1\nclasses: [{name: a, match: {user: []}}]", "p.yaml:2: expected a list of 1 to 64 values"},
    {"policy: 1\nclasses: [{name: a, match: {class: b}}]", "p.yaml:2: unknown key 'class'"},
    {"policy: 1\nclasses: [{name: a, match: {kind: trainin}}]", "p.yaml:2: kind: 'trainin' is none of: development, training, inference, unknown: did you mean 'training'?"},
    {"policy: 1\nclasses: [{name: a, match: {}, goal: edp, preset: minimal}]", "p.yaml:2: a: a goal or a preset, not both"},
    {"policy: 1\nclasses: [{name: a, match: {}, goal: fast}]", "p.yaml:2: goal 'fast' is none of energy, edp"},
    {"policy: 1\nclasses: [{name: a, match: {}, preset: minimum}]", "p.yaml:2: preset: 'minimum' is no preset: did you mean 'minimal'? (known: aggressive, balanced, minimal)"},
    {"policy: 1\nclasses: [{name: a, match: {}, preset: 75 %}]", "p.yaml:2: preset: '75 %' is no preset (known: aggressive, balanced, minimal)"},
    {RULE "  when: carbon > 1 g/kWh", "p.yaml:3: a: expected one of cap, preset and goal"},
    {RULE "  when: carbon > 1 g/kWh\n  cap: 75 %\n  goal: edp", "p.yaml:3: a: expected one of cap, preset and goal"},
    {RULE "  cap: 75 %", "p.yaml:3: a: `when` or `schedule` is missing"},
    {RULE "  cap: 75 %\n  when: carbn > 400 g/kWh", "p.yaml:5: when: column 1: there is no signal 'carbn': did you mean 'carbon'?"},
    {RULE "  cap: 75 %\n  when: carbon > 400 W", "p.yaml:5: when: column 10: carbon is in g/kWh, 400 W is in W"},
    {RULE "  cap: 75 %\n  when: price > 0.3 USD/kWh", "p.yaml:5: when: column 9: price is in EUR/kWh, 0.3 USD/kWh is in USD/kWh"},
    {RULE "  cap: 75 %\n  when: job.class == 'othr'", "p.yaml:5: when: column 15: job.class is never 'othr': did you mean 'other'?"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  until: carbon", "p.yaml:6: until: column 1: a condition is true or false, carbon is in g/kWh"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  until: known(price)\n  release: 3 s", "p.yaml:7: release: a rule with `until` has no such time"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  until: known(price)\n  hysteresis: 3 %", "p.yaml:7: hysteresis: a rule with `until` has no such time"},
    {RULE "  cap: 75 %\n  when: job.phase == 'load'\n  phase: true\n  for: 3 s", "p.yaml:7: for: a phase rule begins and ends with its phase"},
    {RULE "  cap: 75 %\n  when: job.phase == 'load'\n  phase: true\n  least: 0 s", "p.yaml:7: least: 0 s is below 300 ms, the shortest phase that a rule acts on"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  confidence: 3 %", "p.yaml:6: least, confidence and always are for rules with `phase: true`"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  always: true", "p.yaml:6: least, confidence and always are for rules with `phase: true`"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  priority: 3", "p.yaml:6: priority: this key applies to goals only"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  hold: 3 s", "p.yaml:6: hold: this key applies to goals only"},
    {RULE "  goal: edp\n  when: known(carbon)\n  floor: 3 %", "p.yaml:6: floor: this key applies to caps only"},
    {RULE "  goal: edp\n  when: known(carbon)\n  kind: soft", "p.yaml:6: kind: this key applies to caps only"},
    {RULE "  preset: 75 %\n  when: known(carbon)", "p.yaml:4: preset: '75 %' is no preset (known: aggressive, balanced, minimal)"},
    {RULE "  cap: 750 W\n  when: known(carbon)\n  for: 10", "p.yaml:6: for: '10' has no unit: write '10 s'"},
    {RULE "  cap: 750 W\n  when: known(carbon)\n  release: 30m1h", "p.yaml:6: release: '30m1h': units go"},
    {RULE "  cap: 750\n  when: known(carbon)", "p.yaml:4: cap: '750' has no unit: write '750 W', or a percentage"},
    {RULE "  cap: 75 %\n  when: known(carbon)\n  kind: firm", "p.yaml:6: kind: 'firm' is none of: soft, hard"},
    {RULE "  cap: 75 %\n  schedule: {days: mon}", "p.yaml:5: key 'zone' is missing"},
    {RULE "  cap: 75 %\n  schedule: {days: mo, zone: UTC}", "p.yaml:5: 'mo' is not a day or a range of days (mon, sat-sun)"},
    {RULE "  cap: 75 %\n  schedule: {from: \"6:00\", zone: UTC}", "p.yaml:5: '6:00' is not a time of day (\"06:00\")"},
    {RULE "  cap: 75 %\n  schedule: {to: \"24:01\", zone: UTC}", "p.yaml:5: '24:01' is not a time of day (\"06:00\")"},
    {RULE "  cap: 75 %\n  schedule: {zone: Europe/Berln}", "p.yaml:5: 'Europe/Berln' is no time zone known here (/usr/share/zoneinfo)"},
    {RULE "  cap: 75 %\n  schedule: {zone: ../etc}", "p.yaml:5: '../etc' is no time zone (Europe/Berlin)"},
    {RULE "  cap: 75 %\n  wehn: known(carbon)", "p.yaml:5: unknown key 'wehn': did you mean 'when'?"},
};
/* clang-format on */

static void test_wrong(void)
{
    for (size_t i = 0; i < n_elements(wrong); i++) {
        struct policy_file *f = NULL;
        uw_error err = {{0}};
        int r = read_text(wrong[i].text, &f, &err);
        ok(r < 0 && !f && strncmp(err.text, wrong[i].error, strlen(wrong[i].error)) == 0,
           "%s", wrong[i].error);
        if (strncmp(err.text, wrong[i].error, strlen(wrong[i].error)) != 0)
            printf("#      got: %s\n", err.text);
        policy_file_free(f);
    }
}

/* Each list with one item more than it may have. */
static void test_long(void)
{
    static const struct {
        const char *section, *error;
        size_t n;
    } lists[] = {
        {"rules", "p.yaml:2: expected a list of at most 256 items, got 257",
         POLICY_RULES_MAX},
        {"classes", "p.yaml:2: expected a list of at most 64 items, got 65",
         POLICY_CLASSES_MAX},
        {"limits", "p.yaml:2: expected a list of at most 2 items, got 3",
         POLICY_LIMITS_MAX},
    };

    for (size_t i = 0; i < n_elements(lists); i++) {
        struct policy_file *f = NULL;
        struct text t = {0};
        uw_error err = {{0}};
        text_put(&t, "policy: 1\n");
        text_put(&t, lists[i].section);
        for (size_t k = 0; k <= lists[i].n; k++)
            text_put(&t, k ? ", {}" : ": [{}");
        text_put(&t, "]\n");
        int r = read_text(t.at, &f, &err);
        text_free(&t);
        is_int(r, -EINVAL, "%s: too many", lists[i].section);
        is_str(err.text, lists[i].error, lists[i].section);
    }
}

static void test_hidden(void)
{
    static const char text[] =
        "policy: 1\nrules:\n- name: a\n  cap: 75 %\n  when: secret\n";
    struct policy_file *f = NULL;
    uw_error err = {{0}};

    (void)policy_file_read("p.yaml", text, strlen(text), true, &f, &err);
    ok(!f && !strstr(err.text, "secret") && strstr(err.text, "p.yaml:5: column 9"),
       "an error that must not show the text: %s", err.text);
}

static void test_facility_hidden(void)
{
    static const char text[] = "policy: 1\nfacility: {zone: UK-SECRET}\n";
    struct policy_file *f = NULL;
    uw_error err = {{0}};

    (void)policy_file_read("p.yaml", text, strlen(text), true, &f, &err);
    ok(!f && !strstr(err.text, "SECRET") && strstr(err.text, "p.yaml:2: column 18"),
       "a zone that must not be shown: %s", err.text);
}

static void hear(bool error, const char *text, void *user)
{
    char *said = user;
    size_t n = strlen(said);

    (void)snprintf(said + n, 500 - n, "%s%s%s", n ? "\n" : "",
                   error ? "" : "warning: ", text);
}

static void test_findings(void)
{
    auto_(policy_file_free) struct policy_file *f = NULL;
    char said[500] = "";
    uw_error err = {{0}};

    int r = read_text(
        "policy: 1\nclasses:\n- {name: all, match: {}}\n- {name: b, match: {}}\n"
        "rules:\n- {name: a, when: board.power > 1 W, cap: 3 W}\n"
        "- {name: a, when: known(price), cap: 3 W, kind: hard}\n",
        &f, &err);
    if (!ok(r == 0 && f, "it is read: %s", err.text))
        return;
    is_int(policy_file_check(f, hear, said), 3, "three errors");
    is_str(
        said,
        "p.yaml:6: a: reads board.power, which caps change: it needs an `until`\n"
        "p.yaml:7: a: an earlier rule has this name\n"
        "p.yaml:7: a: a hard rule needs `hard: true` in the file\n"
        "warning: p.yaml:4: b: no job is of this class: all before it matches every job",
        "each with its line");
}

/* The first key of a line of the example; false: none, or one of the site's own names. */
static bool key_of(const char *line, char key[40])
{
    int end = 0;

    line += strspn(line, " -{");
    return sscanf(line, "%39[a-z_]%n", key, &end) == 1 && line[end] == ':' &&
           strcmp(key, "overnight") != 0;
}

/* The manual page names each key that the example has. */
static void test_page(const char *example, const char *page)
{
    auto_(mem_free) char *text = NULL, *man = NULL;
    unsigned keys = 0, missing = 0;

    if (file_read(example, POLICY_FILE_MAX, &text, NULL, NULL) < 0 ||
        file_read(page, POLICY_FILE_MAX, &man, NULL, NULL) < 0) {
        ok(false, "%s and %s are read", example, page);
        return;
    }
    char *rest = text, *line;
    while ((line = strsep(&rest, "\n"))) {
        char key[40], bold[44];
        if (!key_of(line, key))
            continue;
        (void)snprintf(bold, sizeof bold, "*%s*", key);
        keys++;
        missing += !strstr(man, bold);
        if (!strstr(man, bold))
            printf("# the page lacks %s\n", bold);
    }
    ok(keys > 60 && missing == 0, "the manual page knows the %u keys of the example",
       keys);
}

static int read_example(void *user)
{
    auto_(policy_file_free) struct policy_file *f = NULL;
    static const char text[] =
        "policy: 1\nclasses:\n- {name: a, match: {label: {x: [y, z]}}}\n"
        "rules:\n- {name: a, when: carbon > 1 g/kWh, cap: 3 W, jobs: {class: a}}\n"
        "facility: {zone: DE}\n";
    (void)user;

    return read_text(text, &f, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    test_example(argv[1]);
    test_wrong();
    test_long();
    test_hidden();
    test_findings();
    test_page(argv[1], argv[2]);
    test_facility_hidden();
    oom_each("policy_file_read", read_example, NULL);
    return done();
}
