#include "cli/cap-left.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "actuator/core.h"
#include "base/auto.h"
#include "base/units.h"
#include "cli/cap-ask.h"
#include "cli/cli-loop.h"
#include "local/end-state.h"

enum { WAIT_MS = 5000, LOOK_MS = 250 };

/* A board: its state before, and at the last reading. */
struct seen {
    unsigned index;
    const char *uuid;
    uint32_t original_mw; /* 0: unknown */
    uint32_t others_mw;   /* as in end_state_board */
    bool owed;            /* the journal had an entry, or this process held it */
    char name[24], text[400], error[sizeof((uw_error *)NULL)->text];
    enum end_state left;
    bool moving, known; /* known: report the board */
};

static const struct survey_board *board_of(const struct survey *s, const char *uuid)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (strcmp(s->board[i].info.uuid, uuid) == 0)
            return &s->board[i];
    return NULL;
}

static void judge(struct seen *b, const struct survey *s)
{
    const struct survey_board *now = board_of(s, b->uuid);
    struct end_state_board left = {.name = b->name,
                                   .original_mw = b->original_mw,
                                   .others_mw = b->others_mw,
                                   .error = b->error,
                                   .self = getpid()};

    (void)snprintf(b->name, sizeof b->name, "GPU %u", b->index);
    (void)snprintf(b->error, sizeof b->error, "%s",
                   now ? now->error.text
                   : s ? s->error.text
                       : "no board was read");
    if (now) {
        left.held = now->held;
        left.in_force_mw = core_seen(&now->sample).set_mw;
    }
    b->left = end_state_judge(&left, b->text, sizeof b->text);
    b->moving = b->left != END_STATE_BACK && b->left != END_STATE_UNREAD &&
                end_state_is_moving(&left);
    b->others_mw = b->left == END_STATE_OTHERS ? left.in_force_mw : 0;
    b->known = b->owed || left.held.entry || left.held.damaged;
}

/* Reads the boards until none of them changes any more. */
static void look(struct seen *b, size_t n, const struct cli_env *env, const char *boards)
{
    for (unsigned ms = 0;; ms += LOOK_MS) {
        auto_(survey_free) struct survey *s = NULL;
        bool moving = false;
        (void)survey_new(&cmd_cap, env, boards, &s);
        for (size_t i = 0; i < n; i++) {
            judge(&b[i], s);
            moving = moving || b[i].moving;
        }
        if (!moving || !s || ms >= WAIT_MS)
            return;
        cli_loop_wait(s->loop, LOOK_MS);
    }
}

void cap_left(struct cap_hold *h)
{
    struct seen seen[BOARDS_MAX];
    size_t of[BOARDS_MAX], n = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct cap_target *t = &h->target[i];
        if (t->restored || !t->original_mw)
            continue;
        of[n] = i;
        seen[n++] = (struct seen){.index = t->index,
                                  .uuid = t->uuid,
                                  .original_mw = t->original_mw,
                                  .owed = true};
    }
    if (n == 0)
        return;
    look(seen, n, h->env, h->library);
    for (size_t i = 0; i < n; i++) {
        h->target[of[i]].restored = seen[i].left == END_STATE_BACK;
        cli_say("cap: %s", seen[i].text);
    }
}

int cap_clear(const struct cli_env *env, const char *boards, const struct survey *before,
              const size_t *at, size_t n)
{
    struct cap_hold nothing = {
        .env = env, .library = boards, .simulated = survey_simulated(before)};
    struct seen seen[BOARDS_MAX];
    size_t known = 0, back = 0, bad = 0;

    int code = cap_own_hold(&nothing); /* a starting actuator restores what was left */
    for (size_t i = 0; i < n; i++) {
        const struct survey_board *b = &before->board[at[i]];
        seen[i] = (struct seen){.index = b->info.index,
                                .uuid = b->info.uuid,
                                .original_mw = b->held.original_mw,
                                .owed = b->held.entry};
    }
    look(seen, n, env, boards);
    for (size_t i = 0; i < n; i++) {
        if (!seen[i].known)
            continue;
        known++;
        back += seen[i].left == END_STATE_BACK || seen[i].left == END_STATE_OTHERS;
        bad += seen[i].left == END_STATE_OWED || seen[i].left == END_STATE_UNREAD;
        cli_say("cap: %s", seen[i].text);
    }
    if (known == 0 && code == EXIT_OK)
        cli_say("cap: no limit was left behind");
    if (bad == 0)
        return code;
    return back > 0 ? EXIT_PARTIAL : EXIT_FAIL;
}
