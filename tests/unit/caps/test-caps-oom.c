/* Caps where memory is short: made or not made, and a claim that gets there in the end.
 */
#include <errno.h>

#include "oom.h"
#include "unit/caps/caps-scene.h"

static const struct caps_conf conf = {.cls = {.first = 0.9, .floor = 0.5, .rate = 0.01}};

static int make(void *user)
{
    struct scene *s = user;
    struct caps_opts opts = {.loop = s->loop,
                             .boards = s->boards,
                             .conf = conf,
                             .on_event = scene_on_caps,
                             .user = s};
    struct caps *caps = NULL;
    uw_error err = {""};

    int r = caps_new(&opts, &caps, &err);
    if (r < 0 && (caps || !err.text[0]))
        return 1; /* nothing made, and a text */
    if (r < 0)
        return r;
    r = caps_end(caps, scene_on_done, s);
    caps_free(caps);
    return r;
}

static int make_budget(void *user)
{
    struct scene *s = user;
    struct budget *b = NULL;
    uw_error err = {""};

    int r = budget_new(s->loop, s->caps, 3, &b, &err);
    if (r < 0 && (b || !err.text[0]))
        return 1;
    budget_free(b);
    return r;
}

static void test_make(void)
{
    struct scene *s = scene_boards("memory for caps", 3);

    (void)oom_each("caps_new and caps_end", make, s);
    scene_free(s);
    s = scene_new("memory for a budget", 3, &conf);
    (void)oom_each("budget_new", make_budget, s);
    pass(s, 1);
    ok(look(s, 0).claims->n == 0, "and nothing of it is left");
    scene_free(s);
}

/* The n-th allocation after a claim fails, whoever asks for it. */
static void test_claim(void)
{
    unsigned bad = 0, n = 1;
    unsigned long made = 0;

    for (; n <= 60; n++) {
        struct scene *s = scene_new("memory for a claim", 1, &conf);
        oom_fail_at(n);
        uint64_t id = claim(s, 0, CLAIM_HARD, 200);
        pass(s, 5);
        made = oom_count();
        oom_fail_at(0);
        pass(s, 60);
        bad += limit_of(s, 0) != W(200) || look(s, 0).state != CAPS_HELD;
        withdraw(s, 0, id);
        pass(s, 60);
        bad += limit_of(s, 0) != W(300) || look(s, 0).state != CAPS_FREE;
        scene_free(s);
        if (made < n)
            break;
    }
    ok(bad == 0, "each of %u failures: the claim is in force in the end, and given back",
       n);
}

int main(void)
{
    test_make();
    test_claim();
    return done();
}
