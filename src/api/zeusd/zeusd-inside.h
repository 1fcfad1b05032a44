/* Shared by the files of zeusd's API; not for other files.
 *
 *   zeusd.c        routes, answers
 *   zeusd-read.c   reads: energy, power, limits, CPUs, streams
 *   zeusd-set.c    limits as claims
 *   zeusd-query.c  queries (pure)
 */
#ifndef API_ZEUSD_ZEUSD_INSIDE_H
#define API_ZEUSD_ZEUSD_INSIDE_H

#include "api/zeusd/zeusd-query.h"
#include "api/zeusd/zeusd.h"
#include "base/text.h"

enum { ZEUSD_CLAIMS = 256, ZEUSD_STREAMS = 64, ZEUSD_WAITS = 64 };

/* A claim made through this API; the same user's next claim on that board replaces it. */
struct zeusd_claim {
    uid_t uid;
    unsigned gpu;
    uint64_t id, made_ns; /* id 0: free */
};

struct zeusd_follower {
    struct zeusd *z;
    struct http_stream *stream; /* NULL: free */
    bool cpu;
    uint64_t ids;                 /* bits: board or package */
    uint32_t told_mw[BOARDS_MAX]; /* UINT32_MAX: none sent yet */
};

/* A request that waits until its limits are in force. */
struct zeusd_wait {
    struct zeusd *z;
    struct http_exchange *x; /* NULL: free */
    uint64_t ids;            /* bits: boards */
    uint64_t until_ns;
};

/* A board's counter, extrapolated from the last sample. */
struct zeusd_energy {
    uint64_t raw_mj, told_mj;
};

struct zeusd {
    struct loop *loop;
    struct node *node;
    struct zeusd_claim claim[ZEUSD_CLAIMS];
    struct zeusd_follower follower[ZEUSD_STREAMS];
    struct zeusd_wait wait[ZEUSD_WAITS];
    struct loop_timer *timer; /* armed while somebody waits */
    bool ticking;
    struct zeusd_energy energy[BOARDS_MAX];
};

/* Errors of some devices: the highest status, and one text each. */
struct zeusd_errors {
    unsigned status; /* 0: no error */
    struct text text;
};
void zeusd_error(struct zeusd_errors *e, unsigned id, unsigned status, const char *text);
/* Replies {"errors": {…}} and empties e. */
void zeusd_errors_reply(struct http_exchange *x, struct zeusd_errors *e);

/* Error replies in zeusd's forms. */
void zeusd_bad(struct http_exchange *x, unsigned status, const char *text); /* JSON */
void zeusd_plain(struct http_exchange *x, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Replies t's text as JSON and empties t. */
void zeusd_json(struct http_exchange *x, struct text *t);
void zeusd_put_string(struct text *t, const char *value); /* in quotes */

const struct node_view *zeusd_look(struct zeusd *z);
/* The board with that index; NULL: none. */
const struct view_board *zeusd_board(const struct node_view *v, unsigned gpu);
/* The bit of a board in sets of boards: its position in the view. */
size_t zeusd_place(const struct node_view *v, unsigned gpu);

/* Read routes: parse x's query and answer x. */
enum zeusd_read {
    ZR_ENERGY,
    ZR_POWER,
    ZR_STREAM,
    ZR_LIMIT,
    ZR_RANGE,
    ZR_PERSISTENCE,
    ZR_CPU_ENERGY,
    ZR_CPU_POWER,
    ZR_CPU_STREAM,
};
void zeusd_read(struct zeusd *z, struct http_exchange *x, enum zeusd_read what);
void zeusd_followers_tell(struct zeusd *z);
size_t zeusd_packages(const struct node_view *v); /* CPUs */
bool zeusd_has_dram(const struct node_view *v, unsigned cpu);

enum zeusd_write { ZW_LIMIT, ZW_PERSISTENCE, ZW_LOCK, ZW_RESET };
void zeusd_write(struct zeusd *z, struct http_exchange *x, const struct node_who *who,
                 enum zeusd_write what);
void zeusd_waits_tell(struct zeusd *z);
int zeusd_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user);

#endif
