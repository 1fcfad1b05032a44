/* One round of a source: its requests, one after the other, and what came of them.
 *
 * Owns: nothing.  Touches: the network (io/http-many.h), the source's file, the file of
 * its key, which is read anew in each round.  Thread: a worker's, which it blocks; it has
 * all of struct round from the submission to its end.
 */
#ifndef FETCHER_ROUND_H
#define FETCHER_ROUND_H

#include "io/http-many.h"
#include "io/loop.h"
#include "signal/config.h"
#include "signal/fetch.h"
#include "signal/source.h"

enum { ROUND_REQUEST_S = 30, ROUND_FILE_MS = 5000 };

enum round_end {
    ROUND_ANSWERS, /* values, or the same as before */
    ROUND_EMPTY,   /* no data */
    ROUND_REFUSED,
    ROUND_WAIT,
    ROUND_BAD,    /* not understood */
    ROUND_SILENT, /* nobody answers, or the file or the key cannot be read */
    ROUND_ENDS,
};

/* "answers", "no-data", … */
const char *round_end_name(enum round_end end);

struct round {
    const struct signals_config *config;
    size_t at; /* which source */
    struct http_many *http;
    struct source_state state;
    struct fetch fetch;
    /* out: */
    struct source_values values; /* of all its requests */
    enum round_end end;          /* the worst of them … */
    uw_error why;                /* … and its line; "": all is well */
};

/* A loop_work_fn; work: struct round.  0 */
int round_run(struct loop *loop, void *work);

#endif
