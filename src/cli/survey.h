/* All boards of this machine, queried once for `list` and `doctor`. */
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
    bool answers;   /* delivered a sample in time */
    uw_error error; /* why it did not; or "" */
    bool has_limits;
    struct gpu_limits limits;
    struct gpu_sample sample; /* `has` is 0 if the board does not answer */
    bool has_procs;
    struct survey_proc *procs;
    size_t n_procs;
    struct held held; /* held by an Underwatt process */
};

struct survey {
    struct loop *loop;
    struct boards *set; /* NULL: opening failed */
    int r;              /* 0, GPU_ABSENT or -errno */
    uw_error error;     /* the text of r */
    struct gpu_about about;
    size_t n;
    struct survey_board *board;
    size_t waiting;
};

/* Opens the boards on a loop of its own and queries each; a board that hangs delays the
 * call up to its deadline.  Returns EXIT_OK also without boards (see s->r), or another
 * exit code after a line on stderr.
 */
int survey_new(const struct cmd *cmd, const struct cli_env *env, const char *boards,
               struct survey **ret);
void survey_free(struct survey *s);
DEFINE_AUTO(struct survey *, survey_free);

/* Writes the positions of the boards that --gpus selects (NULL: all).  EXIT_OK, or
 * EXIT_USAGE after a line on stderr.
 */
int survey_select(const struct survey *s, const struct cmd *cmd, const char *gpus,
                  size_t ret_at[static BOARDS_MAX], size_t *ret_n);
/* The number of boards that answer. */
size_t survey_answering(const struct survey *s);
/* Says on stdout that these boards are not real; nothing where they are. */
void survey_say_unreal(const struct gpu_about *about);
/* Whether any board is simulated. */
bool survey_simulated(const struct survey *s);

/* Explains the limit in force: "default", "set; default 300 W", others_say(), "left by
 * underwatt (its process has ended), …", "250 W enforced, 280 W asked for", "unknown".
 */
void survey_cap(const struct survey_board *b, char *ret, size_t size);
/* Whether the limit in force was left by a process that has ended: not the original. */
bool survey_is_left(const struct survey_board *b);
/* What limits the clocks, separated by blanks; "": unknown. */
void survey_reasons(const struct survey_board *b, char *ret, size_t size);

#endif
