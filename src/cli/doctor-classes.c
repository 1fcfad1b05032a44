#include "cli/doctor-classes.h"

#include <stdio.h>
#include <string.h>

#include "cli/daemon.h"
#include "cli/take.h"

void doctor_classes_ask(const struct cli_env *env, const char *boards,
                        struct doctor_classes *ret)
{
    auto_(httpc_free) struct httpc *c = NULL;
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    *ret = (struct doctor_classes){0};
    if (daemon_open(env, boards, &c, &err) != 0 ||
        httpc_ask(c, "GET", "/v1/policy", NULL, &doc, &err) < 0)
        return;
    const struct json_value *v = json_root(doc), *list = json_get(v, "classes");
    ret->n = json_count(list);
    /* Older daemons report none; each daemon has "default". */
    if (ret->n == 0 || ret->n > DOCTOR_CLASSES_MAX)
        return;
    for (size_t i = 0; i < ret->n; i++) {
        const char *name = json_as_text(json_at(list, i));
        (void)snprintf(ret->name[i], sizeof ret->name[i], "%s", name ? name : "");
    }
    take_copy(v, "file", ret->file, sizeof ret->file);
    ret->in_force = take_bool(v, "in_force");
    ret->refused = *take_text(v, "error") != '\0';
    ret->told = true;
}

static bool is_known(const struct doctor_classes *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->name[i], name) == 0)
            return true;
    return false;
}

static void propose(const struct doctor_slurm *s, const struct doctor_classes *c,
                    const char *name, struct findings *ret)
{
    if (c->refused)
        finding_remedy(ret,
                       "the policy's file was refused: sudo underwatt policy check %s; "
                       "sudo systemctl reload underwattd",
                       c->file);
    else if (c->in_force)
        finding_remedy(
            ret,
            "add '- {name: \"%s\", match: {label: {underwatt.class: \"%s\"}}}' "
            "to classes in %s; sudo systemctl reload underwattd; or remove "
            "the line from %s",
            name, name, c->file, s->boards);
    else
        finding_remedy(ret,
                       "add '\"%s\": {}' to caps.classes in underwattd.yaml; sudo "
                       "systemctl reload underwattd; or remove the line from %s",
                       name, s->boards);
}

void doctor_classes_judge(const struct doctor_slurm *s, const struct doctor_classes *c,
                          struct findings *ret)
{
    const struct table *t = &s->table;

    for (size_t i = 0; c->told && i < t->n_classes; i++) {
        if (is_known(c, t->cls[i]))
            continue;
        finding_add(ret, "slurm", FINDING_WARN,
                    "class '%s' of %s is in neither the policy in force nor caps.classes "
                    "of underwattd.yaml: jobs that ask for it have no class here",
                    t->cls[i], s->boards);
        propose(s, c, t->cls[i], ret);
    }
}
