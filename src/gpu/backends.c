#include "gpu/backends.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "gpu/choice.h"
#include "gpu/counters.h"
#include "gpu/library.h"
#include "gpu/nvml/nvml.h"
#include "gpu/rapl/rapl.h"
#include "gpu/replay/replay.h"

const struct gpu_backend_row *const gpu_backends[] = {
    &nvml_row,
    &rapl_row,
    &replay_row,
    NULL,
};
_Static_assert(n_elements(gpu_backends) <= GPU_BACKENDS_MAX + 1, "room for each row");

/* ---- a boards text ---- */

static int find_name(const char *name, size_t *ret, uw_error *err)
{
    char known[160] = "";

    for (size_t i = 0; gpu_backends[i]; i++) {
        const char *is = gpu_backends[i]->backend->name;
        if (strcmp(is, name) == 0) {
            *ret = i;
            return 0;
        }
        (void)snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                       i ? ", " : "", is);
    }
    return fail(err, -EINVAL, "'%.80s' is neither a backend (%s) nor an absolute path",
                name, known);
}

/* The backend for an absolute path without a name. */
static size_t first_of(enum gpu_role role)
{
    for (size_t i = 0; gpu_backends[i]; i++)
        if (gpu_backends[i]->role == role && !gpu_backends[i]->asked_alone)
            return i;
    return 0; /* not reached: tests/unit/gpu/test-backends.c checks all roles */
}

static int parse_entry(char *entry, enum gpu_role role, struct gpu_choice *c,
                       uw_error *err)
{
    char *source = entry[0] == '/' ? entry : strchr(entry, '=');
    size_t i = first_of(role);

    if (source && source != entry)
        *source++ = '\0';
    int r = source == entry ? 0 : find_name(entry, &i, err);
    if (r < 0)
        return r;
    const char *name = gpu_backends[i]->backend->name;
    if (c->named[i])
        return fail(err, -EINVAL, "%s is named twice", name);
    if (source ? !*source : gpu_backends[i]->asked_alone)
        return fail(err, -EINVAL, "%s needs a source: %s=PATH", name, name);
    c->named[i] = true;
    c->source[i] = source;
    return 0;
}

int gpu_choice_parse(const char *text, enum gpu_role role, struct gpu_choice *ret,
                     uw_error *err)
{
    char *rest = ret->text, *entry;
    int n = snprintf(ret->text, sizeof ret->text, "%s", text ? text : "");
    int r = 0;

    if (n < 0 || (size_t)n >= sizeof ret->text)
        return fail(err, -EINVAL, "more than %zu bytes", sizeof ret->text - 1);
    memset(ret->named, 0, sizeof ret->named);
    memset(ret->source, 0, sizeof ret->source);
    while (n > 0 && r == 0 && (entry = strsep(&rest, ",")) != NULL)
        r = parse_entry(entry, role, ret, err);
    return r;
}

bool gpu_choice_has(const struct gpu_choice *c, size_t i)
{
    const struct gpu_backend_row *row = gpu_backends[i];

    for (size_t k = 0; gpu_backends[k]; k++)
        if (c->named[k] && gpu_backends[k]->role == row->role)
            return c->named[i];
    return !row->asked_alone;
}

/* Checks a trace, whose path may be relative.  A privileged process needs a trusted path,
 * because the daemon creates a folder beside the trace.
 */
static int check_file(const char *source, bool privileged, char real[PATH_MAX],
                      uw_error *err)
{
    char path[PATH_MAX];

    if (!realpath(source, path))
        return fail(err, -errno, "%s: %s", source, strerror(errno));
    return gpu_library_check(path, privileged, real, PATH_MAX, err);
}

static int check_source(const struct gpu_backend_row *row, const char *source,
                        bool privileged, char real[PATH_MAX], uw_error *err)
{
    switch (row->source) {
    case GPU_SOURCE_FOLDER:
        return gpu_folder_check(source, privileged ? 0 : geteuid(), real, PATH_MAX, err);
    case GPU_SOURCE_FILE:
        return check_file(source, privileged, real, err);
    case GPU_SOURCE_LIBRARY:
        break;
    }
    return gpu_library_check(source, privileged, real, PATH_MAX, err);
}

int gpu_boards_check(const char *text, bool privileged, char *ret, size_t size,
                     uw_error *err)
{
    struct gpu_choice c;
    char real[PATH_MAX];
    size_t at = 0;

    int r = gpu_choice_parse(text, GPU_ROLE_ACCELERATOR, &c, err);
    if (r == 0 && size > 0)
        *ret = '\0';
    for (size_t i = 0; r == 0 && gpu_backends[i]; i++) {
        const struct gpu_backend_row *row = gpu_backends[i];
        if (!c.named[i])
            continue;
        real[0] = '\0';
        if (c.source[i])
            r = check_source(row, c.source[i], privileged, real, err);
        if (r < 0)
            return r;
        int n = snprintf(ret + at, size - at, "%s%s%s%s", at ? "," : "",
                         row->backend->name, real[0] ? "=" : "", real);
        if (n < 0 || (size_t)n >= size - at)
            return fail(err, -ENAMETOOLONG, "%s: the path is too long", c.source[i]);
        at += (size_t)n;
    }
    return r;
}

bool gpu_processors_named(const char *text)
{
    struct gpu_choice c;
    bool named = false;

    if (gpu_choice_parse(text, GPU_ROLE_ACCELERATOR, &c, NULL) < 0)
        return false;
    for (size_t i = 0; gpu_backends[i]; i++)
        named |= c.named[i] && gpu_backends[i]->role == GPU_ROLE_PROCESSOR;
    return named;
}

const char *gpu_boards_named(char *(*get)(const char *name))
{
    const char *text = get("UNDERWATT_BOARDS");

    if (!text || !*text)
        text = get("UNDERWATT_NVML");
    return text && *text ? text : NULL;
}

int gpu_boards_look(const char *text, struct gpu_about *ret, uw_error *err)
{
    struct gpu_choice c;
    uw_error why = {""};
    int r = gpu_choice_parse(text, GPU_ROLE_ACCELERATOR, &c, err);

    if (r < 0)
        return r;
    r = GPU_ABSENT;
    for (size_t i = 0; gpu_backends[i]; i++) {
        const struct gpu_backend_row *row = gpu_backends[i];
        if (row->role != GPU_ROLE_ACCELERATOR || !gpu_choice_has(&c, i))
            continue;
        int got = row->backend->look(c.source[i], ret, &why);
        if (got == 0)
            return 0;
        if (r == GPU_ABSENT) {
            r = got;
            if (err)
                *err = why;
        }
    }
    return r;
}

/* ---- counters, job variables ---- */

void gpu_counters_open(const char *root, uid_t owner, struct gpu_counters *ret)
{
    *ret = (struct gpu_counters){.n = 0};
    for (size_t i = 0; gpu_backends[i]; i++)
        if (gpu_backends[i]->open_counters)
            gpu_backends[i]->open_counters(root, owner, ret);
}

bool gpu_counters_has_name(const char *name)
{
    for (size_t i = 0; gpu_backends[i]; i++)
        if (gpu_backends[i]->is_counter && gpu_backends[i]->is_counter(name))
            return true;
    return false;
}

void gpu_visible_read(char *(*get)(const char *name), struct gpu_visible *ret)
{
    *ret = (struct gpu_visible){.name = NULL};
    for (size_t i = 0; gpu_backends[i] && !ret->name; i++) {
        const struct gpu_job_variables *job = gpu_backends[i]->job;
        const char *list = job ? get(job->list) : NULL;
        if (list)
            *ret = (struct gpu_visible){
                .name = job->list, .list = list, .order = get(job->order), .job = job};
    }
}
