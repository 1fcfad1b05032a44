/* What the files of node.h share: node.c (beginning, boards, end), node-view.c (what it
 * shows), node-caps.c (caps, actuator), node-jobs.c (roster, searches, books),
 * node-ledger.c (rows, what is taken over), node-windows.c (clients' windows), node-ask.c
 * (who may ask for what), node-rights.c (rights that are lost).
 */
#ifndef NODE_NODE_INSIDE_H
#define NODE_NODE_INSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/sampler.h"
#include "core/meter/mean.h"
#include "energy/attribution.h"
#include "energy/client-windows.h"
#include "gpu/backends.h"
#include "io/ledger-queue.h"
#include "io/ledger.h"
#include "jobs/history.h"
#include "jobs/job-key.h"
#include "jobs/job-phase.h"
#include "node/node.h"
#include "tuner/searches.h"

enum {
    NODE_TICK_MS = 1000,
    NODE_REOPEN_S = 10,   /* between looks for boards where there are none */
    NODE_SILENT_S = 30,   /* until boards are opened again as one said nothing … */
    NODE_REOPENS_MAX = 9, /* … doubled so often: 4 h at last */
    NODE_END_S = 5,       /* everything given back and written by then */
    NODE_MARK_S = 5,      /* between looks whether the driver was loaded anew */
    NODE_KEEP_JOB_S = 60, /* an ended job is shown and booked to for so long */
    NODE_WATCHES_MAX = 256,
    NODE_REFUSALS_MAX = 64,
    REASON_BITS = VIEW_REASONS,
};

/* The claim that was last withdrawn because its user had lost the right to it. */
struct node_lost {
    uint64_t at_ns; /* 0: none was */
    uint64_t id;
    char text[240];
};

/* A board on its way out of our hands and back (board-detach.c). */
struct node_detach {
    enum {
        DETACH_HERE = 0,
        DETACH_BOOKING,   /* let go by caps, until what it has taken is booked */
        DETACH_ACTUATOR,  /* until the actuator has let go of the driver on it … */
        DETACH_DRIVER,    /* … and we have */
        DETACH_GONE,      /* it can be reset */
        DETACH_RETURNING, /* attached, until it has given a sample */
    } phase;
    bool unseen; /* was away when all were opened: nothing is known of it but who it is */
    bool asked;  /* the actuator, and has not answered */
    bool told;   /* … that it cannot, which was said */
    uint64_t since_ns;
    uint64_t hold_off_ns; /* it comes back so long after it went; 0: when asked for */
    uint64_t energy_mj;   /* its counter when it went; 0 unknown */
    caps_done_fn fn;      /* to be told once; NULL: none */
    void *user;
    struct node *node;
};

/* What the node keeps of a board beside the others' parts. */
struct node_board {
    struct node_detach away;
    struct sampler *sampler;
    uint64_t seen_ns; /* the sample that was told to caps last */
    struct mean_power mean;
    double rest_w;  /* power when nobody was on it; 0 unknown */
    bool rest_busy; /* the driver told of use when nobody was on it */
    double throttle_s[REASON_BITS];
    struct node_lost lost;
};

/* What is shown of a board while all are opened anew. */
struct node_kept {
    struct gpu_info info;
    struct claims claims;
};

/* … and of a job beside the roster's. */
struct node_job_rec {
    uint64_t id;
    bool admin; /* an administrator began it: its caps need no other right */
    bool asked; /* a search or a cap by name */
    bool search;
    struct goal goal;
    struct cap_arg cap;
    char cls[CONFIG_WORD];          /* "" default */
    char same[JOB_KEY_TEXT];        /* what makes it the same as another; "" nothing */
    double before_j, before_half_j; /* booked by earlier runs */
    struct job_entry last;          /* as it was when it ended */
    struct job_phase *follow;       /* its boards' telemetry; NULL: not asked for */
    uint64_t followed;              /* boards that it hears */
    struct view_phase phase;        /* now */
    bool phase_booked;              /* … has stood for so long that it counts */
    uint64_t ended_ns;              /* 0: runs */
};

/* A claim that ends with a process. */
struct node_watch {
    struct node *node; /* NULL: free */
    uint64_t claim;
    pid_t pid;
    int fd;
    struct loop_fd *source;
};

enum node_say { NODE_SAY_REFUSED, NODE_SAY_WITHDRAWN };

/* Refusals of one cause, so that each is written down once a while. */
struct node_refusal {
    enum node_say what;
    uid_t uid;
    uint64_t cause, told_ns, again;
};

struct node {
    struct loop *loop;
    struct node_opts opts;
    struct node_config config;
    char source[GPU_BOARDS_TEXT]; /* of the boards */
    char hostname[CONFIG_WORD];
    char boot_id[40];

    /* What hangs on the boards: opened and closed together. */
    struct boards *boards;
    struct window_worker *folds; /* where windows of the meters are computed */
    bool open;                   /* boards are there, and everything over them */
    struct node_board board[BOARDS_MAX];
    size_t n, silent; /* … of which so many said nothing when they were opened */
    unsigned reopens; /* for their sake, one after the other */
    struct caps *caps;
    struct roster *roster;
    struct attribution *book;
    struct client_windows *windows;
    struct searches *tunings;
    struct ledger *ledger; /* until the queue has it */
    int64_t utc_ahead_ns;  /* of the loop's time, at the last tick; 0: none yet */
    enum ledger_trouble ledger_trouble;
    char ledger_text[200];          /* why it was not written when we began; "" it was */
    uint64_t ledger_lost;           /* rows that earlier queues lost */
    struct ledger_batch *rest;      /* rows that wait while boards are opened anew … */
    char rest_uuid[BOARDS_MAX][96]; /* … and the boards that they tell of */
    struct ledger_batch *early;     /* rows until there is a queue */
    struct ledger_queue *queue;
    struct loop_timer *flush;
    bool flushing;             /* … is due */
    struct history *history;   /* what searches measured */
    struct loop_worker *saver; /* writes searches' states */
    struct attribution_board before[BOARDS_MAX];
    struct loop_timer *tick, *reopen;
    struct node_kept *kept; /* NULL: they are open, or never were */
    size_t n_kept;
    uw_error boards_error;

    /* Boards that are released; bits of the driver's order and of ours. */
    struct {
        uint64_t devices;       /* the driver is not open on these … */
        struct gpu_info *known; /* … of all these */
        size_t n_known;
        int64_t until_ns[BOARDS_MAX]; /* as was kept; -1: until asked */
        uint64_t actuator; /* ours: the actuator that is connected has let go of them */
        bool moving;       /* boards_attach() is under way … */
        uint64_t asked;    /* … with these of ours */
        struct loop_timer *timer;
    } away;

    struct node_cpu *cpu; /* processors; NULL: not looked at */

    struct actuator *actuator;
    bool actuator_ready;
    struct loop_timer *connect;
    unsigned connects; /* in vain since the last that worked */
    char actuator_text[200];
    char budget_state[8]; /* told last; "" nothing yet */

    struct node_job_rec *job[ROSTER_MAX];
    size_t n_jobs;
    struct node_watch watch[NODE_WATCHES_MAX];
    struct node_refusal refusal[NODE_REFUSALS_MAX];
    uint64_t refused_untold; /* counted alone */
    enum claim_end how;      /* why claims are being withdrawn, for the audit trail */

    bool ready, ending, leave_caps;
    uint64_t began_ns, ticked_ns, marked_ns;
    node_listen_fn listen;
    void *listen_user;
    int (*on_end)(struct node *node, void *user);
    void *end_user;
    unsigned end_waits;
    struct loop_timer *end_timer;
    uint64_t config_loads, config_failures;
    struct view_board view_board[BOARDS_MAX];
    struct view_job *view_job;
    size_t cap_view_job;
    struct node_view view;
};

void node_tell(struct node *node, enum node_event event, const void *what);
int64_t node_utc(const struct node *node, uint64_t at_ns); /* of a time of the loop */
const struct gpu_info *node_info(const struct node *node, size_t board);

/* node-view.c: the boards are to be closed for a while: what is known of them, and their
 * claims, stays in view until node_keep_no_more().
 */
void node_keep(struct node *node);
void node_keep_no_more(struct node *node);

/* node-caps.c */
int node_caps_start(struct node *node, uint64_t first_claim, uw_error *err);
void node_caps_configure(struct node *node);
void node_caps_seen(struct node *node); /* each tick */
int node_actuator_start(struct node *node, uw_error *err);
void node_actuator_stop(struct node *node);

/* node-jobs.c */
int node_jobs_start(struct node *node, uint64_t first_job, uw_error *err);
void node_jobs_stop(struct node *node);
void node_jobs_tick(struct node *node, uint64_t now_ns);
struct node_job_rec *node_job_rec(struct node *node, uint64_t id); /* or NULL */
/* A record for a job; NULL: ROSTER_MAX are there, or out of memory. */
struct node_job_rec *node_job_rec_new(struct node *node, uint64_t id);
void node_job_rec_drop(struct node *node, uint64_t id);
void node_job_rec_free(struct node_job_rec *rec);
/* Its search or cap by name begins.  state: saved by an earlier run, or NULL. */
int node_search_begin(struct node *node, const struct job_entry *job,
                      struct node_job_rec *rec, const char *state, uw_error *err);

/* node-phases.c: of a job that runs, each tick; at its end. */
void node_phases_tick(struct node *node, struct node_job_rec *rec, uint64_t now_ns);
void node_phases_on_caps(struct node *node, const struct caps_what *what);
void node_phases_end(struct node_job_rec *rec);

/* Writes text to a file beside the ledger, soon; NULL: removes it.  fn (may be NULL) once
 * that is done, or cannot be.
 */
void node_save(struct node *node, const char *path, const char *text,
               void (*fn)(struct node *node));

/* A search wants windows of this board. */
bool node_is_searched(struct node *node, size_t board);

/* node-history.c: what the last run of a job measured, for its next */
int node_history_start(struct node *node, uw_error *err);
bool node_history_earlier(uint64_t job, uint64_t boards, struct tuner_earlier *ret,
                          void *user);
void node_history_learnt(uint64_t job, uint64_t boards, const struct tuner_report *r,
                         void *user);

/* node-attribution.c: each stretch of each board, to jobs, idle and the rest */
int node_attribution_start(struct node *node, uw_error *err);
void node_attribution_stop(struct node *node);
void node_attribution_turn(struct node *node, size_t board);
void node_attribution_cap(struct node *node, size_t board, uint32_t enforced_mw);
void node_attribution_forget(struct node *node, uint64_t job);
void node_attribution_detach(struct node *node, size_t board, bool away);
void node_attribution_board(struct node *node, size_t i, struct view_board *ret);
void node_attribution_job(struct node *node, uint64_t id, struct view_job *ret);

/* board-detach.c: boards that are released */
int node_detach_start(struct node *node,
                      uw_error *err); /* with what an earlier run kept */
void node_detach_opts(const struct node *node, struct gpu_open_opts *opts);
int node_detach_open(struct node *node,
                     uw_error *err); /* the boards are there, and caps */
void node_detach_close(struct node *node);
/* Whatever is due: each tick, and soon after node_detach_kick(). */
void node_detach_step(struct node *node);
void node_detach_kick(struct node *node);
void node_detach_actuator_gone(struct node *node);
/* What was kept of an earlier run is of another machine, say. */
void node_detach_forget(struct node *node, const char *why);
bool node_is_detached(const struct node *node, size_t board);
/* caps_release(), and then the handles; fn when they are given up, or cannot be. */
int node_detach_release(struct node *node, size_t board, uint64_t hold_off_ns,
                        caps_done_fn fn, void *user, uw_error *err);

/* node-windows.c: windows that clients hold open */
int node_windows_start(struct node *node, uw_error *err);
void node_windows_stop(struct node *node);

/* node-ledger.c */
int node_ledger_open(struct node *node, uw_error *err);
/* The boards are known: what was booked before, jobs and claims of earlier runs. */
int node_ledger_boards(struct node *node, uw_error *err);
int node_ledger_take_over(struct node *node, uw_error *err);
int node_ledger_start(struct node *node, uw_error *err); /* from now on by the queue */
void node_ledger_keep(struct node *node);
void node_ledger_end(struct node *node);
void node_ledger_stop(struct node *node);
/* Where a search's state is kept beside the ledger. */
void node_state_path(const struct node *node, uint64_t job, char *ret, size_t size);
void node_ledger_energy(struct node *node, const struct attribution_row *row);
void node_ledger_total(struct node *node, const struct attribution_total *total);
/* Each tick: says when UTC was set. */
void node_ledger_tick(struct node *node);
/* How long rows are kept, once the configuration was read anew. */
void node_ledger_configure(struct node *node);
void node_ledger_job(struct node *node, const struct job_entry *job);
void node_ledger_search(struct node *node, const struct ledger_search *s);
void node_ledger_caps(struct node *node, const struct caps_what *what);
/* board SIZE_MAX, uid (uid_t)-1: of none. */
void node_ledger_event(struct node *node, const char *kind, size_t board, uid_t uid,
                       const char *text);

/* node-rights.c: claims whose user has lost the right to them are withdrawn here; after
 * each look at who is on the board, and when a job begins or changes.
 */
void node_rights_check(struct node *node, size_t board);

/* node.c: opens the boards for the first time; from then on by itself. */
int node_boards_begin(struct node *node, uw_error *err);

/* node-rapl.c: processors, opened once, before the boards; booked while there is a
 * ledger, which comes and goes with the boards.
 */
int node_rapl_start(struct node *node, uw_error *err);
void node_rapl_stop(struct node *node);
/* What the ledger calls them; returns how many. */
size_t node_rapl_domains(const struct node *node,
                         struct ledger_domain ret[LEDGER_DOMAINS]);
void node_rapl_books_start(struct node *node);
void node_rapl_books_stop(struct node *node);
/* Ends all stretches; returns how many times fn will be called with the node. */
unsigned node_rapl_books_end(struct node *node,
                             int (*fn)(struct attribution *b, void *user));
void node_rapl_turn(struct node *node); /* jobs are about to change */
void node_rapl_forget(struct node *node, uint64_t job);
/* Ask this actuator for descriptors of counters that root alone may open. */
void node_rapl_ask(struct node *node, struct actuator *act);
const struct view_rapl *node_rapl_look(struct node *node, size_t *ret_n);

/* node-ask.c */
void node_watches_stop(struct node *node);
/* A claim of an earlier run that ends with a process is watched again; false: that
 * process has ended.
 */
bool node_watch_again(struct node *node, const struct claim *claim);
/* What is said to the log and the ledger, once a cause, board and minute for each user.
 */
void node_say_once(struct node *node, enum node_say what, size_t board, uid_t uid,
                   const char *who, const uw_error *why);
/* Refuse: *err has the text; written down once a cause and minute.  Returns r. */
int node_refuse(struct node *node, const struct node_who *who, int r,
                const uw_error *err);

#endif
