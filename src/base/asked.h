/* The words with which each program tells of itself. */
#ifndef BASE_ASKED_H
#define BASE_ASKED_H

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

/* What a word of the command line that no program knows is called in its error. */
const char *asked_wrong(const char *word);

#endif
