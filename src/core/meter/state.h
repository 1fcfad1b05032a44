/* State of a meter, for the files of this folder only. */
#ifndef CORE_METER_STATE_H
#define CORE_METER_STATE_H

#include "base/rng.h"
#include "core/meter/edges.h"
#include "core/meter/fold.h"
#include "core/meter/meter.h"

enum {
    POINTS = 4096, /* most entries of a series or of the readings */
    FEW = 128,     /* entries allocated at first */
    BLOCK = 64,    /* of a series; divides FEW */
    MARKS = 64,
    EVENTS = 64,
    COARSE = 8192, /* most chunks */
    COARSE_FEW = 32,
};
#define COARSE_S 10.0 /* length of a chunk; doubled when COARSE are full */
#define FOLD_AROUND_S 10.0
#define HISTORY_LEAST_S 60.0

/* Energy at time t since the series began. */
struct point {
    double t, e;
    double dt;  /* standard deviation of t, from an error that all points share */
    double own; /* the same, from an error of this point only */
    double var; /* variance of the unobserved energy since the series began, J^2 */
};

/* A ring that grows while its oldest entry is younger than keep_s. */
struct ring {
    size_t room, n, head; /* head: index of the next entry */
    double keep_s;
    bool full; /* the next entry replaces the oldest, or one has */
};

/* Lowest and highest mean power between points. */
struct extremes {
    double lo, hi;
};

/* The newest points of a series, in a ring. */
struct series {
    struct point *p;
    struct ring at;
    struct extremes
        block[POINTS / BLOCK]; /* extremes of BLOCK entries, once the block is full */
    struct point last;
};

/* The range of a board's power at any moment, W. */
struct levels {
    double lo, hi;
};

struct reading {
    double end; /* end of the time that the reading averages */
    double w;
    double published; /* estimated */
};

/* What happened to a source within [t0, t1], and the standard deviation it adds.  Where
 * there are too many, one stands for several of its kind.
 */
struct event {
    double t0, t1, sd_j;
    double blind2; /* sum of the squared lengths of its stretches, s^2 */
    double swing;  /* range of the board's power before it, W */
    uint32_t why;
    bool counter; /* false: the sensor */
};

/* A marked time, and the energy of both series at that time once settled. */
struct mark {
    double t;
    bool settled;
    double counter_j, counter_sd, read_j, read_sd, read_var;
    double tail_j, tail_sd; /* from the mark to the end of its chunk */
};

/* Energy of a stretch that has left the ring: the counter's where it was used at that
 * time, else by the fold.
 */
struct chunk {
    double t0, t1, e, sd;
    double counter_j, read_j, read_var; /* the series at t1 */
    uint32_t why;
};

enum counter_class { CLASS_UNKNOWN, CLASS_TRUE, CLASS_FED };

/* How many ticks of period_s up to time `to` do not differ from the one before; tick_w:
 * the last of them, -1: none that counts.
 */
struct calm {
    double period_s, to, tick_w;
    size_t n;
};

/* The fits of the last fold: of readings over `span`, up to time `to`, in [lo, hi]. */
struct fitted {
    struct fold_set set;
    double to, span, lo, hi;
};

struct meter {
    struct meter_opts opts;
    struct sensor sensor; /* the reading that is used */
    uint32_t sensor_has;  /* its enum meter_has */
    struct rng rng;
    uint64_t origin_ns, last_ns;
    bool any;
    bool paced; /* meter_pace() was called */

    /* counter */
    struct edges c_edges;
    struct series c;
    uint64_t raw;
    bool c_any, c_moved, c_stuck, proved;
    bool varies;                   /* its recent ticks differed */
    double c_same_from, c_same_at; /* the last poll that saw raw */
    double c_changed;              /* the first poll that saw raw */
    double c_late, c_overdue; /* the last poll that saw it overdue, and by how much */
    unsigned c_moves;         /* r_moves until its next change was due */
    struct calm calm;
    double mismatch;
    enum counter_class class;
    double judged;

    /* readings */
    struct edges r_edges;
    struct series r;
    struct reading *ring;
    struct ring at;
    double w, r_same_from, r_same_at, r_changed, r_stuck_from;
    double r_top;
    unsigned same, fresh; /* polls in a row with the same value; changes seen */
    unsigned r_moves;     /* changes of the reading, all of them */
    bool r_any, r_stuck;
    size_t r_calm; /* number of newest readings that do not differ from the one before */

    struct mark marks[MARKS];
    size_t n_marks;
    struct event events[EVENTS];
    size_t n_events;
    struct chunk *chunks;
    size_t n_chunks, chunks_room;
    bool chunks_lost;
    double chunk_s;
    double next_at; /* s; planned time of the next sample */
    double period_s;
    struct fitted fitted;
    uint64_t resets, wraps, refused, gaps;
};

double meter_s(const struct meter *m, uint64_t ns);
/* Number of readings that end before t. */
size_t meter_readings_before(const struct meter *m, double t);

/* ---- series.c ---- */

/* Index for one more entry of `size` bytes. oldest_s: age of the oldest entry.  The ring
 * grows while that is below keep_s and memory is available.
 */
size_t ring_next(struct ring *r, void **items, size_t size, double oldest_s);
/* Index of the i-th oldest. */
static inline size_t ring_at(const struct ring *r, size_t i)
{
    size_t at = r->head + r->room - r->n + i; /* below twice the room */
    return at >= r->room ? at - r->room : at;
}

/* false: no memory. */
bool series_init(struct series *s, double keep_s);
void series_add(struct series *s, struct point p);
/* i-th oldest point of the ring. */
static inline const struct point *series_at(const struct series *s, size_t i)
{
    return &s->p[ring_at(&s->at, i)];
}
/* Energy at t, and the standard deviation of its error, where the board draws no less
 * than may->lo and no more than may->hi; false: t lies outside the ring.
 */
bool series_energy(const struct series *s, double t, const struct levels *may,
                   double *ret_j, double *ret_sd);
/* Variance of the unobserved energy up to t; outside of the ring, that of the nearer end.
 */
double series_var(const struct series *s, double t);
/* Adds variance to the energy after `from`. */
void series_doubt(struct series *s, double from, double var);
/* Lowest and highest mean power between points within [a, b]. */
void series_range(const struct series *s, double a, double b, double *ret_lo,
                  double *ret_hi);

/* ---- feed.c, judge.c ---- */

static inline const struct reading *reading_at(const struct meter *m, size_t i)
{
    return &m->ring[ring_at(&m->at, i)];
}
void meter_event(struct meter *m, struct event e);
/* The energy of [a, b] by the readings; the last reading is extended. */
double meter_read_energy(const struct meter *m, double a, double b, double *ret_sd);
/* What the board may draw. */
struct levels meter_may(const struct meter *m);
/* The range of the board's power over the last minute. */
double meter_swing(const struct meter *m);
/* How long neither counter nor reading has changed although the board was polled; 0:
 * something has changed.
 */
double meter_frozen_s(const struct meter *m);
/* The longest time by which the counter was overdue in recent polls; 0: it was not. */
double meter_overdue_s(const struct meter *m);
/* Whether the sensor samples only part of the time. */
bool sensor_part_time(const struct meter *m);
/* Whether the counter is known to measure more than a part-time sensor does, or there is
 * no such sensor.  A load in step with the sensor looks steady, also in a counter that
 * the sensor feeds.
 */
bool counter_certain(const struct meter *m);
/* Whether differences of the counter may be used as energy. */
bool counter_usable(const struct meter *m);
void meter_judge(struct meter *m, double now);
/* Whether the power of a tick or reading differs from the one before.  level: of both;
 * last < 0: there is none.
 */
bool meter_differs(double w, double last, double level);

/* ---- window.c ---- */

/* Energy of a series up to t, as windows take it; false: unknown there. */
bool meter_energy_at(const struct meter *m, bool counter, double t, double *ret_j);
/* Whether a source knows windows from a to b. */
bool meter_knows(const struct meter *m, bool counter, double a, double b);

/* Computes marks and chunks before their samples leave the ring. 0 or -ENOMEM. */
int meter_settle(struct meter *m);

#endif
