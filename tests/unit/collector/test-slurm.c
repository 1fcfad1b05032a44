/* Looks at a Slurm whose commands are scripts of this test, and the rounds that follow.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/units.h"
#include "collector/cluster.h"
#include "collector/rights.h"
#include "collector/slurm.h"
#include "io/file.h"
#include "tap.h"

static char folder[] = "/tmp/uw-test-XXXXXX";
static struct loop *loop;
static struct slurm *slurm;
static struct collector_config config;
static struct {
    int r;
    const struct slurm_seen *seen;
    struct slurm_seen copy;
    uw_error why;
} got;

static const char *path(const char *name)
{
    static char text[100];

    (void)snprintf(text, sizeof text, "%s/%s", folder, name);
    return text;
}

static void put(const char *name, const char *with)
{
    FILE *f = fopen(path(name), "w");

    if (!f || fputs(with, f) < 0 || fclose(f) != 0 || chmod(path(name), 0700) < 0)
        printf("Bail out! %s\n", path(name));
}

/* A command that notes how it was called, and then does this. */
static void command(const char *name, const char *script)
{
    char text[4000];

    (void)snprintf(text, sizeof text, "#!/bin/sh\necho \"%s $*\" >> %s/asked\n%s\n", name,
                   folder, script);
    put(name, text);
}

static const char *asked(void)
{
    static char *text;

    free(text);
    text = NULL;
    if (file_read(path("asked"), 100000, &text, NULL, NULL) < 0)
        return "";
    (void)unlink(path("asked"));
    return text;
}

static void on_seen(int r, const struct slurm_seen *seen, const uw_error *why, void *user)
{
    (void)user;
    got.r = r;
    got.why = r < 0 ? *why : (uw_error){""};
    if (seen)
        got.copy = *seen;
    got.seen = seen;
    loop_stop(loop, 0);
}

static int look(void)
{
    got.r = 1;
    is_int(slurm_look(slurm), 0, "a look");
    if (got.r == 1)
        (void)loop_run(loop, NULL);
    return got.r;
}

#define JOB(id, nodes)                                                           \
    "{\"job_id\": " id ", \"job_state\": \"RUNNING\", \"partition\": \"main\", " \
    "\"nodes\": \"" nodes "\"}"
#define JSON(jobs) "echo '{\"jobs\": [" jobs "]}'"

static void looks(void)
{
    command("scontrol", "echo 'PrivateData             = none'");
    command("sinfo", "echo 'n1|main|gpu:2'");
    command("squeue", JSON(JOB("7", "n1")));
    is_int(look(), 0, "it answers %s", got.why.text);
    ok(got.copy.n_nodes == 1 && got.copy.jobs->n == 1 && got.copy.jobs->job[0].id == 7,
       "a node, a job");
    const char *calls = asked();
    ok(strstr(calls, "sinfo --all ") && strstr(calls, "squeue --all --json\n"),
       "hidden partitions are seen: %s", calls);
}

/* "gpu:4090" is one board where the nodes have such a type. */
static void numbers(void)
{
    struct slurm *mine = slurm;

    command("sinfo", "echo 'n1|main|gpu:4090:8(S:0-1)'");
    command("squeue", JSON("{\"job_id\": 5, \"job_state\": \"PENDING\", \"partition\": "
                           "\"main\", \"node_count\": 2, \"tres_per_node\": "
                           "\"gres/gpu:4090\"}"));
    is_int(slurm_new(loop, &config, on_seen, NULL, &slurm, NULL), 0, "another Slurm");
    is_int(look(), 0, "with boards named by a number %s", got.why.text);
    is_int(got.copy.queues->of[0].gpus, 2, "one of them on each of two nodes");
    slurm_free(slurm);
    slurm = mine;
    command("sinfo", "echo 'n1|main|gpu:2'");
}

#define WANTS(id, nodes)                                                         \
    "{\"job_id\": " id ", \"job_state\": \"PENDING\", \"partition\": \"main\", " \
    "\"state_reason\": \"ReqNodeNotAvail\", \"state_description\": "             \
    "\"ReqNodeNotAvail, UnavailableNodes:" nodes "\"}"

/* Slurm says ReqNodeNotAvail of a busy node, and of one that is down. */
static void unavailable(void)
{
    struct slurm *mine = slurm;

    command(
        "scontrol",
        "case $3 in 'n[2-3]') echo n2; echo n3;; *) echo 'PrivateData = none';; esac");
    command("squeue", JSON(WANTS("5", "n1") ", " WANTS("6", "n[2-3]") ", " WANTS(
                          "8", "n2,n1") ", " WANTS("9", "")));
    is_int(slurm_new(loop, &config, on_seen, NULL, &slurm, NULL), 0, "another Slurm");
    command("sinfo", "echo 'n1|main|gpu:2|mixed'; echo 'n2|main|gpu:2|idle'; "
                     "echo 'n3|main|gpu:2|planned'");
    is_int(look(), 0, "jobs that require nodes %s", got.why.text);
    is_int(got.copy.queues->of[0].depth, 4, "wait for nodes that are busy");
    command("sinfo", "echo 'n1|main|gpu:2|mixed'; echo 'n2|main|gpu:2|idle'; "
                     "echo 'n3|main|(null)|down*'");
    is_int(look(), 0, "a node goes down %s", got.why.text);
    is_int(got.copy.queues->of[0].depth, 3, "nobody waits for a node that is down");
    is_int(got.copy.left_out, 0, "no job that runs is left out");
    command("sinfo", "echo 'n1|main|gpu:2|draining'; echo 'n2|main|gpu:2|drained'; "
                     "echo 'n3|main|gpu:2|idle'");
    is_int(look(), 0, "two are drained %s", got.why.text);
    is_int(got.copy.queues->of[0].depth, 1, "one job names no node");
    slurm_free(slurm);
    slurm = mine;
    command("sinfo", "echo 'n1|main|gpu:2'");
    (void)asked();
}

/* A look whose last call does not begin. */
static void torn(void)
{
    command("scontrol", "echo n1; echo n2");
    command("squeue", JSON(JOB("7", "n[1-2]") ", " JOB("8", "n1")));
    is_int(look(), 0, "a list of nodes %s", got.why.text);
    ok(strstr(asked(), "scontrol show hostnames n[1-2]\n"), "is looked up");
    const struct slurm_job *before = got.copy.jobs->job;
    (void)unlink(path("scontrol"));
    command("squeue", JSON(JOB("9", "n[1-3]")));
    is_int(look(), -ENOENT, "no scontrol: %s", got.why.text);
    ok(!got.seen && got.copy.jobs->job == before && got.copy.jobs->n == 2 &&
           got.copy.jobs->job[1].id == 8,
       "the jobs of the look before stay until one is complete");
    command("scontrol", "echo n1; echo n2; echo n3; echo 'PrivateData = none'");
    is_int(look(), 0, "it is back %s", got.why.text);
    ok(got.copy.jobs->n == 1 && got.copy.jobs->job[0].id == 9, "other jobs");
}

static void rights(void)
{
    static const struct {
        const char *text;
        unsigned uid;
        int r;
        const char *says;
    } cases[] = {
        {"PrivateData             = none\n", 1000, 0, ""},
        {"A = b\nPrivateData = accounts,usage,users\nZ = jobs\n", 1000, 0, ""},
        {"PrivateData = accounts,jobs,usage\n", 1000, -EACCES, "PrivateData=jobs hides"},
        {"PrivateData = nodes\n", 1000, -EACCES, "'sees_all: true'"},
        {"PrivateData = partitions", 1000, -EACCES, "from uid 1000"},
        {"PrivateData = jobs\n", 0, 0, ""},
        {"PrivateData = jobs\nSlurmUser = slurm(64030)\n", 64030, 0, ""},
        {"PrivateData = jobs\nSlurmUser = slurm(64030)\n", 6403, -EACCES, "6403"},
        {"PrivateData = jobs\nSlurmUser = slurm\nX = (1000)\n", 1000, -EACCES, "jobs"},
        {"", 1000, -EPROTO, "there is no PrivateData"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uw_error err = {""};
        int r = rights_check(cases[i].text, cases[i].uid, &err);
        ok(r == cases[i].r && strstr(err.text, cases[i].says), "rights %zu: %d %s", i, r,
           err.text);
    }
}

static void hidden(void)
{
    command("squeue", "exit 1");
    is_int(look(), -EPROTO, "a look that fails: %s", got.why.text);
    command("squeue", JSON(""));
    command("scontrol", "echo 'PrivateData = jobs'");
    is_int(look(), -EACCES, "hidden jobs are no empty queue: %s", got.why.text);
    is_int(look(), -EACCES, "still hidden");
    config.sees_all = true;
    is_int(look(), 0, "an operator sees them %s", got.why.text);
    config.sees_all = false;
    command("scontrol", "echo 'PrivateData = usage'");
    (void)asked();
    is_int(look(), 0, "the rights are mended: %s", got.why.text);
    ok(strstr(asked(), "scontrol show config"), "it is asked again after a failure");
    is_int(look(), 0, "again %s", got.why.text);
    ok(!strstr(asked(), "scontrol"), "and once");
}

/* What parts the fields stands in the environment alone, and is another one each time. */
static void by_text(void)
{
    char script[600], first[40];

    config.source = SOURCE_TEXT;
    (void)snprintf(script, sizeof script,
                   "n=${SQUEUE_FORMAT2#JobID:}; n=${n%%%%,*}; echo \"$n\" > %s/between\n"
                   "echo \"7${n}7${n}N/A${n}N/A${n}N/A${n}RUNNING${n}None${n}main$n$n$n"
                   "${n}5${n}1${n}1${n}1:00${n}n1$n$n$n$n${n}1${n}1${n}a|b\"",
                   folder);
    command("squeue", script);
    for (int i = 0; i < 2; i++) {
        char *between = NULL;
        is_int(look(), 0, "text %s", got.why.text);
        ok(got.copy.jobs->n == 1 && strcmp(got.copy.jobs->job[0].name, "a|b") == 0,
           "a job");
        const char *calls = asked();
        ok(strstr(calls, "squeue --all --noheader\n"), "its arguments: %s", calls);
        (void)file_read(path("between"), 100, &between, NULL, NULL);
        is_int(between ? strlen(between) : 0, 10, "between fields: %s", between);
        ok(i == 0 || strcmp(first, between) != 0, "another one than before");
        (void)snprintf(first, sizeof first, "%s", between ? between : "");
        free(between);
    }
    config.source = SOURCE_AUTO;
}

/* A look ends after 20 s, here of a loop that is eight times as fast: 2.5 s. */
static void ends(void)
{
    struct loop *old_loop = loop;
    struct slurm *old_slurm = slurm;
    int asked_for = 0;

    loop = NULL;
    if (loop_new_real((struct loop_clock){0, 8}, &loop, NULL) < 0 ||
        slurm_new(loop, &config, on_seen, NULL, &slurm, NULL) < 0)
        return;
    command("sinfo", "echo 'n1|main|gpu:2'");
    command("scontrol",
            "[ $2 = hostnames ] && exec /bin/sleep 60; echo 'PrivateData = none'");
    command("squeue", JSON(JOB("7", "n1") ", " JOB("8", "n[1-2]") ", " JOB(
                          "9", "n[1-3]") ", " JOB("10", "n[1-4]")));
    (void)asked();
    is_int(look(), 0, "a look whose lists of nodes hang: %s", got.why.text);
    is_int(got.copy.left_out, 3, "says how many jobs it leaves out");
    is_int(got.copy.jobs->n, 4, "and has them all in the queue");
    for (const char *p = asked(); (p = strstr(p, "hostnames")); p++)
        asked_for++;
    is_int(asked_for, 1, "the first list has taken the time of the others");
    command("squeue", "exec /bin/sleep 60");
    is_int(look(), -ETIMEDOUT, "without squeue it fails: %s", got.why.text);
    slurm_free(slurm);
    loop_free(loop);
    loop = old_loop;
    slurm = old_slurm;
}

/* ---- rounds ---- */

static const char *log_wanted;
static int polls;

static const char *log_text(void)
{
    static char *text;

    free(text);
    text = NULL;
    (void)file_read(path("log"), 100000, &text, NULL, NULL);
    return text ? text : "";
}

static int on_poll(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    if (strstr(log_text(), log_wanted) || ++polls == 600)
        loop_stop(loop, 0);
    return 0;
}

/* Rounds until the log has this text, 60 s at most.  Returns the log. */
static const char *rounds(const struct collector_config *with, const char *wanted)
{
    struct cluster *cluster = NULL;
    struct loop_timer *timer = NULL;
    int old = dup(2), fd;
    uw_error err = {""};

    put("log", "");
    fd = open(path("log"), O_WRONLY | O_APPEND | O_CLOEXEC);
    (void)dup2(fd, 2);
    log_wanted = wanted;
    polls = 0;
    int r = cluster_new(loop, with, NULL, &cluster, &err);
    if (r == 0)
        r = loop_timer_new(loop, loop_now_ns(loop), NS_PER_S / 10, on_poll, NULL, &timer,
                           &err);
    if (r == 0)
        (void)loop_run(loop, &err);
    loop_timer_free(timer);
    cluster_free(cluster);
    (void)dup2(old, 2);
    (void)close(old);
    (void)close(fd);
    is_int(r, 0, "rounds %s", err.text);
    return log_text();
}

static void no_gpus(void)
{
    const struct collector_config c = {.every_ns = NS_PER_S / 5, .socket = "/none/%n"};

    command("sinfo", "echo 'n1|main|(null)'");
    command("squeue", JSON(""));
    const char *said = rounds(&c, "event=slurm");
    ok(strstr(said, "sinfo shows no node with GPUs"), "no node is said: %s", said);
}

static void long_socket(void)
{
    static const char socket[] =
        "/tmp/"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaa/%n/sock";
    const struct collector_config c = {.every_ns = NS_PER_S / 5, .socket = socket};

    command("sinfo", "echo 'a-long-name-of-a-node|main|gpu:2'");
    command("squeue", JSON(""));
    const char *said = rounds(&c, "event=node");
    const char *first = strstr(said, "event=node");
    ok(first && strstr(first, "name=a-long-name-of-a-node state=silent") &&
           strstr(first, "more than 107 bytes"),
       "a socket's path that is too long is said: %s", said);
}

/* 130 nodes whose daemons accept, and do not answer. */
static void late(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    const struct collector_config c = {.every_ns = NS_PER_S, .socket = at.sun_path};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s/silent", folder);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 256) < 0)
        return;
    command("scontrol", "echo 'PrivateData = none'");
    command("sinfo", "i=0; while [ $i -lt 130 ]; do echo \"n$i|main|gpu:2\"; i=$((i+1)); "
                     "done");
    command("squeue", JSON(""));
    const char *said = rounds(&c, "state=late");
    ok(strstr(said, "66 of 130 nodes were not reached within 1 s"),
       "nodes whose turn does not come are counted: %.200s", said);
    (void)close(fd);
}

int main(void)
{
    const struct loop_clock real = {0, 1};
    char clean[60];
    uw_error err = {""};

    /* From root nothing is hidden. */
    if ((geteuid() == 0 && seteuid(65534) < 0) || !mkdtemp(folder) ||
        setenv("PATH", folder, 1) < 0 || loop_new_real(real, &loop, &err) < 0 ||
        slurm_new(loop, &config, on_seen, NULL, &slurm, &err) < 0)
        return 1;
    looks();
    numbers();
    unavailable();
    torn();
    rights();
    hidden();
    by_text();
    no_gpus();
    long_socket();
    ends();
    late();
    slurm_free(slurm);
    loop_free(loop);
    (void)snprintf(clean, sizeof clean, "/bin/rm -r %s", folder);
    is_int(system(clean), 0, "clean");
    if (getuid() == 0 && seteuid(0) == 0)
        (void)prctl(PR_SET_DUMPABLE, 1); /* LeakSanitizer looks at this process */
    return done();
}
