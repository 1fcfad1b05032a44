/* The answer of another underwatt-signals, the site's: signals of many sources, each with
 * its own source, times and error.
 *
 * Owns: nothing.  Touches: nothing; time is an argument. Explained in
 * docs/signals.md#one-fetch-for-a-site.
 */
#ifndef SIGNAL_FOLLOWED_H
#define SIGNAL_FOLLOWED_H

#include "io/json.h"
#include "signal/config.h"
#include "signal/held.h"
#include "signal/source.h"

enum {
    FOLLOWED_MAX = SIGNALS_CONFIG_SOURCES * SOURCE_GIVES,
    FOLLOWED_BODY_MAX = 16 << 20, /* bytes of an answer */
    NODE_PAST_S =
        48 *
        3600, /* length of the past of each series that a node gets, and keeps on disk */
};

struct followed_signal {
    char source[SOURCE_WORD], type[SOURCE_WORD];
    char licence[SOURCE_WORD];  /* "": not known */
    char origin[SOURCE_ORIGIN]; /* as source_origin() */
    char error[HELD_ERROR]; /* error of the source, as the site reports it; "": none */
    struct source_series series; /* unit "", n 0: no value yet */
};
struct followed {
    struct followed_signal *signal; /* names are unique */
    size_t n;
    int64_t asked_utc_s; /* the end of the last round; 0: there was none */
};
void followed_fini(struct followed *f); /* also of {0} */
static inline void followed_fini_p(struct followed *p)
{
    followed_fini(p);
}

/* The signals of an answer of GET /v1/signals.  -EINVAL with one line: it is none;
 * -ENOMEM.  *ret is unchanged then.
 */
int followed_read(const char *name, const char *text, size_t len, struct followed *ret,
                  uw_error *err);
/* Replaces the held signals by `from`, and frees the old ones.  A signal keeps the values
 * that are held of the same source before the first one in `from`, as held_add(): an
 * answer contains only the last days.  A signal without a value in `from` keeps all
 * values until their ends.
 */
void followed_take(struct followed *held, struct followed *from);

/* The limits for held_end(): points end as the site states. */
const struct signals_source *followed_limits(void);
/* One signal as an object in o, as held_show().  since_utc_s: as of struct held_origin.
 * error: why the site cannot be asked; "": it answers.  facts: of this instance.
 */
void followed_show(struct json_out *o, const char *site, const struct followed_signal *s,
                   int64_t since_utc_s, int64_t utc_s, const char *error,
                   const struct signal_facts *facts);

/* The cache: the signals held of the site at this URL, as a text; free() it. */
int followed_write(const char *site, const struct followed *f, char **ret, uw_error *err);
/* -EINVAL with one line: torn, or of another site.  *ret is unchanged then. */
int followed_load(const char *site, const char *name, const char *text, size_t len,
                  struct followed *ret, uw_error *err);

#endif
