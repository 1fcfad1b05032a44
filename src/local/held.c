#include "local/held.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "actuator/journal.h"
#include "base/auto.h"
#include "base/units.h"
#include "io/file.h"

void held_dir(const char *state_dir, char *ret, size_t size)
{
    if (state_dir)
        (void)snprintf(ret, size, "%s/actuator", state_dir);
    else
        (void)snprintf(ret, size, "/run/underwatt-actuator");
}

static bool is_there(const char *dir, const char *uuid, const char *suffix)
{
    char path[512];
    struct stat st;

    int n = snprintf(path, sizeof path, "%s/%s%s", dir, uuid, suffix);
    return n > 0 && (size_t)n < sizeof path && lstat(path, &st) == 0;
}

void held_look(const char *dir, const char *uuid, struct held *ret)
{
    char path[512];
    auto_(mem_free) char *text = NULL;
    struct cap_entry entry;
    size_t len = 0;

    *ret = (struct held){.entry = false};
    if (!core_is_uuid(uuid))
        return;
    ret->damaged = is_there(dir, uuid, JOURNAL_DAMAGED);
    ret->entry = is_there(dir, uuid, ".cap");
    if (!ret->entry)
        return;
    holder_look(dir, uuid, NULL, &ret->holder);
    ret->pid = holder_pid(&ret->holder);
    ret->gone = !ret->holder.locked;
    int n = snprintf(path, sizeof path, "%s/%s.cap", dir, uuid);
    if (n < 0 || (size_t)n >= sizeof path ||
        file_read(path, JOURNAL_BYTES, &text, &len, NULL) < 0 ||
        journal_parse(text, len, &entry, NULL) < 0)
        return;
    ret->known = true;
    ret->original_mw = entry.original_mw;
    ret->cap_mw = entry.intended_mw;
    ret->clocks = entry.clocks;
}
