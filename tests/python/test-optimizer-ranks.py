#!/usr/bin/python3
"""Optimizers of several ranks, whatever launched them: one job a node, with the boards of all, as fast as the slowest; ranks that are
killed; ranks under `underwatt run`; two nodes.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import types

import pyuser
import uwtest

SPEED = 20

# A rank: it steps, and says what it sees, until a line comes.
RANK = r"""
import json, os, select, sys, time
import underwatt
from underwatt.testing import SimLoad

def asked(call, other):
    # a daemon that is away is no end
    try:
        return call()
    except underwatt.UnderwattError:
        return other

board, extra = int(sys.argv[1]), float(sys.argv[2])
with SimLoad("resnet50", boards=[board]) as load:
    load.step(1).wait()
    with underwatt.Optimizer("energy") as optimizer:
        print("job", optimizer.job, flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            load.step(5).wait()
            time.sleep(extra)
            for _ in range(5):
                optimizer.step()
            s = optimizer.status
            print(json.dumps({"steps": s.steps, "step_s": s.step_s, "status": s.status, "world": s.world_size, "here": s.local_world_size,
                              "note": s.note, "goal": s.goal, "energy": float(asked(optimizer.energy, 0)),
                              "true": load.last.energy_j, "curve": len(asked(optimizer.curve, ()))}), flush=True)
    print("closed", flush=True)
    sys.stdin.readline()
    sys.stdin.readline()
"""


# Ranks under `underwatt run`, told one after the other to close, or killed; a line for each state.
ENDING = r"""
import os, subprocess, sys

ONE = "import sys, underwatt\nwith underwatt.Optimizer('energy'):\n print(1, flush=True)\n sys.stdin.readline()\nprint(2, flush=True)\nsys.stdin.readline()"

def rank(i):
    env = {**os.environ, "RANK": str(i), "WORLD_SIZE": "2", "LOCAL_RANK": str(i), "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "29403"}
    p = subprocess.Popen([sys.executable, "-c", ONE], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    return p

def close(p):
    p.stdin.write("\n")
    p.stdin.flush()
    p.stdout.readline()

def told(state):
    print(state, flush=True)
    sys.stdin.readline()

a, b = rank(0), rank(1)
told("both")
close(a)
told("the first has closed")
close(b)
told("none")
a, b = rank(0), rank(1)
a.kill()
a.wait()
told("the first is killed")
close(b)
told("none")
"""
STATES = (("both", "energy"), ("the first has closed", "energy"), ("none", "time"), ("the first is killed", "energy"), ("none", "time"))

# A rank with a selector; the first holds its choice at once.
CHOSEN = r"""
import sys, time
import underwatt

class Mine(underwatt.Selector):
    goal = "edp"

board = int(sys.argv[1])
with underwatt.Optimizer(Mine(), gpus=[board]) as optimizer:
    if board == 0:
        optimizer._hold(250, 200, "Mine")
    print(optimizer.job, flush=True)
    while True:
        optimizer.epoch()
        time.sleep(0.2)
"""


class Rank:
    def __init__(self, node, board, extra=0.0, **env):
        self.child = pyuser.begun_in_world(node, RANK, board, extra, stdin=subprocess.PIPE, **env)
        words = self.child.stdout.readline().split()
        self.job = int(words[1]) if words[:1] == ["job"] else 0

    def seen(self):
        line = self.child.stdout.readline()
        return json.loads(line) if line.startswith("{") else {}

    def until(self, holds, n=600):
        """What it sees once holds(it), or what it sees last."""
        for _ in range(n):
            s = self.seen()
            if not s or holds(s):
                break
        return s

    def close(self):
        """The Optimizer's end; the process goes on."""
        self.child.stdin.write("\n")
        self.child.stdin.flush()
        for line in self.child.stdout:
            if line == "closed\n":
                return True
        return False


def places(rank, world, local, here, port=29400):
    """As torchrun has them."""
    return {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": here, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


def launchers(t):
    """What each launcher leaves in the environment."""
    from underwatt._ranks import ranks_of  # noqa: PLC0415

    torch = places(1, 4, 1, 2)
    text = lambda env: {k: str(v) for k, v in env.items()}
    a, b = ranks_of(text(torch)), ranks_of(text(places(0, 4, 0, 2)))
    t.ok((a.rank, a.world_size, a.local_rank, a.local_world_size) == (1, 4, 1, 2) and a.group and a.group == b.group, "torchrun: one group", (a, b))
    t.ok(ranks_of(text(places(0, 4, 0, 2, port=1))).group != a.group, "another port is another training")
    mpi = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    a = ranks_of({**mpi, "PMIX_NAMESPACE": "x"})
    t.ok((a.rank, a.local_rank) == (3, 1) and a.group != ranks_of({**mpi, "PMIX_NAMESPACE": "y"}).group, "mpirun", a)
    a = ranks_of({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"})
    t.ok((a.rank, a.world_size, a.local_rank, a.local_world_size) == (1, 2, 1, None) and a.group, "srun", a)
    alone = [ranks_of(env).group for env in ({}, text(places(0, 1, 0, 1)), text(places(1, 2, 0, 1)), {"RANK": "x", "WORLD_SIZE": "2"},
                                             {"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, {"RANK": "2", "WORLD_SIZE": "2"})]
    t.equal(alone, [""] * 6, "alone on its node, or no rank: no group")

    def destroyed():
        raise ValueError("Default process group has not been initialized")

    for what, has in (("being imported", {}), ("ended", {"is_initialized": lambda: True, "get_rank": destroyed, "get_world_size": destroyed})):
        sys.modules["torch.distributed"] = types.SimpleNamespace(is_available=lambda: True, **has)
        t.equal(ranks_of({}).world_size, 1, f"torch.distributed is {what}: no rank")
    del sys.modules["torch.distributed"]


WANTED = """
from underwatt import _training
from underwatt._monitor import Monitor
with Monitor(local=True) as m:
    print(_training._wanted(m, None))
"""


def measured(t, node):
    """Which boards a callback measures, by the launcher."""
    for name, env, wanted in (("torchrun", places(0, 1, 0, 1), [0]), ("no launcher", {}, [0, 1]), ("mpirun", {
            "OMPI_COMM_WORLD_RANK": 0, "OMPI_COMM_WORLD_SIZE": 1, "OMPI_COMM_WORLD_LOCAL_RANK": 0, "OMPI_COMM_WORLD_LOCAL_SIZE": 1}, [0])):
        p = pyuser.in_world(node, WANTED, **{k: str(v) for k, v in env.items()})
        t.equal(p.stdout.strip(), str(wanted), f"boards of a callback: {name}" + p.stderr)


def capped(t, node, d):
    """A job that `underwatt run` holds at a cap keeps that cap."""
    p = node.popen("underwatt", "run", "--cap", "250", "--gpus", "0", "--", sys.executable, "-c", RANK, 0, 0, stdin=subprocess.PIPE,
                   env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "PYTHONUNBUFFERED": "1"})
    t.ok(p.stdout.readline().startswith("job"), "under underwatt run --cap: the program runs")
    out, err = p.communicate("\n\n\n", timeout=60)
    t.ok(p.returncode == 0 and err.count("no cap is searched for") >= 1, "and a warning says that nothing is searched", err)


def job(d, number):
    return d.ask("GET", f"/v1/jobs/{number}")[1]


def limits(node):
    return [b["limit_mw"] for b in node.status()["boards"]]


def together(t, node, d):
    original = limits(node)
    ranks = [Rank(node, i, 0.1 * i, **places(i, 2, i, 2)) for i in (0, 1)]
    t.ok(ranks[0].job > 0 and ranks[1].job == ranks[0].job, "two ranks are one job", [r.child.poll() for r in ranks])
    number = ranks[0].job
    j = uwtest.wait_until(lambda: job(d, number), lambda j: j["gpus"] == [0, 1] and len(j["members"]) == 2)
    t.equal((j["gpus"], sorted(j["members"]), j["pid"]), ([0, 1], sorted(r.child.pid for r in ranks), ranks[0].child.pid),
            "with the boards and processes of both")
    # The slower one takes 0.1 s of real time, 2 s of the node's, for five steps more.
    s = ranks[1].until(lambda s: (s["step_s"] or 0) > 0.45 and s["curve"] >= 1 and s["energy"] > 0)
    t.ok(s.get("step_s") and 0.45 < s["step_s"] < 5, "its step takes as long as the slower one's", s)
    t.equal((s.get("world"), s.get("here"), s.get("note")), (2, 2, ""), "sizes, and no other node")
    if s and s["energy"] <= 1.3 * s["true"]:    # what is booked comes later
        s = ranks[1].until(lambda s: s["energy"] > 1.3 * s["true"])
    t.ok(s.get("energy", 0) > 1.3 * s.get("true", 0), "energy of both boards: more than its own board has taken", s)
    caps = []    # each board is written by itself
    s = ranks[1].until(lambda s: caps.append(limits(node)) or max(caps[-1]) < min(original))
    t.ok(max(caps[-1]) < min(original), "both boards are capped", (s, caps[-1]))
    d.child.kill()
    d.child.wait()
    d.start()
    j = uwtest.wait_until(lambda: job(d, number), lambda j: j.get("search") and j["search"]["page"] and j["steps"] > 0)
    t.equal((j.get("running"), sorted(j.get("members", [])), j.get("gpus")), (True, sorted(r.child.pid for r in ranks), [0, 1]),
            "a daemon that was restarted has the job, its ranks and boards")
    os.kill(ranks[0].child.pid, signal.SIGKILL)
    ranks[0].child.wait(20)
    j = uwtest.wait_until(lambda: job(d, number), lambda j: j["pid"] == ranks[1].child.pid)
    t.ok(j["running"] and j["pid"] == ranks[1].child.pid and j["members"] == [ranks[1].child.pid], "kill -9 of the first: the job is the other's", j)
    before = ranks[1].seen()
    s = ranks[1].until(lambda s: s["steps"] > before["steps"] + 20)
    t.ok(s and s["steps"] > before["steps"], "whose steps go on", (before, s))
    t.ok(ranks[1].close(), "which closes")
    t.ok(uwtest.wait_for(lambda: not job(d, number)["running"], 60), "and ends the job")
    t.ok(uwtest.wait_for(lambda: limits(node) == original, 60), "the original caps are back", limits(node))
    ranks[1].child.kill()


def finished(t, node, d):
    """One rank has finished before the other."""
    ranks = [Rank(node, i, **places(i, 2, i, 2)) for i in (0, 1)]
    number = ranks[0].job
    t.ok(ranks[0].close() and uwtest.wait_for(lambda: job(d, number)["members"] == [ranks[1].child.pid]), "a rank that has finished leaves",
         job(d, number))
    t.ok(job(d, number)["running"], "the job goes on")
    ranks[0].child.kill()
    ranks[0].child.wait(20)
    other = Rank(node, 0, **places(0, 2, 0, 2, port=29401))
    t.ok(other.job not in (0, number), "another training's rank is another job", (other.job, number))
    for r in (ranks[1], other):
        os.kill(r.child.pid, signal.SIGKILL)
    t.ok(uwtest.wait_for(lambda: not job(d, number)["running"] and not job(d, other.job)["running"], 60), "kill -9 of all: they end")
    for r in (*ranks, other):
        r.child.kill()


def under_run(t, node, d):
    """Ranks of a command that `underwatt run` has begun."""
    code = 'exec 3<&0; for i in 0 1; do RANK=$i WORLD_SIZE=2 LOCAL_RANK=$i LOCAL_WORLD_SIZE=2 MASTER_PORT=29402 "$0" -c "$1" $i 0 <&3 & done; wait'
    p = node.popen("underwatt", "run", "--goal", "time", "--gpus", "0,1", "--", "sh", "-c", code, sys.executable, RANK, stdin=subprocess.PIPE,
                   env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "PYTHONUNBUFFERED": "1"})
    look = lambda: [j for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"] and j["source"] != "found"]
    jobs = uwtest.wait_until(look, lambda j: j and j[0]["search"] and j[0]["search"]["goal"] == "energy" and j[0]["steps"] > 20)
    t.ok(len(jobs) == 1 and jobs[0]["name"] == "sh" and jobs[0]["search"]["goal"] == "energy" and jobs[0]["steps"] > 20,
         "under underwatt run: its job, which has the ranks' goal and steps", jobs)
    p.stdin.close()
    t.equal(p.wait(60), 0, "it ends")


def under_run_ends(t, node, d):
    """The job's own goal comes back with the last rank's Optimizer, not the first one's."""
    p = node.popen("underwatt", "run", "--goal", "time", "--gpus", "0,1", "--", sys.executable, "-c", ENDING, stdin=subprocess.PIPE,
                   env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "PYTHONUNBUFFERED": "1"})
    goals = lambda: [j["search"]["goal"] for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"] and j["source"] != "found" and j["search"]]
    for state, goal in STATES:
        said = p.stdout.readline().strip()
        t.equal((said, goals()), (state, [goal]), f"ranks under underwatt run: {state}: goal {goal}")
        p.stdin.write("\n")
        p.stdin.flush()
    _, err = p.communicate(timeout=60)
    t.ok(p.returncode == 0, "the command ends", err)


def selects_anew(t, node, d):
    """The rank whose selector has chosen is killed: the other sets the goal anew."""
    first, second = (pyuser.begun_in_world(node, CHOSEN, i, **places(i, 2, i, 2, port=29404)) for i in (0, 1))
    number = int(first.stdout.readline() or 0)
    t.equal(int(second.stdout.readline() or 0), number, "two ranks with a selector")
    t.ok(uwtest.wait_for(lambda: limits(node)[0] == 250000) and not (job(d, number)["search"] or {}).get("goal"),
         "the first holds what it chose, no goal is set", (limits(node), job(d, number)))
    first.kill()
    first.wait(20)
    j = uwtest.wait_until(lambda: job(d, number), lambda j: j["search"] and j["search"]["goal"] == "edp")
    t.ok(j["running"] and j["search"] and j["search"]["goal"] == "edp", "it is killed: the job has its goal again", j)
    second.kill()
    second.wait(20)


def two_nodes(t, node, d):
    with uwtest.Node(board="v100", count=2, speed=SPEED) as other:
        e = other.daemon()
        ranks = [Rank(at, i, **places(2 * n + i, 4, i, 2)) for n, at in ((0, node), (1, other)) for i in (0, 1)]
        t.ok(all(r.job for r in ranks) and ranks[0].job == ranks[1].job and ranks[2].job == ranks[3].job, "two nodes: a job each",
             [r.job for r in ranks])
        seen = [r.seen() for r in ranks]
        t.equal({(s["world"], s["here"], s["note"]) for s in seen}, {(4, 2, "this node's 2 of 4 ranks; each node searches by itself")},
                "and the status says so")
        t.equal([len(uwtest.wait_until(lambda: job(*at), lambda j: len(j["members"]) == 2)["members"])
                 for at in ((d, ranks[0].job), (e, ranks[2].job))], [2, 2], "each has the ranks of its node")
        for r in ranks:
            with contextlib.suppress(BrokenPipeError):
                r.close()
        t.ok(uwtest.wait_for(lambda: not job(d, ranks[0].job)["running"] and not job(e, ranks[2].job)["running"]), "they end")
        for r in ranks:
            r.child.kill()


def main():
    t = uwtest.Tap()
    launchers(t)
    with uwtest.Node(board="v100", count=2, speed=SPEED) as node:
        d = node.daemon()
        measured(t, node)
        together(t, node, d)
        finished(t, node, d)
        under_run(t, node, d)
        under_run_ends(t, node, d)
        selects_anew(t, node, d)
        capped(t, node, d)
        two_nodes(t, node, d)
    t.done()


if __name__ == "__main__":
    main()
