/* A job begins on this node: reports it to the daemon before the first task. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "slurm/context.h"
#include "slurm/gres.h"
#include "slurm/message.h"
#include "slurm/slurmd.h"

/* The job's GPUs, while gres.conf is read. */
struct search {
    bool wanted[GRES_DEVICES_MAX];
    size_t n_wanted, n_found;
    struct message_job *job;
    char bad[GRES_PATH_MAX]; /* a file that is no board's device ... */
    const char *why;         /* ... and the reason */
};

/* "0,2,3" or "0-1,3": indices of Slurm. */
static int read_indices(const char *list, struct search *s, uw_error *err)
{
    for (const char *at = list; *at;) {
        unsigned from = 0, to = 0;
        int n = 0, more = 0;
        if (sscanf(at, "%4u%n", &from, &n) != 1)
            return fail(err, -EINVAL, "SLURM_JOB_GPUS=%.60s is no list of indices", list);
        to = from;
        if (sscanf(at + n, "-%4u%n", &to, &more) == 1)
            n += more;
        at += n;
        if (from > to || to >= GRES_DEVICES_MAX || (*at && *at != ','))
            return fail(err, -EINVAL, "SLURM_JOB_GPUS=%.60s is no list of indices", list);
        at += *at == ',';
        for (unsigned i = from; i <= to; i++) {
            s->n_wanted += !s->wanted[i];
            s->wanted[i] = true;
        }
    }
    if (s->n_wanted > MESSAGE_GPUS_MAX)
        return fail(err, -E2BIG, "more than %d GPUs", MESSAGE_GPUS_MAX);
    return 0;
}

static void on_device(unsigned index, const char *file, void *user)
{
    struct search *s = user;
    struct stat st;

    if (!s->wanted[index] || *s->bad)
        return;
    if (strstr(file, "-caps/")) /* its minor number is another driver's */
        s->why = "is a part of a GPU: a cap is a whole board's";
    else if (stat(file, &st) < 0 || !S_ISCHR(st.st_mode))
        s->why = "is no device";
    if (s->why) {
        (void)snprintf(s->bad, sizeof s->bad, "%s", file);
        return;
    }
    s->job->minor[s->n_found++] = minor(st.st_rdev);
}

static const char *conf_path(void)
{
    const char *conf = hook_env("SLURM_CONF");

    return conf ? conf : "/etc/slurm/slurm.conf";
}

/* Slurm's gres.conf, in the folder of slurm.conf. */
static void gres_path(char ret[GRES_PATH_MAX])
{
    const char *conf = conf_path(), *slash = strrchr(conf, '/');

    (void)snprintf(ret, GRES_PATH_MAX, "%.*sgres.conf",
                   slash ? (int)(slash + 1 - conf) : 0, conf);
}

/* slurmd counts by the files as it has read them: a file that changed later may have
 * another order.  The file of the argument gres=, which a site writes after `slurmd -G`,
 * may be newer than slurmd, unless slurm.conf is, too.
 */
static int check_age(const struct hook *h, bool typed, uw_error *err)
{
    char path[GRES_PATH_MAX];

    gres_path(path);
    int r = slurmd_has_read(path, err);
    if (r == -ENOENT && h->args.gres)
        r = slurmd_has_read(h->args.gres, err);
    else if (r >= 0 && h->args.gres)
        typed |= slurmd_has_read(h->args.gres, NULL) < 0;
    return r < 0 || !typed ? r : slurmd_has_read(conf_path(), err);
}

/* GPUs of several types: slurm.conf has their order. */
static int read_types(const struct hook *h, struct gres_types *ret, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    int len = context_file(conf_path(), &text, err);

    if (len < 0)
        return len;
    int r = gres_types(text, (size_t)len, h->node, ret, err);
    return r < 0 ? fail_in(err, r, "%s", conf_path()) : 0;
}

/* The minor numbers of the job's device files.  If one is unknown, none is sent: a guess
 * could cap another job's board.
 */
static int find_minors(const struct hook *h, struct message_job *job, uw_error *err)
{
    struct search s = {.job = job};
    struct gres_types types;
    auto_(mem_free) char *text = NULL;
    char path[GRES_PATH_MAX];

    int r = read_indices(h->gpus, &s, err);
    if (r < 0)
        return r;
    if (h->args.gres)
        (void)snprintf(path, sizeof path, "%s", h->args.gres);
    else
        gres_path(path);
    int len = context_file(path, &text, err);
    if (len < 0)
        return len;
    r = gres_read(text, (size_t)len, h->node, NULL, on_device, &s, err);
    bool typed = r == -ENOTUNIQ;
    if (typed) {
        s.n_found = 0;
        *s.bad = '\0';
        r = read_types(h, &types, err);
        if (r < 0)
            return r;
        r = gres_read(text, (size_t)len, h->node, &types, on_device, &s, err);
    }
    if (r >= 0 && *s.bad)
        r = fail(err, -ENODEV, "%s %s", s.bad, s.why);
    if (r >= 0 && s.n_found < s.n_wanted)
        r = fail(err, -ENODEV, "%d GPUs for this node, SLURM_JOB_GPUS=%.60s", r, h->gpus);
    if (r < 0)
        return fail_in(err, r, "%s", path);
    r = check_age(h, typed, err);
    if (r < 0)
        return r;
    job->n_minors = s.n_found;
    return 0;
}

/* The time limit of the job, if Slurm reports it (23.02 and later). */
static uint64_t limit_s(void)
{
    const char *start = hook_env("SLURM_JOB_START_TIME"),
               *end = hook_env("SLURM_JOB_END_TIME");
    uint64_t from = 0, to = 0;

    if (!start || !end || parse_u64(start, &from, NULL) < 0 ||
        parse_u64(end, &to, NULL) < 0 || to <= from || to - from > 100ull * 366 * 86400)
        return 0;
    return to - from;
}

/* A request of the user; a malformed one is left out and mentioned in the note. */
static const struct wish *wish(spank_t sp, enum option which, struct wish *w,
                               char note[sizeof(uw_error)])
{
    const char *value = hook_option(sp, which);
    uw_error err;

    if (!value)
        return NULL;
    if (context_wish(which, value, w, &err) < 0) {
        (void)snprintf(note, sizeof err, "%s", err.text);
        utf8_mend(note); /* the user's text in slurmd's log */
        return NULL;
    }
    return w;
}

/* The job's number of nodes; NULL: only this one, or Slurm does not report it. */
static const char *nodes(void)
{
    const char *n = hook_env("SLURM_JOB_NUM_NODES");

    return n && strcmp(n, "1") != 0 ? n : NULL;
}

void prolog(spank_t sp, int argc, char **argv)
{
    struct hook h;
    struct wish cap, goal, cls;
    char note[sizeof(uw_error)] = "", request[MESSAGE_REQUEST];
    uw_error err;

    if (!hook_begin(&h, "prolog", sp, argc, argv) || !h.concerned)
        return;
    struct message_job job = {
        .id = h.job,
        .uid = h.uid,
        .label = {{"slurm.partition", hook_env("SLURM_JOB_PARTITION")},
                  {"slurm.account", hook_env("SLURM_JOB_ACCOUNT")},
                  {"slurm.qos", hook_env("SLURM_JOB_QOS")},
                  {"slurm.nodes", nodes()}},
        .limit_s = limit_s(),
    };
    const struct wish *a_cap = wish(sp, OPTION_CAP, &cap, note);
    const struct wish *a_goal = wish(sp, OPTION_GOAL, &goal, note);
    /* A cap in addition to a goal is from the environment or the script. */
    job.ask = a_goal && !(a_cap && hook_env(CAP_FIRST)) ? a_goal : a_cap;
    job.cls = wish(sp, OPTION_CLASS, &cls, note);
    if (*h.gpus && find_minors(&h, &job, &err) < 0) {
        (void)snprintf(note, sizeof note, "%s", err.text);
        job.ask = NULL;
        job.unknown = note;
    }
    hook_ask(&h, request, message_begin(&job, request), note);
    hook_end(&h);
}
