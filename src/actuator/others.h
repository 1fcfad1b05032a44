/* Boards that another Underwatt holds, by the journal that all actuators share. */
#ifndef ACTUATOR_OTHERS_H
#define ACTUATOR_OTHERS_H

#include <stddef.h>
#include <stdint.h>

#include "actuator/holder.h"
#include "actuator/journal.h"
#include "actuator/result.h"

/* The holder of a board that this actuator does not hold; not locked: none, or its first
 * hold has not written yet.  journal NULL: none.  locks: of this round of looks.
 */
void others_look(const struct journal *journal, const char *uuid,
                 struct holder_locks *locks, struct holder *ret);
/* "held by underwatt (pid 12, root), original 300 W"; original_mw 0: unknown. */
void others_say(const struct holder *holder, uint32_t original_mw, char *ret,
                size_t size);
/* The same with the journal's original limit, which is returned; 0: unknown. */
uint32_t others_text(const struct journal *journal, const char *uuid,
                     const struct holder *holder, char *ret, size_t size);
/* For clients: TAKEN with what is known of the holder, or DONE. */
void others_reply(const struct journal *journal, const char *uuid,
                  const struct holder *holder, struct actuator_reply *ret);

#endif
