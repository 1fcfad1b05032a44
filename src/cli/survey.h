/* All boards of this machine, asked once: what `list` shows and `doctor` judges. */
#ifndef CLI_SURVEY_H
#define CLI_SURVEY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "board/boards.h"
#include "cli/cmd.h"
#include "cli/who.h"
#include "gpu/backends.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "local/held.h"
#include "underwatt/error.h"

struct survey_proc {
    struct gpu_proc proc;
    struct who who;
};

struct survey_board {
    struct gpu_info info;
    bool answers;   /* gave a sample in time */
    uw_error error; /* "" or why it did not */
    bool has_limits;
    struct gpu_limits limits;
    struct gpu_sample sample; /* its `has` is 0 where it does not answer */
    bool has_procs;
    struct survey_proc *procs;
    size_t n_procs;
    struct held held; /* by an Underwatt */
};

struct survey {
    struct loop *loop;
    struct boards *set; /* NULL where opening failed */
    int r;              /* 0, GPU_ABSENT or the fault … */
    uw_error error;     /* … in words */
    struct gpu_about about;
    size_t n;
    struct survey_board *board;
    size_t waiting;
};

/* Opens the boards on a loop of its own and asks each; a board that hangs costs its
 * deadline and shows no answer.  0 also where there are none (ret->r tells); EXIT_…
 * after a line on stderr where not even that could be tried.
 */
int survey_new(const struct cmd *cmd, const struct cli_env *env, const char *boards,
               struct survey **ret);
void survey_free(struct survey *s);
DEFINE_AUTO(struct survey *, survey_free);

/* Boards that answer. */
size_t survey_answering(const struct survey *s);
/* Says on stdout that these boards are not real; nothing where they are. */
void survey_say_unreal(const struct gpu_about *about);
/* Any of them simulated? */
bool survey_simulated(const struct survey *s);

/* Why the limit in force is what it is: "default", "set; default 300 W", "set by
 * underwatt (pid 4711), original 300 W", "left by underwatt (its process has ended), …",
 * "250 W enforced, 280 W asked for", "unknown".
 */
void survey_cap(const struct survey_board *b, char *ret, size_t size);
/* What holds the clocks back, in words with blanks between; "" nothing known. */
void survey_reasons(const struct survey_board *b, char *ret, size_t size);

#endif
