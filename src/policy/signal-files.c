#include "policy/signal-files.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/file.h"
#include "io/unix-ask.h"
#include "signal/held.h"
#include "signal/read.h"

enum {
    LOOK_S = 5,     /* deadline of a read */
    ASK_S = 4,      /* … and before that, of an answer */
    AGAIN_S = 3600, /* a series advances with time, and UTC may be set */
    SETTLED_S = 1,  /* a file changed less than this before a read may change unnoticed */
    SAME = 1,       /* the file has not changed */
};

/* Identifies a state of a file. */
struct mark {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec modified, changed;
};

/* A read of a file, in a worker's thread while `busy`. */
struct look {
    struct signal_files *files; /* NULL: nobody waits, it ends with its call */
    struct signal_source source;
    size_t signal; /* index in the store */
    struct loop_timer *timer;
    struct loop_worker *worker;
    bool busy;
    int64_t utc_ns; /* at the start of the read */
    struct mark mark;
    bool has_mark;          /* mark of the file as it was read last … */
    int64_t marked_ns;      /* … then */
    struct mark seen;       /* mark found by this read */
    char tag[UNIX_ASK_TAG]; /* tag of the socket's last answer, as the mark */
    char seen_tag[UNIX_ASK_TAG];
    struct signal_reading reading;
    struct held_signal held;   /* the socket's */
    struct signal_facts facts; /* … facts of its last answer */
    bool facts_read;           /* set by this read */
    uw_error error;
};

struct signal_files {
    struct loop *loop;
    struct signals *store;
    void (*changed)(void *user);
    void (*values)(const struct signal_values *v, void *user);
    void *user;
    size_t n;
    struct look *look[SIGNAL_SOURCES_MAX];
};

/* ---- in the worker's thread ---- */

static int64_t ns_of(const struct timespec *t)
{
    return t->tv_sec * (int64_t)NS_PER_S + t->tv_nsec;
}

static bool is_same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_same_mark(const struct mark *a, const struct mark *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           is_same_time(&a->modified, &b->modified) &&
           is_same_time(&a->changed, &b->changed);
}

static int check_file(const char *path, const struct stat *st, uw_error *err)
{
    int r = file_check_owned(path, st, err);

    if (r < 0)
        return r;
    if (st->st_size > SIGNAL_FILE_MAX)
        return fail(err, -EFBIG, "%s: larger than %d MiB", path, SIGNAL_FILE_MAX >> 20);
    return 0;
}

static bool is_unchanged(const struct look *l)
{
    return l->has_mark && is_same_mark(&l->mark, &l->seen) &&
           l->utc_ns - l->marked_ns < AGAIN_S * (int64_t)NS_PER_S &&
           l->utc_ns >= l->marked_ns &&
           l->marked_ns - ns_of(&l->mark.changed) > SETTLED_S * (int64_t)NS_PER_S;
}

static int read_bytes(const struct look *l, int fd, char **ret, size_t *ret_len,
                      uw_error *err)
{
    size_t max = (size_t)l->seen.size, len = 0;
    auto_(mem_free) char *text = malloc(max + 1);

    if (!text)
        return fail(err, -ENOMEM, "out of memory");
    while (len < max) {
        ssize_t n = read(fd, text + len, max - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(err, -errno, "%s: %s", l->source.file, strerror(errno));
        if (n == 0)
            break;
        len += (size_t)n;
    }
    text[len] = '\0';
    *ret = take(text);
    *ret_len = len;
    return 0;
}

static int take_answer(struct look *l, const struct unix_reply *got)
{
    const char *socket = l->source.socket;

    if (got->status == 304)
        return SAME;
    if (got->status != 200)
        return fail(&l->error, -EPROTO, "%s: HTTP %u", socket, got->status);
    int r = held_take(socket, got->body, got->len, l->source.decl.name,
                      l->utc_ns / (int64_t)NS_PER_S, &l->held, &l->error);
    l->facts_read = r == 0;
    if (r == 0)
        l->facts = l->held.facts;
    if (r == 0 && !l->held.known && (l->held.error[0] || l->held.n == 0)) {
        r = fail(&l->error, -ENODATA, "%s",
                 l->held.error[0] ? l->held.error : "the source has no value yet");
        held_signal_fini(&l->held);
    }
    return r;
}

/* Queries underwatt-signals; otherwise like look(). */
static int look_at_socket(struct loop *loop, struct look *l)
{
    char path[SIGNAL_NAME + 32];
    bool may_be_same = l->has_mark && l->utc_ns >= l->marked_ns &&
                       l->utc_ns - l->marked_ns < AGAIN_S * (int64_t)NS_PER_S;
    const struct unix_ask ask = {.socket = l->source.socket,
                                 .path = path,
                                 .tag = may_be_same ? l->tag : "",
                                 .timeout_ns = ASK_S * NS_PER_S,
                                 .max = SIGNAL_FILE_MAX,
                                 .loop = loop};
    struct unix_reply got = {.status = 0};

    (void)snprintf(path, sizeof path, "/v1/signals?name=%s", l->source.decl.name);
    int r = unix_ask(&ask, &got, &l->error);
    if (r == 0)
        r = take_answer(l, &got);
    memcpy(l->seen_tag, got.tag, sizeof l->seen_tag);
    free(got.body);
    return r;
}

/* 0, SAME, or -errno with l->error. */
static int look(struct loop *loop, void *work)
{
    struct look *l = work;
    const char *path = l->source.file;
    auto_(mem_free) char *text = NULL;
    struct stat st;
    size_t len = 0;

    if (l->source.socket[0])
        return look_at_socket(loop, l);
    /* a pipe without a writer must not block, and a terminal not become this process's */
    auto_(fd_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(&l->error, -errno, "%s: %s", path, strerror(errno));
    int r = check_file(path, &st, &l->error);
    if (r < 0)
        return r;
    l->seen = (struct mark){st.st_dev, st.st_ino, st.st_size, st.st_mtim, st.st_ctim};
    if (is_unchanged(l))
        return SAME;
    r = read_bytes(l, fd, &text, &len, &l->error);
    if (r < 0)
        return r;
    struct signal_format format = {.name = path,
                                   .type = l->source.decl.type,
                                   .csv = l->source.csv,
                                   .is_forecast = signal_is_forecast(l->source.decl.name),
                                   .path = l->source.path,
                                   .column = l->source.column};
    return signal_read(&format, text, len, l->utc_ns / (int64_t)NS_PER_S, &l->reading,
                       &l->error);
}

/* ---- on the loop ---- */

static struct signal_time time_of(const struct loop *loop)
{
    return (struct signal_time){loop_now_ns(loop), loop_utc_ns(loop)};
}

/* Writes "file PATH" or, for a source of underwatt-signals, "signals NAME (ORIGIN;
 * LICENCE)".
 */
static void name_source(const struct look *l, char ret[SIGNAL_SOURCE])
{
    if (l->source.socket[0]) {
        const char *origin = l->held.origin, *licence = l->held.licence;
        (void)snprintf(ret, SIGNAL_SOURCE, "signals %.63s%s%s%s%.24s%s",
                       l->held.source[0] ? l->held.source : l->source.socket,
                       origin[0] || licence[0] ? " (" : "", origin,
                       origin[0] && licence[0] ? "; " : "", licence,
                       origin[0] || licence[0] ? ")" : "");
        return;
    }
    (void)snprintf(ret, SIGNAL_SOURCE, "file %.190s", l->source.file);
}

static int put_held(struct look *l)
{
    char source[SIGNAL_SOURCE];
    const struct held_signal *h = &l->held;
    const struct signal_put p = {.unit = h->unit,
                                 .source = source,
                                 .utc_ns = h->time_utc_s * (int64_t)NS_PER_S,
                                 .listed = true,
                                 .estimates = h->estimated,
                                 .age_ns = h->age_s * NS_PER_S};

    name_source(l, source);
    return signals_put_series(l->files->store, l->signal, &p, h->point, h->n,
                              time_of(l->files->loop), &l->error);
}

static int put(struct look *l)
{
    char source[SIGNAL_SOURCE];
    struct signals *s = l->files->store;
    struct signal_time t = time_of(l->files->loop);
    struct signal_put p = {.unit = l->source.unit,
                           .source = source,
                           .utc_ns = ns_of(&l->seen.modified),
                           .listed = true};

    name_source(l, source);
    if (l->reading.is_series)
        return signals_put_series(s, l->signal, &p, l->reading.point, l->reading.n, t,
                                  &l->error);
    return signals_put(s, l->signal, &p, &l->reading.value, t, &l->error);
}

/* The series that was read, each point with the time at which it ends. */
static size_t series_of(const struct look *l, double factor, struct source_point *ret)
{
    const struct held_signal *h = &l->held;
    bool asked = l->source.socket[0];
    const struct policy_point *p = asked ? h->point : l->reading.point;
    uint64_t age_s = asked ? h->age_s : l->source.decl.age_ns / NS_PER_S;
    size_t n = asked ? h->n : l->reading.n;

    for (size_t i = 0; i < n; i++) {
        ret[i] = (struct source_point){p[i].utc_s, p[i].utc_s + (int64_t)age_s,
                                       p[i].v * factor, asked && h->estimated[i]};
        if (i + 1 < n && p[i + 1].utc_s < ret[i].to_utc_s)
            ret[i].to_utc_s = p[i + 1].utc_s;
    }
    return n;
}

static void tell_values(const struct look *l)
{
    const struct signal_decl *d = &l->source.decl;
    const char *unit = l->source.socket[0] ? l->held.unit : l->source.unit;
    size_t n = l->source.socket[0] ? l->held.n : l->reading.n;
    char source[SIGNAL_SOURCE];
    double factor = 1;

    if (!l->files->values || d->type != POLICY_NUMBER || signal_is_forecast(d->name) ||
        n == 0 || signal_factor(d, unit, &factor, NULL) < 0)
        return;
    auto_(mem_free) struct source_point *point = calloc(n, sizeof *point);
    if (!point)
        return;
    name_source(l, source);
    l->files->values(&(struct signal_values){.name = d->name,
                                             .source = source,
                                             .unit = d->unit,
                                             .point = point,
                                             .n = series_of(l, factor, point)},
                     l->files->user);
}

void signal_files_hear(struct signal_files *f,
                       void (*values)(const struct signal_values *v, void *user))
{
    f->values = values;
}

/* A read has ended; r: the result of look(), or the worker's. */
static void took(struct look *l, int r)
{
    char source[SIGNAL_SOURCE];
    bool told = r != SAME;

    if (r == 0) {
        r = l->source.socket[0] ? put_held(l) : put(l);
        if (r == 0)
            tell_values(l);
        l->mark = l->seen;
        memcpy(l->tag, l->seen_tag, sizeof l->tag);
        l->has_mark = true;
        l->marked_ns = l->utc_ns;
    } else if (r < 0) {
        l->has_mark = false; /* read again in any case */
    }
    signal_reading_fini(&l->reading);
    name_source(l, source);
    held_signal_fini(&l->held);
    if (r < 0)
        signals_fail(l->files->store, l->signal, source, l->error.text);
    if (told && l->facts_read)
        signals_tell(l->files->store, l->signal, &l->facts);
    if (told && l->files->changed)
        l->files->changed(l->files->user);
}

/* The thread still uses the look: nothing else of it may be accessed. */
static void hangs(const struct look *l)
{
    char source[SIGNAL_SOURCE], why[SIGNAL_WHY];

    name_source(l, source);
    if (l->source.socket[0])
        (void)snprintf(why, sizeof why, "%s: the socket does not answer",
                       l->source.socket);
    else
        (void)snprintf(why, sizeof why, "%.150s: the file system does not answer",
                       l->source.file);
    signals_fail(l->files->store, l->signal, source, why);
}

static void look_free(struct look *l)
{
    loop_worker_free(l->worker);
    signal_reading_fini(&l->reading);
    held_signal_fini(&l->held);
    free(l);
}

/* Keeps the worker's own failures apart from those of a file system. */
static int look_apart(struct loop *loop, void *work)
{
    int r = look(loop, work);

    return r == -ETIMEDOUT || r == -EBUSY || r == -ECANCELED ? -EIO : r;
}

static int on_done(struct loop *loop, void *work, int r)
{
    struct look *l = work;
    (void)loop;

    l->busy = r == -ETIMEDOUT;
    if (!l->files && !l->busy)
        look_free(l);
    else if (!l->files || r == -ECANCELED || r == -EBUSY)
        return 0;
    else if (l->busy)
        hangs(l);
    else
        took(l, r);
    return 0;
}

static void on_late(struct loop *loop, void *work, int r)
{
    struct look *l = work;
    (void)loop;
    (void)r;

    l->busy = false;
    signal_reading_fini(&l->reading);
    held_signal_fini(&l->held);
    if (!l->files)
        look_free(l);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct look *l = user;
    const struct loop_work work = {.fn = look_apart,
                                   .done = on_done,
                                   .late = on_late,
                                   .work = l,
                                   .deadline_ns = LOOK_S * NS_PER_S};
    (void)timer;
    (void)now_ns;

    if (l->busy)
        return 0;
    l->error = (uw_error){""};
    l->facts_read = false;
    l->utc_ns = loop_utc_ns(l->files->loop);
    l->busy = loop_worker_submit(l->worker, &work) == 0;
    return 0;
}

static int look_new(struct signal_files *f, const struct signal_source *source,
                    uw_error *err)
{
    struct look *l = calloc(1, sizeof *l);

    if (!l)
        return fail(err, -ENOMEM, "out of memory");
    l->files = f;
    l->source = *source;
    f->look[f->n++] = l;
    int r = loop_worker_new_shared(f->loop, "signals", &l->worker, err);
    if (r < 0)
        return r;
    return loop_timer_new(f->loop, UINT64_MAX, 0, on_timer, l, &l->timer, err);
}

int signal_files_new(struct loop *loop, struct signals *store,
                     const struct signal_sources *sources, void (*changed)(void *user),
                     void *user, struct signal_files **ret, uw_error *err)
{
    auto_(signal_files_free) struct signal_files *f = calloc(1, sizeof *f);
    int r = 0;

    if (!f)
        return fail(err, -ENOMEM, "out of memory");
    f->loop = loop;
    f->store = store;
    f->changed = changed;
    f->user = user;
    for (size_t i = 0; i < sources->n && r == 0; i++)
        if (sources->source[i].file[0] || sources->source[i].socket[0])
            r = look_new(f, &sources->source[i], err);
    if (r == 0)
        *ret = take(f);
    return r;
}

/* Removes the values of sources that are no longer listed. */
static void unlist_others(const struct signal_files *f)
{
    for (size_t i = 0; i < signals_count(f->store); i++) {
        size_t k = 0;
        while (k < f->n && f->look[k]->signal != i)
            k++;
        if (k == f->n)
            signals_unlist(f->store, i);
    }
}

void signal_files_begin(struct signal_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct look *l = f->look[i];
        int at = signals_find(f->store, l->source.decl.name);
        assert(at >= 0);
        l->signal = (size_t)at;
        loop_timer_set(l->timer, loop_now_ns(f->loop), l->source.every_ns);
    }
    unlist_others(f);
}

bool signal_files_forecast(const struct signal_files *f, size_t k, size_t *ret_signal)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct look *l = f->look[i];
        if (!l->source.file[0] || !signal_is_forecast(l->source.decl.name) || k-- > 0)
            continue;
        *ret_signal = l->signal;
        return true;
    }
    return false;
}

void signal_files_free(struct signal_files *f)
{
    for (size_t i = 0; f && i < f->n; i++) {
        struct look *l = f->look[i];
        l->files = NULL;
        loop_timer_free(l->timer);
        if (!l->busy) /* otherwise a thread uses it, and freeing its worker would wait */
            look_free(l);
    }
    free(f);
}
