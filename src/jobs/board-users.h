/* Accumulates, per job, presence and SM time on one board between two splits of the
 * board's energy.  Pure.  Job 0 stands for computing processes that belong to no job.
 */
#ifndef JOBS_BOARD_USERS_H
#define JOBS_BOARD_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/job/split.h"

/* The energy of further users is counted as unattributed or for the other users. */
enum { BOARD_USERS = 64 };

struct board_user {
    uint64_t job;
    bool there; /* on the board now */
    bool rate_known;
    double rate;    /* SM seconds per second */
    double there_s; /* time on the board since the last board_users_take() */
    double known_s; /* part of there_s with a known rate */
    double use_s;   /* SM seconds within known_s */
};
struct board_users {
    struct board_user user[BOARD_USERS];
    size_t n;
    uint64_t counted_ns; /* the times are accumulated up to here */
};

/* Returns whether board_users_set() would change which jobs are on the board. */
bool board_users_differ(const struct board_users *u, const uint64_t *jobs, size_t n);
/* Sets the jobs on the board; call board_users_count() first. */
void board_users_set(struct board_users *u, const uint64_t *jobs, size_t n);
/* Accumulates the times up to now_ns for the jobs on the board. */
void board_users_count(struct board_users *u, uint64_t now_ns);
/* Returns whether more than one job is on the board; the split then needs SM times. */
bool board_users_share(const struct board_users *u);
/* Resets all rates to 0; known: whether the driver reports SM use. */
void board_users_clear_use(struct board_users *u, bool known);
/* Adds the SM share (0..1) of one process to the job's rate. */
void board_users_add_use(struct board_users *u, uint64_t job, double share);
/* Stores the users' times since the last call and resets them; returns their number. */
size_t board_users_take(struct board_users *u, struct split_user ret[static BOARD_USERS]);

#endif
