/* The node's caps, and the actuator behind them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/units.h"
#include "node/node-inside.h"

enum { CONNECT_FIRST_MS = 500, CONNECT_MOST_S = 30 };

static int connect_actuator(struct node *node, uw_error *err);

/* ---- caps ---- */

static struct caps_conf conf_of(const struct node_config *c)
{
    const struct cap_class *cls = node_config_class(c, "default");

    return (struct caps_conf){.cls = cls ? *cls : CAP_CLASS_DEFAULT,
                              .others = (enum caps_others)c->caps.others,
                              .reassert_ns = c->caps.reassert_ns,
                              .yield_ns = c->caps.yield_ns,
                              .dry_run = c->node.dry_run,
                              .clocks = c->caps.clocks,
                              .always_hold = c->caps.always_hold,
                              .budget_mw = c->budget_mw};
}

static void log_state(const struct node *node, const struct caps_what *what)
{
    const struct gpu_info *info = node_info(node, what->board);
    struct caps_view v;

    caps_look(node->caps, what->board, &v);
    log_event(LOG_LEVEL_INFO, "cap-state", "gpu=%u uuid=%s state=%s text=%s", info->index,
              info->uuid, names_word(NAMES_CAP_STATE, v.state),
              log_quote(what->text ? what->text : "").text);
}

static void log_caps(const struct node *node, const struct caps_what *what)
{
    const struct gpu_info *info = node_info(node, what->board);

    switch (what->event) {
    case CAPS_EVENT_FAIL:
        log_event(LOG_LEVEL_WARNING, "cap-failed", "gpu=%u uuid=%s reason=%s",
                  info->index, info->uuid, log_quote(what->text ? what->text : "").text);
        break;
    case CAPS_EVENT_OTHER:
        log_event(LOG_LEVEL_NOTICE, "other-writer",
                  "gpu=%u uuid=%s cause=%s enforced_mw=%" PRIu32, info->index, info->uuid,
                  names_word(NAMES_CAP_CAUSE, what->cause), what->enforced_mw);
        break;
    case CAPS_EVENT_STATE:
        log_state(node, what);
        break;
    case CAPS_EVENT_CAP:
        log_event(LOG_LEVEL_DEBUG, "cap",
                  "gpu=%u uuid=%s target_mw=%" PRIu32 " enforced_mw=%" PRIu32,
                  info->index, info->uuid, what->target_mw, what->enforced_mw);
        break;
    case CAPS_EVENT_CLOCK:
        log_event(LOG_LEVEL_INFO, "clock", "gpu=%u uuid=%s locked_mhz=%" PRIu32,
                  info->index, info->uuid, what->clock_mhz);
        break;
    default:
        break;
    }
}

static void on_caps(const struct caps_what *what, void *user)
{
    struct node *node = user;
    struct caps_what told = *what;

    if (what->event == CAPS_EVENT_WITHDRAW && node->how)
        told.text = names_word(NAMES_CLAIM_END, node->how);
    log_caps(node, what);
    if (what->event == CAPS_EVENT_CAP)
        node_attribution_cap(node, what->board, what->enforced_mw);
    node_ledger_caps(node, &told);
    if (what->event == CAPS_EVENT_STATE)
        node_detach_kick(node);
    if (node->tunings)
        searches_on_caps(node->tunings, what);
    node_phases_on_caps(node, what);
    node_tell(node, NODE_EVENT_CAPS, &told);
}

int node_caps_start(struct node *node, uint64_t first_claim, uw_error *err)
{
    struct caps_opts opts = {.loop = node->loop,
                             .boards = node->boards,
                             .conf = conf_of(&node->config),
                             .first_id = first_claim,
                             .on_event = on_caps,
                             .user = node};

    int r = caps_new(&opts, &node->caps, err);
    for (size_t i = 0; r == 0 && i < node->n_kept; i++)
        for (size_t k = 0; k < node->n; k++)
            if (strcmp(node->kept[i].info.uuid, node_info(node, k)->uuid) == 0)
                caps_count_on(node->caps, k, &node->view_board[i].cap);
    return r;
}

void node_caps_configure(struct node *node)
{
    struct caps_conf conf = conf_of(&node->config);

    if (node->caps)
        caps_configure(node->caps, &conf);
}

/* What has become of the budget, once each time that it changes. */
static void watch_budget(struct node *node)
{
    struct caps_budget_view v;
    const char *state, *text = "";

    caps_budget_look(node->caps, &v);
    if (!v.budget_mw)
        state = "none";
    else if (v.unknown)
        state = "unknown",
        text = "no board tells its limits: what is in force is unknown";
    else if (v.is_short)
        state = "short", text = "boards cannot do with so little: at their minimums";
    else if (v.counted_mw > v.budget_mw)
        state = "above", text = "what may be in force is above it";
    else
        state = "kept";
    if (strcmp(node->budget_state, state) == 0)
        return;
    bool first = !node->budget_state[0];
    (void)snprintf(node->budget_state, sizeof node->budget_state, "%s", state);
    if (first && !v.budget_mw)
        return;
    if (v.unknown)
        log_event(LOG_LEVEL_WARNING, "budget", "state=%s budget_mw=%" PRIu32, state,
                  v.budget_mw);
    else
        log_event(text[0] ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "budget",
                  "state=%s budget_mw=%" PRIu32 " counted_mw=%" PRIu64
                  " least_mw=%" PRIu64,
                  state, v.budget_mw, v.counted_mw, v.least_mw);
    node_ledger_event(node, "budget", SIZE_MAX, (uid_t)-1, text[0] ? text : state);
}

void node_caps_seen(struct node *node)
{
    watch_budget(node);
    for (size_t i = 0; i < node->n; i++) {
        const struct sampler_now *now = sampler_board(node->board[i].sampler, 0);
        sampler_watch_clock(node->board[i].sampler, 0, caps_watches_clock(node->caps, i));
        if (now->limits.has == 0 || now->limits.at_ns == node->board[i].seen_ns)
            continue; /* limits of an older round would look like another's change */
        node->board[i].seen_ns = now->limits.at_ns;
        caps_seen(node->caps, i, &now->limits);
    }
}

/* ---- the actuator ---- */

static void say_missing(struct node *node, const char *text)
{
    if (strcmp(node->actuator_text, text) == 0)
        return;
    (void)snprintf(node->actuator_text, sizeof node->actuator_text, "%s", text);
    log_event(LOG_LEVEL_WARNING, "read-only", "reason=%s", log_quote(text).text);
    node_ledger_event(node, "read-only", SIZE_MAX, (uid_t)-1, text);
}

/* No actuator: reading goes on, caps wait, and it is tried again. */
static void lose_actuator(struct node *node, const char *text)
{
    uint64_t wait_ns = CONNECT_FIRST_MS * NS_PER_MS;

    if (node->caps)
        caps_use_actuator(node->caps, NULL);
    actuator_free(take(node->actuator));
    node->actuator_ready = false;
    node_detach_actuator_gone(node);
    for (unsigned i = 0; i < node->connects && wait_ns < CONNECT_MOST_S * NS_PER_S; i++)
        wait_ns *= 2;
    if (wait_ns > CONNECT_MOST_S * NS_PER_S)
        wait_ns = CONNECT_MOST_S * NS_PER_S;
    node->connects++;
    if (node->ending)
        return;
    say_missing(node, text);
    loop_timer_set(node->connect, loop_now_ns(node->loop) + wait_ns, 0);
}

static int on_actuator_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct node *node = user;

    if (r < 0) {
        lose_actuator(node, text);
        return 0;
    }
    node->actuator_ready = true;
    node->connects = 0;
    if (node->actuator_text[0]) {
        log_event(LOG_LEVEL_NOTICE, "actuator", "state=connected");
        node_ledger_event(node, "actuator", SIZE_MAX, (uid_t)-1, "connected");
    }
    node->actuator_text[0] = '\0';
    if (node->caps)
        caps_use_actuator(node->caps, act);
    node_detach_kick(node);
    node_rapl_ask(node, act);
    return 0;
}

static int on_actuator_event(struct actuator *act, enum actuator_event event,
                             const struct actuator_reply *what, void *user)
{
    struct node *node = user;
    (void)act;

    if (node->caps)
        caps_on_actuator(node->caps, event, what);
    if (event == ACTUATOR_EVENT_ENDED)
        lose_actuator(node, what && what->text[0] ? what->text : "the actuator has gone");
    return 0;
}

static int on_connect(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct node *node = user;
    uw_error err = {""};
    (void)timer;
    (void)now_ns;

    if (!node->actuator && connect_actuator(node, &err) < 0)
        lose_actuator(node, err.text);
    return 0;
}

static int connect_actuator(struct node *node, uw_error *err)
{
    struct actuator_opts opts = {.on_ready = on_actuator_ready,
                                 .on_event = on_actuator_event,
                                 .user = node,
                                 .simulated = node->opts.simulated};

    if (node->opts.service)
        return actuator_connect_virtual(node->loop, node->opts.service, &opts,
                                        &node->actuator, err);
    if (node->opts.virtual_actuator)
        return actuator_start_virtual(node->loop, node->opts.backend,
                                      boards_lib(node->boards), &opts, &node->actuator,
                                      err);
    return actuator_connect(node->loop, node->config.actuator_socket, &opts,
                            &node->actuator, err);
}

int node_actuator_start(struct node *node, uw_error *err)
{
    int r = 0;

    if (!node->connect)
        r = loop_timer_new(node->loop, UINT64_MAX, 0, on_connect, node, &node->connect,
                           err);
    if (r == 0 && !node->config.node.dry_run && !node->actuator)
        loop_timer_set(node->connect, 0, 0);
    return r;
}

void node_actuator_stop(struct node *node)
{
    if (node->caps)
        caps_use_actuator(node->caps, NULL);
    actuator_free(take(node->actuator));
    node->actuator_ready = false;
    loop_timer_free(take(node->connect));
}
