/* The sources of a site's signals: the list `signals` of policy.yaml.
 *
 *     signals:
 *       - {name: carbon, file: /srv/grid/carbon.json, path: data.0.carbonIntensity}
 *       - {name: price, unit: EUR/MWh, file: /srv/market/today.csv, column: DE}
 *       - {name: rack.power, unit: kW, age: 60 s}
 *
 * A signal without a file or a socket (of underwatt-signals) gets values only from
 * adapters and by hand.
 */
#ifndef POLICY_SIGNAL_SOURCE_H
#define POLICY_SIGNAL_SOURCE_H

#include "base/auto.h"
#include "io/yaml.h"
#include "signal/read.h"
#include "signal/signal.h"

enum {
    SIGNAL_SOURCES_MAX = 200, /* together with the well-known signals below SIGNALS_MAX */
    SIGNAL_FILE = 512,
    SIGNAL_COLUMN = 64,
    SIGNAL_SOCKET = 108,
};

struct signal_source {
    struct signal_decl decl;
    char unit[SIGNAL_UNIT];     /* of the file's numbers; "": the signal's */
    char file[SIGNAL_FILE];     /* "": none */
    char path[SIGNAL_PATH];     /* in JSON; "": the whole */
    char column[SIGNAL_COLUMN]; /* of CSV, by its header; "": the column after the time */
    char socket[SIGNAL_SOCKET]; /* of underwatt-signals; "": none */
    bool csv;
    uint64_t every_ns; /* interval of reads; 0: not given */
};

/* Completes and checks a source: decl by signal_declared(), csv (a column is given, or
 * the file's name ends in .csv), every_ns.  -EINVAL, -ERANGE; *s is unchanged then.
 */
int signal_source_check(struct signal_source *s, const char *currency, uw_error *err);

struct signal_sources {
    struct signal_source *source;
    size_t n;
    char currency[4];
};
void signal_sources_fini(struct signal_sources *s); /* also of {0} */
static inline void signal_sources_fini_p(struct signal_sources *p)
{
    signal_sources_fini(p);
}

/* Reads `signals` and `facility.currency` (EUR) from the root of policy.yaml; ignores
 * other keys.  -EINVAL, -ERANGE with FILE:LINE, -E2BIG, -ENOMEM; *ret is unchanged then.
 */
int signal_sources_read(const struct yaml_node *root, struct signal_sources *ret,
                        uw_error *err);

#endif
