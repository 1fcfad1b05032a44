/* Leases: renewed, not renewed, and those whose end is noticed late. */
#include "unit/actuator/guard-scene.h"

#include "actuator/guard-inside.h"

static void test_lease(void)
{
    struct world *w = begin("leases");

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    for (int i = 0; i < 20; i++) {
        pass(w, 500);
        (void)ask(w, PROTO_RENEW, NULL, 0);
    }
    ok(fake_dev[0].set_mw == 200000 && events(w, PROTO_LEASE_OVER) == 0,
       "renewed, a lease lasts");
    pass(w, ACTUATOR_LEASE_MS - 100);
    is_int(fake_dev[0].set_mw, 200000, "not renewed, it lasts 2.5 s");
    pass(w, 200);
    is_int(fake_dev[0].set_mw, 250000, "then the original is back");
    is_int(events(w, PROTO_LEASE_OVER), 2, "the client hears it of both boards");
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_GONE);
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    finish(w);
}

/* As if this process had stood still for a second before the end was noticed. */
static void stood_still(struct world *w)
{
    (void)ask(w, PROTO_RENEW, NULL, 0);
    w->session->lease_ns -= NS_PER_S;
    pass(w, ACTUATOR_LEASE_MS + 100);
}

static void test_late_lease(void)
{
    struct world *w = begin("leases whose end is noticed late");

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    unsigned writes = fake_dev[0].writes;
    for (int i = 0; i < 3; i++) {
        stood_still(w);
        ok(fake_dev[0].set_mw == 200000 && events(w, PROTO_LEASE_OVER) == 0,
           "the client may have stood still, too: it gets an interval more");
    }
    is_int(fake_dev[0].writes, writes, "who renews in it keeps the cap");
    w->session->lease_ns -= NS_PER_S;
    pass(w, ACTUATOR_RENEW_MS);
    ok(fake_dev[0].set_mw == 250000 && events(w, PROTO_LEASE_OVER) == 1,
       "who does not loses it, however late that is");
    finish(w);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    test_lease();
    test_late_lease();
    remove_tree(top);
    return done();
}
