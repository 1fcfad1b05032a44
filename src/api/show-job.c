/* Jobs as JSON; names, labels and processes only for clients with the right to them. */
#include <math.h>
#include <string.h>

#include "api/show.h"
#include "base/names.h"
#include "base/units.h"
#include "node/policy-facts.h"
#include "tuner/tuner-json.h"

static void saved(struct json_out *o, const struct searches_view *s)
{
    if (!s->saved.known) {
        json_out_null(o, "saved");
        return;
    }
    json_out_object(o, "saved");
    json_out_double(o, "fraction", s->saved.fraction);
    json_out_double(o, "fraction_half", s->saved.half);
    json_out_double(o, "energy_j", s->saved.energy_j);
    json_out_double(o, "energy_half_j", s->saved.half_j);
    json_out_double(o, "slowdown", s->saved.slowdown);
    json_out_double(o, "slowdown_half", s->saved.slowdown_half);
    json_out_known_double(o, "held_slowdown", s->saved.held_slowdown > 0,
                          s->saved.held_slowdown);
    json_out_end(o);
}

/* The values of the report at a job's end. */
static void details(struct json_out *o, const struct node_view *v,
                    const struct tuner_report *r)
{
    double ended_s = r->ended_ns ? s_between(r->ended_ns, v->now_ns) : 0;

    json_out_object(o, "details");
    json_out_int(o, "original_mw", r->original_mw);
    show_mw(o, "reference_mw", r->reference_mw);
    show_mw(o, "lifted_mw", r->lifted_mw);
    show_mw(o, "held_mw", r->holding ? r->held_mw : 0);
    json_out_bool(o, "reached", r->holding && r->reached);
    show_mw(o, "lowest_mw", r->holding ? r->lowest_mw : 0);
    json_out_text(o, "why", r->why);
    tuner_progress_json(r, o);
    tuner_caps_json(r, o);
    json_out_double(o, "steps", r->saved.steps);
    json_out_double(o, "search_s", r->saved.search_s);
    json_out_double(o, "search_steps", r->saved.search_steps);
    json_out_double(o, "ruled_s", r->ruled_s);
    json_out_double(o, "stopped_s", r->stopped_s);
    json_out_double(o, "waited_s", r->waited_s);
    json_out_double(o, "back_s", r->saved.back_s);
    json_out_known_double(o, "cost_j", r->saved.cost_known, r->saved.cost_j);
    json_out_known_double(o, "cost_s", r->saved.cost_known, r->saved.cost_s);
    json_out_int(o, "pairs", r->saved.pairs);
    json_out_double(o, "visits_s", r->saved.visits_s);
    json_out_known_double(o, "visits_cost_j", r->saved.cost_known,
                          r->saved.visits_cost_j);
    json_out_known_double(o, "model_saving", r->modelled, r->model_saving);
    json_out_known_double(o, "model_slowdown", r->modelled, r->model_slowdown);
    json_out_known_int(o, "earlier_job", r->earlier_job, (int64_t)r->earlier_job);
    json_out_bool(o, "earlier_denied", r->memory == SEARCH_MEMORY_DENIED);
    json_out_int(o, "changes", r->changes);
    json_out_int(o, "stalls", r->stalls);
    json_out_text(o, "ended", r->ended[0] ? r->ended : NULL);
    json_out_known_double(o, "ended_s", r->ended_ns != 0, ended_s);
    json_out_text(o, "not_restored", r->restore[0] ? r->restore : NULL);
    json_out_bool(o, "unconfirmed", r->unsure);
    json_out_end(o);
}

/* The lock of the SM clock in force, in place of the cap or in addition to it. */
static void lock(struct json_out *o, const struct tuner_report *r)
{
    if (!r || !r->lock_mhz) {
        json_out_null(o, "lock");
        return;
    }
    json_out_object(o, "lock");
    json_out_int(o, "clock_mhz", r->lock_mhz);
    json_out_int(o, "cap_mw", r->lock_mw);
    json_out_end(o);
}

static void search(struct json_out *o, const struct node_view *v,
                   const struct searches_view *s, bool whole)
{
    if (!s->on) {
        json_out_null(o, "search");
        return;
    }
    json_out_object(o, "search");
    json_out_text(o, "goal", s->goal[0] ? s->goal : NULL);
    json_out_text(o, "state", s->state);
    json_out_text(o, "status", names_word_or_null(NAMES_SEARCH_STATUS, s->status));
    show_released(o, v, s);
    show_mw(o, "cap_mw", s->cap_mw);
    lock(o, s->report);
    json_out_int(o, "caps", s->caps);
    json_out_int(o, "windows", s->windows);
    json_out_bool(o, "page", s->page);
    json_out_text(o, "launches", s->launches[0] ? s->launches : NULL);
    saved(o, s);
    if (whole && s->report)
        details(o, v, s->report);
    json_out_end(o);
}

static void capped_by(struct json_out *o, const struct job_capped *capped)
{
    json_out_array(o, "capped_by");
    for (size_t i = 0; capped && i < capped->n; i++) {
        json_out_object(o, NULL);
        json_out_text(o, "who", capped->by[i].who);
        json_out_int(o, "lowest_mw", capped->by[i].lowest_mw);
        json_out_counter(o, "time_s", capped->by[i].time_s);
        json_out_end(o);
    }
    json_out_end(o);
}

static void notes(struct json_out *o, const struct job_notes *notes)
{
    uint64_t n = notes ? notes->n : 0;

    json_out_array(o, "notes");
    for (uint64_t i = n > JOB_NOTES_MAX ? n - JOB_NOTES_MAX + 1 : 1; i <= n; i++) {
        json_out_object(o, NULL);
        json_out_int(o, "number", (int64_t)i);
        json_out_text(o, "text", notes->text[i % JOB_NOTES_MAX]);
        json_out_end(o);
    }
    json_out_end(o);
}

static void labels(struct json_out *o, const struct job_entry *e)
{
    json_out_object(o, "labels");
    for (size_t i = 0; i < e->n_labels; i++)
        json_out_text(o, e->label[i].key, e->label[i].value);
    json_out_end(o);
}

/* Processes that began the job together. */
static void members(struct json_out *o, const struct job_entry *e, bool mine)
{
    json_out_array(o, "members");
    for (size_t i = 0; i < e->n_procs && mine && e->source == JOB_RUN; i++)
        json_out_int(o, NULL, e->proc[i].pid);
    json_out_end(o);
}

static void whose(struct json_out *o, const struct job_entry *e,
                  const struct node_who *who)
{
    bool mine = show_mine(who, e);

    json_out_text(o, "source", names_word(NAMES_JOB_SOURCE, e->source));
    json_out_text(o, "user", e->user[0] ? e->user : NULL);
    json_out_int(o, "uid", e->uid);
    json_out_bool(o, "yours", who->uid == e->uid);
    json_out_text(o, "name", mine ? e->name : NULL);
    if (mine)
        labels(o, e);
    else
        json_out_null(o, "labels");
    json_out_known_int(o, "pid", mine && e->pid > 0, e->pid);
    members(o, e, mine);
}

/* The claim that holds a board of the job below the cap of its scheduler. */
static void lower(struct json_out *o, const struct view_job *j)
{
    if (!j->lower_mw) {
        json_out_null(o, "lower");
        return;
    }
    json_out_object(o, "lower");
    show_mw(o, "cap_mw", j->lower_mw);
    json_out_text(o, "who", j->lower_who);
    json_out_end(o);
}

/* The request to the job's scheduler; it contains names that the user chose. */
static void asked(struct json_out *o, const struct view_job *j,
                  const struct node_who *who)
{
    bool mine = show_mine(who, j->job);
    uint64_t limit_ns = 0;

    for (size_t i = 0; i < j->job->n_labels; i++)
        if (strcmp(j->job->label[i].key, FACT_LABEL_LIMIT) == 0)
            (void)parse_duration(j->job->label[i].value, &limit_ns, NULL);
    json_out_text(o, "asked", mine ? j->ask : NULL);
    json_out_text(o, "refused", mine ? j->refused : NULL);
    json_out_bool(o, "cap_held", j->cap_held);
    lower(o, j);
    json_out_known_double(o, "time_limit_s", limit_ns > 0, s_of_ns(limit_ns));
}

static void phase(struct json_out *o, const struct node_view *v,
                  const struct view_phase *p)
{
    uint64_t ago_ns =
        p->since_ns && p->since_ns < v->now_ns ? v->now_ns - p->since_ns : 0;

    json_out_text(o, "phase", names_word(NAMES_JOB_PHASE, p->phase));
    json_out_text(o, "phase_by", names_word_or_null(NAMES_PHASE_BY, p->by));
    if (p->since_ns)
        show_utc(o, "phase_since_utc", v->utc_ns - (int64_t)ago_ns);
    else
        json_out_null(o, "phase_since_utc");
    json_out_known_double(o, "phase_s", p->since_ns, s_of_ns(ago_ns));
    show_value(o, "phase_confidence", &p->confidence);
}

static void by_gpu(struct json_out *o, const struct node_view *v,
                   const struct view_job *j)
{
    char why[128];

    json_out_array(o, "energy_by_gpu");
    for (size_t i = 0; i < j->n_parts; i++) {
        const struct attribution_part *p = &j->part[i];
        const struct gpu_info *info =
            p->board < v->n_boards ? v->board[p->board].info : NULL;
        json_out_object(o, NULL);
        json_out_known_int(o, "gpu", info, info ? info->index : 0);
        json_out_text(o, "uuid", info ? info->uuid : NULL);
        json_out_text(o, "name", info ? info->name : NULL);
        json_out_counter(o, "energy_j", p->energy_j);
        json_out_double(o, "half_j", half_sum_j(&p->half));
        json_out_known_double(o, "power_w", p->time_s > 0, p->energy_j / p->time_s);
        json_out_text(o, "method", names_word(NAMES_METER_METHOD, p->method));
        json_out_text(o, "why", meter_why_text(p->why, why, sizeof why));
        json_out_end(o);
    }
    json_out_end(o);
}

/* Who keeps the job's cap from a board: another user or, where the job is capped, another
 * Underwatt.
 */
static void held(struct json_out *o, const struct node_view *v, const struct view_job *j)
{
    const struct job_entry *e = j->job;
    const struct view_board *by = NULL;
    char text[200];

    for (size_t i = 0; i < v->n_boards && j->search.on && !e->ended_ns && !by; i++)
        if ((e->boards >> i & 1) && v->board[i].cap.holder[0])
            by = &v->board[i];
    if (by)
        (void)snprintf(text, sizeof text, "GPU %u: %s", by->info->index, by->cap.holder);
    json_out_text(o, "held", e->held[0] ? e->held : by ? text : NULL);
    json_out_known_int(o, "taken_by", !e->held[0] && by && by->cap.taken_by > 0,
                       by ? by->cap.taken_by : 0);
}

static void put_job(struct json_out *o, const struct node_view *v,
                    const struct view_job *j, const struct node_who *who, bool whole)
{
    const struct job_entry *e = j->job;
    struct maybe power = show_power(v, e->ended_ns ? 0 : e->boards);

    json_out_object(o, NULL);
    json_out_int(o, "id", (int64_t)e->id);
    whose(o, e, who);
    show_boards(o, "gpus", v, e->boards);
    show_boards(o, "gpus_so_far", v, e->so_far);
    show_value(o, "power_w", &power);
    phase(o, v, &j->phase);
    json_out_bool(o, "running", e->ended_ns == 0);
    json_out_int(o, "processes", e->n_pids);
    json_out_bool(o, "foreign", e->foreign);
    held(o, v, j);
    json_out_known_int(o, "within", e->within, (int64_t)e->within);
    json_out_known_int(o, "goal_of", j->goal_of, (int64_t)j->goal_of);
    show_utc(o, "began_utc", e->began_utc_ns);
    if (e->ended_ns)
        show_utc(o, "ended_utc", e->ended_utc_ns);
    else
        json_out_null(o, "ended_utc");
    json_out_counter(o, "time_s", j->time_s);
    json_out_counter(o, "energy_j", j->energy_j);
    show_value(o, "half_j", &j->half_j);
    json_out_counter(o, "booked_s", j->booked_s);
    if (whole)
        by_gpu(o, v, j);
    json_out_bool(o, "settled", j->settled);
    json_out_int(o, "steps", (int64_t)j->steps);
    json_out_known_double(o, "step_s", j->step_s > 0, j->step_s);
    asked(o, j, who);
    capped_by(o, j->capped);
    if (whole)
        notes(o, j->notes);
    search(o, v, &j->search, whole);
    json_out_end(o);
}

void show_job(struct json_out *o, const struct node_view *v, const struct view_job *j,
              const struct node_who *who)
{
    put_job(o, v, j, who, false);
}

void show_whole_job(struct json_out *o, const struct node_view *v,
                    const struct view_job *j, const struct node_who *who)
{
    put_job(o, v, j, who, true);
}
