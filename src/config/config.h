/* The daemon's configuration: one YAML file, read by a table of its keys.
 *
 * Owns: nothing; values have no pointers and are copied by assignment.  Touches: the file
 * and the folders that it names.  Thread: any.  Explained in underwattd.yaml(5).
 *
 * Refused with FILE:LINE: unknown keys, values of another form, bare numbers where a
 * quantity needs its unit, what is out of its range.  An empty file is valid.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/units.h"
#include "caps/caps.h"
#include "core/cap/arbiter.h"
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

/* A class of jobs by name; "default" is every job's that names none. */
struct config_class {
    char name[CONFIG_WORD];
    struct cap_class cls;
};

struct config_node {
    char admin_group[CONFIG_WORD]; /* may do everything, as root; "" root alone */
    char hostname[CONFIG_WORD];    /* shown instead of the machine's; "" that one */
    uint64_t interval_ns;          /* the ledger's */
    int log;                       /* enum log_level */
    bool dry_run;
    bool realtime; /* the loop before everybody of the normal class, where allowed */
};

struct config_boards {
    char only[CONFIG_LIST];    /* as --gpus takes it: "0,3-5,GPU-…"; "" all */
    char library[CONFIG_PATH]; /* of the boards; "": the environment's, or the system's */
    bool rapl;                 /* CPU and memory, where they can be read */
    uint64_t rapl_ns;          /* what everybody sees of them is renewed so often */
    char powercap[CONFIG_PATH]; /* where their counters are; "" the kernel's */
};

/* Mean time between samples of a board. */
struct config_sampling {
    uint64_t rest_ns;   /* nobody's job is on it */
    uint64_t job_ns;    /* a job is */
    uint64_t search_ns; /* … and a cap is searched for it */
};

struct config_caps {
    struct cap_arg from, to; /* what users may claim; percent: of the default limit;
                              * neither set: the board's own range */
    uint64_t longest_ns;     /* the longest claim of a user's without a job */
    int others;              /* enum caps_others */
    uint64_t reassert_ns, yield_ns;
    bool clocks; /* SM clocks may be claimed */
    bool always_hold;
    struct config_class cls[CONFIG_CLASSES_MAX]; /* [0] is "default" */
    size_t n_classes;
};

struct config_jobs {
    bool discover; /* found through the driver's process list */
    bool phases;   /* seen in telemetry */
    uint64_t look_ns;
};

struct config_search {
    bool found;       /* jobs that are found are searched for, too … */
    struct goal goal; /* … with this goal */
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
    uint64_t requests;                /* a second and client */
    uint64_t followers;               /* of live events, at once */
    uint64_t idle_ns;                 /* a silent connection is closed */
};

struct config_api {
    char socket[CONFIG_SOCKET], job_socket[CONFIG_SOCKET];
    struct config_tcp tcp;
    struct config_limits limits;
};

struct config_metrics {
    bool on, per_job;
    uint64_t max_jobs;         /* series of jobs at once; the rest is summed up */
    char hpc_dir[CONFIG_PATH]; /* dcgm-exporter's --hpc-job-mapping-dir; "" none */
};

struct node_config {
    uint32_t budget_mw; /* of all boards' limits together; 0: none */
    struct config_node node;
    struct config_boards boards;
    struct config_sampling sampling;
    struct config_caps caps;
    struct config_jobs jobs;
    struct config_search search;
    double
        slack; /* time a job may lose so that boards that wait get fewer watts; 0: off */
    bool search_clocks;     /* a held cap is compared with locks of the SM clock */
    uint64_t history_ns;    /* what searches measured is kept; 0: not at all */
    uint64_t looks;         /* out of a hold into gaps of the curve; 0: none */
    double reference_share; /* of a job's time, to measure what is saved; 0: none */
    struct config_ledger ledger;
    struct config_api api;
    struct config_metrics metrics;
    char zeusd_socket[CONFIG_SOCKET];    /* zeusd's API; "" off */
    char actuator_socket[CONFIG_SOCKET]; /* the actuator service's */
};

/* The defaults.  world: the state directory of a simulated world, where all paths
 * lie then; NULL: a real node.  -ENAMETOOLONG: a socket's path does not fit.
 */
int node_config_init(struct node_config *ret, const char *world, uw_error *err);

/* The folder of a world for sockets, ledger and lock: "WORLD/underwattd". */
int node_config_world_dir(const char *world, char *ret, size_t size, uw_error *err);

/* Read over *config, which has the defaults: written only on success.  -EINVAL,
 * -ERANGE, -EFBIG with FILE:LINE, or open's and read's -errno.
 */
int node_config_read(struct node_config *config, const char *name, const char *text,
                     size_t len, uw_error *err);
int node_config_file(struct node_config *config, const char *path, uw_error *err);

/* What the machine has to have besides: dcgm-exporter's folder.  -ENOENT, -ENOTDIR … with
 * the key: the daemon runs without, and says so.
 */
int node_config_folders(const struct node_config *config, uw_error *err);

/* What differs: fn is called for each key ("api.socket", "caps.classes"); restart: in
 * force only after a restart.  Returns how many differ.
 */
typedef void (*config_diff_fn)(const char *key, bool restart, void *user);
size_t node_config_diff(const struct node_config *from, const struct node_config *to,
                        config_diff_fn fn, void *user);

/* Takes over what is in force at once; a key that needs a restart stays what it was. */
void node_config_take_live(struct node_config *config, const struct node_config *from);

/* How a class of jobs is walked; NULL: there is none of that name. */
const struct cap_class *node_config_class(const struct node_config *config,
                                          const char *name);

/* What users may claim on a board of these limits. */
void node_config_range(const struct node_config *config, const struct gpu_limits *limits,
                       uint32_t *ret_from_mw, uint32_t *ret_to_mw);

/* Every key with its dots, for the reference: NULL when i is out of range.
 * caps.classes stands for its maps ("caps.classes.NAME.first" …).
 */
const char *node_config_key(size_t i);
bool node_config_needs_restart(const char *key);

#endif
