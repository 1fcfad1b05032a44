/* What a program's start leaves behind. */
#ifndef IO_START_PAGES_H
#define IO_START_PAGES_H

/* Lets go of the pages of the program and its libraries that are only read (code and
 * constants): what is used again is mapped again, from the same file.  A daemon that has
 * started uses little of what its start did.
 */
void start_pages_drop(void);

#endif
