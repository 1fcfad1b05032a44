#include "cli/own-hold.h"

#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/names.h"
#include "caps/caps.h"
#include "cli/take.h"

static const char *uuid_of(const struct own_node *own, size_t i)
{
    return board_view(boards_at(own_node_boards(own), i))->info->uuid;
}

static unsigned index_of(const struct own_node *own, size_t i)
{
    return board_view(boards_at(own_node_boards(own), i))->info->index;
}

static struct json_out *claim_body(const char *uuid, uint32_t mw, const char *why)
{
    struct json_out *o = json_out_new();
    char cap[48];

    (void)snprintf(cap, sizeof cap, "%.10g W", w_of_mw(mw));
    json_out_object(o, NULL);
    json_out_text(o, "gpu", uuid);
    json_out_text(o, "cap", cap);
    json_out_text(o, "kind", names_word(NAMES_CLAIM_KIND, CLAIM_SOFT));
    json_out_bool(o, "at_once", true);
    json_out_text(o, "why", why);
    json_out_end(o);
    return o;
}

int own_hold_claim(struct own_node *own, size_t i, const char *why, uint64_t *ret_id,
                   uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct caps_view cap;

    caps_look(node_caps(own_node_node(own)), i, &cap);
    if (!cap.can_cap)
        return fail(err, -ENOTSUP, "%s: the board cannot be capped", uuid_of(own, i));
    int r = ask_wait(own_node_ask(own), "POST", "/v1/claims",
                     claim_body(uuid_of(own, i), cap.bounds.original_mw, why), &doc, err);
    if (r >= 0 && ret_id)
        *ret_id = take_u64(doc ? json_root(doc) : NULL, "id");
    return r;
}

int own_hold_is(const struct own_node *own, size_t i, uw_error *err)
{
    struct caps_view cap;

    caps_look(node_caps(own_node_node(own)), i, &cap);
    if (!cap.can_cap)
        return fail(err, -ENOTSUP, "GPU %u (%s): the board cannot be capped",
                    index_of(own, i), uuid_of(own, i));
    if (cap.state == CAPS_HELD)
        return 1;
    if (cap.state == CAPS_FREE || cap.state == CAPS_HOLDING)
        return 0;
    int r = cap.taken_by ? -EBUSY : cap.state == CAPS_DENIED ? -EPERM : -EIO;
    return fail(err, r, "GPU %u: %s", index_of(own, i),
                cap.text[0] ? error_after(cap.text, uuid_of(own, i))
                            : names_word(NAMES_CAP_STATE, cap.state));
}

bool own_hold_writes(const struct own_node *own, size_t i)
{
    struct caps_view cap;

    caps_look(node_caps(own_node_node(own)), i, &cap);
    return cap.state == CAPS_HOLDING && cap.writing;
}

int own_hold_late(const struct own_node *own, size_t i, uw_error *err)
{
    return fail(err, -ETIMEDOUT, "GPU %u: the actuator does not answer within %d s",
                index_of(own, i), OWN_HOLD_MS / 1000);
}
