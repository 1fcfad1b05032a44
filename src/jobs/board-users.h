/* Which jobs used one board since it was last asked, and how much: for the split of the
 * board's energy.  Owns the times of each user; values in, values out.  Job 0 stands for
 * processes that compute and belong to no job.
 */
#ifndef JOBS_BOARD_USERS_H
#define JOBS_BOARD_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/job/split.h"

enum { BOARD_USERS = 64 }; /* the energy of more is unattributed or others' */

struct board_user {
    uint64_t job;
    bool there;
    bool rate_known;
    double rate; /* SMs' time in a second */
    double there_s, known_s, use_s;
};
struct board_users {
    struct board_user user[BOARD_USERS];
    size_t n;
    uint64_t counted_ns; /* up to when the times are counted */
};

/* Would board_users_set() change anything? */
bool board_users_differ(const struct board_users *u, const uint64_t *jobs, size_t n);
/* These jobs are there from now on; count up to now before. */
void board_users_set(struct board_users *u, const uint64_t *jobs, size_t n);
/* Counts the times up to now with those who were there. */
void board_users_count(struct board_users *u, uint64_t now_ns);
/* More than one is there: their use is worth asking for. */
bool board_users_share(const struct board_users *u);
/* The driver's word on the use of each starts anew: known says whether there is one. */
void board_users_clear_use(struct board_users *u, bool known);
/* A process of the job used the SMs for this share of the time. */
void board_users_add_use(struct board_users *u, uint64_t job, double share);
/* The users' times since the last call; returns how many there are. */
size_t board_users_take(struct board_users *u, struct split_user ret[static BOARD_USERS]);

#endif
