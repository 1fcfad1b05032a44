/* A request to the node: who asks, and for what. */
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
    const char *source; /* "slurm": a program's, behind one by hand; NULL, "": by hand */
    uint64_t for_ns;    /* 0: SIGNAL_FOR_S, or a source's age limit */
};

/* A job that a scheduler's prolog registers by its name; see node_scheduler_put(). */
enum {
    SCHEDULER_MINORS = 64,
    SCHEDULER_WHY = JOB_REFUSED - 8, /* bytes of why a job's boards are not known */
    SCHEDULER_WISH = JOB_ASK - 8, /* bytes of a cap, preset or goal, whatever it says */
};
struct scheduler_ask {
    struct roster_register reg;       /* name, uid and labels; its boards come from … */
    uint32_t minor[SCHEDULER_MINORS]; /* … the numbers of the boards' device files */
    size_t n_minors;
    const char *ask;     /* "cap 300 W", "preset balanced", "goal edp"; "": nothing */
    const char *cls;     /* class of caps' settings; NULL: none */
    const char *unknown; /* why its boards are not known; NULL: they are */
    uint64_t limit_ns;   /* of its time; 0: none */
};

/* What a scheduler's collector knows of a running job that the prolog did not. */
enum { FACTS_FOR_MAX_S = 3600 };
struct scheduler_facts {
    const struct label *label; /* set beside those that are there */
    size_t n_labels;
    bool has_uid; /* whose job it is; another user's is another job */
    uid_t uid;
    uint64_t limit_ns; /* of its time; 0: as it is */
    uint64_t for_ns;   /* so long it runs by the scheduler's word; 0: no word */
};

struct node_job {
    struct roster_register reg;
    bool search;     /* search for goal; else hold cap where it is set */
    bool by_default; /* nobody asked for that goal: a policy's class goes before it */
    struct goal goal;
    struct cap_arg cap;
    const char *preset;  /* in place of cap, as of a claim */
    const char *cls;     /* class of caps' settings; NULL: default */
    const char *command; /* for the history of searches; NULL: unknown */
    uint64_t before;     /* reg.group: the job that its process had a part in; 0: none */
    int page_fd;         /* the progress page, ownership passes; -1: none yet */
};

#endif
