/* Validation of UTF-8 (RFC 3629: no surrogates, nothing over U+10FFFF, shortest form) and
 * of plain text, in which every character is visible.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the character at text (1 to 4); 0: invalid. */
size_t utf8_char(const char *text, size_t len);
/* Offset of the first byte that is part of no character; len: all are valid. */
size_t utf8_bad(const char *text, size_t len);

/* utf8_char() for plain characters: 0 also for control characters (C0, DEL, C1), line
 * ends (U+2028, U+2029), changes of direction, and invisible characters (Unicode's
 * Default_Ignorable_Code_Point: soft hyphen, zero-width space and joiners, fillers,
 * variation selectors, tags, …).
 */
size_t utf8_plain_char(const char *text, size_t len);
/* Whether all characters are plain.  Names, labels and reasons that are not are refused
 * on input, so that no two differ only by invisible characters. (Similar letters still
 * differ.)
 */
bool utf8_is_plain(const char *text);
/* Makes a text plain that cannot be refused (the name of a process, a board, a user, a
 * host): each character that is not plain, and each invalid byte, becomes "?".
 */
void utf8_mend(char *text);

#endif
