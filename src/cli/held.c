#include "cli/held.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "actuator/journal.h"
#include "base/auto.h"
#include "base/units.h"
#include "io/file.h"

static pid_t holder(const char *dir, const char *uuid)
{
    char path[512];
    auto_(mem_free) char *text = NULL;
    uint64_t pid = 0;

    (void)snprintf(path, sizeof path, "%s/%s.lock", dir, uuid);
    if (file_read(path, 64, &text, NULL, NULL) < 0)
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return parse_u64(text, &pid, NULL) == 0 && pid < INT32_MAX ? (pid_t)pid : 0;
}

void held_look(const char *dir, const char *uuid, struct held *ret)
{
    char path[512];
    auto_(mem_free) char *text = NULL;
    struct cap_entry entry;
    size_t len = 0;

    *ret = (struct held){0};
    if (!core_is_uuid(uuid))
        return;
    int n = snprintf(path, sizeof path, "%s/%s.cap", dir, uuid);
    if (n < 0 || (size_t)n >= sizeof path ||
        file_read(path, JOURNAL_BYTES, &text, &len, NULL) < 0 ||
        journal_parse(text, len, &entry, NULL) < 0)
        return;
    *ret = (struct held){.known = true,
                         .pid = holder(dir, uuid),
                         .original_mw = entry.original_mw,
                         .cap_mw = entry.intended_mw};
    ret->gone = ret->pid > 0 && kill(ret->pid, 0) < 0 && errno == ESRCH;
}
