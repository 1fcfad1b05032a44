/* What the configuration names on this machine: is it there? */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/error.h"
#include "config/config.h"

#define AT(field) offsetof(struct node_config, field)

/* A path that is named. */
struct named {
    const char *key;
    size_t at;
    mode_t kind;
    const char *without; /* what follows if it is missing; NULL: an error */
    bool logged;         /* by the part that uses it */
    bool tcp;            /* needed for TCP alone */
};

/* clang-format off */
static const struct named paths[] = {
    {"boards.library", AT(boards.library), S_IFREG, NULL, false, false},
    {"boards.powercap", AT(boards.powercap), S_IFDIR, NULL, false, false},
    {"api.tcp.certificate", AT(api.tcp.certificate), S_IFREG, NULL, false, true},
    {"api.tcp.key", AT(api.tcp.key), S_IFREG, NULL, false, true},
    {"accounting.market", AT(accounting.market), S_IFREG, "reports have no contracts", true, false},
    {"policy.file", AT(policy_file), S_IFREG, "no rule acts", false, false},
    {"actuator.socket", AT(actuator_socket), S_IFSOCK, "no limit can be set before it exists", true, false},
    {"metrics.hpc_job_mapping_dir", AT(metrics.hpc_dir), S_IFDIR, NULL, false, false},
};
/* clang-format on */

static const char *kind_word(mode_t kind)
{
    return kind == S_IFDIR ? "directory" : kind == S_IFREG ? "regular file" : "socket";
}

static int look_at(const struct named *n, const char *path, bool hidden, uw_error *err)
{
    const char *shown = hidden ? "" : path, *sep = hidden ? "" : ": ";
    struct stat st;

    if (stat(path, &st) < 0)
        return fail(err, -errno, "%s%s%.100s: %s", n->key, sep, shown, strerror(errno));
    if ((st.st_mode & S_IFMT) != n->kind)
        return fail(err, n->kind == S_IFDIR ? -ENOTDIR : -EINVAL, "%s%s%.100s: not a %s",
                    n->key, sep, shown, kind_word(n->kind));
    return 0;
}

static void warn_of(const struct named *n, const uw_error *why, config_warn_fn fn,
                    void *user)
{
    char text[2 * sizeof why->text];

    (void)snprintf(text, sizeof text, "%s%s%s", why->text, n->without ? ": " : "",
                   n->without ? n->without : "");
    fn(text, n->logged, user);
}

static int look_at_paths(const struct node_config *c, const struct node_config *defaults,
                         bool hidden, config_warn_fn fn, void *user, uw_error *err)
{
    for (size_t i = 0; i < n_elements(paths); i++) {
        const struct named *n = &paths[i];
        const char *path = (const char *)c + n->at;
        uw_error why = {""};

        if (!path[0] || strcmp(path, (const char *)defaults + n->at) == 0 ||
            (n->tcp && !c->api.tcp.listen[0]))
            continue;
        int r = look_at(n, path, hidden, &why);
        if (r < 0 && !n->without && r != -EACCES) /* the daemon's user may find it */
            return fail(err, r, "%s", why.text);
        if (r < 0)
            warn_of(n, &why, fn, user);
    }
    return 0;
}

static void look_at_group(const char *name, const char *usual, bool hidden,
                          config_warn_fn fn, void *user)
{
    char text[160];

    if (!name[0] || strcmp(name, usual) == 0 || getgrnam(name))
        return;
    if (hidden)
        (void)snprintf(text, sizeof text,
                       "node.admin_group: no such group: only root has its rights");
    else
        (void)snprintf(
            text, sizeof text,
            "node.admin_group: there is no group '%s': only root has its rights", name);
    fn(text, false, user);
}

int node_config_look(const struct node_config *config, const char *world, bool hidden,
                     config_warn_fn fn, void *user, uw_error *err)
{
    struct node_config defaults;
    int r = node_config_init(&defaults, world, err);

    if (r < 0)
        return r;
    look_at_group(config->node.admin_group, defaults.node.admin_group, hidden, fn, user);
    return look_at_paths(config, &defaults, hidden, fn, user, err);
}
