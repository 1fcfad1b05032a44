#include "fetcher/cache.h"

#include "base/log.h"
#include "signal/config.h"

_Static_assert(SIGNALS_CONFIG_PATH + SOURCE_WORD + 8 <= KEPT_FILE_PATH, "paths fit");

static void say(const char *state, const char *why, void *user)
{
    const char *name = user;

    log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIGNALS_CACHE, "name=%s state=%s reason=%s",
              name, state, log_quote(why).text);
}

void cache_file_init(struct kept_file *f, const char *folder, const char *name,
                     struct loop_worker *worker)
{
    kept_file_init(f, folder, name, worker, say, (void *)name);
}
