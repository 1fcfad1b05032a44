/* Internals shared by attribution.c and attribution-rows.c. */
#ifndef ENERGY_ATTRIBUTION_INSIDE_H
#define ENERGY_ATTRIBUTION_INSIDE_H

#include "energy/attribution.h"

struct part { /* one user's part of a stretch */
    struct split_user user;
    uint32_t phase;
    bool has_process; /* on the board, or that is not known */
};

struct readings { /* of the board's utilisation, 0 to 1 */
    unsigned n;
    double sum, top;
};

struct stretch {
    struct stretch *next;
    uint64_t begin_ns, end_ns;
    uint32_t cap_mw;
    bool unsure; /* the users are not known: unattributed */
    struct readings util;
    unsigned tries;
    size_t n;
    struct part part[];
};

struct account { /* one board */
    struct attribution *book;
    size_t at;
    struct sampler *sampler;
    bool open;         /* a stretch is under way */
    bool unsure, away; /* unsure: as in stretch, for the stretch under way */
    bool seen;         /* opts.who() was called in the stretch under way */
    uint64_t who;      /* its result; ATTRIBUTION_SOMEBODY if results differ */
    uint64_t begin_ns; /* of the stretch under way */
    uint32_t cap_mw;
    struct stretch *first; /* ended stretches that wait for their energy, oldest first */
    size_t n_waiting;
    bool asking;            /* the sampler has been asked for the first one */
    uint64_t ask_ns;        /* not asked before this time */
    uint64_t hurry_ns;      /* of attribution_hurry(): up to there nothing settles */
    struct sampler_ear ear; /* for util, of the stretch under way */
    struct readings util;
    struct waste_track track;
    uint64_t job[ROSTER_USERS]; /* users of the last booked stretch */
    size_t n_jobs;
    uint64_t booked_ns; /* end of the last booked stretch, also by UTC */
    int64_t booked_utc_ns;
    uint64_t judged_ns; /* begin of the stretch that `waste` is of */
    struct attribution_waste waste;
    int64_t day; /* of today_j, days since 1970 UTC */
    struct attribution_board sum;
};

struct attribution {
    struct attribution_opts opts;
    uint64_t interval_ns;
    struct account *account;
    size_t n;
    struct attribution_job *job;
    size_t n_jobs, jobs_room;
    struct loop_timer *timer;
    uint64_t turn_ns; /* when the interval and all stretches end */
    bool ending;
    uint64_t end_by_ns;
    int (*on_end)(struct attribution *b, void *user);
    void *on_end_user;
};

/* A job's sums, on that board; created if missing; NULL: no memory. */
struct attribution_job *attribution_job_at(struct attribution *b, uint64_t job);
struct attribution_part *attribution_part_at(struct attribution_job *job, size_t board);

/* attribution-waste.c: judges a stretch before it is booked; m NULL: as below. */
enum waste_state attribution_judge(struct account *a, const struct stretch *s,
                                   const struct meter_result *m);
/* The class of a row of that stretch has come out. */
void attribution_judged(struct account *a, const struct stretch *s,
                        enum waste_class class);
void attribution_on_sample(size_t board, const struct gpu_sample *s, void *user);
void attribution_add_readings(struct readings *to, const struct readings *r);

/* attribution-rows.c: books a stretch; m NULL: the energy is lost. */
void attribution_rows(struct account *a, const struct stretch *s,
                      const struct meter_result *m);

#endif
