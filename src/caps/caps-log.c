#include "caps/caps-log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/names.h"

static void log_state(const struct caps *c, const struct gpu_info *info,
                      const struct caps_what *what)
{
    struct caps_view v;

    caps_look(c, what->board, &v);
    log_event(LOG_LEVEL_INFO, LOG_EVENT_CAP_STATE, "gpu=%u uuid=%s state=%s text=%s",
              info->index, info->uuid, names_word(NAMES_CAP_STATE, v.state),
              log_quote(what->text ? what->text : "").text);
}

void caps_log(const struct caps *c, const struct gpu_info *info,
              const struct caps_what *what)
{
    switch (what->event) {
    case CAPS_EVENT_FAIL:
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_CAP_FAILED, "gpu=%u uuid=%s reason=%s",
                  info->index, info->uuid, log_quote(what->text ? what->text : "").text);
        break;
    case CAPS_EVENT_OTHER:
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_OTHER_WRITER,
                  "gpu=%u uuid=%s cause=%s enforced_mw=%" PRIu32, info->index, info->uuid,
                  names_word(NAMES_CAP_CAUSE, what->cause), what->enforced_mw);
        break;
    case CAPS_EVENT_STATE:
        log_state(c, info, what);
        break;
    case CAPS_EVENT_CAP:
        log_event(LOG_LEVEL_DEBUG, LOG_EVENT_CAP,
                  "gpu=%u uuid=%s target_mw=%" PRIu32 " enforced_mw=%" PRIu32,
                  info->index, info->uuid, what->target_mw, what->enforced_mw);
        break;
    case CAPS_EVENT_CLOCK:
        log_event(LOG_LEVEL_INFO, LOG_EVENT_CLOCK, "gpu=%u uuid=%s locked_mhz=%" PRIu32,
                  info->index, info->uuid, what->clock_mhz);
        break;
    default:
        break;
    }
}

const char *caps_log_budget(const struct budget *b, struct caps_budget_log *log)
{
    struct caps_budget_view v;
    const char *state, *text = "";

    budget_look(b, &v);
    if (!v.budget_mw)
        state = "none";
    else if (v.unknown)
        state = "unknown",
        text = "no board reports its limits: the sum in force is unknown";
    else if (v.is_short)
        state = "short",
        text = "below the sum of the boards' minimums, which are in force";
    else if (v.counted_mw > v.budget_mw)
        state = "above", text = "limits that may be in force exceed it";
    else
        state = "kept";
    if (strcmp(log->state, state) == 0)
        return NULL;
    bool first = !log->state[0];
    (void)snprintf(log->state, sizeof log->state, "%s", state);
    if (first && !v.budget_mw)
        return NULL;
    if (v.unknown)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_BUDGET, "state=%s budget_mw=%" PRIu32,
                  state, v.budget_mw);
    else
        log_event(text[0] ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, LOG_EVENT_BUDGET,
                  "state=%s budget_mw=%" PRIu32 " counted_mw=%" PRIu64
                  " least_mw=%" PRIu64,
                  state, v.budget_mw, v.counted_mw, v.least_mw);
    return text[0] ? text : state;
}
