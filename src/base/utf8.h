/* Is it UTF-8?  (RFC 3629: no surrogates, nothing over U+10FFFF, shortest form.)  And is
 * it text that people see as it is?
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the character at text (1 to 4), or 0 where there is none. */
size_t utf8_char(const char *text, size_t len);
/* Where the first byte stands that is none of any character; len: nowhere. */
size_t utf8_bad(const char *text, size_t len);

/* The same of a character that is seen as it is: no control character (C0, DEL, C1), no
 * end of a line (U+2028, U+2029), nothing that turns the direction of what follows, and
 * nothing that is not seen at all (Unicode's Default_Ignorable_Code_Point: soft hyphen,
 * zero-width space and joiners, fillers, variation selectors, tags, …).
 */
size_t utf8_plain_char(const char *text, size_t len);
/* Are all of them so?  Names, labels and reasons that are not are refused wherever
 * somebody gives them, so that no two differ by what nobody sees.  (Letters that look
 * alike are others still.)
 */
bool utf8_is_plain(const char *text);
/* A text that nobody can be refused (the name of a process, a board, a user, a host):
 * each character that is not plain, and each byte that is of none, becomes "?".
 */
void utf8_mend(char *text);

#endif
