#!/usr/bin/python3
"""underwatt.testing.oncpu: a PyTorch script for CUDA runs on the processor and moves simulated boards."""
import json
import pathlib
import statistics
import subprocess
import sys

import fwuser
import uwtest

t = uwtest.Tap()
# No effect of heat: the steady state comes at once.
MACHINE = "name: oncpu\nset_limits: anyone\nboards:\n" + 2 * "  - {model: h100, leakage: 0}\n"
CAPS_W = (700, 500, 300, 200)

# A script for CUDA; only `marks` knows that it is watched.
TRAIN = """
import json, sys
import torch
from torch import nn
from underwatt.testing import _simload
device = torch.device("cuda")
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", enabled=False)
loader = torch.utils.data.DataLoader(torch.randn(int(sys.argv[1]) * 16, 32), batch_size=16, num_workers=1,
                                     pin_memory=True)
marks = []
for x in loader:
    x = x.to("cuda", non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = (model(x) - torch.ones(len(x), 1, device="cuda:0")).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    load = next(iter(_simload._loads))
    if load.last is not None and (not marks or marks[-1] is not load.last):
        marks.append(load.last)
torch.save(model.state_dict(), sys.argv[2])
model.load_state_dict(torch.load(sys.argv[2], map_location="cuda"))
torch.cuda.synchronize()
print(json.dumps([[m.at_ns, m.energy_j, m.steps] for m in marks] + [[0, 0, load.last.steps]]))
"""

RANKS = """
import json, os, sys
import torch
import torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
from underwatt.testing import _simload
load = next(iter(_simload._loads))
first = None
for i in range(int(sys.argv[1])):
    loss = model(torch.randn(4, 8, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    first = first or load.last
dist.barrier(device_ids=[rank])
torch.cuda.synchronize()
last = load.last
print(json.dumps([rank, list(load.boards), os.getpid(), dist.get_world_size(), last.steps,
                  (last.at_ns - first.at_ns) * 1e-9 / (last.steps - first.steps)]))
dist.destroy_process_group()
"""


def oncpu(node, python, *words, env=None, launcher=()):
    return node.run(python, "-W", "ignore", *launcher, "-m", "underwatt.testing.oncpu", *words, timeout=240,
                    env={"PYTHONPATH": uwtest.TOP / "python", **(env or {})})


def steady():
    """Cap in watts -> seconds and joules of a step."""
    p = subprocess.run([uwtest.program("underwatt"), "sweep", "--sim", "h100", "--workload", "resnet50", "--json",
                        "-"], capture_output=True, text=True, check=True)
    return {round(point["cap_mw"] / 1000): (point["time_s"] / 782, point["energy_j"] / 782)
            for point in json.loads(p.stdout)["points"]}


def caps(node, python, tmp, curve):
    """A training loop in torch, at four caps: the plant's steady step."""
    script = tmp / "train.py"
    script.write_text(TRAIN)
    for cap in CAPS_W:
        node.fault("0", "limit", f"{cap}W")
        p = oncpu(node, python, script, 60, tmp / "model.pt")
        if not t.ok(p.returncode == 0, f"{cap} W: a script for CUDA runs", p.stdout + p.stderr):
            continue
        marks = json.loads(p.stdout.splitlines()[-1])
        t.equal(marks.pop()[2], 60, "… each step of the optimizer is a step of its board")
        steady_marks = marks[10:]
        pairs = [(b[0] - a[0], b[1] - a[1], b[2] - a[2]) for a, b in zip(steady_marks, steady_marks[1:])]
        s = statistics.median(ns * 1e-9 / n for ns, _, n in pairs)
        j = statistics.median(joules / n for _, joules, n in pairs)
        t.near(s / curve[cap][0], 1, 0.02, f"… {s * 1e3:.1f} ms a step, the steady step's time")
        t.near(j / curve[cap][1], 1, 0.02, f"… {j:.1f} J a step, its energy")


def ranks(node, python, tmp, curve):
    script = tmp / "ranks.py"
    script.write_text(RANKS)
    node.fault("0", "limit", "700W")
    node.fault("1", "limit", "200W")
    p = oncpu(node, python, script, 40, env={"OMP_NUM_THREADS": 1},
              launcher=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"))
    rows = sorted(json.loads(line) for line in p.stdout.splitlines() if line.startswith("["))
    if not t.ok(p.returncode == 0 and len(rows) == 2, "two ranks by torchrun", p.stdout + p.stderr):
        return
    t.ok(rows[0][:2] == [0, [0]] and rows[1][:2] == [1, [1]] and rows[0][2] != rows[1][2] and
         all(r[3] == 2 and r[4] == 40 for r in rows), "each has a board and does its own steps, by gloo", rows)
    # Two of 39 steps less, where a busy host begins the faster one's late; alone it takes 0.4 of the time.
    t.ok(min(r[5] for r in rows) > 0.8 * curve[200][0], "… at the pace of the slower board",
         [r[5] / curve[200][0] for r in rows])


def main():
    python = fwuser.python()
    with uwtest.Node(machine=MACHINE, speed=2) as node:
        tmp = pathlib.Path(node.tmp)
        curve = steady()
        caps(node, python, tmp, curve)
        ranks(node, python, tmp, curve)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
