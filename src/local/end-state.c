#include "local/end-state.h"

#include <stdio.h>

#include "base/units.h"

static bool is_owed(const struct end_state_board *b)
{
    const struct held *h = &b->held;

    return h->entry && (!h->known || h->clocks || b->in_force_mw != h->original_mw);
}

/* A running client, or an actuator whose client is unknown. */
static bool is_held(const struct end_state_board *b)
{
    const struct holder *h = &b->held.holder;

    return h->locked && !h->stopped && !h->client_gone &&
           (!h->client || h->client != b->self);
}

static enum end_state judge(const struct end_state_board *b)
{
    if (!b->in_force_mw)
        return END_STATE_UNREAD;
    if (is_owed(b))
        return is_held(b) ? END_STATE_HELD : END_STATE_OWED;
    if (b->held.damaged)
        return END_STATE_OWED;
    return b->original_mw && b->in_force_mw != b->original_mw ? END_STATE_OTHERS
                                                              : END_STATE_BACK;
}

/* An actuator whose client is unknown may be restoring: only root can read its lock.
 * And another program's limit may have been Underwatt's when it was read, and was
 * restored before the journal was read.
 */
bool end_state_is_moving(const struct end_state_board *b)
{
    bool others = is_held(b) && b->held.holder.client;

    if (judge(b) == END_STATE_OTHERS)
        return b->others_mw != b->in_force_mw;
    return is_owed(b) && !others && !b->held.damaged && !b->held.holder.stopped;
}

static void say_why_owed(const struct end_state_board *b, char *ret, size_t size)
{
    const struct held *h = &b->held;
    struct holder holder = h->holder;
    char who[128];

    if (holder.client == b->self)
        holder.client = 0;
    if (h->damaged && !h->entry)
        (void)snprintf(ret, size,
                       "a damaged entry of the journal is kept aside for root");
    else if (h->holder.locked)
        (void)snprintf(ret, size, "not restored yet; %s has the board's lock",
                       holder_text(&holder, who, sizeof who));
    else
        (void)snprintf(ret, size,
                       "not restored, and no process has the board's lock: "
                       "underwatt cap clear restores it");
}

enum end_state end_state_judge(const struct end_state_board *b, char *ret, size_t size)
{
    char force[96], why[192], who[128];
    enum end_state left = judge(b);
    uint32_t original_mw = b->original_mw ? b->original_mw : b->held.original_mw;
    int n = snprintf(force, sizeof force, "%s: %g W is in force", b->name,
                     w_of_mw(b->in_force_mw));

    if (n > 0 && (size_t)n < sizeof force && original_mw && left != END_STATE_BACK)
        (void)snprintf(force + n, sizeof force - (size_t)n, ", the original is %g W",
                       w_of_mw(original_mw));
    switch (left) {
    case END_STATE_BACK:
        (void)snprintf(ret, size, "%s%s", force, original_mw ? ", the original" : "");
        break;
    case END_STATE_OTHERS:
        (void)snprintf(ret, size, "%s: not set by Underwatt, not changed", force);
        break;
    case END_STATE_HELD:
        (void)snprintf(ret, size, "%s: held by %s, left to it", force,
                       holder_text(&b->held.holder, who, sizeof who));
        break;
    case END_STATE_OWED:
        say_why_owed(b, why, sizeof why);
        (void)snprintf(ret, size, "%s: %s", force, why);
        break;
    case END_STATE_UNREAD:
        (void)snprintf(ret, size, "%s: could not be verified: %s", b->name,
                       b->error && b->error[0] ? b->error
                                               : "its power limit cannot be read");
        break;
    }
    return left;
}
