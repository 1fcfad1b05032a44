#!/usr/bin/python3
"""Numbers in JSON have no noise: seven significant digits in every answer of the API and every command, but for sums."""
import decimal
import json
import time

import uwtest

t = uwtest.Tap()
# Sums that grow, in whole thousandths; sums of the ledger, whose parts add up, in whole millionths; given values.
COUNTERS = {"energy_j", "attributed_j", "idle_j", "unattributed_j", "today_j", "time_s", "booked_s", "true_j", "at_s", "throttle_s"}
LEDGER = {"cpu_j", "stack_j", "energy_j", "attributed_j", "idle_j", "unattributed_j", "meter_j", "difference_j", "gpu_s", "time_s", "gco2e", "cost",
          "facility_j", "co2_g", "co2_booked_g", "co2_revised_g", "marginal_g", "marginal_booked_g", "marginal_revised_g", "money", "money_booked",
          "money_revised", "embodied_attributed_g", "embodied_idle_g", "embodied_unattributed_g", "saved_j", "saved_half_j",
          "allocated_s", "allocated_j", "held_s", "held_j", "underused_s", "underused_j"}


def noisy(text, report=False):
    """The keys and numbers of more digits than their key allows."""
    found = []

    def walk(key, value):
        if isinstance(value, dict):
            for k, v in value.items():
                walk(key if key == "throttle_s" else k, v)
        elif isinstance(value, list):
            for v in value:
                walk(key, v)
        elif isinstance(value, decimal.Decimal):
            digits, exponent = value.normalize().as_tuple()[1:]
            least = -6 if report and key in LEDGER else -3 if key in COUNTERS else 0
            most = 12 if key == "value" else 7
            if len(digits) > most and exponent < least:
                found.append((key, str(value)))
    walk("", json.loads(text, parse_float=decimal.Decimal))
    return found


def answers(node, daemon):
    jobs = daemon.ask("GET", "/v1/jobs")[1]["jobs"]
    paths = ["/v1/node", "/v1/gpus", "/v1/gpus/0", "/v1/gpus/0/explain", "/v1/claims", "/v1/jobs", "/v1/signals", "/v1/policy", "/v1/report"]
    for path in paths + [f"/v1/jobs/{j['id']}" for j in jobs]:
        status, answer = daemon.ask("GET", path)
        found = noisy(json.dumps(answer), "report" in path)
        t.ok(status == 200 and not found, f"GET {path}", (status, found))
    for by in ("job", "user", "day", "gpu", "cpu", "user,day"):
        p = node.run("underwatt", "report", "--by", by, "--carbon", "381.7", "--price", "0.31 EUR", "--format", "json")
        t.ok(p.returncode == 0 and not noisy(p.stdout, True), f"report --by {by}", (p.stderr, noisy(p.stdout or "{}", True)))
    for args in (["list"], ["list", "--local"], ["jobs"], ["explain", "0"], ["signals"], ["signal", "list"], ["doctor"], ["cap", "show"], ["policy", "show"]):
        p = node.run("underwatt", *args, "--json", "-")
        t.ok((p.returncode == 0 or args == ["doctor"]) and p.stdout and not noisy(p.stdout), " ".join(args), (p.returncode, p.stderr, noisy(p.stdout or "{}")))
    p = node.run("underwatt-sim", "status", "--json")
    t.ok(p.returncode == 0 and not noisy(p.stdout), "underwatt-sim status", noisy(p.stdout or "{}"))
    for args in (["measure"], ["measure", "--carbon", "381.7", "--price", "0.31 EUR"], ["run", "-q"]):
        p = node.run("underwatt", *args, "--gpus", "1", "--json", "-", "--", "sleep", "1")
        t.ok(p.returncode == 0 and not noisy(p.stdout), " ".join(args), (p.stderr, noisy(p.stdout or "{}")))
    p = node.run("underwatt", "sweep", "--sim", "v100", "--workload", "resnet50", "--json", "-")
    t.ok(p.returncode == 0 and not noisy(p.stdout), "sweep --sim", (p.stderr, noisy(p.stdout or "{}")))


t.ok(noisy('{"a": 1.2000000000000002, "energy_j": 13012650013.012, "b": [0.12345678], "c": 1e-7}') == [("a", "1.2000000000000002"), ("b", "0.12345678")],
     "noise is seen")
with uwtest.Node(board="v100", count=2) as node:
    daemon = node.daemon()
    run = node.popen("underwatt", "run", "-q", "--gpus", "0", "--", "underwatt-sim", "train", "--workload", "resnet50", "--gpus", "0", "--steps", "100000")
    t.ok(uwtest.wait_for(lambda: node.board(0)["pids"]), "a job runs")
    time.sleep(12)  # a row is booked
    answers(node, daemon)
    run.terminate()
    run.communicate(timeout=60)
t.done()
