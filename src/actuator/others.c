#include "actuator/others.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/units.h"

void others_look(const struct journal *journal, const char *uuid,
                 struct holder_locks *locks, struct holder *ret)
{
    char name[128];
    struct stat st;

    *ret = (struct holder){.locked = false};
    (void)snprintf(name, sizeof name, "%s.cap", uuid);
    if (journal && fstatat(journal->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        holder_look(journal->dir, uuid, locks, ret);
}

void others_say(const struct holder *holder, uint32_t original_mw, char *ret, size_t size)
{
    char who[128], original[32] = "";

    if (original_mw > 0)
        (void)snprintf(original, sizeof original, ", original %g W",
                       w_of_mw(original_mw));
    (void)snprintf(ret, size, "held by %s%s", holder_text(holder, who, sizeof who),
                   original);
}

uint32_t others_text(const struct journal *journal, const char *uuid,
                     const struct holder *holder, char *ret, size_t size)
{
    struct cap_entry entry = {.original_mw = 0};

    (void)journal_read(journal, uuid, &entry, NULL); /* 0: unknown */
    others_say(holder, entry.original_mw, ret, size);
    return entry.original_mw;
}

void others_reply(const struct journal *journal, const char *uuid,
                  const struct holder *holder, struct actuator_reply *ret)
{
    *ret = (struct actuator_reply){.result = ACTUATOR_DONE};
    (void)snprintf(ret->uuid, sizeof ret->uuid, "%s", uuid);
    if (!holder->locked)
        return;
    ret->result = ACTUATOR_TAKEN;
    ret->pid = holder_pid(holder);
    ret->original_mw = others_text(journal, uuid, holder, ret->text, sizeof ret->text);
}
