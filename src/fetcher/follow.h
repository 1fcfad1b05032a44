/* The site's instance, asked in place of services: GET /v1/signals over TLS, with a
 * token.
 *
 * Owns: a worker, a connection, what is held of the site's signals.  Touches: the
 * network, the token's file, its cache, in the worker's thread.  Thread: the loop's.
 * Explained in docs/signals.md#one-fetch-for-a-site.
 */
#ifndef FETCHER_FOLLOW_H
#define FETCHER_FOLLOW_H

#include "base/auto.h"
#include "fetcher/judges.h"
#include "io/json.h"
#include "io/loop.h"
#include "signal/config.h"
#include "signal/held.h"
#include "underwatt/error.h"

enum { FOLLOW_REQUEST_S = 30 };

struct follow;

/* config: borrowed; it must follow a site.  Reads the cache, then asks the site when its
 * time has come.
 */
int follow_new(struct loop *loop, const struct signals_config *config,
               struct follow **ret, uw_error *err);
void follow_free(struct follow *f); /* cancels what is under way */
DEFINE_AUTO(struct follow *, follow_free);

/* Why the site cannot be asked; "": it answers, or was not asked yet.  Borrowed until the
 * next round.
 */
const char *follow_error(const struct follow *f);
/* Changes whenever the shown values change. */
uint64_t follow_rounds(const struct follow *f);
/* Calls fn with each series that follow_show() would show. */
void follow_each(const struct follow *f, judges_series_fn fn, void *arg);
/* The signals as objects in o, but for those that a source of this instance gives.
 * judges: NULL: none.
 */
void follow_show(const struct follow *f, const struct judges *judges,
                 const struct held_shown *shown, struct json_out *o);

#endif
