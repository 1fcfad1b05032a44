#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "io/store/inside.h"

enum { ROWS_MAX = 65536 };
/* Times from 1970 to just before 2262, energies of one day of a thousand boards. */
#define UTC_MAX_NS INT64_C(9000000000000000000)
#define ENERGY_MAX_J 1e12

struct ledger_batch *ledger_batch_new(void)
{
    return calloc(1, sizeof(struct ledger_batch));
}

static void row_fini(struct row *row)
{
    if (row->type != ROW_ENERGY && row->type != ROW_METER)
        free(row->piece);
}

static void drop_factors(struct ledger_batch *b)
{
    for (size_t i = 0; i < b->n_factors; i++)
        free(b->factor[i]);
    b->n_factors = 0;
}

void ledger_batch_clear(struct ledger_batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        row_fini(&b->row[i]);
    b->n = 0;
    drop_factors(b);
}

void ledger_batch_free(struct ledger_batch *b)
{
    if (!b)
        return;
    ledger_batch_clear(b);
    free(b->row);
    free(b->factor);
    free(b);
}

size_t ledger_batch_rows(const struct ledger_batch *b)
{
    return b->n;
}

static int put(struct ledger_batch *b, const struct row *row)
{
    int r = array_grow(&b->row, &b->cap, b->n, ROWS_MAX);
    if (r < 0)
        return r;
    b->row[b->n++] = *row;
    return 0;
}

static bool good_time(int64_t ns)
{
    return ns >= 0 && ns < UTC_MAX_NS;
}

static bool good_energy(double j)
{
    return isfinite(j) && j >= 0 && j < ENERGY_MAX_J;
}

int64_t ledger_uj(double j)
{
    return (int64_t)llround(j * 1e6);
}

/* ---- factors ---- */

static bool same_factor(const struct ledger_factor *f, const struct ledger_factor *g)
{
    return f->estimated == g->estimated && strcmp(f->source, g->source) == 0 &&
           strcmp(f->signal, g->signal) == 0 && strcmp(f->unit, g->unit) == 0;
}

static struct ledger_factor *find_factor(const struct ledger_batch *b,
                                         const struct ledger_factor *f)
{
    for (size_t i = 0; i < b->n_factors; i++)
        if (same_factor(b->factor[i], f))
            return b->factor[i];
    return NULL;
}

/* Copies the struct with its texts behind it. */
static struct ledger_factor *copy_factor(const struct ledger_factor *f)
{
    size_t signal = strlen(f->signal) + 1, source = strlen(f->source) + 1,
           unit = strlen(f->unit) + 1;
    struct ledger_factor *copy = malloc(sizeof *copy + signal + source + unit);

    if (!copy)
        return NULL;
    char *at = (char *)(copy + 1);
    copy->signal = memcpy(at, f->signal, signal);
    copy->source = memcpy(at + signal, f->source, source);
    copy->unit = memcpy(at + signal + source, f->unit, unit);
    copy->estimated = f->estimated;
    return copy;
}

/* Finds or makes the batch's copy of this factor. */
static int take_factor(struct ledger_batch *b, const struct ledger_factor *f)
{
    if (find_factor(b, f))
        return 0;
    int r = array_grow(&b->factor, &b->factors_cap, b->n_factors, ROWS_MAX);
    if (r < 0)
        return r;
    struct ledger_factor *copy = copy_factor(f);
    if (!copy)
        return -ENOMEM;
    b->factor[b->n_factors++] = copy;
    return 0;
}

static int take_charges(struct ledger_batch *b, struct ledger_amount *charge)
{
    int r = 0;

    for (int i = 0; r >= 0 && i < LEDGER_CHARGES; i++)
        if (charge[i].factor)
            r = take_factor(b, charge[i].factor);
    for (int i = 0; r >= 0 && i < LEDGER_CHARGES; i++)
        if (charge[i].factor)
            charge[i].factor = find_factor(b, charge[i].factor);
    return r;
}

/* A charge is known for some of the energy, or not at all. */
static bool good_charges(const struct ledger_energy *e)
{
    bool good = true;

    for (int i = 0; good && i < LEDGER_CHARGES; i++) {
        const struct ledger_amount *a = &e->charge[i];
        if (a->factor &&
            (!a->factor->signal[0] || !a->factor->source[0] || !a->factor->unit[0]))
            return false;
        good = a->factor ? a->covered_uj >= 0 && a->covered_uj <= ledger_uj(e->energy_j)
                         : a->amount == 0 && a->covered_uj == 0;
    }
    return good;
}

int ledger_add_energy(struct ledger_batch *b, const struct ledger_energy *e)
{
    bool job = e->kind == LEDGER_JOB;
    double half_j = isnan(e->half_j) ? 0 : e->half_j;

    if (!good_time(e->begin_utc_ns) || !good_time(e->end_utc_ns) ||
        e->end_utc_ns < e->begin_utc_ns || !good_energy(e->energy_j) ||
        !good_energy(half_j) || e->board >= LEDGER_PLACES || e->kind < LEDGER_JOB ||
        e->kind > LEDGER_UNATTRIBUTED || (e->waste != WASTE_WORKING && !job) ||
        job != (e->job != 0) || e->job > INT64_MAX || !good_charges(e))
        return -EINVAL;
    int64_t begin_ms = ms_of_ns(e->begin_utc_ns);
    struct row row = {.type = ROW_ENERGY,
                      .energy = {
                          .begin_ms = begin_ms,
                          .span_ms = ms_of_ns(e->end_utc_ns) - begin_ms,
                          .board = e->board,
                          .kind = (int)e->kind,
                          .job = e->job,
                          .phase = e->phase,
                          .cap_mw = e->cap_mw,
                          .method = e->method,
                          .simulated = e->simulated,
                          .waste = e->waste,
                          .energy_uj = ledger_uj(e->energy_j),
                          .half_uj = ledger_uj(half_j),
                      }};
    memcpy(row.energy.charge, e->charge, sizeof row.energy.charge);
    int r = take_charges(b, row.energy.charge);
    return r < 0 ? r : put(b, &row);
}

int ledger_add_meter(struct ledger_batch *b, const struct ledger_meter *m)
{
    if (!good_time(m->begin_utc_ns) || !good_time(m->end_utc_ns) ||
        m->end_utc_ns < m->begin_utc_ns || !good_energy(m->begin_j) ||
        !good_energy(m->end_j) || m->end_j < m->begin_j || m->board >= LEDGER_PLACES)
        return -EINVAL;
    int64_t begin_ms = ms_of_ns(m->begin_utc_ns);
    return put(b,
               &(struct row){.type = ROW_METER,
                             .meter = {
                                 .begin_ms = begin_ms,
                                 .span_ms = ms_of_ns(m->end_utc_ns) - begin_ms,
                                 .board = m->board,
                                 .energy_uj = ledger_uj(m->end_j) - ledger_uj(m->begin_j),
                             }});
}

/* ---- rows with texts: one allocation, the texts behind the struct ---- */

static size_t room(const char *text, size_t max)
{
    return text ? strnlen(text, max - 1) + 1 : 1;
}

enum { PROCESSES_AT = 6 }; /* index among the texts of a job */

/* Bytes that the row's text i may have. */
static size_t most(enum row_type type, size_t i)
{
    return type == ROW_JOB && i == PROCESSES_AT ? LEDGER_PROCESSES : LEDGER_TEXT;
}

/* Copies text to *at and advances it; never NULL. */
static const char *put_text(char **at, const char *text, size_t max)
{
    char *mine = *at;
    size_t len = room(text, max) - 1;

    if (len)
        memcpy(mine, text, len);
    mine[len] = '\0';
    *at += len + 1;
    return mine;
}

static int put_piece(struct ledger_batch *b, enum row_type type, void *piece)
{
    int r = put(b, &(struct row){.type = type, .piece = piece});
    if (r < 0)
        free(piece);
    return r;
}

/* Copies a struct whose texts are at these offsets; the texts move behind the copy. */
static int put_copy(struct ledger_batch *b, enum row_type type, const void *row,
                    size_t size, const char **const *text, size_t n)
{
    size_t all = size;

    for (size_t i = 0; i < n; i++)
        all += room(*text[i], most(type, i));
    char *piece = malloc(all);
    if (!piece)
        return -ENOMEM;
    char *at = piece + size;
    for (size_t i = 0; i < n; i++)
        *text[i] = put_text(&at, *text[i], most(type, i));
    memcpy(piece, row, size);
    return put_piece(b, type, piece);
}

static bool good_job(const struct ledger_job *j)
{
    return j->id && j->id < INT64_MAX && good_time(j->began_utc_ns) &&
           (j->ended_utc_ns == 0 ||
            (good_time(j->ended_utc_ns) && j->ended_utc_ns >= j->began_utc_ns)) &&
           j->n_labels <= LEDGER_LABELS;
}

int ledger_add_job(struct ledger_batch *b, const struct ledger_job *j)
{
    struct {
        struct ledger_job job;
        struct ledger_label label[LEDGER_LABELS];
    } row = {.job = *j};
    struct ledger_job *job = &row.job;
    const char **text[7 + 2 * LEDGER_LABELS] = {&job->source,
                                                &job->name,
                                                &job->user,
                                                &job->goal,
                                                &job->cls,
                                                &job->command,
                                                [PROCESSES_AT] = &job->processes};
    size_t n = 7;

    if (!good_job(j))
        return -EINVAL;
    for (size_t i = 0; i < j->n_labels; i++) {
        row.label[i] = j->label[i];
        text[n++] = &row.label[i].key;
        text[n++] = &row.label[i].value;
    }
    int r = put_copy(b, ROW_JOB, &row, sizeof row, text, n);
    if (r < 0)
        return r;
    job = b->row[b->n - 1].job;
    job->label = (const struct ledger_label *)(const void *)(job + 1);
    return 0;
}

int ledger_add_claim(struct ledger_batch *b, const struct ledger_claim *c)
{
    struct ledger_claim row = *c;

    if (!c->id || c->id >= INT64_MAX || c->board >= LEDGER_BOARDS ||
        !good_time(c->made_utc_ns) || !c->kind || !c->kind[0] || c->job > INT64_MAX)
        return -EINVAL;
    return put_copy(b, ROW_CLAIM, &row, sizeof row,
                    (const char **[]){&row.kind, &row.source, &row.who, &row.why}, 4);
}

int ledger_add_claim_end(struct ledger_batch *b, const struct ledger_claim_end *c)
{
    struct ledger_claim_end row = *c;

    if (!c->id || c->id >= INT64_MAX || c->board >= LEDGER_BOARDS ||
        !good_time(c->utc_ns))
        return -EINVAL;
    return put_copy(b, ROW_CLAIM_END, &row, sizeof row, (const char **[]){&row.how}, 1);
}

int ledger_add_cap(struct ledger_batch *b, const struct ledger_cap *c)
{
    struct ledger_cap row = *c;

    if (c->board >= LEDGER_BOARDS || !good_time(c->utc_ns) || c->claim > INT64_MAX)
        return -EINVAL;
    return put_copy(b, ROW_CAP, &row, sizeof row, (const char **[]){&row.by}, 1);
}

int ledger_add_event(struct ledger_batch *b, const struct ledger_event *e)
{
    struct ledger_event row = *e;

    if (!good_time(e->utc_ns) || !e->kind || !e->kind[0] ||
        (e->has_board && e->board >= LEDGER_BOARDS))
        return -EINVAL;
    return put_copy(b, ROW_EVENT, &row, sizeof row,
                    (const char **[]){&row.kind, &row.text}, 2);
}

static bool good_search(const struct ledger_search *s)
{
    bool good = s->same[0] && s->model[0] && s->boards > 0 && s->n > 0 &&
                s->n <= LEDGER_SEARCH_CAPS && good_time(s->utc_ns) &&
                s->reference_mw > 0 && s->job <= INT64_MAX && isfinite(s->demand_w) &&
                s->demand_w > 0;

    for (size_t i = 0; good && i < s->n; i++) {
        const struct ledger_search_cap *c = &s->cap[i];
        good = c->cap_mw > 0 && isfinite(c->step_s) && c->step_s > 0 &&
               isfinite(c->step_j) && c->step_j > 0 && c->step_s_rse >= 0 &&
               c->step_s_rse < 1 && c->step_j_rse >= 0 && c->step_j_rse < 1;
    }
    return good;
}

int ledger_add_search(struct ledger_batch *b, const struct ledger_search *s)
{
    if (!good_search(s))
        return -EINVAL;
    struct ledger_search *mine = malloc(sizeof *mine);
    if (!mine)
        return -ENOMEM;
    *mine = *s;
    mine->same[sizeof mine->same - 1] = mine->model[sizeof mine->model - 1] = '\0';
    return put_piece(b, ROW_SEARCH, mine);
}

/* ---- revisions ---- */

static bool good_values(const struct ledger_revision *rev)
{
    bool good = rev->n > 0 && rev->n <= LEDGER_VALUES;

    for (size_t i = 0; good && i < rev->n; i++) {
        const struct ledger_value *v = &rev->value[i];
        good = good_time(v->from_utc_ns) && good_time(v->to_utc_ns) &&
               v->from_utc_ns < v->to_utc_ns &&
               (i == 0 || v[-1].to_utc_ns <= v->from_utc_ns);
    }
    return good;
}

int ledger_add_revision(struct ledger_batch *b, const struct ledger_revision *rev)
{
    struct {
        struct ledger_revision rev;
        struct ledger_value value[LEDGER_VALUES];
    } row = {.rev = *rev};

    if (!rev->signal || !rev->signal[0] || !rev->source || !rev->source[0] ||
        !rev->unit || !rev->unit[0] || !good_time(rev->utc_ns) ||
        !good_time(rev->begin_utc_ns) ||
        rev->begin_utc_ns % (LEDGER_QUARTER_S * (1000 * NS_PER_MS_I)) != 0 ||
        !good_values(rev))
        return -EINVAL;
    memcpy(row.value, rev->value, rev->n * sizeof *rev->value);
    int r =
        put_copy(b, ROW_REVISION, &row, sizeof row,
                 (const char **[]){&row.rev.signal, &row.rev.source, &row.rev.unit}, 3);
    if (r < 0)
        return r;
    struct ledger_revision *mine = b->row[b->n - 1].revision;
    mine->value = (const struct ledger_value *)(const void *)(mine + 1);
    return 0;
}

/* ---- merging of rows ---- */

#define MS_PER_HOUR INT64_C(3600000)
static int64_t hour_of(const struct row *row)
{
    int64_t ms = row->type == ROW_METER ? row->meter.begin_ms : row->energy.begin_ms;
    return ms / MS_PER_HOUR;
}

enum { KEYS = 9 + LEDGER_CHARGES };

/* Rows with equal keys may be merged. */
static void key_of(const struct row *row, uint64_t ret[KEYS])
{
    bool meter = row->type == ROW_METER;
    const struct row_energy *e = &row->energy;
    const uint64_t key[KEYS] = {
        (uint64_t)row->type,
        (uint64_t)hour_of(row),
        meter ? row->meter.board : e->board,
        meter ? 0 : (uint64_t)e->kind,
        meter ? 0 : e->job,
        meter ? 0 : e->phase,
        meter ? 0 : e->cap_mw,
        meter ? 0 : e->simulated,
        meter ? 0 : (uint64_t)e->waste,
    };

    memcpy(ret, key, sizeof key);
    for (int i = 0; !meter && i < LEDGER_CHARGES; i++)
        ret[KEYS - LEDGER_CHARGES + i] = (uintptr_t)e->charge[i].factor;
}

static int key_order(const struct row *a, const struct row *b)
{
    uint64_t x[KEYS], y[KEYS];

    key_of(a, x);
    key_of(b, y);
    for (int i = 0; i < KEYS; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static bool merges(const struct row *row)
{
    return row->type == ROW_ENERGY || row->type == ROW_METER;
}

/* Energies first, ordered by key; all other rows keep their order (that of their
 * addresses).
 */
static int row_order(const void *va, const void *vb)
{
    const struct row *const *pa = va, *const *pb = vb;
    const struct row *a = *pa, *b = *pb;

    if (merges(a) && merges(b)) {
        int order = key_order(a, b);
        if (order)
            return order;
    } else if (merges(a) != merges(b)) {
        return merges(a) ? -1 : 1;
    }
    return a == b ? 0 : a < b ? -1 : 1;
}

static int64_t half_of_both(const struct row_energy *a, const struct row_energy *b)
{
    struct half_sum half = store_half(a->energy_uj, a->half_uj, a->method);
    struct half_sum other = store_half(b->energy_uj, b->half_uj, b->method);

    half_sum_add(&half, &other);
    return ledger_uj(half_sum_j(&half));
}

static void merge(struct row *into, const struct row *from)
{
    if (into->type == ROW_METER) {
        into->meter.span_ms += from->meter.span_ms;
        into->meter.energy_uj += from->meter.energy_uj;
        return;
    }
    into->energy.span_ms += from->energy.span_ms;
    into->energy.half_uj = half_of_both(&into->energy, &from->energy);
    into->energy.energy_uj += from->energy.energy_uj;
    into->energy.method |= from->energy.method | METHOD_MERGED;
    for (int i = 0; i < LEDGER_CHARGES; i++) {
        into->energy.charge[i].amount += from->energy.charge[i].amount;
        into->energy.charge[i].covered_uj += from->energy.charge[i].covered_uj;
    }
}

static bool is_job(const struct row *row)
{
    return row->type == ROW_JOB;
}

/* By job; for one job, in order. */
static int job_order(const void *va, const void *vb)
{
    const struct row *const *pa = va, *const *pb = vb;
    uint64_t a = (*pa)->job->id, b = (*pb)->job->id;

    return a != b ? (a < b ? -1 : 1) : *pa == *pb ? 0 : *pa < *pb ? -1 : 1;
}

/* A job's row holds its complete state: keeps only the newest.  by: room for all rows. */
static void drop_older_jobs(struct ledger_batch *b, struct row **by)
{
    size_t n = 0, left = 0;

    for (size_t i = 0; i < b->n; i++)
        if (is_job(&b->row[i]))
            by[n++] = &b->row[i];
    qsort(by, n, sizeof(struct row *), job_order);
    for (size_t i = 0; i + 1 < n; i++) {
        if (by[i]->job->id != by[i + 1]->job->id)
            continue;
        free(by[i]->piece);
        by[i]->piece = NULL;
    }
    for (size_t i = 0; i < b->n; i++)
        if (!is_job(&b->row[i]) || b->row[i].piece)
            b->row[left++] = b->row[i];
    b->n = left;
}

static uint64_t moved_bits(uint64_t bits, const size_t map[LEDGER_PLACES])
{
    uint64_t ret = 0;

    for (size_t i = 0; i < LEDGER_BOARDS; i++)
        if (bits >> i & 1 && map[i] < LEDGER_BOARDS)
            ret |= UINT64_C(1) << map[i];
    return ret;
}

/* False: the row is to be dropped. */
static bool move_row(struct row *row, const size_t map[LEDGER_PLACES])
{
    size_t *place = NULL;

    switch (row->type) {
    case ROW_ENERGY:
        place = &row->energy.board;
        break;
    case ROW_METER:
        place = &row->meter.board;
        break;
    case ROW_CLAIM:
        place = &row->claim->board;
        break;
    case ROW_CLAIM_END:
        place = &row->claim_end->board;
        break;
    case ROW_CAP:
        place = &row->cap->board;
        break;
    case ROW_EVENT:
        place = row->event->has_board ? &row->event->board : NULL;
        break;
    case ROW_JOB:
        row->job->boards = moved_bits(row->job->boards, map);
        row->job->held = moved_bits(row->job->held, map);
        break;
    case ROW_SEARCH:
    case ROW_REVISION:
    default:
        break;
    }
    if (place)
        *place = map[*place];
    return !place || *place != SIZE_MAX;
}

size_t ledger_batch_move(struct ledger_batch *b, const size_t map[LEDGER_PLACES])
{
    size_t left = 0, n = b->n;

    for (size_t i = 0; i < n; i++) {
        if (move_row(&b->row[i], map))
            b->row[left++] = b->row[i];
        else
            row_fini(&b->row[i]);
    }
    b->n = left;
    return n - left;
}

/* The index of the newest row of a job; SIZE_MAX: none. */
static size_t newest_of(const struct ledger_batch *b, uint64_t job)
{
    for (size_t i = b->n; i-- > 0;)
        if (is_job(&b->row[i]) && b->row[i].job->id == job)
            return i;
    return SIZE_MAX;
}

void ledger_batch_jobs(const struct ledger_batch *b,
                       void (*fn)(const struct ledger_job *job, void *user), void *user)
{
    for (size_t i = 0, n = b->n; i < n; i++)
        if (is_job(&b->row[i]) && newest_of(b, b->row[i].job->id) == i)
            fn(b->row[i].job, user);
}

bool ledger_batch_has_job(const struct ledger_batch *b, uint64_t id)
{
    return newest_of(b, id) != SIZE_MAX;
}

size_t ledger_batch_shed(struct ledger_batch *b, size_t rows)
{
    size_t left = 0, n = b->n;

    for (size_t i = 0; i < n; i++) {
        struct row *row = &b->row[i];
        bool goes =
            row->type == ROW_CAP || row->type == ROW_EVENT || row->type == ROW_REVISION;
        if (goes && n - i + left > rows)
            row_fini(row);
        else
            b->row[left++] = *row;
    }
    b->n = left;
    return n - left;
}

size_t ledger_batch_squeeze(struct ledger_batch *b)
{
    auto_(mem_free) struct row **by = NULL;
    auto_(mem_free) struct row *kept = NULL;
    size_t n = 0;

    if (b->n < 2)
        return b->n;
    by = calloc(b->n, sizeof(struct row *));
    kept = calloc(b->n, sizeof *kept);
    if (!by || !kept)
        return b->n;
    drop_older_jobs(b, by);
    for (size_t i = 0; i < b->n; i++)
        by[i] = &b->row[i];
    qsort(by, b->n, sizeof(struct row *), row_order);
    for (size_t i = 0; i < b->n; i++) {
        if (n > 0 && merges(by[i]) && merges(&kept[n - 1]) &&
            key_order(&kept[n - 1], by[i]) == 0)
            merge(&kept[n - 1], by[i]);
        else
            kept[n++] = *by[i];
    }
    memcpy(b->row, kept, n * sizeof *kept);
    b->n = n;
    return n;
}

int ledger_batch_join(struct ledger_batch *to, struct ledger_batch *from)
{
    void *rows = to->row;

    int r = array_reserve(&rows, &to->cap, to->n + from->n, sizeof *to->row, ROWS_MAX);
    to->row = rows;
    for (size_t i = 0; r >= 0 && i < from->n_factors; i++)
        r = take_factor(to, from->factor[i]);
    if (r < 0)
        return r;
    for (size_t i = 0; i < from->n; i++)
        if (from->row[i].type == ROW_ENERGY)
            (void)take_charges(to, from->row[i].energy.charge);
    if (from->n)
        memcpy(to->row + to->n, from->row, from->n * sizeof *from->row);
    to->n += from->n;
    from->n = 0;
    drop_factors(from);
    return 0;
}
