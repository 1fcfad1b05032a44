/* The model of `underwatt top`.  Model and drawing are pure; top-screen uses the
 * terminal, cmd-top the daemon.
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
    TOP_HISTORY = 500, /* samples kept for the graphs */
    TOP_TEXT = 96,
    TOP_WHY = 240,
    TOP_WASTERS = 64,
    TOP_FILTER = 64,
    TOP_EVENTS = 64,
};

/* NaN: unknown, in all of these. */
struct top_claim {
    char kind[12], who[TOP_TEXT], why[TOP_TEXT];
    double cap_w, left_s; /* left: infinite without an end of its own */
    bool wins, of_job;    /* of a job: until the job ends, else until withdrawn */
};

struct top_board {
    unsigned index;
    char uuid[TOP_TEXT], name[TOP_TEXT];
    char state[16], by[TOP_WHY], text[TOP_TEXT];
    double power_w, cap_w, target_w, original_w, max_w;
    double temp_c, util, clock_mhz, today_j;
    char use[16];               /* "working", or a class of waste (docs/waste.md) */
    double use_s, memory_bytes; /* for how long; of processes on it */
    uint64_t job;               /* the first one on it; 0: none */
    size_t n_jobs;
    double history_w[TOP_HISTORY]; /* a ring buffer, see top.looks; NaN: unknown */
    bool past_asked;               /* its history was asked of the daemon */
    struct top_claim claim[TOP_CLAIMS];
    size_t n_claims;
    bool claims_known;
    bool others; /* another Underwatt holds the board: by */
};

struct top_job {
    uint64_t id;
    char user[32], name[TOP_TEXT], gpus[TOP_TEXT], state[TOP_TEXT], goal[32], phase[16];
    uint64_t boards; /* a bit for each index */
    double saved, saved_half, energy_j, time_s;
};

/* A user or a project, of the jobs that wasted some today. */
struct top_waster {
    char name[TOP_TEXT];
    double energy_j, time_s, money;
    double priced_j; /* energy for which the cost is known */
};

struct top_wasted {
    struct top_waster of[TOP_WASTERS]; /* the most energy first */
    size_t n;
    struct top_waster rest; /* the sum of those beyond */
    size_t n_rest;
};

/* A change that the view has seen. */
struct top_event {
    char clock[16];  /* UTC, "14:03:22" */
    uint64_t boards; /* those that changed so at this time; 0: a job did */
    char text[TOP_WHY + TOP_TEXT];
};

enum top_sort { TOP_SORT_ID, TOP_SORT_ENERGY, TOP_SORT_SAVED, TOP_SORT_TIME, TOP_SORTS };

struct top {
    char host[TOP_TEXT], clock[16]; /* clock: UTC, "14:03:22" */
    bool simulated, dry_run, read_only;
    double budget_w; /* of the node; 0: none */
    struct top_board board[TOP_BOARDS];
    size_t n_boards;
    struct top_job job[TOP_JOBS];
    size_t n_jobs;
    uint64_t looks;    /* samples taken so far */
    double look_s;     /* time between two */
    char trouble[200]; /* why the figures are outdated; or "" */
    struct top_wasted users, projects;
    char currency[16];
    char wasted_to[8];        /* UTC, "14:03": the end of these; "": no answer yet */
    char wasted_trouble[200]; /* why they are unknown; or "" */
    struct top_event event[TOP_EVENTS]; /* a ring buffer */
    size_t n_events;                    /* of all times */
    char began[16];                     /* clock of the first answer; "": none yet */

    /* State of the viewer. */
    size_t picked; /* board */
    size_t first_job;
    enum top_sort sort;
    bool frozen, help, claims, waste; /* not claims and waste at once */
    char filter[TOP_FILTER];          /* "": everything is shown */
    bool typing;                      /* keys go into the filter */
};

/* Take answers of GET /v1/node, /v1/gpus and /v1/jobs.  -EINVAL: of another form;
 * nothing has changed.
 */
int top_take_node(struct top *t, const struct json_value *node, uw_error *err);
int top_take_gpus(struct top *t, const struct json_value *gpus, uw_error *err);
int top_take_jobs(struct top *t, const struct json_value *jobs, uw_error *err);
/* Takes the answer of GET /v1/gpus/N/explain for the picked board. */
int top_take_claims(struct top *t, const struct json_value *explain, uw_error *err);
/* Takes the answer of GET /v1/gpus/N/history: fills the samples before the next one.
 * -EINVAL: of another form; nothing has changed.
 */
int top_take_history(struct top *t, const struct json_value *history, uw_error *err);
/* Takes the answer of GET /v1/report?waste=true. */
int top_take_waste(struct top *t, const struct json_value *report, uw_error *err);
/* Notes what changed of a board, together with boards that changed in the same way at
 * the same time, and of a job; old NULL: a new one; now NULL: it ended. */
void top_note_board(struct top *t, const struct top_board *old,
                    const struct top_board *now);
void top_note_job(struct top *t, const struct top_job *old, const struct top_job *now);
/* Adds a sample of the current powers to the graphs. */
void top_tick(struct top *t);

enum top_key {
    TOP_KEY_OTHER = 0,
    TOP_KEY_QUIT,
    TOP_KEY_HELP,
    TOP_KEY_CLAIMS,
    TOP_KEY_WASTE,
    TOP_KEY_SORT,
    TOP_KEY_FREEZE,
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_FILTER,
    TOP_KEY_ENTER,
    TOP_KEY_ESCAPE,
    TOP_KEY_BACKSPACE,
};
/* text: the character of the key, for the filter; "": it has none.  True: leave the view.
 */
bool top_key(struct top *t, enum top_key key, const char *text);

/* Whether the filter matches: its text occurs, in upper or lower case, in one of the
 * shown texts; of a board also if its UUID begins with it, or if the filter matches the
 * first job on the board.
 */
bool top_shows_board(const struct top *t, const struct top_board *b);
bool top_shows_job(const struct top *t, const struct top_job *j);
/* The boards that match the filter, as indices of top.board. */
struct top_shown {
    size_t at[TOP_BOARDS];
    size_t n;
    size_t picked; /* index of `at`: the picked board, else one near it */
};
struct top_shown top_boards_shown(const struct top *t);
/* Picks another board where the picked one is not shown any more. */
void top_repick(struct top *t);
/* Keys that concern the filter; false: it is none of them. */
bool top_filter_key(struct top *t, enum top_key key, const char *text);

void top_draw(const struct top *t, struct grid *g);

/* Rows of the parts of the view: what each could use, and what it gets. */
struct top_needs {
    unsigned boards;
    unsigned cause;   /* of the picked board's cap, if its row cuts it */
    unsigned list;    /* with its head: the jobs, or what the viewer chose instead */
    unsigned jobs;    /* with their head, if `list` is another list */
    unsigned details; /* of the picked board, if `list` is not its claims */
    unsigned events;
};
struct top_layout {
    unsigned boards, graphs, list, jobs, details, events, cause;
    unsigned bands, beside; /* of graphs: `bands` above each other, of `beside` */
};
enum { TOP_LIST_LEAST = 4 };
/* Distributes the rows of a terminal.  The sum with the first line, the head of the
 * boards and the line of keys is at most `rows`, on terminals of 4 rows or more.
 */
struct top_layout top_layout(unsigned rows, unsigned cols, const struct top_needs *need);
/* The same for what the view shows now. */
struct top_layout top_layout_now(const struct top *t, unsigned rows, unsigned cols);

/* Rows that a list of the view of waste would take, its head among them; 0: left out. */
unsigned top_wasted_rows(const struct top *t, const struct top_wasted *w);
/* Distributes `room` rows: two to each list that needs any, in order, then one after the
 * other to those that need more.
 */
enum { TOP_LISTS = 3 };
void top_share_rows(const unsigned need[TOP_LISTS], unsigned room,
                    unsigned got[TOP_LISTS]);
/* Draws a list in 2 rows or more: those that do not fit are summed in the last one. */
void top_draw_wasted(const struct top *t, const struct top_wasted *w, const char *head,
                     struct grid *g, unsigned row, unsigned rows);

#endif
