/* `underwatt run` as a client of the daemon: that holds the job, its search and its
 * caps; here CMD is started, its page made and handed over, the result shown.
 */
#ifndef CLI_JOB_DAEMON_H
#define CLI_JOB_DAEMON_H

#include "cli/job-run.h"
#include "io/httpc.h"
#include "io/json.h"

/* CMD with the daemon's help; the command's exit code. */
int job_daemon_run(struct job_run *j, const struct opts_rest *rest, struct httpc *daemon);

/* ---- job-answer.c: the daemon's words as a session's result ---- */

struct job_answer {
    struct session_result result;
    struct tuner_report report;
    struct tuner_cap cap[TUNER_CAPS_MAX];
};
/* doc: of GET /v1/jobs/ID, or NULL: nothing is known.  Written in full. */
void job_answer(const struct json *doc, struct job_answer *ret);

/* ---- job-boards.c: which boards are meant ---- */

enum { JOB_BOARDS_MAX = 64 };
struct job_boards {
    bool simulated;
    size_t n; /* 0: found by CMD's processes */
    char uuid[JOB_BOARDS_MAX][96];
    char note[200]; /* "" nothing to say */
};
/* By --gpus, else CUDA_VISIBLE_DEVICES, among those of the daemon.  -EINVAL: text. */
int job_boards(struct httpc *daemon, const struct job_run *j, struct job_boards *ret,
               uw_error *err);

#endif
