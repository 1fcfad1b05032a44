/* The daemon's configuration: one YAML file, read by a table of its keys.
 *
 * Owns: nothing; values have no pointers and are copied by assignment.  Touches: the file
 * and the folders that it names.  Thread: any.  Explained in underwattd.yaml(5).
 *
 * Refused with FILE:LINE: unknown keys, malformed values, bare numbers where a quantity
 * needs its unit, values out of range.  An empty file is valid.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nearest.h"
#include "base/units.h"
#include "caps/caps.h"
#include "core/cap/arbiter.h"
#include "core/carbon/accounting.h"
#include "core/job/waste.h"
#include "core/optimum/goal.h"
#include "underwatt/error.h"

#define NODE_CONFIG_FILE UNDERWATT_ETC "/underwattd.yaml"

enum {
    CONFIG_PATH = 512,
    CONFIG_SOCKET = 108, /* a socket's path, sun_path's bound */
    CONFIG_WORD = 64,
    CONFIG_LIST = 2048,
    CONFIG_CLASSES_MAX = 32,
};

/* A class of jobs by name; a job that names no class has "default". */
struct config_class {
    char name[CONFIG_WORD];
    struct cap_class cls;
};

struct config_node {
    char admin_group[CONFIG_WORD]; /* may do everything, as root may; "": root alone */
    char hostname[CONFIG_WORD];    /* shown in place of the machine's; "": that one */
    uint64_t interval_ns;          /* of the ledger's rows */
    int log;                       /* enum log_level */
    bool dry_run;
    bool realtime; /* real-time scheduling for the loop's thread, where allowed */
};

struct config_boards {
    char only[CONFIG_LIST];     /* in the form of --gpus: "0,3-5,GPU-…"; "" all */
    char library[CONFIG_PATH];  /* "": from the environment, or the system's */
    bool rapl;                  /* measure CPU and memory, where readable */
    uint64_t rapl_ns;           /* update period of their values for all users */
    char powercap[CONFIG_PATH]; /* folder of their counters; "" the kernel's */
};

/* Mean time between samples of a board. */
struct config_sampling {
    uint64_t rest_ns;   /* without a job on the board */
    uint64_t job_ns;    /* with a job */
    uint64_t search_ns; /* during a search */
};

struct config_caps {
    struct cap_arg from, to; /* range that users may claim; percent: of the default
                              * limit; neither set: the board's own range */
    uint64_t longest_ns;     /* longest claim of a user without a job */
    int others;              /* enum caps_others */
    uint64_t reassert_ns, yield_ns;
    bool clocks; /* SM clocks may be claimed */
    bool always_hold;
    struct config_class cls[CONFIG_CLASSES_MAX]; /* [0] is "default" */
    size_t n_classes;
};

struct config_jobs {
    bool discover; /* find jobs in the driver's process list */
    bool phases;   /* detect phases in telemetry */
    uint64_t look_ns;
};

struct config_search {
    bool found;       /* search for jobs that were found, too */
    struct goal goal; /* goal of these searches */
};

/* Figures of the site's beside what is booked, for reports. */
struct config_embodied {
    struct embodied of[EMBODIED_MODELS];
    size_t n;
};

struct config_accounting {
    char market[CONFIG_PATH]; /* file of contracts; "" none */
    struct config_embodied embodied;
};

struct config_ledger {
    char path[CONFIG_PATH];
    uint64_t keep_fine_ns, keep_minute_ns, keep_hour_ns;
};

struct config_tcp {
    char listen[CONFIG_WORD]; /* "HOST:PORT", "[ADDRESS]:PORT"; "" off */
    char certificate[CONFIG_PATH], key[CONFIG_PATH], tokens[CONFIG_PATH];
};

struct config_limits {
    uint64_t connections, per_client; /* at once */
    uint64_t requests;                /* a second, for each client */
    uint64_t followers;               /* of live events, at once */
    uint64_t idle_ns;                 /* a connection idle for this long is closed */
};

struct config_api {
    char socket[CONFIG_SOCKET], job_socket[CONFIG_SOCKET];
    struct config_tcp tcp;
    struct config_limits limits;
};

struct config_metrics {
    bool on, per_job;
    uint64_t max_jobs;         /* jobs with series of their own; the rest is summed */
    char listen[CONFIG_WORD];  /* "127.0.0.1:PORT", "[::1]:PORT"; "" off */
    char hpc_dir[CONFIG_PATH]; /* dcgm-exporter's --hpc-job-mapping-dir; "" none */
};

struct node_config {
    uint32_t budget_mw; /* for the sum of all boards' limits; 0: none */
    struct config_node node;
    struct config_boards boards;
    struct config_sampling sampling;
    struct config_caps caps;
    struct config_jobs jobs;
    struct config_search search;
    double slack; /* of its time, a job may lose to caps of waiting boards; 0: off */
    bool search_clocks;     /* compare a held cap with locks of the SM clock */
    uint64_t history_ns;    /* how long results of searches are kept; 0: not at all */
    uint64_t gap_checks;    /* probes of gaps in the curve during a hold; 0: none */
    double reference_share; /* fraction of a job's time to measure the saving; 0: none */
    struct waste_limits waste; /* after_ns 0: nothing is judged */
    struct config_accounting accounting;
    struct config_ledger ledger;
    struct config_api api;
    struct config_metrics metrics;
    char zeusd_socket[CONFIG_SOCKET];    /* zeusd's API; "" off */
    char actuator_socket[CONFIG_SOCKET]; /* the actuator service's */
    char policy_file[CONFIG_PATH];       /* rules and signals; "": none */
};

/* The defaults.  world: the state directory of a simulated world, which then holds all
 * paths; NULL: a real node.  -ENAMETOOLONG: a socket's path does not fit.
 */
int node_config_init(struct node_config *ret, const char *world, uw_error *err);

/* The folder of a world's sockets, ledger and lock: "WORLD/underwattd". */
int node_config_world_dir(const char *world, char *ret, size_t size, uw_error *err);

/* Reads a file over *config, which must hold the defaults; *config changes on success
 * only.  -EINVAL, -ERANGE, -EFBIG with FILE:LINE, or open's and read's -errno.
 */
int node_config_read(struct node_config *config, const char *name, const char *text,
                     size_t len, uw_error *err);
int node_config_file(struct node_config *config, const char *path, uw_error *err);
/* The same for a process without threads: yaml_read_shown().  *ret_hidden: not every user
 * may read the file.
 */
int node_config_shown(struct node_config *config, const char *path, bool *ret_hidden,
                      uw_error *err);

/* Looks for the files, folders and the group that the configuration names (world: as for
 * node_config_init(), whose defaults may be missing).  Negative: one is missing without
 * which the daemon does not start, or dcgm-exporter's folder; *err has the key.  fn gets
 * a line for each of the others that is missing: the key, the value (not if hidden), what
 * follows;
 * logged: the daemon logs that where it uses it.  May block, as getgrnam() does.
 */
typedef void (*config_warn_fn)(const char *text, bool logged, void *user);
int node_config_look(const struct node_config *config, const char *world, bool hidden,
                     config_warn_fn fn, void *user, uw_error *err);

/* Calls fn for each key that differs ("api.socket", "caps.classes"); restart: the key
 * takes effect only after a restart.  Returns how many differ.
 */
typedef void (*config_diff_fn)(const char *key, bool restart, void *user);
size_t node_config_diff(const struct node_config *from, const struct node_config *to,
                        config_diff_fn fn, void *user);

/* Copies the keys that need no restart; the others keep their values. */
void node_config_take_live(struct node_config *config, const struct node_config *from);

/* The settings of a class of jobs; NULL: unknown class. */
const struct cap_class *node_config_class(const struct node_config *config,
                                          const char *name);
/* For a name that is no class, as nearest_none_of().  Returns ret. */
const char *node_config_no_class(const struct node_config *config, const char *name,
                                 char ret[NEAREST_NONE]);

/* The range that users may claim on a board with these limits. */
void node_config_range(const struct node_config *config, const struct gpu_limits *limits,
                       uint32_t *ret_from_mw, uint32_t *ret_to_mw);

/* Each key in dotted form, for the reference: NULL when i is out of range.
 * caps.classes stands for its maps ("caps.classes.NAME.first" …).
 */
const char *node_config_key(size_t i);
bool node_config_needs_restart(const char *key);

#endif
