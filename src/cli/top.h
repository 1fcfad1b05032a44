/* What `underwatt top` knows and shows.  Model and drawing are pure; the terminal is
 * top-screen's, the daemon cmd-top's.
 */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/grid.h"
#include "io/json.h"
#include "underwatt/error.h"

enum {
    TOP_BOARDS = 64,
    TOP_JOBS = 256,
    TOP_CLAIMS = 32,
    TOP_HISTORY = 240, /* looks kept for the sparklines */
    TOP_TEXT = 96,
};

/* NaN stands for unknown in all of these. */
struct top_claim {
    char kind[12], who[TOP_TEXT], why[TOP_TEXT];
    double cap_w, left_s; /* left: infinite without a time of its own … */
    bool wins, of_job;    /* … of a job: until that ends, else until withdrawn */
};

struct top_board {
    unsigned index;
    char uuid[TOP_TEXT], name[TOP_TEXT];
    char state[16], by[TOP_TEXT], text[TOP_TEXT];
    double power_w, cap_w, target_w, original_w, max_w;
    double temp_c, util, clock_mhz, today_j;
    double history_w[TOP_HISTORY]; /* a ring; see top.looks */
    struct top_claim claim[TOP_CLAIMS];
    size_t n_claims;
};

struct top_job {
    uint64_t id;
    char user[32], name[TOP_TEXT], gpus[TOP_TEXT], state[TOP_TEXT], goal[32], phase[16];
    double cap_w, saved, saved_half, energy_j, time_s;
};

enum top_sort { TOP_SORT_ID, TOP_SORT_ENERGY, TOP_SORT_SAVED, TOP_SORT_TIME, TOP_SORTS };

struct top {
    char host[TOP_TEXT], clock[16]; /* clock: UTC, "14:03:22" */
    bool simulated, dry_run, read_only;
    struct top_board board[TOP_BOARDS];
    size_t n_boards;
    struct top_job job[TOP_JOBS];
    size_t n_jobs;
    uint64_t looks;    /* rounds taken into the histories so far */
    char trouble[200]; /* "" or why there is nothing new */

    /* The viewer's own. */
    size_t picked; /* board */
    size_t first_job;
    enum top_sort sort;
    bool frozen, help, claims;
};

/* Answers of the API: GET /v1/node, /v1/gpus, /v1/jobs.  -EINVAL: not of that form,
 * and nothing has changed.
 */
int top_take_node(struct top *t, const struct json_value *node, uw_error *err);
int top_take_gpus(struct top *t, const struct json_value *gpus, uw_error *err);
int top_take_jobs(struct top *t, const struct json_value *jobs, uw_error *err);
/* GET /v1/gpus/N/explain of the picked board. */
int top_take_claims(struct top *t, const struct json_value *explain, uw_error *err);
/* One more column of the sparklines from the powers as they are now. */
void top_tick(struct top *t);

enum top_key {
    TOP_KEY_OTHER = 0,
    TOP_KEY_QUIT,
    TOP_KEY_HELP,
    TOP_KEY_CLAIMS,
    TOP_KEY_SORT,
    TOP_KEY_FREEZE,
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
};
/* True where the view is to be left. */
bool top_key(struct top *t, enum top_key key);

void top_draw(const struct top *t, struct grid *g);

#endif
