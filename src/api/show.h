/* The node's view as JSON: the bodies that docs/openapi.yaml describes. */
#ifndef API_SHOW_H
#define API_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/json.h"
#include "node/node.h"
#include "node/view.h"

/* What somebody sees of other people's jobs. */
bool show_all(const struct node_who *who);
bool show_mine(const struct node_who *who, const struct job_entry *job);

/* RFC 3339, UTC, to the millisecond: "2026-11-21T14:03:22.250Z". */
enum { SHOW_TIME = 32 };
const char *show_time(int64_t utc_ns, char buf[SHOW_TIME]);

/* Why the cap is what it is, in a line for people. */
const char *show_why(const struct caps_view *cap, char *buf, size_t size);
/* The same of its clock. */
const char *show_clock_why(const struct caps_clock_view *clock,
                           const struct claims *claims, char *buf, size_t size);

/* ---- values ---- */

void show_value(struct json_out *o, const char *key, const struct view_value *v);
/* 0 stands for unknown there. */
void show_mw(struct json_out *o, const char *key, uint32_t mw);
void show_utc(struct json_out *o, const char *key, int64_t utc_ns);
/* The boards of a set by the driver's index, as an array. */
void show_boards(struct json_out *o, const char *key, const struct node_view *v,
                 uint64_t boards);
/* Sum of the boards' power; unknown where one's is, or there is none. */
struct view_value show_power(const struct node_view *v);

/* ---- bodies: an object under key (NULL: the root, or an item of an array) ---- */

void show_node(struct json_out *o, const struct node_view *v, const struct node_who *who);
void show_gpu(struct json_out *o, const char *key, const struct node_view *v, size_t i);
void show_explain(struct json_out *o, const struct node_view *v, size_t i);
/* Energy of boards whose meters could not tell is null, with the reason. */
void show_window(struct json_out *o, const struct node_view *v,
                 const struct client_window_result *w);
void show_claim(struct json_out *o, const struct node_view *v, size_t i,
                const struct claim *c);
void show_job(struct json_out *o, const char *key, const struct node_view *v,
              const struct view_job *j, const struct node_who *who);
/* The same with all that its search knows. */
void show_whole_job(struct json_out *o, const struct node_view *v,
                    const struct view_job *j, const struct node_who *who);

#endif
