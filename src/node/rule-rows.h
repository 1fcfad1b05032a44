/* Decides which occurrences of rules get rows of their own in the ledger.
 *
 * A rule of a phase may begin and end each second.  For each rule, board and job the
 * first RULE_ROWS_AT_ONCE occurrences have rows, and one more each RULE_ROWS_EACH; the
 * others are counted, and the count is a row a minute.  The same applies to claims of
 * rules and the caps that follow.  Pure: time is an argument.  Explained in
 * docs/design/ledger.md.
 */
#ifndef NODE_RULE_ROWS_H
#define NODE_RULE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/units.h"
#include "board/boards.h"

enum { RULE_ROWS_AT_ONCE = 20, RULE_ROWS_MAX = 1024, RULE_ROWS_NAME = 96 };
#define RULE_ROWS_EACH (600 * NS_PER_S)
#define RULE_ROWS_COUNT (60 * NS_PER_S)

struct rule_rows;

int rule_rows_new(struct rule_rows **ret); /* -ENOMEM */
void rule_rows_free(struct rule_rows *r);
/* The numbers of boards may change from now on. */
void rule_rows_clear(struct rule_rows *r);
DEFINE_AUTO(struct rule_rows *, rule_rows_free);

/* Whether the occurrence gets a row.  An end gets one if its beginning did. */
bool rule_rows_event(struct rule_rows *r, const char *rule, size_t board, uint64_t job,
                     bool begins, uint64_t now_ns);
/* The same for a claim that is made or changed (`hard`: which of the rule's two claims on
 * a board), for its end, and for a cap of the board by this claim (0: by none).
 */
bool rule_rows_claim(struct rule_rows *r, const char *who, size_t board, bool hard,
                     uint64_t id, uint64_t now_ns);
bool rule_rows_claim_end(struct rule_rows *r, size_t board, uint64_t id);
bool rule_rows_cap(struct rule_rows *r, size_t board, uint32_t target_mw, uint64_t claim);

/* Occurrences without rows since since_ns. */
struct rule_count {
    const char *name;
    size_t board;
    uint64_t job, n, since_ns;
    bool claims; /* claims of this name; else beginnings and ends of a rule */
};
/* The next count that is due; false: none.  all: at the end, every count is due. */
bool rule_rows_count(struct rule_rows *r, bool all, uint64_t now_ns,
                     struct rule_count *ret);

#endif
