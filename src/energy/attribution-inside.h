/* Inside of the books; for book*.c alone. */
#ifndef ENERGY_ATTRIBUTION_INSIDE_H
#define ENERGY_ATTRIBUTION_INSIDE_H

#include "energy/attribution.h"

struct part_of { /* of a stretch: one user */
    struct split_user user;
    uint32_t phase;
};

struct stretch_of {
    struct stretch_of *next;
    uint64_t begin_ns, end_ns;
    uint32_t cap_mw;
    bool unsure; /* who was there when is not known */
    unsigned tries;
    size_t n;
    struct part_of part[];
};

struct savings_of { /* one board */
    struct attribution *book;
    size_t at;
    struct sampler *sampler;
    bool open, unsure, away;
    bool seen;         /* `who` was asked in the stretch under way … */
    uint64_t who;      /* … and said this */
    uint64_t begin_ns; /* of the stretch under way */
    uint32_t cap_mw;
    struct stretch_of *first; /* that waits for its energy, oldest first */
    size_t n_waiting;
    bool asking; /* its sampler is */
    uint64_t ask_ns;
    int64_t day; /* of today_j */
    struct attribution_board sum;
};

struct attribution {
    struct attribution_opts opts;
    uint64_t interval_ns;
    struct savings_of *account;
    size_t n;
    struct attribution_job *job;
    size_t n_jobs, jobs_room;
    struct loop_timer *timer;
    uint64_t turn_ns; /* all stretches end */
    bool ending;
    uint64_t end_by_ns;
    int (*on_end)(struct attribution *b, void *user);
    void *on_end_user;
};

/* A job's sum, made where there is none; NULL: no memory. */
struct attribution_job *attribution_job_at(struct attribution *b, uint64_t job);

/* attribution-rows.c: books a stretch; m NULL: its energy cannot be told. */
void attribution_rows(struct savings_of *a, const struct stretch_of *s,
                      const struct meter_result *m);

#endif
