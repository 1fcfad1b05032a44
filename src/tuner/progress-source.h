/* The unit of a job's progress, one row and one file each: steps that the job reports, a
 * number of its launches, a period of its boards' power; or none, while a unit is looked
 * for.  A source reports when its steps are certain and when they are lost, and closes
 * windows of whole steps at the cap in force.  It sets no cap.
 *
 * Sources receive the job's steps and analyses of its boards' power (progress-period.h),
 * and return news, which tuner_on_progress() turns into events.
 *
 * To add one: docs/contributing.md, "A progress source of the tuner".
 */
#ifndef TUNER_PROGRESS_SOURCE_H
#define TUNER_PROGRESS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"
#include "core/progress/rate.h"
#include "core/progress/window.h"
#include "tuner/board-caps.h"
#include "tuner/notes.h"
#include "tuner/progress-period.h"
#include "tuner/regimes.h"

/* The unit of a job's progress. */
enum tuner_by { PROGRESS_UNITS(NAME_ENUM) };
enum { PROGRESS_SOURCES = TUNER_BY_NOTHING + 1 };

enum progress_news {
    PROGRESS_GOES_ON = 0,
    PROGRESS_SURE,    /* steps are certain; inferred ones are in found */
    PROGRESS_UNKNOWN, /* no unit is certain for long */
    PROGRESS_WINDOW,  /* the window is closed */
    PROGRESS_DEAF,    /* nothing was found in a window */
    PROGRESS_LOST,    /* steps cannot be followed any more */
};

/* How a unit is looked for. */
struct progress_listen {
    bool anew;        /* only in later data */
    bool safe;        /* the job has the safe cap, or none: analyse rarely */
    double hold_s;    /* step time of a resumed hold, to be found again; 0: any */
    uint64_t sure_ns; /* nothing is certain before this time */
};

/* Steps that the job reports. */
struct progress_steps {
    double warm_s;          /* training time until they are certain */
    uint64_t seen_ns;       /* when they were last seen */
    uint64_t waits_ns;      /* begin of the last wait for steps that are certain */
    struct step_mark begun; /* when training had begun, */
    uint64_t begun_ns;      /* if after waits_ns */
};

/* A fixed number of launches (core/progress/rate.h). */
struct progress_launches {
    struct rate *(*rate)(void *rate_of); /* may be NULL, and may return NULL */
    void *rate_of;
    double unit;                 /* launches per step; 0: not chosen yet */
    struct rate_found now;       /* the last result */
    struct rate_found first;     /* that from which unit was chosen */
    struct rate_found regime_of; /* that of the regime under way */
    const char *word; /* why the rate is unknown; NULL: launches are not counted */
};

/* Windows of inferred steps: of launches and of periods. */
struct progress_inferred {
    double full_w;         /* power of all boards at the reference; 0: unknown */
    uint32_t reference_mw; /* 0: not measured yet */
    double period_s;       /* the last certain time of a step */
    uint32_t at_mw;        /* cap in force for period_s */
    uint64_t booked_ns;    /* stretches are booked up to here; 0: none */
    unsigned missed;       /* successive windows in which nothing was found */
};

/* A unit is looked for. */
struct progress_none {
    uint64_t sure_ns;     /* see struct progress_listen */
    uint64_t due_ns;      /* when progress counts as unknown */
    double candidate_s;   /* a period that was found once; 0: none */
    enum tuner_by likely; /* LAUNCHES or PERIOD: the more certain one of late */
};

/* The progress of a job.  The tuner sets the members before `by`, and warm_s, rate and
 * rate_of.
 */
struct progress {
    struct loop *loop;
    struct progress_period *power; /* NULL: nothing is inferred */
    struct energy_sum *meters;
    const struct board_caps *caps;
    struct regimes *regimes;
    const struct tuner_notes *notes;
    double window_s;             /* the shortest window */
    progress_period_fn on_power; /* called with each analysis */
    void *user;

    enum tuner_by by;                   /* what counts as a step now */
    enum tuner_by unit;                 /* of the steps measured in this regime */
    struct steps steps;                 /* as last read */
    struct window window;               /* under way, or closed */
    uint64_t from_ns;                   /* earlier samples and launches do not count */
    struct progress_period_heard found; /* the last result, of a period or launches */
    double period_s, confidence;        /* the last certain ones; 0: none */
    char unknown[80];                   /* why steps are not certain now; "": certain */
    double busy; /* see period_busy(), while not certain; NAN: unknown */

    /* The state of each source: */
    struct progress_steps told;
    struct progress_launches launches;
    struct progress_inferred inferred;
    struct progress_none none;
};

/* Each function may be NULL. */
struct progress_source {
    bool inferred;                      /* inferred from measurements */
    const char *missing, *lost, *found; /* for messages: what is missing, lost or found */
    /* The job's steps were read while the tuner waits; while it measures. */
    enum progress_news (*waits)(struct progress *p, uint64_t now_ns);
    enum progress_news (*on_steps)(struct progress *p, uint64_t now_ns);
    /* The boards' power was analysed while the tuner waits or measures. */
    enum progress_news (*on_power)(struct progress *p,
                                   const struct progress_period_heard *h);
    /* A window is requested, for which p->window is armed. */
    void (*ask)(struct progress *p);
    /* Whether its steps are those of the regime, whose unit it is. */
    bool (*same)(const struct progress *p);
    /* The source's steps count from now on. */
    void (*begin)(struct progress *p);
    double check_s; /* time at the first cap; 0: until enough steps are made */
    /* Seconds by which the next step is late; see steps_late_s(). */
    double (*late_s)(const struct steps *s, uint64_t now_ns, double factor,
                     double least_s);
    /* When steps are lost that are not seen; UINT64_MAX: they are. */
    uint64_t (*lost_ns)(const struct progress *p);
};
/* Describes for people what a tuner that has no certain steps waits for. */
void progress_awaits(const struct progress *p, char *ret, size_t size);
extern const struct progress_source *const progress_sources[PROGRESS_SOURCES];
extern const struct progress_source progress_by_steps, progress_by_launches,
    progress_by_period, progress_by_nothing;

/* ---- of the source that counts ---- */

static inline const struct progress_source *progress_source(const struct progress *p)
{
    return progress_sources[p->by];
}
/* Whether launches or a period stand for steps. */
static inline bool progress_is_inferred(const struct progress *p)
{
    return progress_source(p)->inferred;
}
/* Begins a window by rule; NULL: goes on listening for it. */
void progress_ask(struct progress *p, const struct window_rule *rule);
/* Discards the window under way and the stretch before it. */
void progress_forget(struct progress *p);
/* The cap changes, and with it the rate of launches, whatever counts. */
void progress_moved(struct progress *p, uint32_t from_mw, uint32_t to_mw);
/* Looks for a unit, for progress_by_nothing. */
void progress_listen(struct progress *p, const struct progress_listen *how);

enum progress_turn { PROGRESS_SAME, PROGRESS_OTHER_UNIT, PROGRESS_OTHER_WORK };
/* The certain unit counts from now on: compares it with the regime's steps. */
enum progress_turn progress_begin(struct progress *p);
/* Whether steps that were read count beside the source. */
bool progress_takes(const struct progress *p, const struct steps *steps);
/* Whether they replace the source: progress_count_steps(). */
bool progress_is_told(const struct progress *p, const struct steps *steps);
void progress_count_steps(struct progress *p);

/* ---- for sources ---- */

/* Stores that found is certain, or why it is not; more may be NULL. */
void progress_sure(struct progress *p);
void progress_unsure(struct progress *p, const char *why, const char *more);
/* Why a period is not certain. */
const char *progress_period_why(const struct progress_period_heard *h);
/* progress-inferred.c: settle_s: least time until a window begins; usable: found may be
 * the job's; why: see progress_unsure().
 */
void progress_inferred_ask(struct progress *p, double settle_s);
enum progress_news progress_inferred_judge(struct progress *p, bool usable,
                                           const char *why);
void progress_inferred_begin(struct progress *p);
/* The possible range of a step's time at the cap in force: near the last one at this cap,
 * else between those at the next higher and next lower measured caps.  False: unknown.
 */
bool progress_inferred_bounds(const struct progress *p, double *ret_least_s,
                              double *ret_most_s);
/* progress-launches.c: stores the rate, in the form of a period, while a unit is looked
 * for.  The job launches other kernels than those of the unit: chooses it anew.
 */
void progress_launches_look(struct progress *p, const struct progress_period_heard *h,
                            struct progress_period_heard *ret);
bool progress_launches_anew(struct progress *p, struct progress_period_heard *ret);

#endif
