#!/usr/bin/python3
"""Optimizer in one process, on driven simulated boards: a search to its end, caps that come back however the program ends,
selectors, a daemon that is away, and what is refused before anything begins.
"""
import os
import signal
import subprocess
import sys

import pyuser
import uwtest

SPEED = 20

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
        return 1 / 0 if self.value == "raises" else float(self.value)

def goal(text):
    return {"low": Low}.get(text, lambda: text)() if not text.startswith("wrong:") else Wrong(text[6:])

with SimLoad("resnet50", boards=[0]) as load, underwatt.Optimizer(goal(sys.argv[1]), gpus=[0], name="loop") as optimizer:
    print("job", optimizer.job, flush=True)
    held, seen = False, ""
    while not select.select([sys.stdin], [], [], 0)[0]:
        load.step(10)
        for _ in range(10):
            optimizer.step()
        status = optimizer.status
        if status.text != seen or (status.saved is not None) != held:
            seen, held = status.text, status.saved is not None
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
    done = load.wait()
    status, energy, curve = optimizer.status, optimizer.energy(), optimizer.curve()
    print("end", status.saved, status.saved_half, status.steps, energy.energy_j, energy.half_j, done.energy_j, flush=True)
    for p in curve:
        print("point", p.cap_w, p.step_s, p.step_j, flush=True)
"""


class Loop:
    """A program of LOOP."""

    def __init__(self, node, goal):
        self.child = pyuser.begun_in_world(node, LOOP, goal, stdin=subprocess.PIPE)
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


def limit(node):
    return node.board(0)["limit_mw"]


def back(t, node, original, what):
    t.ok(uwtest.wait_for(lambda: limit(node) == original, 60), f"{what}: the original cap is back", limit(node))


def searches(t, node, d, original):
    loop = Loop(node, "edp")
    number = int((loop.until("job") or ["", "0"])[1])
    job = d.ask("GET", f"/v1/jobs/{number}")[1]
    t.equal((job.get("name"), job.get("gpus")), ("loop", [0]), "the job as the daemon knows it")
    held = loop.until("status", "holds")
    t.ok(held and uwtest.wait_for(lambda: limit(node) == float(held[2]) * 1000), "the cap that the search holds is in force", loop.lines)
    loop.until("saved")
    status, err = loop.end("twice")
    t.ok(status == 0 and not err, "the program ends", err)
    t.ok(any("refused" in line and "already" in line for line in loop.lines), "a second Optimizer is refused", loop.lines[-12:])
    end = next((line.split() for line in loop.lines if line.startswith("end")), None)
    points = {float(w[1]): (float(w[2]), float(w[3])) for w in map(str.split, loop.lines) if w[0] == "point"}
    if t.ok(end is not None and len(points) >= 3, "curve and energy", loop.lines[-12:]):
        saved, half, booked, booked_half, true = (float(end[i]) for i in (1, 2, 4, 5, 6))
        t.ok(0.1 < saved < 0.4 and half < 0.1, f"what is saved: {saved} ± {half}")
        top = max(points)
        best = float(held[2])
        t.ok(top == original / 1000 and points[best][0] * points[best][1] < 0.95 * points[top][0] * points[top][1],
             "less energy x time at the cap held than at the original", points)
        t.ok(abs(booked - true) < 0.1 * true, f"energy: {booked:.0f} J ± {booked_half:.0f} J booked, {true:.0f} J by the plant")
    back(t, node, original, "its end")
    t.ok(uwtest.wait_for(lambda: not d.ask("GET", f"/v1/jobs/{number}")[1]["running"]), "the job has ended")


def ends(t, node, original):
    for what, word in (("an exception", "raise"), ("kill -9", None)):
        loop = Loop(node, "edp")
        t.ok(loop.until("status", "walks") and uwtest.wait_for(lambda: limit(node) < original), f"{what}: a cap is in force", loop.lines)
        if word:
            status, err = loop.end(word)
            t.ok(status == 1 and "KeyError" in err, f"{what}: the program's own", err)
        else:
            loop.child.send_signal(signal.SIGKILL)
            loop.child.wait(20)
        back(t, node, original, what)


def refused(t, node):
    code = """
import underwatt
from underwatt import goals
for make in (lambda: underwatt.Optimizer("best"), lambda: underwatt.Optimizer("slowdown:0.5"), lambda: goals.Cost(2),
             lambda: underwatt.Optimizer(7), lambda: underwatt.Optimizer("")):
    try:
        make()
    except underwatt.InvalidValue as e:
        print(e)
print([str(g) for g in (goals.Energy(), goals.Edp(), goals.Eds(3), goals.Cost(), goals.Slowdown(1.05), goals.Time())])
"""
    p = pyuser.in_world(node, code)
    lines = p.stdout.splitlines()
    t.ok(p.returncode == 0 and len(lines) == 6 and "none of energy, edp" in lines[0] and "1..100" in lines[1] and "0..1" in lines[2],
         "goals that are none", p.stdout + p.stderr)
    t.equal(lines[-1:], ["['energy', 'edp', 'eds:3', 'cost:0.5', 'slowdown:1.05', 'time']"], "goals as objects")
    p = pyuser.in_world(node, "import underwatt; underwatt.Optimizer()")
    t.ok("NotSupported" in p.stderr and "underwatt-start" in p.stderr, "no daemon: what starts one", p.stderr)


def main():
    t = uwtest.Tap()
    with uwtest.Node(board="v100", count=1, speed=SPEED) as node:
        refused(t, node)
        d = node.daemon()
        original = limit(node)
        searches(t, node, d, original)
        ends(t, node, original)
    t.done()


if __name__ == "__main__":
    main()
