#include "actuator/rules.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "gpu/library.h"
#include "io/file.h"
#include "io/yaml.h"

#define UID_MAX 4294967294ull

struct rules rules_default(void)
{
    return (struct rules){.grace_ns = RULES_GRACE_S * NS_PER_S, .realtime = true};
}

/* The keys of the file; NULL: not given. */
struct rules_file {
    const struct yaml_node *clients, *boards, *range, *clocks;
    uint64_t grace_ns;
    bool realtime;
    const char *library, *powercap;
};

#define FIELD(field) offsetof(struct rules_file, field)
/* clang-format off */
static const struct yaml_key file_keys[] = {
    {"clients", YAML_TYPE_NODE, FIELD(clients), false, 0, 0, NULL},
    {"boards", YAML_TYPE_NODE, FIELD(boards), false, 0, 0, NULL},
    {"range", YAML_TYPE_NODE, FIELD(range), false, 0, 0, NULL},
    {"clocks", YAML_TYPE_NODE, FIELD(clocks), false, 0, 0, NULL},
    {"grace", YAML_TYPE_DURATION, FIELD(grace_ns), false, 0, RULES_GRACE_MAX_S, NULL},
    {"realtime", YAML_TYPE_BOOL, FIELD(realtime), false, 0, 0, NULL},
    {"library", YAML_TYPE_TEXT, FIELD(library), false, 0, 0, NULL},
    {"powercap", YAML_TYPE_TEXT, FIELD(powercap), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

/* The uid of a user in a file of passwd's form; false: not there. */
static bool find_user(const char *users, const char *name, uid_t *ret)
{
    FILE *file = fopen(users, "re");
    struct passwd entry;
    const struct passwd *found = NULL;
    char text[4096];
    struct passwd *p = NULL;

    while (file && !found && fgetpwent_r(file, &entry, text, sizeof text, &p) == 0)
        if (strcmp(entry.pw_name, name) == 0)
            found = &entry;
    if (found)
        *ret = found->pw_uid;
    if (file)
        (void)fclose(file);
    return found;
}

int rules_add_client(struct rules *rules, const char *text, const char *users,
                     uw_error *err)
{
    uint64_t n = 0;
    uid_t uid = 0;

    if (parse_u64(text, &n, NULL) == 0) {
        if (n > UID_MAX)
            return fail(err, -ERANGE, "%s is no uid", text);
        uid = (uid_t)n;
    } else if (!users) {
        return 0;
    } else if (!text[0] || !find_user(users, text, &uid)) {
        return fail(err, -EINVAL,
                    "there is no user '%.40s' in %s (write its uid where it lives "
                    "elsewhere)",
                    text, users);
    }
    if (rules->n_clients == RULES_CLIENTS_MAX)
        return fail(err, -E2BIG, "more than %d", RULES_CLIENTS_MAX);
    rules->client[rules->n_clients++] = uid;
    return 0;
}

static int read_client(const struct yaml_node *node, const char *users,
                       struct rules *rules, uw_error *err)
{
    const char *text = NULL;
    uw_error why = {""};

    int r = yaml_text(node, &text, err);
    if (r < 0)
        return r;
    r = rules_add_client(rules, text, users, &why);
    return r < 0 ? yaml_fail(node, err, r, "clients: %s", why.text) : 0;
}

static int read_clients(const struct yaml_node *node, const char *users,
                        struct rules *rules, uw_error *err)
{
    int r = 0;

    if (yaml_kind(node) == YAML_SCALAR)
        return read_client(node, users, rules, err);
    r = yaml_want(node, YAML_SEQ, err);
    for (size_t i = 0; r == 0 && i < yaml_count(node); i++)
        r = read_client(yaml_at(node, i), users, rules, err);
    return r;
}

/* "GPU-" and 8-4-4-4-12 hexadecimal digits, as NVML has it. */
static bool is_board(const char *text)
{
    static const char form[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t i = 0;

    for (; form[i] && text[i]; i++)
        if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
            return false;
    return form[i] == text[i];
}

static int read_board(const struct yaml_node *node, struct core_rules *rules,
                      uw_error *err)
{
    const char *text = NULL;
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    if (!is_board(text))
        return yaml_fail(node, err, -EINVAL,
                         "boards: '%.40s' is not the UUID of a board (GPU- and "
                         "8-4-4-4-12 hexadecimal digits)",
                         text);
    if (rules->n_boards == CORE_RULES_BOARDS_MAX)
        return yaml_fail(node, err, -E2BIG, "boards: more than %d",
                         CORE_RULES_BOARDS_MAX);
    char *board = rules->board[rules->n_boards++];
    (void)snprintf(board, sizeof rules->board[0], "%s", text);
    for (char *c = board + 4; *c; c++) /* as NVML writes it */
        *c = (char)tolower((unsigned char)*c);
    return 0;
}

/* "all", or a list of UUIDs: an empty list allows no board. */
static int read_boards(const struct yaml_node *node, struct core_rules *rules,
                       uw_error *err)
{
    const char *text = NULL;
    int r = 0;

    if (yaml_kind(node) == YAML_SCALAR && (r = yaml_text(node, &text, err)) == 0 &&
        strcmp(text, "all") == 0)
        return 0;
    if (r == 0 && yaml_kind(node) != YAML_SEQ)
        r = yaml_fail(node, err, -EINVAL, "boards: 'all', or a list of UUIDs");
    rules->listed = true;
    for (size_t i = 0; r == 0 && i < yaml_count(node); i++)
        r = read_board(yaml_at(node, i), rules, err);
    return r;
}

static int read_limit(const struct yaml_node *node, struct cap_arg *ret, uw_error *err)
{
    const char *text = NULL;
    struct cap_arg cap = {0};
    uw_error why = {""};
    int r = yaml_text(node, &text, err);

    if (r < 0)
        return r;
    r = parse_limit(text, &cap, &why);
    if (r < 0)
        return yaml_fail(node, err, r, "range: %s", why.text);
    *ret = cap;
    return 0;
}

struct ends {
    const struct yaml_node *from, *to;
};
static const struct yaml_key end_keys[] = {
    {"from", YAML_TYPE_NODE, offsetof(struct ends, from), false, 0, 0, NULL},
    {"to", YAML_TYPE_NODE, offsetof(struct ends, to), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};

static int read_range(const struct yaml_node *node, struct core_rules *rules,
                      uw_error *err)
{
    struct ends range = {NULL, NULL};

    int r = yaml_read_map(node, end_keys, &range, err);
    if (r == 0 && range.from)
        r = read_limit(range.from, &rules->from, err);
    if (r == 0 && range.to)
        r = read_limit(range.to, &rules->to, err);
    if (r == 0 && ((rules->from.mw && rules->to.mw && rules->from.mw > rules->to.mw) ||
                   (rules->from.percent > 0 && rules->to.percent > 0 &&
                    rules->from.percent > rules->to.percent)))
        r = yaml_fail(node, err, -ERANGE, "range: from is above to");
    return r;
}

static int read_clock(const struct yaml_node *node, uint32_t *ret, uw_error *err)
{
    const char *text = NULL;
    uw_error why = {""};

    int r = yaml_text(node, &text, err);
    if (r < 0)
        return r;
    r = parse_clock(text, ret, &why);
    return r < 0 ? yaml_fail(node, err, r, "clocks: %s", why.text) : 0;
}

/* "off", "all", or a range for the upper end of a lock. */
static int read_clocks(const struct yaml_node *node, struct core_rules *rules,
                       uw_error *err)
{
    struct ends range = {NULL, NULL};
    const char *text = NULL;
    int r = 0;

    if (yaml_kind(node) == YAML_SCALAR) {
        r = yaml_text(node, &text, err);
        rules->clocks = r == 0 && strcmp(text, "all") == 0;
        if (r == 0 && !rules->clocks && strcmp(text, "off") != 0)
            r = yaml_fail(node, err, -EINVAL,
                          "clocks: 'off', 'all', or a map of from and to");
        return r;
    }
    r = yaml_read_map(node, end_keys, &range, err);
    if (r == 0 && range.from)
        r = read_clock(range.from, &rules->clocks_from_mhz, err);
    if (r == 0 && range.to)
        r = read_clock(range.to, &rules->clocks_to_mhz, err);
    if (r == 0 && rules->clocks_to_mhz && rules->clocks_from_mhz > rules->clocks_to_mhz)
        r = yaml_fail(node, err, -ERANGE, "clocks: from is above to");
    rules->clocks = r == 0;
    return r;
}

static int read_path(const struct yaml_node *root, const char *key, const char *path,
                     char *ret, size_t size, uw_error *err)
{
    const struct yaml_node *node = yaml_get(root, key);

    if (path[0] != '/')
        return yaml_fail(node, err, -EINVAL, "%s: '%.80s' is not an absolute path", key,
                         path);
    int n = snprintf(ret, size, "%s", path);
    if (n < 0 || (size_t)n >= size)
        return yaml_fail(node, err, -EINVAL, "%s: longer than %zu bytes", key, size - 1);
    return 0;
}

static int read_document(const struct yaml *doc, const char *users, struct rules *ret,
                         uw_error *err)
{
    struct rules rules = rules_default();
    struct rules_file file = {.grace_ns = rules.grace_ns, .realtime = rules.realtime};
    const struct yaml_node *root = yaml_root(doc);

    int r = yaml_read_map(root, file_keys, &file, err);
    if (r == 0 && file.clients)
        r = read_clients(file.clients, users, &rules, err);
    if (r == 0 && file.boards)
        r = read_boards(file.boards, &rules.boards, err);
    if (r == 0 && file.range)
        r = read_range(file.range, &rules.boards, err);
    if (r == 0 && file.clocks)
        r = read_clocks(file.clocks, &rules.boards, err);
    if (r == 0 && file.library)
        r = read_path(root, "library", file.library, rules.library, sizeof rules.library,
                      err);
    if (r == 0 && file.powercap)
        r = read_path(root, "powercap", file.powercap, rules.powercap,
                      sizeof rules.powercap, err);
    rules.grace_ns = file.grace_ns;
    rules.realtime = file.realtime;
    if (r == 0)
        *ret = rules;
    return r < 0 ? r : 0;
}

int rules_read(const char *name, const char *text, size_t len, const char *users,
               struct rules *ret, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;

    int r = yaml_read(name, text, len, &doc, err);
    return r < 0 ? r : read_document(doc, users, ret, err);
}

/* Why the error quotes nothing. */
static int not_quoted(int r, uw_error *err)
{
    uw_error why = err ? *err : (uw_error){""};

    return fail(err, r, "%s (text of the file is not shown to root's caller)", why.text);
}

int rules_read_file(const char *path, bool privileged, const char *users,
                    struct rules *ret, uw_error *err)
{
    char real[PATH_MAX];
    auto_(mem_free) char *text = NULL;
    auto_(yaml_free) struct yaml *doc = NULL;
    size_t len = 0;

    int r = gpu_library_check(path, privileged, real, sizeof real, err);
    if (r == 0)
        r = file_read(real, YAML_MAX_BYTES, &text, &len, err);
    if (r == 0)
        r = privileged ? yaml_read_hidden(path, text, len, &doc, err)
                       : yaml_read(path, text, len, &doc, err);
    if (r == 0)
        r = read_document(doc, users, ret, err);
    return privileged && text && (r == -EINVAL || r == -ERANGE) ? not_quoted(r, err) : r;
}

int rules_check_file(const char *path, bool privileged, const char *users,
                     struct rules *ret, uw_error *err)
{
    char real[PATH_MAX];
    auto_(yaml_free) struct yaml *doc = NULL;
    bool hidden = false;

    int r = gpu_library_check(path, privileged, real, sizeof real, err);
    if (r == 0)
        r = yaml_read_shown(path, &doc, &hidden, err);
    if (r == 0)
        r = read_document(doc, users, ret, err);
    return r < 0 && hidden ? yaml_not_shown(r, err) : r;
}
