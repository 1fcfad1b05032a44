/* Slack between the boards of a job whose searched cap is held: core/slack/slack.h says
 * which board gets which cap; here its caps are asked for and its windows told.  Never
 * above the cap that is held.
 *
 * Under a node's budget, where the goal is time, the cap held is every board's share, and
 * watts move between these shares.  The claims of the search stay at the originals, what
 * each board gets is the budget's doing (tuner_caps.split).
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

struct slack_search {
    struct board_caps *caps;
    const struct tuner_notes *notes;
    struct goal goal;
    double most; /* part by which the job's time may grow; 0: slack is not looked for */

    struct slack *machine; /* NULL: none under way */
    bool out;              /* not tried again in this hold */
    bool budget;           /* watts move inside the job's part of a budget … */
    bool moving;           /* … and are on their way, since */
    uint64_t moving_ns;
    uint32_t held_mw; /* the cap of all boards that it began at */
    uint32_t cap_mw[BOARDS_MAX];
    uint32_t from_mw[BOARDS_MAX]; /* on the way down: from here */
};

/* What is held, and a window of it. */
struct slack_search_seen {
    const struct search *search;
    const struct savings *savings;
    uint32_t cap_mw;
    const struct search_window *window;
    const double *board_j; /* of the whole window, … */
    double took_s;         /* … which took this long */
    uint64_t now_ns;
};
enum slack_search_verdict {
    SLACK_SEARCH_STAYS = 0,
    SLACK_SEARCH_WALKS,  /* the ramp goes from *ret_from_mw to *ret_to_mw */
    SLACK_SEARCH_MOVES,  /* watts are on their way between shares … */
    SLACK_SEARCH_BEGINS, /* … for the first time: claims go back to the originals */
    SLACK_SEARCH_OVER,   /* boards go back to the cap that is held */
};
/* A window of the hold is told. */
enum slack_search_verdict slack_search_on_window(struct slack_search *s,
                                                 const struct slack_search_seen *seen,
                                                 uint32_t *ret_from_mw,
                                                 uint32_t *ret_to_mw);
/* What board i gets in the hold while the ramp is at mw. */
uint32_t slack_search_cap(const struct slack_search *s, size_t i, uint32_t mw);
/* Where the ramp has to go for a step of the search at cap_mw: lower in a hold with
 * slack.  A step that is not that hold ends slack.
 */
uint32_t slack_search_target(struct slack_search *s, bool hold, uint32_t cap_mw);
/* Under a budget: watts are still on their way from board to board. */
bool slack_search_walks(struct slack_search *s, uint64_t now_ns);
/* Boards have different caps now. */
bool slack_search_moved(const struct slack_search *s);
/* Another measurement would be in its way. */
bool slack_search_measures(const struct slack_search *s);
/* The job made no progress.  True: boards had different caps; they will not. */
bool slack_search_stall(struct slack_search *s);
void slack_search_end(struct slack_search *s);

#endif
