/* /etc/underwatt/signals.yaml: sources of signals, or another instance to follow, and the
 * clients that may read the signals.
 */
#ifndef SIGNAL_CONFIG_H
#define SIGNAL_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "signal/source.h"
#include "underwatt/error.h"

struct yaml;

enum { SIGNALS_CONFIG_SOURCES = 64, SIGNALS_CONFIG_PATH = 512 };

struct signals_source {
    struct source_config c;
    uint64_t every_ns;  /* between rounds */
    uint64_t age_ns;    /* longest validity of a value; 0: the signal's own */
    const char *secret; /* path of key_file or login_file; NULL: none */
    const char *ca;     /* path of the certificates' authority; NULL: the system's */
    unsigned line;
};

/* The name of the followed instance in log and cache; no source may have this name. */
#define SIGNALS_FOLLOW "follow"
/* The site's instance. */
struct signals_follow {
    const char *url;   /* "https://site:9446"; NULL: none is followed */
    const char *token; /* a file */
    const char *ca;    /* a file; NULL: the system's */
    uint64_t every_ns;
};

struct signals_config {
    const char *socket;             /* a unix socket's path; NULL: none */
    const char *listen;             /* "[::]:9446", with … */
    const char *cert, *key, *token; /* … these; NULL: none */
    const char *cache;              /* a folder; NULL: none */
    struct signals_follow follow;
    struct signals_source *source; /* one at least, or `follow` */
    size_t n;
    char name[SIGNALS_CONFIG_PATH]; /* the file, for errors */
    struct yaml *doc;               /* what the texts are borrowed from */
};

/* countries: as of source_check().  -EINVAL, -ERANGE with FILE:LINE, read's -errno,
 * -ENOMEM; *ret is unchanged then.
 */
int signals_config_file(const char *path, const char *countries,
                        struct signals_config *ret, uw_error *err);
int signals_config_read(const char *name, const char *text, size_t len,
                        const char *countries, struct signals_config *ret, uw_error *err);
void signals_config_fini(struct signals_config *c); /* also of {0} */
static inline void signals_config_fini_p(struct signals_config *p)
{
    signals_config_fini(p);
}

/* Whether a source gives the signal of this name. */
bool signals_config_gives(const struct signals_config *c, const char *signal);

/* The key or login of the i-th source, which has one; secret_free() it.  As
 * secret_read(), with FILE:LINE; -EINVAL: a login without a name or a password.
 */
int signals_config_secret(const struct signals_config *c, size_t i, char **ret,
                          uw_error *err);

#endif
