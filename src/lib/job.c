/* Jobs that a program registers for itself, and the page on which it reports its steps.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "jobs/page-socket.h"
#include "jobs/roster.h"
#include "lib/inside.h"

enum { JOIN_MS = 10, JOIN_TRIES = 200 };

struct uw_job {
    uw_ctx *ctx;
    uint64_t id;
    /* As registered: */
    pid_t owner; /* the job ends with this process */
    char name[JOB_NAME], goal[LIB_TEXT], cap[LIB_TEXT], cls[LIB_TEXT],
        command[LIB_COMMAND];
    char group[JOB_GROUP];
    bool read; /* the daemon reads the job's steps */
    struct label label[LABELS_MAX];
    size_t n_labels;
    uw_device **device;
    size_t n_devices;
    bool default_devices;

    int fd; /* descriptor of the page, for a daemon that was restarted */
    struct uw_progress_page *page;
    struct uw_progress_slot *slot; /* of process pid */
    pid_t pid;
    uint32_t phase; /* last phase that it reported */
};

DEFINE_AUTO(uw_job *, uw_job_free);

/* ---- its page ---- */

static int new_page(uw_job *job, uw_error *err)
{
    static const struct uw_progress_page empty = {
        .magic = {'U', 'W', 'P', 'R', 'O', 'G', 'R', '1'},
        .version = UW_PROGRESS_VERSION,
        .slots = UW_PROGRESS_SLOTS};
    void *at = MAP_FAILED;

    job->fd = memfd_create("underwatt-progress", MFD_CLOEXEC);
    if (job->fd >= 0 && ftruncate(job->fd, UW_PROGRESS_BYTES) == 0)
        at =
            mmap(NULL, UW_PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, job->fd, 0);
    if (at == MAP_FAILED)
        return fail(err, -errno, "progress page: %s", strerror(errno));
    job->page = at;
    memcpy(job->page, &empty, sizeof empty);
    return 0;
}

void uw_job_step(uw_job *job, enum uw_phase phase)
{
    pid_t pid = getpid();

    if (!job || !job->page)
        return;
    /* the first step of this process, or the first after a uw_progress_detach() */
    if (job->pid != pid || (job->slot && !lib_slot_is_of(job->slot, pid))) {
        job->slot = lib_slot(job->page, -1, pid);
        job->pid = pid;
        job->phase = UW_PHASE_UNKNOWN;
    }
    if (!job->slot)
        return;
    __atomic_store_n(&job->slot->phase, (uint32_t)phase, __ATOMIC_RELAXED);
    lib_slot_step(job->slot);
    if (job->phase != (uint32_t)phase) {
        job->phase = (uint32_t)phase;
        (void)futimens(job->fd, NULL); /* notifies the daemon: docs/progress.md */
    }
}

int lib_job_page(uw_job *job, uw_error *err)
{
    int r = job->fd < 0
                ? page_socket_take(lib_job_socket(job->ctx), job->id, &job->fd, err)
                : 0;

    return r < 0 ? r : job->fd;
}

/* ---- registration ---- */

static int keep_text(char *to, size_t size, const char *what, const char *text,
                     uw_error *err)
{
    size_t n = text ? strlen(text) : 0;

    if (n >= size)
        return fail(err, -EINVAL, "%s has %zu bytes, more than %zu", what, n, size - 1);
    if (n > 0 && !utf8_is_plain(text))
        return fail(err, -EINVAL, "%s has an invisible or control character", what);
    if (n > 0)
        memcpy(to, text, n + 1);
    return 0;
}

static int keep_labels(uw_job *job, const uw_job_options *o, uw_error *err)
{
    int r = 0;

    if (o->n_labels > LABELS_MAX)
        return fail(err, -EINVAL, "%zu labels, more than %d", o->n_labels, LABELS_MAX);
    for (size_t i = 0; i < o->n_labels && r == 0; i++) {
        const uw_label *l = &o->labels[i];
        if (!l->key || !l->key[0])
            return fail(err, -EINVAL, "label %zu has no key", i);
        r = keep_text(job->label[i].key, sizeof job->label[i].key, "a label's key",
                      l->key, err);
        if (r == 0)
            r = keep_text(job->label[i].value, sizeof job->label[i].value,
                          "a label's value", l->value, err);
        job->n_labels = i + 1;
    }
    return r;
}

static int keep_devices(uw_job *job, const uw_job_options *o, uw_error *err)
{
    if (o->n_devices == 0)
        return 0;
    job->device = calloc(o->n_devices, sizeof(uw_device *));
    if (!job->device)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < o->n_devices; i++) {
        if (!o->devices[i] || o->devices[i]->ctx != job->ctx)
            return fail(err, -EINVAL, "device %zu is NULL or another context's", i);
        job->device[i] = o->devices[i];
    }
    job->n_devices = o->n_devices;
    job->default_devices = o->default_devices != 0;
    return 0;
}

static int keep(uw_job *job, const uw_job_options *opts, uw_error *err)
{
    uw_job_options o = {.size = 0};

    if (!opts)
        return 0;
    if (opts->size == 0 || opts->size > sizeof o)
        return fail(err, -EINVAL, "uw_job_options.size is %zu: set it to %zu", opts->size,
                    sizeof o);
    memcpy(&o, opts, opts->size);
    if ((o.n_labels && !o.labels) || (o.n_devices && !o.devices))
        return fail(err, -EINVAL, "uw_job_options: a count without its array");
    if (o.goal && o.cap)
        return fail(err, -EINVAL, "goal '%s' and cap '%s' exclude each other", o.goal,
                    o.cap);
    int r = keep_text(job->name, sizeof job->name, "name", o.name, err);
    if (r == 0)
        r = keep_text(job->goal, sizeof job->goal, "goal", o.goal, err);
    if (r == 0)
        r = keep_text(job->cap, sizeof job->cap, "cap", o.cap, err);
    if (r == 0)
        r = keep_text(job->cls, sizeof job->cls, "job_class", o.job_class, err);
    if (r == 0)
        r = keep_text(job->command, sizeof job->command, "command", o.command, err);
    if (r == 0)
        r = keep_text(job->group, sizeof job->group, "group", o.group, err);
    if (r == 0)
        r = keep_labels(job, &o, err);
    return r == 0 ? keep_devices(job, &o, err) : r;
}

static void put_text(struct json_out *o, const char *key, const char *text)
{
    if (text[0])
        json_out_text(o, key, text);
}

static struct json_out *describe(const uw_job *job)
{
    struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    put_text(o, "name", job->name);
    json_out_text(o, "source", "run");
    json_out_int(o, "pid", job->owner);
    if (job->n_devices > 0) {
        json_out_array(o, job->default_devices ? "default_gpus" : "gpus");
        for (size_t i = 0; i < job->n_devices; i++)
            json_out_text(o, NULL, job->device[i]->id);
        json_out_end(o);
    }
    if (job->n_labels > 0) {
        json_out_object(o, "labels");
        for (size_t i = 0; i < job->n_labels; i++)
            json_out_text(o, job->label[i].key, job->label[i].value);
        json_out_end(o);
    }
    put_text(o, "goal", job->goal);
    put_text(o, lib_cap_is_figure(job->cap) ? "cap" : "preset", job->cap);
    put_text(o, "class", job->cls);
    put_text(o, "command", job->command);
    put_text(o, "group", job->group);
    if (job->group[0] && job->id)
        json_out_int(o, "job", (int64_t)job->id);
    json_out_end(o);
    return o;
}

enum { BEGUN = 0, JOINED = 1 };

static int register_job(uw_job *job, const struct door *door, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    bool joined = false;

    int r = door_ask(door, "POST", "/v1/jobs", describe(job), &doc, err);
    if (r < 0)
        return r;
    if (!doc || json_get_u64(json_root(doc), "id", &job->id, NULL) < 0)
        return fail(err, -EPROTO, "the daemon gave no id for the job");
    (void)json_get_bool(json_root(doc), "joined", &joined, NULL);
    return joined ? JOINED : BEGUN;
}

static void path_of(const uw_job *job, char *ret, size_t size)
{
    (void)snprintf(ret, size, "/v1/jobs/%" PRIu64, job->id);
}

/* Whether the daemon has the page of the job, by its answer. */
static bool has_page(const struct json *doc)
{
    bool page = false;

    return doc &&
           json_get_bool(json_get(json_root(doc), "search"), "page", &page, NULL) == 0 &&
           page;
}

static bool has_search(const struct json *doc)
{
    return doc && json_get(json_get(json_root(doc), "search"), "page");
}

/* The daemon reads steps only for jobs with a goal or a cap: the request of the process
 * that began the job counts, not those of processes that joined it.
 */
static int note_read(uw_job *job, int how, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    const struct door *door = NULL;
    char path[64];

    job->read = job->goal[0] || job->cap[0];
    if (how != JOINED)
        return 0;
    path_of(job, path, sizeof path);
    int r = lib_remote(job->ctx, "a job", &door, err);
    if (r == 0)
        r = door_ask(door, "GET", path, NULL, &doc, err);
    job->read = r == 0 && has_search(doc);
    return r;
}

/* Sends the page to the daemon, unless it has one whose processes live.  A job without a
 * goal has one, too: it may get a goal later, or have that of the outer job.  A failure
 * is ignored.
 */
static int give_page(const uw_job *job, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    const struct door *door = NULL;
    char path[64];

    int r =
        job->page ? page_socket_send(lib_job_socket(job->ctx), job->id, job->fd, err) : 0;
    if (r < 0 && !job->read)
        return 0;
    if (r != -EPERM)
        return r;
    path_of(job, path, sizeof path);
    if (lib_remote(job->ctx, "a job", &door, NULL) == 0 &&
        door_ask(door, "GET", path, NULL, &doc, NULL) == 0 && has_page(doc))
        return 0;
    return r;
}

/* Uses the page of the process that began the job instead of this one's own. */
static int join_page(uw_job *job, uw_error *err)
{
    int fd = -1, r = -ENODATA;

    for (int i = 0; i < JOIN_TRIES && r == -ENODATA; i++) {
        if (i > 0)
            (void)poll(NULL, 0, JOIN_MS);
        r = page_socket_take(lib_job_socket(job->ctx), job->id, &fd, err);
    }
    if (r == -ENODATA) /* that process has ended */
        return give_page(job, err);
    if (r < 0)
        return job->read ? r : 0;
    void *at = mmap(NULL, UW_PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        r = fail(err, -errno, "progress page: %s", strerror(errno));
        (void)close(fd);
        return r;
    }
    (void)munmap(job->page, UW_PROGRESS_BYTES);
    (void)close(job->fd);
    job->page = at;
    job->fd = fd;
    return 0;
}

/* The request path that ends this process's part in the job. */
static void leave_path(const uw_job *job, char *ret, size_t size)
{
    char who[24] = "";

    if (job->group[0])
        (void)snprintf(who, sizeof who, "?pid=%d", (int)job->owner);
    (void)snprintf(ret, size, "/v1/jobs/%" PRIu64 "%s", job->id, who);
}

int uw_job_begin(uw_ctx *ctx, const uw_job_options *opts, uw_job **ret, uw_error *err)
{
    const struct door *door = NULL;
    char path[64];

    if (!ctx || !ret)
        return fail(err, -EINVAL, "ctx or ret is NULL");
    int r = lib_remote(ctx, "a job", &door, err);
    if (r < 0)
        return r;
    auto_(uw_job_free) uw_job *job = calloc(1, sizeof *job);
    if (!job)
        return fail(err, -ENOMEM, "out of memory");
    job->ctx = ctx;
    job->owner = getpid();
    job->fd = -1;
    r = keep(job, opts, err);
    if (r == 0)
        r = new_page(job, err);
    if (r == 0)
        r = register_job(job, door, err);
    if (r < 0)
        return r;
    int how = r;
    r = note_read(job, how, err);
    if (r == 0)
        r = how == JOINED ? join_page(job, err) : give_page(job, err);
    if (r < 0) {
        leave_path(job, path, sizeof path);
        (void)door_ask(door, "DELETE", path, NULL, NULL, NULL);
        return r;
    }
    *ret = take(job);
    return 0;
}

uint64_t uw_job_id(const uw_job *job)
{
    return job ? job->id : 0;
}

/* The connection to the job's daemon, and the job's path there. */
static int job_path(const uw_job *job, const struct door **ret_door, char *ret_path,
                    size_t size, uw_error *err)
{
    if (!job)
        return fail(err, -EINVAL, "job is NULL");
    path_of(job, ret_path, size);
    return lib_remote(job->ctx, "a job", ret_door, err);
}

/* Whether the job in the answer runs and, for a group, has this process. */
static bool is_known(const uw_job *job, const struct json *doc, bool *ret_running)
{
    const struct json_value *v = doc ? json_root(doc) : NULL;
    const struct json_value *members = json_get(v, "members");
    bool found = !job->group[0];
    uint64_t pid = 0;

    *ret_running = false;
    (void)json_get_bool(v, "running", ret_running, NULL);
    for (size_t i = 0; i < json_count(members) && !found; i++)
        found = json_as_u64(json_at(members, i), &pid) && pid == (uint64_t)job->owner;
    return *ret_running && found;
}

int uw_job_renew(uw_job *job, uw_error *err)
{
    const struct door *door = NULL;
    auto_(json_free) struct json *doc = NULL;
    bool running = false;
    char path[64];

    int r = job_path(job, &door, path, sizeof path, err);
    if (r < 0)
        return r;
    if (!job->page)
        return fail(err, -ENOTSUP, "the job was not begun by this process");
    r = door_ask(door, "GET", path, NULL, &doc, err);
    bool known = r == 0 && is_known(job, doc, &running);
    if (known)
        job->read = has_search(doc);
    if (r == -ENOENT || (r == 0 && !known)) {
        r = register_job(job, door, err);
        if (r >= 0)
            r = note_read(job, r, err);
    }
    if (r >= 0 && !(running && has_page(doc)))
        r = give_page(job, err);
    return r < 0 ? r : 0;
}

int uw_job_end(uw_job *job, uw_error *err)
{
    const struct door *door = NULL;
    char path[64];

    int r = job_path(job, &door, path, sizeof path, err);
    if (r == 0)
        leave_path(job, path, sizeof path);
    return r < 0 ? r : door_ask(door, "DELETE", path, NULL, NULL, err);
}

int lib_job_ask(const uw_job *job, const char *method, const char *sub,
                struct json_out *body, struct json **ret, uw_error *err)
{
    const struct door *door = NULL;
    char path[64], whole[80];

    int r = job_path(job, &door, path, sizeof path, err);
    if (r < 0) {
        json_out_free(body);
        return r;
    }
    (void)snprintf(whole, sizeof whole, "%s%s", path, sub);
    return door_ask(door, method, whole, body, ret, err);
}

int lib_job_goal(uw_job *job, const char *goal, uw_error *err)
{
    bool had = job->goal[0] != '\0';
    int r = keep_text(job->goal, sizeof job->goal, "goal", goal, err);

    if (r == 0 && !*goal)
        job->goal[0] = '\0';
    job->read = job->read || job->goal[0];
    return r == 0 && !had ? give_page(job, err) : r;
}

int lib_job_found(uw_ctx *ctx, uint64_t id, uw_job **ret, uw_error *err)
{
    uw_job *job = calloc(1, sizeof *job);

    if (!job)
        return fail(err, -ENOMEM, "out of memory");
    job->ctx = ctx;
    job->id = id;
    job->fd = -1;
    *ret = job;
    return 0;
}

const uw_ctx *lib_job_ctx(const uw_job *job)
{
    return job->ctx;
}

void uw_job_free(uw_job *job)
{
    if (!job)
        return;
    if (job->page)
        (void)munmap(job->page, UW_PROGRESS_BYTES);
    if (job->fd >= 0)
        (void)close(job->fd);
    free(job->device);
    free(job);
}
