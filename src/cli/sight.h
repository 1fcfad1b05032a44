/* Signals from outside for commands: from the daemon or, if none runs, from
 * underwatt-signals.
 */
#ifndef CLI_SIGHT_H
#define CLI_SIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "cli/cmd.h"
#include "core/carbon/stretch.h"
#include "io/httpc.h"
#include "policy/signals.h"
#include "signal/facts.h"
#include "underwatt/error.h"

struct sight {
    char name[SIGNAL_NAME], unit[SIGNAL_UNIT], source[SIGNAL_SOURCE], why[SIGNAL_WHY];
    char value[SIGNAL_SHOWN];      /* with its unit; "": unknown, or a forecast */
    double number;                 /* NaN: unknown, a forecast, or no number */
    bool known;                    /* of a forecast: some of it lies ahead */
    bool ahead;                    /* a forecast */
    bool estimated;                /* the source marks the value as estimated */
    int64_t time_utc_s, end_utc_s; /* validity of the value; 0: unknown */
    struct signal_facts facts;
    struct stretch_point *point; /* its history or forecast */
    size_t n;
};
struct sights {
    struct sight *sight;
    size_t n;
};
void sights_free(struct sights *s); /* also of {0} */
static inline void sights_free_p(struct sights *p)
{
    sights_free(p);
}

struct sight_link {
    struct httpc *client;
    bool daemon;   /* the daemon answers */
    int64_t utc_s; /* now */
};
/* socket: of underwatt-signals, to ask instead of the daemon; NULL: asks the daemon or,
 * if none runs, the system's underwatt-signals.  EXIT_OK, or the exit code to return.
 */
int sight_link_open(const struct cmd *cmd, const struct cli_env *env, const char *boards,
                    const char *socket, struct sight_link *ret);
void sight_link_close(struct sight_link *l); /* also of {0} */
static inline void sight_link_close_p(struct sight_link *p)
{
    sight_link_close(p);
}

/* The signal of this name, with its series, or none; name NULL: all of them, with the
 * series of forecasts.  Fails as httpc_ask() does.
 */
int sight_get(const struct sight_link *l, const char *name, struct sights *ret,
              uw_error *err);

/* Whether it can be a signal's name: names go into the path of a request. */
bool sight_is_name(const char *name);

#endif
