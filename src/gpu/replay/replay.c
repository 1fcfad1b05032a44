#include "gpu/replay/replay.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"

enum { BOARDS_MAX = 64, ROWS_MAX = 2000000, COLUMNS_MAX = 16 };

struct row {
    uint64_t at_ns; /* since the trace's first row */
    struct gpu_sample sample;
};

struct gpu_dev {
    struct lib *lib;
    struct gpu_info info;
    struct row *row;
    size_t n, cap;
    size_t next; /* the first row that lies in the future */
};

struct lib {
    struct gpu_clock clock;
    struct gpu_about about;
    uint64_t opened_ns;
    double first_s; /* time_s of the trace's first row */
    bool has_first;
    struct gpu_dev *dev;
    size_t n, cap;
};

static void replay_close(void *user)
{
    struct lib *lib = user;

    if (!lib)
        return;
    for (size_t i = 0; i < lib->n; i++)
        free(lib->dev[i].row);
    free(lib->dev);
    free(lib);
}
DEFINE_AUTO(struct lib *, replay_close);

/* ---- columns ---- */

static void take_power(struct gpu_sample *s, double v)
{
    s->power_w = v;
}

static void take_instant(struct gpu_sample *s, double v)
{
    s->instant_w = v;
}

static void take_average(struct gpu_sample *s, double v)
{
    s->average_w = v;
}

static void take_energy(struct gpu_sample *s, double v)
{
    s->energy_mj = (uint64_t)llround(v * 1000);
}

static void take_enforced(struct gpu_sample *s, double v)
{
    s->enforced_mw = mw_of_w(v);
}

static void take_requested(struct gpu_sample *s, double v)
{
    s->requested_mw = mw_of_w(v);
}

static void take_util(struct gpu_sample *s, double v)
{
    s->util_gpu = (uint32_t)v;
}

static void take_temp(struct gpu_sample *s, double v)
{
    s->temp_c = (int32_t)lround(v);
}

static void take_clock(struct gpu_sample *s, double v)
{
    s->sm_mhz = (uint32_t)v;
}

struct column {
    const char *name;
    uint32_t has; /* 0: no reading */
    uint32_t can;
    double min, max;
    void (*put)(struct gpu_sample *s, double v);
};

enum { COLUMN_TIME, COLUMN_UUID, COLUMN_NAME };
static const struct column columns[] = {
    [COLUMN_TIME] = {"time_s", 0, 0, -1e15, 1e15, NULL},
    [COLUMN_UUID] = {"uuid", 0, 0, 0, 0, NULL},
    [COLUMN_NAME] = {"name", 0, 0, 0, 0, NULL},
    {"power_w", GPU_HAS_POWER, 0, 0, 1e5, take_power},
    {"instant_w", GPU_HAS_INSTANT, GPU_CAN_INSTANT, 0, 1e5, take_instant},
    {"average_w", GPU_HAS_AVERAGE, GPU_CAN_AVERAGE, 0, 1e5, take_average},
    {"energy_j", GPU_HAS_ENERGY, GPU_CAN_ENERGY, 0, 1e15, take_energy},
    {"enforced_w", GPU_HAS_ENFORCED, 0, 0, 1e5, take_enforced},
    {"requested_w", GPU_HAS_REQUESTED, 0, 0, 1e5, take_requested},
    {"util_percent", GPU_HAS_UTIL, GPU_CAN_UTIL, 0, 100, take_util},
    {"temp_c", GPU_HAS_TEMP, GPU_CAN_TEMP, -100, 200, take_temp},
    {"sm_mhz", GPU_HAS_CLOCKS, GPU_CAN_CLOCKS, 0, 1e5, take_clock},
};

struct header {
    size_t column[COLUMNS_MAX];
    size_t n;
};

static int parse_header(char *line, struct header *ret, uw_error *err)
{
    bool seen[n_elements(columns)] = {false};
    const char *word;

    while ((word = strsep(&line, ",")) != NULL) {
        size_t i = 0;
        while (i < n_elements(columns) && strcmp(columns[i].name, word) != 0)
            i++;
        if (i == n_elements(columns))
            return fail(err, -EINVAL, "unknown column '%s'", word);
        if (seen[i] || ret->n == COLUMNS_MAX)
            return fail(err, -EINVAL, "column '%s' appears twice", word);
        seen[i] = true;
        ret->column[ret->n++] = i;
    }
    if (!seen[COLUMN_TIME] || !seen[COLUMN_UUID])
        return fail(err, -EINVAL, "the columns time_s and uuid are mandatory");
    return 0;
}

/* ---- rows ---- */

struct line {
    double time_s;
    const char *uuid, *name;
    uint32_t can;
    struct gpu_sample sample;
};

static int parse_field(const struct column *c, const char *text, struct line *ret,
                       uw_error *err)
{
    double v;

    if (c == &columns[COLUMN_UUID]) {
        ret->uuid = text;
        return 0;
    }
    if (c == &columns[COLUMN_NAME]) {
        ret->name = text;
        return 0;
    }
    if (!*text && c->put)
        return 0;
    int r = parse_double(text, &v, err);
    if (r < 0)
        return fail_in(err, r, "%s", c->name);
    if (v < c->min || v > c->max)
        return fail(err, -EINVAL, "%s: %g is outside %g..%g", c->name, v, c->min, c->max);
    if (!c->put) {
        ret->time_s = v;
        return 0;
    }
    c->put(&ret->sample, v);
    ret->sample.has |= c->has;
    ret->can |= c->can;
    return 0;
}

static int parse_line(char *text, const struct header *h, struct line *ret, uw_error *err)
{
    const char *word;
    size_t i = 0;

    while ((word = strsep(&text, ",")) != NULL) {
        if (i == h->n)
            return fail(err, -EINVAL, "more than the %zu fields of the header", h->n);
        int r = parse_field(&columns[h->column[i++]], word, ret, err);
        if (r < 0)
            return r;
    }
    if (i < h->n)
        return fail(err, -EINVAL, "%zu fields, the header has %zu", i, h->n);
    if (!*ret->uuid || strlen(ret->uuid) >= sizeof((struct gpu_info *)0)->uuid)
        return fail(err, -EINVAL, "uuid: '%.100s' is not a valid name", ret->uuid);
    return 0;
}

static int find_board(struct lib *lib, const struct line *line, struct gpu_dev **ret,
                      uw_error *err)
{
    for (size_t i = 0; i < lib->n; i++) {
        if (strcmp(lib->dev[i].info.uuid, line->uuid) == 0) {
            *ret = &lib->dev[i];
            return 0;
        }
    }
    int r = array_grow(&lib->dev, &lib->cap, lib->n, BOARDS_MAX);
    if (r < 0)
        return fail(err, r, "no room for more than %zu boards", lib->n);
    struct gpu_dev *dev = &lib->dev[lib->n];
    *dev = (struct gpu_dev){.info = {.index = (unsigned)lib->n, .simulated = true}};
    (void)snprintf(dev->info.uuid, sizeof dev->info.uuid, "%s", line->uuid);
    (void)snprintf(dev->info.name, sizeof dev->info.name, "%.80s" GPU_NAME_RECORDED,
                   line->name && *line->name ? line->name : "board");
    utf8_mend(dev->info.name);
    lib->n++;
    *ret = dev;
    return 0;
}

static int add_line(struct lib *lib, const struct line *line, uw_error *err)
{
    struct gpu_dev *dev = NULL;

    int r = find_board(lib, line, &dev, err);
    if (r < 0)
        return r;
    if (!lib->has_first) {
        lib->first_s = line->time_s;
        lib->has_first = true;
    }
    if (line->time_s < lib->first_s)
        return fail(err, -EINVAL, "time_s: %g is before the first row's", line->time_s);
    uint64_t at_ns = ns_of_s(line->time_s - lib->first_s);
    if (dev->n > 0 && at_ns <= dev->row[dev->n - 1].at_ns)
        return fail(err, -EINVAL, "time_s: %g is not after this board's previous row",
                    line->time_s);
    r = array_grow(&dev->row, &dev->cap, dev->n, ROWS_MAX);
    if (r < 0)
        return fail(err, r, "no room for more than %zu rows", dev->n);
    dev->row[dev->n++] = (struct row){.at_ns = at_ns, .sample = line->sample};
    dev->info.abilities |= line->can;
    return 0;
}

static int read_trace(struct lib *lib, FILE *file, unsigned *ret_no, uw_error *err)
{
    struct header header = {.n = 0};
    char text[1024];

    for (*ret_no = 1; fgets(text, sizeof text, file); (*ret_no)++) {
        size_t len = strcspn(text, "\r\n");
        if (len == sizeof text - 1)
            return fail(err, -EINVAL, "the line is longer than %zu bytes", len);
        text[len] = '\0';
        if (text[0] == '#' || text[0] == '\0')
            continue;
        struct line line = {.uuid = ""};
        int r = header.n == 0 ? parse_header(text, &header, err)
                              : parse_line(text, &header, &line, err);
        if (r == 0 && line.uuid[0])
            r = add_line(lib, &line, err);
        if (r < 0)
            return r;
    }
    return ferror(file) ? fail(err, -EIO, "cannot be read to its end") : 0;
}

static int replay_look(const char *path, struct gpu_about *ret, uw_error *err)
{
    struct gpu_about about = {.simulated = true, .recorded = true, .clock = "0:1"};
    char real[PATH_MAX];

    if (access(path, R_OK) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!realpath(path, real)) /* readable, but without a path */
        (void)snprintf(real, sizeof real, "%s", path);
    int n = snprintf(about.state_dir, sizeof about.state_dir, "%s.underwatt", real);
    if (n < 0 || (size_t)n >= sizeof about.state_dir)
        return fail(err, -ENAMETOOLONG, "%s: the path is too long", path);
    (void)snprintf(about.library, sizeof about.library, "%.255s", real);
    *ret = about;
    return 0;
}

static const struct gpu_about *replay_about(const void *user)
{
    const struct lib *lib = user;

    return &lib->about;
}

static int replay_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    auto_(replay_close) struct lib *lib = calloc(1, sizeof *lib);
    auto_(file_close) FILE *file = fopen(opts->source, "re");
    unsigned no = 0;

    if (!lib)
        return fail(err, -ENOMEM, "no memory for a trace");
    if (!file)
        return fail(err, -errno, "%s: %s", opts->source, strerror(errno));
    int r = replay_look(opts->source, &lib->about, err);
    if (r < 0)
        return r;
    r = read_trace(lib, file, &no, err);
    if (r < 0)
        return fail_in(err, r, "%s:%u", opts->source, no);
    if (lib->n == 0)
        return fail(err, GPU_ABSENT, "%s: no rows", opts->source);
    lib->clock = opts->clock;
    lib->opened_ns = opts->clock.now_ns(opts->clock.user);
    for (size_t i = 0; i < lib->n; i++)
        lib->dev[i].lib = lib;
    *ret_lib = take(lib);
    return 0;
}

static size_t replay_count(const void *user)
{
    const struct lib *lib = user;

    return lib->n;
}

static struct gpu_dev *replay_at(void *user, size_t i)
{
    struct lib *lib = user;

    return i < lib->n ? &lib->dev[i] : NULL;
}

static const struct gpu_info *replay_info(const struct gpu_dev *dev)
{
    return &dev->info;
}

static int replay_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                         uw_error *err)
{
    const struct gpu_clock *clock = &dev->lib->clock;
    const uint64_t now = clock->now_ns(clock->user);
    const uint64_t at = now - dev->lib->opened_ns;

    while (dev->next < dev->n && dev->row[dev->next].at_ns <= at)
        dev->next++;
    if (dev->next == 0)
        return fail(err, -ENODEV, "no row of the trace yet");
    if (dev->next == dev->n && at > dev->row[dev->n - 1].at_ns + NS_PER_S)
        return fail(err, -ENODEV, "the trace has ended");
    struct gpu_sample s = dev->row[dev->next - 1].sample;
    s.has &= want;
    s.began_ns = s.energy_began_ns = now;
    s.at_ns = s.energy_at_ns = now;
    *ret = s;
    return 0;
}

/* The board's model is unknown: assume the least accurate sensors. */
static void replay_sensors(const struct gpu_dev *dev, struct sensor_model *ret)
{
    static const struct sensor part = {.update_s = 0.1, .window_s = 0.025, .lag_s = 0.02};

    (void)dev;
    *ret = (struct sensor_model){
        .power = part,
        .instant = part,
        .average = {.update_s = 0.1, .window_s = 1.0, .lag_s = 0.02},
        .counter_update_s = 0.1,
        .counter_unit_j = 1e-3,
    };
}

const struct gpu_backend replay_backend = {
    .name = "replay",
    .open = replay_open,
    .close = replay_close,
    .count = replay_count,
    .at = replay_at,
    .info = replay_info,
    .sample = replay_sample,
    .sensors = replay_sensors,
    .about = replay_about,
    .look = replay_look,
};

const struct gpu_backend_row replay_row = {
    .backend = &replay_backend,
    .source = GPU_SOURCE_FILE,
    .asked_alone = true,
};
