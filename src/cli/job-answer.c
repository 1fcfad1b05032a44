#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "cli/job-node.h"
#include "cli/job-report.h"
#include "cli/take.h"
#include "tuner/tuner-json.h"

static double or_0(double v)
{
    return isfinite(v) ? v : 0;
}

static uint32_t mw_of(const struct json_value *v, const char *key)
{
    return mw_of_w(or_0(take_mw(v, key)));
}

static double weight(double rse)
{
    return rse > 0 ? 1 / (rse * rse) : 1;
}

/* A mean with the same values and errors as the daemon's. */
static struct savings_mean mean_of(const struct json_value *v)
{
    double t = or_0(take_number(v, "step_s")), e = or_0(take_number(v, "step_j"));
    double wt = weight(or_0(take_number(v, "step_s_rse")));
    double we = weight(or_0(take_number(v, "step_j_rse")));

    return (struct savings_mean){
        .windows = (unsigned)take_u64(v, "windows"),
        .sum_wt = wt,
        .sum_t = wt * t,
        .sum_t2 = wt * t * t,
        .sum_we = we,
        .sum_e = we * e,
        .sum_e2 = we * e * e,
    };
}

static void take_saved(const struct json_value *search, const struct json_value *details,
                       struct savings_saved *ret)
{
    const struct json_value *s = json_get(search, "saved");
    double cost_j = take_number(details, "cost_j");

    *ret = (struct savings_saved){
        .known = isfinite(take_number(s, "fraction")),
        .steps = or_0(take_number(details, "steps")),
        .energy_j = or_0(take_number(s, "energy_j")),
        .half_j = or_0(take_number(s, "energy_half_j")),
        .fraction = or_0(take_number(s, "fraction")),
        .half = or_0(take_number(s, "fraction_half")),
        .slowdown = or_0(take_number(s, "slowdown")),
        .slowdown_half = or_0(take_number(s, "slowdown_half")),
        .held_slowdown = or_0(take_number(s, "held_slowdown")),
        .cost_known = isfinite(cost_j),
        .search_s = or_0(take_number(details, "search_s")),
        .search_steps = or_0(take_number(details, "search_steps")),
        .cost_j = or_0(cost_j),
        .cost_s = or_0(take_number(details, "cost_s")),
        .pairs = (unsigned)take_u64(details, "pairs"),
        .visits_s = or_0(take_number(details, "visits_s")),
        .visits_cost_j = or_0(take_number(details, "visits_cost_j")),
        .back_s = or_0(take_number(details, "back_s")),
    };
}

static void take_progress(const struct json_value *d, struct tuner_report *r)
{
    int by = names_number(NAMES_PROGRESS, take_text(d, "progress"));

    if (by >= 0)
        r->by = (enum tuner_by)by;
    r->period_s = or_0(take_number(d, "period_s"));
    r->confidence = or_0(take_number(d, "period_confidence"));
    take_copy(d, "period_unknown", r->unknown, sizeof r->unknown);
    r->busy = take_number(d, "busy");
}

static void take_report(const struct json_value *search, struct job_answer *a)
{
    const struct json_value *d = json_get(search, "details");
    const struct json_value *caps = json_get(d, "caps");
    struct tuner_report *r = &a->report;

    r->cap = a->cap;
    r->original_mw = mw_of(d, "original_mw");
    r->reference_mw = mw_of(d, "reference_mw");
    r->lifted_mw = mw_of(d, "lifted_mw");
    r->held_mw = mw_of(d, "held_mw");
    r->holding = r->held_mw > 0;
    r->reached = !json_get(d, "reached") || take_bool(d, "reached"); /* older daemons */
    r->lowest_mw = mw_of(d, "lowest_mw");
    r->lock_mhz = (uint32_t)take_u64(json_get(search, "lock"), "clock_mhz");
    r->lock_mw = mw_of(json_get(search, "lock"), "cap_mw");
    r->windows = (unsigned)take_u64(search, "windows");
    r->changes = (unsigned)take_u64(d, "changes");
    r->stalls = (unsigned)take_u64(d, "stalls");
    r->stopped_s = or_0(take_number(d, "stopped_s"));
    r->waited_s = or_0(take_number(d, "waited_s"));
    r->modelled = isfinite(take_number(d, "model_saving"));
    r->model_saving = or_0(take_number(d, "model_saving"));
    r->model_slowdown = or_0(take_number(d, "model_slowdown"));
    r->earlier_job = take_u64(d, "earlier_job");
    r->memory = !r->earlier_job                  ? SEARCH_MEMORY_NONE
                : take_bool(d, "earlier_denied") ? SEARCH_MEMORY_DENIED
                                                 : SEARCH_MEMORY_KEPT;
    take_copy(d, "why", r->why, sizeof r->why);
    take_progress(d, r);
    take_copy(d, "ended", r->ended, sizeof r->ended);
    take_copy(d, "not_restored", r->restore, sizeof r->restore);
    r->restored = !r->restore[0];
    for (size_t i = 0; i < json_count(caps) && r->n_caps < TUNER_CAPS_MAX; i++) {
        const struct json_value *c = json_at(caps, i);
        a->cap[r->n_caps] = (struct tuner_cap){.cap_mw = mw_of(c, "cap_mw"),
                                               .mean = mean_of(c),
                                               .value.v = take_number(c, "value"),
                                               .value.rse = take_number(c, "value_rse")};
        if (job_report_is_reference(r, a->cap[r->n_caps].cap_mw))
            a->account.reference = a->cap[r->n_caps].mean;
        r->n_caps++;
    }
    r->account = &a->account;
    r->n_regimes = 1;
    take_saved(search, d, &r->saved);
}

static void take_capped(const struct json_value *job, struct job_capped *ret)
{
    const struct json_value *list = json_get(job, "capped_by");

    for (size_t i = 0; i < json_count(list) && ret->n < JOB_CAPPED_MAX; i++) {
        const struct json_value *v = json_at(list, i);
        struct job_capped_by *by = &ret->by[ret->n++];
        take_copy(v, "who", by->who, sizeof by->who);
        by->lowest_mw = mw_of(v, "lowest_mw");
        by->time_s = or_0(take_number(v, "time_s"));
    }
}

void job_answer_energy(const struct json_value *v, struct meter_result *ret)
{
    char why[160], *rest = why;
    int method = names_number(NAMES_METER_METHOD, take_text(v, "method"));

    *ret = (struct meter_result){.energy_j = take_number(v, "energy_j"),
                                 .half_j = take_number(v, "half_j"),
                                 .power_w = take_number(v, "power_w"),
                                 .method =
                                     method < 0 ? METER_NONE : (enum meter_method)method};
    take_copy(v, "why", why, sizeof why);
    for (char *word; (word = strsep(&rest, ", "));) {
        int n = names_number(NAMES_METER_WHY, word);
        if (n >= 0)
            ret->why |= 1u << n;
    }
}

static void take_energy_by_gpu(const struct json_value *job, struct job_answer *a)
{
    const struct json_value *list = json_get(job, "energy_by_gpu");
    struct job_result *r = &a->result;

    r->board = a->board;
    for (size_t i = 0; i < json_count(list) && r->n < n_elements(a->board); i++) {
        const struct json_value *v = json_at(list, i);
        struct gpu_info *info = &a->info[r->n];
        uint64_t index = 0;
        bool there = json_as_u64(json_get(v, "gpu"), &index);
        info->index = (unsigned)index;
        take_copy(v, "uuid", info->uuid, sizeof info->uuid);
        take_copy(v, "name", info->name, sizeof info->name);
        struct job_board *b = &a->board[r->n++];
        *b = (struct job_board){.info = info, .used = true, .away = !there};
        job_answer_energy(v, &b->energy);
        r->why |= b->energy.why;
    }
    r->n_used = r->n;
}

void job_answer(const struct json *doc, struct job_answer *ret)
{
    const struct json_value *job = doc ? json_root(doc) : NULL;
    const struct json_value *search = json_get(job, "search");
    struct job_result *r = &ret->result;

    *ret = (struct job_answer){0};
    if (!job) {
        (void)fail(&r->error, 0, "the daemon did not report it");
        return;
    }
    r->time_s = or_0(take_number(job, "time_s"));
    r->energy_j = or_0(take_number(job, "energy_j"));
    double booked_s = or_0(take_number(job, "booked_s")); /* of that energy */
    r->half_j = or_0(take_number(job, "half_j"));
    r->measured = take_bool(job, "settled") && r->energy_j > 0 && r->time_s > 0;
    if (r->measured)
        r->power_w = r->energy_j / (booked_s > 0 ? booked_s : r->time_s);
    else if (!take_bool(job, "settled"))
        (void)fail(&r->error, 0,
                   "its last seconds are not booked yet: see `underwatt report --job "
                   "%" PRIu64 "` later",
                   take_u64(job, "id"));
    else
        (void)fail(&r->error, 0, "no energy was attributed to the job");
    r->steps = take_u64(job, "steps");
    take_capped(job, &r->capped);
    take_energy_by_gpu(job, ret);
    if (json_get(search, "details")) {
        take_report(search, ret);
        r->tuner = &ret->report;
        r->silent = r->steps == 0;
    }
    if (take_bool(job, "settled") && !r->measured && ret->report.original_mw == 0 &&
        json_count(json_get(job, "gpus")) == 0) {
        (void)fail(&r->error, 0,
                   "CMD was seen on no GPU: nothing to measure, nothing to cap");
        r->tuner = NULL;
    }
    take_copy(search, "launches", r->launches, sizeof r->launches);
}

size_t job_notes_known(const struct json_value *notes, uint64_t number, const char *text)
{
    size_t known = 0;

    for (size_t i = 0; i < json_count(notes); i++) {
        const struct json_value *note = json_at(notes, i);
        if (take_u64(note, "number") == number &&
            strncmp(take_text(note, "text"), text, JOB_NOTE_ROOM - 1) == 0)
            known = i + 1;
    }
    return known;
}
