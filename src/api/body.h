/* Parses request bodies into requests to the node.  Strict: unknown keys, wrong types,
 * bare numbers where a quantity needs its unit, and values out of range are refused with
 * a text that names key, value and limit.  Pure.
 */
#ifndef API_BODY_H
#define API_BODY_H

#include "io/json.h"
#include "node/node.h"
#include "underwatt/error.h"

enum { BODY_BOARD = 96, BODY_BOARDS_MAX = 64 };

/* The strings in these structs belong to the JSON document, which must outlive them. */
struct body_claim {
    struct node_claim ask;
    char board[BODY_BOARD]; /* storage of ask.board where the body has a number */
};
/* -EINVAL or -ERANGE.  After an error, *ret is unchanged; so for all functions here. */
int body_claim(const struct json_value *v, struct body_claim *ret, uw_error *err);

struct body_job {
    struct node_job ask; /* reg.uid and reg.label too; page_fd -1 */
    struct label label[LABELS_MAX];
    bool has_uid;
};
/* ret->ask.reg.uid is uid where the body has no "uid". */
int body_job(const struct json_value *v, uid_t uid, struct node *node,
             struct body_job *ret, uw_error *err);

struct body_scheduler {
    struct scheduler_ask ask; /* reg.name is the caller's */
    struct label label[LABELS_MAX];
    char wish[JOB_ASK]; /* storage of ask.ask */
};
int body_scheduler(const struct json_value *v, struct body_scheduler *ret, uw_error *err);

struct body_facts {
    struct scheduler_facts facts;
    struct label label[LABELS_MAX];
};
int body_facts(const struct json_value *v, struct body_facts *ret, uw_error *err);

/* {"stopped": [{"id": 7, "at_ns": 12}], "done": [5, 6]} */
enum { BODY_WINDOWS_MAX = 256, BODY_WAIT_MAX_S = 60 };
struct body_windows {
    struct {
        uint64_t id, at_ns;
    } stopped[BODY_WINDOWS_MAX];
    uint64_t done[BODY_WINDOWS_MAX];
    size_t n_stopped, n_done;
};
int body_windows(const struct json_value *v, struct body_windows *ret, uw_error *err);

/* {"at_ns": 12, "wait_s": 0.5, "keep": true} */
struct body_window_end {
    uint64_t at_ns; /* 0: now */
    bool has_wait, keep;
    double wait_s;
};
int body_window_end(const struct json_value *v, struct body_window_end *ret,
                    uw_error *err);

/* {"goal": "edp"} or {"goal": null}: *ret_has says whether there is one. */
int body_goal(const struct json_value *v, struct goal *ret, bool *ret_has, uw_error *err);

/* {"for": "10 min"}; 0 where the key is missing. */
int body_release(const struct json_value *v, uint64_t *ret_ns, uw_error *err);

/* {"value": 420, "unit": "g/kWh", "for": "15 min"}; the value may be a text, true or
 * false.
 */
int body_signal(const struct json_value *v, struct node_signal *ret, uw_error *err);

/* {"policy": "the file's text"}. */
int body_policy(const struct json_value *v, const char **ret, uw_error *err);

/* A board's index or UUID, as a JSON number or string. */
int body_board_name(const struct json_value *v, const char *key, char buf[BODY_BOARD],
                    const char **ret, uw_error *err);
/* "250 W", "85%"; a bare number is refused. */
int body_cap(const char *key, const char *text, struct cap_arg *ret, uw_error *err);

#endif
