#include "actuator/proto.h"

#include <errno.h>

#include "base/auto.h"
#include "tap.h"

static void test_request(void)
{
    struct proto_request good = proto_request(PROTO_LIMIT, 7, "GPU-1"), got;
    uw_error err = {""};

    good.a = 200000;
    is_int(proto_parse_request(&good, sizeof good, &got, &err), 0,
           "a request is understood");
    ok(memcmp(&good, &got, sizeof good) == 0, "… as it was");

    /* clang-format off */
    const struct {
        const char *name;
        size_t size;
        struct proto_request m;
    } bad[] = {
        {"short", sizeof good - 1, good},
        {"empty", 0, good},
        {"magic", sizeof good, {.version = 1, .type = PROTO_RENEW, .seq = 1}},
        {"version", sizeof good, {.magic = PROTO_MAGIC, .version = PROTO_VERSION + 1, .type = PROTO_RENEW, .seq = 1}},
        {"type 0", sizeof good, proto_request(0, 1, NULL)},
        {"unknown type", sizeof good, proto_request(PROTO_N_REQUESTS, 1, "GPU-1")},
        {"an event", sizeof good, proto_request(PROTO_LEASE_OVER, 1, "GPU-1")},
        {"no seq", sizeof good, proto_request(PROTO_RENEW, 0, NULL)},
        {"no uuid", sizeof good, proto_request(PROTO_HOLD, 1, NULL)},
        {"a path for a uuid", sizeof good, proto_request(PROTO_HOLD, 1, "../../etc/passwd")},
        {"uuid where none belongs", sizeof good, proto_request(PROTO_RENEW, 1, "GPU-1")},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(bad); i++) {
        struct proto_request canary = proto_request(PROTO_RELEASE, 99, "GPU-canary");
        struct proto_request was = canary;
        err.text[0] = '\0';
        is_int(proto_parse_request(&bad[i].m, bad[i].size, &canary, &err), -EPROTO,
               "%s: refused", bad[i].name);
        ok(err.text[0] && memcmp(&canary, &was, sizeof was) == 0,
           "%s: says why, result untouched", bad[i].name);
    }
    memset(good.uuid, 'a', sizeof good.uuid);
    is_int(proto_parse_request(&good, sizeof good, &got, NULL), -EPROTO, "endless uuid");
    char more[sizeof good + 1] = {0};
    memcpy(more, &got, sizeof got);
    is_int(proto_parse_request(more, sizeof more, &got, NULL), -EPROTO,
           "a byte too many");
}

static void test_answer(void)
{
    struct actuator_reply reply = {.result = ACTUATOR_TAKEN,
                                   .uuid = "GPU-1",
                                   .enforced_mw = 1,
                                   .original_mw = 2,
                                   .limits = {3, 4, 5},
                                   .pid = 42,
                                   .text = "held",
                                   .set_mw = 6,
                                   .range = {7, 8},
                                   .from = {.ppm = 9},
                                   .to = {.mw = 10}};
    struct proto_answer m = proto_answer(PROTO_HOLD, 7, &reply), got;

    is_int(proto_parse_answer(&m, sizeof m, &got, NULL), 0, "an answer is understood");
    struct actuator_reply back = got.reply;
    ok(back.result == reply.result && back.enforced_mw == 1 && back.original_mw == 2 &&
           back.limits.min_mw == 3 && back.limits.max_mw == 4 &&
           back.limits.default_mw == 5 && back.pid == 42,
       "its numbers are as they were");
    ok(back.set_mw == 6 && back.range.min_mw == 7 && back.range.max_mw == 8,
       "… what is set, and the range in force");
    is_str(back.uuid, "GPU-1", "… its uuid");
    is_str(back.text, "held", "… its text");
    is_int(proto_answer_size(0), 344, "an old client's answer is as it was");
    ok(back.from.mw == 0 && back.from.ppm == 9 && back.to.mw == 10 && back.to.ppm == 0,
       "… root's range");
    is_int(proto_answer_size(1), 356, "so is a later one's");
    is_int(proto_answer_size(2), 356, "… and the next");
    is_int(proto_answer_size(3), sizeof m, "this one's has it all");
    is_int(proto_answer_size(4), sizeof m, "… a later one's, too");
    is_int(proto_parse_answer(&m, proto_answer_size(1), &got, NULL), 0,
           "an answer without root's range is understood");
    ok(got.reply.range.max_mw == 8 && !got.reply.from.ppm && !got.reply.to.mw,
       "… which is not known then");
    is_int(proto_parse_answer(&m, proto_answer_size(0), &got, NULL), 0,
           "an old actuator's answer is understood");
    back = got.reply;
    ok(strcmp(back.text, "held") == 0 && back.limits.max_mw == 4 && !back.set_mw &&
           !back.range.min_mw && !back.range.max_mw,
       "what it does not tell is not known");
}

static void test_bad_answers(void)
{
    struct actuator_reply reply = {.uuid = "GPU-1", .text = "held"};
    const struct proto_answer m = proto_answer(PROTO_HOLD, 7, &reply);
    struct proto_answer got, bad = m;

    bad.reply.result = ACTUATOR_N_RESULTS;
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), -EPROTO, "unknown result");
    bad = m;
    bad.seq = 0;
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), -EPROTO,
           "an answer to nothing");
    bad.type = PROTO_LOST;
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), 0, "an event");
    bad.type = PROTO_BOARD;
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), 0, "the newest one");
    bad.type = PROTO_N_EVENTS;
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), -EPROTO, "none of ours");
    bad.seq = 3;
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), -EPROTO,
           "an event with a seq");
    bad = m;
    memset(bad.reply.text, 'x', sizeof bad.reply.text);
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), -EPROTO, "endless text");
    bad = m;
    bad.reply.uuid[0] = '/';
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), -EPROTO,
           "a path for a uuid");
    bad = m;
    bad.reply.range = (struct actuator_range){2, 1};
    is_int(proto_parse_answer(&bad, sizeof bad, &got, NULL), -EPROTO,
           "a range that ends before it begins");
    is_int(proto_parse_answer(&m, sizeof m - 1, &got, NULL), -EPROTO, "short");
    is_int(proto_parse_answer(&m, proto_answer_size(0) - 1, &got, NULL), -EPROTO,
           "shorter than the shortest");
    is_int(proto_parse_answer(&m, proto_answer_size(0) + 1, &got, NULL), -EPROTO,
           "between two revisions");
}

int main(void)
{
    test_request();
    test_answer();
    test_bad_answers();
    return done();
}
