/* Energy of processors and their memory: reads the counters once a second, attributes
 * the energy as for boards, and shows it in whole joules to all but administrators.
 *
 * Owns: the counters (board/domains.h), and one attribution for each of them.  Touches:
 * the roster, to see which job has the node.
 * Thread: the loop's.  Explained in docs/metrics.md and docs/design/ledger.md.
 *
 * All functions accept processors NULL, as if there were no counters.
 */
#ifndef ENERGY_PROCESSORS_H
#define ENERGY_PROCESSORS_H

#include "base/auto.h"
#include "base/units.h"
#include "board/domains.h"
#include "energy/attribution.h"
#include "io/ledger.h"
#include "jobs/roster.h"

/* Fine-grained processor power reveals what other users compute (CVE-2020-8694), so the
 * kernel restricts the counters to root.  Users see whole joules, updated once every
 * boards.rapl_period; only administrators see `exact`.
 */
#define VIEW_RAPL_STEP_J DOMAINS_STEP_J /* also used by the ledger's reports */
struct view_rapl {
    const char *name; /* "package-0", "dram-0" */
    double energy_j;
    struct maybe power_w; /* mean of the last period */
    struct {
        double energy_j;
        struct maybe power_w; /* mean of about one second */
    } exact;
};

struct processors;

struct processors_opts {
    struct loop *loop;
    const struct gpu_backend *backend;
    struct gpu_open_opts gpu;
    uint64_t shown_ns; /* update period of the values that users see */
    /* Called once: the counters were opened, or none exist. */
    int (*on_open)(void *user);
    /* Callbacks of the attribution; their `board` is LEDGER_DOMAIN(i). */
    attribution_row_fn on_row;
    attribution_total_fn on_total;
    void *user;
};
int processors_new(const struct processors_opts *opts, struct processors **ret,
                   uw_error *err);
void processors_free(struct processors *p);
DEFINE_AUTO(struct processors *, processors_free);

/* Changes opts.shown_ns. */
void processors_period(struct processors *p, uint64_t shown_ns);
/* Retries counters that could not be read with the next poll. */
void processors_retry(struct processors *p);

/* The domains as the ledger names them; returns their number. */
size_t processors_domains(const struct processors *p,
                          struct ledger_domain ret[LEDGER_DOMAINS]);
/* Attributes energy until processors_stop(); roster: of n_boards boards, borrowed until
 * then.
 */
void processors_start(struct processors *p, const struct roster *roster, size_t n_boards,
                      uint64_t interval_ns);
void processors_stop(struct processors *p);
/* Calls attribution_end() for all domains; returns how often fn will be called. */
unsigned processors_end(struct processors *p,
                        int (*fn)(struct attribution *b, void *user), void *user);
void processors_turn(struct processors *p); /* call before the node's jobs change */
void processors_forget(struct processors *p, uint64_t job);

/* The energy of each domain in a time, for windows: by the exact values, or by those that
 * are shown, between which it is interpolated.  Returns the number of domains.
 */
struct processors_energy {
    const char *name; /* as in view_rapl */
    bool known;
    double energy_j, half_j;
};
size_t processors_between(const struct processors *p, bool exact, uint64_t begin_ns,
                          uint64_t end_ns, struct processors_energy ret[LEDGER_DOMAINS]);

/* The values to show; borrowed until the next call. */
const struct view_rapl *processors_look(struct processors *p, size_t *ret_n);

#endif
