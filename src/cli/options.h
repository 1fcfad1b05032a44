/* Options of a command, declared as a table:
 *
 *     struct my my = {.runs = 5};
 *     const struct opt opts[] = {
 *         {"runs", 'n', "N", "runs a point (5)", opt_u64, &my.runs},
 *         {"quiet", 'q', NULL, "say nothing", opt_flag, &my.quiet},
 *     };
 *     struct opts_rest rest;
 *     int r = opts_parse(&cmd_my, opts, n_elements(opts), argc, argv, &rest);
 *     if (r != OPTS_GO)
 *         return r;
 *
 * Written as --name VALUE, --name=VALUE, -n VALUE; `--` ends the options.  So does the
 * first word that is not an option where the command's arguments are a CMD; elsewhere
 * options may follow operands.  Every command has --help and --version.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>

#include "base/units.h"
#include "cli/cmd.h"
#include "underwatt/error.h"

/* Writes *ret on success only; -EINVAL or -ERANGE with a text that quotes the value.
 * text is NULL for an option without a value.
 */
typedef int (*opt_parse_fn)(const char *text, void *ret, uw_error *err);

struct opt {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    const char *arg;  /* name of the value in the help; NULL: no value */
    const char *help;
    opt_parse_fn parse;
    void *ret;
};

int opt_flag(const char *text, void *ret, uw_error *err); /* bool */
int opt_text(const char *text, void *ret, uw_error *err); /* const char *: borrowed */
/* The same, for text shown to others: utf8_is_plain(). */
int opt_name(const char *text, void *ret, uw_error *err);
/* The same, for a file that can be written now, or "-"; opts_parse() checks it with
 * file_check_write() when all words are parsed, and refuses two outputs that
 * replace the same file or are both "-".  NULL at first.
 */
int opt_output(const char *text, void *ret, uw_error *err);
/* The same, for a file that can be read: file_check_read(). */
int opt_input(const char *text, void *ret, uw_error *err);
int opt_u64(const char *text, void *ret, uw_error *err);    /* uint64_t */
int opt_double(const char *text, void *ret, uw_error *err); /* double */
/* uint32_t, mW: "250" and "250 W" are watts, "0.3 kW", "250000 mW"; no percent. */
struct opt_watts {
    uint32_t mw;
    const char *text; /* as it was typed */
};
int opt_watts(const char *text, void *ret, uw_error *err); /* struct opt_watts */
int opt_cap(const char *text, void *ret, uw_error *err);   /* struct cap_arg */
/* A time of a range; ns stays as it is where the option is not given.  A number without a
 * unit is seconds, as timeout(1) and watch(1) take it: every option of the commands whose
 * usual values are seconds or minutes.  opt_job_time() (hours) and underwattd's
 * --token-for (days) want a unit, as files and the API do.
 */
struct opt_time {
    uint64_t least_ns, most_ns, ns;
};
#define OPT_TIME_LEAST NS_PER_MS /* of a time that must be above 0 */
int opt_time(const char *text, void *ret, uw_error *err); /* struct opt_time */
/* "0.30" or "0.30 EUR" */
struct opt_price {
    double per_kwh;
    char currency[CURRENCY]; /* "": not named */
};
int opt_price(const char *text, void *ret, uw_error *err); /* struct opt_price */
/* double, g/kWh */
int opt_carbon(const char *text, void *ret, uw_error *err);
int opt_goal(const char *text, void *ret, uw_error *err); /* struct goal */

/* const char *: a boards text whose sources this process may open (gpu_boards_check);
 * lives as long as the process.
 */
int opt_boards(const char *text, void *ret, uw_error *err);

/* The same words and the same places in every command. */
#define OPT_BOARDS(p_text)                                                              \
    {                                                                                   \
        "boards", 0, "NAME[=PATH]",                                                     \
            "the backend of the boards, and its library or trace", opt_boards, (p_text) \
    }
#define OPT_JSON(p_text)                                                          \
    {                                                                             \
        "json", 0, "FILE|-", "write the result as JSON; - is stdout", opt_output, \
            (p_text)                                                              \
    }
#define OPT_GPUS(p_text)                                                              \
    {                                                                                 \
        "gpus", 0, "LIST", "boards: indices, UUIDs or beginnings of UUIDs, or 'all'", \
            opt_text, (p_text)                                                        \
    }

enum { OPTS_GO = -1 }; /* parsed: continue */

/* The words after the options. */
struct opts_rest {
    int argc;
    char **argv; /* ends with NULL */
    bool dashes; /* they follow a `--` */
};

/* Report a word too many, or one too few, with the form of the command: what follows its
 * name.  EXIT_USAGE.
 */
int opts_unexpected(const struct cmd *cmd, const char *word, const char *form);
/* The same for a word that is none of the command's words, which end with NULL. */
int opts_unknown_word(const struct cmd *cmd, const char *word, const char *const *known);
int opts_missing(const struct cmd *cmd, const char *form);

/* OPTS_GO, or the exit code to return: EXIT_OK after --help or --version, EXIT_USAGE
 * after a line on stderr.  A repeated option overrides.  ret NULL: the command takes no
 * arguments.
 */
int opts_parse(const struct cmd *cmd, const struct opt *opts, size_t n, int argc,
               char **argv, struct opts_rest *ret);

#endif
