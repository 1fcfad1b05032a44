/* Site figures that reports show in addition to the booked ones: `accounting` of the
 * configuration and the file of contracts that it names.
 *
 * Owns nothing; touches that file, once a reload; thread: the loop's.  Explained in
 * docs/emissions.md.
 */
#ifndef NODE_ACCOUNTING_H
#define NODE_ACCOUNTING_H

#include "config/config.h"

/* Free *ret with accounting_free().  -EINVAL, -ERANGE, -EPERM, -ETIMEDOUT, or open's and
 * read's -errno: the file is invalid; errors quote its text only if every user may read
 * it.  -ENOMEM.
 */
int node_accounting_read(const struct config_accounting *config, struct accounting **ret,
                         uw_error *err);
/* The same for the start: an invalid file is logged, and there are no contracts. -ENOMEM.
 */
int node_accounting_start(const struct config_accounting *config, struct accounting **ret,
                          uw_error *err);

#endif
