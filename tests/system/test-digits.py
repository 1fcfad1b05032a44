#!/usr/bin/python3
"""Numbers in JSON have no noise: twelve significant digits, or whole millionths, in every answer of the API and in reports."""
import decimal
import json
import time

import uwtest

t = uwtest.Tap()


def noisy(text):
    """Numbers of more than twelve significant digits that are no whole number of millionths."""
    found = []

    def look(word):
        digits, exponent = decimal.Decimal(word).normalize().as_tuple()[1:]
        if len(digits) > 12 and exponent < -6:
            found.append(word)
        return float(word)
    json.loads(text, parse_float=look)
    return found


def answers(node, daemon):
    jobs = daemon.ask("GET", "/v1/jobs")[1]["jobs"]
    paths = ["/v1/node", "/v1/gpus", "/v1/gpus/0", "/v1/gpus/0/explain", "/v1/claims", "/v1/jobs", "/v1/signals", "/v1/policy", "/v1/report"]
    for path in paths + [f"/v1/jobs/{j['id']}" for j in jobs]:
        status, answer = daemon.ask("GET", path)
        found = noisy(json.dumps(answer))
        t.ok(status == 200 and not found, f"GET {path}", (status, found))
    for by in ("job", "user", "day", "gpu", "cpu", "user,day"):
        p = node.run("underwatt", "report", "--by", by, "--carbon", "381.7", "--price", "0.31 EUR", "--format", "json")
        t.ok(p.returncode == 0 and not noisy(p.stdout), f"report --by {by}", (p.stderr, p.stdout))
    for args in (["list"], ["jobs"], ["explain", "0"]):
        p = node.run("underwatt", *args, "--json", "-")
        t.ok(p.returncode == 0 and not noisy(p.stdout), " ".join(args), (p.stderr, p.stdout))


t.ok(noisy('{"a": 1.2000000000000002, "b": 13012650013.012650, "c": 1e-7}') == ["1.2000000000000002"], "noise is seen")
with uwtest.Node(board="v100", count=2) as node:
    daemon = node.daemon()
    run = node.popen("underwatt", "run", "-q", "--gpus", "0", "--", "underwatt-sim", "train", "--workload", "resnet50", "--gpus", "0", "--steps", "100000")
    t.ok(uwtest.wait_for(lambda: node.board(0)["pids"]), "a job runs")
    time.sleep(12)  # a row is booked
    answers(node, daemon)
    run.terminate()
    run.communicate(timeout=60)
t.done()
