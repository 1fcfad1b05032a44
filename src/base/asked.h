/* The words with which each program tells of itself. */
#ifndef BASE_ASKED_H
#define BASE_ASKED_H

#include <stdbool.h>

enum asked {
    ASKED_NOTHING,
    ASKED_HELP,    /* --help, -h, help */
    ASKED_VERSION, /* --version, -V, version */
};
/* Of the first argument: word NULL counts as none. */
enum asked asked_for(const char *word);
/* Of all arguments of a program that has options alone, up to "--"; the words without a
 * dash count as the first argument only.
 */
enum asked asked_by(int argc, char **argv);

/* Prints the text for it on stdout.  False: that failed, and a line on stderr says so. */
bool asked_print(const char *program, const char *text);

/* What a word of the command line that no program knows is called in its error. */
const char *asked_wrong(const char *word);

#endif
