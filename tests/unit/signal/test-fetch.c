/* When a source is asked next, in virtual time. */
#include "signal/fetch.h"

#include "base/units.h"
#include "source-play.h"

enum { EVERY_S = 1800 };

static uint64_t s_to(uint64_t s)
{
    return s * NS_PER_S;
}

/* Whether the next round is this many seconds away, with a jitter of a tenth. */
static bool is_due(const struct fetch *f, uint64_t now_ns, uint64_t s)
{
    uint64_t wait_ns = f->due_ns - now_ns;
    bool good = wait_ns >= s_to(s) && wait_ns <= s_to(s) + s_to(s) / 10;

    if (!good)
        printf("# due in %g s, expected %g s\n", s_of_ns(wait_ns), (double)s);
    return good;
}

static void rounds(void)
{
    struct source_state s = {.step = 1, .logged_in = true};
    struct fetch f;
    uint64_t now_ns = s_to(1000);

    fetch_begin(&f, s_to(EVERY_S), 7, now_ns, UINT64_MAX, 0);
    ok(f.due_ns >= now_ns && f.due_ns <= now_ns + s_to(FETCH_FIRST_S),
       "the first round is within %d s", FETCH_FIRST_S);
    fetch_over(&f, &s, true, 0, now_ns);
    ok(is_due(&f, now_ns, EVERY_S), "the next one after the interval");
    ok(s.step == 0 && !s.logged_in, "… begins at its first step");
    for (size_t i = 0; i < 7; i++) {
        fetch_over(&f, &s, false, 0, now_ns);
        ok(is_due(&f, now_ns, i < 5 ? (60u << i) : EVERY_S), "failure %zu", i + 1);
    }
    fetch_over(&f, &s, true, 0, now_ns);
    ok(is_due(&f, now_ns, EVERY_S), "one that is good ends the back-off");
    fetch_over(&f, &s, false, s_to(7200), now_ns);
    ok(is_due(&f, now_ns, 7200), "Retry-After is kept");
    fetch_over(&f, &s, false, s_to(1), now_ns);
    ok(is_due(&f, now_ns, 120), "… and makes nothing sooner");

    fetch_begin(&f, s_to(10), 7, now_ns, UINT64_MAX, 0);
    for (size_t i = 0; i < 12; i++)
        fetch_over(&f, &s, false, 0, now_ns);
    ok(is_due(&f, now_ns, FETCH_AGAIN_MAX_S), "the bound of a short interval");
    fetch_begin(&f, s_to(10), 7, now_ns, UINT64_MAX, 0);
    fetch_over(&f, &s, false, 0, now_ns);
    ok(is_due(&f, now_ns, 10), "a short interval is its own first back-off");
    for (size_t i = 0; i < 100; i++)
        fetch_over(&f, &s, false, 0, now_ns);
    ok(is_due(&f, now_ns, FETCH_AGAIN_MAX_S), "a hundred failures stay within the bound");
}

static void restarts(void)
{
    struct fetch f;
    const uint64_t now_ns = s_to(1000), first_ns = s_to(FETCH_FIRST_S);

    fetch_begin(&f, s_to(EVERY_S), 1, now_ns, s_to(600), 0);
    ok(f.due_ns >= now_ns + s_to(1200) && f.due_ns <= now_ns + s_to(1200) + first_ns,
       "a restart does not ask before the interval is over");
    fetch_begin(&f, s_to(EVERY_S), 1, now_ns, s_to(EVERY_S + 1), 0);
    ok(f.due_ns <= now_ns + first_ns, "… and at once where it is");
    fetch_begin(&f, s_to(EVERY_S), 1, now_ns, UINT64_MAX, s_to(300));
    ok(f.due_ns >= now_ns + s_to(300) && f.due_ns <= now_ns + s_to(300) + first_ns,
       "a rest of before counts on");
    fetch_begin(&f, s_to(10), 1, now_ns, UINT64_MAX, 0);
    ok(f.due_ns <= now_ns + s_to(1), "a short interval begins within a tenth of it");
}

/* The seed alone says when. */
static void chance(void)
{
    enum { NODES = 1000 };
    struct source_state s = {0};
    struct fetch a, b;
    unsigned second[181] = {0}, most = 0;

    fetch_begin(&a, s_to(EVERY_S), 3, 0, UINT64_MAX, 0);
    fetch_begin(&b, s_to(EVERY_S), 3, 0, UINT64_MAX, 0);
    fetch_over(&a, &s, true, 0, 0);
    fetch_over(&b, &s, true, 0, 0);
    ok(a.due_ns == b.due_ns, "the same seed, the same times");
    for (unsigned i = 0; i < NODES; i++) {
        fetch_begin(&a, s_to(EVERY_S), i, 0, UINT64_MAX, 0);
        fetch_over(&a, &s, true, 0, 0);
        unsigned at = (unsigned)((a.due_ns - s_to(EVERY_S)) / NS_PER_S);
        if (at < n_elements(second) && ++second[at] > most)
            most = second[at];
    }
    ok(most < 20, "of %d seeds %u at most ask in one second", NODES, most);
}

/* A login comes first; a service that refuses each token is not asked for ever. */
static void requests(void)
{
    struct play p = {.secret = "name:password", .utc_s = utc_of(NOW)};
    struct source_state *s = &p.s;
    struct fetch f;
    uw_error err = {""};
    unsigned n = 0;

    (void)snprintf(p.c.name, sizeof p.c.name, "grid");
    (void)snprintf(p.c.region, sizeof p.c.region, "CAISO_NORTH");
    p.c.kind = source_kind_find("watttime");
    p.c.given = KEY_REGION | KEY_LOGIN_FILE;
    ok(source_check(&p.c, NULL, &err) == 0, "a source with a login");
    fetch_begin(&f, s_to(300), 1, 0, UINT64_MAX, 0);
    ok(fetch_next(&f, &p.c, p.secret, s, p.utc_s, &p.request, &err) == 0 &&
           p.request.is_login,
       "the login is asked for first");
    while (n < 100 && fetch_next(&f, &p.c, p.secret, s, p.utc_s, &p.request, &err) == 0)
        n++;
    is_int(n + 1, FETCH_REQUESTS, "a round has so many requests at most");
    fetch_over(&f, s, false, 0, 0);
    ok(fetch_next(&f, &p.c, p.secret, s, p.utc_s, &p.request, &err) == 0,
       "the next round begins");
}

int main(void)
{
    rounds();
    restarts();
    chance();
    requests();
    return done();
}
