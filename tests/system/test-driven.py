#!/usr/bin/python3
"""Driven jobs: a program's own loop moves simulated boards, by underwatt.testing.SimLoad."""
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import uwtest

sys.path.insert(0, str(uwtest.TOP / "python"))
from underwatt.testing import SimError, SimLoad  # noqa: E402

t = uwtest.Tap()
CAPS_W = (700, 500, 300, 200)
GAP_W = {"h100": 175.0}    # of resnet50: docs/machine-file.md, "Workloads"

# A rank: a grant for each line, which waits until it is done.
RANK = """
import sys
from underwatt.testing import SimLoad
with SimLoad(boards=[int(sys.argv[1])]) as load:
    print("ready", flush=True)
    for line in sys.stdin:
        done = load.step(int(line)).wait()
        print(done.at_ns, done.steps, done.waited_s, flush=True)
"""


def steady(board, workload="resnet50", steps=782):
    """Cap in watts -> seconds and joules of a step."""
    p = subprocess.run([uwtest.program("underwatt"), "sweep", "--sim", board, "--workload", workload, "--json", "-"],
                       capture_output=True, text=True, check=True)
    return {round(point["cap_mw"] / 1000): (point["time_s"] / steps, point["energy_j"] / steps)
            for point in json.loads(p.stdout)["points"]}


def python(node, code, *args, **kw):
    return node.popen("/usr/bin/python3", "-c", code, *args, env={"PYTHONPATH": uwtest.TOP / "python"}, **kw)


def refused(name, says, call):
    try:
        call()
        t.ok(False, name, "nothing was raised")
    except (SimError, ValueError) as e:
        t.ok(says in str(e) and "\n" not in str(e), name, e)


def bad_input(node):
    env = os.environ.pop("UNDERWATT_SIM_STATE", None)
    refused("outside of a node", "UNDERWATT_SIM_STATE is not set", SimLoad)
    refused("a node that is not there", "/nowhere", lambda: SimLoad(state="/nowhere"))
    refused("no such workload", "'gpt9' is none of", lambda: SimLoad("gpt9", state=node.state))
    refused("a workload without steps", "'none' has no steps", lambda: SimLoad("none", state=node.state))
    refused("no such board", "outside 0..1", lambda: SimLoad(boards=[2], state=node.state))
    refused("no boards", "at least one", lambda: SimLoad(boards=[], state=node.state))
    refused("two words", "is not one word", lambda: SimLoad("a b", state=node.state))
    with SimLoad(boards=[1], state=node.state) as load:
        refused("a board that has a job, by its number", "board 1 already has a job", lambda: SimLoad(boards=[1], state=node.state))
        refused("… in any place of the list", "board 1 already has a job", lambda: SimLoad(boards=[1, 0], state=node.state))
        refused("no such phase", "'sleep' is none of", lambda: load.phase("sleep", seconds=1))
        refused("no steps", "give steps, 1..100000000", lambda: load.step(0))
        refused("half a step", "not 0.5", lambda: load.step(0.5))
        refused("a step and a half", "not 1.5", lambda: load.step(1.5))
        refused("steps of a load", "give seconds", lambda: load.phase("load", steps=1))
        refused("seconds of training", "give steps", lambda: load.phase("train", steps=1, seconds=1))
    refused("a job that was closed", "is closed", load.step)
    t.ok(uwtest.wait_for(lambda: node.status()["jobs"] == 0), "and no job is left")
    if env is not None:
        os.environ["UNDERWATT_SIM_STATE"] = env


def medians(marks, steps):
    """Seconds and joules of a step, between answers that follow one another."""
    pairs = list(zip(marks, marks[1:]))
    return (statistics.median((b.at_ns - a.at_ns) * 1e-9 / steps for a, b in pairs),
            statistics.median((b.energy_j - a.energy_j) / steps for a, b in pairs))


def caps(node, curve):
    """A loop that is never late for long: the steady step at each cap."""
    with SimLoad(boards=[0], state=node.state) as load:
        for cap in CAPS_W:
            node.fault("0", "limit", f"{cap}W")
            load.step(2000).wait()    # the board warms up
            marks = []
            for _ in range(14):
                load.step(100)
                if load.last is not None and (not marks or load.last is not marks[-1]):
                    marks.append(load.last)
            load.wait()
            s, j = medians(marks[1:], 100)
            want_s, want_j = curve[cap]
            t.near(s / want_s, 1, 0.02, f"{cap} W: {s * 1e3:.1f} ms a step, the steady step's time")
            t.near(j / want_j, 1, 0.02, f"{cap} W: {j:.1f} J a step, its energy")


def slow_host(node, curve):
    want_s, want_j = curve[500]
    node.fault("0", "limit", "500W")
    with SimLoad(boards=[0], state=node.state) as load:
        load.step(3000).wait()
        first = load.last
        for _ in range(10):
            time.sleep(2 * 50 * want_s / load.speed)
            load.step(50).wait()
        last = load.last
    steps = last.steps - first.steps
    period = (last.at_ns - first.at_ns) * 1e-9 / steps
    waited = (last.waited_s - first.waited_s) / steps
    t.ok(period > 2.98 * want_s, f"a host three times slower: {period / want_s:.2f} times a step's time")
    t.near((period - waited) / want_s, 1, 0.02, "… of which a step takes as long as ever")
    j = (last.energy_j - first.energy_j) / steps - waited * GAP_W["h100"]
    t.near(j / want_j, 1, 0.02, f"… and as much, the boards' wait at {GAP_W['h100']} W aside: {j:.1f} J")


def no_steps(node):
    with SimLoad(boards=[1], state=node.state) as load:
        t.equal(node.board(1)["pids"], [os.getpid()], "a process that drives holds its board")
        load.phase("load", seconds=1).wait()
        first, before = load.last, node.board(1)
        time.sleep(0.2)
        b = node.board(1)
        w = (b["true_j"] - before["true_j"]) / ((b["at_ns"] - before["at_ns"]) * 1e-9)
        t.near(w, GAP_W["h100"], 3, "no steps, no step's energy: it waits")
        t.ok(b["util_gpu"] == 0 and load.wait() is first, "… and computes nothing")
    t.ok(uwtest.wait_for(lambda: node.status()["jobs"] == 0), "it lets go")
    t.equal(node.board(1)["pids"], [], "of its board")


def answers(node):
    """At the speed of real time: when an answer comes, and that the time in it is exact."""
    with SimLoad(boards=[0], state=node.state) as load:
        marks = []
        for _ in range(100):
            grant = load.phase("load", seconds=0.02)
            if load.last is not None and (not marks or load.last is not marks[-1]):
                marks.append(load.last)
        grant.wait()
        t.ok(grant.done and load.last.number == 100, "each grant is answered once, in order")
        t.equal({b.at_ns - a.at_ns for a, b in zip(marks, marks[1:]) if b.waited_s == a.waited_s}, {20000000},
                "… with the time at which it was done, to the nanosecond")
        late = sorted(m.late_s for m in marks)
        p95 = late[int(len(late) * 0.95)]
        t.ok(0 <= late[0] and p95 < 0.5, f"the answer comes at once: half of them within "
             f"{late[len(late) // 2] * 1e3:.2f} ms, 95 % within {p95 * 1e3:.2f} ms")
        first, second = load.step(10), load.step(1000)
        t.ok(not second.done, "a grant returns while the boards do it")
        load.step(1)
        t.ok(first.done and not second.done, "a third waits for the first")
        load.close()


def killed(node):
    """Whoever is killed has no load any more, whatever children it had."""
    code = ("import os, sys, time\nfrom underwatt.testing import SimLoad\nload = SimLoad(boards=[0])\n"
            "load.step(10 ** 8)\nif os.fork() == 0:\n    print(os.getpid(), flush=True)\n    time.sleep(1000)\n"
            "time.sleep(1000)\n")
    p = python(node, code)
    child = int(p.stdout.readline())
    t.ok(uwtest.wait_for(lambda: node.board(0)["util_gpu"] > 0), "it computes")
    os.kill(p.pid, signal.SIGSTOP)
    time.sleep(0.3)
    t.ok(node.board(0)["util_gpu"] > 0, "stopped, its board does what was granted")
    os.kill(p.pid, signal.SIGKILL)
    t.ok(uwtest.wait_for(lambda: node.status()["jobs"] == 0) and uwtest.alive(child),
         "killed, its load ends, though a child of it lives on")
    b = node.board(0)
    t.ok(b["util_gpu"] == 0 and b["pids"] == [], "… and it is gone from its board", b)
    os.kill(child, signal.SIGKILL)


def ranks(node, curve):
    """Two processes that wait for one another after each grant, as in an all-reduce."""
    node.fault("0", "limit", "700W")
    node.fault("1", "limit", "200W")
    both = [python(node, RANK, i, stdin=subprocess.PIPE) for i in range(2)]
    said = [p.stdout.readline() for p in both]
    t.equal(said, ["ready\n"] * 2, "two ranks")
    t.equal([b["pids"] for b in node.status()["boards"]], [[p.pid] for p in both], "each on its board")
    rows = []
    for _ in range(10):
        for p in both:
            p.stdin.write("100\n")
            p.stdin.flush()
        rows.append([p.stdout.readline().split() for p in both])
    slow, fast = curve[200][0], curve[700][0]
    (fast_s, fast_waits), (whole, _) = (((int(rows[-1][i][0]) - int(rows[0][i][0])) * 1e-9 / 900,
                                         (float(rows[-1][i][2]) - float(rows[0][i][2])) / 900) for i in range(2))
    t.ok(whole > 0.98 * slow and rows[-1][0][1] == rows[-1][1][1] == "1000",
         f"they go together at the slower one's pace: {whole * 1e3:.1f} ms a step", rows)
    t.near((fast_s - fast_waits) / fast, 1, 0.03, "… and the other's board waits meanwhile")
    for p in both:
        p.stdin.close()
        t.equal(p.wait(timeout=uwtest.PATIENCE), 0, "a rank ends")


def clock(node):
    with SimLoad(boards=[0, 1], state=node.state) as load:
        t.equal(load.speed, 200.0, "the node's speed")
        began = time.monotonic()
        load.phase("checkpoint", seconds=60).wait()
        took = time.monotonic() - began
        t.ok(took >= 0.999 * 60 / 200, f"a minute of a node at 200 times: {took:.2f} s, never early")
        t.ok(abs(load.now_ns() - node.board(0)["at_ns"]) < 200 * 60e9, "its clock is the node's")


def attribution(node):
    """The daemon finds the process on its board, and books the energy to it."""
    daemon = node.daemon()
    with SimLoad(boards=[1], state=node.state) as load:
        load.step(10 ** 6)

        def job():
            jobs = [j for j in daemon.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"]]
            return jobs and jobs[0]
        t.ok(uwtest.wait_for(job), "the daemon finds the job", daemon.log())
        found = uwtest.wait_until(job, lambda j: j and (j.get("energy_j") or 0) > 500)
        t.ok(found and (found.get("energy_j") or 0) > 500 and found["gpus"] == [1],
             "… and what it takes is its own", json.dumps(found))
        load.close()


def ends(node):
    load = SimLoad(boards=[0], state=node.state)
    grant = load.step(10 ** 6)
    node.sim("stop")
    refused("a node that stops", "has stopped", grant.wait)


def main():
    curve = steady("h100")
    with uwtest.Node(board="h100", count=2, speed=200) as node:
        bad_input(node)
        caps(node, curve)
        slow_host(node, curve)
        ranks(node, curve)
        clock(node)
    with uwtest.Node(board="h100", count=2) as node:
        no_steps(node)
        answers(node)
        killed(node)
        attribution(node)
        ends(node)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
