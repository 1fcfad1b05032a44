/* Is it UTF-8?  (RFC 3629: no surrogates, nothing over U+10FFFF, shortest form.) */
#ifndef IO_UTF8_H
#define IO_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the character at text (1 to 4), or 0 where there is none. */
size_t utf8_char(const char *text, size_t len);
/* Is it text for one line of a terminal or a log: UTF-8 without control characters (C0,
 * C1, DEL), without those that end lines (U+2028, U+2029) or turn the direction of what
 * follows (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069)?
 */
bool utf8_is_plain(const char *text);
/* Where the first byte stands that is none of any character; len: nowhere. */
size_t utf8_bad(const char *text, size_t len);

#endif
