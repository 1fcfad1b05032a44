/* Each allocation of ours fails once (SQLite's own are inside its library). */
#include <errno.h>

#include "core/carbon/accounting.h"
#include "help.h"
#include "io/ledger-queue.h"
#include "oom.h"
#include "virtual/virtual-loop.h"

static int op_batch(void *user)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job job = help_job(1, 1000, "anna");

    (void)user;
    if (!b)
        return -ENOMEM;
    int r = 0;
    for (int64_t i = 0; r >= 0 && i < 20; i++)
        r = help_interval(b, i, 0, 1, 1000, 10, 0.5);
    if (r >= 0)
        r = ledger_add_job(b, &job);
    if (r >= 0)
        r = ledger_add_claim(
            b, &(struct ledger_claim){
                   .id = 1, .made_utc_ns = T0, .kind = "soft", .mw = 1, .who = "w"});
    if (r >= 0)
        r = ledger_add_claim_end(b, &(struct ledger_claim_end){1, 0, T0, "x"});
    if (r >= 0)
        r = ledger_add_cap(b, &(struct ledger_cap){T0, 0, 1, 1, "claim", 1});
    if (r >= 0)
        r = ledger_add_search(b, &(struct ledger_search){.same = "a",
                                                         .model = "m",
                                                         .boards = 1,
                                                         .utc_ns = T0,
                                                         .reference_mw = 1,
                                                         .demand_w = 1,
                                                         .n = 1,
                                                         .cap = {{1, 1, 1, 1, 0, 0}}});
    if (r >= 0)
        r = ledger_add_event(b, &(struct ledger_event){.utc_ns = T0, .kind = "x"});
    return r;
}

static int op_open(void *user)
{
    auto_(ledger_close) struct ledger *l = NULL;
    uw_error err = {{0}};

    int r = help_open(user, T0, &l, &err);
    if (r < 0)
        return r;
    return help_boards(l, 2);
}

/* A run that cannot open its file, reads what is there, and opens it later. */
static int op_later(void *user)
{
    auto_(ledger_close) struct ledger *l = NULL;
    const struct ledger_opts opts = {.path = help_path(user),
                                     .boot_id = BOOT,
                                     .version = "test",
                                     .simulated = true,
                                     .utc_ns = T0};
    uw_error err = {{0}};

    int r = ledger_open_later(&opts, -ENOSPC, &l, &err);
    if (r >= 0)
        r = help_boards(l, 2);
    if (r >= 0)
        r = ledger_ready(&l, T0 + S, &err);
    return r < 0 ? r : 0;
}

static int op_squeeze(void *user)
{
    auto_(ledger_batch_free) struct ledger_batch *a = user ? NULL : ledger_batch_new();
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    int r = a && b ? 0 : -ENOMEM;

    for (int64_t i = 0; r >= 0 && i < 30; i++)
        r = help_interval(i % 2 ? a : b, i, 0, 1, 1000, 10, 0.5);
    if (r >= 0)
        r = ledger_batch_join(a, b);
    if (r >= 0)
        (void)ledger_batch_squeeze(a); /* may leave it as it is */
    return r;
}

/* A file with rows of a job and of idle time, for reports. */
static bool lay_out(const char *name)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    auto_(ledger_close) struct ledger *l = NULL;
    struct ledger_job job = help_job(1, 1000, "anna");
    uw_error err = {{0}};

    int r = b ? help_open(name, T0, &l, &err) : -ENOMEM;
    if (r >= 0)
        r = help_boards(l, 2);
    if (r >= 0)
        r = ledger_add_job(b, &job);
    for (int64_t i = 0; r >= 0 && i < 1000; i++)
        r = help_interval(b, i, 0, i % 2 ? 1 : 0, 1000, 10, 0.5);
    if (r >= 0)
        r = ledger_write(l, b, &err);
    return ok(r >= 0, "rows %s", err.text);
}

static int read_report(const char *name, const struct accounting *figures)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(json_out_free) struct json_out *o = json_out_new();
    struct ledger_query q;
    uw_error err = {{0}};
    char *text = NULL;

    ledger_query_init(&q, T0 + DAY);
    q.accounting = figures;
    int r = ledger_open(&(struct ledger_opts){.path = help_path(name), .read_only = true},
                        &l, &err);
    if (r >= 0)
        r = ledger_report(l, &q, o, &err);
    if (r >= 0)
        r = json_out_string(o, &text, &err);
    free(text);
    return r;
}

static int op_report(void *user)
{
    return read_report(user, NULL);
}

/* With a PUE, a contract of half the energy and grams of the boards. */
static int op_beside(void *user)
{
    auto_(accounting_free) struct accounting *a = NULL;
    struct market_contract contract = {.from_ms = T0 / 1000000,
                                       .to_ms = (T0 + DAY) / 1000000,
                                       .kind = MARKET_SHARE,
                                       .amount = 0.5,
                                       .g_kwh = 20,
                                       .origin = "GO"};
    struct accounting figures = {
        .pue = 1.2,
        .embodied = {{.model = "Board A", .g_hour = 3.4, .origin = "x"}},
        .n_embodied = 1,
        .contract = &contract,
        .n_contracts = 1};

    a = accounting_copy(&figures);
    return a ? read_report(user, a) : -ENOMEM;
}

static int op_queue(void *user)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct ledger *l = NULL;
    struct ledger_queue *q = NULL;

    int r = loop_new_virtual(S, T0 / S, &loop, NULL);
    if (r >= 0)
        r = help_open(user, T0, &l, NULL);
    if (r >= 0)
        r = ledger_queue_new(&(struct ledger_queue_opts){.loop = loop, .ledger = l}, &q,
                             NULL);
    if (r < 0)
        ledger_close(l); /* still ours */
    ledger_queue_free(q);
    return r;
}

int main(void)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    oom_each("rows", op_batch, NULL);
    oom_each_tolerant("squeeze and join", op_squeeze, NULL);
    oom_each("open", op_open, (void *)(uintptr_t) "o.sqlite");
    oom_each_tolerant("without a file", op_later, (void *)(uintptr_t) "o.sqlite");
    if (lay_out("r.sqlite")) {
        oom_each_tolerant("report", op_report, (void *)(uintptr_t) "r.sqlite");
        oom_each_tolerant("report with figures", op_beside,
                          (void *)(uintptr_t) "r.sqlite");
    }
    oom_each_tolerant("queue", op_queue, (void *)(uintptr_t) "q.sqlite");
    help_end();
    return done();
}
