/* The configuration's defaults; apart from config.c, so that programs that only look for
 * the daemon do not link the YAML reader.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "config/config.h"
#include "core/optimum/counterfactual.h"
#include "core/optimum/gap-probe.h"

#define DAY_NS (86400 * NS_PER_S)

static int place(char *ret, size_t size, const char *dir, const char *name, uw_error *err)
{
    int n = snprintf(ret, size, "%s/%s", dir, name);

    if (n < 0 || (size_t)n >= size)
        return fail(err, -ENAMETOOLONG, "%s/%s: longer than %zu bytes", dir, name,
                    size - 1);
    return 0;
}

int node_config_world_dir(const char *world, char *ret, size_t size, uw_error *err)
{
    return place(ret, size, world, "underwattd", err);
}

static int default_paths(struct node_config *c, const char *world, uw_error *err)
{
    char run[CONFIG_PATH] = "/run/underwatt", state[CONFIG_PATH] = "/var/lib/underwatt",
         act[CONFIG_PATH] = "/run/underwatt-actuator", etc[CONFIG_PATH] = UNDERWATT_ETC;
    int r = 0;

    if (world) {
        r = node_config_world_dir(world, run, sizeof run, err);
        memcpy(state, run, sizeof state);
        memcpy(etc, run, sizeof etc);
        if (r == 0)
            r = place(act, sizeof act, world, "actuator", err);
    }
    if (r == 0)
        r = place(c->ledger.path, sizeof c->ledger.path, state, "ledger.sqlite", err);
    if (r == 0)
        r = place(c->policy_file, sizeof c->policy_file, etc, "policy.yaml", err);
    if (r == 0)
        r = place(c->api.socket, sizeof c->api.socket, run, "underwattd.sock", err);
    if (r == 0)
        r = place(c->api.job_socket, sizeof c->api.job_socket, run, "job.sock", err);
    if (r == 0)
        r = place(c->actuator_socket, sizeof c->actuator_socket, act, "actuator.sock",
                  err);
    return r;
}

int node_config_init(struct node_config *ret, const char *world, uw_error *err)
{
    struct node_config c;

    memset(&c, 0, sizeof c); /* padding too: node_config_diff() uses memcmp() */
    int r = default_paths(&c, world, err);
    if (r < 0)
        return r;
    (void)snprintf(c.node.admin_group, sizeof c.node.admin_group, "underwatt-admin");
    c.node.interval_ns = 10 * NS_PER_S;
    c.node.log = LOG_LEVEL_INFO;
    c.node.realtime = true;
    c.boards.rapl = true;
    c.boards.rapl_ns = 2 * NS_PER_S;
    c.sampling.rest_ns = 3 * NS_PER_S;
    c.sampling.job_ns = 500 * NS_PER_MS;
    c.sampling.search_ns = 100 * NS_PER_MS;
    c.history_ns = 90 * DAY_NS;
    c.reference_share = VISITS_SHARE;
    c.gap_checks = GAP_PROBES_MAX;
    c.waste = (struct waste_limits){WASTE_AFTER_S * NS_PER_S, WASTE_UNDER_SHARE,
                                    WASTE_UNDER_S * NS_PER_S};
    c.caps.longest_ns = 86400 * NS_PER_S;
    c.caps.others = CAPS_YIELD;
    c.caps.reassert_ns = 10 * NS_PER_S;
    c.caps.yield_ns = 600 * NS_PER_S;
    (void)snprintf(c.caps.cls[0].name, sizeof c.caps.cls[0].name, "default");
    c.caps.cls[0].cls = CAP_CLASS_DEFAULT;
    c.caps.n_classes = 1;
    c.jobs.discover = true;
    c.jobs.phases = true;
    c.jobs.look_ns = 2 * NS_PER_S;
    c.ledger.keep_fine_ns = 2 * DAY_NS;
    c.ledger.keep_minute_ns = 14 * DAY_NS;
    c.ledger.keep_hour_ns = 400 * DAY_NS;
    c.api.limits = (struct config_limits){.connections = 512,
                                          .per_client = 64,
                                          .requests = 200,
                                          .followers = 32,
                                          .idle_ns = 30 * NS_PER_S};
    c.metrics.on = true;
    c.metrics.per_job = true;
    c.metrics.max_jobs = 64;
    *ret = c;
    return 0;
}
