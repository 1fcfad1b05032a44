/* Which jobs are the same, and what is kept of their searches. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "jobs/history.h"
#include "jobs/job-key.h"
#include "tap.h"

static void test_command(void)
{
    static const char *const argv[][4] = {
        {"train", "--lr", "0.1", NULL}, {"train", "--lr 0.1", NULL},
        {"train", "--lr", "0.2", NULL}, {"train", "--lr", NULL},
        {"train", "", "--lr", NULL},
    };
    char text[6][JOB_KEY_TEXT], again[JOB_KEY_TEXT];

    for (size_t i = 0; i < 5; i++)
        job_key_command(argv[i], "/home/anna", text[i]);
    job_key_command(argv[0], "/home/ben", text[5]);
    job_key_command(argv[0], "/home/anna", again);
    is_str(again, text[0], "the same arguments there are the same");
    is_int((long long)strlen(again), JOB_KEY_TEXT - 1, "a hash");
    for (size_t i = 0; i < 6; i++)
        for (size_t k = 0; k < i; k++)
            ok(strcmp(text[i], text[k]) != 0, "command %zu is not command %zu", i, k);
}

static void test_job(void)
{
    static const struct label ab[] = {{"a", "1"}, {"b", "2"}},
                              ba[] = {{"b", "2"}, {"a", "1"}},
                              other[] = {{"a", "1"}, {"b", "3"}},
                              said[] = {{"a", "1"}, {"same", "x"}},
                              empty[] = {{"same", ""}};
    char one[JOB_KEY_TEXT], two[JOB_KEY_TEXT];

    job_key("c", ab, 2, one);
    job_key("c", ba, 2, two);
    is_str(one, two, "labels in any order");
    job_key("c", other, 2, two);
    ok(strcmp(one, two) != 0, "other labels, another job");
    job_key("c", NULL, 0, two);
    ok(strcmp(one, two) != 0, "none, another again");
    job_key("d", ab, 2, two);
    ok(strcmp(one, two) != 0, "another command, another job");
    job_key(NULL, ab, 2, two);
    is_str(two, "", "no command: none is the same");
    job_key("", empty, 1, two);
    is_str(two, "", "nor by an empty label");
    job_key("c", said, 2, one);
    job_key(NULL, said + 1, 1, two);
    ok(two[0] && strcmp(one, two) == 0, "but by the label that says so");
}

static struct ledger_search search_of(uid_t uid, unsigned same, int64_t utc_ns)
{
    struct ledger_search s = {
        .uid = uid, .model = "V100", .boards = 1, .utc_ns = utc_ns, .n = 1};
    (void)snprintf(s.same, sizeof s.same, "%u", same);
    return s;
}

static void test_history(void)
{
    auto_(history_free) struct history *h = history_new();
    struct ledger_search s = search_of(1000, 1, 5);

    is_int(history_put(h, &s), 0, "kept");
    ok(history_find(h, 1000, "1", "V100", 1, 0) != NULL, "found");
    ok(!history_find(h, 1001, "1", "V100", 1, 0), "not for another user");
    ok(!history_find(h, 0, "1", "V100", 1, 0), "nor for root");
    ok(!history_find(h, 1000, "2", "V100", 1, 0), "nor for another job");
    ok(!history_find(h, 1000, "1", "A100", 1, 0), "nor on another model");
    ok(!history_find(h, 1000, "1", "V100", 2, 0), "nor on more boards");
    ok(!history_find(h, 1000, "1", "V100", 1, 6), "nor where it is too old");
    s.utc_ns = 7;
    (void)history_put(h, &s);
    ok(history_count(h) == 1 && history_at(h, 0)->utc_ns == 7, "the newest counts");
    for (unsigned i = 0; i < LEDGER_USER_SEARCHES + 3; i++) {
        s = search_of(1001, i, 10 + i);
        (void)history_put(h, &s);
    }
    is_int((long long)history_count(h), 1 + LEDGER_USER_SEARCHES, "of one user so many");
    ok(!history_find(h, 1001, "2", "V100", 1, 0) &&
           history_find(h, 1001, "3", "V100", 1, 0),
       "the oldest have gone");
    for (unsigned i = 0; i < LEDGER_SEARCHES; i++) {
        s = search_of(2000 + i, 0, 1000);
        is_int(history_put(h, &s), 0, "user %u", i);
    }
    is_int((long long)history_count(h), LEDGER_SEARCHES, "of all so many");
    ok(!history_find(h, 1000, "1", "V100", 1, 0), "the oldest of all went first");
    ok(history_at(h, LEDGER_SEARCHES) == NULL, "no more");
}

int main(void)
{
    test_command();
    test_job();
    test_history();
    return done();
}
