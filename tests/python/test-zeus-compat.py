#!/usr/bin/python3
"""The interface of Zeus in a simulated node.  Standard library alone."""
import csv
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

import pyuser
import uwtest

MACHINE = "name: exact\nboards: [{model: v100, count: 3, ideal: true}]\n"

LIMITS = """
import sys
import underwatt.compat.zeus as zeus
from underwatt.compat.zeus.device.gpu import ZeusGPUNotSupportedError, ZeusGPUNoPermissionError
gpus = zeus.device.get_gpus()
print(len(gpus), gpus.gpus[0].underwatt_gpu, *gpus.get_power_management_limit_constraints(0), gpus.get_power_management_limit(0))
try:
    gpus.set_power_management_limit(0, 200000)
except ZeusGPUNoPermissionError as e:
    print("refused", e)
    sys.exit()
print(gpus.get_power_management_limit(0))
try:
    gpus.set_gpu_locked_clocks(0, 300, 900)
except ZeusGPUNotSupportedError as e:
    print("refused", e, flush=True)
for line in sys.stdin:
    gpus.set_power_management_limit(0, int(line))
    print(gpus.get_power_management_limit(0), flush=True)
"""

DEVICES = """
import json
import underwatt.compat.zeus as zeus
from underwatt.compat.zeus.device.gpu import nvidia
gpus = zeus.device.get_gpus(ensure_homogeneous=True)
print(json.dumps([nvidia.pynvml.__name__, [g.gpu_index for g in gpus.gpus], gpus.get_name(0), gpus.get_instant_power_usage(0),
    gpus.get_total_energy_consumption(0), gpus.supports_get_total_energy_consumption(0), gpus.get_gpu_temperature(0),
    max(gpus.get_supported_graphics_clocks(0)), zeus.device.get_gpus() is gpus]))
"""

CONSTRAINED = """
import underwatt.compat.zeus as zeus
monitor = zeus.monitor.ZeusMonitor()
monitor.begin_window("all", sync_execution=False)
measured = monitor.end_window("all", sync_execution=False)
print([g.underwatt_gpu for g in zeus.device.get_gpus().gpus], list(measured.gpu_energy))
"""

# `python -m …monitor energy`, which tells when it waits for Ctrl-C.
WAITS = """
import runpy, signal
pause = signal.pause
signal.pause = lambda: (print("waits", flush=True), pause())
runpy.run_module("underwatt.compat.zeus.monitor", run_name="__main__", alter_sys=True)
"""

# A program of board 1 without a daemon: it sets the boards that the lines name.
SHARED = """
import sys
import underwatt.compat.zeus as zeus
gpus = zeus.device.get_gpus()
for line in sys.stdin:
    try:
        gpus.set_power_management_limit(int(line), 200000, block=False)
        print("set", flush=True)
    except zeus.device.exception.ZeusBaseGPUError as e:
        print("refused", e, flush=True)
"""
OTHER = """
import sys, underwatt
optimizer = underwatt.Optimizer("edp", local=True, gpus=[0])
print("has a keeper", flush=True)
sys.stdin.readline()
"""

# A ramp that is too slow to be waited for, and another's lower claim.
BOUND = """
import subprocess, time, warnings
import underwatt.compat.zeus as zeus
from underwatt.compat.zeus.device.gpu import _writes
gpus = zeus.device.get_gpus()
def told(gpu, mw, block=True):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.monotonic()
        gpus.set_power_management_limit(gpu, mw, block=block)
    print(time.monotonic() - began < 20, gpus.get_power_management_limit(gpu) > mw, *[w.message for w in caught], flush=True)
told(1, 200000, block=False)
_writes.WAIT_S, _writes.RISE_S = 1.0, 0.5
told(1, 200000)
_writes.WAIT_S, _writes.STILL_S = 2000.0, 0.5
told(1, 200000)
gpus.set_power_management_limit(0, 220000, block=False)
subprocess.run(["underwatt", "cap", "set", "299", "--gpus", "0", "--detach"], check=True, stdout=subprocess.DEVNULL)
_writes.WAIT_S, _writes.STILL_S = 300.0, 100.0
while gpus.get_power_management_limit(0) > 299000:
    time.sleep(0.05)
told(0, 300000)
"""

NO_DRIVER = """
import underwatt.compat.zeus as zeus
from underwatt.compat.zeus.optimizer.power_limit import GlobalPowerLimitOptimizer
for call in (zeus.device.get_gpus, zeus.monitor.PowerMonitor, lambda: zeus.monitor.ZeusMonitor(gpu_indices=[0]),
             lambda: GlobalPowerLimitOptimizer(zeus.monitor.ZeusMonitor())):
    try:
        call()
    except Exception as e:
        print(type(e).__name__, e)
"""

# A window around the truth, which the test asks for; windows of 50 ms in it; what they cost.
WINDOWS = """
import copy, json, pickle, sys, time
import underwatt.compat.zeus as zeus
import underwatt.compat.zeus.monitor._poll as poll
add, looks = poll.Series.add, []
poll.Series.add = lambda series, at, value: (looks.append(at), add(series, at, value))
monitor = zeus.monitor.ZeusMonitor(gpu_indices=[0, 2], log_file=sys.argv[1])
power = zeus.monitor.PowerMonitor(gpu_indices=[0, 1], update_period=0.02)
celsius = zeus.monitor.TemperatureMonitor(update_period=0.1)
time.sleep(3)
monitor.begin_window("whole", sync_execution=False)
began = time.time()
print("begun", flush=True)
costs = []
for i in range(40):
    monitor.begin_window("short", sync_execution=False)
    time.sleep(0.05)
    at = time.perf_counter()
    measured = monitor.end_window("short", sync_execution=False)
    costs.append(time.perf_counter() - at)
sys.stdin.readline()
whole = monitor.end_window("whole", sync_execution=False)
ended = time.time()
by_power = power.get_energy(began, ended)
late = sum(max(b - a - 0.05, 0) for a, b in zip(looks, looks[1:]) if b > began)    # s in which the thread did not run
print(json.dumps([whole.time, whole.gpu_energy, whole.total_energy, ended - began, by_power, late, power.get_power(), celsius.get_temperature(), sorted(costs)[20],
    type(copy.copy(measured)).__name__, measured == pickle.loads(pickle.dumps(measured))]))
monitor.begin_window("whole", sync_execution=False)
for call in (lambda: monitor.begin_window("whole", sync_execution=False), lambda: monitor.end_window("other", sync_execution=False)):
    try:
        call()
    except ValueError as e:
        print(e)
monitor.begin_window("whole", sync_execution=False, restart=True)
print(monitor.end_window("whole", sync_execution=False, cancel=True))
monitor.begin_window("last", sync_execution=False)
monitor.end_window("last", sync_execution=False)
"""

# The thread that reads the power is kept from running.
KEPT = """
import time
import underwatt.compat.zeus as zeus
power = zeus.monitor.PowerMonitor(gpu_indices=[0], update_period=0.02)
for poller in power._pollers.values():
    poller._period_s = 1000    # from its next look on
time.sleep(1)
began = time.time()
time.sleep(1.5)
ended = time.time()
print(power.get_energy(began, ended)[0] / (ended - began) / power.get_power(began)[0])
power.stop()
print(power.get_energy(ended + 10, ended + 20))
"""

# A process is forked while a row waits for its energy.
FORKED = """
import os, sys
from underwatt.compat.zeus.monitor import ZeusMonitor
monitor = ZeusMonitor(gpu_indices=[0], log_file=sys.argv[1])
def window(key):
    monitor.begin_window(key, sync_execution=False)
    return monitor.end_window(key, sync_execution=False)
window("parent")
pid = os.fork()
measured = window("child" if pid == 0 else "after")
if pid == 0:
    measured.gpu_energy
    sys.exit()
print(os.waitpid(pid, 0)[1])
"""

REPLAY = """
import sys
from underwatt.compat.zeus.utils.testing import ReplayZeusMonitor
replay = ReplayZeusMonitor(log_file=sys.argv[1])
total = 0
for i in range(40):
    replay.begin_window("short", sync_execution=False)
    total += replay.end_window("short", sync_execution=False).gpu_energy[0]
print(replay.gpu_indices, total)
"""

# A program for Zeus, which knows nothing of Underwatt.
PROGRAM = """
import multiprocessing, sys
import zeus
from zeus.monitor import Measurement, ZeusMonitor
import zeus.utils.env as env
def work(found, sent):
    import zeus.monitor.energy
    found.put((zeus.__name__, zeus.monitor.energy.Measurement is type(sent), sent.total_energy))
if __name__ == "__main__":
    print(sys.argv[1:], zeus.__name__, ZeusMonitor.__module__, zeus.monitor.energy.ZeusMonitor is ZeusMonitor, env.__name__)
    for how in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(how)
        found = context.SimpleQueue()
        child = context.Process(target=work, args=(found, Measurement(1.0, {0: 5.0})))
        child.start()
        child.join()
        print(how, child.exitcode, found.get() if child.exitcode == 0 else None)
"""

MISSING = """
import importlib, zeus
for name in ("zeus.optimizer.batch_size", "zeus.optimizer.pipeline_frequency.server", "zeus._legacy.policy", "zeus.device.gpu.amd",
             "zeus.monitor.power_streaming", "underwatt.compat.zeus.optimizer.batch_size"):
    try:
        importlib.import_module(name)
        print("found", name)
    except ImportError as e:
        print(e)
for line in ("from zeus.device.soc import Jetson", "from zeus.device.gpu import AMDGPUs", "import zeus.nothing", "from zeus.monitor import Nope", "from underwatt.compat.zeus.monitor import Nope", "import zeus.monitor.energy.x"):
    try:
        exec(line)
        print("found", line)
    except ImportError as e:
        print(e)
"""

# Clients of providers, on loopback, by the standard library.
PROVIDERS = """
import http.server, json, threading
from underwatt.compat.zeus.monitor import carbon, price
asked = []
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        found = {"/latest": {"carbonIntensity": 466}, "/history": {"history": [{"datetime": "2026-11-26T05:00:00.000Z", "carbonIntensity": 400}]},
            "/rates": {"items": [{"label": "other"}, {"label": "mine", "energyratestructure": [[{"rate": 0.3}]],
            "energyweekdayschedule": 12 * [24 * [0]], "energyweekendschedule": 12 * [24 * [0]]}]}}
        name = next((n for n in found if n in self.path and "lat=1.5" in self.path), None)
        self.send_response(200 if name else 404)
        self.end_headers()
        self.wfile.write(json.dumps(found.get(name, {"error": "none"})).encode())
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
carbon.API = price.API = f"http://127.0.0.1:{server.server_port}"
price.API += "/rates"
here, there = carbon.ElectrictyMapsClient((1.5, 2.5), estimate=True, emission_factor_type="lifecycle"), carbon.ElectrictyMapsClient((3.5, 2.5))
print(here.get_current_carbon_intensity(), here.get_recent_carbon_intensity())
print(asked[0])
print(price.OpenEIClient((1.5, 2.5), "mine").get_current_electricity_prices()["energy_rate_structure"])
def tries(call):
    try:
        print("no error", call())
    except Exception as e:
        print(type(e).__name__, e)
tries(there.get_current_carbon_intensity)
tries(price.OpenEIClient((3.5, 2.5), "mine").get_current_electricity_prices)
tries(price.OpenEIClient((1.5, 2.5), "none").get_current_electricity_prices)
server.shutdown()
server.server_close()
tries(here.get_recent_carbon_intensity)
tries(price.OpenEIClient((1.5, 2.5), "mine").get_current_electricity_prices)
"""

# An hour ends in the middle of a window.
HOURS = """
import json, math, time, warnings
from datetime import datetime, timedelta, timezone
from underwatt.compat.zeus.monitor import _hourly, carbon, price
at = [None]
_hourly.now = lambda: at[0]
class Carbon(carbon.CarbonIntensityProvider):
    update_period, history_length = timedelta(hours=1), 24
    known = {}
    def get_current_carbon_intensity(self): return 1.0
    def get_recent_carbon_intensity(self): return self.known
class Price(price.ElectricityPriceProvider):
    fails = False
    def get_current_electricity_prices(self):
        if self.fails:
            raise price.ZeusElectricityPriceHTTPError("away")
        hours = [int(h == 18) for h in range(24)]
        return {"energy_rate_structure": [[{"rate": 0.1}], [{"rate": 0.4}]], "energy_weekday_schedule": 12 * [hours], "energy_weekend_schedule": 12 * [24 * [0]]}
def runs(monitor, first, energies, costs):
    at[0] = first
    monitor.begin_window("w", sync_execution=False)
    time.sleep(1)
    at[0] += timedelta(minutes=40)
    monitor._hours.turn()
    time.sleep(1)
    m = monitor.end_window("w", sync_execution=False)
    return getattr(m, costs)[0] * 3.6e6 / m.gpu_energy[0], sorted(getattr(m, costs)), monitor.current_keys == set()
utc = datetime(2026, 11, 26, 17, 30, tzinfo=timezone.utc)
local = datetime(2026, 11, 26, 17, 30).astimezone()
c = Carbon()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    c.known = {utc.replace(minute=0): 400, utc.replace(hour=18, minute=0): 100}
    found = [runs(carbon.CarbonEmissionMonitor(c, gpu_indices=[0]), utc, "gpu_energy", "gpu_carbon_emission")]
    c.known = {utc.replace(hour=16, minute=0): 300}
    found.append(runs(carbon.CarbonEmissionMonitor(c, gpu_indices=[0, 1]), utc, "gpu_energy", "gpu_carbon_emission"))
    p = Price()
    found.append(runs(price.EnergyCostMonitor(p, gpu_indices=[0]), local, "gpu_energy", "gpu_energy_cost"))
    print(json.dumps([found, [str(w.message) for w in caught]]))
    p.fails = True
    print(runs(price.EnergyCostMonitor(p, gpu_indices=[0]), local, "gpu_energy", "gpu_energy_cost"), caught[-1].message)
"""

# The energy of a driven step, whose truth the boards tell.
PROFILE = """
import json, sys, types
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: False))
import underwatt.compat.zeus as zeus
from underwatt.testing import SimLoad
monitor = zeus.monitor.ZeusMonitor([0])
with SimLoad("resnet50", boards=[0]) as load:
    done = []
    step = lambda: done.append(load.step().wait().energy_j)
    step()
    one = zeus.profile.measure(step, monitor, 4.0, 0.5, num_warmup_iterations=5, num_calibration_iterations=10)
    true_j = (done[-1] - done[-1 - one.iterations]) / one.iterations
    sweep, _ = zeus.profile.profile_parameters(step, monitor, [0.4, 0.8], [0.1, 0.2], num_trials=2, num_warmup_trials=1,
        trial_stddev_threshold=1e9, num_warmup_iterations=2, num_calibration_iterations=4)
print(json.dumps([one.energy_per_iter, true_j, one.iterations, one.total_time, one.temperature_after, sweep.sweep_param, sweep.fixed_param,
    [(len(e.trials), e.is_valid, e.energy_mean) for e in sweep.entries]]))
print(sweep)
"""

# Counters as the kernel has them: they wrap.
RAPL = """
import json, pathlib, sys
from underwatt.compat.zeus.device import get_cpus
from underwatt.compat.zeus.device.cpu import ZeusCPUInitError, rapl
from underwatt.compat.zeus.device.cpu.common import CpuDramMeasurement
root = pathlib.Path(sys.argv[1])
rapl.RAPL_DIR = rapl.CONTAINER_RAPL_DIR = "/nowhere"
try:
    get_cpus()
except ZeusCPUInitError as e:
    print(type(e).__name__)
def write(zone, uj):
    (root / zone / "energy_uj").write_text(str(uj))
for zone, name, uj in (("intel-rapl:0", "package-0", 900), ("intel-rapl:0/intel-rapl:0:0", "dram", 50000), ("intel-rapl:1", "psys", 1),
                       ("intel-rapl:2", "package-1", 0)):
    (root / zone).mkdir(parents=True)
    (root / zone / "name").write_text(name)
    (root / zone / "max_energy_range_uj").write_text("1000")
    write(zone, uj)
rapl.RAPL_DIR = str(root)
rapl.rapl_is_available.cache_clear()
cpus = get_cpus()
before = cpus.get_total_energy_consumption(0)
write("intel-rapl:0", 100)
wrapped = cpus.get_total_energy_consumption(0) - before
write("intel-rapl:0", 150)
print(json.dumps([len(cpus), [c.cpu_index for c in cpus.cpus], [cpus.supports_get_dram_energy_consumption(i) for i in (0, 1)],
    wrapped.cpu_mj, wrapped.dram_mj, (cpus.get_total_energy_consumption(0) - before).cpu_mj, cpus.get_total_energy_consumption(1).dram_mj,
    (CpuDramMeasurement(4.0, 2.0) / 2).dram_mj]))
"""

HELPERS = """
import json, os, sys, types
from underwatt.compat.zeus.callback import Callback, CallbackSet
from underwatt.compat.zeus.utils import framework, lat_lon, metric
from underwatt.compat.zeus.utils.env import get_env
def tries(call, *arguments):
    try:
        return call(*arguments)
    except Exception as e:
        return type(e).__name__
os.environ.update(N="3", YES="True", ODD="maybe")
print(json.dumps([get_env("N", int), get_env("YES", bool), get_env("NONE", str, default="x"), tries(get_env, "NONE", str), tries(get_env, "ODD", bool)]))
class Counts(Callback):
    def __init__(self): self.heard = []
    def on_step_begin(self): self.heard.append("step")
    def on_evaluate(self, metric): self.heard.append(metric)
    def on_instruction_end(self, name): self.heard.append(name)
both = [Counts(), Counts()]
several = CallbackSet(both)
several.on_train_begin(); several.on_step_begin(); several.on_evaluate(0.5); several.on_instruction_end("forward"); several.on_epoch_end()
print(json.dumps([c.heard for c in both]))
with open(sys.argv[1], "w") as f:
    f.write("Time,Power\\n" + "".join(f"2026-11-26 10:00:{s:02}.000,{100000 + 10000 * s}\\n" for s in range(11)) + "2026-11-26 10:0")
print(json.dumps([metric.zeus_cost(10.0, 2.0, 0.25, 100), metric.energy(sys.argv[1]), metric.energy(sys.argv[1], start=-2), metric.energy(sys.argv[1], start=2, end=4),
    metric.avg_power(sys.argv[1], end=2), tries(metric.energy, sys.argv[1], 3, 3)]))
print(json.dumps([framework.all_reduce([1, 2], "sum"), framework.is_distributed(), framework.get_rank(), framework.get_world_size(),
    tries(framework.sync_execution, [0], "cupy"), tries(framework.all_reduce, [1], "mean")]))
waited = []
sys.modules["torch"] = types.SimpleNamespace(cuda=types.SimpleNamespace(is_initialized=lambda: True, synchronize=waited.append))
framework.sync_execution([0, 2])
class Away(OSError): pass
def get(url, timeout):
    if "away" in asked: raise Away("away")
    return types.SimpleNamespace(json=lambda: {"loc": "42.3,-83.7"}, text="")
asked = set()
sys.modules["requests"] = types.SimpleNamespace(get=get)
print(json.dumps([waited, lat_lon.get_ip_lat_long(), asked.add("away") or tries(lat_lon.get_ip_lat_long)]))
try:
    import prometheus_client
except ImportError:
    from underwatt.compat.zeus.metric import PowerGauge
    print(tries(PowerGauge, [0], 1, "127.0.0.1:9", "job"))
else:
    print("ImportError")
"""

# The daemon is killed in the middle of a window.
AWAY = """
import sys, warnings
from underwatt.compat.zeus.monitor import ZeusMonitor
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    monitor = ZeusMonitor()
    monitor.begin_window("w", sync_execution=False)
    print("begun", flush=True)
    sys.stdin.readline()
    measured = monitor.end_window("w", sync_execution=False)
    print(measured.time > 0, measured.gpu_energy, sum("NaN" in str(w.message) for w in caught))
"""


def helpers(t, folder):
    p = subprocess.run([sys.executable, "-c", HELPERS, os.path.join(folder, "power.csv")], capture_output=True, text=True, timeout=60, env=pyuser.env())
    lines = p.stdout.splitlines()
    if not t.ok(p.returncode == 0 and len(lines) == 6, "helpers", p.stdout + p.stderr):
        return
    t.equal(json.loads(lines[0]), [3, True, "x", "ValueError", "ValueError"], "get_env")
    t.equal(json.loads(lines[1]), 2 * [["step", 0.5, "forward"]], "a set of callbacks")
    t.equal(json.loads(lines[2]), [152.5, 1500.0, 380.0, 260.0, 110.0, "ValueError"], "cost; energy and power of a log whose last line is cut off")
    t.equal(json.loads(lines[3]), [[1, 2], False, 0, 1, "RuntimeError", "ValueError"], "one process, and a framework that is not installed")
    t.equal(json.loads(lines[4]), [[0, 2], [42.3, -83.7], "Away"], "torch is waited for; where this machine is, by requests where it is loaded")
    t.equal(lines[5], "ImportError", "metrics without prometheus_client")


def away(t, node, d):
    p = pyuser.begun_in_world(node, AWAY, stdin=subprocess.PIPE)
    t.equal(p.stdout.readline(), "begun\n", "a window with the daemon")
    d.kill()
    out, err = p.communicate("\n", timeout=60)
    t.equal((out, err, p.returncode), ("True {0: nan, 1: nan} 1\n", "", 0), "the daemon is killed: the energy is NaN, with a warning, and the program goes on")


def no_driver(t, folder):
    """Nor a daemon."""
    library = os.path.join(folder, "libnvidia-ml.so.1")
    pathlib.Path(library).touch()    # the only one that is found, and is none
    p = subprocess.run([sys.executable, "-c", NO_DRIVER], capture_output=True, text=True, timeout=60, env=pyuser.env(LD_LIBRARY_PATH=folder))
    why = "NVML cannot be used: libnvidia-ml.so.1 was not found"
    t.equal(p.stdout.splitlines(), [f"ZeusGPUInitError {why}"] * 2 + [f"ValueError gpu_indices: 0 is none of 0 GPUs ({why})", f"ZeusGPUInitError {why}"],
            f"no driver and no daemon: each says why in one line {p.stderr}")


def processors(t, folder):
    p = subprocess.run([sys.executable, "-c", RAPL, os.path.join(folder, "powercap")], capture_output=True, text=True, timeout=60, env=pyuser.env())
    lines = p.stdout.splitlines()
    if t.ok(p.returncode == 0 and lines[0] == "ZeusCPUInitError", "no RAPL; then processors", p.stdout + p.stderr):
        n, indices, memory, wrapped, dram, later, none, half = json.loads(lines[1])
        t.equal((n, indices, memory, none), (2, [0, 2], [True, False], None), "packages and their memory, and no other zones")
        t.ok(abs(wrapped - 0.2) < 1e-9 and dram == 0 and abs(later - 0.25) < 1e-9 and half == 1.0, "a counter that wraps goes on", lines)


def profiles(t, node):
    p = pyuser.in_world(node, PROFILE)
    lines = p.stdout.splitlines()
    if not t.ok(p.returncode == 0 and len(lines) == 4, "a function is profiled", p.stdout + p.stderr):
        return
    joules, true_j, n, seconds, celsius, swept, fixed, entries = json.loads(lines[0])
    t.near(joules, true_j, 0.1 * true_j, f"{joules:.2f} J an iteration of {n} in {seconds:.2f} s, true {true_j:.2f} J")
    t.ok(n > 5 and 2 < seconds and 20 < celsius < 100, "iterations, time and temperature", lines)
    t.equal((swept, fixed), (["measurement_duration", [0.4, 0.8]], ["cooldown_duration", 0.2]), "durations of the measurement, with the longest rest")
    t.ok([e[:2] for e in entries] == [[2, True]] * 2 and all(e[2] > 0 for e in entries) and lines[1].startswith("measurement_duration"), "two trials each", lines)


def shows(t, node):
    p = pyuser.in_world(node, "import runpy; runpy.run_module('underwatt.compat.zeus.show_env', run_name='__main__')")
    t.ok(p.returncode == 0 and "GPU 1 (driver's 1): Tesla V100" in p.stdout and "of 150 to 300 W" in p.stdout and "Daemon" in p.stdout,
         "show_env", p.stdout + p.stderr)
    p = subprocess.run([sys.executable, "-m", "underwatt.compat.zeus.show_env"], capture_output=True, text=True, timeout=60,
                       env=pyuser.env(UNDERWATT_NVML="/nowhere/libnvidia-ml.so.1"))
    t.ok(p.returncode == 0 and p.stdout.count("none: ") >= 2, "show_env where there is nothing", p.stdout + p.stderr)


def providers(t):
    p = subprocess.run([sys.executable, "-c", PROVIDERS], capture_output=True, text=True, timeout=60, env=pyuser.env())
    lines = p.stdout.splitlines()
    t.ok(p.returncode == 0 and lines[0] == "466 {datetime.datetime(2026, 11, 26, 5, 0, tzinfo=datetime.timezone.utc): 400}", "carbon intensities", p.stdout + p.stderr)
    t.equal(lines[1], "/carbon-intensity/latest?lat=1.5&lon=2.5&disableEstimations=False&emissionFactorType=lifecycle", "as Electricity Maps is asked")
    t.equal(lines[2], "[[{'rate': 0.3}]]", "rates of a label")
    t.equal([line.split()[0] for line in lines[3:]], ["ZeusCarbonIntensityNotFoundError", *2 * ["ZeusElectricityPriceNotFoundError"],
            "ZeusCarbonIntensityHTTPError", "ZeusElectricityPriceHTTPError"], "what is not known, and who does not answer")


def hours(t, node):
    p = pyuser.in_world(node, HOURS)
    lines = p.stdout.splitlines()
    if not t.ok(p.returncode == 0 and len(lines) == 2, "windows over the end of an hour", p.stdout + p.stderr):
        return
    ((grams, gpus, closed), (before, both, _), (cost, *_)), caught = json.loads(lines[0])
    t.ok(150 < grams < 350 and gpus == [0] and closed, f"each hour by its own intensity: {grams:.0f} of 400 and 100")
    t.ok(abs(before - 300) < 1e-6 and both == [0, 1], f"hours that are not known yet: by the newest before, {before}")
    t.ok(0.15 < cost < 0.35, f"each hour by its own price, of local time: {cost:.3f} of 0.1 and 0.4")
    t.equal(caught, [], "no warning")
    t.ok(lines[1].startswith("(nan, [0], True) prices are not known: away"), "a provider that fails: the energy stands, the cost is NaN", lines[1])


def launches(t, folder):
    """Standard library alone, and no board."""
    script = os.path.join(folder, "program.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    env = pyuser.env()
    run = lambda *words, **kw: subprocess.run([sys.executable, "-m", "underwatt.compat.zeus", *words], capture_output=True, text=True,
                                              timeout=60, stdin=subprocess.DEVNULL, **{"env": env, "cwd": folder, **kw})
    name = "underwatt.compat.zeus"
    want = [f"['a', '-m'] {name} {name}.monitor.energy True {name}.utils.env",
            *(f"{how} 0 ('{name}', True, 5.0)" for how in ("fork", "spawn", "forkserver"))]
    for words in ([script, "a", "-m"], ["-m", "program", "a", "-m"]):
        p = run(*words)
        t.equal((p.stdout.splitlines(), p.stderr), (want, ""), f"{' '.join(words[:-2])}: zeus is this package, in each child too")
    p = run(script, "a", "-m", env={**env, "PYTHONPATH": ""}, cwd=pyuser.PACKAGE)
    t.equal(p.stdout.splitlines(), want, f"the package is found where the command found it {p.stderr}")
    p = run("-m", "zeus.monitor", "--help")
    t.ok(p.returncode == 0 and "energy|power" in p.stdout, "-m zeus.monitor", p.stdout + p.stderr)
    with open(script, "w", encoding="utf-8") as f:
        f.write(MISSING)
    lines = run(script).stdout.splitlines()
    lines, unknown = lines[:8], lines[8:]
    t.ok(len(unknown) == 4 and all("zeus.nothing" in x or "Nope" in x or "zeus.monitor.energy" in x for x in unknown)
         and "out of scope" not in "".join(unknown), "what Zeus does not have either is not said to be out of scope", unknown)
    t.ok(len(lines) == 8 and all("zeus." in line and "is missing" in line and "out of scope" in line for line in lines), "what is missing names itself", lines)
    t.ok(lines[0].startswith("zeus.optimizer.batch_size is missing") and "batch size optimizer" in lines[0], "and says what is out of scope", lines)
    for words, code, why in (([], 2, "usage: "), (["nowhere.py"], 2, "nowhere.py: No such file"), (["-m"], 2, "usage: "), (["-x"], 2, "usage: "), (["--help"], 0, "")):
        p = run(*words)
        t.ok(p.returncode == code and why in p.stderr, f"{words}: {code}", p.stdout + p.stderr)
    os.mkdir(os.path.join(folder, "zeus"))
    p = run(script)
    t.ok(p.returncode == 2 and "comes before" in p.stderr, "another zeus beside the script: refused", p.stderr)
    p = run(script, env={**env, "PYTHONSAFEPATH": "1"}) if sys.version_info >= (3, 11) else None
    t.ok(p is None or p.returncode == 0, "but not where it is not on the path")


def windows(t, node, folder):
    path = os.path.join(folder, "log", "windows.csv")
    p = pyuser.begun_in_world(node, WINDOWS, path, stdin=subprocess.PIPE)
    t.equal(p.stdout.readline(), "begun\n", "windows begin")
    a = node.status()["boards"]
    time.sleep(4)
    b = node.status()["boards"]
    out, err = p.communicate("\n", timeout=60)
    lines = out.splitlines()
    if not t.ok(p.returncode == 0 and len(lines) == 4, "they end", out + err):
        return
    seconds, energies, total, span, by_power, late, power, celsius, cost, copied, same = json.loads(lines[0])
    watts = [(b[i]["true_j"] - a[i]["true_j"]) / (b[i]["at_ns"] - a[i]["at_ns"]) * 1e9 for i in range(3)]
    for i, found in energies.items():
        t.near(found / seconds, watts[int(i)], 0.03 * watts[int(i)], f"GPU {i}: {found:.1f} J in {seconds:.2f} s, true {watts[int(i)]:.1f} W")
    t.ok(sorted(energies) == ["0", "2"] and abs(total - sum(energies.values())) < 1e-6, "of the GPUs asked for, and their sum", energies)
    # Its readings miss what the power does while its thread does not run: half of the mean, within a step.
    for i, found in by_power.items():
        t.near(found / span, watts[int(i)], (0.05 + 0.5 * late / span) * watts[int(i)],
               f"GPU {i}, of its power over time: {found:.1f} J, readings {late:.2f} s late (GPU 1 is at rest)")
    t.ok(sorted(power) == ["0", "1"] and sorted(celsius) == ["0", "1", "2"] and 20 < celsius["0"] < 100, "power and temperature", (power, celsius))
    t.ok(cost < 0.05, f"ending a window takes {cost * 1e6:.0f} us (median of 40) and waits for no energy")
    t.equal((copied, same), ("Measurement", True), "a measurement is copied and pickled")
    t.ok("already exists" in lines[1] and "does not exist" in lines[2], "names that are taken, or none", lines)
    t.equal(lines[3], "Measurement(time=0.0, gpu_energy={0: 0.0, 2: 0.0}, cpu_energy={}, dram_energy=None, soc_energy=None)", "a window that is given up")
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    t.equal((rows[0], [r[1] for r in rows[1:]]), (["start_time", "window_name", "elapsed_time", "gpu0_energy", "gpu2_energy"],
            40 * ["short"] + ["whole", "last"]), "the log has all, in the order of their ends")
    shorts = sum(float(r[3]) for r in rows[1:41])
    span = sum(float(r[2]) for r in rows[1:41])
    t.near(shorts / span, watts[0], 0.06 * watts[0], f"40 windows of 50 ms: {shorts:.1f} J in {span:.2f} s")
    p = pyuser.in_world(node, REPLAY, path)
    t.ok(p.stdout.startswith("[0, 2] ") and abs(float(p.stdout.split()[-1]) - shorts) < 1e-6, "the log is replayed", p.stdout + p.stderr)


def kept(t, node):
    p = pyuser.in_world(node, KEPT)
    lines = p.stdout.splitlines()
    if t.ok(p.returncode == 0 and len(lines) == 2, "a thread of power that is kept from running", p.stdout + p.stderr):
        t.near(float(lines[0]), 1, 1e-6, "the power that it read last holds until now all the same")
        t.equal(lines[1], "{0: 0.0}", "not beyond stop()")


def forked(t, node, folder):
    path = os.path.join(folder, "forked.csv")
    p = pyuser.in_world(node, FORKED, path)
    t.equal(p.stdout, "0\n", f"a process is forked while a row of the log waits {p.stderr}")
    with open(path, newline="", encoding="utf-8") as f:
        rows = [(r[1], r[3] != "nan") for r in csv.reader(f)][1:]
    t.equal(sorted(row for row in rows if row[0] != "child"), [("after", True), ("parent", True)], "the parent writes its own rows, once")


def command(t, node):
    env = {"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY)}
    for begins, first, words, want in (
            (["-c", WAITS], "waits\n", ["energy", "--gpu-indices", "0"], "Total energy (J): Measurement(time="),
            (["-m", "underwatt.compat.zeus.monitor"], "{'GPU0': ", ["power", "--update-period", "0.2"], "Total energy (J): {'GPU0': ")):
        p = node.popen(sys.executable, *begins, *words, env=env)
        t.ok(first in p.stdout.readline(), f"…monitor {words[0]}: its window is open, or a line a period comes")
        time.sleep(0.5)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        t.ok(want in out and p.returncode == 0, f"python -m …monitor {words[0]} until Ctrl-C", out + err)


def devices(t, node):
    uuids = [b["uuid"] for b in node.status()["boards"]]
    for text, want in (("1,0", [1, 0]), (f"{uuids[1]},0", [1, 0]), (uuids[1][:12], [1]), ("0,7,1", [0])):
        p = pyuser.in_world(node, DEVICES, CUDA_VISIBLE_DEVICES=text)
        if not t.ok(p.returncode == 0, f"CUDA_VISIBLE_DEVICES={text}", p.stderr):
            continue
        seam, indices, name, power, energy, counts, celsius, mhz, same = json.loads(p.stdout)
        t.ok(seam.endswith("_nvml") and indices == want and "V100" in name and 20000 < power < 400000 and energy > 0 and counts
             and 20 < celsius < 95 and mhz > 1000 and same, "its GPUs and their readings", p.stdout)
    for text in ("", "9", "MIG-GPU-1"):
        p = pyuser.in_world(node, DEVICES, CUDA_VISIBLE_DEVICES=text)
        t.ok("ZeusGPUInitError: CUDA_VISIBLE_DEVICES=" in p.stderr, f"CUDA_VISIBLE_DEVICES='{text}': refused", p.stderr)


def constrained(t, node):
    """A program that may open the device file of board 1 alone, as under Slurm's ConstrainDevices, counts it 0, and measures that board."""
    uuid = node.board(1)["uuid"]
    dev = os.path.join(node.state, "dev")
    os.mkdir(dev)
    with open(os.path.join(dev, "nvidia1"), "w", encoding="ascii"):
        pass
    for text in ("0", "0,1"):
        p = pyuser.in_world(node, CONSTRAINED, CUDA_VISIBLE_DEVICES=text)
        t.equal(p.stdout, f"{[uuid]} [0]\n", f"board 1 is the job's: CUDA_VISIBLE_DEVICES={text} {p.stderr}")
    shutil.rmtree(dev)


def limits(t, node):
    """Limits are claims with the daemon: those of a killed program end."""
    node.fault("0", "limit", "250W")  # not the board's highest
    p = pyuser.in_world(node, LIMITS, PATH="/nowhere")
    t.ok("refused" in p.stdout and "systemctl start underwattd" in p.stdout and node.board(0)["limit_mw"] == 250000,
         "nobody who sets limits: refused, with what to start", p.stdout + p.stderr)
    p = pyuser.begun_in_world(node, LIMITS, stdin=subprocess.PIPE)
    lines = [p.stdout.readline().rstrip() for _ in range(3)]
    t.equal(lines[1], "200000", "without a daemon: by the keeper's, down the ramp, and in force after the call")
    p.kill()
    uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 250000)
    t.equal(node.board(0)["limit_mw"], 250000, "kill -9: the limit that was found is back")
    d = node.daemon("caps: {classes: {default: {ramp: at once}}}\n")
    p = pyuser.begun_in_world(node, LIMITS, stdin=subprocess.PIPE)
    lines = [p.stdout.readline().rstrip() for _ in range(3)]
    t.equal(lines[:2], [f"2 {node.board(0)['uuid']} 150000 300000 250000", "200000"], "a limit that is set holds")
    t.ok("clocks" in lines[2], "clocks are not locked", lines)
    told = d.ask("GET", "/v1/gpus/0/explain")[1]
    t.ok("zeus: -c" in str(told), "it is a claim, and says whose", told)
    for mw, want in ((180000, 180000), (300000, 250000), (280000, 250000), (170000, 170000)):
        p.stdin.write(f"{mw}\n")
        p.stdin.flush()
        t.equal(p.stdout.readline(), f"{want}\n", f"{mw} mW are asked for: at most what was found")
    t.ok(len(d.ask("GET", "/v1/claims")[1]["claims"]) == 1, "one claim at a time", d.ask("GET", "/v1/claims"))
    p.kill()
    uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 250000)
    t.equal(node.board(0)["limit_mw"], 250000, "kill -9: the limit that was found is back")
    return d


def shared(t, node):
    """Without a daemon each program's keeper holds the boards that it sets, and no others."""
    def set_by(program, board):
        program.stdin.write(f"{board}\n")
        program.stdin.flush()
        return program.stdout.readline().strip()

    def limits_are(*want):
        return uwtest.wait_for(lambda: [b["limit_mw"] for b in node.status()["boards"]] == list(want), 60)

    a, c = (pyuser.begun_in_world(node, SHARED, stdin=subprocess.PIPE) for _ in range(2))
    t.equal(set_by(a, 1), "set", "a program sets a limit of board 1")
    b = pyuser.begun_in_world(node, OTHER, stdin=subprocess.PIPE)
    t.equal(b.stdout.readline(), "has a keeper\n", "another program has a keeper for board 0")
    told = set_by(c, 0)
    t.ok("refused" in told and "GPU 0" in told and "held by" in told, "a third one is refused board 0, with who has it", told)
    began = time.monotonic()
    told = set_by(a, 0)
    t.ok(told.startswith(f"refused {node.board(0)['uuid']}: held by underwatt (pid "),
         f"so is the first one, whose keeper holds another board: {told}, after {time.monotonic() - began:.1f} s", a.poll())
    b.stdin.write("\n")
    b.stdin.flush()
    b.wait(60)
    t.ok(limits_are(300000, 200000) and not uwtest.wait_for(lambda: node.board(0)["limit_mw"] != 300000, 3),
         "what was refused does not come later", node.status()["boards"])
    t.equal(set_by(a, 0), "set", "the first one sets a limit of board 0, too, when the other has ended")
    t.ok(limits_are(200000, 200000), "and has both boards", node.status()["boards"])
    a.kill()
    c.kill()
    t.ok(limits_are(300000, 300000), "kill -9: both limits are back", node.status()["boards"])


def bounded(t):
    """What a call that waits for the limit does where it cannot come to be in force."""
    with uwtest.Node(board="v100", count=2) as node:
        node.daemon("caps: {classes: {default: {ramp: 0.01 %/s}}}\n")
        p = pyuser.in_world(node, BOUND)
        lines = p.stdout.splitlines()
        uuids = [b["uuid"] for b in node.status()["boards"]]
    if not t.equal((p.returncode, len(lines)), (0, 4), f"limits that are not in force soon {p.stderr}"):
        return
    t.equal(lines[0], "True True", "block=False waits for no ramp, and warns of none")
    late = re.fullmatch(rf"True True {uuids[1]}: (\d+) W is in force, not 200 W: it is still on its way down \(underwatt explain\)", lines[1])
    t.ok(late and 200 < int(late[1]) <= 300 and lines[2].startswith("True True GPU-") and "on its way down" in lines[2],
         "a ramp is waited for so long, and while it moves; then a warning says what is in force", lines)
    t.equal(lines[3], f"True False {uuids[0]}: 299 W is in force, not 300 W: another claim is lower (underwatt explain)", "another's lower claim: a warning")


def measures(t):
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(machine=MACHINE) as node:
        job = node.train("--gpus", "0,2", "--epochs", "100000", "--phases", "train")
        uwtest.wait_for(lambda: node.board(0)["power_mw"] > 200000)
        windows(t, node, folder)
        kept(t, node)
        forked(t, node, folder)
        command(t, node)
        hours(t, node)
        job.terminate()
        job.wait()
        profiles(t, node)


def sets(t):
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        launches(t, folder)
        providers(t)
        processors(t, folder)
        helpers(t, folder)
        no_driver(t, folder)
    with uwtest.Node(board="v100", count=2, speed=20) as node:
        devices(t, node)
        constrained(t, node)
        shared(t, node)
        shows(t, node)
        away(t, node, limits(t, node))


def main():
    t = uwtest.Tap()
    uwtest.together(lambda: measures(t), lambda: sets(t), lambda: bounded(t))    # most of their time is waiting
    t.done()


if __name__ == "__main__":
    main()
