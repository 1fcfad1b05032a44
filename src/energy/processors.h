/* Energy of processors and of their memory: counters that are read once a second,
 * attributed as boards are, and shown in whole joules to all but administrators.
 *
 * Owns: the set of counters, and one sampler and one attribution for each of them.
 * Touches: the backend of the counters; the roster, to see which job has the node.
 * Thread: the loop's.  Explained in docs/metrics.md and docs/ledger.md.
 *
 * A function that takes processors accepts NULL: then nothing is known of any.
 */
#ifndef ENERGY_PROCESSORS_H
#define ENERGY_PROCESSORS_H

#include "base/auto.h"
#include "base/units.h"
#include "board/boards.h"
#include "energy/attribution.h"
#include "io/ledger.h"
#include "jobs/roster.h"

/* Fine-grained power of a processor shows what others compute on it (CVE-2020-8694), so
 * the kernel shows its counters to root alone: everybody sees whole joules, renewed once
 * every boards.rapl_period.  `exact` is for administrators alone.
 */
#define VIEW_RAPL_STEP_J 1.0 /* the ledger's reports keep to it, too */
struct view_rapl {
    const char *name; /* "package-0", "dram-0" */
    double energy_j;
    struct view_value power_w; /* mean of the last period */
    struct {
        double energy_j;
        struct view_value power_w; /* means of a second or so */
    } exact;
};

struct processors;

struct processors_opts {
    struct loop *loop;
    const struct gpu_backend *backend;
    struct gpu_open_opts gpu;
    uint64_t shown_ns; /* what everybody sees is renewed this often */
    /* Once: the counters were opened, or there are none. */
    int (*on_open)(void *user);
    /* What is attributed; `board` is the ledger's place of the domain. */
    attribution_row_fn on_row;
    attribution_total_fn on_total;
    void *user;
};
int processors_new(const struct processors_opts *opts, struct processors **ret,
                   uw_error *err);
void processors_free(struct processors *p);
DEFINE_AUTO(struct processors *, processors_free);

/* shown_ns from now on. */
void processors_period(struct processors *p, uint64_t shown_ns);
/* Counters that could not be read are tried again at once. */
void processors_retry(struct processors *p);

/* What the ledger calls them; returns how many there are. */
size_t processors_domains(const struct processors *p,
                          struct ledger_domain ret[LEDGER_DOMAINS]);
/* Energy is attributed from now on, until processors_stop(); roster: of n_boards boards,
 * borrowed until then.
 */
void processors_start(struct processors *p, const struct roster *roster, size_t n_boards,
                      uint64_t interval_ns);
void processors_stop(struct processors *p);
/* Ends all stretches; returns how many times fn will be called. */
unsigned processors_end(struct processors *p,
                        int (*fn)(struct attribution *b, void *user), void *user);
void processors_turn(struct processors *p); /* jobs are about to change */
void processors_forget(struct processors *p, uint64_t job);

/* What is shown of them; borrowed until the next call. */
const struct view_rapl *processors_look(struct processors *p, size_t *ret_n);

#endif
