#include "node/scheduler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"
#include "node/policy-facts.h"
#include "node/scheduler-inside.h"

/* A recently registered job is looked at more often: a short job that is not seen while
 * it runs would count as not begun.
 */
#define NEW_LOOK_NS (2 * NS_PER_S)
#define NEW_NS (30 * NS_PER_S)
#define HURRY_NS (200 * NS_PER_MS)

/* ---- boards by the numbers of their device files ---- */

static int find_minor(const struct scheduler *s, uint32_t minor, size_t *ret,
                      uw_error *err)
{
    const struct gpu_info *mute = NULL;

    for (size_t i = 0; i < scheduler_boards(s); i++) {
        const struct gpu_info *info = scheduler_board(s, i);
        if (info->has_minor && info->minor == minor) {
            *ret = i;
            return 0;
        }
        if (!info->has_minor && !mute)
            mute = info;
    }
    if (mute)
        return fail(err, -ENOTSUP,
                    "'gpu_minors': no GPU is known to have device file %u: the driver "
                    "does not report the device file of GPU %u (%s)",
                    minor, mute->index, mute->uuid);
    return fail(err, -ENOTSUP,
                "'gpu_minors': none of the %zu GPUs of this node has device file %u",
                scheduler_boards(s), minor);
}

static int find_boards(const struct scheduler *s, const struct scheduler_ask *ask,
                       uint64_t *ret, uw_error *err)
{
    size_t at = 0;
    int r = 0;

    *ret = 0;
    for (size_t i = 0; i < ask->n_minors && r == 0; i++) {
        r = find_minor(s, ask->minor[i], &at, err);
        if (r == 0 && (*ret >> at & 1))
            r = fail(err, -EINVAL, "'gpu_minors' names %u twice", ask->minor[i]);
        if (r == 0)
            *ret |= 1ull << at;
    }
    return r;
}

/* ---- requests of a job ---- */

/* Starts a search that had its goal before a restart of the daemon. */
static int search_again(struct scheduler *s, const struct job_entry *job,
                        struct job_record *rec, uw_error *err)
{
    uw_error why = {""};
    int r = s->o.search(job, rec, s->o.user, &why);

    rec->again = r < 0;
    return r < 0 ? fail(err, r, "goal: %s", why.text) : 0;
}

/* A goal that the job's user has set later, or "off", stays until another goal is
 * requested.
 */
static int search(struct scheduler *s, const struct job_entry *job,
                  struct job_record *rec, bool is_new, uw_error *err)
{
    const char *goal = scheduler_after(rec->ask, "goal");
    bool was = rec->search;
    int r = 0;

    if (!is_new && was && rec->again)
        return search_again(s, job, rec, err);
    if (!is_new && (was || rec->off))
        return 0;
    rec->off = rec->again = false;
    if (goal && !job->given)
        r = fail(err, -ENODEV, "goal: the job has no GPU");
    else if (goal && goal_parse(goal, &rec->goal, err) < 0)
        r = fail_in(err, -EINVAL, "goal");
    rec->search = goal && r == 0;
    if (!rec->search && !was)
        return r;
    uw_error why = {""};
    int given = s->o.search(job, rec, s->o.user, &why);
    if (given == -ENOENT && !rec->search) /* it had none */
        given = 0;
    if (given < 0) {
        rec->search = false;
        r = fail(err, given, "goal: %s", why.text);
    }
    return r;
}

/* Logs a refusal once for each cause: the refusals' part counts the others. */
static void say_refused(struct scheduler *s, const struct job_entry *job,
                        struct job_record *rec, int r, const uw_error *why)
{
    if (strcmp(rec->refused, why->text) == 0)
        return;
    (void)snprintf(rec->refused, sizeof rec->refused, "%.*s",
                   (int)sizeof rec->refused - 1, why->text);
    if (r < 0)
        s->o.refused(job, r, why, s->o.user);
}

static bool is_unknown(const struct job_record *rec)
{
    return strncmp(rec->refused, JOB_UNKNOWN_GPUS, strlen(JOB_UNKNOWN_GPUS)) == 0;
}

/* -EINVAL: no class of the configuration or of the policy. */
static int check_class(const struct scheduler *s, const char *name, uw_error *err)
{
    const struct config_caps *caps = &s->o.config->caps;
    const char *known[CONFIG_CLASSES_MAX + POLICY_CLASSES_MAX + 1] = {NULL}, *more;
    char none[NEAREST_NONE];
    size_t n = 0;

    for (size_t i = 0; i < caps->n_classes; i++)
        known[n++] = caps->cls[i].name;
    for (size_t i = 0; i < POLICY_CLASSES_MAX && (more = s->o.class_at(i, s->o.user));
         i++)
        known[n++] = more;
    for (size_t i = 0; i < n; i++)
        if (strcmp(known[i], name) == 0)
            return 0;
    return fail(err, -EINVAL, "class %s", nearest_none_of(name, known, none));
}

/* Applies the job's request, or reports why it cannot. */
static void apply(struct scheduler *s, const struct job_entry *job,
                  struct job_record *rec, bool is_new)
{
    uw_error why = {""};
    int r;

    if (is_unknown(rec) && !job->given && !rec->ask[0])
        return;
    if (scheduler_caps(rec)) {
        (void)search(s, job, rec, is_new, &why);
        r = scheduler_hold(s, job, rec, is_new, &why);
    } else {
        scheduler_hold_none(s, job->id);
        r = search(s, job, rec, is_new, &why);
    }
    if (r == 0 && rec->cls[0])
        r = check_class(s, rec->cls, &why);
    say_refused(s, job, rec, r, &why);
}

/* ---- jobs whose end is not reported ---- */

/* Slurm's number of a job of this kind; 0: it has none, or ends with its process. */
static uint64_t number_of(const struct job_entry *job)
{
    size_t n = strlen(ROSTER_SLURM);
    uint64_t number = 0;

    if (job->source != JOB_REGISTERED || job->pid ||
        strncmp(job->name, ROSTER_SLURM, n) != 0 ||
        parse_u64(job->name + n, &number, NULL) < 0)
        return 0;
    return number;
}

static uint64_t limit_of(const struct job_entry *job)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < job->n_labels; i++)
        if (strcmp(job->label[i].key, FACT_LABEL_LIMIT) == 0)
            (void)parse_duration(job->label[i].value, &ns, NULL);
    return ns;
}

static uint64_t now_of(const struct scheduler *s)
{
    return loop_now_ns(s->o.loop);
}

static void look_within(struct scheduler *s, uint64_t ns)
{
    uint64_t at_ns = now_of(s) + ns;

    if (s->look_ns && s->look_ns <= at_ns)
        return;
    s->look_ns = at_ns;
    loop_timer_set(s->timer, at_ns, 0);
}

/* Time until the next look; 0: there is no job to look at. */
static uint64_t look_interval(const struct scheduler *s)
{
    uint64_t ns = 0;

    for (size_t i = 0; i < job_records_count(s->o.records); i++) {
        const struct job_record *rec = job_records_at(s->o.records, i);
        const struct job_entry *job =
            rec->ended_ns ? NULL : roster_find(s->o.roster, rec->id);
        if (!rec->lost && !(job && number_of(job)))
            continue;
        if (job && !rec->life.had && now_of(s) - rec->life.began_ns < NEW_NS)
            return NEW_LOOK_NS;
        ns = LIFETIME_LOOK_NS;
    }
    return ns;
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct scheduler *s = user;
    (void)timer;
    (void)now_ns;

    s->look_ns = 0;
    uint64_t next_ns = look_interval(s);
    if (!next_ns)
        return 0;
    look_within(s, next_ns);
    if (s->steps)
        step_watch_look(s->steps);
    scheduler_look(s);
    return 0;
}

static void say(enum log_word event, const struct job_entry *job, const char *reason)
{
    log_event(LOG_LEVEL_NOTICE, event, "job=%" PRIu64 " source=%s name=%s reason=%s",
              job->id, names_word(NAMES_JOB_SOURCE, job->source),
              log_quote(job->name).text, log_quote(reason).text);
}

/* Ends a job.  Its entry is freed when this returns. */
static void lose(struct scheduler *s, const struct job_entry *job, struct job_record *rec,
                 enum lifetime_end end)
{
    static const char *const reasons[] = {
        [LIFETIME_GOES_ON] = "",
        [LIFETIME_IS_ALONE] = "no slurmstepd and no process for 60 s",
        [LIFETIME_IS_REPLACED] =
            "no slurmstepd and no process, and a later job has its GPU",
        [LIFETIME_IS_LATE] = "no slurmstepd started, and the time limit is over",
        [LIFETIME_IS_FOLLOWED] = "no slurmstepd started, and a later job has its GPU",
        [LIFETIME_IS_UNSEEN] = "no slurmstepd started within a day",
    };

    say(LOG_EVENT_JOB_OVER, job, reasons[end]);
    rec->lost = true;
    (void)roster_end(s->o.roster, job->id, NULL);
    job_records_trim(s->o.records);
}

/* jobs is NULL if they could not be read.  Slurm's numbers may begin again: a step of
 * another user belongs to another job.
 */
static const struct step_job *step_of(const struct step_jobs *jobs,
                                      const struct job_entry *job)
{
    uint64_t number = jobs ? number_of(job) : 0;
    const struct step_job *found = number ? step_jobs_find(jobs, number) : NULL;

    return found && step_job_may_be_of(found, job->uid) ? found : NULL;
}

/* The boards that Slurm assigns to several jobs at once: MPS, shards, slices. */
static uint64_t shared_now(const struct scheduler *s)
{
    uint64_t ret = shared_boards(&s->shared, now_of(s));

    for (size_t i = 0; i < scheduler_boards(s); i++)
        if (scheduler_board(s, i)->mig_enabled)
            ret |= 1ull << i;
    return ret;
}

static bool is_labelled(const struct job_entry *job)
{
    for (size_t i = 0; i < job->n_labels; i++)
        if (strcmp(job->label[i].key, FACT_LABEL_SHARED) == 0)
            return true;
    return false;
}

/* Notes the boards on which several jobs have steps, and labels these jobs, so that a
 * later daemon knows it, too.
 */
static void note_shared(struct scheduler *s, const struct step_jobs *jobs)
{
    static const struct label label = {FACT_LABEL_SHARED, "yes"};
    uint64_t had = 0;

    for (size_t i = 0; i < roster_count(s->o.roster); i++) {
        const struct job_entry *job = roster_at(s->o.roster, i);
        if (job->ended_ns || !step_of(jobs, job))
            continue;
        shared_seen(&s->shared, had & job->given, now_of(s));
        had |= job->given;
    }
    uint64_t shared = shared_boards(&s->shared, now_of(s));
    for (size_t i = 0; i < roster_count(s->o.roster); i++) {
        const struct job_entry *job = roster_at(s->o.roster, i);
        if (!job->ended_ns && (job->given & shared) && number_of(job) &&
            !is_labelled(job)) /* a job without room for it has no label */
            (void)roster_label(s->o.roster, job->id, &label, 1, NULL);
    }
}

/* Whether Slurm has assigned a board of the job to a job registered later. */
static bool is_followed(const struct scheduler *s, const struct job_entry *job,
                        const struct job_record *rec, const struct step_jobs *jobs)
{
    uint64_t alone = job->given & ~shared_now(s);

    for (size_t i = 0; i < roster_count(s->o.roster); i++) {
        const struct job_entry *other = roster_at(s->o.roster, i);
        const struct job_record *its = job_records_find(s->o.records, other->id);
        if (its && other->id != job->id && !other->ended_ns &&
            its->life.began_ns > rec->life.began_ns && (other->given & alone) &&
            step_of(jobs, other))
            return true;
    }
    return false;
}

static void look_at(struct scheduler *s, const struct job_entry *job,
                    struct job_record *rec, const struct step_jobs *jobs)
{
    const struct step_job *found = step_of(jobs, job);
    enum lifetime_seen seen = found || job->n_pids > 0 ? LIFETIME_SOMEBODY
                              : !jobs                  ? LIFETIME_UNKNOWN
                                                       : LIFETIME_NOBODY;
    bool noted = seen == LIFETIME_SOMEBODY;

    if (seen == LIFETIME_NOBODY && rec->confirmed_ns > now_of(s))
        seen = LIFETIME_UNKNOWN; /* its scheduler reports that it runs */
    bool known = !rec->life.had || roster_has_looked(s->o.roster);
    bool followed = !noted && known && is_followed(s, job, rec, jobs);
    if (!(job->given & ~shared_now(s))) /* as known by now */
        rec->life.followed_ns = 0;
    enum lifetime_end end = lifetime_look(&rec->life, seen, followed, now_of(s));
    if (end != LIFETIME_GOES_ON)
        lose(s, job, rec, end);
    else if (noted)
        roster_note(s->o.roster, job->id, found ? found->proc : NULL,
                    found ? found->n_procs : 0);
}

/* Restores a job that was taken to be over, with its id and its request. */
static int take_back(struct scheduler *s, struct job_record *rec,
                     const struct roster_register *reg, uw_error *err)
{
    struct roster_register as = *reg;
    uint64_t id = rec->id, ended_ns = rec->ended_ns;
    bool searched = rec->search, asked = rec->asked;

    as.id = id;
    as.began_utc_ns = rec->last.began_utc_ns;
    job_records_back(rec);
    s->o.forget(id, s->o.user); /* its search begins again */
    rec->search = rec->asked = false;
    int r = roster_begin(s->o.roster, &as, &id, err);
    if (r < 0) {
        rec->ended_ns = ended_ns;
        rec->lost = true;
        rec->search = searched;
        rec->asked = asked;
        return r;
    }
    say(LOG_EVENT_JOB_BACK, roster_find(s->o.roster, id), "");
    return 0;
}

/* found: the job's step; NULL: its scheduler reports that it runs. */
static void come_back(struct scheduler *s, struct job_record *rec,
                      const struct step_job *found)
{
    const struct job_entry *last = &rec->last;
    const struct roster_register reg = {.source = JOB_REGISTERED,
                                        .name = last->name,
                                        .uid = last->uid,
                                        .boards = last->given,
                                        .firm = last->firm,
                                        .label = last->label,
                                        .n_labels = last->n_labels,
                                        .proc = found ? found->proc : NULL,
                                        .n_procs = found ? found->n_procs : 0};
    uw_error err = {""};

    if (take_back(s, rec, &reg, &err) < 0) {
        if (strcmp(rec->refused, err.text) != 0) /* each look tries it */
            say(LOG_EVENT_JOB_OVER, last, err.text);
        (void)snprintf(rec->refused, sizeof rec->refused, "%s", err.text);
        return;
    }
    rec->refused[0] = '\0';
    const struct job_entry *job = roster_find(s->o.roster, rec->id);
    rec->life =
        (struct lifetime){.began_ns = now_of(s), .limit_ns = limit_of(job), .had = true};
    apply(s, job, rec, false);
    s->o.changed(job, s->o.user);
}

static void on_steps(int r, const struct step_jobs *jobs, void *user)
{
    struct scheduler *s = user;

    jobs = r < 0 ? NULL : jobs;
    note_shared(s, jobs);
    for (size_t i = job_records_count(s->o.records); i-- > 0;) {
        struct job_record *rec = job_records_at(s->o.records, i);
        const struct job_entry *job =
            rec->ended_ns ? NULL : roster_find(s->o.roster, rec->id);
        const struct step_job *found =
            rec->lost && !job ? step_of(jobs, &rec->last) : NULL;
        if (job && number_of(job))
            look_at(s, job, rec, jobs);
        else if (found && found->n_procs > 0 &&
                 !roster_named(s->o.roster, rec->last.name))
            come_back(s, rec, found);
    }
}

/* ---- requests ---- */

/* Labels that rules and the lifetime read, in place of the client's. */
static int add_labels(struct roster_register *reg, const struct scheduler_ask *ask,
                      struct label label[LABELS_MAX], uw_error *err)
{
    const char *const keys[] = {FACT_LABEL_LIMIT, FACT_LABEL_CLASS};
    char values[][LABEL_VALUE] = {"", ""};
    size_t n = 0;

    if (ask->limit_ns)
        (void)snprintf(values[0], LABEL_VALUE, "%.15g s", s_of_ns(ask->limit_ns));
    (void)snprintf(values[1], LABEL_VALUE, "%s", ask->cls ? ask->cls : "");
    for (size_t i = 0; i < reg->n_labels; i++)
        if (strcmp(reg->label[i].key, keys[0]) != 0 &&
            strcmp(reg->label[i].key, keys[1]) != 0)
            label[n++] = reg->label[i];
    for (size_t k = 0; k < n_elements(keys); k++) {
        if (!values[k][0])
            continue;
        if (n == LABELS_MAX)
            return fail(err, -EINVAL,
                        "'labels' has %zu entries, and time_limit and class are two",
                        reg->n_labels);
        (void)snprintf(label[n].key, LABEL_KEY, "%s", keys[k]);
        (void)snprintf(label[n++].value, LABEL_VALUE, "%.63s", values[k]);
    }
    reg->label = label;
    reg->n_labels = n;
    return 0;
}

/* The end of a lost job was reported: it does not come back. */
static void forget_lost(struct scheduler *s, struct job_record *rec)
{
    rec->lost = false;
    s->o.changed(&rec->last, s->o.user);
}

/* The running job of this name and user; a job of another user had an older number. */
static uint64_t running(struct scheduler *s, const struct roster_register *reg)
{
    uint64_t id = roster_named(s->o.roster, reg->name);
    const struct job_entry *job = id ? roster_find(s->o.roster, id) : NULL;

    if (job && job->uid != reg->uid) {
        (void)roster_end(s->o.roster, id, NULL);
        return 0;
    }
    return id;
}

/* The job of this name and user that was taken to be over; NULL: none.  A job of another
 * user had an older number.
 */
static struct job_record *lost(struct scheduler *s, const struct roster_register *reg)
{
    struct job_record *ret = NULL;

    for (size_t i = 0; i < job_records_count(s->o.records); i++) {
        struct job_record *rec = job_records_at(s->o.records, i);
        if (!rec->lost || strcmp(rec->last.name, reg->name) != 0)
            continue;
        if (rec->last.uid == reg->uid)
            ret = rec;
        else
            forget_lost(s, rec);
    }
    return ret;
}

/* 0, or 1: it existed. */
static int begin_or_renew(struct scheduler *s, const struct roster_register *reg,
                          uint64_t *ret_id, uw_error *err)
{
    uint64_t id = running(s, reg);
    struct job_record *old = id ? NULL : lost(s, reg);
    int r;

    *ret_id = id ? id : old ? old->id : 0;
    if (id)
        r = roster_renew(s->o.roster, id, reg, err);
    else if (old)
        r = take_back(s, old, reg, err);
    else
        r = roster_begin(s->o.roster, reg, ret_id, err);
    if (r < 0 || job_records_find(s->o.records, *ret_id))
        return r < 0 ? r : id || old;
    (void)roster_end(s->o.roster, *ret_id, NULL);
    return fail(err, -E2BIG, "%d jobs exist already, or memory is short", ROSTER_MAX);
}

int scheduler_put(struct scheduler *s, const struct scheduler_ask *ask, uint64_t *ret_id,
                  uw_error *err)
{
    struct label label[LABELS_MAX];
    struct roster_register reg = ask->reg;
    uw_error why = {""};
    int r = find_boards(s, ask, &reg.boards, err);

    if (r == 0)
        r = add_labels(&reg, ask, label, err);
    if (r < 0)
        return r;
    reg.source = JOB_REGISTERED;
    reg.firm = true;
    int was = begin_or_renew(s, &reg, ret_id, err);
    if (was < 0)
        return was;
    struct job_record *rec = job_records_find(s->o.records, *ret_id);
    const struct job_entry *job = roster_find(s->o.roster, *ret_id);
    bool is_new = strcmp(rec->ask, ask->ask) != 0;
    rec->admin = true;
    rec->life = (struct lifetime){.began_ns = now_of(s), .limit_ns = ask->limit_ns};
    look_within(s, NEW_LOOK_NS);
    (void)snprintf(rec->ask, sizeof rec->ask, "%s", ask->ask);
    (void)snprintf(rec->cls, sizeof rec->cls, "%s", ask->cls ? ask->cls : "");
    if (ask->unknown) {
        scheduler_hold_none(s, job->id);
        (void)fail(&why, -ENODEV, JOB_UNKNOWN_GPUS "%s", ask->unknown);
        say_refused(s, job, rec, -ENODEV, &why);
    } else {
        if (is_unknown(rec)) /* they are known now */
            rec->refused[0] = '\0';
        apply(s, job, rec, is_new);
    }
    s->o.changed(job, s->o.user);
    return was;
}

static bool is_of(const struct scheduler_facts *facts, const struct job_entry *job)
{
    return !facts->has_uid || facts->uid == job->uid;
}

/* The running job of this name; 0: none, or another user's.  A job that was taken to be
 * over comes back if its scheduler reports that it runs.
 */
static uint64_t confirmed(struct scheduler *s, const char *name,
                          const struct scheduler_facts *facts)
{
    uint64_t id = roster_named(s->o.roster, name);

    for (size_t i = 0; facts->for_ns > 0 && !id && i < job_records_count(s->o.records);
         i++) {
        struct job_record *rec = job_records_at(s->o.records, i);
        if (!rec->lost || strcmp(rec->last.name, name) != 0 || !is_of(facts, &rec->last))
            continue;
        come_back(s, rec, NULL);
        id = roster_named(s->o.roster, name);
    }
    return id && is_of(facts, roster_find(s->o.roster, id)) ? id : 0;
}

int scheduler_amend(struct scheduler *s, const char *name,
                    const struct scheduler_facts *facts, uw_error *err)
{
    struct label label[LABELS_MAX];
    struct roster_register reg = {.label = facts->label, .n_labels = facts->n_labels};
    uint64_t id = confirmed(s, name, facts);
    struct job_record *rec = id ? job_records_find(s->o.records, id) : NULL;

    if (!rec)
        return fail(err, -ENOENT, "job %.40s does not run here", name);
    struct scheduler_ask limit = {.limit_ns = facts->limit_ns};
    int r = add_labels(&reg, &limit, label, err);
    if (r == 0)
        r = roster_label(s->o.roster, id, reg.label, reg.n_labels, err);
    if (r < 0)
        return r;
    rec->life.limit_ns = limit_of(roster_find(s->o.roster, id));
    if (facts->for_ns)
        rec->confirmed_ns = loop_now_ns(s->o.loop) + facts->for_ns;
    if (r == 0)
        s->o.changed(roster_find(s->o.roster, id), s->o.user);
    return 0;
}

void scheduler_end(struct scheduler *s, const char *name)
{
    uint64_t id = roster_named(s->o.roster, name);

    if (id)
        (void)roster_end(s->o.roster, id, NULL);
    for (size_t i = 0; i < job_records_count(s->o.records); i++) {
        struct job_record *rec = job_records_at(s->o.records, i);
        if (rec->lost && strcmp(rec->last.name, name) == 0)
            forget_lost(s, rec);
    }
}

/* ---- a job goes on, or its surroundings change ---- */

/* Restores an earlier daemon's knowledge of the job's boards. */
static void open_shared(struct scheduler *s, const struct job_entry *job)
{
    if (is_labelled(job))
        shared_seen(&s->shared, job->given, now_of(s));
}

/* Restores the lost jobs of an earlier daemon. */
static void open_lost(struct scheduler *s)
{
    for (size_t i = 0; i < job_records_count(s->o.records); i++) {
        struct job_record *rec = job_records_at(s->o.records, i);
        if (!rec->lost)
            continue;
        rec->life = (struct lifetime){.began_ns = rec->last.began_ns,
                                      .limit_ns = limit_of(&rec->last),
                                      .had = true};
        open_shared(s, &rec->last);
        look_within(s, LIFETIME_LOOK_NS);
    }
}

void scheduler_open(struct scheduler *s)
{
    s->open = true;
    open_lost(s);
    for (size_t i = 0; i < roster_count(s->o.roster); i++) {
        const struct job_entry *job = roster_at(s->o.roster, i);
        struct job_record *rec = job_records_find(s->o.records, job->id);
        if (!rec || !number_of(job))
            continue;
        rec->life = (struct lifetime){.began_ns = job->began_ns,
                                      .limit_ns = limit_of(job),
                                      .had = job->n_procs > 0};
        open_shared(s, job);
        look_within(s, LIFETIME_LOOK_NS);
        rec->again = rec->search && !rec->asked;
        apply(s, job, rec, false);
    }
}

void scheduler_hurry(struct scheduler *s, const struct job_entry *job)
{
    for (size_t i = 0; i < roster_count(s->o.roster) && !job->within; i++) {
        const struct job_entry *other = roster_at(s->o.roster, i);
        if (number_of(other) && other->uid == job->uid && !other->ended_ns) {
            look_within(s, HURRY_NS);
            return;
        }
    }
}

void scheduler_look(struct scheduler *s)
{
    for (size_t i = 0; s->open && i < roster_count(s->o.roster); i++) {
        const struct job_entry *job = roster_at(s->o.roster, i);
        struct job_record *rec = job_records_find(s->o.records, job->id);
        if (rec && rec->ask[0] && !job->ended_ns)
            apply(s, job, rec, false);
    }
}

void scheduler_withdrawn(struct scheduler *s, uint64_t id, const char *by)
{
    struct job_record *rec = job_records_find(s->o.records, id);
    const struct job_entry *job = roster_find(s->o.roster, id);

    if (!rec || !job)
        return;
    rec->ask[0] = '\0';
    (void)snprintf(rec->refused, sizeof rec->refused, "cap: withdrawn by %.100s", by);
    s->o.changed(job, s->o.user);
}

int scheduler_new(const struct scheduler_opts *opts, struct scheduler **ret,
                  uw_error *err)
{
    auto_(scheduler_free) struct scheduler *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "out of memory for the scheduler's jobs");
    s->o = *opts;
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, on_timer, s, &s->timer, err);
    if (r == 0 && !opts->blind)
        r = step_watch_new(opts->loop, on_steps, s, &s->steps, err);
    if (r < 0)
        return r;
    *ret = take(s);
    return 0;
}

void scheduler_free(struct scheduler *s)
{
    if (!s)
        return;
    step_watch_free(s->steps);
    loop_timer_free(s->timer);
    free(s);
}
