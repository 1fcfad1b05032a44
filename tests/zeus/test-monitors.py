#!/usr/bin/python3
"""ZeusMonitor and PowerMonitor of Zeus and of underwatt.compat.zeus, both at the same time on the same simulated boards; metrics that are
pushed; the launcher under torchrun.
"""
import contextlib
import http.server
import json
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "frameworks"))

import fwuser  # noqa: E402
import pyuser  # noqa: E402
import uwtest  # noqa: E402

AGREE = 0.01
WINDOW_S = 25

MEASURE = """
import json, sys, time
if __name__ == "__main__":    # Zeus spawns processes, and gives them 10 s to begin: a busy machine needs more
    from multiprocessing.synchronize import Event
    wait = Event.wait
    Event.wait = lambda self, timeout=None: wait(self, timeout and 20 * timeout)
    import zeus
    from zeus.monitor import PowerMonitor, ZeusMonitor
    monitor = ZeusMonitor()
    power = PowerMonitor(update_period=0.05, power_domains=["device_instant"]) if sys.argv[1] == "power" else None
    print(zeus.__name__, flush=True)
    sys.stdin.readline()
    began = time.time()
    monitor.begin_window("both", sync_execution=False)
    sys.stdin.readline()
    measured = monitor.end_window("both", sync_execution=False)
    ended, watts = time.time(), {}
    if power:    # who reads the power may stand still at either end of the window: of the time in which it was read
        for gpu, line in power.get_power_timeline("device_instant", start_time=began, end_time=ended).items():
            first, last = line[0][0], line[-1][0]
            watts[gpu] = power.get_energy(first, last)[gpu] / (last - first) if last - first > 0.8 * (ended - began) else 0.0
        power.stop()
    print(json.dumps([measured.time, measured.gpu_energy, watts]), flush=True)
"""

METRICS = """
import sys, time
from zeus.metric import EnergyCumulativeCounter, EnergyHistogram, PowerGauge
from zeus.monitor import ZeusMonitor
gateway = sys.argv[1]
monitor = ZeusMonitor([0], cpu_indices=[])
counter = EnergyCumulativeCounter([], [0], 0.5, gateway, "counter")
gauge = PowerGauge([0], 0.5, gateway, "gauge")
histogram = EnergyHistogram([], [0], gateway, "histogram", gpu_bucket_range=[1.0, 1e6])
monitor.begin_window("outer", sync_execution=False)
counter.begin_window("epoch")
gauge.begin_window("epoch")
histogram.begin_window("epoch", sync_execution=False)
monitor.begin_window("inner", sync_execution=False)
time.sleep(10.2)
inner = monitor.end_window("inner", sync_execution=False)
histogram.end_window("epoch", sync_execution=False)
gauge.end_window("epoch")
counter.end_window("epoch")
print(inner.gpu_energy[0], monitor.end_window("outer", sync_execution=False).gpu_energy[0])
away = EnergyHistogram([], [0], "127.0.0.1:9", "away", gpu_bucket_range=[1.0, 1e6])
away.begin_window("x", sync_execution=False)
away.end_window("x", sync_execution=False)
print("goes on")
"""

# A gateway that takes what is pushed and does not answer; the energy of one window in three is unknown.
HUNG = """
import json, logging, socket
from zeus.metric import EnergyHistogram
from zeus.monitor import Measurement
said = []
logging.getLogger().addHandler(type("Said", (logging.Handler,), {"emit": lambda self, record: said.append(record.getMessage())})())
gateway = socket.create_server(("127.0.0.1", 0))
histogram = EnergyHistogram([], [0], f"127.0.0.1:{gateway.getsockname()[1]}", "hung", gpu_bucket_range=[1.0, 1e6])
for energy in (5.0, float("nan"), 7.0):
    histogram.begin_window("x", sync_execution=False)
    histogram.energy_monitor.end_window("__EnergyHistogram_x", cancel=True)
    histogram.energy_monitor.end_window = lambda key, sync_execution: Measurement(1.0, {0: energy})
    histogram.end_window("x", sync_execution=False)
    del histogram.energy_monitor.end_window
before = list(said)
gateway.close()
histogram._pusher._thread.shutdown()
sample = lambda name: histogram.registry.get_sample_value(f"energy_monitor_gpu_energy_joules_{name}", {"window": "x", "index": "0"})
print(json.dumps([sample("sum"), sample("count"), before, {"were not pushed" in line for line in said} == {True} and len(said) <= 2]))
"""

CPU = """
import json, time
from zeus.monitor import ZeusMonitor
from zeus.monitor.carbon import CarbonEmissionMonitor, CarbonIntensityProvider
from datetime import datetime, timedelta, timezone
class Known(CarbonIntensityProvider):
    update_period, history_length = timedelta(hours=1), 24
    def get_current_carbon_intensity(self): return 100.0
    def get_recent_carbon_intensity(self): return {datetime(2026, 1, 1, tzinfo=timezone.utc): 100.0}
monitors = {"all": ZeusMonitor(), "one": ZeusMonitor(cpu_indices=[0]), "none": ZeusMonitor(cpu_indices=[]), "other": ZeusMonitor(cpu_indices=[3])}
carbon = CarbonEmissionMonitor(Known())
for monitor in (*monitors.values(), carbon):
    monitor.begin_window("w", sync_execution=False)
time.sleep(20)
found = {name: monitor.end_window("w", sync_execution=False) for name, monitor in monitors.items()}
grams = carbon.end_window("w", sync_execution=False)
print(json.dumps([[m.time, m.cpu_energy, m.dram_energy] for m in found.values()]
    + [[grams.time, grams.cpu_energy, {k: v * 3.6e4 for k, v in grams.cpu_carbon_emission.items()}]]))
"""

RANK = """
import os, sys
import torch.distributed as dist
import zeus
from zeus.utils.framework import all_reduce, get_rank, get_world_size, is_distributed
dist.init_process_group("gloo")
total = all_reduce([1.0 + get_rank(), 2.0], "sum")
most = all_reduce([1.0 + get_rank()], "max")
with open(os.path.join(sys.argv[1], f"rank{get_rank()}"), "w") as f:
    print(zeus.__name__, is_distributed(), get_world_size(), total, most, file=f)
dist.destroy_process_group()
"""

LIMITS = """
import os, sys, time
from zeus.device import get_gpus
rank = int(os.environ["LOCAL_RANK"])
get_gpus().set_power_management_limit(rank, 200000 + 10000 * rank)
with open(os.path.join(sys.argv[1], f"rank{rank}"), "w") as f:
    print(get_gpus().get_power_management_limit(rank), file=f)
while not os.path.exists(os.path.join(sys.argv[1], "go")):
    time.sleep(0.05)
os.kill(os.getpid(), 9)
"""


def paths(ours):
    own = f"{pyuser.PACKAGE}/underwatt/compat/_on_path:{pyuser.PACKAGE}"
    return {"PYTHONPATH": own if ours else "", "UNDERWATT_LIBRARY": str(pyuser.LIBRARY), "OMP_NUM_THREADS": "1"}


def both(t, model, folder, kind):
    script = os.path.join(folder, "measure.py")
    with uwtest.Node(board=model, count=2) as node:
        node.train("--gpus", "0", "--epochs", "100000", "--phases", "train")
        uwtest.wait_for(lambda: node.board(0)["power_mw"] > 150000)
        programs = [node.popen(fwuser.python(), "-W", "ignore", script, kind, stdin=subprocess.PIPE, env=paths(ours)) for ours in (False, True)]
        names = [p.stdout.readline().strip() for p in programs]
        if not t.equal(names, ["zeus", "underwatt.compat.zeus"], f"{model}: both monitors are there"):
            for p in programs:
                p.kill()
                print("\n".join(f"# {line}" for line in p.stderr.read().splitlines()))
            return
        time.sleep(5)
        found = []
        for wait_s in (WINDOW_S, 0):
            for p in programs:
                p.stdin.write("\n")
                p.stdin.flush()
            time.sleep(wait_s)
        for p in programs:
            found.append(json.loads(p.stdout.readline() or "null"))
            p.stdin.close()
            p.wait(30)
    for gpu in ("0", "1"):
        theirs, ours = ([f[1][gpu] / f[0] for f in found])
        t.near(ours, theirs, AGREE * theirs, f"{model}, GPU {gpu}, windows: Zeus {found[0][1][gpu]:.1f} J in {found[0][0]:.2f} s, "
               f"ours {found[1][1][gpu]:.1f} J in {found[1][0]:.2f} s: {100 * (ours / theirs - 1):+.2f} % of the mean power")
        if kind == "power":
            theirs, ours = (f[2][gpu] for f in found)
            uwtest.must(theirs, f"{model}, GPU {gpu}: Zeus has read its power", found)
            t.near(ours, theirs, AGREE * theirs, f"{model}, GPU {gpu}, power over time: {100 * (ours / theirs - 1):+.2f} %")


def processors(t):
    """By the daemon, which may read the counters; made-up ones of known power."""
    made_up = runpy.run_path(str(pathlib.Path(pyuser.HERE, "test-processors.py")))
    with uwtest.Node(board="v100", count=1) as node:
        tree = made_up["Tree"](pathlib.Path(node.tmp, "powercap"))
        node.daemon(f"boards: {{powercap: {tree.path}, rapl_period: 2 s}}\n")
        time.sleep(5)
        p = node.run(fwuser.python(), "-c", CPU, env=paths(True))
        tree.stop()
    if not t.ok(p.returncode == 0, "processors by the daemon", p.stderr):
        return
    whole, one, none, other, grams = json.loads(p.stdout)
    watts = made_up["WATTS"]
    for seconds, cpu, dram in (whole, one):
        t.near(cpu["0"] / seconds, watts["package-0"], 0.15 * watts["package-0"], f"package 0: {cpu['0']:.0f} J in {seconds:.1f} s")
        t.near(dram["0"] / seconds, watts["dram-0"], 0.4 * watts["dram-0"], f"its memory: {dram['0']:.0f} J")
    t.equal((none[1:], other[1:]), ([None, None], [None, None]), "none that is not asked for")
    t.near(grams[2]["0"], grams[1]["0"], 1e-6, "and their emissions")


class Gateway(http.server.BaseHTTPRequestHandler):
    pushed = {}    # by job, what was pushed last

    def do_POST(self):
        self.pushed[self.path] = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


def value(text, name):
    lines = [line for line in text.splitlines() if line.startswith(name + "{")]
    return float(lines[0].split()[-1]) if lines else None


def metrics(t):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with uwtest.Node(board="h100", count=1) as node, contextlib.closing(server.socket):
        node.train("--gpus", "0", "--epochs", "100000", "--phases", "train")
        uwtest.wait_for(lambda: node.board(0)["power_mw"] > 150000)
        p = node.run(fwuser.python(), "-c", METRICS, f"127.0.0.1:{server.server_port}", env=paths(True))
        server.shutdown()
        hung = node.run(fwuser.python(), "-c", HUNG, env=paths(True))
    t.equal(hung.stdout, "[12.0, 2.0, [], true]\n", f"a gateway that hangs: windows end, one push waits; an unknown energy is left out {hung.stderr}")
    lines = p.stdout.splitlines()
    if not t.ok(p.returncode == 0 and lines[-1] == "goes on" and len(Gateway.pushed) == 3, "metrics are pushed; a gateway that is away stops nothing", p.stdout + p.stderr):
        return
    inner, outer = map(float, lines[0].split())
    counter, gauge, histogram = (Gateway.pushed[f"/metrics/job/{job}"] for job in ("counter", "gauge", "histogram"))
    for name, text, suffix in (("counter", counter, "total"), ("histogram", histogram, "sum")):
        joules = value(text, f"energy_monitor_gpu_energy_joules_{suffix}")
        t.ok(0.98 * inner < joules <= 1.02 * outer, f"the {name} has the window's energy, between two pushes, too: {joules:.1f} J of {inner:.1f} to {outer:.1f} J", text)
    t.ok('window="epoch"' in counter and 'index="0"' in counter, "labels", counter)
    t.ok(value(gauge, "power_monitor_gpu_power_watts") > 100, "the gauge", gauge)


def torchrun(t, folder):
    script = os.path.join(folder, "rank.py")
    pathlib.Path(script).write_text(RANK)
    want = "underwatt.compat.zeus True 2 [3.0, 4.0] [2.0]\n"
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for name, words in (("torchrun -m underwatt.compat.zeus SCRIPT", [*run, "-m", "underwatt.compat.zeus", script]),
                        ("underwatt.compat.zeus -m torch.distributed.run SCRIPT", ["-m", "underwatt.compat.zeus", *run, script])):
        ranks = pathlib.Path(tempfile.mkdtemp(dir=folder))
        p = subprocess.run([fwuser.python(), *words, str(ranks)], capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL,
                           cwd=folder, env=pyuser.env(OMP_NUM_THREADS="1"))
        found = sorted((f.name, f.read_text()) for f in ranks.iterdir())
        t.ok(found == [("rank0", want), ("rank1", want)], f"{name}: in each rank zeus is this package, and sums are right", f"{found}\n{p.stderr}")


def limits(t, folder):
    """The ranks of a job share one keeper, and each sets its own board's limit; all are killed."""
    script, ranks = os.path.join(folder, "limits.py"), pathlib.Path(tempfile.mkdtemp(dir=folder))
    pathlib.Path(script).write_text(LIMITS)
    with uwtest.Node(board="v100", count=2, speed=20) as node:
        p = node.popen(fwuser.python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "underwatt.compat.zeus",
                       script, str(ranks), env={**paths(True), "PYTHONPATH": str(pyuser.PACKAGE)})
        found = uwtest.wait_until(lambda: sorted(int(f.read_text() or 0) for f in ranks.iterdir()),
                                  lambda limits: len(limits) == 2 and all(limits) or p.poll() is not None)
        t.ok(found == [200000, 210000], f"two ranks: {found} mW after the call", p.stderr.read() if p.poll() is not None else "")
        pathlib.Path(ranks, "go").touch()
        p.wait(60)
        uwtest.wait_for(lambda: all(b["limit_mw"] == 300000 for b in node.status()["boards"]))
        t.equal([b["limit_mw"] for b in node.status()["boards"]], [300000, 300000], "both are killed: the limits are back")


def main():
    t = uwtest.Tap()
    fwuser.python()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        torchrun(t, folder)
        limits(t, folder)
        metrics(t)
        pathlib.Path(folder, "measure.py").write_text(MEASURE)
        uwtest.together(lambda: both(t, "h100", folder, "power"), lambda: both(t, "v100", folder, "windows"), lambda: processors(t))
    t.done()


if __name__ == "__main__":
    main()
