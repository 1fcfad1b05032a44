/* Values shared by all bodies, and the node's own body. */
#include "api/show.h"

#include <stdio.h>
#include <time.h>

#include "base/auto.h"
#include "base/names.h"
#include "base/units.h"
#include "underwatt/progress.h"

/* Only an administrator makes a read-only token: its holder may see all jobs. */
bool show_all(const struct node_who *who)
{
    return who->admin || (who->uid == (uid_t)-1 && !who->may_claim && !who->only_job);
}

bool show_mine(const struct node_who *who, const struct job_entry *job)
{
    if (show_all(who))
        return true;
    return who->uid == job->uid && (!who->only_job || who->only_job == job->id);
}

const char *show_time(int64_t utc_ns, char buf[SHOW_TIME])
{
    time_t s = (time_t)(utc_ns / (int64_t)NS_PER_S);
    struct tm tm;
    size_t n;

    if (!gmtime_r(&s, &tm) ||
        (n = strftime(buf, SHOW_TIME, "%Y-%m-%dT%H:%M:%S", &tm)) == 0)
        return "1970-01-01T00:00:00Z";
    (void)snprintf(buf + n, SHOW_TIME - n, ".%03dZ",
                   (int)(utc_ns % (int64_t)NS_PER_S / 1000000));
    return buf;
}

static const struct claim *winner(const struct caps_view *cap)
{
    return cap->claims && cap->verdict.claim
               ? claims_find(cap->claims, cap->verdict.claim)
               : NULL;
}

/* No claim decides. */
static void why_original(const struct caps_view *cap, double target_w, char *buf,
                         size_t size)
{
    if (cap->state == CAPS_YIELDED)
        (void)snprintf(buf, size,
                       "%g W: another program set this limit, and no claim is lower",
                       target_w);
    else if (cap->holder[0] && cap->enforced_mw)
        (void)snprintf(buf, size, "%g W: %s", w_of_mw(cap->enforced_mw), cap->holder);
    else
        (void)snprintf(
            buf, size,
            cap->original_known ? "%g W: the limit found at the start, no claim is lower"
            : cap->unrestored
                ? "%g W: the limit found, no claim is lower; the board has not "
                  "confirmed it yet"
                : "%g W: the limit found, no claim is lower; an earlier daemon "
                  "may have left it: the original limit is not confirmed yet",
            target_w);
}

const char *show_why(const struct caps_view *cap, char *buf, size_t size)
{
    const struct claim *c = winner(cap);
    double target_w = w_of_mw(cap->verdict.target_mw);

    if (!cap->can_cap) {
        (void)snprintf(buf, size, "this board cannot be capped");
        return buf;
    }
    switch (cap->verdict.by) {
    case CAP_BY_CLAIM:
        (void)snprintf(buf, size, "%g W: %s claim of %s%s%s", target_w,
                       c ? names_word(NAMES_CLAIM_KIND, c->kind) : "a",
                       c ? c->who : "an unknown user", c && c->why[0] ? ": " : "",
                       c ? c->why : "");
        break;
    case CAP_BY_FLOOR:
        (void)snprintf(buf, size,
                       "%g W: the soft floor of the board's work; %s requested %g W",
                       target_w, c ? c->who : "a soft claim", c ? w_of_mw(c->mw) : 0.0);
        break;
    case CAP_BY_MINIMUM:
        (void)snprintf(buf, size, "%g W: %s; %s requested %g W", target_w,
                       cap->range.min_mw > cap->limits.min_mw
                           ? "the lower end of root's range"
                           : "the board's minimum",
                       c ? c->who : "a claim", c ? w_of_mw(c->mw) : 0.0);
        break;
    default:
        why_original(cap, target_w, buf, size);
    }
    return buf;
}

const char *show_clock_why(const struct caps_clock_view *k, const struct claims *claims,
                           char *buf, size_t size)
{
    const struct claim *c =
        claims && k->verdict.claim ? claims_find(claims, k->verdict.claim) : NULL;
    unsigned mhz = k->verdict.target_mhz;

    switch (k->verdict.by) {
    case CAP_BY_CLAIM:
        (void)snprintf(buf, size, "%u MHz: %s claim of %s%s%s", mhz,
                       c ? names_word(NAMES_CLAIM_KIND, c->kind) : "a",
                       c ? c->who : "an unknown user", c && c->why[0] ? ": " : "",
                       c ? c->why : "");
        break;
    case CAP_BY_FLOOR:
        (void)snprintf(buf, size, "%u MHz: the soft floor; %s asked for %u MHz", mhz,
                       c ? c->who : "a soft claim", c ? (unsigned)c->mhz : 0);
        break;
    case CAP_BY_MINIMUM:
        (void)snprintf(buf, size, "%u MHz: the board's lowest; %s asked for %u MHz", mhz,
                       c ? c->who : "a claim", c ? (unsigned)c->mhz : 0);
        break;
    default:
        (void)snprintf(buf, size, "no lock: no claim is below %u MHz, its highest clock",
                       mhz);
    }
    return buf;
}

/* ---- values ---- */

void show_value(struct json_out *o, const char *key, const struct maybe *v)
{
    json_out_known_double(o, key, v->known, v->v);
}

void show_mw(struct json_out *o, const char *key, uint32_t mw)
{
    json_out_known_int(o, key, mw > 0, mw);
}

void show_utc(struct json_out *o, const char *key, int64_t utc_ns)
{
    char buf[SHOW_TIME];

    json_out_text(o, key, show_time(utc_ns, buf));
}

void show_since_boot(struct json_out *o, const char *key, const struct node_view *v,
                     uint64_t at_ns)
{
    if (at_ns)
        show_utc(o, key, v->utc_ns - (int64_t)(v->now_ns - at_ns));
    else
        json_out_null(o, key);
}

void show_released(struct json_out *o, const struct node_view *v,
                   const struct searches_view *s)
{
    bool released = s->status == SEARCH_LOST_BOARDS && s->report;

    show_since_boot(o, "released_utc", v, released ? s->report->released_ns : 0);
}

void show_boards(struct json_out *o, const char *key, const struct node_view *v,
                 uint64_t boards)
{
    json_out_array(o, key);
    for (size_t i = 0; i < v->n_boards && i < 64; i++)
        if (boards >> i & 1)
            json_out_int(o, NULL, v->board[i].info->index);
    json_out_end(o);
}

struct maybe show_power(const struct node_view *v, uint64_t boards)
{
    struct maybe sum = {true, 0};
    size_t n = 0;

    for (size_t i = 0; i < v->n_boards && i < 64; i++) {
        if (!(boards >> i & 1))
            continue;
        n++;
        sum.known &= v->board[i].power_w.known;
        sum.v += v->board[i].power_w.v;
    }
    sum.known &= n > 0;
    return sum;
}

/* ---- the node ---- */

/* error: why the last file was refused; "": a later one is in force. */
static void put_loads(struct json_out *o, uint64_t loads, uint64_t failures,
                      const char *error)
{
    json_out_int(o, "loads", (int64_t)loads);
    json_out_int(o, "failures", (int64_t)failures);
    json_out_text(o, "error", error && error[0] ? error : NULL);
}

static void show_config(struct json_out *o, const struct node_view *v)
{
    const struct view_policy *p = &v->policy;

    json_out_object(o, "config");
    put_loads(o, v->config_loads, v->config_failures, v->config_error);
    json_out_end(o);
    json_out_object(o, "policy");
    json_out_text(o, "file", p->file ? p->file : "");
    json_out_bool(o, "in_force", p->engine != NULL);
    put_loads(o, p->loads, p->failures, p->error);
    json_out_end(o);
}

static void show_sums(struct json_out *o, const struct node_view *v)
{
    struct maybe power = show_power(v, UINT64_MAX);
    double energy_j = 0, today_j = 0;
    size_t claims = 0, jobs = 0;

    for (size_t i = 0; i < v->n_boards; i++) {
        energy_j += v->board[i].energy_j;
        today_j += v->board[i].today_j;
        claims += v->board[i].cap.claims ? v->board[i].cap.claims->n : 0;
    }
    for (size_t i = 0; i < v->n_jobs; i++)
        jobs += v->job[i].job->ended_ns == 0;
    json_out_int(o, "gpus", (int64_t)v->n_boards);
    json_out_int(o, "jobs", (int64_t)jobs);
    json_out_int(o, "claims", (int64_t)claims);
    show_value(o, "power_w", &power);
    json_out_counter(o, "energy_j", energy_j);
    json_out_counter(o, "today_j", today_j);
}

/* Exact values only for administrators, as the kernel shows them only to root. */
static void show_rapl(struct json_out *o, const struct node_view *v, bool exact)
{
    json_out_array(o, "rapl");
    for (size_t i = 0; i < v->n_rapl; i++) {
        const struct view_rapl *d = &v->rapl[i];
        json_out_object(o, NULL);
        json_out_text(o, "name", d->name);
        json_out_counter(o, "energy_j", exact ? d->exact.energy_j : d->energy_j);
        show_value(o, "power_w", exact ? &d->exact.power_w : &d->power_w);
        json_out_end(o);
    }
    json_out_end(o);
}

/* budget_w is null without a budget. */
static void show_budget(struct json_out *o, const struct caps_budget_view *b)
{
    json_out_object(o, "budget");
    json_out_known_double(o, "budget_w", b->budget_mw, w_of_mw(b->budget_mw));
    json_out_known_double(o, "counted_w", !b->unknown, (double)b->counted_mw / MW_PER_W);
    json_out_known_double(o, "least_w", !b->unknown, (double)b->least_mw / MW_PER_W);
    json_out_bool(o, "short", b->is_short);
    json_out_bool(o, "late", b->late);
    json_out_end(o);
}

static void show_ledger(struct json_out *o, const struct node_view *v)
{
    json_out_object(o, "ledger");
    json_out_bool(o, "up", v->ledger_up);
    json_out_text(o, "why", v->ledger);
    json_out_text(o, "reason",
                  names_word_or_null(NAMES_LEDGER_TROUBLE, v->ledger_trouble));
    json_out_int(o, "rows", (int64_t)v->ledger_rows);
    json_out_int(o, "failures", (int64_t)v->ledger_failures);
    json_out_int(o, "waiting", (int64_t)v->ledger_waiting);
    json_out_int(o, "lost", (int64_t)v->ledger_lost);
    json_out_end(o);
}

void show_node(struct json_out *o, const struct node_view *v, const struct node_who *who)
{
    json_out_object(o, NULL);
    json_out_text(o, "hostname", v->hostname);
    json_out_text(o, "version", v->version);
    json_out_bool(o, "simulated", v->simulated);
    json_out_bool(o, "dry_run", v->dry_run);
    json_out_object(o, "actuator");
    json_out_bool(o, "up", !v->read_only);
    json_out_text(o, "why", v->actuator);
    json_out_end(o);
    show_budget(o, &v->budget);
    show_utc(o, "utc", v->utc_ns);
    show_utc(o, "began_utc", v->utc_ns - (int64_t)(v->now_ns - v->began_ns));
    show_sums(o, v);
    show_rapl(o, v, who->admin);
    show_config(o, v);
    show_ledger(o, v);
    json_out_object(o, "you");
    json_out_text(o, "name", who->name);
    json_out_int(o, "uid", who->uid);
    json_out_bool(o, "admin", who->admin);
    json_out_bool(o, "may_claim", who->may_claim);
    json_out_end(o);
    json_out_end(o);
}
