#!/usr/bin/python3
"""Optimizer in one process, on driven simulated boards: a search to its end, caps that come back however the program ends,
selectors, a daemon that is away, and what is refused before anything begins.
"""
import signal
import subprocess
import sys

import pyuser
import uwtest

SPEED = 20
AT_ONCE_S = 5   # what asks no daemon: who waits for its answer waits for 10 s; microseconds as a rule

# Steps until the line "end" comes; a line a change of the search's state.
LOOP = r"""
import select, sys, time
import underwatt
from underwatt.testing import SimLoad

class Low(underwatt.Selector):
    def select(self, curve):
        print("curve", len(curve), flush=True)
        return curve[0].cap_w - 50

class Wrong(underwatt.Selector):
    def __init__(self, value):
        self.value = value
    def select(self, curve):
        print("asked", flush=True)
        return 1 / 0 if self.value == "raises" else float(self.value)

def goal(text):
    return {"low": Low}.get(text, lambda: text)() if not text.startswith("wrong:") else Wrong(text[6:])

board = int(sys.argv[2])
load = SimLoad("resnet50", boards=[board])
before = load.step().wait().energy_j
with load, underwatt.Optimizer(goal(sys.argv[1]), gpus=[board], name="loop") as optimizer:
    print("job", optimizer.job, flush=True)
    held, seen = False, ""
    while not select.select([sys.stdin], [], [], 0)[0]:
        load.step(10)
        for _ in range(10):
            optimizer.step()
        status = optimizer.status
        if status.text != seen or (status.saved is not None) != held:
            seen, held = status.text, status.saved is not None
            optimizer.epoch()
            if held:
                print("saved", flush=True)
            print("status", status.status, status.cap_w, status.best_w, status.text, flush=True)
    word = sys.stdin.readline().strip()
    if word == "raise":
        raise KeyError("asked for")
    if word == "twice":
        try:
            underwatt.Optimizer()
        except underwatt.UnderwattError as e:
            print("refused", e, flush=True)
        until = time.monotonic() + 60
        sure = lambda s: s.saved is not None and s.saved_half < 0.5
        while not sure(optimizer.status) and time.monotonic() < until:
            load.step(10).wait()
            for _ in range(10):
                optimizer.step()
    done = load.wait()
    status, energy, curve = optimizer.status, optimizer.energy(), optimizer.curve()
    print("end", status.saved, status.saved_half, status.steps, energy.energy_j, energy.half_j, done.energy_j - before, flush=True)
    for p in curve:
        print("point", p.cap_w, p.step_s, p.step_j, flush=True)
"""


# What a daemon that hangs costs: the longest step, epoch() and status, in seconds.
HANGS = r"""
import sys, time
import underwatt

def took(call):
    began = time.monotonic()
    result = call()
    return time.monotonic() - began, result

optimizer = underwatt.Optimizer("edp", gpus=[0])
print("ready", flush=True)
sys.stdin.readline()
asked, status = took(lambda: optimizer.status)
again = took(lambda: optimizer.status)[0]
steps = max(took(optimizer.step)[0] for _ in range(1000))
print(asked, again, took(optimizer.epoch)[0], steps, status.status, flush=True)
sys.stdin.readline()
print(took(optimizer.close)[0], flush=True)
"""


# As a callback has it: end() is not called where fit() raises.
FAILS = r"""
import underwatt
from underwatt._training import Recorder

first, second = Recorder("edp", {"gpus": [0]}), Recorder("edp", {"gpus": [0]})
first.begin()
job = first._optimizer.job
second.begin()
print(job, second._optimizer.job, first.running, second.running, flush=True)
second.end()
with underwatt.Optimizer("edp", gpus=[0]):
    third = Recorder("edp", {"gpus": [7]})
    third.begin()
    third.step()
    print(third.running and third._optimizer is None, flush=True)
    third.end()
try:
    Recorder("best")
except underwatt.UnderwattError as e:
    print(type(e).__name__, flush=True)
"""


# A steady load that begins 10 s after its job: what is booked, each time that it is more, and the true power.  No cap is moved.
BOOKED = r"""
import time
import underwatt
from underwatt.testing import SimLoad

with underwatt.Optimizer("edp") as optimizer:
    optimizer._job.goal(None)
    time.sleep(0.5)
    began = time.monotonic()
    load = SimLoad("resnet50", boards=[2, 3])
    grants = load.step(10), load.step(100), load.step(10**6)  # without a gap
    first = grants[0].wait()
    began_s = time.monotonic() - began
    second = grants[1].wait()
    print((second.energy_j - first.energy_j) / (second.at_ns - first.at_ns) * 1e9, began_s, flush=True)
    before, until = optimizer.energy(), time.monotonic() + 60
    print(before.time_s, flush=True)
    for _ in range(4):
        energy = before
        while energy.time_s == before.time_s and time.monotonic() < until:
            time.sleep(0.02)
            energy = optimizer.energy()
        print(energy.energy_j, energy.time_s, energy.power_w, flush=True)
        before = energy
    load.close()
"""


# A child that is forked while another thread is in the library: what it sees of its parent's Optimizer.
FORKS = r"""
import os, threading, time
import underwatt

optimizer = underwatt.Optimizer("edp", gpus=[0])
held, go = threading.Event(), threading.Event()

def holds():
    with optimizer._node.lock, optimizer._lock:
        held.set()
        go.wait()

threading.Thread(target=holds).start()
held.wait()
if os.fork() == 0:
    said = [optimizer.job, optimizer.status.status]
    for ask in (optimizer.curve, optimizer.energy):
        try:
            ask()
        except underwatt.UnderwattError as e:
            said.append("forked" in str(e))
    optimizer.epoch()
    optimizer._node.close()
    optimizer.close()
    print(*said, flush=True)
    os._exit(0)
status = os.wait()[1]
go.set()
with optimizer:
    print(status, optimizer.status.status != "unknown", flush=True)
"""


class Loop:
    """A program of LOOP."""

    def __init__(self, node, goal, board=0):
        self.board = board
        self.child = pyuser.begun_in_world(node, LOOP, goal, board, stdin=subprocess.PIPE)
        self.lines = []

    def until(self, *words, n=400):
        """Reads to the line that begins so; its words."""
        for _ in range(n):
            line = self.child.stdout.readline()
            if not line:
                break
            self.lines.append(line.strip())
            if line.split()[:len(words)] == list(words):
                return line.split()
        return []

    def end(self, word="end"):
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()
        out, err = self.child.communicate(timeout=60)
        self.lines += out.splitlines()
        return self.child.returncode, err


def limit(node, board=0):
    return node.board(board)["limit_mw"]


def back(t, node, original, what, board=0):
    t.ok(uwtest.wait_for(lambda: limit(node, board) == original, 60), f"{what}: the original cap is back", limit(node, board))


def searches(t, node, d, loop, original):
    number = int((loop.until("job") or ["", "0"])[1])
    job = d.ask("GET", f"/v1/jobs/{number}")[1]
    t.equal((job.get("name"), job.get("gpus")), ("loop", [0]), "the job as the daemon knows it")
    held = loop.until("status", "holds")
    t.ok(held and uwtest.wait_for(lambda: limit(node) == float(held[2]) * 1000), "the cap that the search holds is in force", loop.lines)
    loop.until("saved")
    restarts(t, node, d, loop, number, original)
    status, err = loop.end("twice")
    t.ok(status == 0 and "Traceback" not in err and err.count("informed later") <= 1, "the program ends, with one warning at most", err)
    t.ok(any("refused" in line and "already" in line for line in loop.lines), "a second Optimizer is refused", loop.lines[-12:])
    end = next((line.split() for line in loop.lines if line.startswith("end")), None)
    points = {float(w[1]): (float(w[2]), float(w[3])) for w in map(str.split, loop.lines) if w[0] == "point"}
    if t.ok(end is not None and len(points) >= 3, "curve and energy", loop.lines[-12:]):
        saved, half, booked, booked_half, true = (float(end[i]) for i in (1, 2, 4, 5, 6))
        t.ok(0.05 < saved < 0.4 and half < 0.5, f"what is saved: {saved:.3f} ± {half:.3f}")
        top = max(points)
        best = float(held[2])
        # A busy host's delays are 20 times as long in the node's time; energy x time of the cap held is the simulations' to judge.
        t.ok(top == original / 1000 and points[best][1] < 0.95 * points[top][1], "less energy a step at the cap held than at the original", points)
        j = uwtest.wait_until(lambda: d.ask("GET", f"/v1/jobs/{number}")[1], lambda j: j["settled"])
        t.ok(abs(j["energy_j"] - true) < 0.1 * true, f"energy: {j['energy_j']:.0f} J ± {j['half_j']:.0f} J, {true:.0f} J by the plant")
        t.ok(0.5 * true < booked <= j["energy_j"] + booked_half, f"{booked:.0f} J ± {booked_half:.0f} J so far, shortly before the end")
    back(t, node, original, "its end")
    t.ok(uwtest.wait_for(lambda: not d.ask("GET", f"/v1/jobs/{number}")[1]["running"]), "the job has ended")


def restarts(t, node, d, loop, number, original):
    """Kill -9 of the daemon: the job goes on, the cap comes back, steps are seen."""
    d.child.kill()
    d.child.wait()
    steps = d.start() or 0
    look = lambda: d.ask("GET", f"/v1/jobs/{number}")[1]
    j = uwtest.wait_until(look, lambda j: j.get("steps", 0) > 50 and j["search"]["status"] == "holds")
    t.ok(j.get("running") and j["search"]["page"] and j["steps"] > 50, "a daemon that was restarted has the job and its steps", f"{steps} {j}")
    t.ok(uwtest.wait_for(lambda: limit(node) < original), "and the cap", limit(node))


def chooses(t, node, d, loop, original):
    """What a selector chooses is held."""
    held = loop.until("status", "holds", str(original / 1000 - 50))
    t.ok(held and "curve" in "".join(loop.lines), "a selector sees the curve and chooses", loop.lines)
    t.ok(uwtest.wait_for(lambda: limit(node, loop.board) == original - 50000), "its cap is in force", limit(node, loop.board))
    status, err = loop.end()
    t.ok(status == 0 and not err, "and ends with the program", err)
    back(t, node, original, "selector", loop.board)


def chooses_wrong(t, node, d, loop, word):
    """What is no cap harms nothing."""
    number = int((loop.until("job") or ["", "0"])[1])
    loop.until("asked")
    # The search may have gone on since: what it holds now, it holds on the board.
    held = lambda: d.ask("GET", f"/v1/jobs/{number}")[1]["search"]["details"]["held_mw"]
    t.ok(uwtest.wait_for(lambda: held() == limit(node, loop.board) < 300000), f"a selector's {word}: the daemon's cap",
         (loop.lines, held(), limit(node, loop.board)))
    status, err = loop.end()
    t.ok(status == 0 and err.count("the daemon's own cap stays") == 1 and word in err, f"a selector's {word}: one warning", err)


def ends(t, node, original):
    for what, word in (("an exception", "raise"), ("kill -9", None)):
        loop = Loop(node, "edp", 3)
        t.ok(loop.until("status", "walks") and uwtest.wait_for(lambda: limit(node, 3) < original), f"{what}: a cap is in force", loop.lines)
        if word:
            status, err = loop.end(word)
            t.ok(status == 1 and "KeyError" in err, f"{what}: the program's own", err)
        else:
            loop.child.send_signal(signal.SIGKILL)
            loop.child.wait(20)
        back(t, node, original, what, 3)


def refused(t, node):
    code = """
import underwatt
from underwatt import goals
for make in (lambda: underwatt.Optimizer("best"), lambda: underwatt.Optimizer("slowdown:0.5"), lambda: goals.Cost(2),
             lambda: underwatt.Optimizer(7), lambda: underwatt.Optimizer(""), lambda: goals.Slowdown("1.05"), lambda: goals.Cost("x"),
             lambda: goals.Slowdown(None), lambda: goals.Eds([2]), lambda: goals.Eds(float("nan"))):
    try:
        make()
    except underwatt.InvalidValue as e:
        print(e)
print([str(g) for g in (goals.Energy(), goals.Edp(), goals.Eds(3), goals.Cost(), goals.Slowdown(1.05), goals.Time())])
"""
    p = pyuser.in_world(node, code)
    lines = p.stdout.splitlines()
    t.ok(p.returncode == 0 and len(lines) == 11 and "none of energy, edp" in lines[0] and "1..2" in lines[1] and "0..1" in lines[2],
         "goals that are none", p.stdout + p.stderr)
    named = (("slowdown", '"1.05"', "1..2"), ("cost", '"x"', "0..1"), ("slowdown", "None", "1..2"), ("eds", "[2]", "1..1000"), ("eds", "nan", "1..1000"))
    t.ok(all(word in line for line, words in zip(lines[5:10], named) for word in words), "parameters that are no numbers: goal, value and range", lines[5:])
    t.equal(lines[-1:], ["['energy', 'edp', 'eds:3', 'cost:0.5', 'slowdown:1.05', 'time']"], "goals as objects")
    p = pyuser.in_world(node, "import underwatt; underwatt.Optimizer()")
    t.ok("NotSupported" in p.stderr and "underwatt-start" in p.stderr, "no daemon: what starts one", p.stderr)


def fails(t, node):
    """Of a training that failed, the next one ends what is left; a callback's training is stopped by nothing of Underwatt."""
    p = pyuser.in_world(node, FAILS)
    words = p.stdout.split()
    if not t.ok(p.returncode == 0 and len(words) == 6, "trainings of which two fail", p.stdout + p.stderr):
        return
    t.ok(words[0] != words[1] != "0" and words[2:4] == ["False", "True"], "the next training ends the first, and has a job of its own", words)
    t.equal(words[4:], ["True", "InvalidValue"], "beside the program's own Optimizer, and with wrong boards, one goes on; no goal: said at once")
    t.ok(p.stderr.count("RuntimeWarning: underwatt") == 2 and "has an Optimizer already" in p.stderr and "7 is not a board" in p.stderr,
         "a warning each", p.stderr)


def booked(t, node):
    """Energy, time and power of a job are of one span, whenever they are asked for."""
    p = pyuser.in_world(node, BOOKED)
    lines = [[float(word) for word in line.split()] for line in p.stdout.splitlines()]
    if not t.ok(p.returncode == 0 and len(lines) == 6, "a job without a board, then with a load", p.stdout + p.stderr):
        return
    (true_w, began_s), _, *rows = lines
    # The boards are the job's before its first step, which a busy machine delays: they are idle until then.
    idle_j = true_w * began_s * SPEED
    t.ok(all(abs(w * s / j - 1) < 0.001 and -0.06 * j < true_w * s - j < 0.06 * j + idle_j for j, s, w in rows),
         f"power of what is booked: {rows[-1][2]:.0f} W, true {true_w:.0f} W (simulated), {began_s:.2f} s before the first steps", rows)
    (j0, s0, _), (j1, s1, _) = rows[0], rows[-1]
    t.near((j1 - j0) / (s1 - s0) / true_w, 1, 0.05, f"… and between bookings: {j1 - j0:.0f} J in {s1 - s0:.1f} s")


def forks(t, node):
    p = pyuser.in_world(node, FORKS)
    t.equal(p.stdout.splitlines(), ["0 unknown True True", "0 True"], "a forked child waits for no lock of its parent, whose Optimizer goes on" + p.stderr)


def hangs(t):
    with uwtest.Node(board="v100", count=1) as node:
        d = node.daemon()
        child = pyuser.begun_in_world(node, HANGS, stdin=subprocess.PIPE)
        t.equal(child.stdout.readline(), "ready\n", "a daemon that hangs")
        d.child.send_signal(signal.SIGSTOP)
        try:
            child.stdin.write("\n")
            child.stdin.flush()
            words = child.stdout.readline().split() or ["99"] * 4 + ["", ""]
            asked, again, epoch, step = map(float, words[:4])
            t.ok(asked < 25 and again < AT_ONCE_S and words[4] == "unknown", f"what asks it takes {asked:.1f} s, then {again:.3f} s", words)
            t.ok(epoch < AT_ONCE_S and step < AT_ONCE_S, f"step() and epoch() take {step:.6f} s, {epoch:.6f} s at most", words)
        finally:
            d.child.send_signal(signal.SIGCONT)
        out, err = child.communicate("\n", timeout=60)
        t.ok(child.returncode == 0 and float(out or 99) < 25, "it ends", out + err)
        t.ok(uwtest.wait_for(lambda: not any(j["running"] and j["source"] == "run" for j in d.ask("GET", "/v1/jobs")[1]["jobs"])), "and the job", out)


def programs(t):
    with uwtest.Node(board="v100", count=4, speed=SPEED) as node:
        refused(t, node)
        d = node.daemon()
        original = limit(node)
        fails(t, node)
        forks(t, node)
        booked(t, node)
        loop, low, nan, raises = (Loop(node, goal, i) for i, goal in enumerate(("edp", "low", "wrong:nan", "wrong:raises")))
        chooses_wrong(t, node, d, nan, "nan")
        chooses_wrong(t, node, d, raises, "ZeroDivisionError")
        chooses(t, node, d, low, original)
        searches(t, node, d, loop, original)
        ends(t, node, original)


def main():
    t = uwtest.Tap()
    uwtest.together(lambda: programs(t), lambda: hangs(t))
    t.done()


if __name__ == "__main__":
    main()
