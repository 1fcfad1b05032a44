/* Requests to the routes without sockets, over a made-up node that notes what it is
 * asked.
 */
#ifndef TESTS_UNIT_NODE_API_TRY_H
#define TESTS_UNIT_NODE_API_TRY_H

#include "api/routes.h"
#include "http-try.h"
#include "made.h"

struct fake {
    struct made made;
    struct loop *loop;
    struct routes *routes;
    struct auth_who who;
    unsigned refuse; /* not 0: auth answers so */

    /* What the node was asked, and what it is to say. */
    int r;
    const char *text;
    unsigned calls;
    char last[32];
    struct node_claim claim;
    struct node_job job;
    struct scheduler_ask scheduler;
    struct scheduler_facts facts;
    int was_there; /* what node_scheduler_put() answers */
    char board[96], why[96], name[96], preset[POLICY_PRESET_NAME];
    char group[JOB_GROUP];
    pid_t pid; /* that left a job */
    struct label label[LABELS_MAX];
    struct node_signal signal;
    char unit[SIGNAL_UNIT];
    uint64_t id, hold_off_ns;
    struct routes_report report;
    char report_by[64];
    caps_done_fn done;
    ledger_report_fn report_done;
    char goal[GOAL_TEXT_MAX]; /* given last; "": none */
    struct client_window_ask window;
    uint64_t stopped_id, stopped_ns; /* of the last window that was stopped */
    unsigned n_stopped, n_dropped;
    void *user;
    bool hold; /* release, report and windows answer when the test says so */
};

/* Who: admin, user1 (uid 1001), a stranger (uid 4711), a reader's and a job's token. */
enum fake_who { AS_ADMIN, AS_USER1, AS_STRANGER, AS_READER, AS_JOB_TOKEN };

int fake_new(struct fake *f, size_t boards, size_t jobs);
void fake_free(struct fake *f);
void fake_as(struct fake *f, enum fake_who who);

/* One request; t is to be freed with http_try_free(). */
struct http_try *fake_ask(struct fake *f, const char *method, const char *target,
                          const char *body);

#endif
