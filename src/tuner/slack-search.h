/* Slack between the boards of a job during the hold of a searched cap.
 * core/slack/slack.h decides which board gets which cap, never above the held cap; this
 * file requests the caps and passes on the windows.
 *
 * With a node's budget and goal time, the held cap is every board's share, and watts move
 * between the shares: the search's claims are at the originals, and the budget sets each
 * board's cap (tuner_caps.split).
 */
#ifndef TUNER_SLACK_SEARCH_H
#define TUNER_SLACK_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/goal.h"
#include "core/optimum/search.h"
#include "core/slack/slack.h"
#include "tuner/board-caps.h"
#include "tuner/notes.h"
#include "tuner/savings.h"

enum slack_phase {
    SLACK_IDLE = 0,
    SLACK_OUT,    /* do not try again in this hold */
    SLACK_WORKS,  /* the machine is under way */
    SLACK_MOVING, /* likewise; the budget's new split is not in force yet, since moving_ns
                   */
};

struct slack_search {
    struct board_caps *caps;
    const struct tuner_notes *notes;
    struct goal goal;
    double most; /* part by which the job's time may grow; 0: slack is not used */

    enum slack_phase phase;
    struct slack *machine; /* NULL: SLACK_IDLE, SLACK_OUT */
    uint64_t moving_ns;
    uint32_t held_mw; /* the held cap of all boards when the machine began */
    uint32_t cap_mw[BOARDS_MAX];
    uint32_t from_mw[BOARDS_MAX]; /* begin of the ramp down */
};

/* A window of the hold. */
struct slack_search_seen {
    const struct search *search;
    const struct savings *savings;
    uint32_t cap_mw;
    const struct search_window *window;
    const double *board_j; /* each board's energy in the whole window */
    double took_s;         /* length of the window */
    uint64_t now_ns;
};
enum slack_search_verdict {
    SLACK_SEARCH_STAYS = 0,
    SLACK_SEARCH_WALKS,  /* the ramp goes from *ret_from_mw to *ret_to_mw */
    SLACK_SEARCH_MOVES,  /* watts move between shares */
    SLACK_SEARCH_BEGINS, /* likewise, the first time: claim the originals */
    SLACK_SEARCH_OVER,   /* boards return to the held cap */
};
/* Call after each window of the hold. */
enum slack_search_verdict slack_search_on_window(struct slack_search *s,
                                                 const struct slack_search_seen *seen,
                                                 uint32_t *ret_from_mw,
                                                 uint32_t *ret_to_mw);
/* The cap of board i in the hold while the ramp is at mw. */
uint32_t slack_search_cap(const struct slack_search *s, size_t i, uint32_t mw);
/* The target of the ramp for a step at cap_mw; lower in a hold with slack.  Any other
 * step ends slack.
 */
uint32_t slack_search_target(struct slack_search *s, bool hold, uint32_t cap_mw);
/* Whether a new split of the budget is not in force yet. */
bool slack_search_walks(struct slack_search *s, uint64_t now_ns);
/* Whether boards have different caps. */
bool slack_search_moved(const struct slack_search *s);
/* Whether it measures, so that other measurements must wait. */
bool slack_search_measures(const struct slack_search *s);
/* The job made no progress.  True: boards had different caps, slack has ended. */
bool slack_search_stall(struct slack_search *s);
void slack_search_end(struct slack_search *s);

#endif
