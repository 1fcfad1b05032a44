/* Is it UTF-8?  (RFC 3629: no surrogates, nothing over U+10FFFF, shortest form.) */
#ifndef IO_UTF8_H
#define IO_UTF8_H

#include <stddef.h>

/* Length of the character at text (1 to 4), or 0 where there is none. */
size_t utf8_char(const char *text, size_t len);
/* Where the first byte stands that is none of any character; len: nowhere. */
size_t utf8_bad(const char *text, size_t len);

#endif
