#include "node/accounting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "core/carbon/market-read.h"
#include "io/file.h"
#include "node/node-policy.h"

static int read_contracts(const char *path, struct accounting *to, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    struct stat st;
    size_t len = 0;

    if (!path[0])
        return 0;
    int r = file_read_owned(path, MARKET_BYTES, NODE_ACCOUNTING_READ_MS, &text, &len, &st,
                            err);
    if (r < 0)
        return r;
    bool hidden = file_hides() || !(st.st_mode & S_IROTH);
    return market_read(path, text, len, hidden, &to->contract, &to->n_contracts, err);
}

int node_accounting_read(const struct config_accounting *config, struct accounting **ret,
                         uw_error *err)
{
    auto_(accounting_free) struct accounting *a = calloc(1, sizeof *a);

    if (!a)
        return fail(err, -ENOMEM, "out of memory");
    memcpy(a->embodied, config->embodied.of, sizeof a->embodied);
    a->n_embodied = config->embodied.n;
    int r = read_contracts(config->market, a, err);
    if (r < 0)
        return fail_in(err, r, "accounting.market");
    *ret = take(a);
    return 0;
}

int node_accounting_start(const struct config_accounting *config, struct accounting **ret,
                          uw_error *err)
{
    struct config_accounting without = *config;
    uw_error why = {""};

    if (node_accounting_read(config, ret, &why) == 0)
        return 0;
    log_event(LOG_LEVEL_ERROR, LOG_EVENT_ACCOUNTING_REFUSED, "reason=%s in_force=none",
              log_quote(why.text).text);
    without.market[0] = '\0';
    return node_accounting_read(&without, ret, err);
}
