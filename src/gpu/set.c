/* Several backends as one: gpu/backends.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "gpu/backends.h"
#include "gpu/choice.h"

/* An open backend and its boards. */
struct part {
    const struct gpu_backend *backend;
    void *lib;
    size_t first, n; /* its boards in the set */
    uint64_t away;   /* detached boards of the backend; ~0: unknown */
};

struct gpu_dev {
    struct set *set;
    const struct part *part;
    struct gpu_dev *own; /* the backend's */
    struct gpu_info info;
    atomic_ullong calls; /* if the backend does not count them */
};

struct set {
    struct part part[GPU_BACKENDS_MAX];
    size_t n_parts;
    struct gpu_dev *dev;
    size_t n;
    struct gpu_about about;
    atomic_uint busy; /* calls under way */
    struct set *next_abandoned;
};

/* Sets that were closed while a call hung, which still uses their memory: never freed. */
static _Atomic(struct set *) abandoned;

static void set_close(void *user)
{
    struct set *s = user;

    if (!s)
        return;
    for (size_t i = s->n_parts; i-- > 0;)
        s->part[i].backend->close(s->part[i].lib);
    if (atomic_load(&s->busy) > 0) {
        s->next_abandoned = atomic_exchange(&abandoned, s);
        return;
    }
    free(s->dev);
    free(s);
}
DEFINE_AUTO(struct set *, set_close);

/* ---- opening ---- */

static uint64_t bits(size_t n)
{
    return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

static bool is_of(const struct gpu_info *info, const char *backend)
{
    return !info->backend[0] || strcmp(info->backend, backend) == 0;
}

/* Reduces opts.known and opts.away to this backend's boards. */
static void take_known(struct gpu_open_opts *opts, const char *name)
{
    size_t first = 0, n = 0;

    while (first < opts->n_known && !is_of(&opts->known[first], name))
        first++;
    while (first + n < opts->n_known && is_of(&opts->known[first + n], name))
        n++;
    opts->known = n ? opts->known + first : NULL;
    opts->n_known = n;
    opts->away = n ? opts->away >> first & bits(n) : 0;
}

static int open_part(struct set *s, const struct gpu_backend *backend,
                     const struct gpu_open_opts *opts, const char *source, uw_error *err)
{
    struct gpu_open_opts own = *opts;
    struct part *p = &s->part[s->n_parts];

    own.source = source;
    take_known(&own, backend->name);
    *p = (struct part){.backend = backend, .first = s->n};
    int r = backend->open(&own, &p->lib, err);
    if (r != 0)
        return r;
    s->n_parts++;
    p->n = backend->count(p->lib);
    p->away = backend->attach ? own.away : 0;
    s->n += p->n;
    return 0;
}

static int list_boards(struct set *s, uw_error *err)
{
    s->dev = calloc(s->n ? s->n : 1, sizeof *s->dev);
    if (!s->dev)
        return fail(err, -ENOMEM, "no memory for %zu boards", s->n);
    for (size_t i = 0; i < s->n_parts; i++) {
        const struct part *p = &s->part[i];
        for (size_t k = 0; k < p->n; k++) {
            struct gpu_dev *dev = &s->dev[p->first + k];
            dev->set = s;
            dev->part = p;
            dev->own = p->backend->at(p->lib, k);
            dev->info = *p->backend->info(dev->own);
            dev->info.index += (unsigned)p->first;
            (void)snprintf(dev->info.backend, sizeof dev->info.backend, "%s",
                           p->backend->name);
            if (dev->info.simulated != s->dev[0].info.simulated)
                return fail(err, -EINVAL,
                            "simulated and real boards cannot be used together: name "
                            "one backend");
        }
    }
    return 0;
}

/* Records why a backend did not open; an error replaces an absence. */
static void note_failed(struct set *s, int r, const uw_error *why, int *worst)
{
    if (s->about.failed[0] && (r > 0 || *worst < 0))
        return;
    *worst = r;
    (void)snprintf(s->about.failed, sizeof s->about.failed, "%s", why->text);
}

static int open_parts(struct set *s, const struct gpu_open_opts *opts, enum gpu_role role,
                      bool capped, uw_error *err)
{
    struct gpu_choice c;
    int r = gpu_choice_parse(opts->source, role, &c, err), worst = GPU_ABSENT;

    for (size_t i = 0; r == 0 && gpu_backends[i]; i++) {
        const struct gpu_backend_row *row = gpu_backends[i];
        uw_error why = {""};
        if (row->role != role || !gpu_choice_has(&c, i))
            continue;
        int got = capped && !row->may_cap
                      ? fail(&why, -ENOTSUP, "%s: its boards have no limit to set",
                             row->backend->name)
                      : open_part(s, row->backend, opts, c.source[i], &why);
        if (got < 0 && c.named[i])
            return fail(err, got, "%s", why.text);
        if (got != 0)
            note_failed(s, got, &why, &worst);
    }
    if (r < 0)
        return r;
    if (s->n_parts == 0)
        return fail(err, worst, "%s", s->about.failed);
    return list_boards(s, err);
}

static int set_open(const struct gpu_open_opts *opts, enum gpu_role role, bool capped,
                    void **ret_lib, uw_error *err)
{
    auto_(set_close) struct set *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "no memory for the boards");
    int r = open_parts(s, opts, role, capped, err);
    if (r != 0)
        return r;
    const struct part *p = &s->part[0];
    if (p->backend->about) {
        char failed[sizeof s->about.failed];
        memcpy(failed, s->about.failed, sizeof failed);
        s->about = *p->backend->about(p->lib);
        memcpy(s->about.failed, failed, sizeof failed);
    }
    *ret_lib = take(s);
    return 0;
}

static int boards_open_all(const struct gpu_open_opts *opts, void **ret_lib,
                           uw_error *err)
{
    return set_open(opts, GPU_ROLE_ACCELERATOR, false, ret_lib, err);
}

static int capped_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    return set_open(opts, GPU_ROLE_ACCELERATOR, true, ret_lib, err);
}

static int processors_open(const struct gpu_open_opts *opts, void **ret_lib,
                           uw_error *err)
{
    return set_open(opts, GPU_ROLE_PROCESSOR, false, ret_lib, err);
}

const struct gpu_about *gpu_boards_about(const void *lib)
{
    const struct set *s = lib;

    return &s->about;
}

static size_t set_count(const void *user)
{
    const struct set *s = user;

    return s->n;
}

static struct gpu_dev *set_at(void *user, size_t i)
{
    struct set *s = user;

    return i < s->n ? &s->dev[i] : NULL;
}

static const struct gpu_info *set_info(const struct gpu_dev *dev)
{
    return &dev->info;
}

static void set_sensors(const struct gpu_dev *dev, struct sensor_model *ret)
{
    dev->part->backend->sensors(dev->own, ret);
}

/* ---- delegated calls ---- */

/* Calls fn of the board's backend, or fails if the backend has none. */
#define DELEGATE(dev, fn, ...)                                               \
    const struct gpu_backend *backend = (dev)->part->backend;                \
    struct set *set = (dev)->set;                                            \
                                                                             \
    if (!backend->fn)                                                        \
        return fail(err, -ENOTSUP, "%s has no " #fn "()", backend->name);    \
    (void)atomic_fetch_add(&set->busy, 1);                                   \
    (void)atomic_fetch_add_explicit(&(dev)->calls, 1, memory_order_relaxed); \
    int r = backend->fn((dev)->own, ##__VA_ARGS__, err);                     \
    (void)atomic_fetch_sub(&set->busy, 1);                                   \
    return r

static int set_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                      uw_error *err)
{
    DELEGATE(dev, sample, want, ret);
}

static int set_limits(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err)
{
    DELEGATE(dev, limits, ret);
}

static int set_set_limit(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    DELEGATE(dev, set_limit, mw);
}

static int set_lock_clocks(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                           uw_error *err)
{
    DELEGATE(dev, lock_clocks, min_mhz, max_mhz);
}

static int set_reset_clocks(struct gpu_dev *dev, uw_error *err)
{
    DELEGATE(dev, reset_clocks);
}

static int set_procs(struct gpu_dev *dev, struct gpu_proc *ret, size_t *ret_n,
                     uw_error *err)
{
    DELEGATE(dev, procs, ret, ret_n);
}

static int set_use(struct gpu_dev *dev, struct gpu_use *ret, size_t *ret_n, uw_error *err)
{
    DELEGATE(dev, use, ret, ret_n);
}

static uint64_t set_calls(const struct gpu_dev *dev)
{
    const struct gpu_backend *backend = dev->part->backend;

    return backend->calls ? backend->calls(dev->own)
                          : atomic_load_explicit(&dev->calls, memory_order_relaxed);
}

/* ---- detaching of boards ---- */

static int attach_part(const struct set *s, struct part *p, uint64_t away, uw_error *err)
{
    if (!p->backend->attach && away)
        return fail(err, -ENOTSUP, "%s: boards cannot be detached", p->backend->name);
    if (!p->backend->attach || (p->away == away && s->n_parts > 1))
        return 0;
    int r = p->backend->attach(p->lib, away, err);
    if (r != -EBUSY && r != -ENOTSUP)
        p->away = r < 0 ? UINT64_MAX : away;
    return r;
}

/* If a backend cannot attach and has not changed, restores the backends before it. */
static int set_attach(void *user, uint64_t away, uw_error *err)
{
    uint64_t was[GPU_BACKENDS_MAX];
    struct set *s = user;
    size_t i = 0;
    int r = 0;

    for (; r == 0 && i < s->n_parts; i++) {
        struct part *p = &s->part[i];
        was[i] = p->away;
        r = attach_part(s, p, p->first < 64 ? away >> p->first & bits(p->n) : 0, err);
    }
    if (r == -EBUSY || r == -ENOTSUP)
        while (i-- > 0)
            if (attach_part(s, &s->part[i], was[i], NULL) < 0)
                r = -EIO;
    return r;
}

/* The mark of dev's driver, or the marks of all drivers joined. */
static int set_driver_mark(void *user, const struct gpu_dev *dev, char *ret, size_t size,
                           uw_error *err)
{
    struct set *s = user;
    size_t at = 0;
    int r = 0;

    if (size == 0)
        return fail(err, -ERANGE, "no room for the driver's mark");
    *ret = '\0';
    for (size_t i = 0; r == 0 && i < s->n_parts; i++) {
        const struct part *p = &s->part[i];
        if (!p->backend->driver_mark || (dev && dev->part != p))
            continue;
        r = p->backend->driver_mark(p->lib, NULL, ret + at, size - at, err);
        at += r == 0 ? strlen(ret + at) : 0;
    }
    return r;
}

#define SET(set_name, open_fn)                                                         \
    {                                                                                  \
        .name = (set_name), .open = (open_fn), .close = set_close, .count = set_count, \
        .at = set_at, .info = set_info, .sample = set_sample, .sensors = set_sensors,  \
        .limits = set_limits, .set_limit = set_set_limit,                              \
        .lock_clocks = set_lock_clocks, .reset_clocks = set_reset_clocks,              \
        .procs = set_procs, .use = set_use, .calls = set_calls, .attach = set_attach,  \
        .driver_mark = set_driver_mark, .about = gpu_boards_about,                     \
    }

const struct gpu_backend gpu_boards = SET("boards", boards_open_all);
const struct gpu_backend gpu_capped = SET("capped", capped_open);
const struct gpu_backend gpu_processors = SET("processors", processors_open);
