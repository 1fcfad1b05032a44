/* The routes over a made-up node: statuses, what reaches the node, who sees what. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/show.h"
#include "tap.h"
#include "try.h"

static struct fake f;

/* The answer's body of the last request; its status. */
static char *answer;
static char location[64], type[64];
static unsigned ask(const char *method, const char *target, const char *body)
{
    auto_(http_try_free) struct http_try *t = fake_ask(&f, method, target, body);
    size_t len = 0;

    free(answer);
    answer = NULL;
    location[0] = type[0] = '\0';
    if (!t)
        return 0;
    const char *text = http_try_body(t, &len);
    answer = strndup(text ? text : "", len);
    const char *field = http_try_header(t, "Location");
    (void)snprintf(location, sizeof location, "%s", field ? field : "");
    field = http_try_header(t, "Content-Type");
    (void)snprintf(type, sizeof type, "%s", field ? field : "");
    return http_try_status(t);
}

static bool says(const char *what)
{
    return answer && strstr(answer, what);
}

/* clang-format off */
static const struct { const char *method, *target, *body; unsigned status; const char *says; } statuses_of[] = {
    {"GET", "/healthz", NULL, 200, "ok"},
    {"POST", "/healthz", NULL, 405, "GET"},
    {"GET", "/v1/node", NULL, 200, "made-host"},
    {"GET", "/v1/node?x=1", NULL, 400, "x"},
    {"GET", "/v1/node", "{}", 400, "takes no body"},
    {"GET", "/v1/gpus", NULL, 200, "GPU-00000000"},
    {"GET", "/v1/gpus/0", NULL, 200, "GPU-00000000"},
    {"GET", "/v1/gpus/GPU-00000000-0000-0000-0000-000000000007", NULL, 200, "\"gpu\": 7"},
    {"GET", "/v1/gpus/8", NULL, 404, "no board '8'"},
    {"GET", "/v1/gpus/0/explain", NULL, 200, "budget \\\"row 3\\\""},
    {"GET", "/v1/gpus/0/explain", NULL, 200, "\"state\": \"in force\""},
    {"GET", "/v1/gpus/1/explain", NULL, 200, "\"goal\": \"edp\",\n      \"state\": \"holding\""},
    {"GET", "/v1/gpus/1/explain", NULL, 200, "the original limit is not confirmed yet"},
    {"GET", "/v1/gpus/1/explain", NULL, 200, "\"original_known\": false"},
    {"GET", "/v1/gpus/1/explain", NULL, 200, "\"ramping\": true,\n    \"ramp_w_s\": 6.25"},
    {"GET", "/v1/gpus/0/explain", NULL, 200, "\"ramping\": false,\n    \"ramp_w_s\": null"},
    {"GET", "/v1/gpus/9/explain", NULL, 404, "no board '9'"},
    {"GET", "/v1/gpus/0/history", NULL, 200, "\"length_s\": 180,"},
    {"GET", "/v1/gpus/0/history", NULL, 200, "\"time_s\": 178,"},
    {"GET", "/v1/gpus/1/history", NULL, 200, "\"samples\": []"},
    {"GET", "/v1/gpus/9/history", NULL, 404, "no board '9'"},
    {"GET", "/v1/gpus/0/", NULL, 400, NULL},
    {"GET", "/v1/gpus/0/explain/x", NULL, 404, "openapi"},
    {"GET", "/v1", NULL, 404, "openapi"},
    {"GET", "/", NULL, 404, "openapi"},
    {"GET", "/v1/Node", NULL, 404, "openapi"},
    {"POST", "/v1/node", "{}", 405, "GET"},
    {"DELETE", "/v1/claims", NULL, 405, "GET, POST"},
    {"POST", "/v1/jobs/1", "{}", 405, "GET, PUT, PATCH, DELETE"},
    {"PUT", "/v1/jobs/1", "{}", 400, "'1' is not the name of a job: slurm:NUMBER"},
    {"PUT", "/v1/jobs/slurm:", "{}", 400, "slurm:NUMBER"},
    {"PUT", "/v1/jobs/slurm:07", "{}", 400, "slurm:NUMBER"},
    {"PUT", "/v1/jobs/slurm:0", "{}", 400, "slurm:NUMBER"},
    {"PUT", "/v1/jobs/slurm:4_1", "{}", 400, "slurm:NUMBER"},
    {"PUT", "/v1/jobs/slurm:4294967296", "{}", 400, "slurm:NUMBER"},
    {"PUT", "/v1/jobs/k8s:7", "{}", 400, "slurm:NUMBER"},
    {"PUT", "/v1/jobs/slurm:7", NULL, 400, "body"},
    {"PUT", "/v1/jobs/slurm:4294967295", "{\"uid\": 1000, \"gpu_minors\": []}", 201, "\"refused\": null"},
    {"PUT", "/v1/jobs/slurm%3A7", "{\"uid\": 1000, \"gpu_minors\": []}", 201, "\"gpus\": []"},
    {"GET", "/v1/jobs/slurm:7", NULL, 404, "job slurm:7 does not run here"},
    {"GET", "/v1/jobs/slurm:x", NULL, 400, "slurm:NUMBER"},
    {"PATCH", "/v1/jobs/slurm:7", "{}", 204, NULL},
    {"PATCH", "/v1/jobs/slurm:7", NULL, 400, "body"},
    {"PATCH", "/v1/jobs/7", "{}", 400, "'7' is not the name of a job: slurm:NUMBER"},
    {"PATCH", "/v1/jobs/slurm:7", "{\"for\": \"2 h\"}", 400, "'for': 3600 s at most"},
    {"PATCH", "/v1/jobs/slurm:7", "{\"for\": \"0 s\"}", 400, "'for': '0 s' is not above 0 s"},
    {"PATCH", "/v1/jobs/slurm:7", "{\"time_limit\": 60}", 400, "must be a string with a unit"},
    {"PATCH", "/v1/jobs/slurm:7", "{\"labels\": [\"a\"]}", 400, "'labels' is not an object"},
    {"PATCH", "/v1/jobs/slurm:7", "{\"cap\": \"300 W\"}", 400, "'cap'"},
    {"DELETE", "/v1/jobs/slurm:7", NULL, 204, NULL},
    {"DELETE", "/v1/jobs/slurm:x", NULL, 400, "slurm:NUMBER"},
    {"GET", "/v1/claims", NULL, 200, "search of job 100"},
    {"GET", "/v1/claims?gpu=0&job=100", NULL, 200, "search of job 100"},
    {"GET", "/v1/claims?gpu=9", NULL, 404, "no board '9'"},
    {"GET", "/v1/claims?gpu=", NULL, 400, "gpu: '' is neither"},
    {"GET", "/v1/claims?job=x", NULL, 400, "job: 'x'"},
    {"GET", "/v1/claims?job=0", NULL, 400, "job: 0"},
    {"GET", "/v1/claims?user=x", NULL, 400, "user"},
    {"GET", "/v1/jobs", NULL, 200, "secret-1"},
    {"GET", "/v1/jobs/101", NULL, 200, "secret-1"},
    {"GET", "/v1/jobs/1", NULL, 404, "job 1 "},
    {"GET", "/v1/jobs/x", NULL, 400, "'x' is not a job"},
    {"GET", "/v1/jobs/0", NULL, 400, "'0' is not a job"},
    {"GET", "/v1/jobs/-1", NULL, 400, "'-1' is not a job"},
    {"GET", "/v1/jobs/18446744073709551616", NULL, 400, "is not a job"},
    {"DELETE", "/v1/jobs/101", NULL, 204, NULL},
    {"DELETE", "/v1/jobs/x", NULL, 400, "'x' is not a job"},
    {"DELETE", "/v1/jobs/101?pid=7", NULL, 204, NULL},
    {"DELETE", "/v1/jobs/101?pid=0", NULL, 400, "is not a process"},
    {"DELETE", "/v1/jobs/101?pid=x", NULL, 400, "'x'"},
    {"DELETE", "/v1/jobs/101?pod=1", NULL, 400, "pod"},
    {"POST", "/v1/jobs", "{\"pid\": 7, \"group\": \"new\"}", 201, "88, \"joined\": false"},
    {"POST", "/v1/jobs", "{\"pid\": 7, \"group\": \"there\", \"job\": 3}", 201, "87, \"joined\": true"},
    {"DELETE", "/v1/claims/7", NULL, 204, NULL},
    {"DELETE", "/v1/claims/x", NULL, 400, "'x' is not a claim"},
    {"POST", "/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\"}", 201, "77"},
    {"POST", "/v1/claims", "{", 400, NULL},
    {"POST", "/v1/claims", "[]", 400, "not a JSON object"},
    {"POST", "/v1/claims", NULL, 400, NULL},
    {"POST", "/v1/jobs", "{\"name\": \"x\"}", 201, "88"},
    {"POST", "/v1/gpus/0/release", NULL, 200, "released"},
    {"POST", "/v1/gpus/0/release", "{\"for\": \"10 min\"}", 200, "released"},
    {"POST", "/v1/gpus/0/release", "{\"for\": 10}", 400, "unit"},
    {"POST", "/v1/gpus/0/release", "{\"until\": \"10 min\"}", 400, "'until'"},
    {"POST", "/v1/gpus/8/release", NULL, 404, "no board '8'"},
    {"POST", "/v1/gpus/0/take-back", NULL, 200, "holding"},
    {"POST", "/v1/gpus/0/take-back", "{}", 400, "takes no body"},
    {"POST", "/v1/gpus/8/take-back", NULL, 404, "no board '8'"},
    {"GET", "/v1/report?by=user&zone=local&from=7d", NULL, 200, "user"},
    {"GET", "/v1/report?b=user", NULL, 400, "b"},
    {"GET", "/v1/events?what=samples,joy", NULL, 400, "'joy' is none of"},
    {"GET", "/v1/events?what=", NULL, 400, "is none of"},
    {"GET", "/v1/events?what=samples,", NULL, 400, "is none of"},
    {"PUT", "/v1/jobs/100/goal", "{\"goal\": \"edp\"}", 204, NULL},
    {"PUT", "/v1/jobs/100/goal", "{\"goal\": null}", 204, NULL},
    {"PUT", "/v1/jobs/100/goal", "{\"goal\": \"best\"}", 400, "'goal'"},
    {"PUT", "/v1/jobs/100/goal", "{\"goal\": 5}", 400, "goal"},
    {"PUT", "/v1/jobs/100/goal", "{}", 400, "'goal' is missing"},
    {"PUT", "/v1/jobs/x/goal", "{\"goal\": null}", 400, "'x' is not a job"},
    {"POST", "/v1/windows", NULL, 201, "99"},
    {"POST", "/v1/windows", "{}", 201, "99"},
    {"POST", "/v1/windows", "{\"stopped\": [{\"id\": 404, \"at_ns\": 5}], \"done\": [3]}", 201, "99"},
    {"POST", "/v1/windows", "{\"stopped\": {}}", 400, "a list of 1 to 256"},
    {"POST", "/v1/windows", "{\"stopped\": [{\"id\": 4}]}", 400, "each has 'id' and 'at_ns'"},
    {"POST", "/v1/windows", "{\"stopped\": [{\"id\": 4, \"at_ns\": -5}]}", 400, "at_ns"},
    {"POST", "/v1/windows", "{\"done\": [0]}", 400, "ids of windows"},
    {"POST", "/v1/windows/batch", "{\"stopped\": [{\"id\": 4, \"at_ns\": 5}]}", 204, NULL},
    {"POST", "/v1/windows/batch", NULL, 400, "body"},
    {"GET", "/v1/windows", NULL, 405, "POST"},
    {"POST", "/v1/windows/99/end", NULL, 200, "\"energy_j\": 4000"},
    {"POST", "/v1/windows/99/end", NULL, 200, "\"package-0\""},
    {"POST", "/v1/windows/99/end", "{\"at_ns\": 12, \"wait_s\": 0, \"keep\": true}", 200, "\"energy_j\": 4000"},
    {"POST", "/v1/windows/99/end", "{\"wait_s\": 2.5, \"keep\": true}", 200, "\"energy_j\": 4000"},
    {"POST", "/v1/windows/99/end", "{\"wait_s\": 61}", 400, "outside 0..60"},
    {"POST", "/v1/windows/99/end", "{\"wait_s\": \"1 s\"}", 400, "wait_s"},
    {"POST", "/v1/windows/99/end", "{\"until\": 1}", 400, "unknown key: 'until'"},
    {"POST", "/v1/windows/x/end", NULL, 400, "'x' is not a window"},
    {"GET", "/v1/windows/99/samples?gpu=0&most=1", NULL, 200, "\"power_w\": 300"},
    {"GET", "/v1/windows/99/samples?gpu=0&most=2048", NULL, 200, "\"why\": \"\""},
    {"GET", "/v1/windows/99/samples?gpu=0&most=2", NULL, 200, "\"time_s\": 100040.1234,"},
    {"GET", "/v1/windows/99/samples?gpu=1", NULL, 200, "\"why\": \"it hung\""},
    {"GET", "/v1/windows/99/samples?gpu=0&most=2049", NULL, 400, "most: 2049 is outside 1..2048"},
    {"GET", "/v1/windows/99/samples?gpu=0&most=0", NULL, 400, "most: 0 is outside"},
    {"GET", "/v1/windows/99/samples?gpu=9", NULL, 404, "no board '9'"},
    {"GET", "/v1/windows/99/samples", NULL, 400, "'gpu' is missing: an index or a UUID"},
    {"GET", "/v1/windows/x/samples?gpu=0", NULL, 400, "'x' is not a window"},
    {"DELETE", "/v1/windows/99", NULL, 204, NULL},
    {"GET", "/v1/signals", NULL, 200, "\"value\": -0.02"},
    {"GET", "/v1/signals", NULL, 200, "\"why\": \"/srv/grid.csv: torn\""},
    {"GET", "/v1/signals?name=carbon.forecast", NULL, 200, "\"value\": 240"},
    {"GET", "/v1/signals?name=carbon.forecast", NULL, 200, "\"persistence_mae\": 15"},
    {"GET", "/v1/signals?name=price", NULL, 200, "\"series\": []"},
    {"GET", "/v1/signals?name=other", NULL, 200, "\"signals\": []"},
    {"GET", "/v1/signals?nam=price", NULL, 400, "nam"},
    {"GET", "/v1/signals/carbon", NULL, 405, "PUT, DELETE"},
    {"PUT", "/v1/signals/carbon", "{\"value\": 420, \"unit\": \"g/kWh\", \"for\": \"10 min\"}", 204, NULL},
    {"PUT", "/v1/signals/queue.gpus", "{\"value\": 8, \"for\": \"90 s\", \"source\": \"slurm\"}", 204, NULL},
    {"PUT", "/v1/signals/queue.gpus", "{\"value\": 8, \"source\": 1}", 400, "source"},
    {"PUT", "/v1/signals/queue.gpus", "{\"value\": 8, \"source\": \"123456789012345678901234567890123\"}", 400, "'source' has 33 bytes, 31 at most"},
    {"PUT", "/v1/signals/grid.open", "{\"value\": true}", 204, NULL},
    {"PUT", "/v1/signals/grid.state", "{\"value\": \"tense\"}", 204, NULL},
    {"PUT", "/v1/signals/carbon", "{}", 400, "'value' is missing"},
    {"PUT", "/v1/signals/carbon", "{\"value\": null}", 400, "'value' is not a number"},
    {"PUT", "/v1/signals/carbon", "{\"value\": \"\"}", 400, "'value' is missing or empty"},
    {"PUT", "/v1/signals/carbon", "{\"value\": 1, \"for\": 900}", 400, "unit"},
    {"PUT", "/v1/signals/carbon", "{\"value\": true, \"unit\": \"W\"}", 400, "'unit' needs a number as value"},
    {"PUT", "/v1/signals/carbon", "{\"value\": 1, \"until\": 1}", 400, "'until'"},
    {"DELETE", "/v1/signals/carbon", NULL, 204, NULL},
    {"GET", "/v1/policy", NULL, 200, "\"in_force\": false"},
    {"GET", "/v1/policy", NULL, 200, "[\n    \"default\",\n    \"slow\",\n    \"night\"\n  ],"},
    {"GET", "/v1/policy?from=3", NULL, 200, "\"classes\": []"},
    {"GET", "/v1/policy?from=3", NULL, 200, "\"rules_total\": 0"},
    {"GET", "/v1/policy?from=-1", NULL, 400, "from: '-1'"},
    {"POST", "/v1/policy/check", "{\"policy\": \"policy: 1\\n\"}", 200, "\"cap_mw\": 225000"},
    {"POST", "/v1/policy/check?from=3", "{\"policy\": \"policy: 1\\n\"}", 200, "\"rules_total\": 0"},
    {"POST", "/v1/policy/check?from=x", "{\"policy\": \"policy: 1\\n\"}", 400, "from: 'x'"},
    {"POST", "/v1/policy/check", "{}", 400, "'policy'"},
    {"POST", "/v1/policy/check", "{\"policy\": 1}", 400, "'policy'"},
    {"POST", "/v1/policy/check", "{\"policy\": \"\", \"x\": 1}", 400, "unknown key: 'x'"},
    {"GET", "/v1/policy/check", NULL, 405, "POST"},
    {"POST", "/v1/reload", NULL, 200, "true"},
    {"GET", "/openapi.yaml", NULL, 200, "openapi: 3.1"},
    {"GET", "/metrics", NULL, 200, "underwatt_gpu_power_watts"},
};
/* clang-format on */

static void statuses(void)
{
    for (size_t i = 0; i < n_elements(statuses_of); i++) {
        unsigned got =
            ask(statuses_of[i].method, statuses_of[i].target, statuses_of[i].body);
        if (!ok(got == statuses_of[i].status &&
                    (!statuses_of[i].says || says(statuses_of[i].says)),
                "%s %s %s: %u", statuses_of[i].method, statuses_of[i].target,
                statuses_of[i].body ? statuses_of[i].body : "", statuses_of[i].status))
            printf("# %u %s\n", got, answer ? answer : "");
        if (got >= 400 && got != 405 && !says("{\"error\": \""))
            ok(says("\"error\""), "the answer says what is wrong");
    }
}

/* What is not known is null, not 0. */
static void unknown_budget(void)
{
    (void)ask("GET", "/v1/node", NULL);
    ok(says("\"counted_w\": 2400") && says("\"least_w\": 1200"), "a budget's sums");
    f.made.view.budget.unknown = true;
    (void)ask("GET", "/v1/node", NULL);
    ok(says("\"budget_w\": 2400") && says("\"counted_w\": null") &&
           says("\"least_w\": null"),
       "… where no board tells how much it takes");
    f.made.view.budget.unknown = false;
}

/* What the node is asked is what the request said. */
static void reaches(void)
{
    (void)ask(
        "POST", "/v1/claims",
        "{\"gpu\": 3, \"cap\": \"0.25 kW\", \"kind\": \"hard\", \"for\": \"10 min\","
        " \"why\": \"heat\", \"pid\": 12}");
    ok(strcmp(f.board, "3") == 0 && f.claim.cap.mw == 250000 &&
           f.claim.kind == CLAIM_HARD && f.claim.ttl_ns == 600 * 1000000000ull &&
           strcmp(f.why, "heat") == 0 && f.claim.pid == 12 && f.claim.job == 0,
       "a claim, every word of it");
    is_str(location, "/v1/claims/77", "and where it is");
    (void)ask("POST", "/v1/claims", "{\"job\": 101, \"cap\": \"85%\"}");
    ok(!f.claim.board && f.claim.job == 101 && f.claim.cap.percent == 85 &&
           f.claim.cap.mw == 0 && f.claim.kind == CLAIM_NAMED && f.claim.ttl_ns == 0,
       "a claim on a job's boards in percent, named where nothing else is said");
    (void)ask("POST", "/v1/jobs",
              "{\"name\": \"slurm:1\", \"source\": \"registered\", \"gpus\": [0, \"2\","
              " \"GPU-00000000-0000-0000-0000-000000000005\"], \"pid\": 9, \"uid\": 1003,"
              " \"labels\": {\"project\": \"x\", \"q\": \"\"}, \"goal\": \"eds:2\","
              " \"class\": \"debug\"}");
    ok(strcmp(f.name, "slurm:1") == 0 && f.job.reg.source == JOB_REGISTERED &&
           f.job.reg.boards == (1u | 4u | 32u) && f.job.reg.pid == 9 &&
           f.job.reg.uid == 1003 && f.job.reg.n_labels == 2 && f.job.search &&
           f.job.goal.kind == GOAL_EDS && f.job.page_fd == -1,
       "a job, every word of it");
    ok(strcmp(f.label[0].key, "project") == 0 && strcmp(f.label[0].value, "x") == 0 &&
           strcmp(f.label[1].key, "q") == 0,
       "and its labels");
    is_str(location, "/v1/jobs/88", "and where it is");
    (void)ask("POST", "/v1/windows", NULL);
    is_str(location, "/v1/windows/99", "where a window is");
    (void)ask("PUT", "/v1/jobs/100/goal", "{\"goal\": \"slowdown:1.1\"}");
    is_str(f.goal, "slowdown:1.1", "a job's goal");
    (void)ask("PUT", "/v1/jobs/100/goal", "{\"goal\": null}");
    ok(f.goal[0] == '\0' && f.id == 100, "or none");
    f.n_stopped = f.n_dropped = 0;
    (void)ask("POST", "/v1/windows",
              "{\"stopped\": [{\"id\": 404, \"at_ns\": 4}, {\"id\": 8, \"at_ns\": 5}], "
              "\"done\": [6, 7]}");
    ok(f.n_stopped == 2 && f.stopped_id == 8 && f.stopped_ns == 5 && f.n_dropped == 2 &&
           f.id == 7,
       "what a begin tells of others: one that is gone keeps nobody");
    f.hold = true;
    is_int(ask("POST", "/v1/windows/7/end", "{\"at_ns\": 6, \"wait_s\": 0}"), 202,
           "looked at: not known yet");
    ok(says("\"ready\": false") && f.stopped_id == 7 && f.stopped_ns == 6, "and ended");
    f.hold = false;
    f.n_dropped = 0;
    (void)ask("POST", "/v1/windows/7/end", "{\"wait_s\": 0, \"keep\": true}");
    is_int(f.n_dropped, 0, "looked at and kept");
    (void)ask("POST", "/v1/windows/7/end", "{\"wait_s\": 0}");
    is_int(f.n_dropped, 1, "or not");
    (void)ask("POST", "/v1/windows/7/end", "{\"wait_s\": 2, \"keep\": true}");
    ok(f.window.keep && f.window.until_ns > 0, "waited for, and kept");
    (void)ask("POST", "/v1/windows/4712/end", NULL);
    ok(f.id == 4712 && says("\"time_s\": 40") &&
           says("\"began_utc\": \"2025-10-09T08:54:10") && says("\"power_w\": 100") &&
           says("\"why\": \"short\"") && says("\"energy_j\": null") && says("it hung"),
       "which window ends, what it took, and what is not known");
    (void)ask("POST", "/v1/claims", "{\"gpu\": 0, \"preset\": \"balanced\"}");
    is_str(f.preset, "balanced", "a claim by a preset");
    ok(f.claim.cap.mw == 0 && f.claim.cap.percent == 0, "the node knows its share");
    (void)ask("POST", "/v1/jobs", "{\"preset\": \"minimal\"}");
    ok(!f.job.search && strcmp(f.preset, "minimal") == 0, "a job by a preset");
    (void)ask("POST", "/v1/jobs", "{\"cap\": \"200 W\"}");
    ok(!f.job.search && f.job.cap.mw == 200000 && f.job.reg.uid == 0 &&
           f.job.reg.boards == 0 && f.job.reg.source == JOB_RUN,
       "a job with a cap by name, the asker's own");
    (void)ask("DELETE", "/v1/claims/4711", NULL);
    ok(f.id == 4711 && strcmp(f.last, "withdraw") == 0, "which claim is withdrawn");
    (void)ask("POST", "/v1/gpus/0/release", "{\"for\": \"90 s\"}");
    ok(f.hold_off_ns == 90 * 1000000000ull, "how long a board is let go");
    (void)ask("GET", "/v1/report?by=label:project&to=today", NULL);
    ok(strcmp(f.report_by, "label:project") == 0 && !f.report.zone && !f.report.one_user,
       "what the report is of");
}

/* A job by its scheduler's name: what reaches the node, what is answered. */
static void by_name(void)
{
    struct job_entry *e = &f.made.entry[0];
    char name[JOB_NAME];

    (void)snprintf(name, sizeof name, "%s", e->name);
    (void)snprintf(e->name, sizeof e->name, "slurm:4711");
    e->given = 1u | 4u;
    is_int(ask("PUT", "/v1/jobs/slurm:4711",
               "{\"uid\": 1000, \"gpu_minors\": [0, 5], \"labels\": {\"slurm.qos\": "
               "\"high\"}, \"class\": \"debug\", \"time_limit\": \"36000 s\", "
               "\"cap\": \"300 W\"}"),
           201, "made");
    const struct scheduler_ask *got = &f.scheduler;
    ok(strcmp(f.last, "scheduler_put") == 0 && strcmp(f.name, "slurm:4711") == 0 &&
           got->reg.uid == 1000 && got->n_minors == 2 && got->minor[0] == 0 &&
           got->minor[1] == 5 && got->reg.n_labels == 1 &&
           strcmp(f.label[0].key, "slurm.qos") == 0 && strcmp(f.preset, "debug") == 0 &&
           strcmp(f.why, "cap 300 W") == 0 && got->limit_ns == 36000 * 1000000000ull,
       "every word of it reaches the node");
    ok(says("\"id\": 100") && says("\"name\": \"slurm:4711\"") &&
           says("\"GPU-00000000-0000-0000-0000-000000000000\"") &&
           says("\"GPU-00000000-0000-0000-0000-000000000002\""),
       "id, name and UUIDs of the boards that it was given");
    f.was_there = 1;
    f.made.job[0].refused = "cap: the job has no GPU";
    is_int(ask("PUT", "/v1/jobs/slurm:4711",
               "{\"uid\": 1000, \"gpu_minors\": [], \"preset\": \"balanced\"}"),
           200, "renewed");
    ok(strcmp(f.why, "preset balanced") == 0 && f.scheduler.limit_ns == 0 &&
           says("\"refused\": \"cap: the job has no GPU\""),
       "what is refused, and why");
    (void)ask("PUT", "/v1/jobs/slurm:4711",
              "{\"uid\": 1000, \"gpu_minors\": [], \"goal\": \"no such\"}");
    is_str(f.why, "goal no such", "whether a goal can be had is the node's");
    is_int(ask("GET", "/v1/jobs/slurm:4711", NULL), 200, "found by its name");
    ok(says("\"refused\": \"cap: the job has no GPU\"") && says("\"id\": 100"),
       "it is it");
    is_int(
        ask("PATCH", "/v1/jobs/slurm:4711",
            "{\"labels\": {\"slurm.name\": \"train\"}, \"time_limit\": \"1 h\", \"for\": "
            "\"90 s\"}"),
        204, "what the scheduler knows of it beside");
    ok(strcmp(f.last, "scheduler_amend") == 0 && strcmp(f.name, "slurm:4711") == 0 &&
           f.facts.n_labels == 1 && strcmp(f.label[0].value, "train") == 0 &&
           f.facts.limit_ns == 3600 * 1000000000ull &&
           f.facts.for_ns == 90 * 1000000000ull,
       "reaches the node");
    fake_as(&f, AS_STRANGER);
    is_int(ask("GET", "/v1/jobs/slurm:4711", NULL), 404, "not by another user");
    (void)ask("GET", "/v1/jobs/100", NULL);
    ok(says("\"refused\": null"), "who is not told what it asked for, either");
    f.r = -EPERM;
    is_int(ask("PUT", "/v1/jobs/slurm:4711", "{\"uid\": 4711, \"gpu_minors\": []}"), 403,
           "nor registers one");
    is_int(ask("DELETE", "/v1/jobs/slurm:4711", NULL), 403, "nor ends it");
    f.r = 0;
    fake_as(&f, AS_READER);
    f.calls = 0;
    is_int(ask("PUT", "/v1/jobs/slurm:4711", "{\"uid\": 1000, \"gpu_minors\": []}"), 400,
           "not over TCP");
    ok(says("over the unix socket only") && f.calls == 0, "the node hears nothing of it");
    fake_as(&f, AS_ADMIN);
    f.r = -ENOTSUP;
    is_int(ask("PUT", "/v1/jobs/slurm:4711", "{\"uid\": 1000, \"gpu_minors\": [9]}"), 422,
           "a board that is none");
    f.r = 0;
    f.was_there = 0;
    f.made.job[0].refused = NULL;
    (void)snprintf(e->name, sizeof e->name, "%s", name);
}

static void bodies_by_name(void)
{
    /* clang-format off */
    static const struct { const char *body, *says; } cases[] = {
        {"[]", "not a JSON object"},
        {"{\"gpu_minors\": []}", "'uid' is missing"},
        {"{\"uid\": 1, \"gpu_minors\": [0], \"unknown_gpus\": \"x\"}",
         "'unknown_gpus' and a GPU"},
        {"{\"uid\": 1, \"gpu_minors\": [], \"cap\": \"9 W\", \"unknown_gpus\": \"x\"}",
         "'unknown_gpus' and a GPU"},
        {"{\"uid\": -1, \"gpu_minors\": []}", "'uid'"},
        {"{\"uid\": 4294967295, \"gpu_minors\": []}", "'uid': 4294967295 is outside"},
        {"{\"uid\": 1000}", "'gpu_minors' must be a list"},
        {"{\"uid\": 1000, \"gpu_minors\": 0}", "'gpu_minors' must be a list"},
        {"{\"uid\": 1000, \"gpu_minors\": {}}", "'gpu_minors' must be a list"},
        {"{\"uid\": 1000, \"gpu_minors\": [\"0\"]}", "'gpu_minors' must list numbers"},
        {"{\"uid\": 1000, \"gpu_minors\": [-1]}", "'gpu_minors' must list numbers"},
        {"{\"uid\": 1000, \"gpu_minors\": [4294967296]}", "'gpu_minors' must list numbers"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"gpus\": [0]}", "unknown key: 'gpus'"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"pid\": 7}", "unknown key: 'pid'"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"cap\": 300}", "cap"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"cap\": \"\"}", "'cap' is empty"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"cap\": \"300 W\", \"goal\": \"edp\"}", "'cap' and 'goal' exclude each other"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"preset\": \"a\", \"goal\": \"edp\"}", "'preset' and 'goal' exclude each other"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"time_limit\": 3600}", "unit"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"labels\": {\"a\": 1}}", "'a' is not a string"},
        {"{\"uid\": 1000, \"gpu_minors\": [0], \"class\": \"a\\nb\"}", "'class' contains"},
    };
    /* clang-format on */

    f.calls = 0;
    for (size_t i = 0; i < n_elements(cases); i++)
        if (!ok(ask("PUT", "/v1/jobs/slurm:1", cases[i].body) == 400 &&
                    says(cases[i].says),
                "PUT %s: 400", cases[i].body))
            printf("# %s\n", answer ? answer : "");
    is_int(f.calls, 0, "the node has heard of none of these");
}

/* Bodies that are refused before the node hears of them. */
static void bodies(void)
{
    /* clang-format off */
    static const struct { const char *path, *body, *says; } cases[] = {
        {"/v1/claims", "{\"gpu\": 0}", "'cap' must be a string"},
        {"/v1/claims", "{\"cap\": \"250 W\"}", "neither 'gpu' nor 'job'"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": 250}", "with a unit"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"-250 W\"}", "'cap'"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"80\"}", "'cap': '80' has no unit: write '80 W', or a percentage such as '85 %'"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"0 W\"}", "'cap': '0 W': a cap is more than 0 W"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"0%\"}", "'cap'"},
        {"/v1/claims", "{\"gpu\": 0, \"preset\": \"\"}", "'preset' is empty"},
        {"/v1/claims", "{\"gpu\": 0, \"preset\": 85}", "'preset'"},
        {"/v1/claims", "{\"gpu\": 0, \"preset\": \"minimal\", \"cap\": \"250 W\"}", "'cap' and 'preset' exclude each other"},
        {"/v1/claims", "{\"gpu\": 0, \"preset\": \"minimal\", \"clock\": \"1 GHz\"}", "'preset' and 'clock' exclude each other: make two claims"},
        {"/v1/claims", "{\"gpu\": 0, \"preset\": \"0123456789012345678901234567890123456789012345678\"}", "48 at most"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"nan%\"}", "'cap'"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"kind\": \"soft \"}", "none of: soft, named, hard"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"for\": \"10\"}", "'for'"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"for\": \"0 s\"}", "'for': '0 s' is not above 0 s"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"for\": \"9999 d\"}", "'for': '9999 d' is above 365 d"},
        {"/v1/gpus/0/release", "{\"for\": \"366 d\"}", "'for': '366 d' is above 365 d"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"for\": 10}", "unit"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"ttl\": \"10 s\"}", "unknown key: 'ttl'"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"pid\": 0}", "outside 1.."},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"pid\": \"1\"}", "'pid' is not a number"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"pid\": 4294967297}", "outside 1.."},
        {"/v1/claims", "{\"gpu\": -1, \"cap\": \"250 W\"}", "neither an index nor a UUID"},
        {"/v1/claims", "{\"gpu\": \"\", \"cap\": \"250 W\"}", "'gpu' is empty"},
        {"/v1/claims", "{\"gpu\": [0], \"cap\": \"250 W\"}", "neither an index nor a UUID"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"job\": 1.5}", "'job'"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"gpu\": 1}", "duplicate"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"why\": \"a\\nb\"}", "invisible character"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"why\": \"a\\u200bb\"}", "invisible character"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"why\": \"a\u202eb\"}", "invisible character"},
        {"/v1/jobs", "{\"name\": \"a\u200bb\"}", "'name' contains"},
        {"/v1/jobs", "{\"name\": \"a\\u00adb\"}", "'name' contains"},
        {"/v1/jobs", "{\"name\": \"\\ufeffa\"}", "'name' contains"},
        {"/v1/jobs", "{\"name\": \"a\\udb40\\udc41\"}", "'name' contains"}, /* a tag */
        {"/v1/jobs", "{\"class\": \"a\u2060\"}", "'class' contains"},
        {"/v1/jobs", "{\"command\": \"a\ufe0f\"}", "'command' contains"},
        {"/v1/jobs", "{\"labels\": {\"a\u200d\": \"b\"}}", "invisible character"},
        {"/v1/jobs", "{\"labels\": {\"a\": \"b\u3164\"}}", "invisible character"},
        {"/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\", \"why\": \"0123456789012345678901234567890123456789"
            "0123456789012345678901234567890123456789012345678901234567890\"}", "95 at most"},
        {"/v1/jobs", "{\"goal\": \"speed\"}", "'goal'"},
        {"/v1/jobs", "{\"goal\": \"edp\", \"cap\": \"200 W\"}", "exclude each other"},
        {"/v1/jobs", "{\"goal\": \"edp\", \"preset\": \"minimal\"}", "'goal' and 'preset' exclude each other"},
        {"/v1/jobs", "{\"cap\": \"200 W\", \"preset\": \"minimal\"}", "'cap' and 'preset' exclude each other"},
        {"/v1/jobs", "{\"pid\": 7, \"group\": \"\"}", "'group' is empty"},
        {"/v1/jobs", "{\"group\": \"x\"}", "'group' needs source 'run'"},
        {"/v1/jobs", "{\"pid\": 7, \"source\": \"registered\", \"group\": \"x\"}", "'group' needs source 'run'"},
        {"/v1/jobs", "{\"pid\": 7, \"job\": 3}", "'job' needs a 'group'"},
        {"/v1/jobs", "{\"pid\": 7, \"group\": \"x\", \"job\": 0}", "'job'"},
        {"/v1/jobs", "{\"goal\": \"edp\", \"default_goal\": \"edp\"}", "'goal' and 'default_goal' exclude each other"},
        {"/v1/jobs", "{\"default_goal\": \"edp\", \"cap\": \"200 W\"}", "'default_goal' and 'cap' exclude each other"},
        {"/v1/jobs", "{\"default_goal\": \"fastest\"}", "'default_goal'"},
        {"/v1/jobs", "{\"gpus\": 0}", "list of 1 to 64"},
        {"/v1/jobs", "{\"gpus\": []}", "list of 1 to 64"},
        {"/v1/jobs", "{\"gpus\": [0, 0]}", "twice"},
        {"/v1/jobs", "{\"default_gpus\": [0, 0]}", "'default_gpus' names '0' twice"},
        {"/v1/jobs", "{\"gpus\": [0], \"default_gpus\": [0]}", "'gpus' and 'default_gpus' exclude each other"},
        {"/v1/jobs", "{\"gpus\": [{}]}", "'gpus' must list"},
        {"/v1/jobs", "{\"labels\": []}", "'labels' is not an object"},
        {"/v1/jobs", "{\"labels\": {\"a\": 1}}", "'a' is not a string"},
        {"/v1/jobs", "{\"labels\": {\"\": \"a\"}}", "'labels': '' is not a key (letters, digits, _-./, 31 at most)"},
        {"/v1/jobs", "{\"labels\": {\"a b\": \"c\"}}", "'labels': 'a b' is not a key (letters, digits, _-./, 31 at most)"},
        {"/v1/jobs", "{\"labels\": {\"01234567890123456789012345678901\": \"c\"}}", "is not a key"},
        {"/v1/jobs", "{\"labels\": {\"a\": \"0123456789012345678901234567890123456789012345678901234567890123\"}}", "63 at most"},
        {"/v1/jobs", "{\"source\": \"found\"}", "none of: run, registered"},
        {"/v1/jobs", "{\"uid\": 4294967295}", "outside 0.."},
        {"/v1/jobs", "{\"user\": \"root\"}", "unknown key: 'user'"},
    };
    /* clang-format on */
    unsigned calls = f.calls;

    for (size_t i = 0; i < n_elements(cases); i++) {
        unsigned got = ask("POST", cases[i].path, cases[i].body);
        if (!ok(got == 400 && says(cases[i].says), "refused: %s", cases[i].body))
            printf("# %u %s\n", got, answer);
    }
    ok(ask("POST", "/v1/jobs", "{\"gpus\": [9]}") == 404 && says("no board '9'"),
       "a board that is not there");
    char many[1024] = "{\"labels\": {";
    for (int i = 0; i < 17; i++) {
        size_t n = strlen(many);
        (void)snprintf(many + n, sizeof many - n, "%s\"k%d\": \"v\"", i ? ", " : "", i);
    }
    size_t n = strlen(many);
    (void)snprintf(many + n, sizeof many - n, "}}");
    ok(ask("POST", "/v1/jobs", many) == 400 && says("more than 16"), "17 labels");
    is_int(f.calls - calls, 0, "the node heard of none");
}

static void failures(void)
{
    static const struct {
        int r;
        unsigned status;
    } cases[] = {{-EPERM, 403},  {-ENOENT, 404},  {-ERANGE, 400},
                 {-EINVAL, 400}, {-EBUSY, 409},   {-E2BIG, 409},
                 {-EAGAIN, 503}, {-ENOTSUP, 422}, {-EIO, 500}};
    static const char *const asks[][3] = {
        {"POST", "/v1/claims", "{\"gpu\": 0, \"cap\": \"250 W\"}"},
        {"DELETE", "/v1/claims/7", NULL},
        {"POST", "/v1/jobs", "{}"},
        {"DELETE", "/v1/jobs/100", NULL},
        {"PUT", "/v1/jobs/100/goal", "{\"goal\": \"edp\"}"},
        {"POST", "/v1/gpus/0/release", NULL},
        {"POST", "/v1/gpus/0/take-back", NULL},
        {"GET", "/v1/report", NULL},
        {"POST", "/v1/windows", NULL},
        {"POST", "/v1/windows/7/end", NULL},
        {"DELETE", "/v1/windows/7", NULL},
        {"GET", "/v1/windows/7/samples?gpu=0", NULL},
        {"POST", "/v1/reload", NULL},
    };

    f.text = "nobody may claim on GPU-x: 4 W";
    for (size_t i = 0; i < n_elements(asks); i++) {
        bool all = true;
        for (size_t k = 0; k < n_elements(cases); k++) {
            f.r = cases[k].r;
            unsigned got = ask(asks[i][0], asks[i][1], asks[i][2]);
            all &= got == cases[k].status && says("GPU-x: 4 W");
        }
        ok(all, "%s %s: each failure of the node has its status and its text", asks[i][0],
           asks[i][1]);
    }
    f.r = 0;
    f.text = NULL;
}

static void rights(void)
{
    unsigned calls = f.calls;

    f.refuse = 401;
    ok(ask("GET", "/v1/node", NULL) == 401 && ask("GET", "/metrics", NULL) == 401 &&
           ask("POST", "/v1/jobs", "{}") == 401 && ask("GET", "/v1/nothing", NULL) == 401,
       "who is nobody learns nothing, not even what there is");
    ok(ask("GET", "/healthz", NULL) == 200, "but whether the daemon lives");
    f.refuse = 0;

    fake_as(&f, AS_USER1);
    ok(ask("POST", "/v1/reload", NULL) == 403 && says("user1"),
       "a user may not reload the configuration");
    ok(ask("POST", "/v1/jobs", "{\"uid\": 0}") == 403, "nor register for another");
    is_int(f.calls - calls, 0, "the node was not asked");
    ok(ask("POST", "/v1/jobs", "{\"uid\": 1001}") == 201, "but for itself");

    (void)ask("GET", "/v1/jobs", NULL);
    ok(says("secret-1") && says("hidden-1") && !says("secret-2") && !says("hidden-2"),
       "a user sees name and labels of its own job alone");
    ok(says("\"user\": \"user2\"") && says("\"energy_j\": 1002.5"),
       "and of the others whose they are and their energy");
    (void)ask("GET", "/v1/jobs/102", NULL);
    ok(says("\"name\": null") && says("\"labels\": null") && says("\"pid\": null"),
       "one of another's: neither name, labels nor process");
    (void)ask("GET", "/metrics", NULL);
    ok(says("secret-1") && !says("secret-2"), "the same in the metrics");
    (void)ask("GET", "/v1/report", NULL);
    ok(f.report.one_user && f.report.uid == 1001, "the same in the report");

    fake_as(&f, AS_STRANGER);
    (void)ask("GET", "/v1/jobs", NULL);
    ok(!says("secret-") && !says("hidden-"), "a stranger sees no name");
    fake_as(&f, AS_READER);
    (void)ask("GET", "/v1/jobs", NULL);
    ok(says("secret-0") && says("secret-7"), "a token that may only read sees all");
    (void)ask("GET", "/v1/report", NULL);
    ok(!f.report.one_user, "in the report, too");
    ok(ask("POST", "/v1/jobs", "{}") == 400 && says("'uid' is missing"),
       "without a user there is no job");
    fake_as(&f, AS_JOB_TOKEN);
    (void)ask("GET", "/v1/jobs", NULL);
    ok(says("secret-2") && !says("secret-1"), "a job's token sees that job");
    calls = f.calls;
    ok(ask("POST", "/v1/claims", "{\"job\": 102, \"cap\": \"250 W\", \"pid\": 1}") ==
               400 &&
           says("unix socket") && f.calls == calls,
       "a process is named by those alone who are here");
    fake_as(&f, AS_ADMIN);
}

/* {"policy": "xxx…"} of a text of n bytes. */
static char *policy_of(size_t n)
{
    char *body = malloc(n + 20);

    if (!body)
        return NULL;
    int at = snprintf(body, 20, "{\"policy\": \"");
    memset(body + at, 'x', n);
    (void)snprintf(body + at + n, 4, "\"}");
    return body;
}

static void on_bound(struct http_exchange *x, void *user)
{
    size_t *bound = user;

    *bound = routes_body(x, f.routes);
    http_reply(x, 204, NULL, NULL, 0, NULL);
}

static size_t bound_of(const char *method, const char *target, bool local)
{
    const struct http_try_ask a = {
        .method = method, .target = target, .peer = {.local = local}};
    auto_(http_try_free) struct http_try *t = NULL;
    size_t bound = SIZE_MAX;

    (void)http_try_new(f.loop, on_bound, &bound, &a, &t);
    return bound;
}

static void large(void)
{
    auto_(mem_free) char *file = policy_of(1 << 20), *larger = policy_of((1 << 20) + 1);
    unsigned calls = f.calls;

    if (!file || !larger)
        return;
    ok(bound_of("POST", "/v1/policy/check?from=1", true) == (2u << 20) + 4096,
       "the text of a policy may be as long as its file, twice over in JSON");
    ok(bound_of("POST", "/v1/policy/check", false) == 0 &&
           bound_of("GET", "/v1/policy/check", true) == 0 &&
           bound_of("POST", "/v1/claims", true) == 0,
       "on the unix socket, and on no other route");
    ok(ask("POST", "/v1/policy/check", larger) == 400 &&
           says("'policy': larger than 1048576 bytes") && f.calls == calls,
       "a larger text is refused");
    ok(ask("POST", "/v1/policy/check", file) == 200 && f.calls == calls + 1,
       "one of that size is tried");
    fake_as(&f, AS_USER1);
    ok(ask("POST", "/v1/policy/check", file) == 403 && says("administrators only") &&
           f.calls == calls + 1,
       "of others a large body is not read");
    fake_as(&f, AS_ADMIN);
}

static void later(void)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    f.hold = true;
    struct http_try *t = fake_ask(&f, "POST", "/v1/gpus/0/release", NULL);
    is_int(http_try_status(t), 0, "release: no answer before it is done");
    f.done(-EBUSY, "the board hangs", f.user);
    is_int(http_try_status(t), 409, "then why not");
    http_try_free(t);

    t = fake_ask(&f, "POST", "/v1/gpus/0/release", NULL);
    http_try_free(t); /* the peer goes */
    f.done(0, "", f.user);
    ok(true, "a peer that went is not answered");

    t = fake_ask(&f, "GET", "/v1/report", NULL);
    is_int(http_try_status(t), 0, "report: no answer before it is made");
    f.report_done(-ENOENT, NULL, "there is no label 'x'", f.user);
    is_int(http_try_status(t), 404, "then why not");
    http_try_free(t);
    t = fake_ask(&f, "GET", "/v1/report", NULL);
    http_try_free(t);
    json_out_object(o, NULL);
    json_out_end(o);
    f.report_done(0, o, "", f.user);
    ok(true, "nor is a peer that went");

    t = fake_ask(&f, "POST", "/v1/windows/9/end", NULL);
    is_int(http_try_status(t), 0, "a window: no answer before its energy is known");
    f.window.fn(-EAGAIN, NULL, "the boards are being reopened", f.user);
    is_int(http_try_status(t), 503, "then why not");
    http_try_free(t);
    t = fake_ask(&f, "POST", "/v1/windows/9/end", NULL);
    http_try_free(t);
    f.window.fn(-EAGAIN, NULL, "the boards are being reopened", f.user);
    ok(true, "nor is one that waited for that");
    f.hold = false;
}

/* ---- for the test against docs/openapi.yaml ---- */

static void dump(const char *method, const char *target, const char *body)
{
    struct json_out *o = json_out_new();
    unsigned status = ask(method, target, body);

    json_out_object(o, NULL);
    json_out_text(o, "method", method);
    json_out_text(o, "target", target);
    json_out_text(o, "request", body);
    json_out_int(o, "status", status);
    json_out_text(o, "type", type);
    json_out_text(o, "body", answer);
    json_out_end(o);
    (void)json_out_line(o, stdout, NULL);
    json_out_free(o);
}

static int routes(void)
{
    enum http_method method;
    const char *path;

    for (size_t i = 0; (path = routes_at(i, &method)); i++)
        printf("%s %s\n", http_method_name(method), path);
    return 0;
}

/* Each line of standard input is a request: METHOD TARGET [BODY]. */
static int serve(void)
{
    char line[4096];

    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line, *method = strsep(&rest, " "), *target = strsep(&rest, " ");
        if (!target)
            return 2;
        if (strcmp(method, "AS") == 0)
            fake_as(&f, target[0] == 'a' ? AS_ADMIN : AS_USER1);
        else if (strcmp(method, "EMPTY") == 0)
            made_init(&f.made, 0, 0);
        else if (strcmp(method, "BARE") == 0)
            for (size_t i = 0; i < f.made.view.n_boards; i++)
                f.made.board[i] = (struct view_board){.info = &f.made.info[i]};
        else if (strcmp(method, "FAIL") == 0)
            f.r = target[0] == 'p' ? -EPERM : target[0] == 'b' ? -EBUSY : 0;
        else
            dump(method, target, rest);
    }
    return 0;
}

/* Why no claim decides. */
static void originals(void)
{
    struct caps_view v = {
        .can_cap = true, .verdict = {.target_mw = 700000}, .unrestored = true};
    char text[320];

    is_str(
        show_why(&v, text, sizeof text),
        "700 W: the limit found, no claim is lower; the board has not confirmed it yet",
        "a board that was lost under a cap of this daemon");
    v.unrestored = false;
    ok(strstr(show_why(&v, text, sizeof text), "an earlier daemon may have left it"),
       "the limit found at a start");
    v.original_known = true;
    is_str(show_why(&v, text, sizeof text),
           "700 W: the limit found at the start, no claim is lower", "a known original");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--routes") == 0)
        return routes();
    if (fake_new(&f, 8, 8) < 0)
        return 1;
    if (argc == 2 && strcmp(argv[1], "--serve") == 0) {
        int r = serve();
        fake_free(&f);
        free(answer);
        return r;
    }
    statuses();
    unknown_budget();
    reaches();
    by_name();
    bodies();
    bodies_by_name();
    failures();
    rights();
    large();
    later();
    originals();
    fake_free(&f);
    free(answer);
    return done();
}
