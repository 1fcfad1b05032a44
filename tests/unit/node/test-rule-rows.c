/* Which occurrences of rules get rows in the ledger: the first ones, a few later on, and
 * counts of all others.
 */
#include "node/rule-rows.h"

#include <string.h>

#include "tap.h"

#define S(x) ((uint64_t)(x)*NS_PER_S)

/* A phase of `rule` each second from from_s on, half of it long; returns how many rows.
 */
static unsigned phases(struct rule_rows *r, const char *rule, size_t board, uint64_t job,
                       unsigned from_s, unsigned n, unsigned *ret_ends)
{
    unsigned begins = 0;

    *ret_ends = 0;
    for (unsigned i = 0; i < n; i++) {
        begins += rule_rows_event(r, rule, board, job, true, S(from_s + i));
        *ret_ends +=
            rule_rows_event(r, rule, board, job, false, S(from_s + i) + 500 * NS_PER_MS);
    }
    return begins;
}

static void test_events(void)
{
    auto_(rule_rows_free) struct rule_rows *r = NULL;
    struct rule_count c;
    unsigned ends;

    if (rule_rows_new(&r) < 0)
        return;
    unsigned begins = phases(r, "validation", 0, 3, 0, 20, &ends);
    ok(begins == 20 && ends == 20, "the first 20 have rows: %u, %u", begins, ends);
    ok(!rule_rows_count(r, false, S(100), &c), "nothing is to be counted");
    begins = phases(r, "validation", 0, 3, 20, 60, &ends);
    ok(begins == 0 && ends == 0, "the next ones have none: %u, %u", begins, ends);
    begins = phases(r, "dirty-grid", 0, 3, 20, 1, &ends) +
             phases(r, "validation", 1, 3, 20, 1, &ends) +
             phases(r, "validation", 0, 4, 20, 1, &ends);
    is_int(begins, 3, "another rule, board or job has its own");
    ok(!rule_rows_count(r, false, S(79), &c), "not counted before a minute is over");
    ok(rule_rows_count(r, false, S(80), &c) && strcmp(c.name, "validation") == 0 &&
           c.board == 0 && c.job == 3 && c.n == 60 && c.since_ns == S(20) && !c.claims,
       "then once, with how many and since when");
    ok(!rule_rows_count(r, true, S(1000), &c), "… and no more");
    begins = phases(r, "validation", 0, 3, 80, 86400, &ends);
    ok(begins == ends && begins > 140 && begins < 150,
       "a day of phases of a second: %u more rows of beginnings", begins);
    ok(rule_rows_count(r, true, S(86500), &c), "the end counts what is left");
}

/* A day without pauses, as the ledger gets it. */
static void test_claims(void)
{
    auto_(rule_rows_free) struct rule_rows *r = NULL;
    struct rule_count c;
    unsigned made = 0, ended = 0, caps = 0, counts = 0;

    if (rule_rows_new(&r) < 0)
        return;
    (void)rule_rows_cap(r, 0, 300000, 0);
    for (uint64_t i = 1; i <= 86400; i++) {
        made += rule_rows_claim(r, "rule validation", 0, false, i, S(i));
        caps += rule_rows_cap(r, 0, 180000, i);
        ended += rule_rows_claim_end(r, 0, i);
        caps += rule_rows_cap(r, 0, 300000, 0);
        counts += rule_rows_count(r, false, S(i), &c);
    }
    ok(made == ended && caps == 2 * made && made > 160 && made < 170,
       "%u claims of a day have rows, with their ends and both caps: %u, %u", made, ended,
       caps);
    ok(counts > 1400 && counts <= 1440, "a count a minute: %u", counts);
}

static void test_caps(void)
{
    auto_(rule_rows_free) struct rule_rows *r = NULL;
    uint64_t id = 1;

    if (rule_rows_new(&r) < 0)
        return;
    ok(rule_rows_cap(r, 0, 300000, 0), "a cap by no claim of a rule is a row");
    while (rule_rows_claim(r, "rule a", 0, false, id, S(1)))
        (void)rule_rows_claim_end(r, 0, id++);
    ok(!rule_rows_cap(r, 0, 200000, id) && rule_rows_cap(r, 0, 250000, 999),
       "after one that is none a row says what holds");
    ok(rule_rows_cap(r, 0, 250000, 999), "… again, too");
    ok(!rule_rows_cap(r, 0, 200000, id) && !rule_rows_cap(r, 0, 250000, 999),
       "back at the last row: none");
    ok(rule_rows_claim(r, "rule b", 0, false, id, S(2)) &&
           rule_rows_cap(r, 0, 200000, id) && rule_rows_claim_end(r, 0, id),
       "another rule takes the claim over: rows, and its end");
    ok(rule_rows_claim(r, "rule b", 0, false, 500, S(3)), "a claim with a row");
    ok(!rule_rows_claim(r, "rule a", 0, false, 500, S(4)), "… changes without one");
    ok(rule_rows_claim_end(r, 0, 500), "… its end is in the row that it has");
    ok(rule_rows_claim(r, "rule a", 1, true, 501, S(4)) && rule_rows_claim_end(r, 1, 501),
       "another board has its own");
    rule_rows_clear(r);
    ok(rule_rows_claim(r, "rule a", 0, false, 502, S(5)), "boards anew: all anew");
}

/* More rules, boards and jobs than there is room for. */
static void test_room(void)
{
    auto_(rule_rows_free) struct rule_rows *r = NULL;
    unsigned rows = 0, ends;

    if (rule_rows_new(&r) < 0)
        return;
    for (uint64_t job = 1; job <= UINT64_C(3) * RULE_ROWS_MAX; job++)
        rows += phases(r, "validation", 0, job, (unsigned)job, 1, &ends);
    is_int(rows, 3 * RULE_ROWS_MAX, "jobs that come and go have their rows");
    for (uint64_t job = 1; job <= RULE_ROWS_MAX + 8; job++)
        rows = phases(r, "validation", 0, job, 9000, 30, &ends);
    ok(rows == 30 && ends == 30, "without room each has its rows: %u, %u", rows, ends);
}

int main(void)
{
    test_events();
    test_claims();
    test_caps();
    test_room();
    return done();
}
