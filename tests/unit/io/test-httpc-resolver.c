/* The HTTP client of many servers where a name server never answers: this program's
 * getaddrinfo() stands before libc's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/units.h"
#include "io/http-many.h"
#include "tap.h"

typedef int (*getaddrinfo_fn)(const char *, const char *, const struct addrinfo *,
                              struct addrinfo **);
static atomic_uint inside, began;
static atomic_bool released;

/* A name under "hangs." has no answer until `released`, or for 20 s: so that a client
 * that waits for it fails here and hangs not.
 */
__attribute__((visibility("default"))) int getaddrinfo(const char *name,
                                                       const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **ret)
{
    getaddrinfo_fn libc = NULL;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    if (name && strncmp(name, "hangs.", 6) == 0) {
        atomic_fetch_add(&inside, 1);
        atomic_fetch_add(&began, 1);
        for (int i = 0; i < 2000 && !atomic_load(&released); i++)
            (void)poll(NULL, 0, 10);
        atomic_fetch_sub(&inside, 1);
        return EAI_AGAIN;
    }
    memcpy(&libc, &symbol, sizeof libc);
    return libc ? libc(name, service, hints, ret) : EAI_SYSTEM;
}

/* A thread may begin after its request has ended.  How many there are within 5 s. */
static unsigned within(unsigned n)
{
    for (int i = 0; i < 500 && atomic_load(&inside) != n; i++)
        (void)poll(NULL, 0, 10);
    return atomic_load(&inside);
}

static void many(void)
{
    const struct http_many_opts opts = {
        .agent = "test", .timeout_ns = 300 * NS_PER_MS, .at_once = 2, .body_max = 100};
    auto_(http_many_free) struct http_many *m = NULL;
    struct http_ask ask[4] = {{.status = 0}};
    struct http_chain chain[4] = {{.url = "https://hangs.a"},
                                  {.url = "https://hangs.b"},
                                  {.socket = "/nowhere/a"},
                                  {.url = "https://hangs.c"}};
    uw_error err = {""};

    for (int i = 0; i < 4; i++) {
        ask[i] = (struct http_ask){.method = "GET", .path = "/"};
        chain[i].ask = &ask[i];
        chain[i].n = 1;
    }
    is_int(http_many_new(&opts, &m, &err), 0, "many at once %s", err.text);
    http_many_run(m, chain, 4);
    is_int(within(3), 3, "it returns while three names have no answer");
    for (int i = 0; i < 4; i++)
        is_int(chain[i].r, i == 2 ? -ENOENT : -ETIMEDOUT, "server %d: %s", i,
               chain[i].why.text);
    is_str(chain[0].why.text, "https://hangs.a: no address of this name within 0.3 s",
           "it says that the name is at fault");
}

static void *cancel(void *user)
{
    for (int i = 0; i < 1000 && atomic_load(&began) == 0; i++)
        (void)poll(NULL, 0, 10);
    http_many_cancel(user);
    return NULL;
}

static void cancelled(void)
{
    const struct http_many_opts opts = {
        .agent = "test", .timeout_ns = 600 * NS_PER_S, .at_once = 1, .body_max = 100};
    struct http_ask ask = {.method = "GET", .path = "/"};
    struct http_chain chain = {.url = "https://hangs.d", .ask = &ask, .n = 1};
    struct http_many *m = NULL;
    pthread_t thread;
    unsigned before = atomic_load(&inside);

    atomic_store(&began, 0);
    is_int(http_many_new(&opts, &m, NULL), 0, "one without an end of its own");
    (void)pthread_create(&thread, NULL, cancel, m);
    http_many_run(m, &chain, 1);
    (void)pthread_join(thread, NULL);
    http_many_free(m);
    ok(chain.r == -ECANCELED && within(before + 1) == before + 1,
       "cancelled and freed while its name has no answer: %s", chain.why.text);
}

int main(void)
{
    many();
    cancelled();
    atomic_store(&released, true);
    is_int(within(0), 0, "the resolver's threads end with their answers");
    return done();
}
