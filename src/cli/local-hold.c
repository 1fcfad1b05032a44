#include "cli/local-hold.h"

#include <string.h>

#include "cli/survey.h"
#include "cli/take.h"
#include "cli/who.h"
#include "gpu/backends.h"
#include "local/held.h"

bool local_hold_look(const char *boards, const char *uuid, const struct json_value *cap,
                     struct local_hold *ret)
{
    struct gpu_about about = {.simulated = false};
    char dir[sizeof about.state_dir + 16];
    struct held held;
    struct who who;

    *ret = (struct local_hold){.pid = 0};
    if (strcmp(take_text(cap, "state"), "free") != 0 ||
        gpu_boards_look(boards, &about, NULL) < 0)
        return false;
    held_dir(about.simulated ? about.state_dir : NULL, dir, sizeof dir);
    held_look(dir, uuid, &held);
    if (!held.known || held.gone || held.pid <= 0)
        return false;
    who_is("", held.pid, &who);
    if (!who.known || who.daemon) /* the daemon's actuator restores a limit */
        return false;
    ret->pid = held.pid;
    ret->original_mw = held.original_mw;
    survey_held(&held, ret->text, sizeof ret->text);
    return true;
}
