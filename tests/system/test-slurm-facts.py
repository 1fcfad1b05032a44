#!/usr/bin/python3
"""What Slurm's collector tells of a registered job, PATCH of /v1/jobs/slurm:NUMBER: labels that select classes and rules of the
policy, its time limit; over a restart of the daemon."""
import contextlib
import os
import sqlite3
import subprocess
import tempfile
import time

import uwtest

t = uwtest.Tap()
POLICY = """policy: 1
classes:
  - {name: served, match: {kind: inference}}
  - {name: urgent, match: {slurm: {qos: "hi*", account: prod}}}
rules:
  - {name: not-urgent, jobs: {class: other}, when: job.age >= 0 s, for: 0 s, release: 0 s, cap: 200 W, ramp: at once}
"""


def limit(node, watts, what):
    got = uwtest.wait_until(lambda: node.board(0)["limit_mw"], lambda mw: mw == watts * 1000)
    t.equal(got, watts * 1000, what)


def facts(node, d):
    path = "/v1/jobs/slurm:4711"
    status, _ = d.ask("PATCH", path, {"labels": {"slurm.qos": "high"}})
    t.equal(status, 404, "no such job runs here")
    d.ask("PUT", path, {"uid": 1000, "gpu_minors": [0], "labels": {"slurm.account": "prod"}})
    limit(node, 200, "a job of no class that the rule spares")
    status, _ = d.ask("PATCH", path, {"labels": {"slurm.qos": "high", "slurm.name": "train é"}, "time_limit": "1 h", "for": "90 s"})
    t.equal(status, 204, "its QoS, name and limit are told")
    limit(node, 300, "with its QoS it is of a class that is not capped")
    job = d.ask("GET", path)[1]
    t.ok(job["time_limit_s"] == 3600 and job["labels"]["slurm.account"] == "prod" and job["labels"]["slurm.name"] == "train é",
         "what the prolog told stays", job)
    d.ask("PATCH", path, {"labels": {"slurm.qos": "low"}})
    limit(node, 200, "another QoS: capped again")
    d.ask("PATCH", path, {"labels": {"underwatt.kind": "inference"}})
    limit(node, 300, "its kind selects a class, too")
    job = d.ask("GET", path)[1]
    t.equal((job["time_limit_s"], job["labels"]["slurm.qos"]), (3600, "low"), "what is not told again stays")
    many = {f"label{i}": "x" for i in range(16)}
    status, answer = d.ask("PATCH", path, {"labels": many})
    t.ok(status == 409 and "16" in answer["error"], "too many labels are refused", answer)
    t.ok("label0" not in d.ask("GET", path)[1]["labels"], "all of them")


def again(node, d):
    d.stop()
    d.start()
    job = d.ask("GET", "/v1/jobs/slurm:4711")[1]
    t.equal((job["time_limit_s"], job["labels"]["slurm.name"], job["labels"]["underwatt.kind"]), (3600, "train é", "inference"),
            "a restart of the daemon keeps them")
    d.ask("DELETE", "/v1/jobs/slurm:4711")
    t.equal(d.ask("PATCH", "/v1/jobs/slurm:4711", {})[0], 404, "the job is over")


SPEED = 20


def confirmed(node, d):
    """A job without step and process goes on by Slurm's word, and comes back by it."""
    path = "/v1/jobs/slurm:6000"
    _, made = d.ask("PUT", path, {"uid": 1000, "gpu_minors": [0], "cap": "200 W"})
    step = subprocess.Popen(["slurmstepd: [6000.0]", "1000"], executable=uwtest.stepd(node, "sleep"), stdin=subprocess.DEVNULL)
    node.children.append(step)
    with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        t.ok(uwtest.wait_for(lambda: any(p for p, in db.execute("SELECT processes FROM job"))), "its slurmstepd was seen")
    t.equal(d.ask("PATCH", path, {"for": "10 min"})[0], 204, "Slurm says that it runs")
    step.kill()
    step.wait()
    time.sleep(100 / SPEED)
    t.ok(d.ask("GET", path)[1]["running"], "100 s without a step: it goes on")
    d.ask("PATCH", path, {"for": "1 s"})
    t.ok(uwtest.wait_for(lambda: not d.ask("GET", path)[1]["running"]), "the word is over: so is the job")
    limit(node, 300, "and its cap")
    t.equal(d.ask("PATCH", path, {"labels": {"a": "b"}})[0], 404, "labels alone bring nothing back")
    t.equal(d.ask("PATCH", path, {"for": "10 min", "uid": 1001})[0], 404, "another user's job of that number is another one")
    t.ok(not d.ask("GET", path)[1]["running"], "… and does not bring it back")
    t.equal(d.ask("PATCH", path, {"for": "10 min", "uid": 1000})[0], 204, "Slurm says that it runs all the same")
    job = d.ask("GET", path)[1]
    t.ok(job["running"] and job["id"] == made["id"], "it goes on, with its id", job)
    t.equal(d.ask("PATCH", path, {"uid": 1001, "labels": {"slurm.name": "theirs"}})[0], 404, "a job that runs is not another user's, either")
    t.ok("slurm.name" not in d.ask("GET", path)[1]["labels"], "… and has none of its facts")
    limit(node, 200, "and with its cap")


with tempfile.TemporaryDirectory(prefix="uw-") as place:
    policy = os.path.join(place, "policy.yaml")
    with open(policy, "w", encoding="utf-8") as f:
        f.write(POLICY)
    with uwtest.Node(board="v100", count=1) as node:
        d = node.daemon(f"policy: {{file: {policy}}}\n")
        facts(node, d)
        again(node, d)
with uwtest.Node(board="v100", count=1, speed=SPEED) as node:
    confirmed(node, node.daemon())
t.done()
