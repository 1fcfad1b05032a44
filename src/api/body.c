/* Converts JSON bodies to requests to the node. */
#include "api/body.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "caps/types.h"
#include "core/policy/cap.h"
#include "jobs/label.h"
#include "policy/file.h"

struct only {
    const char *const *keys;
    uw_error *err;
};

static int is_known(const char *key, const struct json_value *v, void *user)
{
    const struct only *o = user;
    char none[NEAREST_NONE];
    (void)v;

    for (size_t i = 0; o->keys[i]; i++)
        if (strcmp(o->keys[i], key) == 0)
            return 0;
    return fail(o->err, -ERANGE, "unknown key: %s", nearest_none_of(key, o->keys, none));
}

/* Checks that v is an object with no keys but these. */
static int only(const struct json_value *v, const char *const *keys, uw_error *err)
{
    struct only o = {keys, err};
    int r = json_each(v, is_known, &o);

    if (r == -EINVAL)
        return fail(err, -EINVAL, "the body is not a JSON object");
    return r == -ERANGE ? -EINVAL : r;
}

/* The getters below leave *ret unchanged where the key is absent. */
static bool given(const struct json_value *v, const char *key)
{
    return json_get(v, key) != NULL;
}

static int text(const struct json_value *v, const char *key, size_t max, const char **ret,
                uw_error *err)
{
    const char *got = NULL;

    if (!given(v, key))
        return 0;
    int r = json_get_text(v, key, &got, err);
    if (r < 0)
        return r;
    if (strlen(got) > max)
        return fail(err, -ERANGE, "'%s' has %zu bytes, %zu at most", key, strlen(got),
                    max);
    if (!utf8_is_plain(got))
        return fail(err, -EINVAL, "'%s' contains a control or invisible character", key);
    *ret = got;
    return 0;
}

static int number(const struct json_value *v, const char *key, uint64_t from, uint64_t to,
                  uint64_t *ret, uw_error *err)
{
    uint64_t got = 0;

    if (!given(v, key))
        return 0;
    int r = json_get_u64(v, key, &got, err);
    if (r < 0)
        return r;
    if (got < from || got > to)
        return fail(err, -ERANGE, "'%s': %" PRIu64 " is outside %" PRIu64 "..%" PRIu64,
                    key, got, from, to);
    *ret = got;
    return 0;
}

static int pid(const struct json_value *v, pid_t *ret, uw_error *err)
{
    uint64_t got = 0;
    int r = number(v, "pid", 1, INT_MAX, &got, err);

    if (r == 0)
        *ret = (pid_t)got;
    return r;
}

static int duration(const struct json_value *v, const char *key, uint64_t *ret_ns,
                    uw_error *err)
{
    const char *got = NULL;
    uint64_t ns = 0;

    if (!given(v, key))
        return 0;
    if (json_get_text(v, key, &got, NULL) < 0)
        return fail(err, -EINVAL, "'%s' must be a string with a unit: \"10 min\"", key);
    int r = parse_duration(got, &ns, err);
    if (r < 0)
        return fail_in(err, r, "'%s'", key);
    if (ns == 0)
        return fail(err, -ERANGE, "'%s': '%.40s' is not above 0 s", key, got);
    *ret_ns = ns;
    return 0;
}

/* Of a claim or a release: without it they have no end, or that of their user's. */
static int end(const struct json_value *v, uint64_t *ret_ns, uw_error *err)
{
    uint64_t ns = 0;
    int r = duration(v, "for", &ns, err);

    if (r == 0 && ns > CAPS_FOR_MAX_NS)
        r = fail(err, -ERANGE, "'for': '%.40s' is above %d d",
                 json_as_text(json_get(v, "for")), CAPS_FOR_MAX_D);
    if (r == 0 && ns)
        *ret_ns = ns;
    return r;
}

int body_cap(const char *key, const char *got, struct cap_arg *ret, uw_error *err)
{
    int r = parse_limit(got, ret, err);

    return r < 0 ? fail_in(err, r, "'%s'", key) : 0;
}

static int cap(const struct json_value *v, struct cap_arg *ret, uw_error *err)
{
    const char *got = NULL;

    if (json_get_text(v, "cap", &got, NULL) < 0)
        return fail(err, -EINVAL,
                    "'cap' must be a string with a unit: \"250 W\" or \"85%%\"");
    return body_cap("cap", got, ret, err);
}

/* A name in place of watts or a percentage. */
static int preset(const struct json_value *v, const char **ret, uw_error *err)
{
    if (given(v, "cap"))
        return fail(err, -EINVAL, "'cap' and 'preset' exclude each other");
    *ret = "";
    int r = text(v, "preset", POLICY_PRESET_NAME - 1, ret, err);
    return r == 0 && !**ret ? fail(err, -EINVAL, "'preset' is empty") : r;
}

/* Exactly one of "cap", "preset" and "clock". */
static int cap_or_clock(const struct json_value *v, struct node_claim *ret, uw_error *err)
{
    const char *got = NULL;

    if (!given(v, "clock"))
        return given(v, "preset") ? preset(v, &ret->preset, err) : cap(v, &ret->cap, err);
    if (given(v, "cap") || given(v, "preset"))
        return fail(err, -EINVAL, "'%s' and 'clock' exclude each other: make two claims",
                    given(v, "cap") ? "cap" : "preset");
    if (json_get_text(v, "clock", &got, NULL) < 0)
        return fail(err, -EINVAL, "'clock' must be a string with a unit: \"1200 MHz\"");
    int r = parse_clock(got, &ret->clock_mhz, err);
    return r < 0 ? fail_in(err, r, "'clock'") : 0;
}

int body_board_name(const struct json_value *v, const char *key, char buf[BODY_BOARD],
                    const char **ret, uw_error *err)
{
    uint64_t index = 0;
    const char *name = NULL;

    if (json_get_u64(v, key, &index, NULL) == 0) {
        if (index >= UINT32_MAX)
            return fail(err, -ERANGE, "'%s': %" PRIu64 " is not a board's index", key,
                        index);
        (void)snprintf(buf, BODY_BOARD, "%" PRIu64, index);
        *ret = buf;
        return 0;
    }
    if (json_get_text(v, key, &name, NULL) < 0)
        return fail(err, -EINVAL, "'%s' is neither an index nor a UUID", key);
    int r = text(v, key, BODY_BOARD - 1, &name, err);
    if (r < 0)
        return r;
    if (!*name)
        return fail(err, -EINVAL, "'%s' is empty", key);
    *ret = name;
    return 0;
}

/* ---- claims ---- */

static int kind(const struct json_value *v, enum claim_kind *ret, uw_error *err)
{
    const char *got = NULL;
    char none[NEAREST_NONE];
    int r = text(v, "kind", 40, &got, err);

    *ret = CLAIM_NAMED;
    if (r < 0 || !got)
        return r;
    int kind = names_number(NAMES_CLAIM_KIND, got);
    if (kind < 0)
        return fail(err, -EINVAL, "'kind': %s",
                    names_none_of(NAMES_CLAIM_KIND, got, none));
    *ret = (enum claim_kind)kind;
    return 0;
}

int body_claim(const struct json_value *v, struct body_claim *ret, uw_error *err)
{
    static const char *const keys[] = {"gpu", "job", "cap", "preset",  "clock", "kind",
                                       "for", "why", "pid", "at_once", NULL};
    struct body_claim c = {.ask = {.why = ""}};
    const char *board = NULL;
    int r = only(v, keys, err);

    if (r == 0 && given(v, "gpu"))
        r = body_board_name(v, "gpu", c.board, &board, err);
    if (r == 0)
        r = number(v, "job", 1, INT64_MAX, &c.ask.job, err);
    if (r == 0 && !board && !c.ask.job)
        r = fail(err, -EINVAL, "neither 'gpu' nor 'job' names a board");
    if (r == 0)
        r = kind(v, &c.ask.kind, err);
    if (r == 0)
        r = cap_or_clock(v, &c.ask, err);
    if (r == 0)
        r = end(v, &c.ask.ttl_ns, err);
    if (r == 0)
        r = text(v, "why", CLAIM_TEXT - 1, &c.ask.why, err);
    if (r == 0)
        r = pid(v, &c.ask.pid, err);
    if (r == 0 && given(v, "at_once"))
        r = json_get_bool(v, "at_once", &c.ask.at_once, err);
    if (r < 0)
        return r;
    *ret = c;
    ret->ask.board = board == c.board ? ret->board : board;
    return 0;
}

/* ---- jobs ---- */

struct take_labels {
    struct label *label;
    size_t n;
    uw_error *err;
};

static int take_label(const char *key, const struct json_value *v, void *user)
{
    struct take_labels *t = user;
    struct label *l = &t->label[t->n];
    const char *value = json_as_text(v);

    if (t->n == LABELS_MAX)
        return fail(t->err, -E2BIG, "'labels' has more than %d entries", LABELS_MAX);
    if (!utf8_is_plain(key) || (value && !utf8_is_plain(value)))
        return fail(t->err, -EDOM, "'labels' contains a control or invisible character");
    if (!label_key_valid(key, strlen(key)))
        return fail(t->err, -EDOM, "'labels': '%.40s' is not a key (" LABEL_KEY_FORM ")",
                    key, LABEL_KEY - 1);
    if (!value)
        return fail(t->err, -EDOM, "'labels': '%s' is not a string", key);
    if (strlen(value) >= LABEL_VALUE)
        return fail(t->err, -ERANGE, "'labels': '%s' has %zu bytes, %d at most", key,
                    strlen(value), LABEL_VALUE - 1);
    memcpy(l->key, key, strlen(key) + 1);
    memcpy(l->value, value, strlen(value) + 1);
    t->n++;
    return 0;
}

static int labels(const struct json_value *v, struct label ret[static LABELS_MAX],
                  size_t *ret_n, uw_error *err)
{
    struct take_labels t = {ret, 0, err};

    if (!given(v, "labels"))
        return 0;
    int r = json_each(json_get(v, "labels"), take_label, &t);
    *ret_n = t.n;
    if (r == -EINVAL)
        return fail(err, -EINVAL, "'labels' is not an object");
    return r < 0 ? -EINVAL : 0;
}

static int one_board(const struct json_value *v, const char *key, struct node *node,
                     uint64_t *ret, uw_error *err)
{
    const char *name = json_as_text(v);
    uint64_t index = 0;
    char number[24];
    size_t at = 0;

    if (json_as_u64(v, &index)) {
        (void)snprintf(number, sizeof number, "%" PRIu64, index);
        name = number;
    }
    if (!name || !*name || strlen(name) >= BODY_BOARD)
        return fail(err, -EINVAL, "'%s' must list boards by index or UUID: [0, 1]", key);
    int r = node_board(node, name, &at, err);
    if (r < 0)
        return fail_in(err, r, "'%s'", key);
    if (at >= BODY_BOARDS_MAX)
        return fail(err, -ERANGE, "'%s': board %zu is beyond the first %d", key, at,
                    BODY_BOARDS_MAX);
    if (*ret >> at & 1)
        return fail(err, -EINVAL, "'%s' names '%s' twice", key, name);
    *ret |= 1ull << at;
    return 0;
}

static int boards(const struct json_value *v, struct node *node,
                  struct roster_register *ret, uw_error *err)
{
    const char *key = given(v, "gpus") ? "gpus" : "default_gpus";
    const struct json_value *list = json_get(v, key);
    size_t n = json_count(list);
    int r = 0;

    if (given(v, "gpus") && given(v, "default_gpus"))
        return fail(err, -EINVAL, "'gpus' and 'default_gpus' exclude each other");
    if (!list)
        return 0;
    if (n == 0 || n > BODY_BOARDS_MAX)
        return fail(err, -EINVAL, "'%s' must be a list of 1 to %d boards", key,
                    BODY_BOARDS_MAX);
    for (size_t i = 0; i < n && r == 0; i++)
        r = one_board(json_at(list, i), key, node, &ret->boards, err);
    ret->by_default = given(v, "default_gpus");
    return r;
}

static int source(const struct json_value *v, enum job_source *ret, uw_error *err)
{
    static const char *const known[] = {"run", "registered", NULL};
    const char *got = NULL;
    char none[NEAREST_NONE];
    int r = text(v, "source", 40, &got, err);

    *ret = JOB_RUN;
    if (r < 0 || !got)
        return r;
    int source = names_number(NAMES_JOB_SOURCE, got);
    if (source != JOB_RUN && source != JOB_REGISTERED)
        return fail(err, -EINVAL, "'source': %s", nearest_none_of(got, known, none));
    *ret = (enum job_source)source;
    return 0;
}

/* The job's request: a search, a cap by name, or neither. */
static int wish(const struct json_value *v, struct node_job *ret, uw_error *err)
{
    const char *goal = NULL, *key = given(v, "goal") ? "goal" : "default_goal";

    bool named = given(v, "cap") || given(v, "preset");

    if (given(v, "goal") && given(v, "default_goal"))
        return fail(err, -EINVAL, "'goal' and 'default_goal' exclude each other");
    if (given(v, key) && named)
        return fail(err, -EINVAL, "'%s' and '%s' exclude each other", key,
                    given(v, "cap") ? "cap" : "preset");
    if (named)
        return given(v, "preset") ? preset(v, &ret->preset, err) : cap(v, &ret->cap, err);
    int r = text(v, key, GOAL_TEXT_MAX - 1, &goal, err);
    if (r < 0 || !goal)
        return r;
    r = goal_parse(goal, &ret->goal, err);
    ret->search = r == 0;
    ret->by_default = given(v, "default_goal");
    return r < 0 ? fail_in(err, r, "'%s'", key) : 0;
}

/* The processes that begin one job together. */
static int group(const struct json_value *v, struct node_job *ret, uw_error *err)
{
    int r = text(v, "group", JOB_GROUP - 1, &ret->reg.group, err);

    if (r == 0)
        r = number(v, "job", 1, INT64_MAX, &ret->before, err);
    if (r < 0)
        return r;
    if (ret->reg.group && !*ret->reg.group)
        return fail(err, -EINVAL, "'group' is empty");
    if (given(v, "job") && !ret->reg.group)
        return fail(err, -EINVAL, "'job' needs a 'group'");
    if (ret->reg.group && (ret->reg.source != JOB_RUN || !ret->reg.pid))
        return fail(err, -EINVAL, "'group' needs source 'run' and a 'pid'");
    return 0;
}

int body_job(const struct json_value *v, uid_t uid, struct node *node,
             struct body_job *ret, uw_error *err)
{
    static const char *const keys[] = {
        "name", "source", "gpus",   "default_gpus", "pid",   "uid",     "labels",
        "goal", "cap",    "preset", "class",        "group", "command", "default_goal",
        "job",  NULL};
    struct body_job j = {.ask = {.reg = {.name = ""}, .page_fd = -1}};
    uint64_t other = uid;
    int r = only(v, keys, err);

    if (r == 0)
        r = text(v, "name", JOB_NAME - 1, &j.ask.reg.name, err);
    if (r == 0)
        r = source(v, &j.ask.reg.source, err);
    if (r == 0)
        r = pid(v, &j.ask.reg.pid, err);
    if (r == 0)
        r = number(v, "uid", 0, UINT32_MAX - 1, &other, err);
    if (r == 0)
        r = labels(v, j.label, &j.ask.reg.n_labels, err);
    if (r == 0)
        r = wish(v, &j.ask, err);
    if (r == 0)
        r = text(v, "class", 63, &j.ask.cls, err);
    if (r == 0)
        r = text(v, "command", 127, &j.ask.command, err);
    if (r == 0)
        r = group(v, &j.ask, err);
    if (r == 0)
        r = boards(v, node, &j.ask.reg, err);
    if (r < 0)
        return r;
    j.ask.reg.uid = (uid_t)other;
    j.has_uid = given(v, "uid");
    *ret = j;
    ret->ask.reg.label = ret->label;
    return 0;
}

static int minors(const struct json_value *v, struct scheduler_ask *ret, uw_error *err)
{
    const struct json_value *list = json_get(v, "gpu_minors");
    size_t n = json_count(list);
    uint64_t minor = 0;

    if (!json_is_list(list) || n > SCHEDULER_MINORS)
        return fail(err, -EINVAL,
                    "'gpu_minors' must be a list of 0 to %d numbers of device files",
                    SCHEDULER_MINORS);
    for (size_t i = 0; i < n; i++) {
        if (!json_as_u64(json_at(list, i), &minor) || minor > UINT32_MAX)
            return fail(err, -EINVAL, "'gpu_minors' must list numbers: [0, 1]");
        ret->minor[i] = (uint32_t)minor;
    }
    ret->n_minors = n;
    return 0;
}

/* The text of "cap", "preset" or "goal", if any; the node checks whether it can be met.
 */
static int scheduler_wish(const struct json_value *v, char ret[JOB_ASK], uw_error *err)
{
    static const char *const keys[] = {"cap", "preset", "goal"};
    const char *key = NULL, *got = "";

    ret[0] = '\0';
    for (size_t i = 0; i < n_elements(keys); i++) {
        if (!given(v, keys[i]))
            continue;
        if (key)
            return fail(err, -EINVAL, "'%s' and '%s' exclude each other", key, keys[i]);
        key = keys[i];
    }
    int r = key ? text(v, key, SCHEDULER_WISH, &got, err) : 0;
    if (r == 0 && key && !*got)
        r = fail(err, -EINVAL, "'%s' is empty", key);
    if (r == 0 && key)
        (void)snprintf(ret, JOB_ASK, "%s %s", key, got);
    return r;
}

int body_scheduler(const struct json_value *v, struct body_scheduler *ret, uw_error *err)
{
    static const char *const keys[] = {"uid",          "gpu_minors", "labels", "class",
                                       "time_limit",   "cap",        "preset", "goal",
                                       "unknown_gpus", NULL};
    struct body_scheduler b = {.ask = {.n_minors = 0}};
    uint64_t uid = 0;
    int r = only(v, keys, err);

    if (r == 0 && !given(v, "uid"))
        r = fail(err, -EINVAL, "'uid' is missing: the owner of the job");
    if (r == 0)
        r = number(v, "uid", 0, UINT32_MAX - 1, &uid, err);
    if (r == 0)
        r = minors(v, &b.ask, err);
    if (r == 0)
        r = labels(v, b.label, &b.ask.reg.n_labels, err);
    if (r == 0)
        r = text(v, "class", JOB_CLASS - 1, &b.ask.cls, err);
    if (r == 0)
        r = duration(v, "time_limit", &b.ask.limit_ns, err);
    if (r == 0)
        r = scheduler_wish(v, b.wish, err);
    if (r == 0)
        r = text(v, "unknown_gpus", SCHEDULER_WHY, &b.ask.unknown, err);
    if (r == 0 && b.ask.unknown && (b.ask.n_minors > 0 || b.wish[0]))
        r = fail(err, -EINVAL,
                 "'unknown_gpus' and a GPU, cap, preset or goal exclude each other");
    if (r < 0)
        return r;
    b.ask.reg.uid = (uid_t)uid;
    *ret = b;
    ret->ask.reg.label = ret->label;
    ret->ask.ask = ret->wish;
    return 0;
}

int body_facts(const struct json_value *v, struct body_facts *ret, uw_error *err)
{
    static const char *const keys[] = {"uid", "labels", "time_limit", "for", NULL};
    struct body_facts b = {.facts = {.n_labels = 0}};
    uint64_t uid = 0;
    int r = only(v, keys, err);

    b.facts.has_uid = given(v, "uid");
    if (r == 0)
        r = number(v, "uid", 0, UINT32_MAX - 1, &uid, err);
    b.facts.uid = (uid_t)uid;
    if (r == 0)
        r = labels(v, b.label, &b.facts.n_labels, err);
    if (r == 0)
        r = duration(v, "time_limit", &b.facts.limit_ns, err);
    if (r == 0)
        r = duration(v, "for", &b.facts.for_ns, err);
    if (r == 0 && b.facts.for_ns > FACTS_FOR_MAX_S * NS_PER_S)
        r = fail(err, -ERANGE, "'for': %d s at most", FACTS_FOR_MAX_S);
    if (r < 0)
        return r;
    *ret = b;
    ret->facts.label = ret->label;
    return 0;
}

int body_goal(const struct json_value *v, struct goal *ret, bool *ret_has, uw_error *err)
{
    static const char *const keys[] = {"goal", NULL};
    const char *goal = NULL;
    int r = only(v, keys, err);

    if (r == 0 && !given(v, "goal"))
        r = fail(err, -EINVAL, "'goal' is missing: a goal, or null for none");
    if (r < 0)
        return r;
    if (json_is_none(json_get(v, "goal"))) {
        *ret_has = false;
        return 0;
    }
    r = text(v, "goal", GOAL_TEXT_MAX - 1, &goal, err);
    if (r == 0)
        r = goal_parse(goal, ret, err) < 0 ? fail_in(err, -EINVAL, "'goal'") : 0;
    if (r == 0)
        *ret_has = true;
    return r;
}

int body_release(const struct json_value *v, uint64_t *ret_ns, uw_error *err)
{
    static const char *const keys[] = {"for", NULL};
    uint64_t ns = 0;
    int r = only(v, keys, err);

    if (r == 0)
        r = end(v, &ns, err);
    if (r == 0)
        *ret_ns = ns;
    return r;
}

/* ---- windows ---- */

static int window_stopped(const struct json_value *v, uint64_t *ret_id,
                          uint64_t *ret_at_ns, uw_error *err)
{
    static const char *const keys[] = {"id", "at_ns", NULL};
    int r = only(v, keys, err);

    if (r == 0 && !(given(v, "id") && given(v, "at_ns")))
        r = fail(err, -EINVAL, "'stopped': each has 'id' and 'at_ns'");
    if (r == 0)
        r = number(v, "id", 1, INT64_MAX, ret_id, err);
    return r < 0 ? r : number(v, "at_ns", 1, INT64_MAX, ret_at_ns, err);
}

/* The list of that key, and its length. */
static int windows_list(const struct json_value *v, const char *key,
                        const struct json_value **ret, size_t *ret_n, uw_error *err)
{
    *ret = json_get(v, key);
    *ret_n = json_count(*ret);
    if (given(v, key) && (*ret_n == 0 || *ret_n > BODY_WINDOWS_MAX))
        return fail(err, -EINVAL, "'%s' must be a list of 1 to %d windows", key,
                    BODY_WINDOWS_MAX);
    return 0;
}

int body_windows(const struct json_value *v, struct body_windows *ret, uw_error *err)
{
    static const char *const keys[] = {"stopped", "done", NULL};
    const struct json_value *stopped = NULL, *done = NULL;
    struct body_windows b = {.n_done = 0};
    int r = only(v, keys, err);

    if (r == 0)
        r = windows_list(v, "stopped", &stopped, &b.n_stopped, err);
    if (r == 0)
        r = windows_list(v, "done", &done, &b.n_done, err);
    for (size_t i = 0; i < b.n_stopped && r == 0; i++)
        r = window_stopped(json_at(stopped, i), &b.stopped[i].id, &b.stopped[i].at_ns,
                           err);
    for (size_t i = 0; i < b.n_done && r == 0; i++)
        if (!json_as_u64(json_at(done, i), &b.done[i]) || b.done[i] == 0)
            r = fail(err, -EINVAL, "'done' must list ids of windows");
    if (r == 0)
        *ret = b;
    return r;
}

int body_window_end(const struct json_value *v, struct body_window_end *ret,
                    uw_error *err)
{
    static const char *const keys[] = {"at_ns", "wait_s", "keep", NULL};
    struct body_window_end b = {.has_wait = given(v, "wait_s")};
    int r = only(v, keys, err);

    if (r == 0)
        r = number(v, "at_ns", 1, INT64_MAX, &b.at_ns, err);
    if (r == 0 && b.has_wait)
        r = json_get_double(v, "wait_s", &b.wait_s, err);
    if (r == 0 && !(b.wait_s >= 0 && b.wait_s <= BODY_WAIT_MAX_S))
        r = fail(err, -ERANGE, "'wait_s': %g is outside 0..%d", b.wait_s,
                 BODY_WAIT_MAX_S);
    if (r == 0 && given(v, "keep"))
        r = json_get_bool(v, "keep", &b.keep, err);
    if (r == 0)
        *ret = b;
    return r;
}

/* ---- signals from outside ---- */

static int signal_value(const struct json_value *v, struct signal_value *ret,
                        uw_error *err)
{
    const struct json_value *value = json_get(v, "value");
    const char *got = "";

    *ret = (struct signal_value){.type = POLICY_NUMBER};
    if (json_as_double(value, &ret->number))
        return 0;
    ret->type = POLICY_TRUTH;
    if (json_as_bool(value, &ret->truth))
        return 0;
    ret->type = POLICY_TEXT;
    int r = given(v, "value") && !json_as_text(value)
                ? fail(err, -EINVAL, "'value' is not a number, text, true or false")
                : text(v, "value", sizeof ret->text - 1, &got, err);
    if (r == 0 && !*got)
        r = fail(err, -EINVAL, "'value' is missing or empty");
    if (r == 0)
        (void)snprintf(ret->text, sizeof ret->text, "%s", got);
    return r;
}

int body_signal(const struct json_value *v, struct node_signal *ret, uw_error *err)
{
    static const char *const keys[] = {"value", "unit", "for", "source", NULL};
    struct node_signal s = {.unit = "", .source = ""};
    int r = only(v, keys, err);

    if (r == 0)
        r = signal_value(v, &s.value, err);
    if (r == 0)
        r = text(v, "unit", SIGNAL_UNIT - 1, &s.unit, err);
    if (r == 0 && s.unit[0] && s.value.type != POLICY_NUMBER)
        r = fail(err, -EINVAL, "'unit' needs a number as value");
    if (r == 0)
        r = duration(v, "for", &s.for_ns, err);
    if (r == 0)
        r = text(v, "source", SIGNAL_WATCHER - 1, &s.source, err);
    if (r == 0)
        *ret = s;
    return r;
}

/* ---- policies ---- */

int body_policy(const struct json_value *v, const char **ret, uw_error *err)
{
    static const char *const keys[] = {"policy", NULL};
    int r = only(v, keys, err);

    if (r == 0 && !given(v, "policy"))
        r = fail(err, -EINVAL, "'policy' is missing: the text of the file");
    if (r == 0)
        r = json_get_text(v, "policy", ret, err);
    if (r == 0 && strlen(*ret) > POLICY_FILE_MAX)
        r = fail(err, -EINVAL, "'policy': larger than %d bytes", POLICY_FILE_MAX);
    return r;
}
