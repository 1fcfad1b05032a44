/* A made-up view for tests of the API: so many boards and jobs, every value known. */
#ifndef TESTS_UNIT_NODE_API_MADE_H
#define TESTS_UNIT_NODE_API_MADE_H

#include "node/view.h"

enum { MADE_BOARDS = 8, MADE_JOBS = 64 };

struct made {
    struct node_view view;
    struct gpu_info info[MADE_BOARDS];
    struct claims claims[MADE_BOARDS];
    struct view_board board[MADE_BOARDS];
    struct job_entry entry[MADE_JOBS];
    struct view_job job[MADE_JOBS];
    struct view_rapl rapl[2];
    struct signal_decl decl[4];
    struct signal_value value[4];
    struct signal_view signal[4];
};

/* Job i is uid 1000 + i's, on board i % 8, named "secret-I"; board 0 has a soft claim of
 * 210 W and a hard one of 150 W (which is in force), the others none.
 */
void made_init(struct made *m, size_t n_boards, size_t n_jobs);

#endif
