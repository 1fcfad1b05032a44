/* `underwatt run` and `underwatt measure` as clients of a node, the daemon or one in this
 * process.  The node holds the job, its search and its caps; this part starts CMD, makes
 * its progress page, hands it over and shows the result.
 */
#ifndef CLI_JOB_NODE_H
#define CLI_JOB_NODE_H

#include "cli/job-opts.h"
#include "io/httpc.h"
#include "io/json.h"

/* Runs CMD with the daemon, or (NULL) with a node in this process; takes daemon; returns
 * the exit code of the command.
 */
int job_node_run(struct job_run *j, const struct opts_rest *rest, struct httpc *daemon);

enum { JOB_BOARDS_MAX = 64 };

/* ---- job-answer.c: the daemon's words as a session's result ---- */

struct job_answer {
    struct job_result result;
    struct tuner_report report;
    struct tuner_cap cap[TUNER_CAPS_MAX];
    struct savings account; /* of the last regime: the reference alone */
    struct gpu_info info[JOB_BOARDS_MAX + 1];
    struct job_board board[JOB_BOARDS_MAX + 1];
};
/* doc: the answer to GET /v1/jobs/ID; NULL: nothing is known.  Writes all of *ret, whose
 * parts point to each other.
 */
void job_answer(const struct json *doc, struct job_answer *ret);
/* Energy, power and what is known of their making, as a node says it of a board. */
void job_answer_energy(const struct json_value *v, struct meter_result *ret);

enum { JOB_NOTE_ROOM = 320 };
/* How many of the job's messages were shown, of which the last had this number and text
 * (up to JOB_NOTE_ROOM).  A new daemon counts from 1 again: none of its messages was.
 */
size_t job_notes_known(const struct json_value *notes, uint64_t number, const char *text);

/* ---- job-boards.c: which boards are meant ---- */

struct job_boards {
    bool simulated;
    size_t n; /* 0: the daemon finds them by CMD's processes */
    char uuid[JOB_BOARDS_MAX][96];
    char note[200]; /* "": none */
};
/* Selects boards of the answer to GET /v1/gpus by --gpus, else CUDA_VISIBLE_DEVICES,
 * whose indices count the boards that this process may use (gpu/device-files.h).
 * -EINVAL: the list is invalid.
 */
int job_boards(const struct json *gpus, const struct job_run *j, struct job_boards *ret,
               uw_error *err);

#endif
