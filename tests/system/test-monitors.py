#!/usr/bin/python3
"""Programs that measure training on simulated boards: GPUtil, CodeCarbon, gpustat, nvitop, carbontracker, wandb offline.

Each is the program itself; what it says is held against what the node's own counters counted meanwhile.
Powers agree within 10 %: the job trains without a pause, the sensors have no error, and a program's window lies within the node's.
"""
import json
import os
import sys
import time

import uwtest

t = uwtest.Tap()
PACKAGES = ("GPUtil==1.4.0", "carbontracker==2.4.7", "codecarbon==3.3.2", "gpustat==1.1.1", "nvidia-ml-py==13.615.71",
            "nvitop==1.7.2", "wandb==0.31.0")
WITHIN = 0.10
# An ideal sensor, and an epoch that does not end: the power is steady.
MACHINE = """boards:
  - {model: v100, count: 2, ideal: true}
workloads:
  - {name: steady, like: resnet50, steps: 1000000, clock_time: 50000 s, memory_time: 50000 s}
"""

GPUTIL = """
import GPUtil, json
print(json.dumps([[g.id, g.uuid, g.name, g.load, g.memoryUsed, g.memoryTotal, g.temperature] for g in GPUtil.getGPUs()]))
"""
CODECARBON = """
import json, time
from codecarbon import OfflineEmissionsTracker
t = OfflineEmissionsTracker(country_iso_code="FRA", measure_power_secs=1, save_to_file=False, allow_multiple_runs=True,
                            log_level="critical")
t.start()
time.sleep(10)
t.stop()
d = t.final_emissions_data
print(json.dumps({"joules": d.gpu_energy * 3.6e6, "seconds": d.duration, "model": d.gpu_model, "boards": d.gpu_count}))
"""
NVITOP = """
import json
from nvitop import Device
print(json.dumps([[d.index, d.name(), d.power_usage(), d.power_limit(), sorted(d.processes())] for d in Device.all()]))
"""
# Offline it says in several lines that it does not know where it is.
CARBONTRACKER = """
import json, sys, time
from carbontracker import parser
from carbontracker.tracker import CarbonTracker
c = CarbonTracker(epochs=2, epochs_before_pred=0, monitor_epochs=2, update_interval=0.5, components="gpu", log_dir=sys.argv[1], verbose=0)
for _ in range(2):
    c.epoch_start()
    time.sleep(3)
    c.epoch_end()
c.stop()
gpu = parser.parse_all_logs(sys.argv[1])[0]["components"]["gpu"]
print(json.dumps({"watts": gpu["avg_power_usages (W)"].tolist(), "joules": gpu["avg_energy_usages (J)"].tolist(), "devices": gpu["devices"]}))
"""
# A run's file is a log of LevelDB's form: blocks of 32 KiB, records of a checksum, a length and a kind.  The first metrics
# may take a while on a busy machine.
WANDB = """
import glob, json, struct, sys, time
import wandb
from wandb.proto import wandb_internal_pb2 as pb


def records(data):
    at, parts = 7, []
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        if kind == 0 or at + 7 + size > len(data):
            return  # not written yet
        parts.append(data[at + 7:at + 7 + size])
        at += 7 + size
        if kind in (1, 4):
            yield pb.Record.FromString(b"".join(parts))
            parts = []


def look():
    rows, boards = [], []
    for r in records(open(glob.glob(sys.argv[1] + "/wandb/offline-*/*.wandb")[0], "rb").read()):
        if r.WhichOneof("record_type") == "stats":
            items = {i.key: json.loads(i.value_json) for i in r.stats.item if i.key.startswith("gpu.")}
            rows += [items] if "gpu.1.powerWatts" in items else []
        elif r.WhichOneof("record_type") == "environment":
            boards = [g.uuid for g in r.environment.gpu_nvidia] or boards
    return {"rows": rows, "boards": boards}


run = wandb.init(project="p", mode="offline", dir=sys.argv[1], settings=wandb.Settings(x_stats_sampling_interval=1, silent=True))
for step in range(240):
    run.log({"step": step})
    time.sleep(0.5)
    if len(look()["rows"]) >= 4:
        break
run.finish()
print(json.dumps(look()))
"""


def counters(node):
    """When, and the joules of each board so far."""
    boards = node.status()["boards"]
    return time.monotonic(), [b["energy_mj"] * 1e-3 for b in boards]


def ask(node, name, *command, **env):
    """The last line of a program as JSON, and the mean power of each board while it ran."""
    began, before = counters(node)
    p = node.run(*command, env={"HOME": node.tmp, "WANDB_MODE": "offline", "PYTHONWARNINGS": "ignore", **env}, timeout=300)
    ended, after = counters(node)
    if not t.ok(p.returncode == 0 and p.stdout.strip(), f"{name} runs", p.stdout[-2000:] + p.stderr[-2000:]):
        return None, None, None
    watts = [(b - a) / (ended - began) for a, b in zip(before, after)]
    return json.loads(p.stdout if p.stdout.startswith("{\n") else p.stdout.strip().splitlines()[-1]), watts, (before, after)


def agree(got, want, name, what="counter"):
    t.ok(abs(got - want) <= WITHIN * want, f"{name}: {got:.1f} W, the node's {what} {want:.1f} W")


def now(node):
    """The power of each board: what is read once is held against it."""
    return [b["power_mw"] / 1000 for b in node.status()["boards"]]


def gputil(node, python):
    got, _, _ = ask(node, "GPUtil", python, "-c", GPUTIL)
    if got:
        t.equal([g[:3] for g in got], [[b["index"], b["uuid"], b["name"]] for b in node.status()["boards"]], "it sees both boards")
        t.ok(0.5 < got[0][3] <= 1 and got[1][3] == 0, "one works, one does not", got)
        t.ok(got[0][4] > 10 * got[1][4] and {g[5] for g in got} == {16384} and 20 < got[0][6] < 95, "memory, temperature", got)


def codecarbon(node, python):
    got, watts, _ = ask(node, "CodeCarbon", python, "-c", CODECARBON)
    if got:
        t.ok(got["boards"] == 2 and got["model"].startswith("2 x Tesla V100"), "it finds both boards", got)
        agree(got["joules"] / got["seconds"], sum(watts), "CodeCarbon, both boards")


def gpustat(node, bin_folder):
    got, _, _ = ask(node, "gpustat", os.path.join(bin_folder, "gpustat"), "--json", PYTHONUNBUFFERED="1")
    if got:
        t.equal([[p["pid"] for p in g["processes"]] for g in got["gpus"]], [b["pids"] for b in node.status()["boards"]],
                "gpustat: the job on its board")
        for g, w in zip(got["gpus"], now(node)):
            agree(g["power.draw"], w, f"gpustat, board {g['index']}", "sensor")


def nvitop(node, python, bin_folder):
    got, _, _ = ask(node, "nvitop", python, "-c", NVITOP)
    if got:
        t.equal([[g[3], g[4]] for g in got], [[b["limit_mw"], b["pids"]] for b in node.status()["boards"]], "nvitop: limits, processes")
        for g, w in zip(got, now(node)):
            agree(g[2] / 1000, w, f"nvitop, board {g[0]}", "sensor")
    p = node.run(os.path.join(bin_folder, "nvitop"), "--once", env={"HOME": node.tmp, "LC_ALL": "C.UTF-8"})
    t.ok(p.returncode == 0 and p.stdout.count("300W") == 2 and str(node.board(0)["pids"][0]) in p.stdout,
         "its screen shows boards and the job", p.stdout + p.stderr)


def carbontracker(node, python):
    folder = os.path.join(node.tmp, "carbontracker")
    os.mkdir(folder)
    # It takes the mean of several boards for their sum: one board alone.
    got, watts, _ = ask(node, "carbontracker", python, "-c", CARBONTRACKER, folder, CUDA_VISIBLE_DEVICES="0")
    if got:
        t.ok(len(got["devices"]) == 1 and len(got["watts"]) == 2, "carbontracker: one board, two epochs", got)
        agree(got["watts"][-1][0], watts[0], "carbontracker, board 0")


def wandb(node, python):
    folder = os.path.join(node.tmp, "wandb")
    os.mkdir(folder)
    got, watts, (before, after) = ask(node, "wandb offline", python, "-c", WANDB, folder)
    if not got:
        return
    t.equal(got["boards"], [b["uuid"] for b in node.status()["boards"]], "wandb: both boards")
    if not t.ok(len(got["rows"]) >= 2, "wandb: system metrics", got):
        return
    for i in range(2):
        joules = [r[f"gpu.{i}.energyJoules"] for r in got["rows"] if f"gpu.{i}.energyJoules" in r]
        t.ok(joules == sorted(joules) and before[i] - 1 <= joules[0] and joules[-1] <= after[i] + 1,
             f"wandb, board {i}: its energy lies within the counter's", (before[i], joules, after[i]))
        powers = [r[f"gpu.{i}.powerWatts"] for r in got["rows"] if f"gpu.{i}.powerWatts" in r]
        agree(sum(powers) / len(powers), watts[i], f"wandb, board {i}")


def main():
    python = uwtest.venv(*PACKAGES)
    if not python:
        uwtest.skip_all("GPUtil, CodeCarbon, gpustat, nvitop, carbontracker, wandb: the package registry is out of reach")
    bin_folder = os.path.dirname(python)
    with uwtest.Node(machine=MACHINE) as node:
        node.train("--gpus", "0", "--workload", "steady", "--phases", "train")
        uwtest.wait_for(lambda: node.board(0)["power_mw"] > 150000)
        time.sleep(5)  # the sensor has settled, the board is near its temperature
        gputil(node, python)
        codecarbon(node, python)
        gpustat(node, bin_folder)
        nvitop(node, python, bin_folder)
        carbontracker(node, python)
        wandb(node, python)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
