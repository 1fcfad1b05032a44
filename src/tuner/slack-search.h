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

/* activity_slack's state; caps, notes, goal and most are set by the caller. */
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
};

#endif
