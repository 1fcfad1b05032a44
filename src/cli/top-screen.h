/* Shows a grid on the terminal and reads keys.  Only this file includes ncurses. */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include <stdbool.h>

#include "cli/grid.h"
#include "cli/top.h"

/* Takes over the terminal.  colour: false never uses colours.  -ENOTTY: standard output
 * is not a terminal; -EINVAL: TERM is unknown or lacks the abilities.
 */
int screen_open(bool colour, uw_error *err);
void screen_close(void); /* restores the terminal; no effect if it was not taken */
/* The current size, and whether it can show ASCII only. */
void screen_size(unsigned *ret_rows, unsigned *ret_cols, bool *ret_ascii);
void screen_show(const struct grid *g);
/* Waits at most wait_ms for a key; false: none.  A change of size counts as
 * TOP_KEY_OTHER.  ret_text: its character in UTF-8; "": none.
 */
enum { SCREEN_TEXT = 5 };
bool screen_key(int wait_ms, enum top_key *ret, char ret_text[SCREEN_TEXT]);

#endif
