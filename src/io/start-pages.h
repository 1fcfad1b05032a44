/* Memory used by a program's start. */
#ifndef IO_START_PAGES_H
#define IO_START_PAGES_H

/* Drops the pages of the program and its libraries that are only read (code and
 * constants): pages that are used again are mapped again from the same file.  A daemon
 * that has started uses few of the pages of its start.
 */
void start_pages_drop(void);

#endif
