/* /etc/underwatt/slurm-collector.yaml: underwatt-slurm-collector(8). */
#ifndef COLLECTOR_CONFIG_H
#define COLLECTOR_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "collector/jobs.h"
#include "underwatt/error.h"

#define COLLECTOR_CONFIG_FILE UNDERWATT_ETC "/slurm-collector.yaml"

enum { COLLECTOR_KINDS = 64, COLLECTOR_PATH = 512 };

enum collector_source { SOURCE_AUTO, SOURCE_JSON, SOURCE_TEXT };

/* Jobs that match all of the patterns ("*" is any text; NULL: any) are of this kind. */
struct collector_kind {
    int kind;
    const char *partition, *qos, *account, *user, *name;
};

struct collector_config {
    uint64_t every_ns;
    int source;    /* enum collector_source */
    bool sees_all; /* this user is an operator of Slurm: PrivateData hides nothing */
    /* The address of a node's daemon; %n stands for the node's name: */
    const char *socket; /* a unix socket; or NULL and … */
    const char *url;    /* … "https://%n:8443" with … */
    const char *token;  /* … the file of its token and … */
    const char *ca;     /* … the certificates' CA; NULL: the system's */
    struct collector_kind kind[COLLECTOR_KINDS];
    size_t n_kinds;
    struct yaml *doc; /* what the texts are borrowed from */
};

/* -EINVAL, -ERANGE with FILE:LINE, or read's -errno. */
int collector_config_file(const char *path, struct collector_config *ret, uw_error *err);
void collector_config_fini(struct collector_config *c);
static inline void collector_config_fini_p(struct collector_config *c)
{
    collector_config_fini(c);
}

/* "development", "training", "inference"; NULL: no rule is for this job. */
const char *collector_kind(const struct collector_config *c, const struct slurm_job *job);

/* The pattern with the node's name; -ENAMETOOLONG. */
int collector_place(const char *pattern, const char *node, char *ret, size_t size);

/* The only line of a file that only this user or root may read; free() it after wiping
 * it.  -EPERM: other users may read it, -EINVAL: no token.
 */
int collector_token(const char *path, char **ret, uw_error *err);

#endif
