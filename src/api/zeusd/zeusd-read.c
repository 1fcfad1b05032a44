/* Read routes of zeusd's API: every number comes from the node's view. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/zeusd/zeusd-inside.h"
#include "base/units.h"

static const char CANNOT[] =
    "NVML error: the requested operation is not available on the target device";
static const char SILENT[] = "NVML error: the board has not answered yet";
static const uint64_t CARRY_NS = 5 * NS_PER_S;

/* ---- boards ---- */

/* The mean over the last second or two: boards are sampled for power far less often than
 * for energy.
 */
static bool power_mw(const struct view_board *b, uint32_t *ret)
{
    if (b->power_w.known)
        *ret = mw_of_w(b->power_w.v);
    else if (b->last.has & GPU_HAS_INSTANT)
        *ret = mw_of_w(b->last.instant_w);
    else if (b->last.has & GPU_HAS_POWER)
        *ret = mw_of_w(b->last.power_w);
    else
        return false;
    return true;
}

/* The cap's value comes first: it is read back after each write. */
static uint32_t limit_mw(const struct view_board *b)
{
    if (b->cap.enforced_mw > 0)
        return b->cap.enforced_mw;
    return b->last.has & GPU_HAS_REQUESTED ? b->last.requested_mw : 0;
}

/* The last counter reading, extrapolated with the board's power, as Zeus takes
 * differences over seconds.  Never decreases, unless the counter itself did.
 */
static uint64_t energy_mj(struct zeusd_energy *e, const struct view_board *b,
                          uint64_t now_ns)
{
    uint64_t raw = b->last.energy_mj, now = raw;
    uint64_t age = now_ns > b->last.energy_at_ns ? now_ns - b->last.energy_at_ns : 0;
    uint32_t mw;

    if (age <= CARRY_NS && power_mw(b, &mw))
        now += (uint64_t)((double)mw * s_of_ns(age));
    if (raw >= e->raw_mj && now < e->told_mj)
        now = e->told_mj;
    e->raw_mj = raw;
    e->told_mj = now;
    return now;
}

static void begin_item(struct text *t, unsigned id, bool first)
{
    text_put(t, first ? "\"" : ",\"");
    text_put_u64(t, id);
    text_put(t, "\":");
}

static void put_number(struct text *t, const char *key, uint64_t value)
{
    text_put(t, key);
    text_put_u64(t, value);
}

/* Writes one board's part of an answer to t; else returns the reason. */
static const char *put_board(struct zeusd *z, struct text *t, const struct node_view *v,
                             const struct view_board *b, enum zeusd_read what)
{
    uint32_t mw;

    switch (what) {
    case ZR_ENERGY:
        if (!(b->last.has & GPU_HAS_ENERGY))
            return b->info->abilities & GPU_CAN_ENERGY ? SILENT : CANNOT;
        put_number(t, "{\"energy_mj\":",
                   energy_mj(&z->energy[(size_t)(b - v->board)], b, v->now_ns));
        break;
    case ZR_POWER:
        if (!power_mw(b, &mw))
            return SILENT;
        text_put_u64(t, mw);
        return NULL;
    case ZR_LIMIT:
        mw = limit_mw(b);
        if (mw == 0)
            return b->info->abilities & GPU_CAN_LIMIT ? SILENT : CANNOT;
        put_number(t, "{\"power_limit_mw\":", mw);
        break;
    case ZR_RANGE:
        if (b->cap.limits.max_mw == 0)
            return CANNOT;
        put_number(t, "{\"min_power_limit_mw\":", b->cap.limits.min_mw);
        put_number(t, ",\"max_power_limit_mw\":", b->cap.limits.max_mw);
        break;
    default: /* ZR_PERSISTENCE */
        if (!b->info->has_persistence)
            return CANNOT;
        text_put(t, b->info->persistence ? "{\"enabled\":true" : "{\"enabled\":false");
        break;
    }
    text_put(t, "}");
    return NULL;
}

static uint64_t utc_ms(const struct node_view *v, uint64_t at_ns)
{
    int64_t age = (int64_t)(v->now_ns - at_ns);

    return (uint64_t)((v->utc_ns - age) / (int64_t)NS_PER_MS);
}

/* A snapshot has the time of its oldest sample. */
static uint64_t snapshot_ms(const struct node_view *v, const unsigned *ids, size_t n)
{
    uint64_t oldest = v->now_ns;

    for (size_t i = 0; i < n; i++) {
        const struct view_board *b = zeusd_board(v, ids[i]);
        if (b->last.has && b->last.at_ns < oldest)
            oldest = b->last.at_ns;
    }
    return utc_ms(v, oldest);
}

static void read_boards(struct zeusd *z, struct http_exchange *x, const unsigned *ids,
                        size_t n, enum zeusd_read what)
{
    const struct node_view *v = zeusd_look(z);
    struct zeusd_errors errors = {0};
    struct text t = {0};
    bool first = true;

    if (what == ZR_POWER) {
        put_number(&t, "{\"timestamp_ms\":", snapshot_ms(v, ids, n));
        text_put(&t, ",\"power_mw\":{");
    } else {
        text_put(&t, "{");
    }
    for (size_t i = 0; i < n; i++) {
        struct text one = {0};
        const char *why = put_board(z, &one, v, zeusd_board(v, ids[i]), what);
        if (why) {
            zeusd_error(&errors, ids[i], why == CANNOT ? 400 : 500, why);
        } else {
            begin_item(&t, ids[i], first);
            text_put(&t, one.at ? one.at : "");
            t.failed = t.failed ? t.failed : one.failed;
            first = false;
        }
        text_free(&one);
    }
    text_put(&t, what == ZR_POWER ? "}}" : "}");
    if (errors.status) {
        text_free(&t);
        zeusd_errors_reply(x, &errors);
    } else {
        zeusd_json(x, &t);
    }
}

/* ---- CPUs ---- */

static const struct view_rapl *find_rapl(const struct node_view *v, const char *kind,
                                         unsigned cpu)
{
    char name[32];

    (void)snprintf(name, sizeof name, "%s-%u", kind, cpu);
    for (size_t i = 0; i < v->n_rapl; i++)
        if (strcmp(v->rapl[i].name, name) == 0)
            return &v->rapl[i];
    return NULL;
}

size_t zeusd_packages(const struct node_view *v)
{
    unsigned n = 0;

    while (n < BOARDS_MAX && find_rapl(v, "package", n))
        n++;
    return n;
}

bool zeusd_has_dram(const struct node_view *v, unsigned cpu)
{
    return find_rapl(v, "dram", cpu) != NULL;
}

static void put_uj(struct text *t, const char *key, const struct view_rapl *r)
{
    text_put(t, key);
    if (r)
        text_put_u64(t, (uint64_t)(r->energy_j * 1e6));
    else
        text_put(t, "null");
}

static uint32_t rapl_mw(const struct view_rapl *r)
{
    return r->power_w.known ? mw_of_w(r->power_w.v) : 0;
}

static void put_cpu_mw(struct text *t, const struct node_view *v, unsigned cpu)
{
    const struct view_rapl *dram = find_rapl(v, "dram", cpu);

    put_number(t, "\"cpu_mw\":", rapl_mw(find_rapl(v, "package", cpu)));
    text_put(t, ",\"dram_mw\":");
    if (dram)
        text_put_u64(t, rapl_mw(dram));
    else
        text_put(t, "null");
}

static void read_cpus(struct zeusd *z, struct http_exchange *x, const unsigned *ids,
                      size_t n, const struct zq_value *q, enum zeusd_read what)
{
    const struct node_view *v = zeusd_look(z);
    struct text t = {0};

    if (what == ZR_CPU_POWER) {
        put_number(&t, "{\"timestamp_ms\":", utc_ms(v, v->now_ns));
        text_put(&t, ",\"power_mw\":{");
    } else {
        text_put(&t, "{");
    }
    for (size_t i = 0; i < n; i++) {
        begin_item(&t, ids[i], i == 0);
        text_put(&t, "{");
        if (what == ZR_CPU_POWER) {
            put_cpu_mw(&t, v, ids[i]);
        } else {
            put_uj(&t, "\"cpu_energy_uj\":",
                   q[1].truth ? find_rapl(v, "package", ids[i]) : NULL);
            put_uj(&t, ",\"dram_energy_uj\":",
                   q[2].truth ? find_rapl(v, "dram", ids[i]) : NULL);
        }
        text_put(&t, "}");
    }
    text_put(&t, what == ZR_CPU_POWER ? "}}" : "}");
    zeusd_json(x, &t);
}

/* ---- streams ---- */

static void send_board(struct zeusd_follower *f, const struct node_view *v, size_t i)
{
    const struct view_board *b = &v->board[i];
    char text[128];
    uint32_t mw;

    if (!power_mw(b, &mw) || mw == f->told_mw[i])
        return;
    f->told_mw[i] = mw;
    (void)snprintf(text, sizeof text,
                   "{\"timestamp_ms\":%" PRIu64 ",\"gpu_id\":%u,\"power_mw\":%u}",
                   utc_ms(v, b->last.at_ns), b->info->index, mw);
    (void)http_stream_send(f->stream, NULL, text);
}

static void send_cpu(struct zeusd_follower *f, const struct node_view *v, unsigned cpu)
{
    const struct view_rapl *r = find_rapl(v, "package", cpu);
    struct text t = {0};

    if (!r || !r->power_w.known || rapl_mw(r) == f->told_mw[cpu])
        return;
    f->told_mw[cpu] = rapl_mw(r);
    put_number(&t, "{\"timestamp_ms\":", utc_ms(v, v->now_ns));
    put_number(&t, ",\"cpu_id\":", cpu);
    text_put(&t, ",");
    put_cpu_mw(&t, v, cpu);
    text_put(&t, "}");
    if (!t.failed)
        (void)http_stream_send(f->stream, NULL, t.at);
    text_free(&t);
}

static void tell_follower(struct zeusd_follower *f, const struct node_view *v)
{
    size_t n = f->cpu ? zeusd_packages(v) : v->n_boards;

    for (size_t i = 0; i < n && i < BOARDS_MAX; i++) {
        if (!(f->ids & (1ull << i)))
            continue;
        if (f->cpu)
            send_cpu(f, v, (unsigned)i);
        else
            send_board(f, v, i);
    }
}

void zeusd_followers_tell(struct zeusd *z)
{
    const struct node_view *v = NULL;

    for (size_t i = 0; i < n_elements(z->follower); i++) {
        if (!z->follower[i].stream)
            continue;
        v = v ? v : zeusd_look(z);
        tell_follower(&z->follower[i], v);
    }
}

static void on_closed(struct http_stream *stream, void *user)
{
    struct zeusd_follower *f = user;
    (void)stream;
    f->stream = NULL;
}

static void follow(struct zeusd *z, struct http_exchange *x, const unsigned *ids,
                   size_t n, bool cpu)
{
    const struct node_view *v = zeusd_look(z);
    struct zeusd_follower *f = z->follower, *end = f + n_elements(z->follower);
    uw_error err = {"too many streams are open"};

    while (f < end && f->stream)
        f++;
    struct http_stream_opts opts = {.on_closed = on_closed, .user = f};
    struct http_stream *stream = NULL;
    if (f == end || http_stream_begin(x, &opts, &stream, &err) < 0) {
        http_fail(x, 429, "%s", err.text);
        return;
    }
    *f = (struct zeusd_follower){.z = z, .stream = stream, .cpu = cpu};
    memset(f->told_mw, 0xff, sizeof f->told_mw);
    for (size_t i = 0; i < n; i++)
        f->ids |= 1ull << (cpu ? ids[i] : zeusd_place(v, ids[i]));
    tell_follower(f, v);
}

/* ---- routes ---- */

/* The devices named in x, or all.  False: x has been answered. */
static bool select_devices(struct zeusd *z, struct http_exchange *x, const char *text,
                           enum zeusd_read what, unsigned ids[ZQ_IDS], size_t *n)
{
    const struct node_view *v = zeusd_look(z);
    bool cpu = what >= ZR_CPU_ENERGY, stream = what == ZR_STREAM || what == ZR_CPU_STREAM;
    size_t all = cpu ? zeusd_packages(v) : v->n_boards;
    const char *device = cpu ? "CPU" : "GPU";
    char error[ZQ_ERROR];
    struct text bad = {0}, there = {0};

    *n = 0;
    if (text && !zq_ids(text, device, ids, n, error)) {
        zeusd_bad(x, 400, error);
        return false;
    }
    for (size_t i = 0; !text && i < all && i < ZQ_IDS; i++)
        ids[(*n)++] = cpu ? (unsigned)i : v->board[i].info->index;
    for (size_t i = 0; i < *n; i++) {
        if (cpu ? ids[i] < all : zeusd_place(v, ids[i]) < all)
            continue;
        if (!stream) {
            (void)snprintf(error, sizeof error, "%s %u not found", device, ids[i]);
            zeusd_bad(x, 400, error);
            return false;
        }
        text_put(&bad, bad.len > 0 ? ", " : "");
        text_put_u64(&bad, ids[i]);
    }
    if (bad.len == 0)
        return true;
    for (size_t i = 0; i < all; i++) {
        text_put(&there, i > 0 ? ", " : "");
        text_put_u64(&there, cpu ? i : v->board[i].info->index);
    }
    http_fail(x, 400, "Unknown %s indices: [%s]. Available: [%s]", device, bad.at,
              there.at ? there.at : "");
    text_free(&bad);
    text_free(&there);
    return false;
}

void zeusd_read(struct zeusd *z, struct http_exchange *x, enum zeusd_read what)
{
    static const struct zq_field GPU[] = {{"gpu_ids", ZQ_MAY_TEXT}},
                                 CPU[] = {{"cpu_ids", ZQ_MAY_TEXT},
                                          {"cpu", ZQ_BOOL},
                                          {"dram", ZQ_BOOL}};
    struct zq_value q[ZQ_FIELDS] = {{0}};
    bool cpu = what >= ZR_CPU_ENERGY;
    char error[ZQ_ERROR];
    unsigned ids[ZQ_IDS];
    size_t n;

    if (!zq_read(x, cpu ? CPU : GPU, what == ZR_CPU_ENERGY ? 3 : 1, q, error)) {
        zeusd_plain(x, 400, "Query deserialize error: %s", error);
        return;
    }
    if (!select_devices(z, x, q[0].there ? q[0].text : NULL, what, ids, &n))
        return;
    if (what == ZR_STREAM || what == ZR_CPU_STREAM)
        follow(z, x, ids, n, cpu);
    else if (cpu)
        read_cpus(z, x, ids, n, q, what);
    else
        read_boards(z, x, ids, n, what);
}
