/* Makes the rows of one stretch and updates the sums. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "energy/attribution-inside.h"

#define DAY_NS (86400 * (int64_t)NS_PER_S)
#define SLEW_NS (int64_t) NS_PER_S /* smaller differences of UTC are slewing */

struct entry { /* a stretch that is being booked */
    struct account *a;
    const struct stretch *s;
    struct attribution_row row; /* template of all its rows */
    double energy_j, half_j;
    enum waste_state waste;
};

/* A sum is METER_WHY_SHORT only if each of its rows is. */
static uint32_t why_of_sum(const struct attribution_part *part, uint32_t why)
{
    uint32_t all = part->time_s > 0 ? part->why & why : why;

    return ((part->why | why) & ~(uint32_t)METER_WHY_SHORT) | (all & METER_WHY_SHORT);
}

static void add(struct attribution_job *job, const struct attribution_row *row)
{
    uint64_t from_ns = row->begin_ns > job->until_ns ? row->begin_ns : job->until_ns;
    struct attribution_part *part = attribution_part_at(job, row->board);

    if (!part)
        return;
    if (row->lost) {
        part->why |= METER_WHY_GAP;
        return;
    }
    part->energy_j += row->energy_j;
    struct half_sum half =
        half_sum_of(row->energy_j, row->half_j, meter_counted(row->method, row->why));
    half_sum_add(&part->half, &half);
    part->method = row->method > part->method ? row->method : part->method;
    part->why = why_of_sum(part, row->why);
    part->time_s += s_between(row->begin_ns, row->end_ns);
    if (row->end_ns <= from_ns)
        return;
    job->time_s += s_between(from_ns, row->end_ns);
    job->until_ns = row->end_ns;
}

static enum waste_class waste_of(const struct entry *e, enum attribution_kind kind,
                                 const struct part *part)
{
    if (kind == ATTRIBUTION_IDLE)
        return WASTE_NOBODY;
    return kind == ATTRIBUTION_JOB ? waste_of_job(e->waste, part->has_process)
                                   : WASTE_WORKING;
}

static void put(struct entry *e, enum attribution_kind kind, const struct part *part,
                double energy_j)
{
    struct attribution *b = e->a->book;
    struct attribution_board *sum = &e->a->sum;
    struct attribution_row row = e->row;
    double share = e->energy_j > 0 ? energy_j / e->energy_j : 1;

    row.kind = kind;
    row.job = part ? part->user.job : 0;
    row.phase = part ? part->phase : 0;
    row.energy_j = energy_j;
    struct half_sum half =
        half_sum_of(e->energy_j, e->half_j, meter_counted(row.method, row.why));
    half = half_sum_share(&half, share);
    row.half_j = half_sum_j(&half);
    row.waste = waste_of(e, kind, part);
    attribution_judged(e->a, e->s, row.waste);
    if (!row.lost) {
        sum->use_j[row.waste] += energy_j;
        sum->use_s[row.waste] += s_between(row.begin_ns, row.end_ns);
    }
    if (kind == ATTRIBUTION_JOB) {
        struct attribution_job *job = attribution_job_at(b, row.job);
        if (job)
            add(job, &row);
        sum->attributed_j += energy_j;
    } else if (kind == ATTRIBUTION_IDLE) {
        sum->idle_j += energy_j;
    } else {
        sum->unattributed_j += energy_j;
    }
    sum->rows++;
    if (b->opts.on_row)
        b->opts.on_row(&row, b->opts.user);
}

static void put_split(struct entry *e)
{
    const struct stretch *s = e->s;
    struct split_user user[ROSTER_USERS];
    struct split_share share[ROSTER_USERS];
    struct split split;

    for (size_t i = 0; i < s->n; i++)
        user[i] = s->part[i].user;
    split_energy(user, s->n, e->energy_j, share, &split);
    e->row.split = split.method;
    for (size_t i = 0; i < s->n; i++)
        if (s->part[i].user.job)
            put(e, ATTRIBUTION_JOB, &s->part[i], share[i].energy_j);
    if (split.method == SPLIT_IDLE)
        put(e, ATTRIBUTION_IDLE, NULL, split.idle_j);
    else if (split.unattributed_j > 0 || split.method == SPLIT_UNATTRIBUTED)
        put(e, ATTRIBUTION_UNATTRIBUTED, NULL, split.unattributed_j);
}

/* Books a stretch of unknown energy: one row of 0 J, of the job if it was alone. */
static void put_lost(struct entry *e)
{
    const struct stretch *s = e->s;

    e->row.lost = true;
    if (s->n == 1 && s->part[0].user.job) {
        e->row.split = SPLIT_SOLE;
        put(e, ATTRIBUTION_JOB, &s->part[0], 0);
    } else if (s->n == 0) {
        e->row.split = SPLIT_IDLE;
        put(e, ATTRIBUTION_IDLE, NULL, 0);
    } else {
        e->row.split = SPLIT_UNATTRIBUTED;
        put(e, ATTRIBUTION_UNATTRIBUTED, NULL, 0);
    }
    e->a->sum.lost_s += s_between(s->begin_ns, s->end_ns);
}

static void put_today(struct account *a, int64_t begin_utc_ns, double energy_j)
{
    int64_t day = begin_utc_ns / DAY_NS;

    if (day != a->day && a->day != 0)
        a->sum.today_j = 0;
    a->day = day;
    a->sum.today_j += energy_j;
}

static void put_total(const struct entry *e, double begin_j)
{
    const struct attribution *b = e->a->book;
    struct attribution_total total = {
        .board = e->a->at,
        .begin_ns = e->row.begin_ns,
        .end_ns = e->row.end_ns,
        .begin_utc_ns = e->row.begin_utc_ns,
        .end_utc_ns = e->row.end_utc_ns,
        .begin_j = begin_j,
        .end_j = e->a->sum.energy_j,
        .half_j = e->half_j,
        .method = e->row.method,
        .why = e->row.why,
        .lost = e->row.lost,
    };

    if (b->opts.on_total)
        b->opts.on_total(&total, b->opts.user);
}

/* The stretch's times in UTC.  The start is the end of the row before, although both
 * clocks are not read at the same moment and UTC may be slewed.  If UTC was set in
 * between, the start follows from the end.
 */
static void set_utc(struct account *a, struct attribution_row *row)
{
    struct loop *loop = a->book->opts.loop;
    uint64_t now = loop_now_ns(loop);

    row->end_utc_ns = loop_utc_ns(loop) - (int64_t)(now - row->end_ns);
    row->begin_utc_ns = row->end_utc_ns - (int64_t)(row->end_ns - row->begin_ns);
    if (row->begin_ns == a->booked_ns && a->booked_utc_ns < row->end_utc_ns &&
        llabs(row->begin_utc_ns - a->booked_utc_ns) < SLEW_NS)
        row->begin_utc_ns = a->booked_utc_ns;
    a->booked_ns = row->end_ns;
    a->booked_utc_ns = row->end_utc_ns;
}

void attribution_rows(struct account *a, const struct stretch *s,
                      const struct meter_result *m)
{
    double begin_j = a->sum.energy_j;
    struct entry e = {
        .a = a,
        .s = s,
        .row = {.board = a->at,
                .cap_mw = s->cap_mw,
                .begin_ns = s->begin_ns,
                .end_ns = s->end_ns},
    };

    set_utc(a, &e.row);
    if (m) {
        e.row.method = m->method;
        e.row.why = m->why;
        e.energy_j = m->energy_j > 0 ? m->energy_j : 0;
        e.half_j = m->half_j;
    }
    e.waste = attribution_judge(a, s, m);
    a->sum.energy_j += e.energy_j;
    put_today(a, e.row.begin_utc_ns, e.energy_j);
    if (!m) {
        put_lost(&e);
    } else if (s->unsure) {
        e.row.split = SPLIT_UNATTRIBUTED;
        put(&e, ATTRIBUTION_UNATTRIBUTED, NULL, e.energy_j);
    } else {
        put_split(&e);
    }
    put_total(&e, begin_j);
}
