/* Boards and claims as JSON. */
#include <math.h>
#include <stdio.h>

#include "api/show.h"
#include "base/names.h"
#include "base/units.h"
#include "core/policy/rule.h"

/* The range that the actuator permits, if it is known. */
static void settable(struct json_out *o, const struct caps_view *c)
{
    show_mw(o, "lowest_mw", c->range.min_mw);
    show_mw(o, "highest_mw", c->range.max_mw);
}

static void limits(struct json_out *o, const struct caps_view *c)
{
    show_mw(o, "min_mw", c->limits.min_mw);
    show_mw(o, "max_mw", c->limits.max_mw);
    show_mw(o, "default_mw", c->limits.default_mw);
    show_mw(o, "original_mw", c->bounds.original_mw);
}

static void reasons(struct json_out *o, const struct view_board *b)
{
    bool known = b->last.has & GPU_HAS_REASONS;

    json_out_array(o, "reasons");
    for (unsigned i = 0; known && i < VIEW_REASONS; i++)
        if (b->last.reasons >> i & 1)
            json_out_text(o, NULL, names_word(NAMES_CLOCK_REASON, i));
    json_out_end(o);
    if (!known) {
        json_out_null(o, "throttle_s");
        return;
    }
    json_out_object(o, "throttle_s");
    for (unsigned i = 0; i < VIEW_REASONS; i++)
        json_out_counter(o, names_word(NAMES_CLOCK_REASON, i), b->throttle_s[i]);
    json_out_end(o);
}

/* Owner and reason of the claim that decided; null where none did. */
static void show_winner(struct json_out *o, const struct claims *claims, uint64_t id)
{
    const struct claim *c = claims && id ? claims_find(claims, id) : NULL;

    json_out_text(o, "claim_who", c ? c->who : NULL);
    json_out_text(o, "claim_why", c ? c->why : NULL);
}

static void cap(struct json_out *o, const struct node_view *v, const struct caps_view *c)
{
    char why[320];

    json_out_object(o, "cap");
    json_out_text(o, "state", names_word(NAMES_CAP_STATE, c->state));
    json_out_text(o, "text", c->text);
    show_since_boot(o, "released_utc", v, c->released_ns);
    json_out_known_int(o, "taken_by", c->taken_by > 0, c->taken_by);
    json_out_text(o, "holder", c->holder[0] ? c->holder : NULL);
    json_out_text(o, "by", names_word(NAMES_CAP_BY, caps_shown_by(c)));
    json_out_known_int(o, "claim", c->verdict.claim, (int64_t)c->verdict.claim);
    show_winner(o, c->claims, c->verdict.claim);
    show_mw(o, "target_mw", c->can_cap ? c->verdict.target_mw : 0);
    show_mw(o, "ramp_mw", c->can_cap ? c->ramp_mw : 0);
    json_out_bool(o, "ramping", c->ramping);
    json_out_known_double(o, "ramp_w_s", c->rate_mw_s > 0, c->rate_mw_s / 1000);
    json_out_text(o, "why", show_why(c, why, sizeof why));
    json_out_end(o);
}

static void readings(struct json_out *o, const struct view_board *b)
{
    uint32_t has = b->last.has;

    show_value(o, "power_w", &b->power_w);
    json_out_counter(o, "energy_j", b->energy_j);
    json_out_counter(o, "attributed_j", b->attributed_j);
    json_out_counter(o, "idle_j", b->idle_j);
    json_out_counter(o, "unattributed_j", b->unattributed_j);
    json_out_counter(o, "today_j", b->today_j);
    json_out_known_double(o, "temperature_c", has & GPU_HAS_TEMP, b->last.temp_c);
    json_out_known_double(o, "utilization", has & GPU_HAS_UTIL, b->last.util_gpu / 100.0);
    json_out_known_double(o, "memory_utilization", has & GPU_HAS_UTIL,
                          b->last.util_mem / 100.0);
    json_out_known_int(o, "memory_used_bytes", b->memory_bytes > 0,
                       (int64_t)b->memory_bytes);
    json_out_text(o, "use", names_word(NAMES_USE, b->use));
    json_out_known_double(o, "use_for_s", b->use != WASTE_WORKING, b->use_for_s);
    show_mw(o, "sm_mhz", has & GPU_HAS_CLOCKS ? b->last.sm_mhz : 0);
    show_mw(o, "memory_mhz", has & GPU_HAS_CLOCKS ? b->last.mem_mhz : 0);
    reasons(o, b);
}

void show_gpu(struct json_out *o, const struct node_view *v, size_t i)
{
    const struct view_board *b = &v->board[i];
    const struct gpu_info *info = b->info;

    json_out_object(o, NULL);
    json_out_int(o, "gpu", info->index);
    json_out_text(o, "uuid", info->uuid);
    json_out_text(o, "name", info->name);
    json_out_text(o, "pci_bus_id", info->pci_bus_id[0] ? info->pci_bus_id : NULL);
    json_out_known_int(o, "minor", info->has_minor, info->minor);
    json_out_bool(o, "simulated", info->simulated);
    json_out_bool(o, "mig", info->mig_enabled);
    if (info->has_persistence)
        json_out_bool(o, "persistence", info->persistence);
    else
        json_out_null(o, "persistence");
    json_out_bool(o, "can_cap", b->cap.can_cap);
    readings(o, b);
    json_out_object(o, "limits");
    limits(o, &b->cap);
    show_mw(o, "requested_mw",
            b->last.has & GPU_HAS_REQUESTED ? b->last.requested_mw : 0);
    show_mw(o, "enforced_mw", b->last.has & GPU_HAS_ENFORCED ? b->last.enforced_mw : 0);
    json_out_end(o);
    cap(o, v, &b->cap);
    json_out_int(o, "claims", b->cap.claims ? (int64_t)b->cap.claims->n : 0);
    json_out_array(o, "jobs");
    for (size_t k = 0; k < b->n_jobs; k++)
        json_out_int(o, NULL, (int64_t)b->job[k]);
    json_out_end(o);
    json_out_end(o);
}

static void cls(struct json_out *o, const struct caps_view *c)
{
    double default_w = w_of_mw(c->limits.default_mw);

    json_out_object(o, "class");
    json_out_double(o, "first", c->cls.first);
    json_out_double(o, "floor", c->cls.floor);
    json_out_double(o, "rate", c->cls.rate);
    json_out_known_double(o, "rate_w_s", default_w > 0, c->cls.rate * default_w);
    json_out_end(o);
}

/* null where the board's clocks cannot be locked. */
static void clock_lock(struct json_out *o, const struct caps_clock_view *k,
                       const struct claims *claims)
{
    char why[320];

    if (!k->can) {
        json_out_null(o, "clock");
        return;
    }
    json_out_object(o, "clock");
    json_out_bool(o, "on", k->on);
    json_out_text(o, "by", names_word(NAMES_CAP_BY, k->verdict.by));
    json_out_known_int(o, "claim", k->verdict.claim, (int64_t)k->verdict.claim);
    show_mw(o, "target_mhz", k->verdict.target_mhz);
    show_mw(o, "locked_mhz", k->locked_mhz);
    json_out_bool(o, "ramping", k->ramping);
    json_out_text(o, "why", show_clock_why(k, claims, why, sizeof why));
    json_out_text(o, "text", k->text);
    show_mw(o, "min_mhz", k->bounds.min_mhz);
    show_mw(o, "max_mhz", k->bounds.max_mhz);
    show_mw(o, "floor_mhz", k->bounds.floor_mhz);
    json_out_int(o, "writes", (int64_t)k->writes);
    json_out_int(o, "failures", (int64_t)k->failures);
    json_out_int(o, "disobeyed", (int64_t)k->disobeyed);
    json_out_end(o);
}

static bool has_phase_rules(const struct view_policy *p)
{
    for (size_t i = 0; i < p->n_rules; i++)
        if (p->rule[i].phase)
            return true;
    return false;
}

/* The search's state, and why rules of phases do not cap the job. */
static void job_state(struct json_out *o, const struct node_view *v,
                      const struct view_job *j)
{
    const struct view_phases *p = &j->phases;
    bool ruled = has_phase_rules(&v->policy);
    char text[320];

    if (ruled && p->costly)
        (void)snprintf(
            text, sizeof text,
            "%s; no phase caps: raises of the cap cost the job %.2g %% of its time",
            j->search.state, 100 * p->lost);
    else if (ruled && p->no_gain)
        (void)snprintf(text, sizeof text,
                       "%s; no phase caps: a static cap of %.0f W saves as much",
                       j->search.state, p->compared.static_w);
    else
        (void)snprintf(text, sizeof text, "%s", j->search.state);
    json_out_text(o, "state", j->search.on ? text : NULL);
}

/* The board's jobs and the state of their searches: explains why there may be no claim.
 */
static void jobs(struct json_out *o, const struct node_view *v,
                 const struct view_board *b)
{
    json_out_array(o, "jobs");
    for (size_t k = 0; k < v->n_jobs; k++) {
        const struct view_job *j = &v->job[k];
        bool here = false;
        for (size_t i = 0; i < b->n_jobs; i++)
            here |= b->job[i] == j->job->id;
        if (!here)
            continue;
        json_out_object(o, NULL);
        json_out_int(o, "id", (int64_t)j->job->id);
        json_out_text(o, "user", j->job->user[0] ? j->job->user : NULL);
        json_out_int(o, "uid", j->job->uid);
        json_out_text(o, "goal", j->search.goal[0] ? j->search.goal : NULL);
        job_state(o, v, j);
        json_out_text(o, "status",
                      names_word_or_null(NAMES_SEARCH_STATUS, j->search.status));
        show_released(o, v, &j->search);
        json_out_bool(o, "cap_held", j->cap_held);
        json_out_end(o);
    }
    json_out_end(o);
}

void show_explain(struct json_out *o, const struct node_view *v, size_t i)
{
    const struct view_board *b = &v->board[i];
    const struct caps_view *c = &b->cap;

    json_out_object(o, NULL);
    json_out_int(o, "gpu", b->info->index);
    json_out_text(o, "uuid", b->info->uuid);
    json_out_bool(o, "dry_run", c->dry_run);
    json_out_bool(o, "unrestored", c->unrestored);
    show_mw(o, "enforced_mw", c->enforced_mw);
    cap(o, v, c);
    show_mw(o, "most_mw", c->verdict.most_mw);
    json_out_bool(o, "at_once", c->verdict.at_once);
    show_mw(o, "floor_mw", c->bounds.floor_mw);
    json_out_bool(o, "original_known", c->original_known);
    json_out_object(o, "bounds");
    limits(o, c);
    settable(o, c);
    json_out_end(o);
    cls(o, c);
    clock_lock(o, &c->clock, c->claims);
    json_out_array(o, "claims");
    for (size_t k = 0; c->claims && k < c->claims->n; k++)
        show_claim(o, v, i, &c->claims->claim[k]);
    json_out_end(o);
    jobs(o, v, b);
    if (b->lost_ns) {
        json_out_object(o, "withdrawn");
        show_utc(o, "utc", v->utc_ns - (int64_t)(v->now_ns - b->lost_ns));
        json_out_text(o, "text", b->lost_text);
        json_out_end(o);
    } else {
        json_out_null(o, "withdrawn");
    }
    json_out_object(o, "other_writers");
    for (int k = 0; k < CAPS_CAUSES; k++)
        json_out_int(o, names_word(NAMES_CAP_CAUSE, (unsigned)k), (int64_t)c->changes[k]);
    json_out_end(o);
    json_out_int(o, "writes", (int64_t)c->writes);
    json_out_int(o, "failures", (int64_t)c->failures);
    json_out_end(o);
}

void show_claim(struct json_out *o, const struct node_view *v, size_t i,
                const struct claim *c)
{
    const struct view_board *b = &v->board[i];
    struct caps_claim_look look;
    int64_t boot_utc_ns = v->utc_ns - (int64_t)v->now_ns;

    json_out_object(o, NULL);
    json_out_int(o, "id", (int64_t)c->id);
    json_out_int(o, "gpu", b->info->index);
    json_out_text(o, "uuid", b->info->uuid);
    json_out_text(o, "kind", names_word(NAMES_CLAIM_KIND, c->kind));
    show_mw(o, "cap_mw", c->mw);
    show_mw(o, "clock_mhz", c->mhz);
    json_out_text(o, "source", names_word(NAMES_CLAIM_SOURCE, c->source));
    json_out_text(o, "who", c->who);
    json_out_text(o, "why", c->why);
    json_out_int(o, "uid", c->uid);
    json_out_known_int(o, "job", c->job, (int64_t)c->job);
    json_out_bool(o, "walked", c->source == CLAIM_OF_SEARCH);
    json_out_bool(o, "wins",
                  c->mhz ? b->cap.clock.verdict.by == CAP_BY_CLAIM &&
                               b->cap.clock.verdict.claim == c->id
                         : b->cap.verdict.by == CAP_BY_CLAIM &&
                               b->cap.verdict.claim == c->id);
    caps_claim_look(&b->cap, c, &look);
    json_out_text(o, "state", look.text);
    json_out_text(o, "status", names_word(NAMES_CLAIM_STATUS, look.met));
    json_out_text(o, "reason", names_word_or_null(NAMES_CLAIM_REASON, look.why));
    show_utc(o, "made_utc", boot_utc_ns + (int64_t)c->made_ns);
    if (c->until_ns == CLAIM_FOREVER) {
        json_out_null(o, "until_utc");
        json_out_null(o, "left_s");
    } else {
        double left_s = s_between(v->now_ns, c->until_ns);
        show_utc(o, "until_utc", boot_utc_ns + (int64_t)c->until_ns);
        json_out_double(o, "left_s", left_s > 0 ? left_s : 0);
    }
    json_out_end(o);
}

void show_window(struct json_out *o, const struct node_view *v,
                 const struct client_window_result *w,
                 const struct processors_energy *cpu, size_t n_cpu)
{
    double time_s = s_between(w->begin_ns, w->end_ns);
    char why[128];

    json_out_object(o, NULL);
    json_out_int(o, "id", (int64_t)w->begin_ns);
    show_utc(o, "began_utc", v->utc_ns - (int64_t)(v->now_ns - w->begin_ns));
    show_utc(o, "ended_utc", v->utc_ns - (int64_t)(v->now_ns - w->end_ns));
    json_out_double(o, "time_s", time_s);
    json_out_bool(o, "simulated", v->simulated);
    json_out_array(o, "gpus");
    for (size_t i = 0; i < w->n && i < v->n_boards; i++) {
        const struct client_window_board *b = &w->board[i];
        bool known = b->r == 0;
        json_out_object(o, NULL);
        json_out_int(o, "gpu", v->board[i].info->index);
        json_out_text(o, "uuid", v->board[i].info->uuid);
        json_out_known_double(o, "energy_j", known, b->energy_j);
        json_out_known_double(o, "half_j", known, b->half_j);
        json_out_known_double(o, "power_w", known && time_s > 0, b->energy_j / time_s);
        json_out_text(o, "method",
                      known ? names_word(NAMES_METER_METHOD, b->method) : NULL);
        json_out_text(o, "why",
                      known ? meter_why_text(b->why, why, sizeof why) : b->error.text);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_array(o, "processors");
    for (size_t i = 0; i < n_cpu; i++) {
        json_out_object(o, NULL);
        json_out_text(o, "name", cpu[i].name);
        json_out_known_double(o, "energy_j", cpu[i].known, cpu[i].energy_j);
        json_out_known_double(o, "half_j", cpu[i].known, cpu[i].half_j);
        json_out_known_double(o, "power_w", cpu[i].known, cpu[i].energy_j / time_s);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
}

static void powers(struct json_out *o, const struct meter_power *p, size_t n)
{
    json_out_array(o, "samples");
    for (size_t i = 0; i < n; i++) {
        json_out_object(o, NULL);
        json_out_exact_double(o, "time_s", round(1e6 * p[i].end_s) / 1e6);
        json_out_double(o, "over_s", p[i].over_s);
        json_out_double(o, "power_w", p[i].power_w);
        json_out_end(o);
    }
    json_out_end(o);
}

void show_samples(struct json_out *o, const struct node_view *v, uint64_t window,
                  size_t board, const struct meter_power *p, size_t n, const char *why)
{
    const struct gpu_info *info = v->board[board].info;

    json_out_object(o, NULL);
    json_out_int(o, "id", (int64_t)window);
    json_out_int(o, "gpu", info->index);
    json_out_text(o, "uuid", info->uuid);
    powers(o, p, n);
    json_out_text(o, "why", why);
    json_out_end(o);
}

void show_history(struct json_out *o, const struct node_view *v, size_t board,
                  const struct node_history *h)
{
    const struct gpu_info *info = v->board[board].info;

    json_out_object(o, NULL);
    json_out_int(o, "gpu", info->index);
    json_out_text(o, "uuid", info->uuid);
    json_out_double(o, "length_s", h->length_s);
    powers(o, h->buf, h->n);
    json_out_end(o);
}
