/* What a node is told and when, and the collector's configuration. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "collector/config.h"
#include "collector/hosts.h"
#include "collector/node.h"
#include "tap.h"

#define S NS_PER_S
static const char text[] = "every: 30 s\n"
                           "nodes: {socket: /run/%n/underwattd.sock}\n"
                           "kinds:\n"
                           "- {kind: inference, partition: \"serve*\", qos: high}\n"
                           "- {kind: training}\n";

/* A file of this text in place of the one before. */
static int read_text(const char *what, struct collector_config *ret, uw_error *err)
{
    static char path[] = "/tmp/uw-test-XXXXXX";
    int fd = mkstemp(path);
    ssize_t n = write(fd, what, strlen(what));

    (void)close(fd);
    int r = n < 0 ? -EIO : collector_config_file(path, ret, err);
    (void)unlink(path);
    memcpy(strrchr(path, '-'), "-XXXXXX", 7);
    return r;
}

static struct collector_config config;
static struct queues queues;
static struct slurm_job list[2];
static struct jobs jobs = {.job = list, .n = 2};
static struct node_now now = {.config = &config, .queues = &queues, .jobs = &jobs};

/* The requests as lines "METHOD path", and all answered with this status. */
static const char *round_of(struct node *node, double at_s, unsigned status,
                            const char *body)
{
    static char said[2000];
    struct node_asks asks = {.n = 0};
    size_t n = 0;

    now.now_ns = ns_of_s(at_s);
    said[0] = '\0';
    if (node_plan(node, &now, &asks) < 0)
        return "no memory";
    for (size_t i = 0; i < asks.n; i++) {
        n += (size_t)snprintf(said + n, sizeof said - n, "%s %s;", asks.ask[i].method,
                              asks.ask[i].path);
        if (status)
            node_answered(node, &now, &asks.ask[i], status, body);
    }
    node_asks_fini(&asks);
    return said;
}

static const char names[] =
    "{\"signals\": [{\"name\": \"carbon\"}, {\"name\": \"queue.depth\"}, {\"name\": "
    "\"queue.wait.gpu_long\"}, {\"name\": \"queue.gpus.nowhere\"}, {\"name\": "
    "\"queue.depths\"}, {}, 5]}";
#define SIGNALS "PUT /v1/signals/queue.depth;PUT /v1/signals/queue.wait.gpu_long;"
#define JOBS "PATCH /v1/jobs/slurm:7;PATCH /v1/jobs/slurm:8;"

static void plans(void)
{
    const size_t both[] = {0, 1};
    struct node node = {.name = "n1"};

    list[0] = (struct slurm_job){.id = 7,
                                 .name = "train",
                                 .user = "",
                                 .account = "prod",
                                 .qos = "high",
                                 .reason = "",
                                 .partition = "serve1",
                                 .nodes = "n1"};
    list[1] = list[0];
    list[1].id = 8;
    queues_init(&queues);
    (void)queues_partition(&queues, "gpu-long");
    is_int(node_jobs(&node, &jobs, both, 2), 0, "two jobs");
    is_str(round_of(&node, 100, 200, names), "GET /v1/signals;",
           "first it is asked for its signals");
    is_str(round_of(&node, 100, 204, NULL), SIGNALS JOBS,
           "then told those of them that Slurm has, and its jobs");
    is_str(round_of(&node, 100, 204, NULL), "", "once");
    is_str(round_of(&node, 130, 204, NULL), "", "nothing changed: not again in a period");
    queues.of[0].depth = 4;
    list[1].qos = "low";
    is_str(round_of(&node, 130, 204, NULL),
           "PUT /v1/signals/queue.depth;PATCH /v1/jobs/slurm:8;",
           "what changed, at once");
    is_str(round_of(&node, 160, 204, NULL),
           "PUT /v1/signals/queue.wait.gpu_long;PATCH /v1/jobs/slurm:7;",
           "after two periods: again");
    is_int(node_jobs(&node, &jobs, both + 1, 1), 0, "a job has ended");
    is_str(round_of(&node, 161, 204, NULL), "", "what was said of the other is kept");
    is_int(node_jobs(&node, &jobs, both, 2), 0, "another one of that number");
    is_str(round_of(&node, 162, 404, NULL), "PATCH /v1/jobs/slurm:7;", "it is told");
    is_str(round_of(&node, 190, 204, NULL), "PUT /v1/signals/queue.depth;" JOBS,
           "what was refused is told with the next round");
    is_str(round_of(&node, 401, 200, "{}"), "GET /v1/signals;",
           "after ten periods it is asked again for its signals");
    is_str(round_of(&node, 402, 204, NULL), JOBS, "it has none now");
    node_fini(&node);
}

/* Also where a call of Slurm's commands and a sending take as long as they may. */
static void holds(void)
{
    struct node_signal_told told = {.word = "", .what = NODE_DEPTH};
    struct node node = {.name = "n1", .names_due_ns = UINT64_MAX};
    const size_t first = 0;
    struct node_asks asks = {.n = 0};

    node.signal = &told;
    node.n_signals = 1;
    is_int(node_jobs(&node, &jobs, &first, 1), 0, "a job");
    is_int(node_plan(&node, &now, &asks), 0, "a plan");
    for (size_t i = 0; i < asks.n; i++)
        ok(strstr(asks.ask[i].body, "\"for\": \"115 s\""), "3 * 30 s + 25 s: %s",
           asks.ask[i].body);
    is_int(asks.n, 2, "a signal and a job");
    node_asks_fini(&asks);
    node.signal = NULL;
    node_fini(&node);
}

/* Its jobs change while it is asked: job 7 has ended, and 8 stands in its place. */
static void moved(void)
{
    const size_t both[] = {0, 1};
    struct node node = {.name = "n1", .names_due_ns = UINT64_MAX};
    struct node_asks asks = {.n = 0};

    now.now_ns = 2000 * S;
    (void)node_jobs(&node, &jobs, both, 2);
    is_int(node_plan(&node, &now, &asks), 0, "a plan");
    is_int(asks.n, 2, "of two jobs");
    (void)node_jobs(&node, &jobs, both + 1, 1);
    node_answered(&node, &now, &asks.ask[0], 204, NULL);
    is_str(round_of(&node, 2000, 0, NULL), "PATCH /v1/jobs/slurm:8;",
           "the answer of one that is gone counts for no other");
    node_answered(&node, &now, &asks.ask[1], 204, NULL);
    is_str(round_of(&node, 2000, 0, NULL), "", "its own one does, wherever it stands");
    node_asks_fini(&asks);
    node_fini(&node);
}

static bool over(struct node *node, int r, unsigned status, unsigned retry_s, bool some)
{
    const struct node_end end = {r, status, retry_s, some, false};

    return node_over(node, &now, &end);
}

/* 429 and 5xx: what was taken stays told, the rest is told when the node wants it. */
static void busy(void)
{
    const size_t both[] = {0, 1};
    struct node node = {.name = "n1", .names_due_ns = UINT64_MAX};
    struct node_asks asks = {.n = 0};

    now.now_ns = 3000 * S;
    (void)node_jobs(&node, &jobs, both, 2);
    (void)node_plan(&node, &now, &asks);
    node_answered(&node, &now, &asks.ask[0], 204, NULL);
    node_answered(&node, &now, &asks.ask[1], 429, NULL);
    ok(!over(&node, 0, 429, 2, true) && node.state == NODE_ANSWERS,
       "429 after others is no news");
    is_int(node.again_ns / S, 3002, "it is asked again after its Retry-After");
    is_str(round_of(&node, 3002, 0, NULL), "PATCH /v1/jobs/slurm:8;",
           "what it took is not told again");
    node_answered(&node, &now, &asks.ask[1], 503, NULL);
    ok(over(&node, 0, 503, 0, false) && node.state == NODE_BUSY, "503 at once is news");
    is_int(node.again_ns / S, 3002 + 30, "without Retry-After: after a period");
    ok(!over(&node, 0, 503, 0, false), "the next is none");
    is_int(node.again_ns / S, 3002 + 60, "it waits two periods");
    ok(!over(&node, 0, 503, 300, false), "nor is this");
    is_int(node.again_ns / S, 3002 + 300, "its Retry-After is longer than its backoff");
    (void)over(&node, 0, 503, 3600, false);
    is_int(node.again_ns / S, 3002 + 480, "it is 16 periods at most");
    is_str(round_of(&node, 3020, 0, NULL), "PATCH /v1/jobs/slurm:8;",
           "what it took is still not told again");
    ok(over(&node, -ETIMEDOUT, 0, 0, true) && node.state == NODE_SILENT, "a slow node");
    is_str(round_of(&node, 3020, 0, NULL), "PATCH /v1/jobs/slurm:8;",
           "keeps what it took, too");
    ok(over(&node, 0, 0, 0, true) && node.again_ns == 0, "it takes all again");
    node_asks_fini(&asks);
    node_fini(&node);
}

/* A token that may read only: the node names its signals, and refuses what it is told. */
static void reads_only(void)
{
    const struct node_end named = {.some = true, .names = true};
    const size_t both[] = {0, 1};
    struct node node = {.name = "n1"};

    now.now_ns = 5000 * S;
    (void)node_jobs(&node, &jobs, both, 2);
    for (unsigned i = 1; i <= 3; i++) {
        bool news = node_over(&node, &now, &named);
        ok(news == false && node.state == (i > 1 ? NODE_SILENT : NODE_ANSWERS),
           "chain %u: its names are no news", i);
        ok(over(&node, -EACCES, 0, 0, false) == (i == 1), "… a refusal is news once");
        is_int(node.failures, i, "… and it is asked less and less often");
    }
    ok(node_over(&node, &now, &named) == false && node.again_ns == 0,
       "it is told at once after its names");
    ok(over(&node, 0, 0, 0, true) && node.state == NODE_ANSWERS,
       "and answers when it takes it");
    (void)over(&node, -EACCES, 0, 0, false);
    (void)node_jobs(&node, &jobs, NULL, 0);
    ok(node_over(&node, &now, &named) && node.state == NODE_ANSWERS,
       "a node that is to be told nothing answers with its names");
    node_fini(&node);
}

/* A job that the daemon refuses with 500 keeps none behind it from being told. */
static void last(void)
{
    const size_t both[] = {0, 1};
    struct node node = {.name = "n1", .names_due_ns = UINT64_MAX};
    struct node_asks asks = {.n = 0};

    now.now_ns = 4000 * S;
    (void)node_jobs(&node, &jobs, both, 2);
    (void)node_plan(&node, &now, &asks);
    node_answered(&node, &now, &asks.ask[0], 500, NULL);
    is_str(round_of(&node, 4030, 0, NULL),
           "PATCH /v1/jobs/slurm:8;PATCH /v1/jobs/slurm:7;", "it comes last");
    node_answered(&node, &now, &asks.ask[1], 204, NULL);
    node_answered(&node, &now, &asks.ask[0], 500, NULL);
    is_str(round_of(&node, 4060, 0, NULL), "", "and after two periods the next time");
    is_str(round_of(&node, 4090, 0, NULL),
           "PATCH /v1/jobs/slurm:8;PATCH /v1/jobs/slurm:7;", "the others as always");
    node_answered(&node, &now, &asks.ask[0], 204, NULL);
    is_str(round_of(&node, 4150, 0, NULL), JOBS, "until it is taken");
    node_asks_fini(&asks);
    node_fini(&node);
}

static void silence(void)
{
    static const unsigned waits[] = {1, 2, 4, 8, 16, 16};
    struct node node = {.name = "n1"};

    now.now_ns = 1000 * S;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        bool news = over(&node, -ECONNREFUSED, 0, 0, true);
        ok(news == (i == 0), "failure %zu: %s", i + 1, news ? "told" : "not told again");
        is_int(node.again_ns / S, 1000 + 30 * waits[i] - 15, "… waits %u periods",
               waits[i]);
    }
    ok(over(&node, 0, 0, 0, true) && node.failures == 0, "it answers: told");
    ok(!over(&node, 0, 0, 0, true), "… once");
    is_str(round_of(&node, 1001, 200, names), "GET /v1/signals;", "and begins anew");
    (void)round_of(&node, 1001, 204, NULL);
    (void)over(&node, -ETIMEDOUT, 0, 0, false);
    (void)round_of(&node, 1100, 200, names);
    is_str(round_of(&node, 1100, 204, NULL), SIGNALS,
           "another daemon may be there, which was told nothing");
    node_fini(&node);
}

static void bodies(void)
{
    struct slurm_job job = {.id = 9,
                            .name = "bad\xff\x01 caf\xc3\xa9",
                            .user = "anna",
                            .uid = 1004,
                            .has_uid = true,
                            .account = "",
                            .qos = "high",
                            .reason = "",
                            .partition = "serve-1",
                            .nodes = "n1",
                            .array_id = 3,
                            .task = 0,
                            .has_task = true,
                            .het_id = 9,
                            .limit_s = 600};
    char long_name[200];

    char *body = node_job_body(&config, &job, 90 * S);
    ok(strstr(body, "\"slurm.name\": \"bad?? caf\xc3\xa9\"") &&
           strstr(body, "\"slurm.array_job\": \"3\"") &&
           strstr(body, "\"slurm.array_task\": \"0\"") &&
           strstr(body, "\"slurm.het_component\": \"0\"") &&
           strstr(body, "\"underwatt.kind\": \"inference\"") &&
           strstr(body, "\"time_limit\": \"600 s\"") && strstr(body, "\"uid\": 1004") &&
           strstr(body, "\"for\": \"90 s\"") && !strstr(body, "slurm.account"),
       "a job's facts: %s", body);
    free(body);
    job.limit_s = 3155760000;
    body = node_job_body(&config, &job, 90 * S);
    ok(strstr(body, "\"time_limit\": \"3155760000 s\""), "a limit of 100 years");
    free(body);
    job.limit_s = (int64_t)0xfffffffe * 60; /* Slurm's NO_VAL in JSON */
    body = node_job_body(&config, &job, 90 * S);
    ok(!strstr(body, "time_limit") && strstr(body, "\"for\": \"90 s\""),
       "a longer one is left out: %s", body);
    free(body);
    for (size_t i = 0; i < sizeof long_name - 2; i += 2)
        memcpy(long_name + i, "\xc3\xa9", 3);
    job = (struct slurm_job){.name = long_name,
                             .user = "",
                             .account = "",
                             .qos = "",
                             .partition = "",
                             .nodes = ""};
    body = node_job_body(&config, &job, 90 * S);
    const char *at = strstr(body, "\"slurm.name\": \"");
    is_int(at ? strcspn(at + 15, "\"") : 0, 62, "a long name is cut between characters");
    ok(!strstr(body, "\"uid\""), "a user whose number is not told");
    free(body);
}

/* ---- configuration ---- */

static void configured(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "nodes"},
        {"nodes: {}", "give one of socket and url"},
        {"nodes: {socket: /a, url: \"https://%n\"}", "give one of socket and url"},
        {"nodes: {socket: a/%n}", "is not an absolute path"},
        {"nodes: {url: \"http://%n\", token: /t}", "does not begin with https://"},
        {"nodes: {url: \"https://node\", token: /t}", "%n stands for the node's name"},
        {"nodes: {url: \"https://%n\"}", "url needs token"},
        {"nodes: {socket: /a/%n, token: /t}", "token and ca belong to url"},
        {"nodes: {socket: /a/%n}\nevery: 30", "unit"},
        {"nodes: {socket: /a/%n}\nevery: 0.5 s", "outside"},
        {"nodes: {socket: /a/%n}\nevery: 6 min", "outside"},
        {"nodes: {socket: /a/%n}\nsource: rest", "auto"},
        {"nodes: {socket: /a/%n}\nkinds: [{kind: fun}]", "development"},
        {"nodes: {socket: /a/%n}\nkinds: [{partition: a}]", "kind"},
        {"nodes: {socket: /a/%n}\nkinds: {a: b}", ":2: "},
        {"nodes: {socket: /a/%n}\nevry: 1 s", "unknown key"},
    };
    struct collector_config c;
    uw_error err = {""};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int r = read_text(bad[i].text, &c, &err);
        ok(r < 0 && strstr(err.text, bad[i].says) && strstr(err.text, ": "),
           "refused: %s", err.text);
    }
    list[0].partition = "serve1";
    list[0].qos = "high";
    is_str(collector_kind(&config, &list[0]), "inference", "a kind by patterns");
    list[0].qos = "low";
    is_str(collector_kind(&config, &list[0]), "training", "… all of which must match");
}

static void places(void)
{
    char place[20];

    ok(collector_place("/run/%n/a%n%x", "n1", place, sizeof place) == 0 &&
           strcmp(place, "/run/n1/an1%x") == 0,
       "%%n is the node's name: %s", place);
    is_int(collector_place("/run/%n/a", "a-long-node-name", place, sizeof place),
           -ENAMETOOLONG, "too long");
}

static void token_file(const char *path, const char *with, mode_t mode, int want,
                       const char *what)
{
    char *got = NULL;
    uw_error err = {""};
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    ok(write(fd, with, strlen(with)) == (ssize_t)strlen(with) && fchmod(fd, mode) == 0,
       "a file");
    (void)close(fd);
    int r = collector_token(path, &got, &err);
    ok(r == want && (r < 0 || strcmp(got, "uw_abc") == 0), "%s: %d %s", what, r,
       err.text);
    free(got);
    (void)unlink(path);
}

static void tokens(void)
{
    char path[] = "/tmp/uw-test-XXXXXX";
    int fd = mkstemp(path);

    (void)close(fd);
    token_file(path, "uw_abc\n", 0600, 0, "a token");
    token_file(path, "uw_abc\n", 0640, -EPERM, "others may read it");
    token_file(path, "\nuw_abc\n", 0600, -EINVAL, "no token");
    token_file(path, "uw abc\n", 0600, -EINVAL, "a blank in it");
}

/* ---- lists of nodes ---- */

static void on_name(const char *name, size_t len, void *user)
{
    (void)strncat(user, name, len);
    (void)strcat(user, "/");
}

static void lists(void)
{
    static struct hosts hosts;
    char said[200] = "";
    bool plain = false;

    ok(hosts_find(&hosts, "n1,n2", &plain) && plain, "a list without brackets is known");
    ok(!hosts_find(&hosts, "n[1-2]", &plain) && !plain, "another one is not");
    is_int(hosts_add(&hosts, "n[1-2]", "n1\nn2\n../x\n-y\n\n"), 0, "remembered");
    hosts_each(hosts_find(&hosts, "n[1-2]", &plain), '\n', on_name, said);
    is_str(said, "n1/n2/", "what no node is called is left out");
    char list_[32];
    for (int i = 0; i < HOSTS_LISTS; i++) {
        (void)snprintf(list_, sizeof list_, "m[1-%d]", i);
        (void)hosts_add(&hosts, list_, "m1\n");
    }
    ok(!hosts_find(&hosts, "n[1-2]", &plain) && hosts_find(&hosts, list_, &plain),
       "when it is full the oldest are forgotten");
    hosts_fini(&hosts);
}

int main(void)
{
    uw_error err = {""};

    is_int(read_text(text, &config, &err), 0, "a configuration %s", err.text);
    plans();
    holds();
    moved();
    busy();
    reads_only();
    last();
    silence();
    bodies();
    configured();
    places();
    tokens();
    lists();
    collector_config_fini(&config);
    return done();
}
