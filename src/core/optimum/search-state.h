/* The state of a search (search.h), for the files search*.c alone, and what these share.
 */
#ifndef CORE_OPTIMUM_SEARCH_STATE_H
#define CORE_OPTIMUM_SEARCH_STATE_H

#include "core/optimum/level.h"
#include "core/optimum/outlook.h"
#include "core/optimum/past.h"
#include "core/optimum/search.h"
#include "core/optimum/window-log.h"

/* Time and energy at the held cap now: a job drifts while it is held.  Logarithms, per
 * unit of work.
 */
struct drift {
    unsigned n;                /* windows of this hold */
    double log_t, log_e;       /* moving averages of the last ones */
    double offset_t, offset_e; /* subtracted from the logarithms of each new window */
};

struct search {
    struct search_setup setup;
    uint32_t hard_mw;  /* SEARCH_NO_LIMIT: none */
    uint32_t stall_mw; /* the highest cap that stalled; 0: none */
    uint32_t dear_mw;  /* the bound's time was spent near it: tried above it; 0: any */
    struct level levels[LEVELS_MAX];
    size_t n_levels;
    bool has_reference;
    bool rises;            /* the reference is to be measured at a higher cap */
    size_t reference;      /* its level is at unbound_mw, where that is known */
    uint32_t reference_mw; /* the cap that the reference was measured at */
    uint32_t unbound_mw;   /* the lowest cap known to have no effect; 0: none */
    uint32_t again_mw; /* the last window was EFFECT_AGAIN at this cap; 0: it was not */
    double peak_w;
    unsigned windows, misses;
    unsigned spent;       /* windows, each counted by its length */
    unsigned windows_max; /* limit of spent */
    struct choice held;   /* before the look; mw 0: no look is in progress */
    char held_why[SEARCH_WHY_MAX];
    struct drift drift;
    bool holding;
    bool waits;            /* for time that the bound leaves */
    uint32_t waits_mw;     /* the last cap for which it left none; 0: none */
    unsigned waited;       /* windows of such holds since the search's last window */
    bool earlier;          /* levels contains those of an earlier run */
    bool denied;           /* levels of an earlier run were discarded */
    struct choice best;    /* to be held now */
    struct past past;      /* earlier regimes of this job */
    struct window_log log; /* slowdown:F: of this regime */
    struct noise noise;    /* estimated from them at the last proposal */
    struct search_step step;
    struct outlook outlook;           /* of the last proposal or gap probe */
    struct level scratch[LEVELS_MAX]; /* no content between calls */
};

/* This run's level of the cap; NULL: none. */
struct level *search_level(const struct search *s, uint32_t mw);
uint32_t search_up_to_grain(const struct search *s, double mw);
/* Caps without effect stand for the lowest of them. */
uint32_t search_effective(const struct search *s, uint32_t mw);
/* The highest cap allowed: the original unless a hard limit lies below. */
uint32_t search_highest(const struct search *s);
/* The lowest cap allowed: soft floor, board minimum, above a cap that stalled. */
uint32_t search_lowest(const struct search *s);
/* Whether the noise is estimated from the windows and their times. */
bool search_noise_known(const struct search *s);

enum effect {
    EFFECT_ANY, /* it had one, or that is not known */
    EFFECT_NONE,
    EFFECT_AGAIN, /* none in this window: one more at the same cap must agree */
};
/* Of the cap of this window.  Without one it is one more window of the reference. */
enum effect search_effect(const struct search *s, const struct search_window *w);
/* The next step is at cap_mw; the rest says why. */
__attribute__((format(printf, 4, 5))) void search_go(struct search *s,
                                                     enum search_kind kind,
                                                     uint32_t cap_mw, const char *format,
                                                     ...);
enum { SEARCH_UNTRIED_MAX = 80 };
/* slowdown:F: what a search that ends adds to its reason about the last cap for which the
 * bound left no time; "": there was none, or it or a lower one was measured.
 */
void search_untried(const struct search *s, char ret[SEARCH_UNTRIED_MAX]);
/* Chooses the next step. */
void search_go_next(struct search *s);

#endif
