#!/usr/bin/python3
"""Jobs that Slurm's prolog registers by name: PUT, GET and DELETE of /v1/jobs/slurm:NUMBER; their cap as a claim of the
scheduler's; boards by the numbers of their device files; restarts of the daemon."""
import contextlib
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess
import time

import uwtest

t = uwtest.Tap()
spec = uwtest.spec()
UID = 1000
# The order of the device files is another one than that of the boards.
MACHINE = """
boards:
- {model: v100, minor: 2}
- {model: v100, minor: 3}
- {model: v100, minor: 0}
- {model: a100, minor: 7, mig: true}
"""
POLICY = """policy: 1
defaults: {for: 0 s, release: 0 s}
classes:
- {name: urgent, match: {slurm: {partition: gpu, account: prod, qos: high}}}
- {name: training, match: {label: {underwatt.class: training}}, preset: aggressive, ramp: at once}
rules:
- {name: not-urgent, jobs: {class: other, slurm: {partition: gpu}}, when: job.boards > 0, cap: 200 W, ramp: at once}
- {name: urgent-ones, jobs: {class: urgent}, when: job.boards > 0, cap: 290 W, ramp: at once}
"""


class Slurm:
    """What the plugin asks of the daemon."""

    def __init__(self, daemon):
        self.daemon = daemon

    def ask(self, method, job, body=None):
        path = f"/v1/jobs/slurm:{job}"
        status, got = self.daemon.ask(method, path, body)
        why = spec.judge(method, path, status, "application/json", json.dumps(got)) if got else None
        if why:
            t.ok(False, f"{method} slurm:{job} {status}: the answer is as openapi.yaml says", why)
        return status, got

    def put(self, job, minors, **more):
        return self.ask("PUT", job, {"uid": UID, "gpu_minors": minors, **more})

    def claims(self, **of):
        """Of the scheduler's, one a board."""
        _, got = self.daemon.ask("GET", "/v1/claims")
        return [c for c in got["claims"] if c["source"] == "scheduler" and all(c[k] == v for k, v in of.items())]

    def held(self):
        return sorted((c["gpu"], c["cap_mw"]) for c in self.claims())


def limits(node, *mw):
    want = list(mw)
    return uwtest.wait_until(lambda: [node.board(i)["limit_mw"] for i in range(len(mw))], lambda got: got == want) == want


def registers(node, d, s):
    """A job with a cap, renewed with the same and with another one; boards by their device files."""
    uuid = [node.board(i)["uuid"] for i in range(4)]
    status, got = s.put(4711, [2, 0], cap="250 W", time_limit="3600 s", labels={"slurm.partition": "gpu"})
    t.ok(status == 201 and got["gpus"] == [0, 2] and got["uuids"] == [uuid[0], uuid[2]] and got["refused"] is None,
         "boards 0 and 2 have the device files 2 and 0", f"{status} {got}")
    first = s.claims()
    t.ok(s.held() == [(0, 250000), (2, 250000)] and {c["kind"] for c in first} == {"named"} and
         {c["job"] for c in first} == {got["id"]}, "one named claim on both, the job's", first)
    t.ok(limits(node, 250000, 300000, 250000), "in force at once: no step was told, no process is there")
    job = s.ask("GET", 4711)[1]
    t.ok(job["source"] == "registered" and job["uid"] == UID and job["asked"] == "cap 250 W" and job["refused"] is None and
         job["time_limit_s"] == 3600 and job["labels"]["slurm.partition"] == "gpu", "GET by its name", job)
    status, again = s.put(4711, [2, 0], cap="250 W", labels={"slurm.partition": "gpu", "slurm.qos": "high"})
    t.ok(status == 200 and again["id"] == got["id"] and [c["id"] for c in s.claims()] == [c["id"] for c in first],
         "again: the same job, the same claim", f"{status} {again}")
    job = s.ask("GET", 4711)[1]
    t.ok(job["labels"] == {"slurm.partition": "gpu", "slurm.qos": "high"} and job["time_limit_s"] is None,
         "with the facts of the newest request", job["labels"])
    status, again = s.put(4711, [2, 3], cap="80%")
    second = s.claims()
    t.ok(status == 200 and again["gpus"] == [0, 1] and s.held() == [(0, 240000), (1, 240000)] and
         {c["id"] for c in second}.isdisjoint(c["id"] for c in first), "another cap, another board: another claim", second)
    t.ok(limits(node, 240000, 240000, 300000), "board 2 is free again")
    s.put(4711, [2, 3])
    t.ok(s.claims() == [] and limits(node, 300000, 300000), "renewed without a cap: none")
    t.ok(s.ask("GET", 4711)[1]["asked"] is None, "nothing is asked for")
    s.put(4711, [2, 3], preset="balanced")
    t.ok(s.held() == [(0, 255000), (1, 255000)], "a preset", s.held())


def shown(node):
    p = uwtest.wait_until(lambda: node.run("underwatt", "jobs"), lambda p: " 255 W" in p.stdout)
    t.ok("slurm:4711" in p.stdout and "holds its cap" in p.stdout and "asked: preset balanced" in p.stdout and
         "refused" not in p.stdout and "255 W" in p.stdout, "`jobs`: name, cap, what was asked for", p.stdout)
    p = node.run("underwatt", "explain", "1")
    t.ok("slurm:4711" in p.stdout and "preset balanced" in p.stdout and "named" in p.stdout,
         "`explain`: the claim with the job's name", p.stdout)
    t.ok("holds its cap" in p.stdout and "measured only" not in p.stdout, "… and that the job holds its cap", p.stdout)


def refused(node, d, s):
    """What cannot be had is said; the job is there all the same."""
    for more, words in (
            ({"cap": "999 W"}, "cap: 999 W is above 300 W, the highest limit of GPU 1"),
            ({"cap": "5 W"}, "cap: 5 W is below 150 W, the lowest limit of GPU 1"),
            ({"cap": "5%"}, "cap: 15 W is below 150 W, the lowest limit of GPU 1"),
            ({"cap": "300"}, "cap: "), ({"cap": "many"}, "cap: "), ({"cap": "0 W"}, "cap: "),
            ({"preset": "balancd"}, "did you mean 'balanced'?"),
            ({"goal": "speed"}, "goal: "),
            ({"cap": "250 W", "class": "no-such"}, "class 'no-such' is none of: default")):
        status, got = s.put(4712, [3], **more)
        t.ok(status in (200, 201) and words in (got["refused"] or "") and "\n" not in got["refused"],
             f"{more}: registered, and why not", f"{status} {got}")
        held = [(1, 250000)] if "class" in more else []
        t.ok([h for h in s.held() if h[0] == 1 and h[1] != 255000] == held, "not capped by it", s.held())
    p = node.run("underwatt", "jobs")
    own = p.stdout.partition("slurm:4712")[2]
    t.ok("holds its cap" in own and "class 'no-such' is none of: default" in " ".join(own.split()), "`jobs`: a cap in force, no class", p.stdout)
    status, got = s.put(4712, [3], cap="999 W")
    p = node.run("underwatt", "jobs")
    t.ok("refused: cap: 999 W is above 300 W" in " ".join(p.stdout.split()), "`jobs` says it", p.stdout)
    t.ok(s.ask("GET", 4712)[1]["refused"] == got["refused"], "so does GET")
    status, got = s.put(4713, [], cap="250 W")
    t.ok(status == 201 and got["refused"] == "cap: the job has no GPU" and got["gpus"] == [], "a cap without a GPU", got)
    status, got = s.put(4713, [])
    t.ok(status == 200 and got["refused"] is None, "no GPU and no cap", got)
    status, got = s.put(4714, [9], cap="250 W")
    t.ok(status == 422 and "none of the 4 GPUs of this node has device file 9" in got["error"], "no such board", got)
    status, got = s.put(4714, [1])
    t.ok(status == 422, "1 is a board's number, and no device file", got)
    t.ok(s.ask("GET", 4714)[0] == 404, "it is not registered")
    for body in ({"uid": UID}, {"uid": UID, "gpu_minors": [3, 3]}, {"uid": UID, "gpu_minors": [3], "gpus": [0]}):
        t.ok(s.ask("PUT", 4714, body)[0] == 400, f"{body}: not of the form")


def full(node, d, s):
    """A board that takes no more claims: a job's new cap has the place of its old one; where it had none the cap of before is held on, on all
    boards, and another one is on none."""
    def mine():
        return [c for c in s.claims() if c["who"] in ("slurm:4719", "slurm:4720")]

    def held():
        return sorted((c["gpu"], c["cap_mw"]) for c in mine())

    s.put(4719, [2, 3], cap="250 W")
    s.put(4723, [2], cap="250 W")
    others = []
    while (got := d.ask("POST", "/v1/claims", {"gpu": 1, "cap": "290 W", "for": "1 h"}))[0] == 201:
        others.append(got[1]["id"])
    t.ok(others and "there are" in got[1]["error"], "GPU 1 is full", got)
    first = [c["id"] for c in mine()]
    status, got = s.put(4719, [2, 3], cap="220 W")
    t.ok(status == 200 and got["refused"] is None and held() == [(0, 220000), (1, 220000)] and [c["id"] for c in mine()] == first,
         "another cap has the place of its own one", f"{got} {mine()}")
    t.ok(limits(node, 220000, 220000), "and is in force", [node.board(i)["limit_mw"] for i in range(2)])
    status, got = s.put(4723, [2, 3], cap="230 W")
    t.ok(status == 200 and got["refused"] == "cap: GPU 1 has no place for another claim; the earlier cap stays in force",
         "a cap on a board on which it has none is refused", got)
    t.equal([(c["gpu"], c["cap_mw"]) for c in s.claims(job=got["id"])], [(0, 250000)], "the claim of before is held")
    job = s.ask("GET", 4723)[1]
    p = node.run("underwatt", "jobs")
    t.ok(job["asked"] == "cap 230 W" and job["cap_held"] and "holds its cap" in p.stdout and
         "stays in force" in " ".join(p.stdout.split()), "`jobs` and GET say so", f"{job} {p.stdout}")
    _, got = s.put(4720, [0, 3], cap="240 W")
    t.ok(got["refused"] == "cap: GPU 1 has no place for another claim" and not s.claims(job=got["id"]) and
         not s.ask("GET", 4720)[1]["cap_held"], "a job that comes is capped on none of its boards", s.claims())
    s.put(4719, [0, 3], cap="210 W")
    t.equal(held(), [(1, 210000), (2, 210000)], "a board that is the job's no more is let go, another one is had")
    for claim in others:
        d.ask("DELETE", f"/v1/claims/{claim}")
    want = [(1, 210000), (1, 240000), (2, 210000), (2, 240000)]
    t.equal(uwtest.wait_until(held, lambda got: got == want), want, "once there is room they have what they ask for")
    t.ok(all(s.ask("GET", j)[1]["refused"] is None for j in (4719, 4720, 4723)), "and nothing is refused")
    for job in (4719, 4720, 4723):
        s.ask("DELETE", job)


def lower(node, s):
    """Two jobs on a board: the one whose cap does not count is told whose does."""
    for job, cap in ((4721, "200 W"), (4722, "290 W")):
        s.put(job, [3], cap=cap)
    job = s.ask("GET", 4722)[1]
    text = " ".join(node.run("underwatt", "jobs").stdout.split())
    t.ok(job["cap_held"] and job["lower"] == {"cap_mw": 200000, "who": "slurm:4721"} and "asked: cap 290 W; 200 W by slurm:4721" in text,
         "what holds a board lower is told", f"{job} {text}")
    t.ok(s.ask("GET", 4721)[1]["lower"] is None, "the one that holds it has none")
    s.ask("DELETE", 4721)
    t.equal(s.ask("GET", 4722)[1]["lower"], {"cap_mw": 255000, "who": "slurm:4711"}, "when it has ended, the next one")
    s.ask("DELETE", 4722)


def restarts(node, d, s):
    """kill -9: the job, its claim and its time are there again."""
    s.put(4715, [7], cap="350 W", time_limit="1 h", labels={"slurm.account": "prod"})
    t.ok(limits(node, 255000, 255000, 300000, 350000), "both jobs' caps", node.board(3)["limit_mw"])
    before, claims = s.ask("GET", 4715)[1], s.claims()
    why = "/etc/slurm/gres.conf: line 1: " + 150 * "x"
    s.put(4724, [], unknown_gpus=why)
    t.ok(uwtest.wait_for(lambda: f"hold GPUs: {why}" in column("SELECT goal FROM job WHERE name = 'slurm:4724'", d)), "why a job's GPUs are not known is booked")
    d.booked(*(c["id"] for c in claims))
    d.kill(actuator=False)
    d.start()
    after = s.ask("GET", 4715)[1]
    t.ok(all(after[k] == before[k] for k in ("id", "began_utc", "gpus", "labels", "asked", "time_limit_s", "uid")),
         "the same job", f"{before}\n{after}")
    t.ok(all((j["half_j"] is None) == (j["booked_s"] == 0) for j in d.ask("GET", "/v1/jobs")[1]["jobs"]), "no energy is 0.000 J where none is booked")
    t.equal(s.ask("GET", 4724)[1]["refused"], f"GPUs: {why}", "why a job's GPUs are not known is known still")
    _, got = s.put(4724, [0])
    t.ok(got["refused"] is None and got["gpus"] == [2], "until they are", got)
    s.ask("DELETE", 4724)
    key = [(c["id"], c["gpu"], c["cap_mw"], c["made_utc"][:19]) for c in claims]
    now = [(c["id"], c["gpu"], c["cap_mw"], c["made_utc"][:19]) for c in s.claims()]
    t.ok(sorted(k[:3] for k in key) == sorted(k[:3] for k in now), "the same claims", f"{key}\n{now}")
    t.ok(limits(node, 255000, 255000, 300000, 350000), "and the same caps")
    t.ok("cap: 999 W" in s.ask("GET", 4712)[1]["refused"], "what was refused is refused still")
    t.ok(s.put(4715, [7], cap="350 W")[0] == 200 and sorted(c["id"] for c in s.claims()) == sorted(k[0] for k in key),
         "the prolog once more: the same claim")


def early_end(node, d, s):
    """The epilog comes while the daemon opens its boards."""
    def tells():
        try:
            return s.ask("DELETE", 4718)[0]
        except OSError:  # no daemon listens yet
            return None

    status, got = s.put(4718, [0], cap="220 W")
    t.ok(limits(node, 255000, 255000, 220000), "a cap", got)
    d.booked(*(c["id"] for c in s.claims()))
    d.kill(actuator=False)
    d.start(wait=False)
    t.ok(uwtest.wait_for(tells, step=0.002) == 204, "the first answer to DELETE after a restart")
    t.ok(d.told("READY=1") and s.ask("GET", 4718)[1].get("running") is not True, "the job is over", s.ask("GET", 4718))
    t.ok(limits(node, 255000, 255000, 300000), "and its cap")


def tells(d, method, job, body=None):
    """A hook that has sent its request: its connection."""
    text = json.dumps(body) if body else ""
    hook = socket.socket(socket.AF_UNIX)
    hook.connect(d.socket)
    hook.sendall(f"{method} /v1/jobs/slurm:{job} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
    return hook


def impatient(node, d, s):
    """The daemon stands still while hooks come and go: what they have told counts, in their order."""
    one = {"uid": UID, "gpu_minors": [0], "cap": "225 W"}
    s.put(4719, [0], cap="215 W")
    t.ok(limits(node, 255000, 255000, 215000), "a cap")
    os.kill(d.pid, signal.SIGSTOP)
    try:
        tells(d, "PUT", 4720, one).close()
        tells(d, "DELETE", 4719).close()
        tells(d, "PUT", 4721, one).close()
        tells(d, "DELETE", 4721).close()
        tells(d, "PUT", 4722, one).close()
        waits = tells(d, "DELETE", 4722)
    finally:
        os.kill(d.pid, signal.SIGCONT)
    with waits:
        t.ok(waits.recv(100).startswith(b"HTTP/1.1 204"), "who waits is answered")
    t.ok(limits(node, 255000, 255000, 225000), "a cap whose hook had left is in force, another is not any more")
    got = [runs(s, job) for job in (4719, 4720, 4721, 4722)]
    t.ok(got == [False, True, False, False], "no begin comes after its end", got)
    s.ask("DELETE", 4720)


def ends(node, d, s):
    for job in (4711, 4715):
        t.ok(s.ask("DELETE", job)[0] == 204, f"slurm:{job} is over")
        t.ok(s.ask("DELETE", job)[0] == 204, "told twice")
    t.ok(s.ask("DELETE", 99)[0] == 204, "an end without a begin")
    t.ok(s.claims() == [] and limits(node, 300000, 300000, 300000, 400000), "every limit is the original again", s.claims())
    t.ok(s.ask("GET", 4711)[1]["running"] is False, "it is shown as over for a moment")
    status, got = s.put(4711, [2])
    t.ok(status == 201, "requeued: another job of that number", got)
    status, got = s.put(4716, [2], cap="200 W")
    t.ok(status == 201 and got["refused"] is None, "two jobs share a board (MPS, shards)", got)
    s.put(4711, [2], cap="220 W")
    t.ok(s.held() == [(0, 200000), (0, 220000)] and limits(node, 200000), "the lower of their caps is in force", s.held())
    status, got = s.ask("PUT", 4717, {"uid": UID + 1, "gpu_minors": [2]})
    t.ok(status == 201, "of another user, too: Slurm gives its boards", got)
    s.ask("DELETE", 4712)
    _, made = d.ask("POST", "/v1/jobs", {"name": "other:1", "source": "registered", "uid": UID + 1, "gpus": [1]})
    status, got = s.put(4718, [3])
    t.ok(status == 409 and f"job {made['id']}" in got["error"], "a board that another registrar gave away: refused", got)
    d.ask("DELETE", f"/v1/jobs/{made['id']}")
    claim = s.claims(cap_mw=200000)[0]
    t.ok(d.ask("DELETE", f"/v1/claims/{claim['id']}")[0] == 204, "an administrator withdraws a claim")
    job = s.ask("GET", 4716)[1]
    t.ok(job["refused"].startswith("cap: withdrawn by ") and limits(node, 220000), "it is not made again", job["refused"])
    for job in (4711, 4713, 4716, 4717):
        s.ask("DELETE", job)


def slices(node, d, s):
    """A board in MIG mode: capped for a job that has it alone, and for nobody while two share it."""
    _, one = s.put(200, [7], cap="300 W")
    t.ok(one["refused"] is None and limits(node, *[300000] * 4), "alone on the board", one)
    _, two = s.put(201, [7], cap="320 W")
    t.ok(two["refused"] == f"cap: GPU 3 is in MIG mode and job {one['id']} has a part of it: a cap applies to the whole board",
         "a job that comes to it is not capped", two)
    t.ok(s.ask("GET", 200)[1]["refused"].startswith("cap: GPU 3 is in MIG mode") and not s.claims(),
         "nor is the one that was there any longer", s.claims())
    t.ok(limits(node, 300000, 300000, 300000, 400000), "the board has its original limit")
    s.ask("DELETE", 200)
    t.ok(s.ask("GET", 201)[1]["refused"] is None and s.held() == [(3, 320000)], "alone again: capped", s.held())
    s.ask("DELETE", 201)

    def status(job, barred):
        return uwtest.wait_until(lambda: s.ask("GET", job)[1]["search"], lambda got: got and (got["status"] == "barred") == barred)

    for job in (202, 203):
        s.put(job, [7], goal="edp")
        got = status(job, job == 203)
        t.ok((got["status"] == "barred") == (job == 203), f"slurm:{job}, a goal: {got['state']}", got)
    got = status(202, True)
    t.ok(got["status"] == "barred" and got["state"] == "not capped: GPU 3 is in MIG mode, another job has a part of it",
         "a goal caps no other job's part, either", got)
    s.ask("DELETE", 202)
    got = status(203, False)
    t.ok(got["status"] != "barred", "alone again: it is searched for", got)
    s.ask("DELETE", 203)


def classes(node, d, s):
    """Partition, account and QoS of a job choose its class; a cap that it asked for goes before."""
    labels = {"slurm.partition": "gpu", "slurm.account": "prod", "slurm.qos": "high"}
    s.put(100, [2], labels=labels)
    s.put(101, [3], labels={**labels, "slurm.qos": "normal"})
    t.ok(limits(node, 290000, 200000), "the rules of their classes act", [node.board(i) for i in range(2)])
    rules = {r["name"]: [b["gpu"] for b in r["boards"] if b["state"] == "acts"] for r in d.ask("GET", "/v1/policy")[1]["rules"]}
    t.ok(rules == {"urgent-ones": [0], "not-urgent": [1]}, "by partition, account and QoS", rules)
    s.put(101, [3], labels=labels)
    t.ok(limits(node, 290000, 290000), "another QoS, told later: another class", [node.board(i) for i in range(2)])
    status, got = s.put(101, [3], **{"class": "training"})
    t.ok(got["refused"] is None and limits(node, 290000, 210000), "a class of the policy that lets itself be chosen",
         f"{got} {node.board(1)['limit_mw']}")
    for job in (100, 101):
        s.ask("DELETE", job)


def goals(node, d, s):
    """The same request changes nothing about a search, before and after kill -9, and what was asked for is not forgotten."""
    def is_as(asked, goal, name, refused=""):
        job = uwtest.wait_until(lambda: s.ask("GET", 6000)[1], lambda j: (j["search"] or {}).get("goal") == goal)
        t.ok(job["asked"] == asked and (job["search"] or {}).get("goal") == goal and refused in (job["refused"] or "") and
             bool(refused) == bool(job["refused"]), name, job)
        return job["id"]

    def user_gives(goal):
        status, got = d.ask("PUT", f"/v1/jobs/{s.ask('GET', 6000)[1]['id']}/goal", {"goal": goal})
        t.ok(status == 204, f"its user gives it the goal {goal}", got)

    def column():
        with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
            db.execute("PRAGMA busy_timeout = 5000")
            return db.execute("SELECT goal FROM job WHERE name = 'slurm:6000'").fetchone()

    def stays(asked, goal, name, body, kept, refused=""):
        for when in ("", ", after kill -9"):
            if when:
                t.equal(uwtest.wait_until(column, lambda got: got == (kept,)), (kept,), f"{name}: as the ledger has it")
                d.kill(actuator=False)
                d.start()
                is_as(asked, goal, f"{name}{when}: it is so", refused)
            t.ok(s.put(6000, [2], **body)[0] == 200, f"{name}{when}: the same request")
            is_as(asked, goal, f"{name}{when}: changes nothing", refused)

    body = {"goal": "slowdown:1.050"}
    status, got = s.put(6000, [2], **body)
    t.ok(status == 201 and got["refused"] is None, "a goal", got)
    first = is_as("goal slowdown:1.050", "slowdown:1.05", "it is searched for")
    stays("goal slowdown:1.050", "slowdown:1.05", "a goal", body, "slowdown:1.05 hold goal slowdown:1.050")
    user_gives("energy")
    stays("goal slowdown:1.050", "energy", "a goal of its user's", body, "energy hold goal slowdown:1.050")
    user_gives(None)
    stays("goal slowdown:1.050", None, "a search that its user has ended", body, "off hold goal slowdown:1.050")
    p = node.run("underwatt", "jobs")
    t.ok("measured only" in p.stdout and "asked: goal slowdown:1.050" in p.stdout, "`jobs` says so", p.stdout)
    s.put(6000, [2], goal="edp", labels={"slurm.nodes": "2"})
    is_as("goal edp", "edp", "a goal of a job on two nodes")
    p = node.run("underwatt", "jobs")
    t.ok("asked: goal edp; each of its 2 nodes searches for its own GPUs" in " ".join(p.stdout.split()), "`jobs` says so", p.stdout)
    s.put(6000, [2], goal="edp")
    is_as("goal edp", "edp", "another goal counts")
    stays("goal edp", "edp", "another goal", {"goal": "edp"}, "edp")
    s.put(6000, [2], goal="speed")
    stays("goal speed", None, "a goal that nobody knows", {"goal": "speed"}, "hold goal speed", refused="goal: ")
    s.put(6000, [2])
    user_gives("edp")
    t.ok(first == is_as(None, "edp", "a search that its user alone asks for"), "all the same job")
    stays(None, "edp", "a search that its user alone asks for", {}, "edp hold -")
    s.ask("DELETE", 6000)


SPEED = 20


def stepd(node, job, **kw):
    """What /proc shows of a job's slurmstepd."""
    child = subprocess.Popen([f"slurmstepd: [{job}.0]", "1000"], executable=uwtest.stepd(node, "sleep"), stdin=subprocess.DEVNULL, **kw)
    node.children.append(child)
    return child


def foreign(node, job):
    """A slurmstepd of that number whose step is another user's."""
    child = subprocess.Popen(["bash", "-c", f"""setpriv --reuid 65534 --clear-groups sh -c 'echo up; exec sleep 1000' &
                              read go; exec -a 'slurmstepd: [{job}.0]' {uwtest.stepd(node, "sleep")} 1000"""], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True, start_new_session=True)
    node.children.append(child)
    child.stdout.readline()
    child.stdin.write("go\n")
    child.stdin.flush()
    t.ok(uwtest.wait_for(lambda: "slurmstepd" in pathlib.Path(f"/proc/{child.pid}/cmdline").read_text()), "a step of another user's")
    return child


def ended(child):
    """The time before it was killed."""
    now = time.monotonic()
    child.kill()
    child.wait()
    return now


def column(query, d):
    """Of the ledger."""
    with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        return [row[0] for row in db.execute(query)]


def noted(d, job):
    """Whether the ledger has a process of the job: a look has shown it."""
    def rows():
        with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
            db.execute("PRAGMA busy_timeout = 5000")
            return [row[0] for row in db.execute("SELECT processes FROM job WHERE name = ?", (f"slurm:{job}",))]
    return uwtest.wait_until(rows, lambda got: bool(got and got[-1]))


def runs(s, job):
    return s.ask("GET", job)[1].get("running")


def over(s, d, job, reason, since=None):
    """The job ends by itself, with that reason, and not before its time."""
    t.ok(uwtest.wait_for(lambda: runs(s, job) is False), f"slurm:{job} is over")
    lasted = SPEED * (time.monotonic() - since) if since else 0
    t.ok(since is None or lasted >= 59, "not before 60 s of the node's time", lasted)
    line = [x for x in d.log().split("\n") if "event=job-over" in x and f"slurm:{job}" in x]
    t.ok(line and reason in line[-1], f"job-over: {reason}", line)


def told(d, s, maps):
    """To others: dcgm-exporter's files, metrics."""
    s.put(300, [3, 0], cap="200 W")
    t.ok(uwtest.wait_for(lambda: all((maps / str(i)).exists() and (maps / str(i)).read_text() == "300\n" for i in (1, 2))),
         "the files of boards 1 and 2 have Slurm's number")
    metrics = d.ask("GET", "/metrics")[1]
    t.ok('name="slurm:300"' in metrics and 'source="registered"' in metrics, "metrics by job", metrics[-800:])
    s.ask("DELETE", 300)


def lifetimes(node, d, s):
    """No epilog comes: without a step and a process a job is over; it may come back."""
    first = {job: s.put(job, [0], cap="200 W")[1]["id"] for job in (5000, 5001, 5002)}
    s.put(5003, [2], cap="210 W", time_limit="30 s")
    s.put(5004, [3], cap="220 W")
    s.put(5007, [7])
    t.ok(s.ask("PATCH", 5007, {"time_limit": "30 s"})[0] == 204, "slurm:5007 has another limit: 30 s")
    # Its first limit is over before the PATCH where others keep this process from running.
    t.ok(uwtest.wait_for(lambda: s.put(5006, [7], time_limit="30 s") and s.ask("PATCH", 5006, {"time_limit": "1 h"})[0] == 204),
         "slurm:5006 has another limit: 1 h")
    steps = {job: stepd(node, job) for job in (5000, 5001)}
    if os.geteuid() == 0:
        s.put(5005, [3], cap="230 W", time_limit="30 s")
        stepd(node, 5005, user=65534)
    for job in steps:
        t.ok(noted(d, job), f"the slurmstepd of slurm:{job} was seen")
    claims = s.claims(job=first[5001])
    d.booked(*(c["id"] for c in claims))
    since = ended(steps[5000])
    over(s, d, 5000, "no slurmstepd and no process for 60 s", since)
    t.ok(not s.claims(job=first[5000]) and s.claims(job=first[5001]), "its claim is withdrawn, no other", s.claims())
    t.ok(runs(s, 5001) and runs(s, 5004), "with a step, or before the first one, it goes on")
    over(s, d, 5003, "no slurmstepd started, and the time limit is over")
    over(s, d, 5007, "no slurmstepd started, and the time limit is over")
    t.ok(runs(s, 5006), "the limit that was told last counts")
    s.ask("DELETE", 5006)
    if os.geteuid() == 0:
        over(s, d, 5005, "no slurmstepd started")
    steps[5000] = stepd(node, 5000)
    t.ok(uwtest.wait_for(lambda: runs(s, 5000)), "a step shows up again: the job goes on")
    t.ok(s.ask("GET", 5000)[1]["id"] == first[5000] and [c["cap_mw"] for c in s.claims(job=first[5000])] == [200000],
         "the same job, its cap claimed again", s.claims())
    t.ok("event=job-back" in d.log(), "and it is logged")
    status, got = s.put(5003, [2], cap="210 W", time_limit="1 h")
    t.ok(status == 200 and s.claims(job=got["id"]), "a prolog takes a job back, too", got)
    t.ok(noted(d, 5000), "booked")
    d.kill(actuator=False)
    since = ended(steps[5000])
    d.start()
    known, running = runs(s, 5001), runs(s, 5000)
    late = SPEED * (time.monotonic() - since) >= 59    # a busy machine may start the daemon so late that the job is over
    t.ok(known and (running or (late and running is False)), "taken over", (known, running, late))
    over(s, d, 5000, "no slurmstepd and no process for 60 s")
    t.ok(runs(s, 5001) and runs(s, 5004), "the others go on")
    t.ok(s.ask("DELETE", 5000)[0] == 204, "its epilog comes late")
    status, got = s.put(5000, [2])
    t.ok(status == 201 and got["id"] != first[5000], "a job of that number is another one then", got)


def again(node, d, s, steps):
    """What is known of shared boards outlives a restart: 5501 has had no step, and 5512 has one on its board alone now."""
    t.ok(all(uwtest.wait_for(lambda n=job: (s.ask("GET", n)[1]["labels"] or {}).get("underwatt.shared") == "yes") for job in (5501, 5511, 5512)),
         "jobs on a shared board are labelled", s.ask("GET", 5501))
    t.ok(all("underwatt.shared" not in s.ask("GET", job)[1]["labels"] for job in (5504, 5510)), "those on board 2 are not")
    t.ok(uwtest.wait_for(lambda: "slurm:5501" in column("SELECT name FROM job JOIN job_label l ON l.job = job.id WHERE l.key = 'underwatt.shared'", d)), "booked")
    d.kill(actuator=False)
    ended(steps[5511])
    d.start()
    s.ask("DELETE", 5510)
    ended(steps[5510])
    s.put(5514, [2])
    stepd(node, 5514)
    over(s, d, 5504, "no slurmstepd started, and a later job has its GPU")
    t.ok(runs(s, 5501), "not the one on a shared board, after a restart")


def followed(node, d, s):
    """Nobody tells of an end, and no step was seen: a later job on the board ends it, where jobs do not share boards."""
    for job, minors in ((5500, [2]), (5501, [3]), (5502, [7]), (5503, [0])):    # 7: slices
        s.put(job, minors, cap="290 W")
    first = s.ask("GET", 5500)[1]["id"]
    steps, since = {}, time.monotonic()
    for job, minors in ((5510, [2]), (5511, [3]), (5512, [3]), (5513, [7])):    # two at once on board 3
        steps[job] = stepd(node, job)
        s.put(job, minors)
    s.put(5504, [2])    # the board of one that has a step
    for job in (5510, 5511, 5512, 5513):
        t.ok(noted(d, job), f"the slurmstepd of slurm:{job} was seen")
    over(s, d, 5500, "no slurmstepd started, and a later job has its GPU")
    t.ok(SPEED * (time.monotonic() - since) >= 59, "not before 60 s")
    t.ok(not s.claims(job=first), "its claim is withdrawn", s.claims())
    got = {job: runs(s, job) for job in (5501, 5502, 5503, 5504, 5510, 5511, 5512, 5513)}    # 5503: nobody's step is on its board
    t.ok(all(got.values()), "not those whose boards are shared, free or an earlier job's", got)
    again(node, d, s, steps)
    stepd(node, 5500)
    t.ok(uwtest.wait_for(lambda: runs(s, 5500)) and s.ask("GET", 5500)[1]["id"] == first, "its first step comes: it goes on")
    for job in (5500, 5514, *got):
        s.ask("DELETE", job)


def replaced(node, d, s):
    """A job that had a step has ended unheard: the next one on its board ends it."""
    first = s.put(5520, [2], cap="200 W")[1]["id"]
    step = stepd(node, 5520)
    t.ok(noted(d, 5520), "the slurmstepd of slurm:5520 was seen")
    d.kill(actuator=False)
    ended(step)
    d.start()
    s.put(5521, [2], cap="290 W")
    t.ok("asked: cap 290 W; 200 W by slurm:5520" in " ".join(node.run("underwatt", "jobs").stdout.split()), "until then `jobs` says what holds its board lower")
    stepd(node, 5521)
    over(s, d, 5520, "no slurmstepd and no process, and a later job has its GPU")
    t.ok(not s.claims(job=first) and limits(node, 290000), "its cap is gone", s.claims())
    for job in (5520, 5521):
        s.ask("DELETE", job)


def kept(d):
    """The jobs that may come back, in the ledger."""
    with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        return {int(name[6:]) for name, in db.execute("SELECT name FROM job WHERE lost")}


def lost_jobs(node, d, s):
    """A job that was taken to be over may come back until its end is told, after a kill -9 of the daemon, too."""
    first = {job: s.put(job, [7], cap="300 W", time_limit="1 h", labels={"slurm.qos": "high"})[1]["id"] for job in (6000, 6001)}
    first[6002] = s.put(6002, [2], cap="230 W")[1]["id"]
    steps = [stepd(node, job) for job in first]
    for job in first:
        t.ok(noted(d, job), f"the slurmstepd of slurm:{job} was seen")
    for step in steps:
        ended(step)
    for job in first:
        over(s, d, job, "no slurmstepd and no process for 60 s")
    t.ok(s.ask("DELETE", 6001)[0] == 204, "one's end is told")
    got = uwtest.wait_until(lambda: kept(d), lambda k: {6000, 6002} <= k and 6001 not in k)
    t.ok({6000, 6002} <= got and 6001 not in got, "the ledger has the others", got)
    d.kill(actuator=False)
    d.start()
    t.ok(runs(s, 6000) is False, "shown as over, as before the restart")
    _, made = d.ask("POST", "/v1/jobs", {"name": "other:1", "source": "registered", "uid": UID + 1, "gpus": [3]})
    other = foreign(node, 6002) if os.geteuid() == 0 else None
    for job in (6000, 6001):
        stepd(node, job)
    t.ok(uwtest.wait_for(lambda: "GPU 3 belongs to job" in d.log()) and not runs(s, 6000), "no job goes on while another has its board")
    if other:
        t.ok(not runs(s, 6002), "nor where the step of its number is another user's", s.ask("GET", 6002))
        os.killpg(other.pid, signal.SIGKILL)
        other.wait()
    stepd(node, 6002)
    t.ok(uwtest.wait_for(lambda: runs(s, 6002)), "a step shows up: the job goes on")
    t.ok(s.ask("GET", 6002)[1]["id"] == first[6002] and [c["cap_mw"] for c in s.claims(job=first[6002])] == [230000],
         "the same job, capped again", s.claims())
    d.ask("DELETE", f"/v1/jobs/{made['id']}")
    t.ok(uwtest.wait_for(lambda: runs(s, 6000)), "it does when the board is free again")
    job = s.ask("GET", 6000)[1]
    t.ok(job["id"] == first[6000] and job["asked"] == "cap 300 W" and job["time_limit_s"] == 3600 and job["uid"] == UID and
         job["labels"]["slurm.qos"] == "high" and [c["cap_mw"] for c in s.claims(job=job["id"])] == [300000],
         "with all that it had", job)
    t.ok(runs(s, 6001) is not True, "a job whose end was told does not come back")
    t.ok(uwtest.wait_until(lambda: kept(d), lambda k: not k & set(first)) & set(first) == set(), "those that run are not lost")
    for job in first:
        s.ask("DELETE", job)


with uwtest.Node(machine=MACHINE) as node:
    d = node.daemon()
    s = Slurm(d)
    registers(node, d, s)
    shown(node)
    refused(node, d, s)
    full(node, d, s)
    lower(node, s)
    restarts(node, d, s)
    early_end(node, d, s)
    impatient(node, d, s)
    ends(node, d, s)
    goals(node, d, s)
    slices(node, d, s)
    replaced(node, d, s)
    policy = pathlib.Path(node.tmp, "policy.yaml")
    policy.write_text(POLICY)
    t.ok(d.reload(f"policy: {{file: {policy}}}\n") and "policy-refused" not in d.log(), "a policy", d.log()[-500:])
    classes(node, d, s)
with uwtest.Node(machine=MACHINE, speed=SPEED) as node:
    maps = pathlib.Path(node.tmp, "maps")
    maps.mkdir()
    d = node.daemon(f"metrics: {{hpc_job_mapping_dir: {maps}}}\n")
    told(d, Slurm(d), maps)
    lifetimes(node, d, Slurm(d))
    lost_jobs(node, d, Slurm(d))
    followed(node, d, Slurm(d))
t.done()
