/* Market-based emissions: certificates, a supplier's contract or own solar power cover
 * parts of the used energy, each with a factor of its own, and a residual factor applies
 * to the rest.  Reported in addition to the emissions by the grid's intensity, never
 * included in them.  Pure.
 *
 * Contracts apply in their order: each takes, in proportion, from the energy of its time
 * that earlier contracts have left, so that no more is covered than was used.  Residual
 * factors apply last.
 */
#ifndef CORE_CARBON_MARKET_H
#define CORE_CARBON_MARKET_H

#include <stddef.h>
#include <stdint.h>

enum { MARKET_CONTRACTS = 20000, MARKET_ORIGIN = 64 };

enum market_kind {
    MARKET_ENERGY,   /* an amount of kWh in its time */
    MARKET_SHARE,    /* a share of the energy used at any moment of its time */
    MARKET_RESIDUAL, /* all energy that no contract covers */
};

struct market_contract {
    int64_t from_ms, to_ms; /* since 1970 UTC; to_ms: not included, after from_ms */
    enum market_kind kind;
    double amount;              /* kWh >= 0, or 0 to 1; of MARKET_RESIDUAL unused */
    double g_kwh;               /* grams of CO2 equivalent a kWh */
    char origin[MARKET_ORIGIN]; /* for people */
};

struct market;

/* -ENOMEM; -E2BIG: more than MARKET_CONTRACTS.  Free with market_free(). */
int market_new(const struct market_contract *contract, size_t n, struct market **ret);
void market_free(struct market *m); /* NULL is fine */

/* First call it for all energy that the contracts may cover, in any order: spread evenly
 * from from_ms to to_ms; at from_ms if both are equal.
 */
void market_use(struct market *m, int64_t from_ms, int64_t to_ms, int64_t energy_uj);
/* Then, once: applies the contracts. */
void market_settle(struct market *m);

struct market_part {
    double covered_uj, mg; /* mg: of what is covered */
};
/* Last: the covered part of energy that was used. */
struct market_part market_part(const struct market *m, int64_t from_ms, int64_t to_ms,
                               int64_t energy_uj);

#endif
