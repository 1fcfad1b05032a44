/* What is said of boards whose caps have ended: no more than what was read. */
#include "local/end-state.h"

#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "tap.h"

/* Of no process. */
enum { ACTUATOR = INT32_MAX - 1, CLIENT = INT32_MAX };

#define OURS .entry = true, .known = true, .original_mw = 300000, .cap_mw = 200000

int main(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct end_state_board board;
        enum end_state want;
        bool moving;
        const char *text;
    } cases[] = {
        {"back", {.in_force_mw = 300000, .original_mw = 300000}, END_STATE_BACK, false,
         "GPU 0: 300 W is in force, the original"},
        {"back, an original that nobody knows", {.in_force_mw = 300000}, END_STATE_BACK, false,
         "GPU 0: 300 W is in force"},
        {"back, held by the next one", {.in_force_mw = 300000, .original_mw = 300000, .held = {OURS, .holder = {.locked = true, .pid = ACTUATOR, .client = CLIENT}}},
         END_STATE_BACK, false, "GPU 0: 300 W is in force, the original"},
        {"perhaps another's limit, perhaps restored since it was read", {.in_force_mw = 180000, .original_mw = 300000}, END_STATE_OTHERS, true,
         "GPU 0: 180 W is in force, the original is 300 W: not set by Underwatt, not changed"},
        {"another's limit, read again", {.in_force_mw = 180000, .original_mw = 300000, .others_mw = 180000}, END_STATE_OTHERS, false,
         "GPU 0: 180 W is in force, the original is 300 W: not set by Underwatt, not changed"},
        {"somebody else holds it", {.in_force_mw = 200000, .held = {OURS, .holder = {.locked = true, .pid = ACTUATOR, .client = CLIENT}}},
         END_STATE_HELD, false, "GPU 0: 200 W is in force, the original is 300 W: held by another Underwatt (pid 2147483647), left to it"},
        {"an actuator, whose client root alone can read", {.in_force_mw = 200000, .original_mw = 300000, .self = CLIENT, .held = {.entry = true, .holder = {.locked = true, .pid = ACTUATOR, .name = "a"}}},
         END_STATE_HELD, true, "GPU 0: 200 W is in force, the original is 300 W: held by a (pid 2147483646), left to it"},
        {"it is we who held it", {.in_force_mw = 200000, .original_mw = 300000, .self = CLIENT, .held = {OURS, .holder = {.locked = true, .pid = ACTUATOR, .client = CLIENT, .name = "a"}}},
         END_STATE_OWED, true, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; a (pid 2147483646) has the board's lock"},
        {"its actuator is stopped", {.in_force_mw = 200000, .self = CLIENT, .held = {OURS, .holder = {.locked = true, .pid = ACTUATOR, .client = CLIENT, .name = "a", .stopped = true}}},
         END_STATE_OWED, false, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; a (pid 2147483646, stopped) has the board's lock"},
        {"… and another's", {.in_force_mw = 200000, .held = {OURS, .holder = {.locked = true, .pid = ACTUATOR, .client = CLIENT, .name = "a", .stopped = true}}},
         END_STATE_OWED, false, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; another Underwatt (pid 2147483647, its actuator, pid 2147483646, is stopped) has the board's lock"},
        {"its client has gone", {.in_force_mw = 200000, .held = {OURS, .holder = {.locked = true, .pid = ACTUATOR, .client_gone = true, .name = "a"}}},
         END_STATE_OWED, true, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; a (pid 2147483646) has the board's lock"},
        {"nobody is at it", {.in_force_mw = 200000, .held = {OURS}}, END_STATE_OWED, true,
         "GPU 0: 200 W is in force, the original is 300 W: not restored, and no process has the board's lock: underwatt cap clear restores it"},
        {"the limit is back, the clock is not", {.in_force_mw = 300000, .held = {OURS, .clocks = true}}, END_STATE_OWED, true,
         "GPU 0: 300 W is in force, the original is 300 W: not restored, and no process has the board's lock: underwatt cap clear restores it"},
        {"an entry that is root's to read", {.in_force_mw = 200000, .held = {.entry = true}}, END_STATE_OWED, true,
         "GPU 0: 200 W is in force: not restored, and no process has the board's lock: underwatt cap clear restores it"},
        {"a damaged entry", {.in_force_mw = 200000, .held = {.damaged = true}}, END_STATE_OWED, false,
         "GPU 0: 200 W is in force: a damaged entry of the journal is kept aside for root"},
        {"unread", {.original_mw = 300000, .error = "GPU is lost"}, END_STATE_UNREAD, false,
         "GPU 0: could not be verified: GPU is lost"},
        {"unread, owed", {.held = {OURS}}, END_STATE_UNREAD, true,
         "GPU 0: could not be verified: its power limit cannot be read"},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct end_state_board b = cases[i].board;
        char text[400];
        b.name = "GPU 0";
        is_int(end_state_judge(&b, text, sizeof text), cases[i].want, "%s",
               cases[i].name);
        is_str(text, cases[i].text, "… in words");
        is_int(end_state_is_moving(&b), cases[i].moving, "… and whether it may change");
    }
    return done();
}
