/* Facts about a signal besides its values: the state of its source, when the values were
 * made, and the scores of its forecasts.
 *
 * Owns: nothing.  Touches: nothing.  Explained in docs/signals.md.
 */
#ifndef SIGNAL_FACTS_H
#define SIGNAL_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/carbon/judge.h"
#include "io/json.h"

enum { FACTS_BY = 64 };

/* Since underwatt-signals began. */
struct signal_asked {
    char by[FACTS_BY];           /* the source, or "follow"; "": not known */
    uint64_t requests, failures; /* failures: rounds */
    int64_t success_utc_s;       /* end of the last successful round; 0: none yet */
    int64_t next_utc_s;          /* time of the next request */
};
/* judge_score() of a horizon. */
struct signal_judged {
    int64_t horizon_s;
    bool worse; /* than persistence */
    struct judge_score score;
};
struct signal_facts {
    struct signal_asked asked;
    int64_t issued_utc_s; /* when the source made the values; 0: unknown */
    struct signal_judged judged[JUDGE_HORIZONS];
    size_t n_judged;
};

/* The scores of a forecast. */
void facts_judge(struct signal_facts *f, const struct judge *j, int64_t utc_s);
/* The members "asked" and "judged" of a signal's object. */
void facts_show(struct json_out *o, const struct signal_facts *f);
/* Reads what facts_show() wrote, and "issued_utc"; ignores missing or damaged members. */
void facts_read(const struct json_value *signal, struct signal_facts *ret);

/* "1 h, 3 h": horizons at which the forecast is worse than persistence; "": none.
 * Returns ret.
 */
enum { FACTS_WORSE = 64 };
const char *facts_worse(const struct signal_facts *f, char ret[FACTS_WORSE]);

#endif
