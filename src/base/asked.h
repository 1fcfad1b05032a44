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

#endif
