/* How long a claim takes from the client's write to the actuator's door, and a scrape
 * from request to answer.  bench/node.py starts the programs and this among them.
 *
 *     node-latency ACTUATOR DOOR SOCKET CLAIMS SCRAPES UUID...
 *
 * It listens at DOOR as the actuator would, forwards everything both ways, and notes
 * when a request to set a board's limit comes in.  When the daemon has come, it makes
 * CLAIMS hard claims through the daemon's SOCKET, one board after the other so that the
 * actuator's gap between writes never counts, withdraws each, and prints JSON.  Where it
 * may, it runs before everybody of the normal class: its own waits are not the daemon's.
 *
 * Beside each claim one message goes through a process that only hands it on, in the same
 * class and with as many wake-ups: what the machine alone takes at that time.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "actuator/proto.h"
#include "base/auto.h"
#include "base/units.h"

enum { BOARDS = 64, GAP_MS = 70, WAIT_MS = 3000, BODY = 1 << 20 };

struct door {
    const char *actuator, *path;
    int listening;
    size_t n;
    char *const *uuid;
    _Atomic uint64_t seen_ns[BOARDS]; /* the newest request to set the limit */
    atomic_int serving;
    int echo, echoed;         /* to and from the forwarding process */
    _Atomic uint64_t echo_ns; /* the newest message that came out */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void rest(uint64_t until_ns)
{
    uint64_t now = now_ns();
    struct timespec t = {.tv_sec = 0, .tv_nsec = 0};

    if (until_ns <= now)
        return;
    t.tv_sec = (time_t)((until_ns - now) / NS_PER_S);
    t.tv_nsec = (long)((until_ns - now) % NS_PER_S);
    (void)nanosleep(&t, NULL);
}

static int unix_socket(int type, const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(ret->sun_path, sizeof ret->sun_path, "%s", path);
    return socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
}

static int connect_to(int type, const char *path)
{
    struct sockaddr_un at;
    int fd = unix_socket(type, path, &at);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        (void)close(fd);
        return -errno;
    }
    return fd < 0 ? -errno : fd;
}

/* ---- the actuator's socket ---- */

static void note(struct door *d, const void *data, size_t size, uint64_t at_ns)
{
    struct proto_request q;

    if (proto_parse_request(data, size, &q, NULL) < 0 || q.type != PROTO_LIMIT)
        return;
    for (size_t i = 0; i < d->n; i++) {
        if (strcmp(q.uuid, d->uuid[i]) == 0)
            atomic_store(&d->seen_ns[i], at_ns);
    }
}

/* Forwards one message from one side to the other; false: a side has closed. */
static bool forward(struct door *d, int from, int to, bool requests)
{
    char data[4096];

    ssize_t n = recv(from, data, sizeof data, 0);
    uint64_t at_ns = now_ns();
    if (n <= 0)
        return false;
    if (requests)
        note(d, data, (size_t)n, at_ns);
    return send(to, data, (size_t)n, MSG_NOSIGNAL) == n;
}

static void *serve(void *user)
{
    struct door *d = user;

    for (;;) {
        int client = accept4(d->listening, NULL, NULL, SOCK_CLOEXEC);
        int real = connect_to(SOCK_SEQPACKET, d->actuator);
        bool good = client >= 0 && real >= 0;
        atomic_store(&d->serving, good);
        while (good) {
            struct pollfd p[2] = {{.fd = client, .events = POLLIN},
                                  {.fd = real, .events = POLLIN}};
            (void)poll(p, 2, -1);
            if (p[0].revents)
                good = forward(d, client, real, true);
            if (good && p[1].revents)
                good = forward(d, real, client, false);
        }
        (void)close(client);
        (void)close(real);
    }
    return NULL;
}

static int open_door(struct door *d)
{
    struct sockaddr_un at;
    pthread_t thread;

    (void)unlink(d->path);
    d->listening = unix_socket(SOCK_SEQPACKET, d->path, &at);
    if (d->listening < 0 || bind(d->listening, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(d->listening, 4) < 0)
        return -errno;
    return -pthread_create(&thread, NULL, serve, d);
}

/* ---- the latency of the machine alone ---- */

static void hand_on(int in, int out)
{
    char c;

    while (recv(in, &c, 1, 0) == 1 && send(out, &c, 1, MSG_NOSIGNAL) == 1)
        ;
}

static void *listen_for_echo(void *user)
{
    struct door *d = user;
    char c;

    while (recv(d->echoed, &c, 1, 0) == 1)
        atomic_store(&d->echo_ns, now_ns());
    return NULL;
}

/* Call before any thread is started: this forks.  Returns 1 in the forwarding process
 * when it is done.
 */
static int open_echo(struct door *d)
{
    int in[2], out[2];
    pthread_t thread;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        (void)close(in[0]);
        (void)close(out[1]);
        hand_on(in[1], out[0]);
        return 1;
    }
    (void)close(in[1]);
    (void)close(out[0]);
    d->echo = in[0];
    d->echoed = out[1];
    return -pthread_create(&thread, NULL, listen_for_echo, d);
}

/* Milliseconds; < 0: the message did not come back. */
static double echo(struct door *d)
{
    uint64_t t0 = now_ns();

    if (send(d->echo, "", 1, MSG_NOSIGNAL) != 1)
        return -1;
    while (atomic_load(&d->echo_ns) < t0 && now_ns() < t0 + (uint64_t)WAIT_MS * NS_PER_MS)
        rest(now_ns() + 20 * NS_PER_US);
    uint64_t seen = atomic_load(&d->echo_ns);
    return seen >= t0 ? (double)(seen - t0) * 1e-6 : -1;
}

/* ---- the client ---- */

/* One request on an open connection; returns the beginning of the body, 0 on failure. */
static unsigned ask(int fd, const char *method, const char *path, const char *body,
                    char *ret, size_t size)
{
    char head[512];
    size_t have = 0, want = SIZE_MAX;
    unsigned status = 0;

    int n =
        snprintf(head, sizeof head,
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n%s\r\n%s",
                 method, path, body ? strlen(body) : 0,
                 body ? "Content-Type: application/json\r\n" : "", body ? body : "");
    if (n < 0 || (size_t)n >= sizeof head || send(fd, head, (size_t)n, MSG_NOSIGNAL) != n)
        return 0;
    while (have < want) {
        ssize_t got = recv(fd, ret + have, size - 1 - have, 0);
        if (got <= 0)
            return 0;
        have += (size_t)got;
        ret[have] = '\0';
        char *end = strstr(ret, "\r\n\r\n"), *len = strcasestr(ret, "content-length:");
        uint64_t bytes = 0;
        char digits[24] = "";
        if (!end)
            continue;
        if (len && sscanf(len + 15, " %20[0-9]", digits) == 1)
            (void)parse_u64(digits, &bytes, NULL);
        want = (size_t)(end - ret) + 4 + (size_t)bytes;
    }
    char code[4] = "";
    if (sscanf(ret, "HTTP/1.1 %3[0-9]", code) == 1) {
        uint64_t v = 0;
        (void)parse_u64(code, &v, NULL);
        status = (unsigned)v;
    }
    return status;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_stats(const char *name, double *ms, size_t n)
{
    double sum = 0;
    size_t late = 0;

    for (size_t i = 0; i < n; i++) {
        sum += ms[i];
        late += ms[i] > 0.5; /* the target for a claim */
    }
    qsort(ms, n, sizeof *ms, by_value);
    printf("\"%s\": {\"n\": %zu, \"mean_ms\": %.4f, \"p50_ms\": %.4f, \"p99_ms\": %.4f, "
           "\"max_ms\": %.4f, \"over_500_us\": %zu}",
           name, n, sum / (double)n, ms[n / 2], ms[n * 99 / 100], ms[n - 1], late);
}

/* The k-th claim; returns the time until its limit reached the socket in ms; < 0:
 * failed.  Its cap differs from that of the board's last claim, which may not have been
 * taken back yet.
 */
static double claim(struct door *d, int fd, size_t k, char *body)
{
    size_t i = k % d->n;
    char text[200], path[64], id[24] = "";

    (void)snprintf(text, sizeof text,
                   "{\"gpu\": \"%zu\", \"kind\": \"hard\", \"cap\": \"%zu W\", "
                   "\"for\": \"60 s\", \"why\": \"bench\"}",
                   i, 150 + i + k / d->n % 2 * 20);
    uint64_t t0 = now_ns();
    unsigned status = ask(fd, "POST", "/v1/claims", text, body, BODY);
    if (status / 100 != 2) {
        (void)fprintf(stderr, "claim: %u: %s\n", status, body);
        return -1;
    }
    while (atomic_load(&d->seen_ns[i]) < t0 &&
           now_ns() < t0 + (uint64_t)WAIT_MS * NS_PER_MS)
        rest(now_ns() + 20 * NS_PER_US);
    uint64_t seen = atomic_load(&d->seen_ns[i]);
    const char *at = strstr(body, "\"id\"");
    if (!at || sscanf(at + 4, " : %20[0-9]", id) != 1)
        return -1;
    rest(t0 + (uint64_t)GAP_MS * NS_PER_MS / d->n);
    (void)snprintf(path, sizeof path, "/v1/claims/%s", id);
    status = ask(fd, "DELETE", path, NULL, body, BODY);
    if (seen >= t0 && status / 100 == 2)
        return (double)(seen - t0) * 1e-6;
    (void)fprintf(stderr, "claim %s: %s at the door, withdrawn with %u\n", id,
                  seen >= t0 ? "seen" : "never", status);
    return -1;
}

static int run(struct door *d, const char *socket, size_t claims, size_t scrapes,
               bool realtime)
{
    double *ms = calloc(claims > scrapes ? claims : scrapes, sizeof *ms);
    double *alone = calloc(claims + 1, sizeof *alone);
    char *body = calloc(1, BODY);
    int fd = connect_to(SOCK_STREAM, socket);
    size_t n = 0, n_alone = 0, bytes = 0, failed = 0;

    if (fd < 0 || !ms || !alone || !body) {
        (void)fprintf(stderr, "node-latency: %s: %s\n", socket, strerror(-fd));
        free(ms);
        free(alone);
        free(body);
        return 1;
    }
    for (size_t i = 0; i < claims; i++) {
        uint64_t t0 = now_ns();
        double v = claim(d, fd, i, body);
        if (v >= 0)
            ms[n++] = v;
        else
            failed++;
        if (failed > 10)
            break;
        rest(t0 + (uint64_t)GAP_MS * NS_PER_MS * 3 / 2 / d->n);
        alone[n_alone] = echo(d);
        n_alone += alone[n_alone] >= 0;
        rest(t0 + 2ull * GAP_MS * NS_PER_MS / d->n);
    }
    printf("{");
    if (n)
        print_stats("claim_to_actuator", ms, n);
    printf("%s", n && n_alone ? ", " : "");
    if (n_alone)
        print_stats("machine_alone", alone, n_alone);
    printf("%s\"claims_failed\": %zu", n ? ", " : "", failed);
    for (n = 0; n < scrapes; n++) {
        uint64_t t0 = now_ns();
        if (ask(fd, "GET", "/metrics", NULL, body, BODY) != 200)
            break;
        ms[n] = (double)(now_ns() - t0) * 1e-6;
        bytes = strlen(body);
        rest(t0 + 10 * NS_PER_MS);
    }
    if (n) {
        printf(", ");
        print_stats("metrics", ms, n);
    }
    printf(", \"metrics_bytes\": %zu, \"client_class\": \"%s\"}\n", bytes,
           realtime ? "realtime" : "normal");
    (void)close(fd);
    free(ms);
    free(alone);
    free(body);
    return failed || n < scrapes;
}

int main(int argc, char **argv)
{
    struct door d = {.listening = -1};
    const struct sched_param first = {.sched_priority = 1};
    uint64_t claims = 0, scrapes = 0;

    if (argc < 7 || argc - 6 > BOARDS || parse_u64(argv[4], &claims, NULL) < 0 ||
        parse_u64(argv[5], &scrapes, NULL) < 0) {
        (void)fprintf(stderr, "usage: node-latency ACTUATOR DOOR SOCKET CLAIMS SCRAPES "
                              "UUID...\n");
        return 2;
    }
    d.actuator = argv[1];
    d.path = argv[2];
    d.uuid = argv + 6;
    d.n = (size_t)(argc - 6);
    bool realtime = sched_setscheduler(0, SCHED_RR, &first) == 0; /* and of the thread */
    int r = open_echo(&d);
    if (r > 0)
        return 0;
    if (r == 0)
        r = open_door(&d);
    if (r < 0) {
        (void)fprintf(stderr, "node-latency: %s: %s\n", d.path, strerror(-r));
        return 1;
    }
    printf("ready\n");
    (void)fflush(stdout);
    char line[8];
    if (!fgets(line, sizeof line, stdin)) /* wait until the daemon is ready */
        return 1;
    return run(&d, argv[3], claims, scrapes, realtime);
}
