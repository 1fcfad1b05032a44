/* Rows of a report by its keys: jobs, users, days … */
#ifndef IO_STORE_REPORT_KEYS_H
#define IO_STORE_REPORT_KEYS_H

#include "io/store/report-inside.h"

/* Whether rows are of boards, domains or whole days: everybody's, with three parts. */
bool report_is_whole(const struct ledger_query *q);
bool report_has_key(const struct ledger_query *q, enum ledger_by by);
/* Fills the temporary tables of the jobs that are shown:
 * job_key(job, k1, k2, whole_uj, co2_mg …) has each with its keys,
 * grouped(at, k1, k2, user, name, uj … saved_money_half) their sums, ordered,
 * stack(at, k1, user, name) the largest ones, day_stack(day, at, uj) these by day.
 */
int report_keys(const struct report *rep, uw_error *err);
/* "jobs": sums of the jobs that are shown; "rest": of those that have no row; "rows": the
 * rows by the query's keys; "stack": the names of each day's "stack_j".
 */
int report_rows(const struct report *rep, uw_error *err);
/* "saved_j" … of such a row: the columns REPORT_SAVED from `column` on; NULL: null. */
void report_put_saved(const struct report *rep, sqlite3_stmt *stmt, int column);
#define REPORT_SAVED                                                       \
    " spared_j, spared_half_j, saved_co2, saved_co2_half, saved_marginal," \
    " saved_marginal_half, saved_money, saved_money_half"
enum { REPORT_SAVED_COLUMNS = 8 };

#endif
