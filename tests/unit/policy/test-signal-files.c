/* Files of signals: what is read, what is refused, and that nothing blocks. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/file.h"
#include "policy/signal-files.h"
#include "tap.h"

static struct loop *loop;
static struct signals *store;
static struct signal_files *files;
static char dir[] = "/tmp/uw-signals-XXXXXX";

static struct signal_view look_at(const char *name)
{
    struct signal_view v;
    struct signal_time t = {loop_now_ns(loop), loop_utc_ns(loop)};

    signals_look(store, (size_t)signals_find(store, name), t, &v);
    return v;
}

static const char *path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static bool begin_looks(const struct signal_sources *sources, uw_error *err)
{
    int r = signal_files_new(loop, store, sources, NULL, NULL, &files, err);

    if (r == 0)
        signal_files_begin(files);
    return r == 0;
}

static void write_file(const char *name, const char *text)
{
    ok(file_write(path_of(name), text, strlen(text), 0644, NULL) == 0, "%s: written",
       name);
}

/* In place, as a careless writer does it. */
static void write_over(const char *name, const char *text)
{
    FILE *f = fopen(path_of(name), "w");

    ok(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s: written over", name);
}

static struct {
    const char *name;
    double value;    /* NaN: unknown … */
    const char *why; /* … and why */
} awaited;
static int tries;
enum { TRIES = 6000 };

static int on_try(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct signal_view v = look_at(awaited.name);
    bool good = awaited.why ? strstr(v.why, awaited.why) != NULL
                            : v.value && v.value->number == awaited.value && !v.why[0];
    (void)timer;
    (void)now_ns;
    (void)user;

    if (good || ++tries > TRIES)
        loop_stop(loop, 0);
    return 0;
}

static void await(const char *name, double value, const char *why, const char *what)
{
    struct loop_timer *timer = NULL;

    awaited.name = name;
    awaited.value = value;
    awaited.why = why;
    tries = 0;
    (void)loop_timer_new(loop, 0, 10 * NS_PER_MS, on_try, NULL, &timer, NULL);
    (void)loop_run(loop, NULL);
    loop_timer_free(timer);
    struct signal_view v = look_at(name);
    if (!ok(tries <= TRIES, "%s", what))
        printf("# %s: %g, '%s'\n", name, v.value ? v.value->number : -1, v.why);
}

static const struct {
    const char *signal, *file, *path;
} of[] = {{"rack.a", "a.json", "v"}, {"rack.b", "b.csv", ""}, {"rack.c", "pipe", ""},
          {"rack.d", "open", ""},    {"rack.e", "link", ""},  {"rack.f", "folder", ""}};
enum { N = sizeof of / sizeof *of };

static void set_up(void)
{
    struct signal_source source[N] = {0};
    struct signal_decl decl[N];
    struct signal_sources all = {source, N, "EUR"};
    uw_error err = {""};

    for (size_t i = 0; i < N; i++) {
        struct signal_source *s = &source[i];
        (void)snprintf(s->decl.name, sizeof s->decl.name, "%s", of[i].signal);
        (void)snprintf(s->file, sizeof s->file, "%s", path_of(of[i].file));
        (void)snprintf(s->path, sizeof s->path, "%s", of[i].path);
        s->decl.age_ns = 3600 * NS_PER_S;
        ok(signal_source_check(s, "EUR", &err) == 0, "%s is sound", of[i].signal);
        s->every_ns = 20 * NS_PER_MS;
        decl[i] = s->decl;
    }
    ok(signals_new(&(struct signals_opts){0}, &store) == 0 &&
           signals_declare(store, decl, N, "EUR", &err) == 0,
       "declared");
    ok(begin_looks(&all, &err), "looked at");
}

static void contents(void)
{
    await("rack.a", 0, "No such file", "a file that is missing");
    write_file("a.json", "{\"v\": 5}");
    await("rack.a", 5, NULL, "a file that comes");
    write_file("a.json", "{\"v\": -6.5}");
    await("rack.a", -6.5, NULL, "one that is replaced");
    write_over("a.json", "{\"v\": 7");
    await("rack.a", 0, "not JSON", "one that is torn");
    ok(look_at("rack.a").value && look_at("rack.a").value->number == -6.5,
       "… leaves the value until its age limit");
    write_over("a.json", "{\"v\": 7}");
    await("rack.a", 7, NULL, "one that is written over");
    write_over("a.json", "{\"v\": 8}");
    await("rack.a", 8, NULL, "… at once, with the same length");
    ok(unlink(path_of("a.json")) == 0, "removed");
    await("rack.a", 0, "No such file", "one that is gone");
    write_file("b.csv", "time,x\n2020-01-01,1\n");
    await("rack.b", 0, "no value now", "a series of the past");
    write_file("b.csv", "x\n3\n");
    await("rack.b", 3, NULL, "a single value");
    ok(truncate(path_of("b.csv"), SIGNAL_FILE_MAX + 1) == 0, "grown");
    await("rack.b", 0, "larger than 4 MiB", "one that is too large");
    struct timespec ahead[2] = {{.tv_sec = loop_utc_ns(loop) / 1000000000 + 3600}};
    ahead[1] = ahead[0];
    write_file("b.csv", "x\n4\n");
    (void)utimensat(AT_FDCWD, path_of("b.csv"), ahead, 0);
    await("rack.b", 0, "is in the future", "one of the future");
}

static void kinds(void)
{
    ok(mkfifo(path_of("pipe"), 0600) == 0, "a pipe");
    await("rack.c", 0, "not a regular file", "is not waited for");
    ok(mkdir(path_of("folder"), 0755) == 0, "a folder");
    await("rack.f", 0, "not a regular file", "is no file");
    write_file("open", "5\n");
    await("rack.d", 5, NULL, "a file of ours");
    ok(chmod(path_of("open"), 0666) == 0, "open to others");
    await("rack.d", 0, "group or others may write it", "is refused");
    ok(chmod(path_of("open"), 0664) == 0, "open to the group");
    await("rack.d", 0, "group or others may write it", "is refused");
    ok(chmod(path_of("open"), 0644) == 0, "closed again");
    await("rack.d", 5, NULL, "is read again");
    ok(symlink("target", path_of("link")) == 0, "a link");
    write_file("target", "9\n");
    await("rack.e", 9, NULL, "is followed");
    if (geteuid() != 0) {
        skip_one("a file of another user", "not root");
        return;
    }
    ok(chown(path_of("target"), 12345, 12345) == 0, "to another user's file");
    await("rack.e", 0, "belongs to user 12345", "it is not");
}

/* ---- a file system that does not answer ---- */

static struct {
    sem_t go;
    atomic_int in; /* reads that hang */
    _Atomic ino_t ino;
    unsigned waits; /* of the loop's thread, which alone has a time limit */
} hang;

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n)
{
    struct stat st;

    if (hang.ino && fstat(fd, &st) == 0 && st.st_ino == hang.ino) {
        hang.in++;
        while (sem_wait(&hang.go) < 0)
            ;
    }
    return __real_read(fd, to, n);
}

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    hang.waits++;
    return __real_pthread_cond_timedwait(cond, lock, until);
}

static int on_hang(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    const int *want = user;
    (void)timer;
    (void)now_ns;

    if (hang.in >= *want || ++tries > TRIES)
        loop_stop(loop, 0);
    return 0;
}

static void await_hangs(int n)
{
    struct loop_timer *timer = NULL;

    tries = 0;
    (void)loop_timer_new(loop, 0, 10 * NS_PER_MS, on_hang, &n, &timer, NULL);
    (void)loop_run(loop, NULL);
    loop_timer_free(timer);
    is_int(hang.in, n, "reads that hang");
}

/* A look whose deadline (5 s) has passed ends when its call returns. */
static void returns_late(const struct signal_sources *all, ino_t ino)
{
    signal_files_free(take(files));
    hang.ino = ino;
    ok(begin_looks(all, NULL), "a look");
    await("rack.h", 0, "does not answer", "its deadline passes");
    signal_files_free(take(files));
    is_int(hang.waits, 0, "nothing waits for it");
    hang.ino = 0;
    ok(sem_post(&hang.go) == 0, "it answers after all");
    ok(begin_looks(all, NULL), "another look");
    await("rack.h", 11, NULL, "reads it");
}

/* The policy is read again while looks at a file hang: nothing waits for them. */
static void reloads(void)
{
    struct signal_source source = {.decl.name = "rack.h"};
    struct signal_sources all = {&source, 1, "EUR"};
    struct stat st;
    uw_error err = {""};

    write_file("hangs", "11\n");
    (void)snprintf(source.file, sizeof source.file, "%s", path_of("hangs"));
    source.decl.age_ns = 3600 * NS_PER_S;
    ok(stat(path_of("hangs"), &st) == 0 && sem_init(&hang.go, 0, 0) == 0 &&
           signal_source_check(&source, "EUR", &err) == 0 &&
           signals_declare(store, &source.decl, 1, "EUR", &err) == 0,
       "a file of a file system that hangs");
    source.every_ns = 20 * NS_PER_MS;
    hang.ino = st.st_ino;
    for (int i = 1; i <= 2; i++) {
        signal_files_free(files);
        ok(begin_looks(&all, &err), "a look");
        await_hangs(i);
    }
    signal_files_free(take(files));
    is_int(hang.waits, 0, "three reloads wait for no look");
    ok(!look_at("rack.h").value, "and the store has nothing");
    hang.ino = 0;
    ok(sem_post(&hang.go) == 0 && sem_post(&hang.go) == 0, "it answers again");
    ok(begin_looks(&all, &err), "another look");
    await("rack.h", 11, NULL, "reads it");
    returns_late(&all, st.st_ino);
}

static void clean_up(void)
{
    static const char *const names[] = {"b.csv", "pipe",   "open",
                                        "link",  "target", "hangs"};

    signal_files_free(files);
    signals_free(store);
    for (size_t i = 0; i < n_elements(names); i++)
        (void)unlink(path_of(names[i]));
    ok(rmdir(path_of("folder")) == 0 && rmdir(dir) == 0, "nothing else lies there");
}

int main(void)
{
    if (!mkdtemp(dir) || loop_new_real((struct loop_clock){0, 1}, &loop, NULL) < 0)
        return 1;
    set_up();
    contents();
    kinds();
    reloads();
    clean_up();
    loop_free(loop);
    return done();
}
