/* What is said of boards whose caps have ended: no more than what was read. */
#include "node/left.h"

#include <string.h>

#include "base/auto.h"
#include "tap.h"

#define OURS .entry = true, .known = true, .original_mw = 300000, .cap_mw = 200000

int main(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct left_board board;
        enum left want;
        bool moving;
        const char *text;
    } cases[] = {
        {"back", {.in_force_mw = 300000, .original_mw = 300000}, LEFT_BACK, false,
         "GPU 0: 300 W is in force, the original"},
        {"back, an original that nobody knows", {.in_force_mw = 300000}, LEFT_BACK, false,
         "GPU 0: 300 W is in force"},
        {"back, held by the next one", {.in_force_mw = 300000, .original_mw = 300000, .held = {OURS, .holder = {.locked = true, .pid = 8, .client = 9}}},
         LEFT_BACK, false, "GPU 0: 300 W is in force, the original"},
        {"perhaps another's limit, perhaps restored since it was read", {.in_force_mw = 180000, .original_mw = 300000}, LEFT_OTHERS, true,
         "GPU 0: 180 W is in force, the original is 300 W: not ours, left alone"},
        {"another's limit, read again", {.in_force_mw = 180000, .original_mw = 300000, .others_mw = 180000}, LEFT_OTHERS, false,
         "GPU 0: 180 W is in force, the original is 300 W: not ours, left alone"},
        {"somebody else holds it", {.in_force_mw = 200000, .held = {OURS, .holder = {.locked = true, .pid = 8, .client = 9}}},
         LEFT_HELD, false, "GPU 0: 200 W is in force, the original is 300 W: held by process 9, left to it"},
        {"an actuator, whose client root alone can read", {.in_force_mw = 200000, .original_mw = 300000, .self = 9, .held = {.entry = true, .holder = {.locked = true, .pid = 8, .name = "a"}}},
         LEFT_HELD, true, "GPU 0: 200 W is in force, the original is 300 W: held by process 8 (a), left to it"},
        {"it is we who held it", {.in_force_mw = 200000, .original_mw = 300000, .self = 9, .held = {OURS, .holder = {.locked = true, .pid = 8, .client = 9, .name = "a"}}},
         LEFT_OWED, true, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; process 8 (a) has the board's lock"},
        {"its actuator is stopped", {.in_force_mw = 200000, .self = 9, .held = {OURS, .holder = {.locked = true, .pid = 8, .client = 9, .name = "a", .stopped = true}}},
         LEFT_OWED, false, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; process 8 (a, stopped) has the board's lock"},
        {"… and another's", {.in_force_mw = 200000, .held = {OURS, .holder = {.locked = true, .pid = 8, .client = 7, .name = "a", .stopped = true}}},
         LEFT_OWED, false, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; process 7 (its process 8, a, is stopped) has the board's lock"},
        {"its client has gone", {.in_force_mw = 200000, .held = {OURS, .holder = {.locked = true, .pid = 8, .client_gone = true, .name = "a"}}},
         LEFT_OWED, true, "GPU 0: 200 W is in force, the original is 300 W: not restored yet; process 8 (a) has the board's lock"},
        {"nobody is at it", {.in_force_mw = 200000, .held = {OURS}}, LEFT_OWED, true,
         "GPU 0: 200 W is in force, the original is 300 W: not restored, and nobody has the board's lock: underwatt cap clear restores it"},
        {"the limit is back, the clock is not", {.in_force_mw = 300000, .held = {OURS, .clocks = true}}, LEFT_OWED, true,
         "GPU 0: 300 W is in force, the original is 300 W: not restored, and nobody has the board's lock: underwatt cap clear restores it"},
        {"an entry that is root's to read", {.in_force_mw = 200000, .held = {.entry = true}}, LEFT_OWED, true,
         "GPU 0: 200 W is in force: not restored, and nobody has the board's lock: underwatt cap clear restores it"},
        {"a damaged entry", {.in_force_mw = 200000, .held = {.damaged = true}}, LEFT_OWED, false,
         "GPU 0: 200 W is in force: a damaged entry of the journal is kept aside for root"},
        {"unread", {.original_mw = 300000, .error = "GPU is lost"}, LEFT_UNREAD, false,
         "GPU 0: could not be verified: GPU is lost"},
        {"unread, owed", {.held = {OURS}}, LEFT_UNREAD, true,
         "GPU 0: could not be verified: its power limit cannot be read"},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct left_board b = cases[i].board;
        char text[400];
        b.name = "GPU 0";
        is_int(left_judge(&b, text, sizeof text), cases[i].want, "%s", cases[i].name);
        is_str(text, cases[i].text, "… in words");
        is_int(left_is_moving(&b), cases[i].moving, "… and whether it may change");
    }
    return done();
}
