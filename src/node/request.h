/* A request to the node: the client and its request. */
#ifndef NODE_REQUEST_H
#define NODE_REQUEST_H

#include "caps/caps.h"
#include "core/optimum/goal.h"
#include "jobs/job-records.h"
#include "jobs/roster.h"
#include "signal/signal.h"

/* The client on whose behalf a request is made. */
struct node_who {
    uid_t uid;
    bool admin;        /* root, the admin group, a token of that scope */
    bool may_claim;    /* false: may only read */
    const char *name;  /* "user anna", "token grid" for claims and the audit trail */
    uint64_t only_job; /* a token for one job; 0: all */
};

struct node_claim {
    const char *board; /* index, UUID, or NULL with a job: all of its boards */
    uint64_t job;      /* 0: none */
    enum claim_kind kind;
    struct cap_arg cap; /* percent: of the default limit */
    const char *preset; /* name of the policy's, in place of cap; NULL: none */
    uint32_t clock_mhz; /* > 0: a claim on the SM clock, and cap is not set */
    bool at_once;       /* without the ramp of the board's class; a private node alone */
    uint64_t ttl_ns;    /* 0: until withdrawn (admin alone; others: the job's end) */
    const char *why;
    pid_t pid; /* the claim ends with this process; 0: none */
};

/* A signal from outside, set by hand or by a program that watches its source. */
enum { SIGNAL_WATCHER = 32 };
struct node_signal {
    struct signal_value value;
    const char *unit;   /* of a number; "": none */
    const char *source; /* "slurm": set by a program, below a value set by hand; NULL, "":
                           by hand */
    uint64_t for_ns;    /* 0: SIGNAL_FOR_S, or a source's age limit */
};

/* A job that a scheduler's prolog registers by its name; see node_scheduler_put(). */
enum {
    SCHEDULER_MINORS = 64,
    SCHEDULER_WHY =
        JOB_REFUSED - 8, /* bytes of the reason that a job's boards are unknown */
    SCHEDULER_WISH = JOB_ASK - 8, /* bytes of a cap, preset or goal */
};
struct scheduler_ask {
    struct roster_register reg;       /* name, uid and labels; its boards come from … */
    uint32_t minor[SCHEDULER_MINORS]; /* … the numbers of the boards' device files */
    size_t n_minors;
    const char *ask;     /* "cap 300 W", "preset balanced", "goal edp"; "": nothing */
    const char *cls;     /* class of caps' settings; NULL: none */
    const char *unknown; /* why its boards are unknown; NULL: known */
    uint64_t limit_ns;   /* of its time; 0: none */
};

/* Facts about a running job from a scheduler's collector that the prolog did not have. */
enum { FACTS_FOR_MAX_S = 3600 };
struct scheduler_facts {
    const struct label *label; /* added to the existing labels */
    size_t n_labels;
    bool has_uid; /* the owner is known; a job of another owner is another job */
    uid_t uid;
    uint64_t limit_ns; /* of its time; 0: as it is */
    uint64_t
        for_ns; /* time for which the scheduler confirms the job; 0: no confirmation */
};

struct node_job {
    struct roster_register reg;
    bool search;     /* search for goal; else hold cap where it is set */
    bool by_default; /* the goal is a default, and a policy's class takes precedence */
    struct goal goal;
    struct cap_arg cap;
    const char *preset;  /* in place of cap, as of a claim */
    const char *cls;     /* class of caps' settings; NULL: default */
    const char *command; /* for the history of searches; NULL: unknown */
    uint64_t before;     /* reg.group: the job to which its process belonged; 0: none */
    int page_fd;         /* the progress page, ownership passes; -1: none yet */
};

#endif
