#!/usr/bin/python3
"""underwatt run as a client of underwattd, with real processes, faster than the wall's
clock: several searches at once, clients and daemons that are killed, values that are
refused before CMD starts, and never two writers.  Each case has boards of its own.
`make check` plays those that need real processes; tests/simulation has the searches and what
becomes of them in virtual time, and `make soak` (UNDERWATT_SOAK=1) plays all here, too.
"""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import sys
import tempfile
import time

import uwtest

SPEED = 20 if uwtest.SOAK else 8
SIM = uwtest.program("underwatt-sim")
ORIGINAL = 300000
STEPS = 1800 if uwtest.SOAK else 1300    # of a job that is searched, loses its daemon and goes on


def train(boards, steps, workload="resnet50"):
    return [SIM, "train", "--workload", workload, "--gpus", boards, "--steps", str(steps),
            "--phases", "load=1s,train"]


class Run:
    """An `underwatt run`, and what it said so far."""

    def __init__(self, node, *args, **kw):
        self.files = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=node.tmp))
        with open(self.files / "err", "w") as err, open(self.files / "out", "w") as out:
            self.p = node.popen("underwatt", "run", "--json", self.files / "json", *args,
                                stdout=out, stderr=err, **kw)

    def said(self):
        return (self.files / "err").read_text()

    def report(self):
        return json.loads((self.files / "json").read_text())


def jobs(node, *args):
    p = node.run("underwatt", "jobs", "--json", "-", *args)
    return json.loads(p.stdout)["jobs"] if p.returncode == 0 else []


def job_of(node, name):
    return next((j for j in jobs(node) if j["name"] == name and j["running"]), None)


def holds(node, name):
    """The job once it holds a cap, and its first window there has told what that saves."""
    search = (job_of(node, name) or {}).get("search") or {}
    return job_of(node, name) if search.get("saved") and search["state"].startswith("holds") else None


def limit(node, i):
    return node.board(i)["limit_mw"]


def wait(what, seconds=60):
    return uwtest.wait_for(what, seconds, 0.2)


def refused(t, node, d):
    jobs = d.log().count("event=job-begin")
    for args, code, word in ((["--cap", "20 W", "--gpus", "0"], 2, "outside 150"),
                             (["--cap", "200 W", "--gpus", "99"], 2, "99"),
                             (["--goal", "edp", "--class", "nobody", "--gpus", "0"], 2, "nobody"),
                             (["--goal", "edp", "--label", "=x"], 2, "KEY=VALUE"),
                             (["--goal", "edp", "--label", "k=a\u202eb"], 2, "not printable"),
                             (["--goal", "edp", "--name", "roo\u200bt"], 2, "not printable"),
                             (["--goal", "edp", "--class", "a\u00ad"], 2, "not printable")):
        mark = os.path.join(node.tmp, "started")
        p = node.run("underwatt", "run", *args, "--", "touch", mark)
        t.ok("--local" not in p.stderr, "nobody is told to go round a refusal", p.stderr)
        t.ok(p.returncode == code and word in p.stderr and not os.path.exists(mark),
             f"{' '.join(args)}: {code}, and CMD was not started", f"{p.returncode} {p.stderr}")
    t.equal(d.log().count("event=job-begin"), jobs, "what is refused is no job")
    for opts in ([], ["--local"]):
        p = node.run("underwatt", "run", *opts, "--cap", "80%", "--", "touch", mark, env={"CUDA_VISIBLE_DEVICES": "7"})
        t.ok(p.returncode == 2 and "CUDA_VISIBLE_DEVICES='7' names no board of this machine" in p.stderr and
             not os.path.exists(mark), f"{opts}: no such board in CUDA_VISIBLE_DEVICES: 2", f"{p.returncode} {p.stderr}")
    p = node.run("underwatt", "run", "--local", "--class", "a", "--cap", "80%", "--", "touch", mark)
    t.ok(p.returncode == 2 and "--class needs the daemon, which --local does not use" in p.stderr, "--local --class: 2", p.stderr)
    p = node.run("underwatt", "run", "--goal", "edp", "--gpus", "0", "--", "/nowhere/cmd")
    t.ok(p.returncode == 127 and "/nowhere/cmd: No such file" in p.stderr, "no such CMD: 127",
         f"{p.returncode} {p.stderr}")
    p = node.run("underwatt", "run", "--goal", "edp", "--gpus", "0", "--", "/etc/passwd")
    t.equal(p.returncode, 126, "a CMD that cannot be run: 126")
    p = node.run("underwatt", "run", "-q", "--goal", "edp", "--gpus", "0", "--", "sh", "-c",
                 "cat; exit 41", stdin=None, input="its own input\n")
    t.ok(p.returncode == 41 and p.stdout == "its own input\n", "input, output and exit status are CMD's own",
         f"{p.returncode} {p.stdout!r} {p.stderr}")
    p = node.run("underwatt", "run", "-q", "--goal", "edp", "--gpus", "0", "--", "sh", "-c", "kill -TERM $$")
    t.equal(p.returncode, 143, "a signal that ended it is told as a shell does")


def same(t, node, d):
    """What makes a run the same as another goes to the daemon as a hash, or not at all."""
    def command(name):
        with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
            row = db.execute("SELECT command FROM job WHERE name = ?", (name,)).fetchone()
        return row
    runs = {"a": ([], "1"), "b": ([], "1"), "c": ([], "2"), "d": (["--no-history"], "1")}
    for name, (opts, arg) in runs.items():
        node.run("underwatt", "run", "-q", *opts, "--goal", "edp", "--gpus", "0", "--name", f"same {name}",
                 "--", "true", arg)
    t.ok(wait(lambda: command("same d")), "the runs are in the ledger")
    t.equal([command("cmd"), command("passwd")], [None, None], "a CMD that could not be executed is no job")
    a, b, c, none = (command(f"same {name}")[0] for name in runs)
    t.ok(a and len(a) == 32 and a == b and a != c, "a hash, the same for the same arguments", f"{a} {b} {c}")
    t.equal(none, None, "--no-history: none")


def live(t, node, _):
    """The live line of a terminal has the power, as without a daemon."""
    said = uwtest.on_terminal(node, "run", "--cap", "250 W", "--", "sh", "-c", "sleep 2; " + " ".join(train("0", 400)), stream="stderr")
    lines = re.findall("\r\033\\[K(\\d+ s [^\r]*)", said)
    t.ok(any(re.match(r"\d+ s \(simulated\)  -  ", x) for x in lines), "no board is used yet: the power is unknown", lines[:4])
    t.ok(any(re.search(r"s/step  [1-9]\d*(\.\d+)? W  ", x) for x in lines) and not any("  0 W" in x for x in lines),
         "then the mean power, and never 0 W", lines[-4:])
    t.ok(any("measures at " in x for x in lines) and not any("(window" in x for x in lines), "a fixed cap has no number of a window", lines)
    t.equal(len(re.findall("\r\033\\[K\\d+ s [^\r]*\r(?=\r)", said)), len(lines), "each draw leaves the cursor in column 1")


def killed_clients_page(t, node, d):
    """The page of a client that was killed stays while its job lives, with a daemon and without."""
    mark = os.path.join(node.tmp, "page")
    run = Run(node, "--cap", "100%", "--gpus", "0", "--name", "left", "--", "sh", "-c",
              f'echo "$UNDERWATT_PROGRESS $$" > {mark}.new; mv {mark}.new {mark}; exec sleep 1000')
    told = wait(lambda: os.path.exists(mark) and pathlib.Path(mark).read_text().split())
    if not t.ok(told and os.path.exists(told[0]), "a job has a page", [told, run.said()]):
        return
    page, pid = told[0], int(told[1])

    def next_run(what, *args):
        p = node.run("underwatt", "run", "-q", *args, "--cap", "100%", "--gpus", "1", "--", "true")
        t.equal(p.returncode, 0, f"{what}: the next run ends well")
        return os.path.exists(page)
    t.ok(next_run("its client lives"), "… the page is there")
    run.p.kill()
    run.p.wait()
    t.ok(next_run("its client was killed"), "… the page is still there, CMD lives")
    os.kill(pid, signal.SIGTERM)
    t.ok(wait(lambda: not job_of(node, "left")), "CMD ends, and its job", jobs(node))
    t.ok(not next_run("CMD has ended"), "… the page is gone")
    left = os.listdir(os.path.dirname(page))
    t.equal([f for f in left if f.startswith("progress-")], [], "… and there is no other")


def root_range(t, node, _):
    """The daemon knows root's range before it holds a board."""
    mark = os.path.join(node.tmp, "started")
    for cap, said in (("160 W", "'160 W' is outside 180..250 W, the range of the actuator's configuration"),
                      ("270 W", "'270 W' is outside 180..250 W, the range of the actuator's configuration"),
                      ("55%", "55 % of the default limit, 165 W, is outside 180..250 W")):
        p = node.run("underwatt", "run", "--cap", cap, "--gpus", "0", "--", "touch", mark)
        t.ok(p.returncode == 2 and said in p.stderr and not os.path.exists(mark),
             f"a first cap of {cap}: 2, with the range, and CMD was not started", f"{p.returncode} {p.stderr}")
    t.equal(node.run("underwatt", "run", "-q", "--cap", "180 W", "--gpus", "0", "--", "true").returncode, 0, "one inside is taken")


def other_writer(t, node, d):
    """A command in local mode has the board: the daemon's job waits, and says for whom."""
    local = Run(node, "--local", "--cap", "200 W", "--gpus", "5", "--", *train("5", 100000))
    t.ok(wait(lambda: limit(node, 5) == 200000), "a local run holds its cap",
         local.said())
    held = f"held by underwatt (pid {local.p.pid}, {uwtest.USER}), original 300 W"

    def board():
        return d.ask("GET", "/v1/gpus/5/explain")[1]
    t.ok(wait(lambda: board()["cap"]["holder"] == held and board()["enforced_mw"] == 200000), "the daemon knows who", board())
    t.ok(board()["cap"]["taken_by"] == local.p.pid and board()["cap"]["why"] == f"200 W: {held}" and
         board()["cap"]["state"] == "free" and board()["cap"]["by"] == "holder" and
         board()["bounds"]["original_mw"] == ORIGINAL, "… the API says it as the reason, with the original", board())
    t.ok(not any(board()["other_writers"].values()) and "event=other-writer" not in d.log(),
         "… and counts no step of it as another writer's", [board(), d.log()])
    p = node.run("underwatt", "cap", "show")
    t.equal(" ".join(p.stdout.split()).count(held), 1, "`cap show` says it once")
    p = node.run("underwatt", "top", "--once")
    t.ok(" underwatt (pid" in p.stdout, "`top`: capped by it", p.stdout)
    p = node.run("underwatt", "cap", "set", "150", "--gpus", "5", "--for", "2 s")
    t.ok(f"cap: GPU 5: {held}: no cap until that command ends; the cap is then tried within 5 s\n" in p.stderr and "lost" not in p.stderr,
         "`underwatt cap set` says who has it", p.stderr)
    run = Run(node, "--cap", "160 W", "--gpus", "5", "--name", "waiting", "--", "sh", "-c", "echo CMD starts >&2; exec sleep 1000")
    t.ok(wait(lambda: "CMD starts\n" in run.said()) and
         run.said().startswith(f"underwatt: GPU 5: {held}: no cap there until that command ends; the cap is then "
                               "tried within 5 s\nCMD starts\n"),
         "… and so does `underwatt run`, before CMD starts", run.said())
    state = wait(lambda: (lambda j: j and "waits for its boards" in j["search"]["state"] and j["search"]["state"])(
        job_of(node, "waiting")))
    t.ok(state, "the daemon's job waits for the board", jobs(node))
    by = f"; GPU 5 is held by underwatt (pid {local.p.pid}, {uwtest.USER})"
    t.equal(state, "waits for its boards" + by, "… and says for whose")
    p = node.run("underwatt", "explain", "5")
    t.ok(f"state      {held}\n" in p.stdout, "`underwatt explain` says who has it", p.stdout)
    t.ok(": waits for its boards" in p.stdout, "and which job waits", p.stdout)
    t.equal(limit(node, 5), 200000, "it keeps its cap")
    local.p.terminate()
    t.equal(local.p.wait(uwtest.PATIENCE), 143, "the local run ends")
    t.ok(wait(lambda: limit(node, 5) == 160000), "then it is the daemon's turn", [limit(node, 5), jobs(node)])
    t.ok(wait(lambda: f"no longer: GPU 5: {held}" in run.said()), "… which the run says", run.said())
    t.ok(wait(lambda: [c["why"] for c in board()["claims"]] == ["holds 160 W: requested"], 10),
         "the reason of its claim is the cap's, not that of the loss", board()["claims"])
    t.ok(board()["cap"]["holder"] is None and not any(board()["other_writers"].values()), "… and nobody else is seen there", board())
    job = job_of(node, "waiting")
    if job:
        os.kill(job["pid"], signal.SIGTERM)
    t.equal(run.p.wait(30), 143, "CMD is ended")


def not_reached(t, node, d):
    """A cap that was not in force when the job ended is not said to have been."""
    for opts in ([], ["--local"]):
        run = Run(node, *opts, "--cap", "160 W", "--gpus", "5", "--", *train("5", 150))
        t.equal(run.p.wait(uwtest.PATIENCE), 0, "a job that ends on the ramp of its cap")
        r = run.report()
        low = r["lowest_mw"] or 0
        t.ok(r["held_mw"] == 160000 and not r["reached"] and 160000 < low < ORIGINAL, "its cap was not in force", r)
        t.ok(f"  cap    160 W of 300 W was not reached: {low / 1000:.0f} W at the lowest\n" in run.said() and "holds" not in run.said(),
             "… which the report says, with the lowest limit", run.said())
    local = Run(node, "--local", "--cap", "200 W", "--gpus", "5", "--", "sleep", "1000")
    t.ok(wait(lambda: limit(node, 5) == 200000), "a local run holds a board", local.said())
    run = Run(node, "--cap", "160 W", "--gpus", "5", "--name", "beside", "--", *train("5", 120))
    state = lambda name: ((job_of(node, name) or {}).get("search") or {}).get("state") or ""
    by = f"; GPU 5 is held by underwatt (pid {local.p.pid}, {uwtest.USER})"
    t.ok(wait(lambda: state("beside") == "waits for its boards" + by), "a job beside it waits for the board, and says whose it is", jobs(node))
    t.equal(run.p.wait(uwtest.PATIENCE), 0, "a job beside it")
    r = run.report()
    t.ok(not r["reached"] and r["lowest_mw"] is None and r["restored"] and "RESTORED" not in run.said(),
         "… its cap was not in force, and nothing of it is left", [run.said(), r])
    t.ok(r["reference_mw"] is None and r["caps"] == [] and "not the original" not in run.said(), "… and nothing was measured at that limit", [run.said(), r])
    run = Run(node, "--cap", "260 W", "--gpus", "5", "--name", "silent", "--", "sleep", "1000")
    reason = lambda: [c["why"] for c in d.ask("GET", "/v1/claims")[1]["claims"] if c["cap_mw"] == 260000]
    t.ok(wait(lambda: state("silent") == "waits for its boards" + by and "the cap of 260 W is set when the board can be held" in run.said()),
         "a cap that cannot begin says what it waits for", [run.said(), jobs(node)])
    local.p.terminate()
    local.p.wait(uwtest.PATIENCE)
    t.ok(wait(lambda: state("silent") == "holds 260 W") and reason() == ["holds 260 W: requested"] and "lost" not in run.said(),
         "… and begins, with its own reason, when the board is free", [reason(), run.said()])
    run.p.terminate()
    run.p.wait(uwtest.PATIENCE)
    t.ok(wait(lambda: limit(node, 5) == ORIGINAL), "the local run gives back")
    run = Run(node, "--cap", "160 W", "--gpus", "5", "--name", "other", "--", *train("5", 100000))
    t.ok(wait(lambda: state("other") == "measures at 300 W"), "a job measures at its original limit", jobs(node))
    node.fault("5", "limit", "250W")
    t.ok(wait(lambda: state("other") == "measures at 250 W"), "… and at the limit that another program sets, which holds no board", jobs(node))
    t.ok(wait(lambda: limit(node, 5) < 250000), "… then its cap is lowered", [state("other"), run.said()])
    run.p.terminate()
    run.p.wait(uwtest.PATIENCE)
    t.ok("from   250 W, not the original" in run.said(), "… which its report says", run.said())
    node.fault("5", "limit", "300W")


def waits_beside_a_claim(t, node, d):
    """The board was lost to another claim before the job's first step: the job waits, and holds nothing until then."""
    local = Run(node, "--local", "--cap", "200 W", "--gpus", "5", "--", "sleep", "1000")
    t.ok(wait(lambda: limit(node, 5) == 200000), "a local run holds a board", local.said())
    claim = d.ask("POST", "/v1/claims", {"gpu": 5, "cap": "190 W"})[1]["id"]
    t.ok(wait(lambda: d.ask("GET", "/v1/gpus/5")[1]["cap"]["state"] == "lost"), "a claim waits for it")
    runs = {"steps": Run(node, "--cap", "160 W", "--gpus", "5", "--name", "steps", "--", *train("5", 100000))}
    seen = []

    def waits(name, steps):
        job = job_of(node, name) or {}
        state = (job.get("search") or {}).get("state") or ""
        seen.extend([state] if state not in seen else [])
        return state.startswith("waits for its boards; GPU 5 is held by ") and job["steps"] >= steps
    t.ok(uwtest.wait_for(lambda: waits("steps", 100), step=0.01), "a job beside that claim waits, too", seen)
    os.kill(job_of(node, "steps")["pid"], signal.SIGTERM)
    runs["steps"].p.wait(uwtest.PATIENCE)
    r = runs["steps"].report()
    t.ok(not r["reached"] and r["caps"] == [] and r["saved"] is None, "… and its report has no window of that time", r)
    runs["none"] = Run(node, "--cap", "160 W", "--gpus", "5", "--name", "none", "--", "sleep", "1000")
    t.ok(uwtest.wait_for(lambda: waits("none", 0), step=0.01), "… and one without steps", seen)
    t.ok(not any(state.startswith(("holds", "measures")) for state in seen), "… neither said that it holds or measures", seen)
    d.ask("DELETE", f"/v1/claims/{claim}")
    local.p.terminate()
    local.p.wait(uwtest.PATIENCE)
    t.ok(wait(lambda: ((job_of(node, "none") or {}).get("search") or {}).get("state") == "holds 160 W") and limit(node, 5) == 160000, "it holds its cap when the board is free", jobs(node))
    runs["none"].p.terminate()
    runs["none"].p.wait(uwtest.PATIENCE)
    t.ok(wait(lambda: limit(node, 5) == ORIGINAL), "the board has its original back")


def lowers(t, node, d):
    """Whoever lowers the limit of another job's board is told."""
    first = Run(node, "--cap", "225 W", "--gpus", "5", "--name", "first", "--", "sleep", "1000")
    t.ok(wait(lambda: limit(node, 5) == 225000), "a job has its cap", first.said())
    says = f"GPU 5 is of job {job_of(node, 'first')['id']}: its limit goes from 225 W to "
    p = node.run("underwatt", "run", "--cap", "170W", "--gpus", "4,5", "--", "sh", "-c", "echo CMD starts >&2")
    t.ok(p.stderr.startswith(f"underwatt: {says}170 W\nCMD starts\n"), "the start of another with a lower cap says whose limit it lowers", p.stderr)
    for args in (["--cap", "230 W"], ["-q", "--cap", "170 W"], ["--goal", "edp"]):
        p = node.run("underwatt", "run", *args, "--gpus", "5", "--", "true")
        t.ok("is of job" not in p.stderr, f"{' '.join(args)}: no such line", p.stderr)
    p = node.run("underwatt", "cap", "set", "170", "--gpus", "4,5", "--for", "2 s")
    t.equal(p.stderr.count("is of job"), 1, "`cap set` says so once")
    t.ok(f"underwatt: cap: {says}170 W\n" in p.stderr, "… in the same words", p.stderr)
    p = node.run("underwatt", "cap", "set", "230", "--gpus", "5", "--for", "1 s")
    t.ok("is of job" not in p.stderr, "… and not of a higher cap", p.stderr)
    first.p.terminate()
    first.p.wait(uwtest.PATIENCE)
    t.ok(wait(lambda: limit(node, 5) == limit(node, 4) == ORIGINAL), "the originals are back")


def no_gpu(t, node, _):
    """CMD computes on no board: nothing to measure, and said in these words."""
    seen = pathlib.Path(node.tmp, "seen")
    run = Run(node, "--goal", "edp", "--name", "bare", "--", "sh", "-c", f"until [ -e {seen} ]; do sleep 0.1; done")
    t.ok(wait(lambda: ((job_of(node, "bare") or {}).get("search") or {}).get("state") == "has used no GPU yet"),
         "a job without a board says so", jobs(node))
    seen.touch()
    t.equal(run.p.wait(uwtest.PATIENCE), 0, "it ends well")
    t.ok("CMD was seen on no GPU" in run.said() and "period" not in run.said() and run.report()["energy_j"] is None,
         "… and its report speaks of no search", [run.said(), run.report()])


def several(t, node, _):
    """Two searches and a cap by name; one client is killed."""
    runs = [Run(node, "--goal", "edp", "--gpus", "0,1", "--name", "one", "--label", "team=vision",
                "--", *train("0,1", 1600)),
            Run(node, "--goal", "energy", "--gpus", "2", "--name", "two", "--", *train("2", 900, "vgg19")),
            Run(node, "--cap", "60%", "--gpus", "3", "--name", "three", "--", *train("3", 1300))]
    t.ok(wait(lambda: len([j for j in jobs(node) if j["running"]]) == 3, 10), "three jobs at once")
    one = wait(lambda: holds(node, "one"))
    t.ok(one and one["labels"] == {"team": "vision"} and one["gpus"] == [0, 1] and one["source"] == "run",
         "the first holds a cap", jobs(node))
    if not one:
        print("# " + runs[0].said().replace("\n", "\n# "))
        return
    cap = one["search"]["cap_mw"]
    t.ok(limit(node, 0) == limit(node, 1) == cap and one["search"]["saved"]["fraction"] > 0.1,
         f"… of {cap / 1e3:.0f} W, in force on both boards, and it saves {one['search']['saved']}")
    table = node.run("underwatt", "jobs").stdout
    t.ok(all(len(line) <= 80 for line in table.splitlines()), "`underwatt jobs` fits 80 columns", table)
    t.ok("one" in table and "holds" in table and "edp" in table and "±" in table and f"{cap // 1000} W" in table,
         "`underwatt jobs` shows state, goal, cap and what was saved", table)

    p = node.run("underwatt", "run", "--local", "--goal", "edp", "--gpus", "0", "--", "true")
    t.ok(p.returncode == 125 and "held" in p.stderr and limit(node, 0) == cap,
         "--local is refused where the daemon holds the board: never two writers", f"{p.returncode} {p.stderr}")

    steps = one["steps"]
    runs[0].p.kill()
    runs[0].p.wait()
    t.ok(wait(lambda: (job_of(node, "one") or {}).get("steps", 0) > steps + 50, 20),
         "the client is killed: CMD runs on, its steps are counted", jobs(node))
    t.ok(holds(node, "one") and limit(node, 0) == cap, "… its cap stays")
    t.ok(wait(lambda: not job_of(node, "one")), "the job ends when CMD ends")
    t.ok(wait(lambda: limit(node, 0) == limit(node, 1) == ORIGINAL, 10), "… and its boards are given back")
    ended = [j for j in jobs(node) if j["name"] == "one"]
    t.ok(len(ended) == 1 and not ended[0]["running"] and ended[0]["search"]["state"] == "over"
         and ended[0]["steps"] == 1600, "… after all of its steps", ended)

    for run, name in ((runs[1], "two"), (runs[2], "three")):
        t.equal(run.p.wait(90), 0, f"{name} ends well")
        r = run.report()
        t.ok(r["held_mw"] and r["saved"] and r["saved"]["fraction"] > 0 and r["restored"] and r["simulated"]
             and r["energy_j"] > 0 and len(r["caps"]) >= 2 and r["steps"] in (900, 1300),
             f"… and its report is whole: {r['held_mw']} mW, saved {(r['saved'] or {}).get('fraction')}", r)
        t.ok("saved" in run.said() and "simulated boards" in run.said(), "… as text, too", run.said())
    t.equal(runs[2].report()["held_mw"], 180000, "60 % of 300 W was held")
    t.ok(wait(lambda: limit(node, 2) == limit(node, 3) == ORIGINAL, 10), "all boards have their originals")


def told_once(t, run):
    """What the daemon's search does is told as without a daemon: each trial, and the cap that is held."""
    said = run.said().splitlines()
    trials = [line for line in said if re.match(r"underwatt: \d+ W: .*(lower|higher|same|slower|no effect)", line)]
    tried = [line for line in said if line.startswith("underwatt: trying ")]
    held = [line for line in said if re.match(r"underwatt: (lowers the cap to|holds) \d+ W: ", line)]
    t.ok(trials and tried and held and all(len(set(lines)) == len(lines) for lines in (trials, tried, held)),
         "what each trial showed is told, once", run.said())


def daemon_dies(t, node, d):
    run = Run(node, "--goal", "edp", "--gpus", "4", "--name", "lasting", "--", *train("4", STEPS))
    job = wait(lambda: holds(node, "lasting"))
    t.ok(job, "a job holds a cap", run.said())
    if not job:
        return
    told_once(t, run)
    numbers = [note["number"] for note in d.ask("GET", f"/v1/jobs/{job['id']}")[1]["notes"]]
    t.ok(0 < len(numbers) <= 8 and numbers == list(range(numbers[0], numbers[0] + len(numbers))), "the last messages are numbered", numbers)
    cap, saved = job["search"]["cap_mw"], job["search"]["saved"]["energy_j"]
    d.kill(actuator=False)
    t.ok(wait(lambda: "does not answer" in run.said()) and run.p.poll() is None,
         "the daemon is killed: CMD runs on, and that is said", run.said())
    d.start()
    limits = set()
    job = wait(lambda: limits.add(limit(node, 4)) or holds(node, "lasting"))
    t.ok(limits == {cap}, "… and the cap has not moved meanwhile", limits)
    t.ok(job and abs(job["search"]["cap_mw"] - cap) <= 0.05 * cap,
         f"another takes the job over, {cap / 1e3:.0f} W is held again", [job, run.said()])
    t.ok(job and job["search"]["saved"] and job["search"]["saved"]["energy_j"] > 0.5 * saved,
         "… what it had saved is known", [job, saved])
    t.ok(wait(lambda: "answers again" in run.said()), "the client says that it is back", run.said())
    steps = (job or {}).get("steps", 0)
    t.ok(wait(lambda: (job_of(node, "lasting") or {}).get("steps", 0) > steps + 20, 20),
         "… and has handed the page over again", jobs(node))
    t.equal(run.p.wait(90), 0, "CMD ends well")
    r = run.report()
    t.ok(r["saved"] and r["saved"]["energy_j"] > saved and r["steps"] == STEPS, "the report has the whole run", r)
    t.ok(wait(lambda: limit(node, 4) == ORIGINAL), "the board has its original back")


def quick_restarts(t, node, d):
    """A service manager brings the daemon back before anybody has noticed."""
    run = Run(node, "--goal", "edp", "--gpus", "3", "--name", "steady", "--", *train("3", 2600))
    job = wait(lambda: holds(node, "steady"))
    t.ok(job, "a job holds a cap", run.said())
    if not job:
        return
    cap, saved = job["search"]["cap_mw"], job["search"]["saved"]["energy_j"]
    for _ in range(3):
        d.kill(actuator=False)
        d.start()
        steps = (wait(lambda: job_of(node, "steady")) or {}).get("steps", 0)
        t.ok(wait(lambda: (lambda j: j and j["search"]["page"] and j["steps"] > steps + 10)(
            job_of(node, "steady")), 20), "restarted at once: the page is handed over again", jobs(node))
    job = wait(lambda: holds(node, "steady"))
    t.ok(job and abs(job["search"]["cap_mw"] - cap) <= 0.05 * cap and job["search"]["saved"]["energy_j"] > 0.5 * saved,
         "… the search and what it saved go on", [job, run.said()])
    whole = d.ask("GET", f"/v1/jobs/{job['id']}")[1] if job else {}
    t.equal(whole.get("search", {}).get("details", {}).get("original_mw"), ORIGINAL,
            "… and it knows the original, which is not the cap it found")
    t.ok(job and wait(lambda: limit(node, 3) == job["search"]["cap_mw"], 30), "… the cap shown is the one in force",
         [job, limit(node, 3)])
    claims = [c for c in d.ask("GET", "/v1/claims")[1]["claims"] if c["job"] == (job or {}).get("id")]
    t.equal(len(claims), 1, "… by one claim")
    t.equal(run.p.wait(90), 0, "CMD ends well")


def both_die(t, node, d):
    """Daemon and actuator: nothing is capped meanwhile, and what is shown is in force again."""
    run = Run(node, "--goal", "edp", "--gpus", "2", "--name", "again", "--", *train("2", 9000))
    job = wait(lambda: holds(node, "again"))
    t.ok(job, "a job holds a cap", run.said())
    d.actuator.kill()
    d.actuator.wait()
    d.kill(actuator=False)
    d.start()
    told = []

    def agree():
        j = holds(node, "again")
        told[:] = [j and j["search"], limit(node, 2)]
        return j and limit(node, 2) == j["search"]["cap_mw"] < ORIGINAL
    t.ok(wait(agree, 60), "both are killed: it holds a cap again, and the one shown is in force",
         [told, d.ask("GET", "/v1/claims"), node.run("underwatt", "explain", "2").stdout])
    job = job_of(node, "again")
    if job:
        os.kill(job["pid"], signal.SIGTERM)
    t.equal(run.p.wait(30), 143, "CMD is ended")


def drawn(before, after, seconds):
    """Joules that a simulated board drew for a job of so many seconds, by its own counter: between the two looks it
    idled else."""
    idle_mw = min(before["power_mw"], after["power_mw"])
    rest_s = (after["at_ns"] - before["at_ns"]) * 1e-9 - seconds
    return (after["energy_mj"] - before["energy_mj"] - idle_mw * rest_s) / 1e3


def measured(node, begin, boards):
    """The run, once it has ended: its exit status, and what each of its boards drew."""
    before = node.status()["boards"]
    run = begin()
    code = run.p.wait(90)
    after = node.status()["boards"]
    return run, code, [drawn(before[i], after[i], run.report()["time_s"]) for i in boards]


def agrees(joules, half, truth):
    """A busy machine reads late, and says so."""
    return bool(joules) and abs(joules - truth) <= max(0.02 * truth, half)


def whole_energy(t, node, _):
    """What `run` prints is what the job used, to its last second."""
    run, code, used = measured(node, lambda: Run(node, "--cap", "100%", "--gpus", "2", "--name", "whole", "--", *train("2", 60)), [2])
    t.equal(code, 0, "a short job ends")
    energy = run.report()["energy_j"]
    t.ok(agrees(energy, run.report()["half_j"], used[0]),
         f"… its report has all of its energy: {energy:.0f} J of {used[0]:.0f} J", run.said())

    def booked():
        rows = json.loads(node.run("underwatt", "report", "--format", "json").stdout)["rows"]
        return any(r["name"] == "whole" and abs(r["energy_j"] - energy) <= 0.002 * energy for r in rows)
    t.ok(wait(booked), "… and so has the ledger")


BOARD = re.compile(r"^  GPU (\d+)  (\S.*?) +([0-9.]+) ± [0-9.]+ (k?J)  +([0-9.]+) W  \(counter.*\)$", re.M)


def joules(number, unit):
    return float(number) * (1000 if unit == "kJ" else 1)


def adds_up(t, run, boards, what):
    """The boards of a report have all of its energy, to the digits that are written, as JSON and as text."""
    report, said = run.report(), run.said()
    t.equal([b["index"] for b in report["boards"]], boards, f"{what}: the boards")
    parts = sum(b["energy_j"] for b in report["boards"] if b["energy_j"])
    t.ok(report["energy_j"] and abs(parts - report["energy_j"]) <= 1e-6 * report["energy_j"],
         f"{what}: {parts} J by board are {report['energy_j']} J", report)
    total = re.search(r"^  energy ([0-9.]+) ± [0-9.]+ (k?J)", said, re.M)
    lines = BOARD.findall(said)
    digit = joules(re.sub(r"\d(?!.*\d)", "1", re.sub(r"\d(?=.*\d)", "0", total[1])), total[2]) if total else 0
    t.ok(total and len(lines) == len(boards)
         and abs(sum(joules(b[2], b[3]) for b in lines) - joules(*total.groups())) <= digit,
         f"{what}: so say the lines", said)
    return report, lines


def by_board(t, node, d):
    """Energy by board, with the daemon, with one that is killed meanwhile, and without."""
    runs = {}
    for what, opts in (("daemon", []), ("local", ["--local"])):
        run, code, used = measured(node, lambda o=opts: Run(node, "--cap", "100%", "--gpus", "0,1", *o, "--", *train("0,1", 60)), [0, 1])
        t.equal(code, 0, f"{what}: a job of two boards ends")
        report, runs[what] = adds_up(t, run, [0, 1], what)
        for board, truth in zip(report["boards"], used):
            t.ok(agrees(board["energy_j"], board["half_j"], truth), f"{what}: … each has used {truth:.0f} J", report)
    t.equal(*([line[:2] for line in runs[what]] for what in ("daemon", "local")), "both print the same boards")
    run = Run(node, "--cap", "100%", "--gpus", "2,1", "--name", "twice", "--", *train("2,1", 200))

    def booked():
        job = job_of(node, "twice")
        parts = job and d.ask("GET", f"/v1/jobs/{job['id']}")[1]["energy_by_gpu"]
        return parts if parts and len(parts) == 2 and all(p["energy_j"] > 1000 for p in parts) else None
    before = wait(booked)
    t.ok(before, "energy is booked by board while a job runs", [jobs(node), run.said()])
    d.kill(actuator=False)
    d.start()
    t.equal(run.p.wait(120), 0, "the daemon is killed and started again; the job ends")
    report, _ = adds_up(t, run, [1, 2], "restart")
    for part in before or []:
        now = next((p["energy_j"] for p in report["boards"] if p["index"] == part["gpu"]), 0)
        t.ok(now > part["energy_j"] + 1000,
             f"… GPU {part['gpu']} has what was booked before and more: {part['energy_j']} J, {now} J")


def interrupted(t, node, _):
    """^C of a terminal: the end of CMD may be seen before the signal."""
    run = node.popen("underwatt", "run", "--goal", "edp", "--gpus", "2", "--", "underwatt-sim", "train", "--gpus", "2", "--epochs", "99")
    t.ok(wait(lambda: job_of(node, "underwatt-sim") and job_of(node, "underwatt-sim")["energy_j"] > 0), "a job with energy")
    os.kill(job_of(node, "underwatt-sim")["pid"], signal.SIGINT)
    time.sleep(0.03)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=uwtest.PATIENCE)
    t.ok(run.returncode == 130 and "J (95 % interval)" in err + out, "^C: its energy is awaited", (run.returncode, out, err))


def found(t, node, _):
    """A job whose boards are found."""
    run = Run(node, "--cap", "250 W", "--name", "found", "--", *train("5", 9000))
    job = wait(lambda: (lambda j: j and j["gpus"] == [5] and j)(job_of(node, "found")))
    t.ok(job, "boards that were not named are found by CMD's processes", jobs(node))
    job = wait(lambda: holds(node, "found"))
    t.ok(job and limit(node, 5) == job["search"]["cap_mw"], "… and capped", jobs(node))
    if not job:
        return
    os.kill(job["pid"], signal.SIGSTOP)
    t.ok(wait(lambda: limit(node, 5) == ORIGINAL), "while CMD is stopped there is no cap", limit(node, 5))
    os.kill(job["pid"], signal.SIGCONT)
    t.ok(wait(lambda: limit(node, 5) == job["search"]["cap_mw"]), "… and it comes back with CMD", jobs(node))
    os.kill(job["pid"], signal.SIGTERM)
    t.equal(run.p.wait(30), 143, "CMD is ended")


def unseen(t, node, d):
    """A job that tells of no steps, and one that the daemon found by itself: by their periods."""
    run = Run(node, "--goal", "edp", "--gpus", "0", "--name", "quiet", "--", "env", "-u", "UNDERWATT_PROGRESS",
              *train("0", 700, "vgg19"))
    alone = node.train("--workload", "vgg19", "--gpus", "1", "--steps", "700", "--phases", "train")

    def by_period():
        all_of = [d.ask("GET", f"/v1/jobs/{j['id']}")[1] for j in jobs(node)]
        return all_of if len(all_of) == 2 and all(
            ((j.get("search") or {}).get("details") or {}).get("progress") == "period" for j in all_of) else None
    found_all = wait(by_period, 60)
    t.ok(found_all, "both are searched by the period of their boards' power", [run.said(), jobs(node)])
    for job in found_all or []:
        how = job["search"]["details"]
        t.ok(0.85 < how["period_s"] < 1.5 and how["period_confidence"] >= 0.7 and job["steps"] == 0,
             f"… that of their steps, 0.88 s and more: {how['period_s']:.3f} s ({job['source']})", how)
    t.ok(wait(lambda: limit(node, 0) < 220000 and limit(node, 1) < 220000, 60), "… and capped",
         [limit(node, 0), limit(node, 1), jobs(node)])
    t.equal(run.p.wait(150), 0, "the one ends well")
    r = run.report()
    t.ok(r["progress"] == "period" and r["saved"] and r["restored"] and r["steps"] == 0
         and "stands for a step" in run.said(), "… its report says by what it was searched", [r, run.said()])
    alone.terminate()
    alone.wait()
    t.ok(wait(lambda: limit(node, 0) == limit(node, 1) == 260000, 30), "all boards have their originals")


def play(t, name, board_count, cases):
    """Cases of one node, one after the other."""
    quiet = name == "quiet"
    with uwtest.Node(board="rtx6000" if quiet else "v100", count=board_count,
                     speed=3 if name == "slow" else 10 if quiet else SPEED) as node:
        d = node.daemon("search: {found_jobs: edp}\n" if quiet else "",
                        rules="range: {from: 60 %, to: 250 W}\n" if name == "range" else None)
        for case in cases:
            began = time.monotonic()
            case(t, node, d)
            print(f"# {case.__name__}: {time.monotonic() - began:.0f} s", flush=True)
        if t.failed:
            print(f"# {name}: " + d.log()[-6000:].replace("\n", "\n# "))


def main():
    t = uwtest.Tap()
    smoke = {refused, root_range, same, live, killed_clients_page, found, other_writer, not_reached, waits_beside_a_claim, lowers, no_gpu, daemon_dies, whole_energy, by_board,
             interrupted}
    nodes = {"jobs": (6, [refused, same, live, killed_clients_page, found, other_writer, not_reached, waits_beside_a_claim, lowers, no_gpu, several]), "restart": (5, [daemon_dies, quick_restarts]),
             "both": (3, [both_die]), "range": (1, [root_range]),
             "slow": (3, [whole_energy, by_board, interrupted]), "quiet": (2, [unseen])}
    if not uwtest.SOAK:
        nodes = {n: (count, [c for c in cases if c in smoke]) for n, (count, cases) in nodes.items()}
    wanted = [n for n in nodes if len(sys.argv) < 2 or n in sys.argv[1:]]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for f in [pool.submit(play, t, n, *nodes[n]) for n in wanted if nodes[n][1]]:
            f.result()
    t.done()


main()
