#!/usr/bin/python3
"""Optimizer under torchrun and gloo, 1, 2 and 4 ranks on driven simulated boards; torch.distributed that alone knows the ranks (spawn);
two nodes of two ranks with an agent and a daemon each; a rank that is killed, without and with a restart; a Trainer of two ranks.
"""
import contextlib
import json
import math
import pathlib
import socket
import sqlite3
import tempfile

import fwuser
import uwtest

SPEED = 20
RUN_S = 400

TRAIN = r"""
import json, os, signal, statistics, subprocess, sys, time
import torch
import torch.distributed as dist
import underwatt
from underwatt.testing import SimLoad

def train(rank, local, world, kill=-1, folder=None, seconds=120.0):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    here = int(os.environ.get("LOCAL_WORLD_SIZE", world))
    attempt = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    until, stop, n = time.monotonic() + seconds, torch.zeros(1), 0
    log = os.environ.get("LOG")
    monitor = underwatt.Monitor(gpus=[local], log=log) if log else underwatt.Monitor(null=True)
    free, known = [], 0    # steps and true joules of this rank's board, until the original cap is measured; how many since it is known
    with SimLoad("resnet50", boards=[local]) as load, underwatt.Optimizer("energy", name="ranks") as optimizer:
        began = load.phase("load", seconds=0.001).wait()
        while not stop.item():
            sgd.zero_grad()
            model(torch.ones(4, 8)).sum().backward()    # all-reduce: the ranks wait for one another
            sgd.step()
            with monitor.window(f"steps {n}"):
                done = load.step(5).wait()
            joules = done.energy_j
            for _ in range(5):
                optimizer.step()
            n += 1
            status = optimizer.status
            if status.caps == 0:
                free.append((5 * n, joules))
                known += status.original_w is not None
            if folder:
                told = json.dumps([attempt, rank, optimizer.job, status.caps, joules - began.energy_j, (done.at_ns - began.at_ns) / 1e9])
                with open(f"{folder}/{attempt}-{rank}", "w") as f:
                    f.write(told)
            if rank == kill and attempt == 0 and (status.cap_w or status.status == "measures" and status.caps > 1):
                os.kill(os.getpid(), signal.SIGKILL)
            stop[0] = (not 0 <= kill or attempt > 0) and status.caps >= 2 or time.monotonic() > until
            dist.all_reduce(stop, dist.ReduceOp.MIN)
        optimizer.epoch()
        monitor.close(60)
        free = free[-max(known, 9):]    # it is told late on a busy machine
        # Of a step: the median, and the highest mean of 40, which has the energy of boards that waited for a busy machine.
        each = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(free, free[1:])] or [0.0]
        highest = max(statistics.fmean(each[i:i + 8]) for i in range(max(1, len(each) - 7)))
        true = [torch.zeros(2, dtype=torch.double) for _ in range(world)]
        dist.all_gather(true, torch.tensor([statistics.median(each), highest], dtype=torch.double))
        true = sorted(torch.stack(true[rank - local:rank - local + here]).sum(0).tolist())
        status, energy, curve = optimizer.status, optimizer.energy(), optimizer.curve()
        if local == 0:    # the others have written their log: they had to gather
            logged = read(log, world, n) if log else None
            shown = subprocess.run(["underwatt", "jobs", "--json", "-"], capture_output=True, text=True, check=True).stdout
            jobs = [[j["id"], j["gpus"]] for j in json.loads(shown)["jobs"] if j["name"] == "ranks" and j["running"]]
            print(json.dumps({"jobs": jobs, "job": optimizer.job, "world": status.world_size, "here": status.local_world_size, "steps": status.steps,
                              "told": 5 * n, "energy": energy.energy_j, "own": load.wait().energy_j, "note": status.note, "true": true, "logged": logged,
                              "points": [[p.cap_w, p.step_s, p.step_j, p.step_j_half] for p in curve]}), flush=True)
        dist.barrier()

def read(log, world, n):
    # whether one log has all windows of all ranks, each with the rank's own board
    import pandas
    rows = pandas.read_csv(log)
    own = [f"gpu{rank}_j" for rank in range(world)]
    each = rows.pivot(index="name", columns="rank", values="gpu_j")
    return [list(each.shape), int(each.isna().sum().sum()), bool((rows[own].notna().sum(axis=1) == 1).all()),
            all((rows[rows["rank"] == rank][own[rank]] > 0).all() for rank in range(world)), [n, world]]

def spawned(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    train(rank, rank, world)

if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        torch.multiprocessing.spawn(spawned, args=(2, int(sys.argv[2])), nprocs=2)
    else:
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        if attempt == "0":
            dist.init_process_group("gloo")
        else:    # torchrun's attempts share a store, where gloo would find the addresses of the ranks that are gone
            place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            store = dist.PrefixStore(f"attempt {attempt}", dist.TCPStore(*place, is_master=False))
            dist.init_process_group("gloo", store=store, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
        train(dist.get_rank(), int(os.environ["LOCAL_RANK"]), dist.get_world_size(), kill=int(sys.argv[2]), folder=(*sys.argv[3:], None)[0])
    if dist.is_initialized():
        dist.destroy_process_group()
"""


def result(p):
    lines = [line for line in p.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


def limits(node):
    return [b["limit_mw"] for b in node.status()["boards"]]


def jobs(d):
    return [j for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["name"] == "ranks"]


def booked(d, name):
    """Jobs of a name, of the ledger.  settled: it has ended, and energy was booked until then."""
    with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA busy_timeout = 5000")
        return [dict(row) for row in db.execute(
            "SELECT j.id, j.goal, (j.ended_ms - j.began_ms) / 1e3 AS time_s, SUM(e.energy_uj) / 1e6 AS energy_j, COUNT(DISTINCT e.board) AS boards, "
            "MAX(e.begin_ms + e.span_ms) >= j.ended_ms - 1000 AS settled FROM job j JOIN energy e ON e.job = j.id WHERE j.name = ? GROUP BY j.id", (name,))]


def back(t, node, d, original, what):
    t.ok(uwtest.wait_for(lambda: not any(j["running"] for j in jobs(d)) and limits(node) == original, 60), f"{what}: the job has ended, the original "
         "caps are back", (jobs(d), limits(node)))


def check(t, at, p, n, what, world=None):
    """at: a node, its daemon and its original caps."""
    s = result(p)
    if not t.ok(p.returncode == 0 and s, f"{what}: the program ends", p.stdout + p.stderr):
        return
    t.equal(s["jobs"], [[s["job"], list(range(n))]], f"{what}: underwatt jobs shows one job, with the boards of all ranks")
    note = f"this node's {n} of {world} ranks; each node searches by itself" if world else ""
    t.equal((s["world"], s["here"], s["note"]), (world or n, n, note), f"{what}: sizes")
    points = {cap: tuple(point) for cap, *point in s["points"]}
    t.ok(len(points) >= 2 and max(points) == at[2][0] / 1000 and min(points) < max(points), f"{what}: caps were measured", s)
    step_s, step_j, half_j = points.get(max(points, default=0), (1, 0, 0))
    low, high = s["true"]
    # Boards that stood still in the window with a busy machine are in its interval.
    t.ok(0.2 < step_s and 0.85 * low - half_j < step_j < 1.15 * high + half_j,
         f"{what}: {step_j:.1f} ± {half_j:.1f} J a step of {n} boards, true {low:.1f} to {high:.1f} J, {step_s:.2f} s", s)
    t.ok(abs(s["steps"] - s["told"]) <= 10, f"{what}: steps of the slowest rank", s)
    back(t, *at, what)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def torchrun(node, n, script, *words, places=("--standalone",), **env):
    return fwuser.in_world(node, str(script), *words, timeout=RUN_S, **env,
                           module=("torch.distributed.run", *places, "--nproc-per-node", n, "--monitor-interval", "0.2"))


def one_node(t, script):
    with uwtest.Node(board="v100", count=4, speed=SPEED) as node:
        at = node, node.daemon(), limits(node)
        for n, env in ((1, {}), (2, {}), (4, {"LOG": f"{script}.csv"})):
            p = uwtest.timed(f"{n} ranks", lambda: torchrun(node, n, script, "torchrun", -1, **env))
            check(t, at, p, n, f"torchrun, {n} ranks")
        logged = result(p).get("logged") or [[0, 0], 0, False, False, []]
        t.ok(logged[0] == logged[4] and logged[1:4] == [0, True, True], "torchrun, 4 ranks: pandas reads one log of all, each with its board", logged)
        p = uwtest.timed("a rank is killed", torchrun, node, 2, script, "torchrun", 1)
        t.ok(p.returncode != 0 and "SIGKILL" in p.stderr, "a rank is killed: torchrun ends the others", p.stdout + p.stderr)
        back(t, *at, "a rank is killed")


def two_nodes(t, script):
    """An agent, a daemon and two ranks on each."""
    with uwtest.Node(board="v100", count=2, speed=SPEED) as first, uwtest.Node(board="v100", count=2, speed=SPEED) as second:
        nodes = [(node, node.daemon(), limits(node)) for node in (first, second)]
        port, done = free_port(), {}

        def agent(i):
            places = ("--nnodes", 2, "--node-rank", i, "--master-addr", "127.0.0.1", "--master-port", port)
            done[i] = torchrun(nodes[i][0], 2, script, "torchrun", -1, places=places)

        uwtest.timed("two nodes", uwtest.together, lambda: agent(0), lambda: agent(1))
        for i, at in enumerate(nodes):
            check(t, at, done[i], 2, f"two nodes, node {i}", world=4)


def restarted(t, at, script, folder):
    """torchrun starts all ranks again where one was killed, under a cap."""
    node, d, original = at
    rest_w = sum(b["power_mw"] for b in node.status()["boards"][:2]) / 2000
    folder.mkdir()
    p = uwtest.timed("a restart", lambda: torchrun(node, 2, script, "torchrun", 1, folder, places=("--standalone", "--max-restarts", 1)))
    check(t, at, p, 2, "a rank is killed, restarted")
    told = sorted(json.loads(f.read_text()) for f in folder.iterdir())
    if not t.equal([x[:2] for x in told], [[a, r] for a in (0, 1) for r in (0, 1)], "a rank is killed, restarted: both attempts of both ranks trained"):
        return
    t.ok(told[1][3] >= 1 and told[3][3] >= 2, "… under a cap the first time, and the search went on the second time", told)
    mine = {x[2] for x in told}
    done = uwtest.wait_until(lambda: booked(d, "ranks"), lambda rows: {r["id"] for r in rows} == mine and all(r["settled"] for r in rows))
    t.ok({r["id"] for r in done} == mine and all(r["settled"] for r in done), "… the ledger has these jobs, and all of their energy", (mine, done))
    # From an Optimizer's beginning to its last step as the boards say; what is left of the jobs' time the boards were at rest.
    true_j, busy_s = math.fsum(x[4] for x in told), math.fsum(x[5] for x in told)
    whole_s, booked_j = math.fsum(2 * r["time_s"] for r in done), math.fsum(r["energy_j"] for r in done)
    want_j = true_j + rest_w * max(0.0, whole_s - busy_s)
    t.ok(abs(booked_j - want_j) < 0.1 * want_j, f"… {booked_j:.0f} J of {len(mine)} jobs, true {true_j:.0f} J and {want_j - true_j:.0f} J at rest (simulated)",
         (told, done))


def trainer(t, at, folder):
    """Transformers: each rank attaches, with a goal."""
    node, d, _ = at
    folder.mkdir()
    with open(folder / "err", "w", encoding="utf-8") as err:
        child = fwuser.begun(node, fwuser.HERE / "train-hf.py", "search", folder / "out", stderr=err, CUDA_VISIBLE_DEVICES="0,1",
                             launcher=("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"))
    rows, _ = uwtest.timed("a Trainer", fwuser.told, t, child, folder / "err", "a Trainer of two ranks with a goal")
    if not rows:
        return
    rows.sort(key=lambda row: row["rank"])
    t.equal([row["rank"] for row in rows], [0, 1], "a Trainer: two ranks")
    t.ok(rows[0]["job"] > 0 and rows[0]["job"] == rows[1]["job"], "… one job", rows)
    found = uwtest.wait_until(lambda: booked(d, "train-hf.py"), lambda rows: len(rows) == 1 and rows[0]["settled"])
    t.equal([(r["id"], r["boards"], r["goal"]) for r in found], [(rows[0]["job"], 2, "energy")], "… with both boards and the goal")
    t.ok(min(row["caps"] for row in rows) >= 2, "… whose caps were measured", rows)
    entries = [[e for e in row["history"] if "energy_j" in e] for row in rows]
    t.ok(entries[0] and not entries[1], "… rank 0 alone logs energy", rows[1]["history"])
    have, true = rows[0]["history"][-1].get("train_energy_j", 0), sum(row["truth"][1] - row["truth"][0] for row in rows)
    t.near(have / true, 1, 0.15, f"… {have:.0f} J of both boards, true {true:.0f} J (simulated)")
    back(t, *at, "a Trainer")


def others(t, script, folder):
    with uwtest.Node(board="v100", count=2, speed=SPEED) as node:
        at = node, node.daemon(), limits(node)
        restarted(t, at, script, folder / "restarted")
        trainer(t, at, folder / "trainer")
        p = uwtest.timed("spawn", lambda: fwuser.in_world(node, f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", "spawn", free_port(),
                                                         timeout=RUN_S))
        check(t, at, p, 2, "spawn, 2 ranks")


def main():
    t = uwtest.Tap()
    fwuser.python()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        script = pathlib.Path(folder, "train.py")
        script.write_text(TRAIN)
        # Most of their time is waiting for the boards.
        uwtest.together(lambda: one_node(t, script), lambda: (others(t, script, pathlib.Path(folder)), two_nodes(t, script)))
    t.done()


if __name__ == "__main__":
    main()
