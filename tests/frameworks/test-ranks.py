#!/usr/bin/python3
"""Optimizer under torchrun and gloo, 1, 2 and 4 ranks on driven simulated boards; a rank that is killed; torch.distributed that alone
knows the ranks (spawn).
"""
import json
import pathlib
import tempfile

import fwuser
import uwtest

SPEED = 20

TRAIN = r"""
import json, os, signal, subprocess, sys, time
import torch
import torch.distributed as dist
import underwatt
from underwatt.testing import SimLoad

def train(rank, local, world, kill=-1, seconds=120.0):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    sgd = torch.optim.SGD(model.parameters(), lr=0.01)
    until, stop, n = time.monotonic() + seconds, torch.zeros(1), 0
    free = []    # steps and true joules of this rank's board, until the original cap is measured
    with SimLoad("resnet50", boards=[local]) as load, underwatt.Optimizer("energy", name="ranks") as optimizer:
        while not stop.item():
            sgd.zero_grad()
            model(torch.ones(4, 8)).sum().backward()    # all-reduce: the ranks wait for one another
            sgd.step()
            joules = load.step(5).wait().energy_j
            for _ in range(5):
                optimizer.step()
            n += 1
            status = optimizer.status
            if status.caps == 0 and status.original_w:
                free.append((5 * n, joules))
            if rank == kill and (status.cap_w or status.status == "measures" and status.caps > 1):
                os.kill(os.getpid(), signal.SIGKILL)
            stop[0] = (rank == 0 and kill < 0 and status.caps >= 2) or time.monotonic() > until
            dist.all_reduce(stop, dist.ReduceOp.MAX)
        optimizer.epoch()
        true = torch.tensor([(free[-1][1] - free[0][1]) / max(free[-1][0] - free[0][0], 1) if free else 0.0], dtype=torch.double)
        dist.all_reduce(true)
        status, energy, curve = optimizer.status, optimizer.energy(), optimizer.curve()
        if rank == 0:
            shown = subprocess.run(["underwatt", "jobs", "--json", "-"], capture_output=True, text=True, check=True).stdout
            jobs = [[j["id"], j["gpus"]] for j in json.loads(shown)["jobs"] if j["name"] == "ranks" and j["running"]]
            print(json.dumps({"jobs": jobs, "job": optimizer.job, "world": status.world_size, "here": status.local_world_size, "steps": status.steps,
                              "told": 5 * n, "energy": energy.energy_j, "own": load.wait().energy_j, "note": status.note, "true": true.item(),
                              "points": [[p.cap_w, p.step_s, p.step_j] for p in curve]}), flush=True)
        dist.barrier()

def spawned(rank, world, port):
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    train(rank, rank, world)

if __name__ == "__main__":
    if sys.argv[1] == "spawn":
        torch.multiprocessing.spawn(spawned, args=(2, int(sys.argv[2])), nprocs=2)
    else:
        dist.init_process_group("gloo")
        train(dist.get_rank(), int(os.environ["LOCAL_RANK"]), dist.get_world_size(), kill=int(sys.argv[2]))
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


def check(t, node, d, p, n, original, what):
    s = result(p)
    if not t.ok(p.returncode == 0 and s, f"{what}: the program ends", p.stdout + p.stderr):
        return
    t.equal(s["jobs"], [[s["job"], list(range(n))]], f"{what}: underwatt jobs shows one job, with the boards of all ranks")
    t.equal((s["world"], s["here"], s["note"]), (n, n, ""), f"{what}: sizes")
    points = {cap: (seconds, joules) for cap, seconds, joules in s["points"]}
    t.ok(len(points) >= 2 and max(points) == original[0] / 1000 and min(points) < max(points), f"{what}: caps were measured", s)
    top = points.get(max(points, default=0), (1, 0))
    t.ok(0.2 < top[0] and abs(top[1] - s["true"]) < 0.15 * s["true"], f"{what}: {top[1]:.1f} J a step of {n} boards, true {s['true']:.1f} J, {top[0]:.2f} s", s)
    t.ok(abs(s["steps"] - s["told"]) <= 10, f"{what}: steps of the slowest rank", s)
    t.ok(uwtest.wait_for(lambda: not any(j["running"] for j in jobs(d)) and limits(node) == original, 60), f"{what}: the job has ended, the original "
         "caps are back", limits(node))


def main():
    t = uwtest.Tap()
    fwuser.python()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(board="v100", count=4, speed=SPEED) as node:
        script = pathlib.Path(folder, "train.py")
        script.write_text(TRAIN)
        d = node.daemon()
        original = limits(node)
        launch = lambda n, kill, port: fwuser.in_world(
            node, str(script), "torchrun", kill, timeout=240,
            module=("torch.distributed.run", "--nproc-per-node", n, "--master-port", port, "--monitor-interval", "0.2"))
        for n in (1, 2, 4):
            check(t, node, d, uwtest.timed(f"{n} ranks", launch, n, -1, 29510 + n), n, original, f"torchrun, {n} ranks")
        p = uwtest.timed("a rank is killed", launch, 2, 1, 29520)
        t.ok(p.returncode != 0 and "SIGKILL" in p.stderr, "a rank is killed: torchrun ends the others", p.stdout + p.stderr)
        t.ok(uwtest.wait_for(lambda: not any(j["running"] for j in jobs(d)) and limits(node) == original, 60),
             "and the job and its caps end", (jobs(d), limits(node)))
        p = uwtest.timed("spawn", lambda: fwuser.in_world(node, f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", "spawn", 29521,
                                                         timeout=240))
        check(t, node, d, p, 2, original, "spawn, 2 ranks")
    t.done()


if __name__ == "__main__":
    main()
