/* half_sum(energy_uj, half_uj, method) in SQL: the half width of a sum of rows. */
#include "core/meter/half-sum.h"
#include "io/store/inside.h"

struct half_sum store_half(int64_t energy_uj, int64_t half_uj, unsigned method)
{
    return half_sum_of((double)energy_uj * 1e-6, (double)half_uj * 1e-6,
                       !(method & LEDGER_SUMMED));
}

static void step(sqlite3_context *context, int n, sqlite3_value **v)
{
    struct half_sum *sum = sqlite3_aggregate_context(context, sizeof *sum);
    (void)n;

    if (!sum) {
        sqlite3_result_error_nomem(context);
        return;
    }
    struct half_sum row = store_half(sqlite3_value_int64(v[0]), sqlite3_value_int64(v[1]),
                                     (unsigned)sqlite3_value_int(v[2]));
    half_sum_add(sum, &row);
}

static void finish(sqlite3_context *context)
{
    const struct half_sum *sum = sqlite3_aggregate_context(context, 0);

    if (sum)
        sqlite3_result_int64(context, ledger_uj(half_sum_j(sum)));
    else
        sqlite3_result_null(context); /* of no rows */
}

int store_half_register(sqlite3 *db)
{
    return sqlite3_create_function(db, "half_sum", 3,
                                   SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                   NULL, NULL, step, finish);
}
