/* The library as a client: answers of every kind, from a made-up daemon behind a real
 * socket; it neither leaks descriptors nor dies of one that hangs up.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "lib/inside.h"
#include "tap.h"

/* ---- a whole answer ---- */

static void parses(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *text;
        int r;
        unsigned status;
        const char *body;
    } cases[] = {
        {"an answer", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 0, 200, "{}"},
        {"without a length", "HTTP/1.0 201 Created\r\nX: y\r\n\r\n{\"id\": 1}", 0, 201, "{\"id\": 1}"},
        {"without a reason", "HTTP/1.1 204\r\n\r\n", 0, 204, ""},
        {"another case", "HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabc", 0, 200, "abc"},
        {"more than its length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}", 0, 200, "{}"},
        {"a length in its body", "HTTP/1.1 200 OK\r\n\r\nContent-Length: 99\r\n\r\n", 0, 200, "Content-Length: 99\r\n\r\n"},
        {"a body cut short", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", -EPROTO, 0, ""},
        {"a header cut short", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", -EPROTO, 0, ""},
        {"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", -EPROTO, 0, ""},
        {"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -EPROTO, 0, ""},
        {"a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", -EPROTO, 0, ""},
        {"a length of 30 digits", "HTTP/1.1 200 OK\r\nContent-Length: 100000000000000000000000000000\r\n\r\n", -EPROTO, 0, ""},
        {"no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", -EPROTO, 0, ""},
        {"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", -EPROTO, 0, ""},
        {"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", -EPROTO, 0, ""},
        {"a status of four", "HTTP/1.1 2000 OK\r\n\r\n", -EPROTO, 0, ""},
        {"a status 000", "HTTP/1.1 000 OK\r\n\r\n", -EPROTO, 0, ""},
        {"nothing", "", -EPROTO, 0, ""},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct door_answer a = {.status = 7};
        uw_error err = {""};
        int r = door_parse(cases[i].text, strlen(cases[i].text), &a, &err);
        bool good = r == cases[i].r && (r == 0) == (err.text[0] == '\0');
        if (r == 0)
            good = good && a.status == cases[i].status &&
                   a.len == strlen(cases[i].body) &&
                   memcmp(a.body, cases[i].body, a.len) == 0;
        else
            good = good && a.status == 7;
        ok(good, "%s: %d %s", cases[i].name, r, err.text);
    }
}

/* ---- windows ---- */

static uw_device device[2];
static uw_ctx two = {.n = 2, .device = device};

static int read_window(const char *text, uw_window *win)
{
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    int r = json_read("answer", text, strlen(text), &doc, &err);
    return r < 0 ? r : lib_read_window(json_root(doc), win, &err);
}

static void windows(void)
{
    static const char good[] =
        "{\"time_s\": 4, \"gpus\": [{\"uuid\": \"B\", \"energy_j\": null, \"half_j\": "
        "null, \"power_w\": null, \"method\": null, \"why\": \"it hung\"}, {\"uuid\": "
        "\"A\", \"energy_j\": 400, \"half_j\": 2, \"power_w\": 100, \"method\": "
        "\"counter\", \"why\": \"reset, stuck\"}, {\"uuid\": \"C\"}]}";
    auto_(mem_free) uw_window *win = calloc(1, sizeof *win + 2 * sizeof *win->board);

    device[0] = (uw_device){&two, 0, "A", "", 1, 0};
    device[1] = (uw_device){&two, 1, "B", "", 1, 0};
    if (!win)
        return;
    win->ctx = &two;
    is_int(read_window(good, win), 0, "a window");
    const uw_energy *e = &win->board[0].energy;
    is_int(win->board[0].r, 0, "its boards by their UUIDs");
    is_near(e->time_s + e->energy_j + e->half_j + e->power_w, 506, 0, "every figure");
    is_str(e->method, "counter", "its method");
    is_str(e->why, "reset, stuck", "… and the reasons for its interval");
    is_int(win->board[1].r, -ENODATA, "what is not known is said");
    is_str(win->board[1].err.text, "B: it hung", "and why");
    device[0].id = "Z";
    (void)read_window(good, win);
    is_int(win->board[0].r, -ENODATA, "a board that is left out: %s",
           win->board[0].err.text);
}

static void no_windows(void)
{
    static const char *const bad[] = {"{}", "{\"time_s\": 4}", "{\"gpus\": []}",
                                      "{\"time_s\": 0, \"gpus\": []}",
                                      "{\"time_s\": \"x\", \"gpus\": []}"};
    auto_(mem_free) uw_window *win = calloc(1, sizeof *win + 2 * sizeof *win->board);

    if (!win)
        return;
    win->ctx = &two;
    for (size_t i = 0; i < n_elements(bad); i++)
        is_int(read_window(bad[i], win), -EPROTO, "no window: %s", bad[i]);
    is_int(lib_read_window(NULL, win, NULL), -EPROTO, "no answer");
    is_str(lib_method("folded"), "folded", "a method");
    is_str(lib_method("magic"), "none", "one that is not known");
    is_str(lib_method(NULL), "none", "none");
}

/* ---- a made-up daemon ---- */

enum { LATE_NS = 20 * NS_PER_MS }; /* longer than uw_window_wait() waits with 0 s */

static struct {
    char dir[64], path[96];
    int fd;
    pthread_t thread;
    const char *const *says; /* an answer a connection; NULL ends */
    char asked[8][512];
    bool deaf;   /* hangs up before it reads */
    size_t late; /* this answer, from 1, comes after LATE_NS; 0: none */
} d;

static void *serve(void *user)
{
    (void)user;
    for (size_t i = 0; d.says[i]; i++) {
        int c = accept4(d.fd, NULL, NULL, SOCK_CLOEXEC);
        size_t len = 0;
        if (c < 0)
            break;
        while (!d.deaf && len < sizeof d.asked[0] - 1) {
            ssize_t n = recv(c, d.asked[i] + len, sizeof d.asked[0] - 1 - len, 0);
            if (n <= 0)
                break;
            len += (size_t)n;
            d.asked[i][len] = '\0';
            const char *end = strstr(d.asked[i], "\r\n\r\n");
            const char *want = strstr(d.asked[i], "Content-Length: ");
            uint64_t size = 0;
            char number[16] = "";
            if (!end || !want)
                continue;
            (void)snprintf(number, sizeof number, "%.*s", (int)strcspn(want + 16, "\r"),
                           want + 16);
            if (parse_u64(number, &size, NULL) == 0 && strlen(end + 4) >= size)
                break;
        }
        if (i + 1 == d.late)
            (void)nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
        (void)send(c, d.says[i], strlen(d.says[i]), MSG_NOSIGNAL);
        (void)close(c);
    }
    return NULL;
}

static void daemon_says(const char *const *says)
{
    memset(d.asked, 0, sizeof d.asked);
    d.says = says;
    (void)pthread_create(&d.thread, NULL, serve, NULL);
}

static void daemon_done(void)
{
    (void)pthread_join(d.thread, NULL);
}

static bool daemon_begin(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};

    (void)snprintf(d.dir, sizeof d.dir, "/tmp/uw-door-XXXXXX");
    if (!mkdtemp(d.dir))
        return false;
    (void)snprintf(d.path, sizeof d.path, "%s/d.sock", d.dir);
    memcpy(at.sun_path, d.path, strlen(d.path) + 1);
    d.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return d.fd >= 0 && bind(d.fd, (struct sockaddr *)&at, sizeof at) == 0 &&
           listen(d.fd, 8) == 0;
}

static int next_fd(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)close(fd);
    return fd;
}

#define OK(body) "HTTP/1.1 200 OK\r\n\r\n" body
#define GPUS                                                                      \
    "{\"simulated\": true, \"gpus\": [{\"uuid\": \"GPU-a\", \"name\": \"V100\", " \
    "\"simulated\": true}]}"

static uw_ctx *open_ctx(const char *first, uw_error *err, int *ret_r)
{
    const char *says[] = {first, NULL};
    uw_options o = {.size = sizeof o, .socket = d.path};
    uw_ctx *ctx = NULL;

    daemon_says(says);
    *ret_r = uw_ctx_open(&o, &ctx, err);
    daemon_done();
    return ctx;
}

static void opening(void)
{
    /* clang-format off */
    static const struct { const char *name, *says; int r; } cases[] = {
        {"no JSON", OK("{"), -EINVAL},
        {"no boards in it", OK("{}"), -ENODEV},
        {"boards without names", OK("{\"gpus\": [{\"uuid\": \"x\"}]}"), -EPROTO},
        {"nobody knows us", "HTTP/1.1 401 No\r\n\r\n{\"error\": \"who?\"}", -EACCES},
        {"another program", "hello\r\n", -EPROTO},
        {"it hangs up", "", -ECONNREFUSED},
        {"too many requests", "HTTP/1.1 429 No\r\n\r\n", -EAGAIN},
    };
    /* clang-format on */
    uw_error err = {""};
    int r, fd = next_fd();

    for (size_t i = 0; i < n_elements(cases); i++) {
        uw_ctx *ctx = open_ctx(cases[i].says, &err, &r);
        ok(!ctx && r == cases[i].r && err.text[0], "%s: %d %s", cases[i].name, r,
           err.text);
    }
    d.deaf = true;
    for (int i = 0; i < 20; i++) /* some of them hit a closed socket: no SIGPIPE */
        (void)open_ctx("", &err, &r);
    d.deaf = false;
    ok(r < 0, "it hangs up before it has read: %s", err.text);

    uw_ctx *ctx = open_ctx(OK(GPUS), &err, &r);
    ok(r == 0 && uw_ctx_has_daemon(ctx) == 1 && uw_device_count(ctx) == 1, "a board %s",
       err.text);
    is_str(uw_device_id(uw_device_at(ctx, 0)), "GPU-a", "its UUID");
    ok(uw_device_is_simulated(uw_device_at(ctx, 0)), "simulated");
    is_int(next_fd(), fd, "no descriptor is open between calls");
    uw_ctx_free(ctx);
}

static void options(void)
{
    uw_options o = {.size = sizeof o, .socket = "/nowhere/underwattd.sock"};
    uw_error err = {""};
    uw_ctx *ctx = NULL;

    is_int(uw_ctx_open(&o, &ctx, &err), -ECONNREFUSED, "a daemon that was named: %s",
           err.text);
    o.socket = "relative";
    is_int(uw_ctx_open(&o, &ctx, &err), -EINVAL, "no path: %s", err.text);
    o.socket = NULL;
    o.flags = 4;
    is_int(uw_ctx_open(&o, &ctx, &err), -EINVAL, "a flag that is none: %s", err.text);
    o.flags = UW_LOCAL | UW_DAEMON;
    is_int(uw_ctx_open(&o, &ctx, &err), -EINVAL, "both ways: %s", err.text);
    o.flags = UW_LOCAL;
    o.socket = d.path;
    is_int(uw_ctx_open(&o, &ctx, &err), -EINVAL, "a socket that is not asked: %s",
           err.text);
    struct {
        uw_options o;
        int more;
    } later = {.o = {.size = sizeof later, .socket = d.path}, .more = 1};
    is_int(uw_ctx_open(&later.o, &ctx, &err), -EINVAL, "a later version's: %s", err.text);
}

static void boards(uw_ctx *ctx)
{
    static const char *const says[] = {
        OK("{\"power_w\": 210.5}"), OK("{\"power_w\": null}"),
        OK("{\"limits\": {\"min_mw\": 100000, \"max_mw\": 300000, \"default_mw\": "
           "300000, \"enforced_mw\": null}}"),
        NULL};
    uw_device *dev = uw_device_at(ctx, 0);
    uw_error err = {""};
    uw_limits lim = {.enforced_mw = 7};
    double w = 0;

    daemon_says(says);
    is_int(uw_device_power(dev, &w, &err), 0, "power");
    is_near(w, 210.5, 0, "of that many watts");
    is_int(uw_device_power(dev, &w, &err), -ENODATA, "not known: %s", err.text);
    is_int(uw_device_limits(dev, &lim, &err), 0, "limits");
    daemon_done();
    is_int(lim.min_mw, 100000, "the least");
    is_int(lim.enforced_mw, 0, "in force is not known");
}

static void other_daemon(uw_ctx *ctx)
{
    static const char *const says[] = {
        "HTTP/1.1 201 Created\r\n\r\n{\"id\": 4711}",
        "HTTP/1.1 404 No\r\n\r\n{\"error\": \"there is no window 4711 of this user\"}",
        NULL};
    uw_error err = {""};
    uw_window *win = NULL;
    uw_energy energy;

    daemon_says(says);
    is_int(uw_window_begin(ctx, &win, &err), 0, "a window begins");
    is_int(uw_window_energy(win, uw_device_at(ctx, 0), &energy, &err), -EINVAL,
           "it has no energy yet: %s", err.text);
    is_int(uw_window_end(win, &err), 0, "… and ends at another daemon");
    daemon_done();
    ok(strstr(d.asked[1], "POST /v1/windows/4711/end ") == d.asked[1], "by its number");
    is_int(uw_window_energy(win, uw_device_at(ctx, 0), &energy, &err), -ENODATA,
           "which knows nothing: %s", err.text);
    is_int(uw_window_end(win, &err), -EALREADY, "it ends once");
    static const char *const next[] = {"HTTP/1.1 201 Created\r\n\r\n{\"id\": 4712}",
                                       NULL};
    uw_window *after = NULL;
    daemon_says(next);
    is_int(uw_window_begin(ctx, &after, &err), 0, "another begins there");
    daemon_done();
    ok(!strstr(d.asked[0], "stopped"), "nothing is told of the one that is lost: %s",
       d.asked[0]);
    uw_window_free(win);
    uw_window_free(after);
}

#define ENDED                                                                            \
    "{\"time_s\": 2, \"gpus\": [{\"uuid\": \"GPU-a\", \"energy_j\": 80, \"half_j\": 1, " \
    "\"power_w\": 40, \"method\": \"counter\", \"why\": \"\"}], \"processors\": "        \
    "[{\"name\": \"package-0\", \"energy_j\": 60, \"half_j\": 2, \"power_w\": 30}, "     \
    "{\"name\": \"dram-0\", \"energy_j\": null, \"half_j\": null, \"power_w\": null}]}"

/* Windows that stop: what the daemon is asked, and when. */
static void stopped(uw_ctx *ctx)
{
    static const char *const says[] = {
        "HTTP/1.1 201 Created\r\n\r\n{\"id\": 21}",
        "HTTP/1.1 201 Created\r\n\r\n{\"id\": 22}",
        "HTTP/1.1 202 Accepted\r\n\r\n{\"ready\": false}",
        OK(ENDED),
        "HTTP/1.1 202 Accepted\r\n\r\n{\"ready\": false}",
        "HTTP/1.1 400 No\r\n\r\n{\"error\": \"its end is 130 s ago\"}",
        NULL};
    uw_error err = {""};
    uw_window *a = NULL, *b = NULL;
    uw_energy energy;

    d.late = 5;
    daemon_says(says);
    is_int(uw_window_begin(ctx, &a, &err), 0, "a window");
    is_int(uw_window_ready(a, &err), -EINVAL, "open: %s", err.text);
    is_int(uw_window_wait(a, 0, &err), -EINVAL, "nothing to wait for");
    is_int(uw_window_processor(a, 0, &energy, &err), -EINVAL, "no processor's energy");
    is_int(uw_window_stop(a, &err), 0, "stops");
    is_int(uw_window_processor(a, 0, &energy, &err), -EAGAIN, "not yet: %s", err.text);
    is_int(uw_window_stop(a, &err), -EALREADY, "once: %s", err.text);
    is_int(uw_window_energy(a, uw_device_at(ctx, 0), &energy, &err), -EAGAIN,
           "its energy is not known: %s", err.text);
    is_int(uw_window_begin(ctx, &b, &err), 0, "another begins");
    is_int(uw_window_wait(a, 60, &err), 0, "not yet, then known %s", err.text);
    is_int(uw_window_energy(a, uw_device_at(ctx, 0), &energy, &err), 0, "and told");
    is_near(energy.energy_j, 80, 0, "what it took");
    is_int(uw_window_processors(a), 2, "a processor and its memory");
    is_str(uw_window_processor_name(a, 0), "package-0", "its name");
    is_str(uw_window_processor_name(a, 2), "", "no third one");
    is_int(uw_window_processor(a, 0, &energy, &err), 0, "its energy");
    is_near(energy.energy_j + energy.half_j + energy.power_w + energy.time_s, 94, 0,
            "in the same time");
    is_int(uw_window_processor(a, 1, &energy, &err), -ENODATA, "of memory: %s", err.text);
    is_int(uw_window_processor(a, 2, &energy, &err), -ENODATA, "no third: %s", err.text);
    is_int(uw_window_ready(a, &err), 1, "it stays so");
    is_int(uw_window_end(a, &err), -EALREADY, "it has ended");
    (void)uw_window_stop(b, &err);
    is_int(uw_window_wait(b, 0, &err), -ETIMEDOUT, "no answer in time: %s", err.text);
    is_int(uw_window_wait(b, 5, &err), 0, "told too late");
    is_int(uw_window_energy(b, uw_device_at(ctx, 0), &energy, &err), -ENODATA,
           "and why: %s", err.text);
    daemon_done();
    d.late = 0;
    ok(strstr(d.asked[1], "POST /v1/windows HTTP") == d.asked[1] &&
           strstr(d.asked[1], "\"stopped\": [") && strstr(d.asked[1], "\"id\": 21"),
       "a begin tells of the one before");
    ok(strstr(d.asked[3], "POST /v1/windows/21/end ") == d.asked[3] &&
           strstr(d.asked[3], "\"keep\": true") && strstr(d.asked[3], "\"at_ns\": "),
       "how the energy is asked for: %s", d.asked[3]);
    static const char *const gone[] = {"HTTP/1.1 201 Created\r\n\r\n{\"id\": 23}", NULL};
    uw_window_free(a);
    daemon_says(gone);
    is_int(uw_window_begin(ctx, &a, &err), 0, "one more");
    daemon_done();
    ok(strstr(d.asked[0], "\"done\": [") && strstr(d.asked[0], "21") &&
           !strstr(d.asked[0], "stopped"),
       "it tells which one is not needed: %s", d.asked[0]);
    static const char *const last[] = {"HTTP/1.1 204 No Content\r\n\r\n", NULL};
    daemon_says(last);
    uw_ctx_free(ctx);
    daemon_done();
    ok(strstr(d.asked[0], "POST /v1/windows/batch ") == d.asked[0] &&
           strstr(d.asked[0], "22") && strstr(d.asked[0], "23"),
       "the end of the context does for the rest");
    is_int(uw_window_stop(a, &err), -EINVAL, "whose windows are ended: %s", err.text);
    uw_window_free(a);
    uw_window_free(b);
}

static void claims(uw_ctx *ctx)
{
    static const char *const says[] = {
        "HTTP/1.1 403 No\r\n\r\n{\"error\": \"anna may not\"}",
        "HTTP/1.1 201 Created\r\n\r\n{\"id\": 12}", NULL};
    uw_device *dev = uw_device_at(ctx, 0);
    uw_error err = {""};
    uint64_t id = 0;
    char want[64];

    daemon_says(says);
    is_int(uw_device_claim(dev, 250000, 60, "why", &id, &err), -EPERM, "refused: %s",
           err.text);
    is_int(uw_device_claim(dev, 250000, 0, NULL, &id, &err), 0, "claimed");
    daemon_done();
    is_int((int)id, 12, "its number");
    (void)snprintf(want, sizeof want, "\"pid\": %d", (int)getpid());
    ok(strstr(d.asked[0], "POST /v1/claims HTTP/1.0\r\n") == d.asked[0], "by its path");
    ok(strstr(d.asked[0], "\"cap\": \"250000 mW\"") &&
           strstr(d.asked[0], "\"for\": \"60 s\"") && strstr(d.asked[0], want),
       "what was claimed, and that it ends with this process");
    ok(!strstr(d.asked[1], "for") && !strstr(d.asked[1], "why"),
       "nothing more than said");
    is_int(uw_device_claim(dev, 0, 0, NULL, &id, &err), -EINVAL, "no cap: %s", err.text);
    is_int(uw_device_claim(dev, 250000, -1, NULL, &id, &err), -EINVAL, "no time: %s",
           err.text);
    is_int(uw_device_claim(dev, 250000, (double)NAN, NULL, &id, &err), -EINVAL,
           "no number");
    is_int(uw_claim_withdraw(NULL, 1, &err), -EINVAL, "nobody's");
}

static void asking(void)
{
    static const char *const last[] = {"HTTP/1.1 204 No Content\r\n\r\n", NULL};
    uw_error err = {""};
    int r;
    uw_ctx *ctx = open_ctx(OK(GPUS), &err, &r);

    if (ok(ctx != NULL, "a daemon %s", err.text)) {
        boards(ctx);
        other_daemon(ctx);
        claims(ctx);
        daemon_says(last); /* of a window */
        uw_ctx_free(ctx);
        daemon_done();
    }
    ctx = open_ctx(OK(GPUS), &err, &r);
    if (ok(ctx != NULL, "a daemon %s", err.text))
        stopped(ctx);
}

static void jobs(void)
{
    uw_error err = {""};
    uw_job *job = NULL;
    int r;
    char name[200];

    uw_ctx *ctx = open_ctx(OK(GPUS), &err, &r);
    uw_device *dev[] = {uw_device_at(ctx, 0), NULL};
    uw_label label = {"", "x"};
    uw_job_options o = {.size = sizeof o, .labels = &label, .n_labels = 1};
    if (!dev[0])
        return;
    is_int(uw_job_begin(ctx, &o, &job, &err), -EINVAL, "%s", err.text);
    label.key = "project";
    o.n_labels = 17;
    is_int(uw_job_begin(ctx, &o, &job, &err), -EINVAL, "%s", err.text);
    o.n_labels = 0;
    o.devices = dev;
    o.n_devices = 2;
    is_int(uw_job_begin(ctx, &o, &job, &err), -EINVAL, "%s", err.text);
    o.n_devices = 0;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    o.name = name;
    is_int(uw_job_begin(ctx, &o, &job, &err), -EINVAL, "%s", err.text);
    o.name = NULL;
    o.goal = "edp";
    o.cap = "85%";
    is_int(uw_job_begin(ctx, &o, &job, &err), -EINVAL, "%s", err.text);
    o.size = 0;
    is_int(uw_job_begin(ctx, &o, &job, &err), -EINVAL, "%s", err.text);
    is_int(uw_goal_check("slowdown:1.1", &err), 0, "a goal");
    is_int(uw_goal_check("slowdown:0.9", &err), -EINVAL, "none: %s", err.text);
    is_int(uw_goal_check("best", &err), -EINVAL, "none: %s", err.text);
    is_int(uw_goal_check(NULL, &err), -EINVAL, "none: %s", err.text);

    /* Registered, but the page finds no door: taken back. */
    static const char *const says[] = {"HTTP/1.1 201 Created\r\n\r\n{\"id\": 9}",
                                       "HTTP/1.1 204 No Content\r\n\r\n", NULL};
    int fd = next_fd();
    daemon_says(says);
    o = (uw_job_options){.size = sizeof o, .devices = dev, .n_devices = 1, .goal = "edp"};
    r = uw_job_begin(ctx, &o, &job, &err);
    daemon_done();
    ok(r < 0 && !job && strstr(err.text, "job.sock"), "no door for its steps: %s",
       err.text);
    ok(strstr(d.asked[0], "\"goal\": \"edp\"") && strstr(d.asked[0], "\"GPU-a\"") &&
           strstr(d.asked[0], "\"source\": \"run\""),
       "what was registered");
    ok(strstr(d.asked[1], "DELETE /v1/jobs/9 ") == d.asked[1], "it is taken back");
    is_int(next_fd(), fd, "no descriptor stays");
    daemon_says(says);
    o = (uw_job_options){
        .size = sizeof o, .cap = "balanced", .job_class = "night", .command = "c"};
    o.devices = dev;
    o.n_devices = 1;
    o.default_devices = 1;
    r = uw_job_begin(ctx, &o, &job, &err);
    daemon_done();
    ok(r < 0 && strstr(d.asked[0], "\"preset\": \"balanced\"") &&
           strstr(d.asked[0], "\"class\": \"night\"") &&
           strstr(d.asked[0], "\"command\": \"c\"") && !strstr(d.asked[0], "goal") &&
           strstr(d.asked[0], "\"default_gpus\"") && strstr(d.asked[0], "\"GPU-a\""),
       "a cap, a class, a command and boards that nobody named %s", err.text);
    static const char *const joins[] = {
        "HTTP/1.1 201 Created\r\n\r\n{\"id\": 9, \"joined\": true}",
        OK("{\"id\": 9, \"search\": {\"page\": true}}"),
        "HTTP/1.1 204 No Content\r\n\r\n", NULL};
    daemon_says(joins);
    o = (uw_job_options){.size = sizeof o, .goal = "edp", .group = "ranks"};
    r = uw_job_begin(ctx, &o, &job, &err);
    daemon_done();
    char leaves[64];
    (void)snprintf(leaves, sizeof leaves, "DELETE /v1/jobs/9?pid=%d ", (int)getpid());
    ok(r < 0 && strstr(err.text, "job.sock") &&
           strstr(d.asked[0], "\"group\": \"ranks\"") && !strstr(d.asked[0], "\"job\""),
       "a group is joined, whose page finds no door: %s", err.text);
    ok(strstr(d.asked[1], "GET /v1/jobs/9 ") && strstr(d.asked[2], leaves) == d.asked[2],
       "and left");
    daemon_says(joins);
    o.goal = NULL;
    r = uw_job_begin(ctx, &o, &job, &err);
    daemon_done();
    ok(r < 0 && strstr(err.text, "job.sock"),
       "so is the page of a job with a goal by who has none: %s", err.text);
    static const char *const unread[] = {
        "HTTP/1.1 201 Created\r\n\r\n{\"id\": 9, \"joined\": true}",
        OK("{\"id\": 9, \"running\": true, \"search\": null}"), NULL};
    daemon_says(unread);
    o.goal = "edp";
    r = uw_job_begin(ctx, &o, &job, &err);
    daemon_done();
    ok(r == 0 && uw_job_id(job) == 9, "no page of a job without one: joined %s",
       err.text);
    uw_job_free(job);
    job = NULL;
    is_int(next_fd(), fd, "no descriptor stays");
    uw_job_step(NULL, UW_PHASE_TRAIN);
    uw_job_free(NULL);
    is_int((int)uw_job_id(NULL), 0, "no job");
    uw_ctx_free(ctx);
}

#define JOB                                                                              \
    "{\"id\": 9, \"running\": true, \"steps\": 77, \"step_s\": 0.25, \"energy_j\": "     \
    "500, "                                                                              \
    "\"half_j\": null, \"booked_s\": 8, \"time_s\": 10, \"search\": "                    \
    "{\"goal\": \"edp\", \"state\": "                                                    \
    "\"measures at 210 W\", \"status\": \"measures\", \"cap_mw\": 210000, \"lock\": "    \
    "null, "                                                                             \
    "\"caps\": 2, \"windows\": 5, \"saved\": {\"fraction\": 0.2, \"fraction_half\": "    \
    "0.02, "                                                                             \
    "\"energy_j\": 90, \"energy_half_j\": 9, \"slowdown\": 1.04, \"slowdown_half\": "    \
    "0.01}, \"details\": {\"original_mw\": 250000, \"reference_mw\": 250000, "           \
    "\"held_mw\": "                                                                      \
    "null, \"why\": \"w\", \"progress\": \"steps\", \"search_s\": 40, \"caps\": "        \
    "[{\"cap_mw\": 250000, \"windows\": 3, \"step_s\": 0.5, \"step_j\": 100, "           \
    "\"step_s_rse\": 0.01, \"step_j_rse\": null}, {\"cap_mw\": 210000, \"windows\": 2, " \
    "\"step_s\": 0.52, \"step_j\": 80, \"step_s_rse\": 0.1, \"step_j_rse\": 0.1}]}}}"

/* A job that runs already, and its search. */
static void found(void)
{
    static const char *const says[] = {OK(JOB),
                                       OK(JOB),
                                       OK(JOB),
                                       OK(JOB),
                                       "HTTP/1.1 204 No Content\r\n\r\n",
                                       OK("{\"id\": 9, \"search\": null}"),
                                       NULL};
    uw_error err = {""};
    uw_job *job = NULL;
    uw_search *s = calloc(1, sizeof *s + 64);
    uw_curve_point point[2] = {{0}};
    uw_energy e;
    size_t n = 0;
    int r;

    uw_ctx *ctx = open_ctx(OK(GPUS), &err, &r);
    if (!ctx || !s)
        return;
    daemon_says(says);
    is_int(uw_job_find(ctx, 9, &job, &err), 0, "a job by its number %s", err.text);
    is_int(uw_job_search(job, s, &err), -EINVAL, "no size: %s", err.text);
    s->size = sizeof *s;
    is_int(uw_job_search(job, s, &err), 0, "its search");
    ok(s->original_mw == 250000 && s->best_mw == 210000 && s->held_mw == 0 &&
           s->saved_known && s->caps == 2 && s->windows == 5 && s->steps == 77,
       "whole numbers of it");
    is_near(s->saved + s->saved_half + s->slowdown + s->search_s + s->step_s, 41.51, 1e-9,
            "others");
    ok(strcmp(s->goal, "edp") == 0 && strcmp(s->status, "measures") == 0 &&
           strcmp(s->text, "measures at 210 W") == 0 && strcmp(s->why, "w") == 0 &&
           strcmp(s->progress, "steps") == 0,
       "and words");
    is_int(uw_job_curve(job, point, 1, &n, &err), 0, "its curve");
    ok(n == 2 && point[0].cap_mw == 250000 && point[1].cap_mw == 0,
       "two points, room for one");
    ok(fabs(point[0].step_s_half - 0.0098) < 1e-9 && isnan(point[0].step_j_half),
       "intervals where they are known");
    is_int(uw_job_energy(job, &e, &err), 0, "its energy");
    ok(fabs(e.energy_j - 500) < 1e-9 && isnan(e.half_j), "of so far");
    ok(fabs(e.time_s - 8) < 1e-9 && fabs(e.power_w - 62.5) < 1e-9,
       "and the time for which that is, and power");
    is_int(uw_job_goal(job, NULL, &err), 0, "no goal for now");
    s->size = 3 * sizeof(uint32_t);
    is_int(uw_job_search(job, s, &err), -ENODATA, "no search: %s", err.text);
    daemon_done();
    ok(strstr(d.asked[4], "PUT /v1/jobs/9/goal ") == d.asked[4] &&
           strstr(d.asked[4], "\"goal\": null"),
       "how a goal is taken back");
    uw_job_step(job, UW_PHASE_TRAIN);
    uw_progress *p = NULL;
    ok(uw_progress_attach(job, &p, &err) < 0 && strstr(err.text, "job.sock"),
       "its page is asked for: %s", err.text);
    is_int(uw_job_renew(job, &err), -ENOTSUP, "and is not this process': %s", err.text);
    uint64_t id;
    is_int(uw_job_cap(job, "", 0, NULL, &id, &err), -EINVAL, "no cap: %s", err.text);
    is_int(uw_job_cap(job, "85%", -1, NULL, &id, &err), -EINVAL, "no time: %s", err.text);
    is_int(uw_job_goal(job, "", &err), -EINVAL, "an empty goal: %s", err.text);
    uw_job_free(job);
    uw_ctx_free(ctx);
    free(s);
}

int main(void)
{
    parses();
    windows();
    no_windows();
    if (!ok(daemon_begin(), "a made-up daemon"))
        return done();
    opening();
    options();
    asking();
    jobs();
    found();
    (void)close(d.fd);
    (void)unlink(d.path);
    (void)rmdir(d.dir);
    return done();
}
