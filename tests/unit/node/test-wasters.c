/* Waste by user and by project: sums, their bound, and that none falls. */
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "node/wasters.h"
#include "tap.h"

static const struct ledger_factor eur = {"price", "market", "EUR/kWh", false},
                                  usd = {"price", "market", "USD/kWh", false};

static void put(struct wasters *w, const struct job_entry *job,
                const struct job_entry *outer, enum waste_class use, double j,
                const struct ledger_factor *price)
{
    struct ledger_energy e = {.kind = LEDGER_JOB,
                              .end_utc_ns = 10 * (int64_t)NS_PER_S,
                              .waste = use,
                              .energy_j = j};

    if (price)
        e.charge[LEDGER_COST] = (struct ledger_amount){price, 7, 1000000};
    wasters_add(w, &e, job, outer);
}

static struct job_entry of(const char *user, const char *key, const char *value)
{
    struct job_entry job = {.uid = 1000, .n_labels = key ? 1 : 0};

    (void)snprintf(job.user, sizeof job.user, "%s", user);
    if (key) {
        (void)snprintf(job.label[0].key, sizeof job.label[0].key, "%s", key);
        (void)snprintf(job.label[0].value, sizeof job.label[0].value, "%s", value);
    }
    return job;
}

static const struct waster *find(const struct wasters *w, enum wasters_of list,
                                 const char *name)
{
    const struct waster *at = NULL;

    for (size_t i = 0; (at = wasters_at(w, list, i)); i++)
        if (strcmp(at->name, name) == 0)
            return at;
    return NULL;
}

static double sum(const struct wasters *w, size_t *ret_n)
{
    const struct waster *at = NULL;
    double j = 0;

    for (*ret_n = 0; (at = wasters_at(w, WASTERS_USER, *ret_n)); ++*ret_n)
        j += at->j[WASTE_HELD];
    return j;
}

static void test_sums(void)
{
    auto_(wasters_free) struct wasters *w = NULL;
    struct job_entry anna = of("anna", "project", "llm"), ben = of("", NULL, NULL);
    struct job_entry outer = of("ben", "slurm.account", "physics");

    ok(wasters_new(&w) == 0 && !wasters_at(w, WASTERS_USER, 1), "at first the rest");
    put(w, &anna, NULL, WASTE_WORKING, 500, &eur);
    put(w, NULL, NULL, WASTE_HELD, 500, &eur);
    ok(!wasters_at(w, WASTERS_USER, 1), "what works is no waste");
    put(w, &anna, NULL, WASTE_HELD, 100, &eur);
    put(w, &anna, NULL, WASTE_HELD, 50, NULL);
    put(w, &anna, NULL, WASTE_UNDER, 30, NULL);
    outer.source = JOB_REGISTERED;
    put(w, &ben, &outer, WASTE_ALLOCATED, 20, NULL);
    const struct waster *a = find(w, WASTERS_USER, "anna"),
                        *b = find(w, WASTERS_USER, "1000");
    ok(a && a->j[WASTE_HELD] == 150 && a->s[WASTE_HELD] == 20 && a->j[WASTE_UNDER] == 30,
       "energy and time by class");
    ok(a && a->cost == 7 && a->cost_uj == 1000000, "money, and of which energy");
    ok(b && b->j[WASTE_ALLOCATED] == 20, "a uid where there is no name");
    ok(find(w, WASTERS_PROJECT, "llm") && find(w, WASTERS_PROJECT, "physics"),
       "a label, and the account of the job in which one runs");
    outer.source = JOB_RUN;
    put(w, &ben, &outer, WASTE_ALLOCATED, 20, NULL);
    ok(find(w, WASTERS_PROJECT, "") && find(w, WASTERS_PROJECT, "")->s[1] == 10,
       "a user's own word is no account");
    put(w, &anna, NULL, WASTE_HELD, 1, &usd);
    ok(a && a->cost == 7 && strcmp(wasters_currency(w), "USD") == 0,
       "another currency begins anew");
}

static void test_bound(void)
{
    auto_(wasters_free) struct wasters *w = NULL;
    char name[16];
    size_t n = 0;

    if (!ok(wasters_new(&w) == 0, "anew"))
        return;
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "user%d", i);
        struct job_entry job = of(name, NULL, NULL);
        put(w, &job, NULL, WASTE_HELD, 100, NULL);
    }
    ok(sum(w, &n) == 100000 && n == WASTERS_NAMED + 1, "the first ones and the rest");
    const struct waster *rest = find(w, WASTERS_USER, "other");
    ok(rest && rest->j[WASTE_HELD] == 98000, "the rest's sum");
    struct job_entry late = of("late", NULL, NULL), fake = of("other", NULL, NULL);
    put(w, &late, NULL, WASTE_HELD, 109, NULL);
    ok(!find(w, WASTERS_USER, "late"), "who is hardly ahead takes no place");
    put(w, &late, NULL, WASTE_HELD, 2, NULL);
    const struct waster *l = find(w, WASTERS_USER, "late");
    ok(l && l->j[WASTE_HELD] == 2 && rest && rest->j[WASTE_HELD] == 98109,
       "who is ahead by a tenth does, and the rest does not fall");
    (void)sum(w, &n);
    is_int((int64_t)n, WASTERS_NAMED + 1, "in another's place");
    put(w, &fake, NULL, WASTE_HELD, 5, NULL);
    (void)sum(w, &n);
    ok(n == WASTERS_NAMED + 1 && rest && rest->j[WASTE_HELD] == 98114,
       "a user of that name makes no second series");
}

int main(void)
{
    test_sums();
    test_bound();
    return done();
}
