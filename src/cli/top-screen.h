/* A grid on the terminal, and its keys: the one room that knows ncurses. */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include <stdbool.h>

#include "cli/grid.h"
#include "cli/top.h"

/* Takes the terminal over.  colour: false never uses colours.  -ENOTTY: standard
 * output is no terminal; -EINVAL: TERM names none that can be used.
 */
int screen_open(bool colour, uw_error *err);
void screen_close(void); /* gives it back; fine when it was not taken */
/* Its size now, and whether it shows no more than ASCII. */
void screen_size(unsigned *ret_rows, unsigned *ret_cols, bool *ret_ascii);
void screen_show(const struct grid *g);
/* The next key, waiting wait_ms at most; false: none came.  A changed size counts as
 * TOP_KEY_OTHER.
 */
bool screen_key(int wait_ms, enum top_key *ret);

#endif
