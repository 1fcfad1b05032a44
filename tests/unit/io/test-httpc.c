/* The commands' HTTP client against our own server: unix socket and TLS. */
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/file.h"
#include "io/http-many.h"
#include "io/http.h"
#include "io/httpc.h"
#include "tap.h"

#define LONG_NS (60 * NS_PER_S) /* what is answered is so by then, on any machine */

/* ---- a server ---- */

struct rig {
    struct loop *loop;
    struct http_server *s;
    struct loop_fd *wake;
    int pipe[2];
    char dir[32], path[64], cert[64], key[64], other[64];
    uint16_t port;
    struct http_exchange *held; /* the server's thread */
    int patched;
};

/* Requests for this path are answered once so many PATCHes were. */
enum { PATCHES = 8 };

static void answer_held(struct rig *rig)
{
    if (rig->held && rig->patched >= PATCHES)
        http_reply(take(rig->held), 200, "text/plain", "held", 4, NULL);
}

static void handler(struct http_exchange *x, void *user)
{
    struct rig *rig = user;
    const char *path = http_path(x), *token = http_header(x, "Authorization");
    size_t len;

    if (strcmp(path, "/echo") == 0) {
        const char *body = http_body(x, &len);
        http_reply(x, 200, "application/json; charset=utf-8", body, len, NULL);
    } else if (strcmp(path, "/empty") == 0) {
        http_reply(x, 204, NULL, NULL, 0, NULL);
        rig->patched += http_method(x) == HTTP_PATCH;
        answer_held(rig);
    } else if (strcmp(path, "/held") == 0) {
        rig->held = x;
        answer_held(rig);
    } else if (strcmp(path, "/large") == 0) {
        static char text[200000];
        memset(text, ' ', sizeof text);
        http_reply(x, 200, "text/plain", text, sizeof text, NULL);
    } else if (strcmp(path, "/token") == 0) {
        http_reply(x, 200, "text/plain", token ? token : "none",
                   token ? strlen(token) : 4, NULL);
    } else if (strcmp(path, "/keep") == 0) {
        return;
    } else if (strncmp(path, "/later-", 7) == 0) {
        const struct http_field fields[] = {{"Retry-After", path + 7}, {NULL, NULL}};
        http_fail_fields(x, 429, fields, "later");
    } else {
        http_fail(x, strcmp(path, "/busy") == 0 ? 409 : 404, "no such thing: %s", path);
    }
}

static int on_wake(struct loop_fd *source, int fd, int events, void *user)
{
    struct rig *rig = user;
    (void)source, (void)fd, (void)events;
    loop_stop(rig->loop, 0);
    return 0;
}

static bool write_pem(const char *path, const gnutls_datum_t *pem)
{
    return file_write(path, pem->data, pem->size, 0600, NULL) == 0;
}

/* A key and a certificate for 127.0.0.1 that it signs itself. */
static bool make_cert(const char *cert_path, const char *key_path)
{
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crt_t crt = NULL;
    gnutls_datum_t pem = {NULL, 0};
    unsigned char serial[8] = {1, 2, 3}, ip[4] = {127, 0, 0, 1};
    time_t at = 1700000000;
    bool good;

    (void)gnutls_x509_privkey_init(&key);
    (void)gnutls_x509_privkey_generate(
        key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    (void)gnutls_x509_crt_init(&crt);
    (void)gnutls_x509_crt_set_version(crt, 3);
    (void)gnutls_x509_crt_set_key(crt, key);
    (void)gnutls_x509_crt_set_serial(crt, serial, sizeof serial);
    (void)gnutls_x509_crt_set_activation_time(crt, at);
    (void)gnutls_x509_crt_set_expiration_time(crt, at + 3600L * 24 * 365 * 30);
    (void)gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, "test", 4);
    (void)gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, ip, 4,
                                               GNUTLS_FSAN_SET);
    (void)gnutls_x509_crt_set_ca_status(crt, 1);
    good = gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0) == 0 &&
           gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &pem) == 0;
    good = good && write_pem(cert_path, &pem);
    gnutls_free(pem.data);
    good = good && gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem) == 0;
    good = good && write_pem(key_path, &pem);
    gnutls_free(pem.data);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
    return good;
}

/* ---- the client's part, in a thread of its own ---- */

static struct httpc *client(const struct httpc_opts *opts)
{
    struct httpc *c = NULL;
    uw_error err = {""};

    ok(httpc_new(opts, &c, &err) == 0, "a client %s", err.text);
    return c;
}

static void test_calls(struct httpc *c)
{
    struct httpc_reply reply = {0};
    uw_error err = {""};

    ok(httpc_call(c, "POST", "/echo", "{\"a\": 1}", &reply, &err) == 0 &&
           reply.status == 200 && strcmp(reply.body, "{\"a\": 1}") == 0 &&
           strcmp(reply.type, "application/json") == 0,
       "a body goes there and back %s", err.text);
    httpc_reply_fini(&reply);
    ok(httpc_call(c, "DELETE", "/empty", NULL, &reply, &err) == 0 &&
           reply.status == 204 && reply.len == 0 && reply.body[0] == '\0',
       "an empty answer");
    httpc_reply_fini(&reply);
    ok(httpc_call(c, "GET", "/echo/../x", NULL, &reply, &err) == 0 && reply.status == 400,
       "paths go as they are");
    httpc_reply_fini(&reply);
    is_int(httpc_call(c, "GET", "x", NULL, &reply, &err), -EINVAL, "no path: %s",
           err.text);

    struct json *doc = NULL;
    struct json_out *o = json_out_new();
    uint64_t v = 0;
    json_out_object(o, NULL);
    json_out_int(o, "a", 42);
    json_out_end(o);
    ok(httpc_ask(c, "PUT", "/echo", o, &doc, &err) == 0 &&
           json_get_u64(json_root(doc), "a", &v, &err) == 0 && v == 42,
       "JSON there and back");
    json_free(doc);
    doc = (struct json *)&v;
    ok(httpc_ask(c, "GET", "/empty", NULL, &doc, &err) == 0 && !doc, "none of it");
    is_int(httpc_ask(c, "GET", "/nowhere", NULL, NULL, &err), -ENOENT, "404");
    is_str(err.text, "no such thing: /nowhere", "the server's own words");
    is_int(httpc_ask(c, "GET", "/busy", NULL, NULL, &err), -EBUSY, "409");
}

static void test_limits(const struct rig *rig)
{
    struct httpc_reply reply = {0};
    struct httpc_opts opts = {
        .socket = rig->path, .timeout_ns = LONG_NS, .body_max = 100000};
    auto_(httpc_free) struct httpc *c = client(&opts);
    opts.timeout_ns = 300 * NS_PER_MS;
    auto_(httpc_free) struct httpc *soon = client(&opts);
    uw_error err;

    is_int(httpc_call(c, "GET", "/large", NULL, &reply, &err), -EFBIG, "%s", err.text);
    is_int(httpc_call(soon, "GET", "/keep", NULL, &reply, &err), -ETIMEDOUT, "%s",
           err.text);
    ok(!reply.body, "nothing is there after a failure");
    opts.timeout_ns = LONG_NS;
    opts.body_max = 200000;
    auto_(httpc_free) struct httpc *d = client(&opts);
    ok(httpc_call(d, "GET", "/large", NULL, &reply, &err) == 0 && reply.len == 200000,
       "as large as it may be");
    httpc_reply_fini(&reply);
    opts = (struct httpc_opts){.socket = "/nowhere/s"};
    auto_(httpc_free) struct httpc *f = client(&opts);
    is_int(httpc_call(f, "GET", "/", NULL, &reply, &err), -ENOENT, "refused");
    is_str(err.text, "no daemon answers at /nowhere/s: No such file or directory",
           "says where and why");
}

static void *cancel_soon(void *user)
{
    (void)poll(NULL, 0, 200);
    httpc_cancel(user);
    return NULL;
}

static void test_cancel(const struct rig *rig)
{
    struct httpc_opts opts = {.socket = rig->path};
    auto_(httpc_free) struct httpc *c = client(&opts);
    struct httpc_reply reply = {0};
    pthread_t thread;
    uw_error err = {""};

    (void)pthread_create(&thread, NULL, cancel_soon, c);
    is_int(httpc_call(c, "GET", "/keep", NULL, &reply, &err), -ECANCELED, "%s", err.text);
    (void)pthread_join(thread, NULL);
    is_int(httpc_call(c, "GET", "/empty", NULL, &reply, &err), -ECANCELED,
           "and for good");
}

/* An authority that is not the server's, and an answer that does not come. */
static void test_tls(const struct rig *rig)
{
    const struct {
        const char *ca, *path;
        uint64_t timeout_ns;
        int r;
        const char *says;
    } cases[] = {
        {rig->cert, "/token", LONG_NS, 0, ""},
        {rig->other, "/token", LONG_NS, -EPROTO, "certificate"},
        {NULL, "/token", LONG_NS, -EPROTO, "certificate"},
        {rig->cert, "/keep", 1500 * NS_PER_MS, -ETIMEDOUT, "/: no answer within 1.5 s"},
    };
    char url[64];

    (void)snprintf(url, sizeof url, "https://127.0.0.1:%u/", rig->port);
    for (size_t i = 0; i < n_elements(cases); i++) {
        const struct http_many_opts opts = {.agent = "test",
                                            .ca = cases[i].ca,
                                            .token = "uwt_x",
                                            .timeout_ns = cases[i].timeout_ns,
                                            .at_once = 1,
                                            .body_max = 1000};
        auto_(http_many_free) struct http_many *m = NULL;
        struct http_ask ask = {.method = "GET", .path = cases[i].path, .keep = true};
        struct http_chain chain = {.url = url, .ask = &ask, .n = 1};
        uw_error err = {""};
        is_int(http_many_new(&opts, &m, &err), 0, "TLS, case %zu %s", i, err.text);
        http_many_run(m, &chain, 1);
        is_int(chain.r, cases[i].r, "ends as it should: %s", chain.why.text);
        ok(strstr(chain.why.text, cases[i].says) != NULL, "and says so");
        if (cases[i].r == 0)
            is_str(ask.body ? ask.body : "", "Bearer uwt_x", "with a token");
        free(ask.body);
    }
}

/* ---- many at once ---- */

static bool is_body(struct http_ask *ask, const char *text)
{
    bool same = ask->body && strcmp(ask->body, text) == 0;

    free(ask->body);
    ask->body = NULL;
    return same;
}

/* A chain's time limit, which is longer where this machine needs more for the first of
 * its requests.
 */
static void test_hangs(const struct rig *rig)
{
    struct http_many_opts opts = {
        .agent = "test", .timeout_ns = 300 * NS_PER_MS, .at_once = 1};
    struct http_ask ask[3] = {{.status = 0}};
    struct http_chain chain = {.n = 0};

    while (ask[0].status != 200 && opts.timeout_ns < LONG_NS) {
        auto_(http_many_free) struct http_many *m = NULL;
        uw_error err = {""};
        opts.body_max = 1000;
        is_int(http_many_new(&opts, &m, &err), 0, "one that hangs %s", err.text);
        ask[0] = (struct http_ask){.method = "GET", .path = "/token"};
        ask[1] = (struct http_ask){.method = "GET", .path = "/keep"};
        ask[2] = (struct http_ask){.method = "GET", .path = "/token"};
        chain = (struct http_chain){.socket = rig->path, .ask = ask, .n = 3};
        http_many_run(m, &chain, 1);
        is_int(chain.r, -ETIMEDOUT, "has a time limit: %s", chain.why.text);
        opts.timeout_ns *= 2;
    }
    ok(ask[0].status == 200 && !ask[1].status && !ask[2].status,
       "what it answered before counts, what is behind is left out");
}

/* More than may be under way at once; one of them is answered only once all others
 * have been, and waits alone.
 */
static void test_many(const struct rig *rig)
{
    enum { N = 12 };
    const struct http_many_opts opts = {.agent = "test",
                                        .ca = rig->cert,
                                        .token = "uwt_x",
                                        .timeout_ns = LONG_NS,
                                        .at_once = 3,
                                        .body_max = 100000};
    auto_(http_many_free) struct http_many *m = NULL;
    struct http_chain chain[N] = {{.n = 0}};
    struct http_ask ask[N][4] = {{{.status = 0}}};
    char tls[64], plain[64];
    uw_error err = {""};

    is_int(http_many_new(&opts, &m, &err), 0, "many at once %s", err.text);
    (void)snprintf(tls, sizeof tls, "https://127.0.0.1:%u/", rig->port);
    (void)snprintf(plain, sizeof plain, "http://127.0.0.1:%u/", rig->port);
    for (size_t i = 0; i < N; i++) {
        ask[i][0] = (struct http_ask){
            .method = "PUT", .path = "/echo", .json = "[1]", .keep = true};
        ask[i][1] = (struct http_ask){.method = "GET", .path = "/nowhere"};
        ask[i][2] = (struct http_ask){.method = "GET", .path = "/token", .keep = true};
        ask[i][3] = (struct http_ask){.method = "PATCH", .path = "/empty", .json = "{}"};
        chain[i] = (struct http_chain){.socket = rig->path, .ask = ask[i], .n = 4};
    }
    ask[0][1].path = "/held";
    chain[1].socket = NULL;
    chain[1].url = tls;
    chain[2].socket = NULL;
    chain[2].url = plain;
    chain[3].socket = "/nowhere/s";
    ask[4][0].path = "/large";
    http_many_run(m, chain, N);
    ok(chain[0].r == 0 && ask[0][1].status == 200 && ask[0][3].status == 204,
       "one that waits for the others, which do not wait for it: %s", chain[0].why.text);
    ok(chain[1].r == 0 && ask[1][3].status == 204 && is_body(&ask[1][2], "Bearer uwt_x"),
       "by TLS, with the token %s", chain[1].why.text);
    is_int(chain[2].r, -EINVAL, "never without: %s", chain[2].why.text);
    is_int(chain[3].r, -ENOENT, "nobody there: %s", chain[3].why.text);
    is_int(chain[4].r, -EFBIG, "too large: %s", chain[4].why.text);
    for (size_t i = 5; i < N; i++)
        ok(chain[i].r == 0 && ask[i][0].status == 200 && ask[i][1].status == 404 &&
               ask[i][3].status == 204 && is_body(&ask[i][0], "[1]") &&
               is_body(&ask[i][2], "none"),
           "server %zu: each request in turn, no token on a socket", i);
    for (size_t i = 0; i < N; i++) {
        free(ask[i][0].body);
        free(ask[i][2].body);
    }
    ask[5][1].path = "/later-7";
    ask[6][1].path = "/later-99999";
    http_many_run(m, &chain[5], 2);
    ok(chain[5].r == 0 && ask[5][0].status == 200 && ask[5][1].status == 429 &&
           chain[5].retry_s == 7,
       "429 ends a chain, with its Retry-After");
    is_int(chain[6].retry_s, 3600, "an hour at most");
    free(ask[5][0].body);
    free(ask[6][0].body);
    http_many_cancel(m);
    chain[5].r = 0;
    http_many_run(m, &chain[5], 2);
    is_int(chain[5].r, -ECANCELED, "cancelled: %s", chain[5].why.text);
}

/* Two hang, and take the time of the third. */
static void test_late(const struct rig *rig)
{
    const struct http_many_opts opts = {.agent = "test",
                                        .timeout_ns = 1500 * NS_PER_MS,
                                        .begin_ns = 1400 * NS_PER_MS,
                                        .at_once = 2,
                                        .body_max = 100000};
    auto_(http_many_free) struct http_many *m = NULL;
    struct http_ask ask[3];
    struct http_chain chain[3];

    is_int(http_many_new(&opts, &m, NULL), 0, "two at once");
    for (size_t i = 0; i < 3; i++) {
        ask[i] = (struct http_ask){.method = "GET", .path = "/keep"};
        chain[i] = (struct http_chain){.socket = rig->path, .ask = &ask[i], .n = 1};
    }
    http_many_run(m, chain, 3);
    ok(chain[0].r == -ETIMEDOUT && chain[1].r == -ETIMEDOUT, "two hang");
    is_int(chain[2].r, -ETIME, "the third is left out: %s", chain[2].why.text);
}

static void *client_thread(void *user)
{
    struct rig *rig = user;
    struct httpc_opts opts = {.socket = rig->path, .timeout_ns = LONG_NS};

    struct httpc *c = client(&opts);
    test_calls(c);
    httpc_free(c);
    test_limits(rig);
    test_cancel(rig);
    test_tls(rig);
    test_hangs(rig);
    test_many(rig);
    test_late(rig);
    (void)!write(rig->pipe[1], "x", 1);
    return NULL;
}

static void with_server(struct rig *rig)
{
    struct http_opts opts = {.loop = rig->loop, .handler = handler, .user = rig};
    struct http_unix at = {.path = rig->path, .mode = 0600, .id = 1};
    struct http_tls tls = {rig->cert, rig->key};
    pthread_t thread;
    uw_error err = {""};

    int r = http_server_new(&opts, &rig->s, &err);
    if (r == 0)
        r = http_listen_unix(rig->s, &at, &err);
    if (r == 0)
        r = http_listen_tls(rig->s, "127.0.0.1:0", &tls, 2, &err);
    if (!ok(r == 0, "a server %s", err.text))
        return;
    rig->port = http_port(rig->s, 2);
    ok(rig->port > 0 && http_port(rig->s, 1) == 0, "its port");
    is_int(http_load_tls(rig->s, &err), 0, "certificates are read again %s", err.text);
    http_use_tls(rig->s);
    (void)loop_fd_new(rig->loop, rig->pipe[0], LOOP_READ, on_wake, rig, &rig->wake, &err);
    (void)pthread_create(&thread, NULL, client_thread, rig);
    (void)loop_run(rig->loop, &err);
    (void)pthread_join(thread, NULL);
    (void)unlink(rig->key);
    ok(http_load_tls(rig->s, &err) == -ENOENT, "without the key: %s", err.text);
    loop_fd_free(rig->wake);
}

int main(void)
{
    struct rig rig = {.dir = "/tmp/uw-httpc-XXXXXX"};

    if (!mkdtemp(rig.dir) || pipe(rig.pipe) < 0 ||
        loop_new_real((struct loop_clock){0, 1}, &rig.loop, NULL) < 0)
        return 1;
    (void)snprintf(rig.path, sizeof rig.path, "%s/s", rig.dir);
    (void)snprintf(rig.cert, sizeof rig.cert, "%s/cert.pem", rig.dir);
    (void)snprintf(rig.other, sizeof rig.other, "%s/other.pem", rig.dir);
    (void)snprintf(rig.key, sizeof rig.key, "%s/key.pem", rig.dir);
    ok(make_cert(rig.other, rig.key) && make_cert(rig.cert, rig.key), "certificates");
    with_server(&rig);
    http_server_free(rig.s);
    loop_free(rig.loop);
    (void)unlink(rig.cert);
    (void)unlink(rig.other);
    (void)unlink(rig.key);
    is_int(rmdir(rig.dir), 0, "nothing is left behind");
    return done();
}
