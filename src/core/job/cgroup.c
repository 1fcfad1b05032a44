#include "core/job/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/names.h"

enum { PARTS_MAX = 24, CONTAINER_LEAST = 12, CONTAINER_MOST = 64, POD_UID = 36 };

struct text {
    const char *p;
    size_t n;
};

static bool is(struct text t, const char *word)
{
    return t.n == strlen(word) && memcmp(t.p, word, t.n) == 0;
}

static bool cut_prefix(struct text *t, const char *prefix)
{
    size_t n = strlen(prefix);

    if (t->n < n || memcmp(t->p, prefix, n) != 0)
        return false;
    *t = (struct text){t->p + n, t->n - n};
    return true;
}

static bool cut_suffix(struct text *t, const char *suffix)
{
    size_t n = strlen(suffix);

    if (t->n < n || memcmp(t->p + t->n - n, suffix, n) != 0)
        return false;
    t->n -= n;
    return true;
}

static void copy(char *ret, size_t size, struct text t)
{
    size_t n = t.n < size ? t.n : size - 1;

    memcpy(ret, t.p, n);
    ret[n] = '\0';
}

static bool all_digits(struct text t, size_t most)
{
    if (t.n == 0 || t.n > most)
        return false;
    for (size_t i = 0; i < t.n; i++)
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
    return true;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_container(struct text t)
{
    if (t.n < CONTAINER_LEAST || t.n > CONTAINER_MOST)
        return false;
    for (size_t i = 0; i < t.n; i++)
        if (!is_hex(t.p[i]))
            return false;
    return true;
}

static bool read_uid(struct text t, struct cgroup_job *ret)
{
    uint64_t uid = 0;

    if (!all_digits(t, 10))
        return false;
    for (size_t i = 0; i < t.n; i++)
        uid = uid * 10 + (uint64_t)(t.p[i] - '0');
    if (uid > UINT32_MAX)
        return false;
    ret->has_uid = true;
    ret->uid = (uint32_t)uid;
    return true;
}

/* Whether t is safe in names in logs, labels and files. */
static bool is_plain(struct text t)
{
    if (t.n == 0 || t.n >= CGROUP_ID)
        return false;
    for (size_t i = 0; i < t.n; i++) {
        char c = t.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.' &&
            c != '@' && c != ':')
            return false;
    }
    return true;
}

/* ---- the path's parts ---- */

struct path {
    struct text part[PARTS_MAX];
    size_t n;
};

static void split(struct text t, struct path *ret)
{
    ret->n = 0;
    while (t.n > 0) {
        const char *slash = memchr(t.p, '/', t.n);
        size_t n = slash ? (size_t)(slash - t.p) : t.n;
        if (n > 0 && ret->n < PARTS_MAX)
            ret->part[ret->n++] = (struct text){t.p, n};
        t = slash ? (struct text){slash + 1, t.n - n - 1} : (struct text){t.p, 0};
    }
}

/* ---- Slurm ---- */

/* v1: /slurm/uid_1000/job_42/step_0/task_1, or /slurm_NODE/…;
 * v2: /system.slice/slurmstepd.scope/job_42/step_0/user, or NODE_slurmstepd.scope.
 */
static size_t slurm_root(const struct path *p, struct cgroup_job *ret)
{
    if (p->n < 2)
        return 0;
    struct text first = p->part[0], second = p->part[1], rest = first;
    if (is(first, "slurm") || cut_prefix(&rest, "slurm_")) {
        if (!cut_prefix(&second, "uid_") || !read_uid(second, ret))
            return 0;
        return 2;
    }
    if (!is(first, "system.slice") || !cut_suffix(&second, "slurmstepd.scope"))
        return 0;
    return second.n == 0 || second.p[second.n - 1] == '_' ? 2 : 0;
}

static bool slurm(const struct path *p, struct cgroup_job *ret)
{
    size_t at = slurm_root(p, ret);

    if (at == 0 || at >= p->n)
        return false;
    struct text job = p->part[at];
    if (!cut_prefix(&job, "job_") || !all_digits(job, 10))
        return false;
    copy(ret->id, sizeof ret->id, job);
    if (at + 1 < p->n) {
        struct text step = p->part[at + 1];
        if (cut_prefix(&step, "step_") && is_plain(step) && step.n < sizeof ret->step)
            copy(ret->step, sizeof ret->step, step);
    }
    ret->kind = CGROUP_SLURM;
    return true;
}

/* ---- containers ---- */

static bool container(struct text t, enum cgroup_kind *ret_kind, struct text *ret_id)
{
    static const struct {
        const char *prefix;
        enum cgroup_kind kind;
    } kinds[] = {
        {"docker-", CGROUP_DOCKER},
        {"libpod-", CGROUP_PODMAN},
        {"cri-containerd-", CGROUP_KUBERNETES},
        {"crio-", CGROUP_KUBERNETES},
    };

    if (!cut_suffix(&t, ".scope"))
        return false;
    for (size_t i = 0; i < n_elements(kinds); i++) {
        struct text id = t;
        if (cut_prefix(&id, kinds[i].prefix) && is_container(id)) {
            *ret_kind = kinds[i].kind;
            *ret_id = id;
            return true;
        }
    }
    return false;
}

/* "4b9f…-…", with '_' for '-' in systemd units; 32 hex digits for a static pod. */
static bool pod_uid(struct text t, char ret[static CGROUP_ID])
{
    size_t dashes = 0;

    if (t.n != POD_UID && t.n != POD_UID - 4)
        return false;
    for (size_t i = 0; i < t.n; i++) {
        char c = t.p[i];
        if (c == '_')
            c = '-';
        dashes += c == '-';
        if (c != '-' && !is_hex(c))
            return false;
        ret[i] = c;
    }
    ret[t.n] = '\0';
    return dashes == (t.n == POD_UID ? 4 : 0);
}

/* "pod4b9f…" (cgroupfs), "kubepods-besteffort-pod4b9f….slice" (systemd, also with the
 * prefix "kubelet-"), followed by ":cri-containerd:ID" if containerd has no unit.
 */
static bool pod(struct text t, struct cgroup_job *ret)
{
    const char *colon = memchr(t.p, ':', t.n);
    struct text after = {t.p, 0};

    if (colon) {
        after = (struct text){colon + 1, (size_t)(t.p + t.n - colon - 1)};
        t.n = (size_t)(colon - t.p);
    }
    if (cut_suffix(&t, ".slice")) {
        (void)cut_prefix(&t, "kubelet-");
        if (!cut_prefix(&t, "kubepods-"))
            return false;
        if (!cut_prefix(&t, "besteffort-"))
            (void)cut_prefix(&t, "burstable-");
    }
    if (!cut_prefix(&t, "pod") || !pod_uid(t, ret->id))
        return false;
    if ((cut_prefix(&after, "cri-containerd:") || cut_prefix(&after, "crio:")) &&
        is_container(after))
        copy(ret->container, sizeof ret->container, after);
    return true;
}

static bool is_kubepods(struct text t)
{
    (void)cut_suffix(&t, ".slice");
    (void)cut_prefix(&t, "kubelet-");
    return is(t, "kubepods");
}

static bool kubernetes(const struct path *p, struct cgroup_job *ret)
{
    bool inside = false;

    for (size_t i = 0; i < p->n; i++) {
        struct text part = p->part[i];
        inside |= is_kubepods(part) || memchr(part.p, ':', part.n) != NULL;
        if (!inside || !pod(part, ret))
            continue;
        ret->kind = CGROUP_KUBERNETES;
        if (i + 1 < p->n) {
            enum cgroup_kind kind;
            struct text id = p->part[i + 1];
            if (is_container(id) || container(p->part[i + 1], &kind, &id))
                copy(ret->container, sizeof ret->container, id);
        }
        return true;
    }
    return false;
}

/* The innermost container: /docker/ID, …/docker-ID.scope, …/libpod-ID.scope. */
static bool plain_container(const struct path *p, struct cgroup_job *ret)
{
    for (size_t i = p->n; i-- > 0;) {
        enum cgroup_kind kind = CGROUP_DOCKER;
        struct text id = p->part[i], parent = i > 0 ? p->part[i - 1] : id;
        bool bare = i > 0 && is_container(id) &&
                    (is(parent, "docker") || is(parent, "libpod_parent"));
        if (bare && is(parent, "libpod_parent"))
            kind = CGROUP_PODMAN;
        if (!bare && !container(p->part[i], &kind, &id))
            continue;
        if (kind == CGROUP_KUBERNETES) /* without a pod in the path: the pod is unknown */
            continue;
        ret->kind = kind;
        copy(ret->id, sizeof ret->id, id);
        return true;
    }
    return false;
}

/* ---- systemd ---- */

/* /user.slice/user-1000.slice/session-3.scope,
 * /user.slice/user-1000.slice/user@1000.service/app.slice/app-foo.scope
 */
static bool users_slice(const struct path *p)
{
    return p->n > 0 && is(p->part[0], "user.slice");
}

static bool unit_of(struct text t, struct text *ret)
{
    if (!cut_suffix(&t, ".scope") && !cut_suffix(&t, ".service"))
        return false;
    *ret = t;
    return is_plain(t);
}

static void session(const struct path *p, struct cgroup_job *ret)
{
    struct text uid = p->n > 1 ? p->part[1] : p->part[0], unit;

    if (cut_prefix(&uid, "user-") && cut_suffix(&uid, ".slice"))
        (void)read_uid(uid, ret);
    for (size_t i = p->n; i-- > 2;) {
        if (unit_of(p->part[i], &unit)) {
            ret->kind = CGROUP_SESSION;
            copy(ret->id, sizeof ret->id, unit);
            return;
        }
    }
}

static void service(const struct path *p, struct cgroup_job *ret)
{
    struct text unit;

    if (p->n < 2 || !is(p->part[0], "system.slice"))
        return;
    for (size_t i = p->n; i-- > 1;) {
        if (unit_of(p->part[i], &unit)) {
            ret->kind = CGROUP_SERVICE;
            copy(ret->id, sizeof ret->id, unit);
            return;
        }
    }
}

/* ---- all kinds ---- */

static void parse_path(struct text t, struct cgroup_job *ret)
{
    struct path p;
    struct cgroup_job job = {0};

    split(t, &p);
    if (users_slice(&p)) {
        if (!plain_container(&p, &job))
            session(&p, &job);
    } else if (!slurm(&p, &job)) {
        job = (struct cgroup_job){0};
        if (!kubernetes(&p, &job)) {
            job = (struct cgroup_job){0};
            if (!plain_container(&p, &job))
                service(&p, &job);
        }
    }
    *ret = job;
}

/* "4:memory:/a/b" or "/a/b": the part after the second colon. */
static struct text path_of(struct text line)
{
    if (line.n == 0 || line.p[0] == '/')
        return line;
    for (int i = 0; i < 2; i++) {
        const char *colon = memchr(line.p, ':', line.n);
        if (!colon)
            return (struct text){line.p, 0};
        line = (struct text){colon + 1, (size_t)(line.p + line.n - colon - 1)};
    }
    return line;
}

void cgroup_parse(const char *text, size_t n, struct cgroup_job *ret)
{
    struct text rest = {text, n};
    struct cgroup_job best = {0};

    while (rest.n > 0) {
        const char *end = memchr(rest.p, '\n', rest.n);
        struct text line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        struct cgroup_job job = {0};
        size_t used = line.n + (end != NULL);

        parse_path(path_of(line), &job);
        if (job.kind > best.kind ||
            (job.kind == best.kind && !best.step[0] && !best.container[0]))
            best = job;
        rest = (struct text){rest.p + used, rest.n - used};
    }
    *ret = best;
}

const char *cgroup_name(const struct cgroup_job *job, char *ret, size_t size)
{
    int most = job->kind == CGROUP_DOCKER || job->kind == CGROUP_PODMAN ? CONTAINER_LEAST
                                                                        : CGROUP_ID;

    if (size == 0)
        return ret;
    ret[0] = '\0';
    if (job->kind != CGROUP_NONE)
        (void)snprintf(ret, size, "%s:%.*s", names_word(NAMES_CGROUP, job->kind), most,
                       job->id);
    return ret;
}

bool cgroup_is_name(const char *name)
{
    for (enum cgroup_kind k = CGROUP_PODMAN; k <= CGROUP_SLURM; k++) {
        const char *word = names_word(NAMES_CGROUP, k);
        size_t n = strlen(word);
        if (strncmp(name, word, n) == 0 && name[n] == ':')
            return true;
    }
    return false;
}
