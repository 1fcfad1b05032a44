/* The node's view as JSON: the bodies that docs/openapi.yaml describes. */
#ifndef API_SHOW_H
#define API_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/json.h"
#include "node/node.h"
#include "node/view.h"

/* Whether a client sees the private data (name, labels, pid) of all jobs, of this job. */
bool show_all(const struct node_who *who);
bool show_mine(const struct node_who *who, const struct job_entry *job);

/* RFC 3339, UTC, to the millisecond: "2026-11-21T14:03:22.250Z". */
enum { SHOW_TIME = 32 };
const char *show_time(int64_t utc_ns, char buf[SHOW_TIME]);

/* A line for people: why the cap has its value. */
const char *show_why(const struct caps_view *cap, char *buf, size_t size);
/* The same for the board's clock lock. */
const char *show_clock_why(const struct caps_clock_view *clock,
                           const struct claims *claims, char *buf, size_t size);

/* ---- values ---- */

void show_value(struct json_out *o, const char *key, const struct maybe *v);
/* mw 0 is written as null (unknown). */
void show_mw(struct json_out *o, const char *key, uint32_t mw);
void show_utc(struct json_out *o, const char *key, int64_t utc_ns);
/* UTC of a time since boot; null where it is 0. */
void show_since_boot(struct json_out *o, const char *key, const struct node_view *v,
                     uint64_t at_ns);
/* released_utc of a search: when the board was released for which it ended; else null. */
void show_released(struct json_out *o, const struct node_view *v,
                   const struct searches_view *s);
/* The driver's indices of a set of boards, as an array. */
void show_boards(struct json_out *o, const char *key, const struct node_view *v,
                 uint64_t boards);
/* Sum of the power of a set of boards (UINT64_MAX: all); unknown where that of any board
 * is unknown or no board exists.
 */
struct maybe show_power(const struct node_view *v, uint64_t boards);

/* ---- bodies: an object under key (NULL: the root, or an item of an array) ---- */

void show_node(struct json_out *o, const struct node_view *v, const struct node_who *who);
void show_gpu(struct json_out *o, const struct node_view *v, size_t i);
void show_explain(struct json_out *o, const struct node_view *v, size_t i);
/* Rules from the from-th of the file on, as many as one answer may have. */
struct policy_trial;
void show_policy_trial(struct json_out *o, const struct node_view *v,
                       const struct node_who *who, const struct policy_trial *t,
                       uint64_t from);
void show_policy(struct json_out *o, const struct node_view *v,
                 const struct node_who *who, uint64_t from);
/* The energy of a board whose meter has no result is null, with the reason. */
void show_window(struct json_out *o, const struct node_view *v,
                 const struct client_window_result *w,
                 const struct processors_energy *cpu, size_t n_cpu);
/* The power of a board over a window; why: why there is none. */
void show_samples(struct json_out *o, const struct node_view *v, uint64_t window,
                  size_t board, const struct meter_power *p, size_t n, const char *why);
void show_history(struct json_out *o, const struct node_view *v, size_t board,
                  const struct node_history *h);
/* An item of an array; series: with its history or forecast. */
void show_signal(struct json_out *o, const struct signal_view *s, bool series);
void show_claim(struct json_out *o, const struct node_view *v, size_t i,
                const struct claim *c);
void show_job(struct json_out *o, const struct node_view *v, const struct view_job *j,
              const struct node_who *who);
/* The same with the details of the job's search. */
void show_whole_job(struct json_out *o, const struct node_view *v,
                    const struct view_job *j, const struct node_who *who);

#endif
