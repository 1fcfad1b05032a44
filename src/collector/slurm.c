#include "collector/slurm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "collector/command.h"
#include "collector/node.h"
#include "collector/rights.h"

/* Slurm's commands give up by themselves after 10 s or so. */
#define LOOK_NS (NODE_LOOK_S * NS_PER_S)
enum {
    NODES_LOOKS = 20, /* looks after which nodes are queried again */
    TEXT_LOOKS = 20, /* … and JSON is tried again if the text form worked in its place */
    LISTS_MAX = 256, /* new lists of nodes in one look */
    SMALL_MAX = 8 << 20,
    FORMAT_MAX = 1024,
};

struct slurm {
    struct loop *loop;
    const struct collector_config *config;
    slurm_fn fn;
    void *user;
    struct command *command; /* NULL: none is under way */
    bool busy;
    struct jobs jobs, new_jobs; /* of the last complete look, of this one */
    struct queues queues, new_queues;
    struct hosts hosts;
    char *sinfo; /* last output of sinfo: names point into it */
    const char **node, **partition;
    const char **away; /* nodes on which no job can begin, sorted */
    size_t n_nodes, nodes_cap, n_partitions, partitions_cap, n_away, away_cap;
    unsigned nodes_left, text_left; /* looks until nodes, JSON … */
    bool by_text;                   /* this look uses the text form */
    bool may_see;                   /* PrivateData hides nothing from this user */
    uw_error json_why;
    uint64_t end_ns;       /* deadline of this look */
    size_t list_at, lists; /* of the jobs, for scontrol */
    size_t left_out;       /* jobs with unknown lists */
    const char *list;
    char nonce[JOBS_NONCE], format[FORMAT_MAX], types[JOBS_TYPES];
};

static int ask_jobs(struct slurm *s, uw_error *err);
static int ask_lists(struct slurm *s, uw_error *err);

/* ---- the end of a look ---- */

static void finish(struct slurm *s, int r, const uw_error *why)
{
    const struct slurm_seen seen = {&s->jobs, &s->queues, &s->hosts,
                                    s->node,  s->n_nodes, s->left_out};

    s->busy = false;
    if (r == 0) {
        jobs_fini(&s->jobs);
        s->jobs = s->new_jobs;
        s->queues = s->new_queues;
        s->new_jobs = (struct jobs){.n = 0};
    } else {
        jobs_fini(&s->new_jobs);
        s->may_see = false;
    }
    s->fn(r, r < 0 ? NULL : &seen, why, s->user);
}

static int call_with(struct slurm *s, const char *const *argv, const char *env,
                     size_t max, command_fn fn, uw_error *err)
{
    const uint64_t now_ns = loop_now_ns(s->loop);
    const double left_s = now_ns < s->end_ns ? s_of_ns(s->end_ns - now_ns) : 0;
    const struct command_opts opts = {.argv = argv,
                                      .env = env,
                                      .deadline_ns =
                                          ns_of_s(left_s / loop_speed(s->loop)),
                                      .max = max,
                                      .fn = fn,
                                      .user = s};

    command_free(take(s->command));
    if (left_s <= 0)
        return fail(err, -ETIMEDOUT,
                    "%s: left out, because requests to Slurm end after %d s", argv[0],
                    NODE_LOOK_S);
    return command_new(s->loop, &opts, &s->command, err);
}

static int call(struct slurm *s, const char *const *argv, size_t max, command_fn fn,
                uw_error *err)
{
    return call_with(s, argv, NULL, max, fn, err);
}

/* ---- nodes and partitions ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int keep(const char ***list, size_t *n, size_t *cap, const char *name)
{
    int r = array_grow(list, cap, *n, SLURM_NODES);

    if (r == 0)
        (*list)[(*n)++] = name;
    return r == -E2BIG ? 0 : r;
}

static size_t unique(const char **list, size_t n)
{
    size_t to = 0;

    if (n > 0)
        qsort(list, n, sizeof *list, compare);
    for (size_t i = 0; i < n; i++)
        if (to == 0 || strcmp(list[to - 1], list[i]) != 0)
            list[to++] = list[i];
    return to;
}

/* "down*": no job can begin there until an administrator acts. */
static bool is_away(const char *state)
{
    static const char *const states[] = {"down", "drain", "fail", "maint", "unknown"};

    for (size_t i = 0; i < n_elements(states); i++)
        if (strncmp(state, states[i], strlen(states[i])) == 0)
            return true;
    return false;
}

/* Lines "n1|gpu|gpu:8|mixed"; the text is kept. */
static int take_nodes(struct slurm *s, char *text)
{
    int r = 0;

    free(s->sinfo);
    s->sinfo = text;
    s->n_nodes = s->n_partitions = s->n_away = 0;
    s->types[0] = '\0';
    for (char *line = text, *next; r == 0 && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        char *partition = strchr(line, '|'), *gres;
        if (!partition || !(gres = strchr(partition + 1, '|')))
            continue;
        *partition++ = *gres++ = '\0';
        char *state = strchr(gres, '|');
        if (state)
            *state++ = '\0';
        jobs_gres_types(gres, s->types);
        r = keep(&s->partition, &s->n_partitions, &s->partitions_cap, partition);
        if (r == 0 && jobs_gres_gpus(gres, "") > 0 && hosts_is_name(line, strlen(line)))
            r = keep(&s->node, &s->n_nodes, &s->nodes_cap, line);
        if (r == 0 && state && is_away(state))
            r = keep(&s->away, &s->n_away, &s->away_cap, line);
    }
    s->n_nodes = unique(s->node, s->n_nodes);
    s->n_away = unique(s->away, s->n_away);
    s->n_partitions = unique(s->partition, s->n_partitions);
    return r;
}

static void on_nodes(int r, char *text, size_t len, const uw_error *why, void *user)
{
    struct slurm *s = user;
    uw_error err = {""};

    if (r == 0 && memchr(text, '\0', len)) {
        free(text);
        r = fail(&err, -EPROTO, "sinfo: its output has a NUL byte");
        why = &err;
    } else if (r == 0 && (r = take_nodes(s, text)) < 0) {
        (void)fail(&err, r, "out of memory");
        why = &err;
    }
    s->nodes_left = r < 0 ? 0 : NODES_LOOKS;
    if (r == 0) {
        r = ask_jobs(s, &err);
        why = &err;
    }
    if (r < 0)
        finish(s, r, why);
}

static int ask_nodes(struct slurm *s, uw_error *err)
{
    static const char *const argv[] = {"sinfo",    "--all",       "--noheader", "--Node",
                                       "--format", "%N|%R|%G|%T", NULL};

    if (s->nodes_left > 0) {
        s->nodes_left--;
        return ask_jobs(s, err);
    }
    return call(s, argv, SMALL_MAX, on_nodes, err);
}

/* ---- rights ---- */

/* If PrivateData hides jobs, the commands succeed with fewer jobs: that is no empty
 * queue.
 */
static void on_config(int r, char *text, size_t len, const uw_error *why, void *user)
{
    struct slurm *s = user;
    uw_error err = {""};
    (void)len;

    if (r < 0)
        err = *why;
    else
        r = rights_check(text, geteuid(), &err);
    free(text);
    s->may_see = r == 0;
    if (r == 0)
        r = ask_nodes(s, &err);
    if (r < 0)
        finish(s, r, &err);
}

static int ask_config(struct slurm *s, uw_error *err)
{
    static const char *const argv[] = {"scontrol", "show", "config", NULL};

    if (s->may_see || s->config->sees_all)
        return ask_nodes(s, err);
    return call(s, argv, SMALL_MAX, on_config, err);
}

/* ---- jobs ---- */

static int by_text(struct slurm *s, const uw_error *json_why, uw_error *err)
{
    s->by_text = true;
    s->json_why = *json_why;
    return ask_jobs(s, err);
}

static int took_jobs(struct slurm *s, uw_error *err)
{
    s->list_at = s->lists = 0;
    return ask_lists(s, err);
}

static void on_jobs(int r, char *text, size_t len, const uw_error *why, void *user)
{
    struct slurm *s = user;
    struct jobs jobs = {.n = 0};
    uw_error err = {""};
    bool is_text = s->by_text;

    if (r < 0)
        err = *why;
    else if (is_text)
        r = jobs_read_text(text, len, s->nonce, s->types, &jobs, &err);
    else
        r = jobs_read_json(text, len, s->types, &jobs, &err);
    if (!is_text)
        free(text);
    if (r == 0) {
        jobs_fini(&s->new_jobs);
        s->new_jobs = jobs;
        if (is_text && s->text_left == 0)
            s->text_left = TEXT_LOOKS;
        r = took_jobs(s, &err);
    } else if (!is_text && s->config->source == SOURCE_AUTO && r != -ETIMEDOUT) {
        if (r == -EFBIG) /* there may be no time for both forms, now and later */
            s->text_left = TEXT_LOOKS;
        r = by_text(s, &err, &err);
    } else if (is_text && s->json_why.text[0]) {
        err = s->json_why;
    }
    if (r < 0)
        finish(s, r, &err);
}

/* The separator of the fields, which users cannot guess. */
static int make_nonce(struct slurm *s, uw_error *err)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char random[JOBS_NONCE - 1];
    static const char name[] = "SQUEUE_FORMAT2=";
    size_t n = sizeof name - 1;

    if (getrandom(random, sizeof random, 0) != sizeof random)
        return fail(err, -errno, "no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        s->nonce[i] = letters[random[i] % 64];
    memcpy(s->format, name, n);
    return jobs_format(s->nonce, s->format + n, sizeof s->format - n);
}

static int ask_jobs(struct slurm *s, uw_error *err)
{
    static const char *const json[] = {"squeue", "--all", "--json", NULL};
    static const char *const text[] = {"squeue", "--all", "--noheader", NULL};
    int r = s->by_text ? make_nonce(s, err) : 0;

    return r < 0 ? r
                 : call_with(s, s->by_text ? text : json, s->by_text ? s->format : NULL,
                             JOBS_TEXT_MAX, on_jobs, err);
}

/* ---- lists of nodes ---- */

/* The relevant list of a job; NULL: none. */
static const char *list_of(const struct slurm_job *job)
{
    if (job->stage == JOB_IS_PENDING)
        return job_unavailable(job);
    return job->stage == JOB_IS_RUNNING && job->nodes[0] != '-' ? job->nodes : NULL;
}

struct search {
    const struct slurm *slurm;
    bool away; /* one of the nodes */
};

static void on_unavailable(const char *name, size_t len, void *user)
{
    struct search *search = user;
    const struct slurm *s = search->slurm;
    char word[64];

    (void)snprintf(word, sizeof word, "%.*s", (int)len, name);
    const char *key = word;
    search->away |=
        s->n_away > 0 && bsearch(&key, s->away, s->n_away, sizeof *s->away, compare);
}

/* A job whose node is down does not count as waiting.  While there are such jobs, the
 * next look queries the nodes' states again.
 */
static void count_queues(struct slurm *s)
{
    queues_init(&s->new_queues);
    for (size_t i = 0; i < s->n_partitions; i++)
        (void)queues_partition(&s->new_queues, s->partition[i]);
    for (size_t i = 0; i < s->new_jobs.n; i++) {
        struct slurm_job *job = &s->new_jobs.job[i];
        struct search search = {.slurm = s};
        bool plain = false;
        if (job->stage != JOB_IS_PENDING || !job_unavailable(job))
            continue;
        const char *names = hosts_find(&s->hosts, job_unavailable(job), &plain);
        if (names)
            hosts_each(names, plain ? ',' : '\n', on_unavailable, &search);
        job->node_away = search.away;
        s->nodes_left = 0;
    }
    queues_add(&s->new_queues, &s->new_jobs, loop_utc_ns(s->loop) / (int64_t)NS_PER_S);
}

static void on_list(int r, char *text, size_t len, const uw_error *why, void *user)
{
    struct slurm *s = user;
    uw_error err = {""};
    (void)len;
    (void)why;

    if (r == 0)
        (void)hosts_add(&s->hosts, s->list, text);
    else if (s->new_jobs.job[s->list_at - 1].stage == JOB_IS_RUNNING)
        s->left_out++;
    free(text);
    r = ask_lists(s, &err);
    if (r < 0)
        finish(s, r, &err);
}

/* Queries the next unknown list; without one the look is over.  Jobs whose list is still
 * unknown then are not reported this time.
 */
static int ask_lists(struct slurm *s, uw_error *err)
{
    bool plain;

    for (; s->list_at < s->new_jobs.n; s->list_at++) {
        const struct slurm_job *job = &s->new_jobs.job[s->list_at];
        const char *list = list_of(job);
        if (!list || hosts_find(&s->hosts, list, &plain))
            continue;
        if (strlen(list) > HOSTS_TEXT / 16 || s->lists == LISTS_MAX ||
            loop_now_ns(s->loop) >= s->end_ns) {
            s->left_out += job->stage == JOB_IS_RUNNING;
            continue;
        }
        const char *const argv[] = {"scontrol", "show", "hostnames", list, NULL};
        s->list = list;
        s->list_at++;
        s->lists++;
        return call(s, argv, HOSTS_TEXT, on_list, err);
    }
    count_queues(s);
    finish(s, 0, NULL);
    return 0;
}

/* ---- life ---- */

int slurm_look(struct slurm *s)
{
    uw_error err = {""};

    if (s->busy)
        return -EBUSY;
    s->busy = true;
    s->end_ns = loop_now_ns(s->loop) + LOOK_NS;
    s->left_out = 0;
    s->json_why = (uw_error){""};
    s->by_text = s->config->source == SOURCE_TEXT;
    if (s->config->source == SOURCE_AUTO && s->text_left > 0) {
        s->text_left--;
        s->by_text = s->text_left > 0;
    }
    int r = ask_config(s, &err);
    if (r < 0)
        finish(s, r, &err);
    return 0;
}

int slurm_new(struct loop *loop, const struct collector_config *config, slurm_fn fn,
              void *user, struct slurm **ret, uw_error *err)
{
    struct slurm *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->loop = loop;
    s->config = config;
    s->fn = fn;
    s->user = user;
    *ret = s;
    return 0;
}

void slurm_free(struct slurm *s)
{
    if (!s)
        return;
    command_free(s->command);
    jobs_fini(&s->jobs);
    jobs_fini(&s->new_jobs);
    hosts_fini(&s->hosts);
    free(s->sinfo);
    free(s->node);
    free(s->away);
    free(s->partition);
    free(s);
}
