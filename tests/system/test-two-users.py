#!/usr/bin/python3
"""Two users of a node and its daemon, with real processes under underwatt-start.

A job that nobody registered keeps its id, its user's claim and its cap over kill -9 of the
daemon.  What one user registers keeps no program of another's from running: it starts, is
told who has the board, and gets it as soon as it alone computes there.
"""
import http.client
import json
import os
import pathlib
import signal
import socket
import sqlite3
import subprocess

import uwtest

t = uwtest.Tap()
if os.geteuid() != 0:
    uwtest.skip_all("root is needed to be several users")
PYTHON = "/usr/bin/python3"  # every user may run it
ANNA, BERT, CAP, ORIGINAL = 61001, 61002, 290000, 300000
# One request as another user: status and body.
ASK = """
import http.client, socket, sys
c = http.client.HTTPConnection("x")
c.sock = socket.socket(socket.AF_UNIX); c.sock.settimeout(8); c.sock.connect(sys.argv[1])
c.request("POST", sys.argv[2], sys.stdin.read(), {"Content-Type": "application/json"})
r = c.getresponse()
print(r.status, r.read().decode())
"""


def who(uid):
    return {"user": uid, "group": uid, "extra_groups": []}


class House:
    """underwatt-start with the daemon as nobody, the actuator as root."""

    def __init__(self, node):
        self.node = node
        self.socket = os.path.join(node.state, "underwattd", "underwattd.sock")
        self.ledger = os.path.join(node.state, "underwattd", "ledger.sqlite")
        self.log_file = pathlib.Path(node.tmp, "house.log")
        config = pathlib.Path(node.tmp, "underwattd.yaml")
        config.write_text("node: {interval: 1 s}\n")
        with open(self.log_file, "w", encoding="ascii") as log:
            self.p = node.popen("underwatt-start", "--user", "nobody", "--", "--config", config, stdout=log, stderr=log)

    def log(self):
        return self.log_file.read_text(errors="replace")

    def daemon(self):
        for p in pathlib.Path(f"/proc/{self.p.pid}/task/{self.p.pid}/children").read_text().split():
            try:
                if pathlib.Path(f"/proc/{p}/comm").read_text().strip() == "underwattd":
                    return int(p)
            except (FileNotFoundError, ProcessLookupError):
                pass    # it has ended since
        return 0

    def get(self, path):
        """Root's view; {}: nobody answers."""
        c = http.client.HTTPConnection("x")
        try:
            c.sock = socket.socket(socket.AF_UNIX)
            c.sock.settimeout(8)
            c.sock.connect(self.socket)
            c.request("GET", path)
            return json.loads(c.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return {}
        finally:
            c.close()

    def post(self, uid, path, body):
        p = subprocess.run([PYTHON, "-c", ASK, self.socket, path], input=json.dumps(body), capture_output=True, text=True,
                           timeout=uwtest.PATIENCE, **who(uid))
        status, _, text = p.stdout.partition(" ")
        return int(status or 0), text + p.stderr

    def jobs(self, uid):
        return [j for j in self.get("/v1/jobs").get("jobs", []) if j["uid"] == uid and j["running"]]

    def on(self, uid, board):
        """The user's job that was found on this board alone."""
        return next((j for j in self.jobs(uid) if j["gpus"] == [board] and j["source"] == "found"), None)

    def claims(self, board):
        return [c["id"] for c in self.get("/v1/claims").get("claims", []) if c["gpu"] == board]

    def kill(self):
        """kill -9; the next one answers."""
        old = self.daemon()
        os.kill(old, signal.SIGKILL)
        return uwtest.wait_for(lambda: self.daemon() not in (0, old) and self.get("/v1/gpus").get("gpus"), step=0.1)


def limit(node, i):
    return node.board(i)["limit_mw"]


def capped(node, i):
    """Limit, and how often it was written."""
    b = node.board(i)
    return b["limit_mw"], b["limit_writes"]


def run(node, uid, *args, name):
    """An `underwatt run`, and the file of what it says."""
    said = pathlib.Path(node.tmp, f"{name}.err")
    with open(said, "w", encoding="utf-8") as err:
        return node.popen("underwatt", "run", *args, stdout=subprocess.DEVNULL, stderr=err, **who(uid)), said


def killed(node, h):
    """Nobody has registered anna's training."""
    anna = node.train("--gpus", "0", "--epochs", "100000", **who(ANNA))
    if not t.ok(uwtest.wait_for(lambda: h.on(ANNA, 0)), "anna's training is found", h.log()):
        return
    job = h.on(ANNA, 0)["id"]
    p = node.run("underwatt", "cap", "set", "--detach", "--for", "1h", "--gpus", "0", "290", **who(ANNA))
    t.ok(p.returncode == 0 and uwtest.wait_for(lambda: limit(node, 0) == CAP, 60), "she caps it", p.stdout + p.stderr)
    claims = h.claims(0)
    uwtest.booked(h.ledger, *claims)
    before = capped(node, 0)
    for i in ("kill -9 of the daemon", "once more"):
        t.ok(h.kill(), f"{i}: the next one answers", h.log()[-2000:])
        again = h.on(ANNA, 0)
        t.ok(again and again["id"] == job, f"{i}: the job has its id", f"{job} {h.jobs(ANNA)}")
        t.ok(len(claims) == 1 and h.claims(0) == claims, f"{i}: her claim is there", f"{claims} {h.claims(0)}")
        seen = uwtest.wait_for(lambda: h.on(ANNA, 0) and h.on(ANNA, 0)["processes"] == 1)
        t.ok(seen and h.claims(0) == claims, f"{i}: … after looks at the board, too", h.jobs(ANNA))
        t.ok(capped(node, 0) == before, f"{i}: the cap never left, nothing was written", f"{before} {capped(node, 0)}")
    t.ok(not uwtest.wait_for(lambda: capped(node, 0) != before, 12, 0.2) and h.claims(0) == claims,
         "nor does it when the actuator's grace is over", f"{before} {capped(node, 0)}")
    p = node.run("underwatt", "jobs", **who(ANNA))
    t.ok(f"{job} " in p.stdout, "`underwatt jobs` shows it", p.stdout)
    # --- killed, and the job ends before the next one is there
    os.kill(h.p.pid, signal.SIGSTOP)  # nobody starts one
    os.kill(h.daemon(), signal.SIGKILL)
    anna.kill()
    anna.wait()
    os.kill(h.p.pid, signal.SIGCONT)
    t.ok(uwtest.wait_for(lambda: "event=claim-lost" in h.log()), "a job that has ended meanwhile: its claim is lost, and said",
         h.log()[-2000:])
    t.ok(uwtest.wait_for(lambda: h.get("/v1/node") and not h.claims(0) and limit(node, 0) == ORIGINAL),
         "… the original is back", capped(node, 0))
    def booked():
        with sqlite3.connect(f"file:{h.ledger}?mode=ro", uri=True) as db:
            return (db.execute("SELECT how FROM claim WHERE id = ?", claims).fetchall(),
                    db.execute("SELECT uid FROM event WHERE kind = 'claim-lost'").fetchall(),
                    db.execute("SELECT count(*) FROM job WHERE uid = ?", (ANNA,)).fetchone()[0])

    want = [("job ended",)], [(ANNA,)], 1
    t.equal(uwtest.wait_until(booked, lambda got: got == want), want, "… the ledger has claim and event, and one job of hers")


def named(node, h):
    """bert names an idle board, of a process that only sleeps."""
    sleeper = node.sleeper(**who(BERT))
    status, text = h.post(BERT, "/v1/jobs", {"name": "secret", "gpus": [1], "pid": sleeper.pid})
    t.equal(status, 201, "bert names an idle board")
    p = node.run("underwatt", "run", "--gpus", "1", "--cap", "290", "--", "sh", "-c", "exit 7", **who(ANNA))
    t.equal(p.returncode, 7, "anna's program runs all the same")
    held = [line for line in p.stderr.splitlines() if "GPU 1 belongs to job" in line]
    t.ok(len(held) == 1 and "no cap there until" in held[0] and "secret" not in p.stderr, "… and she is told, in a line",
         p.stderr)
    go = pathlib.Path(node.tmp, "go")
    p, said = run(node, ANNA, "--gpus", "1", "--cap", "290", "--", "sh", "-c",
                  f'until [ -e {go} ]; do sleep 0.1; done; exec {uwtest.program("underwatt-sim")} train --gpus 1 '
                  "--epochs 100000", name="named")
    t.ok(uwtest.wait_for(lambda: "GPU 1 belongs to job" in said.read_text()), "another one of hers is told, too",
         said.read_text())
    go.touch()
    t.ok(uwtest.wait_for(lambda: limit(node, 1) == CAP, 60, 0.2), "she computes there: the board is hers, and capped",
         f"{said.read_text()} {h.log()[-1500:]}")
    t.ok(uwtest.wait_for(lambda: "no longer: GPU 1 belongs" in said.read_text()), "… she is told", said.read_text())
    t.ok("event=board-passed" in h.log() and h.jobs(BERT)[0]["gpus"] == [], "… bert's job has it no longer, which is said",
         h.jobs(BERT))
    status, text = h.post(BERT, "/v1/claims", {"gpu": 1, "cap": "200 W", "for": "60 s"})
    t.equal(status, 403, "… nor may he cap there")
    status, text = h.post(BERT, "/v1/jobs", {"name": "late", "gpus": [1], "pid": sleeper.pid, "cap": "200 W"})
    t.ok(status == 201 and limit(node, 1) == CAP, "nor does another job of his cap it", text)
    status, text = h.post(BERT, "/v1/claims", {"gpu": 1, "job": json.loads(text)["id"], "cap": "200 W", "for": "60 s"})
    t.ok(status in (403, 404) and limit(node, 1) == CAP, "… nor a claim through that", f"{status} {text}")
    p.terminate()
    t.equal(p.wait(uwtest.PATIENCE), 143, "her job ends as it is told to")
    t.ok(uwtest.wait_for(lambda: limit(node, 1) == ORIGINAL or h.claims(1)), "… and her cap", capped(node, 1))
    sleeper.kill()
    sleeper.wait()


def used(node, h):
    """bert computes there."""
    bert = node.train("--gpus", "2", "--epochs", "100000", **who(BERT))
    t.ok(uwtest.wait_for(lambda: h.on(BERT, 2)), "bert trains on board 2", h.jobs(BERT))
    before = capped(node, 2)
    for words in (["run", "--cap", "290"], ["run", "--goal", "edp"], ["run", "--local", "--cap", "290"], ["measure"]):
        p = node.run("underwatt", *words, "--gpus", "2", "--", "sh", "-c", "exit 7", **who(ANNA))
        t.ok(p.returncode == 7 and capped(node, 2) == before, f"{' '.join(words)} where he computes: CMD runs, no cap",
             f"{p.returncode} {p.stderr} {capped(node, 2)}")
        if words[0] == "run":
            t.ok(" cap" in p.stderr and (f"process {bert.pid}" in p.stderr or "belongs to job" in p.stderr), "… and it is said whose it is",
                 p.stderr)
    status, _ = h.post(ANNA, "/v1/claims", {"gpu": 2, "cap": "200 W", "for": "60 s"})
    t.ok(status == 403 and capped(node, 2) == before, "a claim there stays refused", status)
    bert.kill()
    bert.wait()


def full(node, h):
    """A user with all the jobs that she may have: her next program runs, too."""
    sleeper = node.sleeper(**who(BERT))
    made = 0
    while made < 40 and h.post(BERT, "/v1/jobs", {"name": "many", "pid": sleeper.pid})[0] == 201:
        made += 1
    t.ok(8 < made <= 32, f"bert has {made} jobs and may have no more")
    p = node.run("underwatt", "run", "--gpus", "3", "--cap", "290", "--", "sh", "-c", "exit 7", **who(BERT))
    t.ok(p.returncode == 7 and "CMD runs without a cap" in p.stderr, "his next program runs all the same", p.stderr)
    p = node.run("underwatt", "run", "--gpus", "3", "--cap", "290", "--", "sh", "-c", "exit 7", **who(ANNA))
    t.ok(p.returncode == 7 and "without a cap" not in p.stderr and h.get("/v1/node"), "anna's has its place", p.stderr)
    # --- a place is there again while it runs
    p, said = run(node, BERT, "--gpus", "3", "--cap", "290", "--", "sleep", "1000", name="full")
    t.ok(uwtest.wait_for(lambda: "CMD runs without a cap" in said.read_text()), "another one runs", said.read_text())
    sleeper.kill()
    sleeper.wait()
    t.ok(uwtest.wait_for(lambda: "accepts the job now" in said.read_text() and limit(node, 3) == CAP, 60, 0.2),
         "… and is the daemon's as soon as there is a place", f"{said.read_text()} {capped(node, 3)}")
    p.terminate()
    t.equal(p.wait(uwtest.PATIENCE), 143, "… until it ends")


def play(*cases):
    """On a node of their own; faster than the clock ramps take less."""
    with uwtest.Node(machine="set_limits: root\nboards: [{model: v100, count: 4}]", speed=4) as node:
        h = House(node)
        if t.ok(uwtest.wait_for(lambda: h.get("/v1/gpus").get("gpus")), "the daemon answers", h.log()):
            for case in cases:
                uwtest.timed(case.__name__, case, node, h)


uwtest.together(lambda: play(killed), lambda: play(named, used), lambda: play(full))
t.done()
