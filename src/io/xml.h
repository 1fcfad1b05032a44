/* Reading XML as a stream of elements (expat).  Names are without their namespace.
 * Refused: document types (and so entities of a document's own, and what lies elsewhere),
 * more than XML_MAX_DEPTH levels, …_ELEMENTS, or …_BYTES.
 */
#ifndef IO_XML_H
#define IO_XML_H

#include <stddef.h>

#include "underwatt/error.h"

enum {
    XML_MAX_BYTES = 4 << 20,
    XML_MAX_ELEMENTS = 200000,
    XML_MAX_DEPTH = 32,
    XML_MAX_TEXT = 256, /* of an element; the rest is left out */
};

/* An element begins, or has ended; depth: 1 for the root.  text: its own, without blanks
 * at its ends, borrowed for the call.  Other than 0 ends the reading, which returns it.
 */
struct xml_reader {
    int (*begin)(const char *name, unsigned depth, void *user); /* may be NULL */
    int (*end)(const char *name, const char *text, unsigned depth, void *user);
    void *user;
};

/* name: of errors.  0, what a function of the reader returned, -EINVAL with NAME:LINE (no
 * XML, or refused), -EFBIG, -ENOMEM.
 */
int xml_read(const char *name, const char *text, size_t len,
             const struct xml_reader *reader, uw_error *err);

#endif
