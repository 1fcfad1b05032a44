/* `underwatt run` and `underwatt measure` while CMD runs, shared by job-node.c (what is
 * asked of the node and shown), job-child.c (CMD and its progress page) and job-own.c (a
 * node in this process).
 */
#ifndef CLI_JOB_INSIDE_H
#define CLI_JOB_INSIDE_H

#include "ask/own-node.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/job-cpu.h"
#include "cli/job-node.h"
#include "io/progress.h"
#include "jobs/job-progress.h"
#include "local/final-read.h"

struct remote {
    struct job_run *j;
    const char *const *argv;
    struct ask *daemon; /* borrowed from own, if that is there */
    struct daemon_address where;
    struct job_boards boards;
    struct loop *loop;
    struct loop_timer *timer;
    struct progress_page *page; /* NULL: no folder for a page, or steps has it */
    int page_fd;
    char *own_dir; /* folder made for the page, or NULL */
    struct loop_child *child;
    int gate;
    struct loop_fd *gate_source;
    int exec_errno; /* errno if CMD could not be executed */

    uint64_t id;
    bool looking, lost;
    bool again;    /* of the query: the last one failed, or the daemon lacks the page */
    bool last;     /* of the query: CMD had ended when it was made */
    bool pageless; /* the daemon reported that it does not have the page */
    struct json *doc;         /* from the last answered query */
    char said[400];           /* the last state or message of the daemon that was shown */
    uint64_t noted;           /* number of the last such message */
    char note[JOB_NOTE_ROOM]; /* its text */
    char held[200];           /* who uses a board that this job named; "": nobody */

    bool ended;
    int status;
    uint64_t begin_ns, end_ns, next_line_ns;
    int64_t begin_utc_ns;
    bool tty, line_there;
    bool reporting;

    /* With a node in this process. */
    struct own_node *own;       /* NULL: the daemon */
    struct job_progress *steps; /* read here as long as nothing is capped; or NULL */
    bool named;                 /* the boards were named, not to be found */
    bool capped;                /* the job has a search, or a cap by name */
    bool foreign;               /* it was noted that others use a board of CMD */
    uint64_t so_far, so_far_ns; /* boards that CMD has used, by index; last change */
    uint64_t window;            /* energy since CMD's start */
    struct json *energy;        /* the ended window */
    uw_error energy_error;      /* why there is none */
    bool energy_over;
    size_t probing; /* 1 + the board whose driver has the write of probe(); 0: none */
    uint64_t probe; /* the claim of that */
    bool asked;     /* the job with the search has been asked for */
    uint32_t original_mw[BOARDS_MAX]; /* as each board was held first; 0: it was not */
    uint64_t looked_ns; /* last call of the timer since CMD began; 0: none */
    double stood_s;     /* time in which this process did not run */
    bool sure;          /* all boards were seen free at the end */
    struct final_read *reread;
    bool reread_over, restored;
    char force[FINAL_READ_TEXT]; /* what was read */
    struct job_board out[BOARDS_MAX];
    unsigned interrupts;   /* since CMD began */
    uint64_t interrupt_ns; /* the last one */
    struct job_cpu *cpu;
    struct job_board cpu_out[JOB_CPU_MAX];
    struct preset_board preset[BOARDS_MAX];
    bool hurried; /* the user did not wait until all limits were back */
};

/* ---- job-node.c ---- */

void job_say(struct remote *r, const char *text);
/* CMD has ended: what the report waits for may be known now. */
void job_look_now(struct remote *r);
/* The body of POST /v1/jobs.  capped: with the goal or the cap. */
struct json_out *job_describe(const struct remote *r, pid_t pid, bool capped);

/* ---- job-child.c ---- */

/* Makes the page in memory, as the node accepts no other; says why there is none. */
void job_page_make(struct remote *r);
void job_page_free(struct remote *r);
/* Starts the process that becomes CMD and waits at the gate.  When it has ended, and it
 * is known whether CMD was executed, job_at_end() is called.
 */
int job_child_start(struct remote *r, uw_error *err);
/* CMD begins. */
int job_child_go(struct remote *r, uw_error *err);
/* The process at the gate, if any, ends. */
void job_close_gate(struct remote *r);
int job_at_end(struct remote *r); /* in job-node.c */

/* ---- job-own.c ---- */

/* Opens the node and what CMD needs before it starts.  EXIT_OK, or the exit code of the
 * command after a line.
 */
int job_own_open(struct remote *r);
/* Begins the job of the process at the gate. */
int job_own_begin(struct remote *r, uw_error *err);
/* The job was queried: boards that were found get the search. */
int job_own_see(struct remote *r);
/* CMD has ended: the energy is asked for. */
int job_own_end(struct remote *r);
/* Gives the boards back, completes *a, and reads the limits where that is not sure. */
void job_own_finish(struct remote *r, struct job_answer *a);
void job_own_close(struct remote *r);

#endif
