#!/usr/bin/python3
"""underwatt run with real processes on simulated boards, faster than the wall's clock:
the cap it holds against the oracle, caps asked for, jobs that tell nothing or change,
faults in mid-run, who may cap what.  Each case has boards of its own; they run at the
same time.  `make check` plays those that need real processes and one search; tests/simulation
has searches and faults in virtual time, and `make soak` (UNDERWATT_SOAK=1) plays all here, too.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import uwtest

SPEED = 20 if uwtest.SOAK else 8
SIM = uwtest.program("underwatt-sim")
UW = uwtest.program("underwatt")
V100 = 300000
MACHINE = """
name: many boards
boards:
  - {model: v100, count: 24}
  - {model: rtx6000, count: 2}
workloads:
  - {name: slower, like: resnet50, memory_time: 212 s}
  - {name: steady, like: resnet50, gap_time: 1 ms}
"""
NOBODY = 65534
FOREVER = 100000    # steps of a job that is ended


def train(boards, steps, workload="resnet50", phases="load=1s,train"):
    return [SIM, "train", "--workload", workload, "--gpus", ",".join(map(str, boards)),
            "--steps", str(steps), "--phases", phases]


def nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class Run:
    """One `underwatt run`, and what it said so far."""

    def __init__(self, node, boards, *args, cmd, **kw):
        self.node, self.boards = node, boards
        self.files = pathlib.Path(tempfile.mkdtemp(dir=node.tmp))
        self.files.chmod(0o777)
        self.err = open(self.files / "err", "w+")
        self.out = open(self.files / "out", "w+")
        self.p = node.popen("underwatt", "run", "--json", self.files / "json", "--gpus",
                            ",".join(map(str, boards)), *args, "--", *cmd, stdout=self.out, stderr=self.err, **kw)

    def limits(self):
        all_of = self.node.status()["boards"]
        return [all_of[i]["limit_mw"] for i in self.boards]

    def said(self):
        return (self.files / "err").read_text()

    def until(self, what, seconds=60):
        return uwtest.wait_for(lambda: what() or self.p.poll() is not None, seconds, 0.1) and what()

    def end(self, seconds=90):
        try:
            self.p.wait(seconds)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
            self.report = {}
            return None
        try:
            self.report = json.loads((self.files / "json").read_text())
        except (OSError, ValueError):
            self.report = {}
        return self.p.returncode

    def end_job(self):
        """SIGTERM to what computes on its first board."""
        for pid in self.node.board(self.boards[0])["pids"]:
            os.kill(pid, signal.SIGTERM)

    def back(self):
        return uwtest.wait_for(lambda: all(mw in (V100, 260000) for mw in self.limits()), step=0.1)

    def __repr__(self):
        return f"exit {self.p.returncode}, limits {self.limits()}\n{self.said()[-2500:]}"


def narrow(start, half, tries=3):
    """A run whose report is told within half; a busy machine puts a window's steps aside, and
    then its interval is wide, which is right and shows nothing: again."""
    for _ in range(tries):
        run = start()
        run.end()
        if (run.report.get("saved") or {"half": 1})["half"] < half:
            break
    return run


# ---- the search against the oracle ----

def oracle(board, workload):
    """Time and energy of the training loop at each watt, without noise."""
    p = subprocess.run([UW, "sweep", "--sim", board, "--workload", workload, "--step", "1", "--json", "-"],
                       capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    d = json.loads(p.stdout)
    return {x["cap_mw"]: (x["time_s"], x["energy_j"]) for x in d["points"]}


def value(goal, e, s):
    if goal == "energy":
        return e
    if goal == "edp":
        return e * s
    k = float(goal.split(":")[1])
    return (k - 1) / k * e + s / k


def searched(node, i, board, workload, goal, steps):
    curve = oracle(board, workload)
    t_ref, e_ref = curve[max(curve)]
    best = min(curve, key=lambda mw: value(goal, curve[mw][1] / e_ref, curve[mw][0] / t_ref))
    def start():
        run = Run(node, [i], "--goal", goal, cmd=train([i], steps if uwtest.SOAK else FOREVER, workload))
        if not uwtest.SOAK:    # on a busy machine more windows are needed
            run.until(lambda: "holds" in run.said(), 240)
            time.sleep(80 / SPEED)
            run.end_job()
        return run

    run = narrow(start, 0.2, 3 if uwtest.SOAK else 1)
    name = f"{board} {workload} {goal}"
    done = run.p.returncode == 0 and "simulated training done" in (run.files / "out").read_text()
    yield done if uwtest.SOAK else run.p.returncode == 143, f"{name}: CMD's status", repr(run)
    held = run.report.get("held_mw")
    if not held:
        yield False, f"{name}: a cap is held", repr(run)
        return
    t, e = curve[min(curve, key=lambda mw: abs(mw - held))]
    v = value(goal, e / e_ref, t / t_ref)
    regret = v / value(goal, curve[best][1] / e_ref, curve[best][0] / t_ref) - 1
    # To 1 % in virtual time; here a busy machine adds noise of its own.
    yield regret <= (0.01 if uwtest.SOAK else 0.05), f"{name}: holds {held / 1000:.0f} W, oracle {best / 1000:.0f} W: {100 * regret:.2f} % off", repr(run)
    yield re.search(r"trying (\d+) W \(.*\)\n(.*\n)*?underwatt: \1 W: .*(lower|higher|same|slower|no effect)", run.said()), \
        f"{name}: a trial's result is told", repr(run)
    s = run.report["saved"]
    yield s and s["energy_j"] > 0 and (s["half"] < 0.2 or not uwtest.SOAK) and s["slowdown"] >= 0.99, f"{name}: what was saved is told", s
    true = 1 - e / e_ref
    # Where the job did not run for a while it may end before a window of that very cap.
    hold = [c for c in run.report["caps"] if abs(c["cap_mw"] - held) <= 3000]
    ref = [c for c in run.report["caps"] if c["cap_mw"] == max(curve)]
    got = 1 - hold[0]["step_j"] / ref[0]["step_j"] if hold and ref else None
    yield got is not None and abs(got - true) < (0.04 if uwtest.SOAK else 0.1), \
        f"{name}: a step at that cap saves {100 * (got or 0):.1f} %, in truth {100 * true:.1f} %", repr(run)
    yield run.report["restored"] and run.back() and "simulated" in run.said(), f"{name}: the original is back", repr(run)


def several_boards(node, boards):
    low = []

    def start():
        run = Run(node, boards, "--cap", "60%", cmd=train(boards, 450))
        low.append(run.until(lambda: run.limits() == [180000] * len(boards)))
        return run
    run = narrow(start, 0.1)
    yield all(low), "--cap 60%: 180 W of 300 W on every board of the job", repr(run)
    yield run.p.returncode == 0 and run.back(), "--cap 60%: the originals are back", repr(run)
    s = run.report.get("saved")
    yield s and 0.1 < s["fraction"] < 0.4 and s["half"] < 0.1, f"--cap 60%: what it saved: {s and s['fraction']:.3f}", repr(run)


def fixed(node, i):
    run = Run(node, [i], "--cap", "200", cmd=["sh", "-c", " ".join(train([i], FOREVER)) + "; exit 11"])
    yield run.until(lambda: run.limits() == [200000]), "--cap 200: in force", repr(run)
    run.end_job()
    yield run.end() == 11 and run.back(), "--cap 200: CMD's status, the original is back", repr(run)
    yield run.report.get("held_mw") == 200000 and run.report["restored"], "--cap 200: the report", repr(run)


# ---- jobs that tell nothing, and jobs that change ----

def silent(node, i, *args):
    work, steps = ("resnet50", FOREVER) if "--cap" in args else ("steady", 850)  # its power does not move
    run = Run(node, [i], *args, cmd=["env", "-u", "UNDERWATT_PROGRESS", *train([i], steps, work, "train")])
    name = (" ".join(args) or "no goal named") + ", no progress told: "
    if "--cap" in args:
        yield run.until(lambda: run.limits() == [210000]), name + "the cap is set", repr(run)
        run.end_job()
        yield run.end() == 143 and "no progress" in run.said() and run.back(), name + "said so; the original is back", repr(run)
        return
    lowest = V100
    while run.p.poll() is None:
        lowest = min(lowest, *run.limits())
        time.sleep(0.2)
    bound = not args    # then it is slowdown:1.05
    yield run.end() == 0 and (lowest == V100 if bound else 0.8 * V100 <= lowest < V100) and run.back(), \
        name + f"{'no' if bound else 'the safe'} cap ({lowest} mW)", repr(run)
    yield "reports no steps" in run.said() and "progress is unknown" in run.said() and run.report["progress"] == "unknown" \
        and run.report["period_unknown"] and run.report["saved"] is None \
        and run.report["goal"] == (args[1] if args else "slowdown:1.05"), name + "said so, and why", repr(run)


def unseen(node, i):
    """Not a line of the job is changed: the period of its power stands for its steps."""
    run = Run(node, [i], "--goal", "edp",
              cmd=["env", "-u", "UNDERWATT_PROGRESS", *train([i], 520, "vgg19", "train")])
    name = "a job that tells of no steps: "
    yield run.end(150) == 0 and run.back(), name + "ends, the original is back", repr(run)
    r = run.report
    yield r["steps"] == 0 and r["progress"] == "period" and r["period_confidence"] >= 0.7 and "stands for a step" in run.said(), \
        name + "searched by its period", repr(run)
    yield 0.85 < (r["period_s"] or 0) < 1.3, name + f"which is that of its steps, 0.884 s and more: {r['period_s']}", repr(run)
    yield min(c["cap_mw"] for c in r["caps"]) < 220000 and r["saved"] and r["saved"]["fraction"] > 0, \
        name + "caps were measured by it, and what they save", repr(run)


JOB = """
import mmap, os, sys, time
t0, speed = os.environ["UNDERWATT_CLOCK"].split(":")
t0, speed = int(t0), float(speed)
now = lambda: t0 + int(speed * (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - t0))
with open(os.environ["UNDERWATT_PROGRESS"], "r+b") as f:
    page = memoryview(mmap.mmap(f.fileno(), 4096)).cast("Q")
page[8], page[11] = os.getpid(), 1
end = now()
for n, step in ((600, 0.5), (500, 0.6)):
    for _ in range(n):
        end += int(step * 1e9)
        time.sleep(max(0, (end - now()) / speed * 1e-9))
        page[10] = end
        page[9] += 1
"""


def changes(node, i):
    """A job of another pace from some step on: a program of our own, which draws
    nothing, so that time alone tells."""
    run = Run(node, [i], "--cap", "250", "--window", "5s", cmd=["/usr/bin/python3", "-c", JOB])
    code = run.end()
    yield code == 0 and run.report["search"]["changes"] >= 1 and "changed" in run.said(), \
        "steps 20 % slower for good: noticed", repr(run)
    yield run.report.get("steps") == 1100, "… with every step counted", repr(run)
    yield run.back(), "… the original is back", repr(run)


def changes_load(node, i):
    """One process ends, another with another load comes: searched again."""
    first, second = train([i], 900), train([i], 1600, "slower")    # time for 24 windows
    run = Run(node, [i], "--goal", "edp", cmd=["sh", "-c", f"{' '.join(first)} && {' '.join(second)}"])
    held = run.until(lambda: "holds" in run.said())
    yield held, "a job of two parts: the first cap is held", repr(run)
    code = run.end()
    said = run.said()
    yield code == 0 and run.report["search"]["changes"] == 1 and "searches again" in said and "no progress (see" not in said, \
        "… the second part is noticed", repr(run)
    yield "holds" in said[said.find("searches again"):], "… and searched", repr(run)
    yield run.back(), "… the original is back", repr(run)


# ---- faults ----

def fault(node, boards, kind, undo, heard, restored=(0, 1)):
    """It happens on the first of two boards while the cap is in force."""
    run = Run(node, boards, "--cap", "230", "--window", "2s",
              cmd=["sh", "-c", " ".join(train(boards, 700)) + "; exit 12"])
    low = run.until(lambda: run.limits() == [230000] * 2)
    if not low:
        yield False, f"{kind}: capped", repr(run)
        run.end()
        return
    node.fault(boards[0], *kind.split())
    time.sleep(120 / SPEED)
    other = run.limits()[1]
    going = run.p.poll() is None
    if undo:
        node.fault(boards[0], undo)
    code = run.end()
    yield going and code == 12, f"{kind}: CMD goes on and has the last word", repr(run)
    first = node.board(boards[0])["uuid"]
    told = [line for line in run.said().splitlines() if any(word in line for word in heard)]
    yield told and (kind == "stuck" or any(first in line or "GPU" in line for line in told)), \
        f"{kind}: told, and of which board", repr(run)
    yield run.report["restored"] is True and "NOT RESTORED" not in run.said(), \
        f"{kind}: over by the end, so the report has nothing left to tell", repr(run)
    back = uwtest.wait_for(lambda: all(run.limits()[k] == V100 for k in restored), step=0.1)
    yield back, f"{kind}: the originals are back (the other board was at {other // 1000} W meanwhile)", repr(run)


def other_writer(node, boards):
    yield from fault(node, boards, "limit 210W", None, ["210"], restored=(1,))
    yield node.board(boards[0])["limit_mw"] == 210000, "limit 210W: theirs stays", node.board(boards[0])


def refused(node, boards):
    """On the way down: it goes no further, and says why."""
    run = Run(node, boards, "--cap", "160", "--window", "2s",
              cmd=["sh", "-c", " ".join(train(boards, 500)) + "; exit 12"])
    low = run.until(lambda: max(run.limits()) < 230000)
    node.fault(boards[0], "refuse")
    told = run.until(lambda: "no more caps" in run.said(), 20)
    other = run.until(lambda: run.limits()[1] == V100, 20)
    why = f"no more caps: GPU {boards[0]}: "
    yield low and told and why in run.said() and "ermission" in run.said(), \
        "refuse: no further caps, which board, and why", repr(run)
    yield other and run.p.poll() is None, "refuse: the other board gets its original at once, CMD goes on", repr(run)
    node.fault(boards[0], "accept")
    yield run.back(), "refuse: the board itself when it can be set again", repr(run)
    yield run.end() == 12, "refuse: CMD's status", repr(run)


def refused_end(node, i):
    """The original cannot be put back when CMD ends."""
    run = Run(node, [i], "--cap", "230", "--window", "2s", cmd=train([i], FOREVER))
    low = run.until(lambda: run.limits() == [230000])
    node.fault(i, "refuse")
    run.end_job()
    code = run.end()
    yield low and code == 143 and run.report["restored"] is False and "NOT RESTORED" in run.said() \
        and run.limits() == [230000], "refuse at the end: NOT RESTORED, and said so; CMD's status", repr(run)
    node.fault(i, "accept")
    yield run.back(), "refuse at the end: the actuator goes on until it is", repr(run)


def hang_end(node, i):
    """The driver does not answer as CMD ends, and does a moment later."""
    run = Run(node, [i], "--cap", "230", "--window", "2s", cmd=train([i], FOREVER))
    low = run.until(lambda: run.limits() == [230000])
    job = node.board(i)["pids"]
    node.fault(i, "hang", "for", "60s")
    os.kill(job[0], signal.SIGTERM)
    code = run.end()
    yield low and code == 143 and run.back() and run.report["restored"] is True \
        and "every original is in force" in run.said(), \
        "hang at the end: read again until it is answered, and the original is in force", repr(run)


def reload_driver():
    with uwtest.Node(count=2, speed=SPEED) as node:
        yield from fault(node, [0, 1], "reload", None, ["reloaded"])
        node.fault("all", "limit", "280W")


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def all_killed(node, i=0, j=1):
    """Command, keeper and actuator at once: nobody is left to restore until the next start."""
    run = Run(node, [i], "--cap", "230", "--window", "2s", cmd=train([i], FOREVER))
    low = run.until(lambda: run.limits() == [230000])
    job = node.board(i)["pids"]
    keeper = [p for p in children(run.p.pid) if p not in job][0]
    actuator = children(keeper)[0]
    for pid in (run.p.pid, keeper):
        os.kill(pid, signal.SIGSTOP)
    for pid in (actuator, keeper, run.p.pid):
        os.kill(pid, signal.SIGKILL)
    run.p.wait()
    time.sleep(1)
    yield low and run.limits() == [230000] and uwtest.alive(job[0]), \
        "command, keeper and actuator killed together: the cap is left, the job lives", repr(run)
    p = node.run("underwatt", "run", "--cap", "290", "--gpus", j, "--", "true")
    yield p.returncode == 0 and run.back(), "… the next start puts the original back, though its job has another board", \
        f"{p.stderr} {run!r}"
    os.kill(job[0], signal.SIGTERM)


def killed():
    with uwtest.Node(count=2, speed=SPEED) as node:  # of its own: any other start would recover, too
        yield from all_killed(node)


# ---- who may ----

def stopped(node, i):
    """SIGSTOP of the command: its lease ends, CMD goes on under the original limit. The gap is told, and is no saving."""
    run = Run(node, [i], "--cap", "200", "--window", "5s", cmd=train([i], 900))
    low = run.until(lambda: run.limits() == [200000]) and run.until(lambda: "  holds 200 W" in run.said())
    run.p.send_signal(signal.SIGSTOP)
    back = uwtest.wait_for(lambda: run.limits() == [V100], 20, 0.1)
    time.sleep(4)
    run.p.send_signal(signal.SIGCONT)
    code = run.end(120)
    r = run.report
    ref = next((c["step_j"] for c in r.get("caps") or [] if c["cap_mw"] == V100), 0)
    yield low and back and code == 0 and "this command did not run for " in run.said() and "  stop   this command did not run for " in run.said() \
        and r["stopped_s"] > 20, "SIGSTOP of the command is told, at once and in the report", repr(run)
    saved = r.get("saved") or {"energy_j": 0, "half_j": 0}
    yield r.get("saved") and saved["energy_j"] - saved["half_j"] < ref * r["steps"] - r["energy_j"], "… and its time is not taken for one under the cap", \
        f"{saved} {ref} J/step, {r.get('energy_j')} J {run!r}"
    search_s = r["search"]["time_s"]
    yield r["back_s"] > 20 and search_s + r["stopped_s"] + r["back_s"] < r["time_s"] and f"\n  back   {r['back_s']:.0f} s on the way to the held cap again" in run.said(), \
        "… nor for a search, nor the second way down", f"{search_s} {r['back_s']} {run!r}"


def two_at_once(node, i):
    run = Run(node, [i], "--cap", "260", cmd=train([i], FOREVER))
    ready = run.until(lambda: node.board(i)["pids"])
    mark = run.files / "started"
    p = node.run("underwatt", "run", "--cap", "250", "--gpus", i, "--", "touch", mark)
    yield ready and p.returncode == 125 and str(run.p.pid) in p.stderr and not mark.exists(), \
        "a second run on a board: 125, the first's pid, CMD not started", f"{p.returncode} {p.stderr} {run.p.pid}"
    run.p.terminate()
    yield run.end() == 143 and run.back(), "SIGTERM ends the job of the first: 143, the original is back", repr(run)


def foreign(node, i):
    name = "another user's process on the board"
    if os.geteuid() != 0:
        yield None, name, "only root can become somebody else"
        return
    other = node.popen(*train([i], FOREVER), preexec_fn=nobody)
    uwtest.wait_for(lambda: node.board(i)["pids"])
    run = Run(node, [i], "--cap", "250", cmd=["true"])
    yield run.end() == 0 and str(other.pid) in run.said() and "without a cap" in run.said().splitlines()[0] and run.back(), \
        f"{name}: CMD runs without a cap, and its pid", repr(run)
    m = node.run("underwatt", "measure", "--gpus", i, "--", "true")
    yield m.returncode == 0, f"{name}: measuring is allowed", m.stderr
    other.kill()


class Theirs(uwtest.Node):
    """A node of another user, where root alone may set limits."""

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix="uw-")
        os.chmod(self.home, 0o777)
        self.state = os.path.join(self.home, "world")
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        shutil.rmtree(self.home, ignore_errors=True)

    def sim(self, *args, **kw):
        if os.geteuid() == 0:
            kw["preexec_fn"] = nobody
        return super().sim(*args, **kw)


def stops_before(node, **kw):
    for args in (["--goal", "edp"], ["--cap", "80%"]):
        for gpus in (["--gpus", "0"], []):
            mark = pathlib.Path(node.tmp) / "started"
            p = node.run("underwatt", "run", *args, *gpus, "--", "touch", mark, **kw)
            yield p.returncode == 125 and not mark.exists() and node.board(0)["limit_mw"] == V100 \
                and all(s in p.stderr for s in ("no permission", "root", "sudo")), \
                f"run {' '.join(args + gpus)}{' of another user' if kw else ''}, no permission to cap: 125, which permission, " \
                "the ways, CMD not started", f"{p.returncode} {p.stderr}"


def no_right():
    with uwtest.Node(count=1) as node:
        node.fault("all", "refuse")
        yield from stops_before(node)
    if os.geteuid() == 0:
        with Theirs(count=1, may_set="root") as node:
            os.chmod(node.tmp, 0o777)
            yield from stops_before(node, preexec_fn=nobody)


# ---- bad input ----

GOALS = ["energy", "edp", "eds:", "cost:", "slowdown:", "time"]


def bad_input(node):
    mark = pathlib.Path(node.tmp) / "bad-started"
    touch = ["--gpus", "0", "--", "touch", mark]
    before = node.board(0)["limit_mw"]  # others have cases of their own
    for args, says in [
            (["--goal", "fast", *touch], ["'fast'", *GOALS]),
            (["--goal", "eds:0.5", *touch], ["0.5"]),
            (["--goal", "eds:", *touch], ["eds"]),
            (["--goal", "cost:2", *touch], ["2", "0..1"]),
            (["--goal", "slowdown:0.9", *touch], ["0.9"]),
            (["--cap", "50", *touch], ["50 W", "150..300 W"]),
            (["--cap", "301", *touch], ["301 W", "150..300 W"]),
            (["--cap", "20%", *touch], ["60 W", "150..300 W"]),
            (["--cap", "lots", *touch], ["'lots'"]),
            (["--cap", "-5", *touch], ["-5"]),
            (["--cap", "0", *touch], ["0"]),
            (["--goal", "edp", "--cap", "200", *touch], ["--goal", "--cap"]),
            (["--goal", "edp", "--window", "0.1s", *touch], ["--window", "1 s..600 s"]),
            (["--goal", "edp", "--window", "10x", *touch], ["--window", "'10x'"]),
            (["--goal", "edp", "--window", "0s", *touch], ["--window", "'0s' is outside 1 s..600 s"]),
            (["--goal", "edp", "--window", "99h", *touch], ["--window", "'99h' is outside 1 s..600 s"]),
            (["--label", "a b=x", *touch], ["'a b=x'", "letters, digits, _-./, 31 at most"]),
            (["--label", "k=" + 500 * "v", *touch], ["'k' has 500 bytes, 63 at most"]),
            (["--name", 400 * "x", *touch], ["has 400 bytes, 95 at most"]),
            (["--goal", "edp", "--gpus", "99", "--", "touch", mark], ["'99'"]),
            (["--goal", "edp"], ["no command"])]:
        p = node.run("underwatt", "run", *args)
        name = " ".join(map(str, args)).split(" --gpus 0")[0]
        yield p.returncode == 2 and all(s in p.stderr for s in says) and len(p.stderr.splitlines()) == 1 \
            and not p.stdout and not mark.exists(), f"run {name}: one line, 2, CMD not started", f"{p.returncode} {p.stderr}"
    yield before == node.board(0)["limit_mw"] == V100, "bad input changed nothing", ""
    p = node.run("underwatt", "run", "--cap", "290", "--gpus", "0", "--", "/nowhere/at-all")
    yield p.returncode == 127 and node.board(0)["limit_mw"] == V100, "no such CMD: 127, the original is back", p.stderr
    p = node.run("underwatt", "run", "--goal", "time", "--gpus", "0", "--", "sh", "-c", "kill -9 $$")
    yield p.returncode == 137 and node.board(0)["limit_mw"] == V100, "CMD killed: 137", p.stderr


def uncapped(said):
    """Others have kept the actuator or its keeper from running for so long that the one took the other for dead."""
    return "silent for" in str(said) or "the keeper does not answer" in str(said)


def results(name, case, *args):
    """All that a case finds, in the best of three; one that breaks off is a failure, too."""
    began = time.monotonic()
    for _ in range(3):
        found = []
        try:
            for one in case(*args):
                found.append(one)
        except (KeyError, TypeError, OSError, RuntimeError, subprocess.SubprocessError) as e:
            found.append((False, f"{name}: broke off", repr(e)))
        if not any(good is not None and not good and uncapped(why) for good, _, why in found):
            break
        print(f"# {name}: the actuator or its keeper was taken for dead: once more", flush=True)
    print(f"# {name}: {time.monotonic() - began:.0f} s", flush=True)
    return found


def main():
    t = uwtest.Tap()
    only = sys.argv[1:]
    with uwtest.Node(machine=MACHINE, speed=SPEED) as node, \
            uwtest.Node(machine=MACHINE, speed=min(SPEED, 10)) as slow:  # noise grows with the speed
        cases = {    # the longest first
            "oracle2": (searched, slow, 1, "v100", "vgg19", "energy", 700),
            "oracle3": (searched, slow, 24, "rtx6000", "inception4", "eds:2", 700),
            "changes_load": (changes_load, node, 3),
            "unseen": (unseen, slow, 25),
            "oracle1": (searched, slow, 0, "v100", "resnet50", "edp", 1100),
            "changes": (changes, node, 4),
            "several": (several_boards, slow, [7, 8]),
            "silent-goal": (silent, node, 5, "--goal", "edp"),
            "silent-bound": (silent, node, 23),
            "silent-cap": (silent, node, 6, "--cap", "210"),
            "fixed": (fixed, node, 9),
            "lost": (fault, node, [10, 11], "lost", "found", ["lost"]),
            "hang": (fault, node, [12, 13], "hang", "release", ["a call hangs"]),
            "refuse": (refused, node, [14, 15]),
            "refuse-end": (refused_end, node, 22),
            "hang-end": (hang_end, node, 2),
            "limit": (other_writer, node, [16, 17]),
            "stuck": (fault, node, [18, 19], "stuck", "unstuck", ["stuck"]),
            "reload": (reload_driver,),
            "killed": (killed,),
            "stopped": (stopped, slow, 6),
            "two": (two_at_once, node, 20),
            "foreign": (foreign, node, 21),
            "no_right": (no_right,),
            "bad_input": (bad_input, node),
        }
        smoke = {"oracle1", "silent-cap", "fixed", "hang", "refuse-end", "hang-end", "killed", "stopped", "two", "foreign",
                 "no_right", "bad_input"}
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            jobs = [pool.submit(results, name, *c) for name, c in cases.items()
                    if (name in only if only else uwtest.SOAK or name in smoke)]
            for job in jobs:
                for good, name, why in job.result():
                    if good is None:
                        t.skip(name, why)
                    else:
                        t.ok(good, name, why)
        print(f"# {time.monotonic() - begin:.0f} s", flush=True)
    t.done()


if __name__ == "__main__":
    main()
