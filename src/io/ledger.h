/* The ledger: what this node's boards and processors used, for whom, under which cap and
 * by whose claim; SQLite (WAL) in one file.  Everything here may block on the disk: call
 * it from a loop_worker (io/ledger-queue.h does), or from a command that has nothing else
 * to do.  One thread at a time.
 *
 * Times are UTC in ns; energy is kept in whole microjoules, so that sums are exact
 * whatever is rolled up.  A board is named by its index in what ledger_boards() was
 * given, a processor or its memory by LEDGER_DOMAIN(its index in ledger_domains()).
 * docs/design/ledger.md has the schema.
 */
#ifndef IO_LEDGER_H
#define IO_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "base/names.h"
#include "underwatt/error.h"

struct ledger;

enum {
    LEDGER_VERSION = 11, /* of the schema that this program writes */
    LEDGER_BOARDS = 64,
    LEDGER_DOMAINS = 16,
    LEDGER_PLACES = LEDGER_BOARDS + LEDGER_DOMAINS,
    LEDGER_LABELS = 16,
    LEDGER_TEXT = 256,       /* longer texts are cut */
    LEDGER_PROCESSES = 4096, /* the same of ledger_job.processes */
    LEDGER_SAME = 40,
    LEDGER_MODEL = 96,
    LEDGER_SEARCH_CAPS = 10,
    LEDGER_SEARCHES = 512,     /* newest searches kept */
    LEDGER_USER_SEARCHES = 64, /* of one user */
    LEDGER_VALUES = 256,       /* of a revision */
    LEDGER_QUARTER_S = 900,    /* what a revision is of */
    LEDGER_CURRENCY = 16,
};
#define LEDGER_FOREVER INT64_MAX
#define LEDGER_DOMAIN(i) ((size_t)LEDGER_BOARDS + (i))

/* How long rows of each resolution are kept before they are merged into the next coarser
 * one.  0: the default.
 */
struct ledger_keep {
    uint64_t booked_ns; /* rows as booked (10 s), then by the minute; 0: 2 days */
    uint64_t minute_ns; /* by the minute, then by the hour; 0: 14 days */
    uint64_t hour_ns;   /* by the hour, then by the day (UTC); 0: 400 days */
    uint64_t caps_ns;   /* caps put in force, then deleted; 0: 30 days */
    uint64_t audit_ns;  /* claims and events, then deleted; 0: 400 days */
    uint64_t search_ns; /* results of searches, then deleted; 0: 90 days */
};

struct ledger_opts {
    const char *path;
    bool read_only;      /* for reports: nothing is made, migrated or set aside */
    bool simulated;      /* a simulated world: the file is marked and never mixed */
    const char *boot_id; /* of the kernel; mandatory unless read_only */
    const char *version; /* of the program, for the record */
    int64_t utc_ns;      /* now; mandatory unless read_only */
    struct ledger_keep keep;
    uint64_t
        disk_max; /* bytes, beyond which writes fail as on a full disk (tests); 0: none */
};

/* LEDGER_ASIDE: the file was damaged, or not a ledger; it was renamed and a new one made;
 * *err says where it is and why, which must be reported.  LEDGER_ANEW: the run continues
 * in a new file, or in its first one; *err says why.
 */
enum ledger_outcome { LEDGER_ASIDE = 1, LEDGER_ANEW };

/* 0 or LEDGER_ASIDE.  -EPERM (a link, another user's file, or one that others may write),
 * -EBUSY (another daemon writes it), -ENOTSUP (a newer version, or another kind:
 * simulated and real do not mix), -EBADMSG (read_only: damaged or not a ledger), -ENOENT
 * (read_only), or the disk's error.  The file is made with mode 0640, its folder is not
 * made.
 */
int ledger_open(const struct ledger_opts *opts, struct ledger **ret, uw_error *err);
/* Records the regular end of this run, and closes the ledger. */
void ledger_close(struct ledger *l);
DEFINE_AUTO(struct ledger *, ledger_close);
/* Rows are lost: closes the ledger as if this run had been killed, so that the ids of
 * these rows are never used again.
 */
void ledger_abandon(struct ledger *l);

const char *ledger_path(const struct ledger *l);
/* Ids from here up were never used, not even by killed runs. */
uint64_t ledger_first_job(const struct ledger *l);
uint64_t ledger_first_claim(const struct ledger *l);

/* ---- without a file ---- */

/* A run whose file cannot be opened now (why: result of ledger_open()): its ids are
 * unique, writes fail with -ENODEV, and ledger_ready() tries again.  Where only the disk
 * is the reason, rows of earlier runs can be read.
 */
int ledger_open_later(const struct ledger_opts *opts, int why, struct ledger **ret,
                      uw_error *err);
bool ledger_is_open(const struct ledger *l); /* for writing */
bool ledger_is_readable(const struct ledger *l);
/* Gives up the file, except for reading, as if it could not be opened, until
 * ledger_ready().
 */
void ledger_leave(struct ledger *l);
/* The kind of trouble for a result of these functions. */
enum ledger_trouble { LEDGER_TROUBLES(NAME_ENUM) };
enum ledger_trouble ledger_trouble(int r);
/* To be called before each write.  0: the file exists and is still ours.  LEDGER_ANEW,
 * LEDGER_ASIDE: a new file was opened, with the same boards and continuing ids (*err:
 * why), but without the old file's rows: add running jobs, claims in force and searches,
 * and call ledger_settle().  -errno: no file for now.  *l itself may have moved.
 */
int ledger_ready(struct ledger **l, int64_t utc_ns, uw_error *err);
/* After -EBADMSG (the file is damaged): sets it aside and continues *l in a new one, as
 * above.  LEDGER_ASIDE (*err: where it is), or -errno.
 */
int ledger_renew(struct ledger **l, int64_t utc_ns, uw_error *err);
/* The next write contains all running jobs and claims in force: others that are open in
 * the file end with it.
 */
void ledger_settle(struct ledger *l, int64_t utc_ns);

/* Sets the boards of this run; board[i] has index i below.  Known UUIDs keep their
 * history. -E2BIG beyond LEDGER_BOARDS.
 */
struct ledger_board {
    const char *uuid, *name, *pci_bus_id; /* texts; pci_bus_id may be NULL */
};
int ledger_boards(struct ledger *l, const struct ledger_board *board, size_t n,
                  uw_error *err);
/* Sets the RAPL domains of this run, which the file keeps apart from the boards: no sum
 * of boards includes them.  -E2BIG beyond LEDGER_DOMAINS.
 */
struct ledger_domain {
    const char *uuid, *name; /* "rapl:package-0"; "CPU package-0" */
    bool memory;             /* of a package, not the package */
};
int ledger_domains(struct ledger *l, const struct ledger_domain *domain, size_t n,
                   uw_error *err);

/* ---- rows ---- */

enum ledger_kind { ENERGY_KINDS(NAME_ENUM) };
enum ledger_method { ENERGY_METHODS(NAME_FLAG) };

/* What a row's energy is charged with: emissions by the grid's average and by its
 * marginal plant, and money.
 */
enum ledger_charge { LEDGER_CO2, LEDGER_MARGINAL, LEDGER_COST, LEDGER_CHARGES };

/* Where a factor comes from; the file has each once.  Of a source "signals NAME (TEXT)"
 * TEXT is what is said of it: with another one it is still the same source.
 */
struct ledger_factor {
    const char *signal, *source, *unit; /* "carbon", "file /srv/grid.csv", "g/kWh" */
    bool estimated;
};
struct ledger_amount {
    const struct ledger_factor *factor; /* NULL: none was known */
    int64_t amount;     /* mg of CO2 equivalent; millionths of the currency's unit */
    int64_t covered_uj; /* energy that a factor was known for */
};

/* Energy of one board (or domain) in one interval, attributed to one job (or to none). */
struct ledger_energy {
    int64_t begin_utc_ns, end_utc_ns;
    size_t board;
    enum ledger_kind kind;
    uint64_t job;            /* LEDGER_JOB only */
    uint32_t phase;          /* enum uw_phase; 0 */
    uint32_t cap_mw;         /* in force; 0: unknown */
    double energy_j, half_j; /* half_j: half of the 95 % interval */
    uint32_t method;         /* enum ledger_method, or-ed */
    bool simulated;
    enum waste_class waste;                      /* LEDGER_JOB only; else WASTE_WORKING */
    struct ledger_amount charge[LEDGER_CHARGES]; /* {0}: no factor was known */
};

/* What a source says now of a factor in a time that is booked.  factor: millionths of a
 * gram, or of a millionth of the currency's unit, a kWh.
 */
struct ledger_value {
    int64_t from_utc_ns, to_utc_ns;
    int64_t factor;
    bool estimated;
};
/* The booked rows that begin in one quarter of an hour, and that this source's factor or
 * none covers, are looked at when this is written: where the source's values now cover at
 * least as much energy and come to another amount, the difference to what is booked and
 * revised so far is a row of its own.  So a second time changes nothing.
 */
struct ledger_revision {
    enum ledger_charge charge;
    const char *signal, *source, *unit; /* as of ledger_factor */
    int64_t begin_utc_ns;               /* a whole quarter of an hour of UTC */
    int64_t utc_ns;                     /* now */
    const struct ledger_value *value;   /* in the order of time, without overlap */
    size_t n;
};

/* The meter's totals of one board over the same interval: its energies must add up to
 * end_j - begin_j.
 */
struct ledger_meter {
    int64_t begin_utc_ns, end_utc_ns;
    size_t board;
    double begin_j, end_j; /* the meter's total at both ends */
};

struct ledger_label {
    const char *key, *value;
};

/* A whole job: written at its beginning, at changes and at its end (the newest row
 * counts; began_utc_ns, uid and source never change).
 */
struct ledger_job {
    uint64_t id;
    const char *source; /* "run", "registered", "found" */
    const char *name, *user;
    uid_t uid;
    const struct ledger_label *label;
    size_t n_labels;
    int64_t began_utc_ns, ended_utc_ns; /* ended 0: runs */
    bool lost;       /* it has ended because nothing of it was seen, and may come back */
    uint64_t boards; /* bit i: board i */
    uint64_t held;   /* named boards that it has; of a found job, its present boards */
    /* To take it over after a restart. */
    pid_t pid;             /* 0: none known */
    uint64_t pid_start;    /* its start time, /proc/PID/stat's ticks */
    const char *processes; /* "PID.START …" of a found job or a group; NULL, "": none */
    bool firm;             /* an administrator began it */
    uint64_t within;       /* the registered job in which it runs; 0: not known (now) */
    const char *goal;  /* "edp"; "slowdown:1.05 by default"; "cap 85%" of each board, "cap
                        * 85% balanced" where a preset named it; "hold cap 300 W" of a
                        * scheduler's job (node/ledger-writer.h); NULL or "": none */
    const char *cls;   /* class of caps' settings; NULL or "": default */
    uint32_t named_mw; /* cap by name in watts; 0 */
    /* What the search found. */
    uint32_t cap_mw; /* best so far, or held; 0: none yet */
    uint64_t steps;
    bool saved_known;
    double saved, saved_half;       /* fraction of the energy at the original cap, 95 % */
    double slowdown, slowdown_half; /* time over the time at the original cap */
    double saved_j, saved_half_j;
    unsigned looks;   /* reference windows that holds were compared with */
    bool model_known; /* the prediction of the search's model is known */
    double model_saved, model_slowdown;
    const char *command; /* identifies runs of the same job; NULL or "": unknown */
};

/* The results of a search, for the next run of the same job: kept by user, `same`, model
 * and number of boards; the newest counts.
 */
struct ledger_search_cap {
    uint32_t cap_mw;
    unsigned windows;
    double step_s, step_j, step_s_rse, step_j_rse; /* of all boards; relative errors */
};
struct ledger_search {
    uid_t uid;
    char same[LEDGER_SAME], model[LEDGER_MODEL];
    unsigned boards;
    uint64_t job; /* the job of the search */
    int64_t utc_ns;
    uint32_t reference_mw;
    double demand_w; /* of a board there */
    size_t n;        /* caps, the reference first */
    struct ledger_search_cap cap[LEDGER_SEARCH_CAPS];
};

/* The audit trail: a claim made or changed (same id), and its end. */
struct ledger_claim {
    uint64_t id;
    size_t board;
    int64_t made_utc_ns, until_utc_ns; /* LEDGER_FOREVER */
    int64_t ahead_ns; /* UTC less CLOCK_BOOTTIME when both were computed */
    uid_t uid;
    uint64_t job;       /* 0: none */
    const char *kind;   /* "soft", "named", "hard" */
    const char *source; /* "person", "job-cap" … */
    pid_t pid;          /* the claim ends with this process; 0: none */
    uint64_t pid_start; /* its start time, in ticks as in /proc */
    uint32_t mw;
    bool overwrites; /* of a search: a change overwrites the row */
    const char *who, *why;
};
struct ledger_claim_end {
    uint64_t id;
    size_t board;
    int64_t utc_ns;
    const char *how; /* "withdrawn", "expired", "process ended", "restart" */
};

/* A cap put in force. */
struct ledger_cap {
    int64_t utc_ns;
    size_t board;
    uint32_t target_mw, enforced_mw; /* enforced 0: unknown */
    const char *by;                  /* "claim", "floor", "minimum", "original" */
    uint64_t claim;                  /* the winner; 0: none */
};

/* Everything else: other writers, refused requests, configuration, restarts. */
struct ledger_event {
    int64_t utc_ns;
    const char *kind; /* a word: "other-writer", "refused", "config", "start" */
    bool has_board, has_uid;
    size_t board;
    uid_t uid;
    const char *text;
};

/* ---- writing: rows are gathered (copied) and written in one transaction ---- */

struct ledger_batch;
/* NULL: out of memory. */
struct ledger_batch *ledger_batch_new(void);
void ledger_batch_free(struct ledger_batch *b);
DEFINE_AUTO(struct ledger_batch *, ledger_batch_free);
size_t ledger_batch_rows(const struct ledger_batch *b);
void ledger_batch_clear(struct ledger_batch *b);

/* 0, -ENOMEM, -E2BIG (64 Ki rows), -EINVAL (end before begin, an energy that is negative
 * or not finite, a job of id 0, …): nothing was added.
 */
int ledger_add_energy(struct ledger_batch *b, const struct ledger_energy *row);
/* An energy as a row has it, in whole microjoules. */
int64_t ledger_uj(double j);
int ledger_add_meter(struct ledger_batch *b, const struct ledger_meter *row);
int ledger_add_job(struct ledger_batch *b, const struct ledger_job *row);
int ledger_add_claim(struct ledger_batch *b, const struct ledger_claim *row);
int ledger_add_claim_end(struct ledger_batch *b, const struct ledger_claim_end *row);
int ledger_add_cap(struct ledger_batch *b, const struct ledger_cap *row);
int ledger_add_event(struct ledger_batch *b, const struct ledger_event *row);
int ledger_add_search(struct ledger_batch *b, const struct ledger_search *row);
int ledger_add_revision(struct ledger_batch *b, const struct ledger_revision *row);
/* Merges rows of equal hour, board, kind, job, phase, cap, waste and factors, so that a
 * disk that is full for a day costs no energy and little memory; of a job's rows the
 * newest stays.  Returns how many rows are left.
 */
size_t ledger_batch_squeeze(struct ledger_batch *b);
/* Drops caps, events and revisions, the oldest first, until this many rows are left.
 * Returns how many were dropped.
 */
size_t ledger_batch_shed(struct ledger_batch *b, size_t rows);
/* The boards have changed: position i becomes map[i]; SIZE_MAX: its rows are dropped.
 * Returns how many.
 */
size_t ledger_batch_move(struct ledger_batch *b, const size_t map[LEDGER_PLACES]);
/* Calls fn for the newest row of each job, in their order; fn() may add rows. */
void ledger_batch_jobs(const struct ledger_batch *b,
                       void (*fn)(const struct ledger_job *job, void *user), void *user);
bool ledger_batch_has_job(const struct ledger_batch *b, uint64_t id);
/* Moves all of `from` behind all of `to`.  -ENOMEM, -E2BIG: neither has changed. */
int ledger_batch_join(struct ledger_batch *to, struct ledger_batch *from);

/* Writes the batch in one transaction.  -ENOSPC (the disk is full; also disk_max),
 * -EBUSY, -EIO …: the ledger is unchanged and usable, the batch keeps its rows.
 */
int ledger_write(struct ledger *l, const struct ledger_batch *b, uw_error *err);

/* What revisions changed, by enum ledger_charge: rows that came into the file, and the
 * sum of their amounts.
 */
struct ledger_revised {
    uint64_t rows[LEDGER_CHARGES];
    int64_t amount[LEDGER_CHARGES];
    char currency[LEDGER_CURRENCY]; /* of LEDGER_COST: "EUR"; "": none was revised */
};
/* Money in another currency begins anew. */
void ledger_revised_add(struct ledger_revised *to, const struct ledger_revised *from);
/* By the last ledger_write(): nothing where it failed.  Borrowed until the next one. */
const struct ledger_revised *ledger_revised(const struct ledger *l);

/* Sets how long rows are kept; 0: the defaults. */
void ledger_keep(struct ledger *l, const struct ledger_keep *keep);
/* The time by which rows are old, from the loop's time and UTC: not affected when UTC is
 * set (docs/design/ledger.md).
 */
int64_t ledger_clock(struct ledger *l, uint64_t now_ns, int64_t utc_ns);
/* One small step of rolling up or deleting old rows, in a transaction of some hundred
 * rows.  1: more to do; 0: done for now.
 */
int ledger_tidy(struct ledger *l, int64_t utc_ns, uw_error *err);

/* ---- reading the rows of earlier runs ---- */

/* Texts are valid during the call. */
typedef int (*ledger_job_fn)(const struct ledger_job *job, const char *boot_id,
                             void *user);
/* Calls fn for jobs that have not ended, and for lost ones of this boot, oldest first; a
 * negative result ends it.
 */
int ledger_open_jobs(struct ledger *l, ledger_job_fn fn, void *user, uw_error *err);
typedef int (*ledger_claim_fn)(const struct ledger_claim *claim, const char *boot_id,
                               void *user);
/* Calls fn for claims of earlier runs that have neither ended nor expired.  A claim that
 * is not made again (same id and board) before ledger_claims_settle() ends as "restart".
 * ahead_ns: UTC less CLOCK_BOOTTIME now.  If UTC was set since a claim of this boot was
 * written, its times are converted to present UTC, so that its duration stays.
 */
int ledger_open_claims(struct ledger *l, int64_t utc_ns, int64_t ahead_ns,
                       ledger_claim_fn fn, void *user, uw_error *err);
int ledger_claims_settle(struct ledger *l, int64_t utc_ns, uw_error *err);

typedef int (*ledger_search_fn)(const struct ledger_search *search, void *user);
/* Calls fn for the results of searches, oldest first. */
int ledger_searches(struct ledger *l, ledger_search_fn fn, void *user, uw_error *err);

/* Energy booked so far, to continue counters after a restart. */
struct ledger_sums {
    double job_j, idle_j, unattributed_j, meter_j;
    double use_j[WASTE_N], use_s[WASTE_N]; /* by enum waste_class */
};
/* Of one board: in all (from_utc_ns 0: the whole file is read, once for all boards), or
 * from from_utc_ns on.
 */
int ledger_board_sums(struct ledger *l, size_t board, int64_t from_utc_ns,
                      struct ledger_sums *ret, uw_error *err);
/* Energy of one job on one board, and the time for which it is. */
struct ledger_booked {
    size_t board; /* SIZE_MAX: boards that this run does not have, together */
    double energy_j, time_s;
    double half_fixed_j, half_noise2_j2; /* struct half_sum of core/meter/half-sum.h */
    uint32_t method;                     /* enum ledger_method, or-ed */
};
int ledger_job_energy(struct ledger *l, uint64_t job,
                      struct ledger_booked buf[LEDGER_BOARDS + 1], size_t *ret_n,
                      uw_error *err);

#endif
