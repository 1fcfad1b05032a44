/* Asks the daemon for what jobs wasted today, once a minute, while `underwatt top` shows
 * it: the answer may take seconds, so a thread waits for it.
 */
#ifndef CLI_TOP_ASK_H
#define CLI_TOP_ASK_H

#include <stdbool.h>

#include "base/auto.h"
#include "cli/cmd.h"
#include "cli/top.h"
#include "io/loop.h"

struct top_ask;

/* Answers and why there is none go into the view, which must outlive *ret. */
int top_ask_new(const struct cli_env *env, const char *boards, struct loop *loop,
                struct top *top, struct top_ask **ret, uw_error *err);
void top_ask_free(struct top_ask *a); /* stops a request that runs */
DEFINE_AUTO(struct top_ask *, top_ask_free);

/* Asks if a minute has passed since the last request, and takes an answer that is there;
 * waits for none.  true: an answer is awaited.
 */
bool top_ask_turn(struct top_ask *a);

#endif
