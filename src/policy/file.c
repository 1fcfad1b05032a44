#include "policy/file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/file.h"
#include "policy/catalogue.h"
#include "policy/file-inside.h"
#include "signal/grid-zone.h"

enum { NAME_MAX_BYTES = 48, VERSION = 1 };

/* ---- memory ---- */

struct policy_block {
    struct policy_block *next;
    max_align_t memory[];
};

void *policy_file_memory(struct policy_inside *f, size_t n, size_t size)
{
    struct policy_block *block = calloc(1, sizeof *block + n * size);

    if (!block)
        return NULL;
    block->next = f->blocks;
    f->blocks = block;
    return block->memory;
}

void policy_file_free(struct policy_file *file)
{
    struct policy_inside *f = (struct policy_inside *)file;

    if (!f)
        return;
    while (f->blocks) {
        struct policy_block *next = f->blocks->next;
        free(f->blocks);
        f->blocks = next;
    }
    signal_sources_fini(&f->file.sources);
    for (size_t i = 0; i < f->n_zones; i++)
        zone_free(f->zone[i]);
    yaml_free(f->doc);
    free(f);
}

/* ---- values ---- */

int policy_file_name(const struct yaml_node *node, const char **ret, uw_error *err)
{
    const char *text = NULL;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    if (!*text || strlen(text) > NAME_MAX_BYTES || !utf8_is_plain(text))
        return yaml_fail(node, err, -EINVAL, "a name is plain text of 1 to 48 bytes");
    *ret = text;
    return 0;
}

int policy_file_share(const struct yaml_node *node, bool zero, double *ret, uw_error *err)
{
    const char *text = NULL;
    uw_error why;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    if (zero && (strcmp(text, "0 %") == 0 || strcmp(text, "0%") == 0)) {
        *ret = 0;
        return 0;
    }
    r = policy_share_read(text, ret, &why);
    return r < 0 ? yaml_fail(node, err, r, "%s", why.text) : 0;
}

int policy_file_ramp(const struct yaml_node *node, struct policy_ramp *ret, uw_error *err)
{
    const char *text = NULL;
    uw_error why;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    r = policy_ramp_read(text, ret, &why);
    return r < 0 ? yaml_fail(node, err, r, "%s", why.text) : 0;
}

int policy_file_goal(const struct yaml_node *node, struct goal *ret, uw_error *err)
{
    const char *text = NULL;
    uw_error why;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    r = goal_parse(text, ret, &why);
    return r < 0 ? yaml_fail(node, err, r, "%s", why.text) : 0;
}

/* "5 kW/min" in the base unit of `like` ("W/s"). */
static int read_quantity(const struct yaml_node *node, const char *like, double *ret,
                         uw_error *err)
{
    struct policy_unit want = {0}, unit = {0};
    double factor = 1, v = 0;
    const char *text = NULL;
    char number[32];
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    size_t n = text[0] == '-' ? 1 : 0;
    n += strspn(text + n, "0123456789.");
    size_t at = n + strspn(text + n, " ");
    (void)policy_unit_read(like, strlen(like), &want, &factor);
    size_t unit_n = policy_unit_read(text + at, strlen(text + at), &unit, &factor);
    if (n == 0 || n >= sizeof number || text[at + unit_n] || unit_n == 0 ||
        !policy_unit_same(&unit, &want))
        return yaml_fail(node, err, -EINVAL, "'%.40s' is not in %s", text, like);
    memcpy(number, text, n);
    number[n] = '\0';
    if (parse_double(number, &v, NULL) < 0)
        return yaml_fail(node, err, -EINVAL, "'%.40s' is not a number", number);
    *ret = v * factor;
    return 0;
}

int policy_file_count(const struct yaml_node *node, size_t max, size_t *ret_n,
                      uw_error *err)
{
    int r = yaml_want(node, YAML_SEQ, err);

    if (r < 0)
        return r;
    if (yaml_count(node) > max)
        return yaml_fail(node, err, -EINVAL,
                         "expected a list of at most %zu items, got %zu", max,
                         yaml_count(node));
    *ret_n = yaml_count(node);
    return 0;
}

/* ---- sections ---- */

/* clang-format off */
#define DEFAULT(key, kind, field) {key, YAML_TYPE_##kind, offsetof(struct defaults_keys, field), false, 0, 0, NULL}
struct defaults_keys {
    uint64_t every_ns, for_ns, release_ns;
    const struct yaml_node *hysteresis, *ramp;
    bool idle_boards;
};
static const struct yaml_key defaults_keys[] = {
    {"every", YAML_TYPE_DURATION, offsetof(struct defaults_keys, every_ns), false, 0.1, 3600, NULL},
    DEFAULT("for", DURATION, for_ns), DEFAULT("release", DURATION, release_ns),
    DEFAULT("hysteresis", NODE, hysteresis), DEFAULT("ramp", NODE, ramp),
    DEFAULT("idle_boards", BOOL, idle_boards),
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

static int read_defaults(struct policy_inside *f, const struct yaml_node *node,
                         uw_error *err)
{
    struct policy_defaults *d = &f->defaults;
    struct defaults_keys k = {
        .every_ns = NS_PER_S, .for_ns = 60 * NS_PER_S, .release_ns = 60 * NS_PER_S};
    int r = node ? yaml_read_map(node, defaults_keys, &k, err) : 0;

    *d = (struct policy_defaults){.every_ns = k.every_ns,
                                  .for_ns = k.for_ns,
                                  .release_ns = k.release_ns,
                                  .hysteresis = 0.05,
                                  .idle_boards = k.idle_boards};
    f->file.every_ns = k.every_ns;
    if (r >= 0 && k.hysteresis)
        r = policy_file_share(k.hysteresis, true, &d->hysteresis, err);
    if (r >= 0 && k.ramp)
        r = policy_file_ramp(k.ramp, &d->ramp, err);
    return r;
}

static int read_presets(struct policy_inside *f, const struct yaml_node *node,
                        uw_error *err)
{
    struct policy *p = &f->file.policy;
    int r = node ? yaml_want(node, YAML_MAP, err) : 0;

    memcpy(p->preset, policy_presets, sizeof policy_presets);
    p->n_presets = POLICY_PRESETS_BUILT_IN;
    for (size_t i = 0; node && r >= 0 && i < yaml_count(node); i++) {
        const char *name = yaml_key_at(node, i);
        size_t at = 0;
        while (at < p->n_presets && strcmp(p->preset[at].name, name) != 0)
            at++;
        if (at == POLICY_PRESETS_MAX)
            return yaml_fail_key(node, i, err, -EINVAL, "more than 32 presets");
        if (strlen(name) >= POLICY_PRESET_NAME || !utf8_is_plain(name))
            return yaml_fail_key(node, i, err, -EINVAL,
                                 "a preset's name is plain text of 1 to 48 bytes");
        if (strspn(name, "0123456789-") > 0 || !*name)
            return yaml_fail_key(node, i, err, -EINVAL,
                                 "a preset's name begins with a letter");
        p->preset[at].name = name;
        r = policy_file_share(yaml_at(node, i), false, &p->preset[at].share, err);
        if (at == p->n_presets)
            p->n_presets++;
    }
    return r;
}

static bool is_currency(const char *text)
{
    struct policy_unit unit;
    double factor;

    return policy_unit_read(text, strlen(text), &unit, &factor) == 3 &&
           unit.power[POLICY_MONEY] == 1;
}

/* A number, or the name of an outside signal without a unit. */
static int read_pue(struct policy_inside *f, const struct yaml_node *node, uw_error *err)
{
    struct policy_facility *to = &f->file.facility;
    const char *text = NULL;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    if (*text >= '0' && *text <= '9') {
        r = yaml_double(node, &to->pue, err);
        if (r >= 0 && !(to->pue >= 1 && to->pue <= 10))
            r = yaml_fail(node, err, -ERANGE, "pue: %s is outside 1..10", text);
        return r;
    }
    int at = policy_signal_find(&f->catalogue, text, strlen(text));
    bool fact = at >= CATALOGUE_FACTS && at < CATALOGUE_BUILT_IN;
    if (at < 0 || fact || f->signal[at].type != POLICY_NUMBER || f->signal[at].unit)
        return yaml_fail(node, err, -EINVAL,
                         "pue: '%.40s' is neither a number nor a signal from outside "
                         "without a unit",
                         text);
    to->pue_signal = &f->signal[at];
    return 0;
}

struct facility_keys {
    const char *zone, *currency;
    const struct yaml_node *pue;
};
static const struct yaml_key facility_keys[] = {
    {"zone", YAML_TYPE_TEXT, offsetof(struct facility_keys, zone), false, 0, 0, NULL},
    {"pue", YAML_TYPE_NODE, offsetof(struct facility_keys, pue), false, 0, 0, NULL},
    {"currency", YAML_TYPE_TEXT, offsetof(struct facility_keys, currency), false, 0, 0,
     NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};

/* The countries of the time zone database, which some machines lack. */
static int read_countries(char **ret, uw_error *err)
{
    int r = file_read(ZONE_FOLDER "/iso3166.tab", ZONE_FILE_MAX, ret, NULL, err);

    return r == -ENOMEM ? r : 0;
}

static int check_zone(const struct yaml_node *node, const char *zone, uw_error *err)
{
    auto_(mem_free) char *countries = NULL;
    uw_error why;
    int r = zone ? read_countries(&countries, err) : 0;

    if (r < 0 || !zone)
        return r;
    r = grid_zone_check(zone, countries, &why);
    return r < 0 ? yaml_fail(yaml_get(node, "zone"), err, r, "%s", why.text) : 0;
}

/* Read before the signals, because prices contain its currency; its pue may be a signal.
 */
static int read_facility(struct policy_inside *f, const struct yaml_node *node,
                         const struct yaml_node **ret_pue, uw_error *err)
{
    struct facility_keys k = {.currency = "EUR"};
    int r = node ? yaml_read_map(node, facility_keys, &k, err) : 0;

    if (r >= 0 && !is_currency(k.currency))
        r = yaml_fail(yaml_get(node, "currency"), err, -EINVAL,
                      "'%.40s' is not a currency (EUR)", k.currency);
    if (r >= 0)
        r = check_zone(node, k.zone, err);
    f->file.facility = (struct policy_facility){.zone = k.zone, .currency = k.currency};
    *ret_pue = k.pue;
    return r;
}

/* Adds a signal of the site to the catalogue; a built-in signal keeps its index. */
static int add_signal(struct policy_inside *f, const struct yaml_node *node,
                      const struct signal_decl *d, uw_error *err)
{
    if (policy_signal_find(&f->catalogue, d->name, strlen(d->name)) >= 0)
        return 0;
    if (f->catalogue.n == POLICY_SIGNALS_MAX)
        return yaml_fail(node, err, -EINVAL,
                         "more than 128 signals, including the built-in ones");
    f->signal[f->catalogue.n++] =
        (struct policy_signal){.name = d->name,
                               .type = d->type,
                               .series = d->type != POLICY_NUMBER      ? POLICY_NO_SERIES
                                         : signal_is_forecast(d->name) ? POLICY_FORECAST
                                                                       : POLICY_HISTORY,
                               .unit = d->unit[0] ? d->unit : NULL};
    return 0;
}

static int read_signals(struct policy_inside *f, const struct yaml_node *node,
                        uw_error *err)
{
    int r = signal_sources_read(yaml_root(f->doc), &f->file.sources, err);

    (void)snprintf(f->price_unit, sizeof f->price_unit, "%s/kWh",
                   f->file.facility.currency);
    f->cls_words[f->file.policy.n_classes] =
        (struct policy_word){POLICY_CLASS_OTHER, POLICY_CLASS_OTHER};
    catalogue_built_in(f->price_unit, f->cls_words, f->signal);
    f->catalogue = (struct policy_catalogue){f->signal, CATALOGUE_BUILT_IN};
    f->file.policy.catalogue = &f->catalogue;
    for (size_t i = 0; i < f->file.sources.n && r >= 0; i++)
        r = add_signal(f, yaml_at(node, i), &f->file.sources.source[i].decl, err);
    return r;
}

struct limit_keys {
    const char *boards;
    const struct yaml_node *temperature, *rise;
    bool node;
};
static const struct yaml_key limit_keys[] = {
    {"boards", YAML_TYPE_TEXT, offsetof(struct limit_keys, boards), false, 0, 0, NULL},
    {"temperature", YAML_TYPE_NODE, offsetof(struct limit_keys, temperature), false, 0, 0,
     NULL},
    {"node", YAML_TYPE_BOOL, offsetof(struct limit_keys, node), false, 0, 0, NULL},
    {"rise", YAML_TYPE_NODE, offsetof(struct limit_keys, rise), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};

/* The accepted limits of a board's temperature and of a node's rise. */
#define TEMPERATURE_MIN_C 30.0
#define TEMPERATURE_MAX_C 120.0
#define RISE_MIN_W_S 1.0
#define RISE_MAX_W_S 1e6

static int read_within(const struct yaml_node *node, const char *like, double min,
                       double max, double *ret, uw_error *err)
{
    double v = 0;
    int r = *ret > 0 ? yaml_fail(node, err, -EINVAL,
                                 "the policy already has a limit of this kind")
                     : read_quantity(node, like, &v, err);

    if (r < 0)
        return r;
    if (v < min || v > max)
        return yaml_fail(node, err, -ERANGE, "%g %s is outside %g..%g %s", v, like, min,
                         max, like);
    *ret = v;
    return 0;
}

static int read_limit(const struct yaml_node *node, struct policy_limits *ret,
                      uw_error *err)
{
    struct limit_keys k = {0};
    int r = yaml_read_map(node, limit_keys, &k, err);
    bool of_boards =
        k.boards && strcmp(k.boards, "all") == 0 && k.temperature && !k.node && !k.rise;

    if (r < 0)
        return r;
    if (!of_boards && (k.boards || k.temperature || !k.node || !k.rise))
        return yaml_fail(
            node, err, -EINVAL,
            "a limit is {boards: all, temperature: T} or {node: true, rise: R}");
    return of_boards ? read_within(k.temperature, "°C", TEMPERATURE_MIN_C,
                                   TEMPERATURE_MAX_C, &ret->temperature_c, err)
                     : read_within(k.rise, "W/s", RISE_MIN_W_S, RISE_MAX_W_S,
                                   &ret->rise_w_s, err);
}

static int read_limits(struct policy_inside *f, const struct yaml_node *node,
                       uw_error *err)
{
    size_t n = 0;
    int r = policy_file_count(node, POLICY_LIMITS_MAX, &n, err);

    for (size_t i = 0; r >= 0 && i < n; i++)
        r = read_limit(yaml_at(node, i), &f->file.limits, err);
    return r;
}

/* ---- the whole ---- */

struct file_keys {
    uint64_t version;
    const struct yaml_node *defaults, *presets, *signals, *classes, *rules, *limits,
        *facility;
    bool hard;
};
/* clang-format off */
#define SECTION(key) {#key, YAML_TYPE_NODE, offsetof(struct file_keys, key), false, 0, 0, NULL}
static const struct yaml_key file_keys[] = {
    {"policy", YAML_TYPE_U64, offsetof(struct file_keys, version), true, 0, 0, NULL},
    SECTION(defaults), SECTION(presets), SECTION(signals), SECTION(classes), SECTION(rules),
    SECTION(limits), SECTION(facility),
    {"hard", YAML_TYPE_BOOL, offsetof(struct file_keys, hard), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

/* In the order of their dependencies. */
static int read_sections(struct policy_inside *f, const struct file_keys *k,
                         uw_error *err)
{
    const struct yaml_node *pue = NULL;
    int r = read_defaults(f, k->defaults, err);

    if (r >= 0)
        r = read_presets(f, k->presets, err);
    if (r >= 0 && k->classes)
        r = policy_file_classes(f, k->classes, err);
    if (r >= 0)
        r = read_facility(f, k->facility, &pue, err);
    if (r >= 0)
        r = read_signals(f, k->signals, err);
    if (r >= 0 && pue)
        r = read_pue(f, pue, err);
    if (r >= 0 && k->rules)
        r = policy_file_rules(f, k->rules, err);
    if (r >= 0 && k->limits)
        r = read_limits(f, k->limits, err);
    f->file.policy.hard = k->hard;
    return r;
}

static void free_inside(struct policy_inside *f)
{
    policy_file_free(f ? &f->file : NULL);
}
DEFINE_AUTO(struct policy_inside *, free_inside);

int policy_file_read(const char *name, const char *text, size_t len, bool hidden,
                     struct policy_file **ret, uw_error *err)
{
    auto_(free_inside) struct policy_inside *f = calloc(1, sizeof *f);
    struct file_keys k = {0};
    size_t name_size = strlen(name) + 1;

    if (!f || !(f->name = policy_file_memory(f, name_size, 1)))
        return fail(err, -ENOMEM, "out of memory");
    memcpy(f->name, name, name_size);
    int r = (hidden ? yaml_read_hidden : yaml_read)(name, text, len, &f->doc, err);
    if (r < 0)
        return r;
    r = yaml_read_map(yaml_root(f->doc), file_keys, &k, err);
    if (r >= 0 && k.version != VERSION)
        r = yaml_fail(yaml_get(yaml_root(f->doc), "policy"), err, -EINVAL,
                      "version %llu is not supported: the supported version is 1",
                      (unsigned long long)k.version);
    if (r >= 0)
        r = read_sections(f, &k, err);
    if (r < 0)
        return r;
    *ret = &take(f)->file;
    return 0;
}

void policy_file_zone(const struct policy_file *file, size_t rule, int64_t utc_s,
                      struct policy_zone *ret)
{
    const struct policy_inside *f = (const struct policy_inside *)file;
    struct zone_now now;

    zone_at(f->zone[f->zone_of[rule]], utc_s, &now);
    *ret = (struct policy_zone){.offset_s = now.offset_s,
                                .after_s = now.after_s,
                                .change_utc_s = now.change_utc_s};
}

struct placer {
    const struct policy_inside *f;
    policy_file_finding_fn fn;
    void *user;
};

static void place(enum policy_about about, size_t i, bool error, const char *text,
                  void *user)
{
    const struct placer *p = user;
    const struct yaml_node *node =
        about == POLICY_ABOUT_RULE ? p->f->rule_node[i] : p->f->cls_node[i];
    uw_error line;

    (void)fail(&line, -EINVAL, "%s:%u: %s", p->f->name, yaml_line(node), text);
    p->fn(error, line.text, p->user);
}

size_t policy_file_check(const struct policy_file *file, policy_file_finding_fn fn,
                         void *user)
{
    struct placer p = {(const struct policy_inside *)file, fn, user};

    return policy_check(&file->policy, place, &p);
}
