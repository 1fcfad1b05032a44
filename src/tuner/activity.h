/* The activities of a tuner, one row and one file each.  An activity chooses the next
 * caps and interprets the windows of the hold; the tuner moves the caps, waits, measures
 * and books.  Search, safe cap and rest follow each other; the others start from a hold
 * and return to it: slack and lock by changing the caps of the hold, check and gap by
 * steps of their own.
 *
 * To add one: an id below, its file with its struct tuner_activity, a row in activity.c,
 * its state in struct tuner (tuner-table.h, set up in tuner.c).
 */
#ifndef TUNER_ACTIVITY_H
#define TUNER_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/optimum/counterfactual.h"
#include "core/optimum/gap-probe.h"
#include "core/optimum/search.h"
#include "tuner/board-caps.h"
#include "tuner/saved-fields.h"
#include "tuner/savings.h"
#include "tuner/window-energy.h"

/* In the order of their calls in a hold. */
enum activity_id {
    ACTIVITY_SEARCH, /* the search, or a cap by name */
    ACTIVITY_SAFE,   /* progress is unknown: the safe cap, or none */
    ACTIVITY_REST,   /* nothing can be measured: the original for a while */
    ACTIVITY_SLACK,  /* caps of single boards in a hold */
    ACTIVITY_LOCK,   /* locks of the SM clock in a hold */
    ACTIVITY_CHECK,  /* out of a hold: measures the reference */
    ACTIVITY_GAP,    /* out of a hold: measures in gaps between measured caps */
    ACTIVITIES_N,
};

/* The input of the activities' decisions; borrowed for a call. */
struct activity_now {
    struct search *search;         /* NULL: a cap by name */
    const struct savings *savings; /* of the regime under way */
    const struct board_caps *caps;
    uint32_t original_mw;  /* the highest of the boards */
    uint32_t reference_mw; /* the highest cap that is possible */
    uint32_t rules_mw;     /* the highest that rules allow; UINT32_MAX: any */
    uint32_t measured_mw;  /* the cap of the reference windows; 0: none yet */
    uint32_t held_mw;      /* the cap held, if there is one */
    uint32_t cap_mw;       /* of the step under way */
    double ramp_mw_s;      /* gradual descent to a cap that the tuner chooses */
    double peak_w;         /* at the reference; 0: unknown */
    double trained_s;      /* in all regimes */
    double window_s;       /* the shortest window of the hold */
    unsigned windows;      /* booked so far */
    bool inferred;         /* launches or a period stand for steps */
    bool moved, measures;  /* whether another activity has moved caps, or measures */
    uint64_t now_ns;
    /* In on_hold() only: the window and the basis of its energy. */
    const struct search_window *window;
    const struct window_energy *energy;
};

enum activity_verdict {
    ACTIVITY_STAYS = 0, /* another window at the same caps */
    ACTIVITY_BEGINS,    /* the activity begins: want() has its step */
    ACTIVITY_GOES,      /* other caps or locks are held: the hold's windows begin anew */
    ACTIVITY_OVER,      /* back to the cap of the hold */
};

enum activity_news {
    ACTIVITY_STALL,  /* no progress; true: this activity has caused it, and ends */
    ACTIVITY_HALT,   /* original caps at once; the hold may continue later */
    ACTIVITY_END,    /* the hold is over */
    ACTIVITY_REGIME, /* the job has changed */
};

enum activity_way {
    ACTIVITY_THERE = 0, /* caps and locks are in place */
    ACTIVITY_WALKS,     /* not yet */
    ACTIVITY_NEXT,      /* a cap may follow now: the step is repeated */
};

/* The cap of a step. */
struct activity_target {
    bool hold;
    uint32_t cap_mw; /* of the step */
    uint32_t at_mw;  /* the present position of the claims */
};

/* What is kept of a job's activities from one tuner to the next. */
struct activity_kept {
    struct reference_checks checks; /* share is not used */
    struct gap_probes gap_checks;   /* of the last regime; most is not used */
};

/* Each function may be NULL. */
struct tuner_activity {
    const char *name;
    /* A window of the hold was booked. */
    enum activity_verdict (*on_hold)(void *self, const struct activity_now *now);
    /* During the activity: the next step. */
    void (*want)(const void *self, const struct activity_now *now,
                 struct search_step *ret);
    /* The cap to claim if the others request mw. */
    uint32_t (*target)(void *self, const struct activity_target *step, uint32_t mw);
    /* The cap of board i in a hold at mw. */
    uint32_t (*board_mw)(const void *self, size_t i, uint32_t mw);
    /* The claims are met.  hold: the cap is held, and the job runs. */
    enum activity_way (*walk)(void *self, bool hold, uint64_t now_ns);
    /* After ACTIVITY_WALKS: when to call again without a report; UINT64_MAX: never. */
    uint64_t (*late_ns)(const void *self);
    void (*see)(void *self);            /* for each read of the steps in an open window */
    bool (*moved)(const void *self);    /* caps or locks differ from those of the hold */
    bool (*measures)(const void *self); /* other measurements must wait */
    bool (*on_news)(void *self, enum activity_news news);
    /* Members of struct activity_kept in the job's saved state. */
    const struct saved_field *saved;
    size_t n_saved;
};
extern const struct tuner_activity *const activities[ACTIVITIES_N];
extern const struct tuner_activity activity_search, activity_safe, activity_rest,
    activity_slack, activity_lock, activity_check, activity_gap;

/* ---- all of a tuner's activities: self[id] is the state of each ---- */

/* Calls each in turn; *ret_id: the activity of the verdict. */
enum activity_verdict activities_on_hold(void *const *self, struct activity_now *now,
                                         enum activity_id *ret_id);
uint32_t activities_target(void *const *self, const struct activity_target *step);
uint32_t activities_board_mw(void *const *self, size_t i, uint32_t mw);
enum activity_way activities_walk(void *const *self, bool hold, uint64_t now_ns);
uint64_t activities_late_ns(void *const *self);
void activities_see(void *const *self);
bool activities_moved(void *const *self);
/* Calls each until one returns true; returns whether one did. */
bool activities_on_news(void *const *self, enum activity_news news);

#endif
