#!/usr/bin/python3
"""Real clients of NVML on simulated boards: nvidia-ml-py, Zeus, nvtop, zeusd.

Each is the program itself.  Zeus counts no boards and succeeds where it finds no
library: its boards and joules are compared with what the node itself says.
"""
import fcntl
import http.client
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import sys
import termios
import time

import uwtest

t = uwtest.Tap()

PYNVML = r"""
import json, pynvml as n
n.nvmlInit()
out = {"driver": n.nvmlSystemGetDriverVersion(), "boards": [], "errors": []}
for i in range(n.nvmlDeviceGetCount()):
    d = n.nvmlDeviceGetHandleByIndex(i)
    b = {}
    for name in ("Name UUID Serial PciInfo MemoryInfo BAR1MemoryInfo PowerUsage EnforcedPowerLimit "
                 "PowerManagementLimit PowerManagementDefaultLimit PowerManagementLimitConstraints "
                 "TotalEnergyConsumption UtilizationRates EncoderUtilization DecoderUtilization "
                 "ComputeRunningProcesses GraphicsRunningProcesses MPSComputeRunningProcesses "
                 "Architecture PersistenceMode CurrentClocksEventReasons CurrentClocksThrottleReasons "
                 "SupportedClocksEventReasons Brand Index MinorNumber CudaComputeCapability "
                 "PerformanceState SupportedMemoryClocks MaxPcieLinkGeneration CurrPcieLinkWidth "
                 "ComputeMode DisplayActive BoardId NumGpuCores VbiosVersion").split():
        try:
            b[name] = getattr(n, "nvmlDeviceGet" + name)(d)
        except n.NVMLError as e:
            out["errors"].append(f"{name}: {e}")
    b["temperature"] = n.nvmlDeviceGetTemperature(d, n.NVML_TEMPERATURE_GPU)
    b["memory2"] = n.nvmlDeviceGetMemoryInfo(d, version=n.nvmlMemory_v2).total
    b["clocks"] = [n.nvmlDeviceGetClockInfo(d, c) for c in range(4)]
    b["max"] = n.nvmlDeviceGetMaxClockInfo(d, n.NVML_CLOCK_SM)
    b["graphics"] = len(n.nvmlDeviceGetSupportedGraphicsClocks(d, b["SupportedMemoryClocks"][0]))
    b["pids"] = [p.pid for p in b["ComputeRunningProcesses"]]
    b["util"] = n.nvmlDeviceGetProcessUtilization(d, 0)[0].pid if b["pids"] else 0
    b["violation"] = n.nvmlDeviceGetViolationStatus(d, n.NVML_PERF_POLICY_POWER).referenceTime
    f = n.nvmlDeviceGetFieldValues(d, [n.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
                                       n.NVML_FI_DEV_POWER_AVERAGE, n.NVML_FI_DEV_POWER_INSTANT])
    b["fields"] = [x.nvmlReturn for x in f]
    b["field_energy"] = f[0].value.ullVal
    b["energy_after"] = n.nvmlDeviceGetTotalEnergyConsumption(d)
    b["bus"] = [b["PciInfo"].busId, b["PciInfo"].busIdLegacy]
    for mode in ("MigMode", "EccMode", "C2cModeInfoV"):
        try:
            getattr(n, "nvmlDeviceGet" + mode)(d)
            out["errors"].append(mode + " answered")
        except n.NVMLError_NotSupported:
            pass
    n.nvmlDeviceSetPowerManagementLimit(d, 200000 + i)
    b["after"] = n.nvmlDeviceGetEnforcedPowerLimit(d)
    n.nvmlDeviceSetGpuLockedClocks(d, 600, 900)
    n.nvmlDeviceResetGpuLockedClocks(d)
    n.nvmlDeviceSetPersistenceMode(d, 1)
    b["persistence"] = n.nvmlDeviceGetPersistenceMode(d)
    n.nvmlDeviceSetPowerManagementLimit(d, b["PowerManagementDefaultLimit"])
    try:
        n.nvmlDeviceSetPowerManagementLimit(d, 1)
        out["errors"].append("a limit of 1 mW is taken")
    except n.NVMLError_InvalidArgument:
        pass
    out["boards"].append({k: v for k, v in b.items() if isinstance(v, (int, str, list))
                          and k != "ComputeRunningProcesses" and not k.endswith("Processes")})
n.nvmlShutdown()
print(json.dumps(out))
"""

ZEUS = r"""
import json, sys, time, warnings
warnings.simplefilter("ignore")
from zeus.monitor import ZeusMonitor
m = ZeusMonitor(cpu_indices=[])
m.begin_window("w", sync_execution=False)
time.sleep(4)
r = m.end_window("w", sync_execution=False)
print(json.dumps({"time": r.time, "joules": {str(k): v for k, v in r.gpu_energy.items()}}))
"""

ZEUS_POWER = r"""
import json, sys, time
from zeus.monitor.power import PowerMonitor
if __name__ == "__main__":    # it gives its processes 10 s to begin: a busy machine needs more
    from multiprocessing.synchronize import Event
    wait = Event.wait
    Event.wait = lambda self, timeout=None: wait(self, timeout and 20 * timeout)
    m = PowerMonitor(gpu_indices=[0, 2], update_period=0.02)
    time.sleep(1)
    a = time.time()
    time.sleep(3)
    b = time.time()
    time.sleep(0.5)
    print(json.dumps({str(k): v / (b - a) for k, v in m.get_energy(a, b).items()}))
    m.stop()
"""


def pynvml(node, python):
    p = node.run(python, "-c", PYNVML)
    if not t.ok(p.returncode == 0, "nvidia-ml-py: every call answers", p.stderr):
        return
    got = json.loads(p.stdout)
    t.equal(got["errors"], [], "none with an error it should not have")
    t.equal(len(got["boards"]), 4, "four boards")
    t.ok("simulated" in got["driver"], f"driver {got['driver']}")
    for i, b in enumerate(got["boards"]):
        want = node.board(i)
        t.ok(b["Name"] == want["name"] and b["UUID"] == want["uuid"] and "simulated" in b["Name"],
             f"board {i}: name, UUID", b)
        t.ok(b["bus"][0].startswith("00000000:") and b["bus"][1] == b["bus"][0][4:], "bus ids", b)
        t.equal(b["after"], 200000 + i, "a limit is set and read back")
        t.equal(b["fields"], [0, 3, 0], "energy, no average, instant power: a Volta")
        t.ok(b["TotalEnergyConsumption"] <= b["field_energy"] <= b["energy_after"], "field 83 is the counter", b)
        t.ok(b["memory2"] == 16 << 30 and b["persistence"] == 1 and b["graphics"] > 50, "the rest", b)
    t.equal([b["pids"] for b in got["boards"]], [x["pids"] for x in node.status()["boards"]],
            "the training job is on its boards")


def joules(node):
    return {str(b["index"]): b["energy_mj"] * 1e-3 for b in node.status()["boards"]}


def zeus(node, python):
    before = joules(node)
    p = node.run(python, "-c", ZEUS)
    after = joules(node)
    if not t.ok(p.returncode == 0, "ZeusMonitor: a window of 4 s", p.stderr):
        return
    got = json.loads(p.stdout.splitlines()[-1])
    t.equal(sorted(got["joules"]), ["0", "1", "2", "3"], "four boards")
    for i, j in sorted(got["joules"].items()):
        mean = j / got["time"]
        around = (after[i] - before[i])
        low, high = (150, 310) if i in ("0", "1") else (25, 60)
        t.ok(low < mean < high and j <= around, f"board {i}: {j:.1f} J, {mean:.1f} W",
             f"around it the counter counted {around:.1f} J")
    path = os.path.join(node.tmp, "power.py")  # it spawns processes, which read the file again
    with open(path, "w") as f:
        f.write(ZEUS_POWER)
    p = node.run(python, path)
    if t.ok(p.returncode == 0, "PowerMonitor: integrates the instant field", p.stderr):
        got = json.loads(p.stdout.splitlines()[-1])
        t.ok(167 < got["0"] < 310 and 25 < got["2"] < 60,
             f"over 3 s: {got['0']:.1f} W on a working board, {got['2']:.1f} W on an idle one", got)


def screen_of(command, env, holds):
    """What a program has drawn once that holds, or until patience ends."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 160, 0, 0))
    out, text = b"", ""
    until = time.monotonic() + uwtest.PATIENCE
    while time.monotonic() < until and not holds(text):
        if select.select([fd], [], [], 0.1)[0]:
            try:
                out += os.read(fd, 65536)
            except OSError:
                break
            text = re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9])", b" ", out).decode(errors="replace")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(fd)
    return text


def nvtop(node):
    program = uwtest.debian_program("nvtop", "nvtop")
    if not program:
        t.skip("nvtop", "nvtop is not here and cannot be had from the package archive")
        return
    env = node.env(TERM="xterm", HOME=node.tmp, LC_ALL="C.UTF-8")
    pid = next((b["pids"][0] for b in node.status()["boards"] if b["pids"]), 0)

    def boards(text):
        return sorted(set(re.findall(r"Device (\d+) +\[([^\]]*)\]", text)))

    def watts(text):
        return sorted({int(w) for w in re.findall(r"(\d+) / 300 W", text)})

    text = screen_of(node.command([program]), env, lambda text: len(boards(text)) >= 4 and max(watts(text), default=0) > 100 and str(pid) in text)
    t.equal([i for i, _ in boards(text)], ["0", "1", "2", "3"], "nvtop shows four boards")
    t.ok(all("V100" in n and "simulated" in n for _, n in boards(text)), "by name, as simulated", boards(text))
    t.ok(max(watts(text), default=0) > 100, f"their power {watts(text)} of 300 W")
    t.ok(str(pid) in text, f"and the training job's process {pid}", text[-1500:])


class Unix(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def ask(path, method, url, body=None):
    c = Unix(path)
    c.request(method, url, body, {"Content-Type": "application/json"} if body else {})
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return r.status, text


def zeusd(node):
    program = uwtest.zeusd()
    if not program:
        t.skip("zeusd", uwtest.zeusd_missing())
        return
    path = os.path.join(node.tmp, "zeusd.sock")
    child = node.popen(program, "serve", "--mode", "uds", "--socket-path", path,
                       "--socket-permissions", "666", "--enable", "gpu-control,gpu-read")
    if not t.ok(uwtest.wait_for(lambda: uwtest.Daemon._listens(path) or child.poll() is not None) and
                child.poll() is None, "zeusd serves simulated boards",
                child.stderr.read() if child.poll() is not None else ""):
        return
    status, text = ask(path, "GET", "/gpu/get_cumulative_energy?gpu_ids=0,1,2,3")
    t.ok(status == 200 and len(re.findall(r"\"\d\"|gpu_id", text)) >= 4, "zeusd: energy of four boards",
         f"{status} {text}")
    status, text = ask(path, "POST", "/gpu/set_power_limit?gpu_ids=3&power_limit_mw=170000&block=true")
    t.ok(status == 200, "zeusd: sets a limit", f"{status} {text}")
    t.equal(node.board(3)["limit_mw"], 170000, "which is in force")


def main():
    python = uwtest.venv(*uwtest.ZEUS)
    with uwtest.Node(board="v100", count=4) as node:
        node.train("--gpus", "0,1", "--epochs", "20", "--phases", "train")
        if python:
            pynvml(node, python)
            zeus(node, python)
        else:
            t.skip("nvidia-ml-py, Zeus", "the package registry is out of reach")
        nvtop(node)
        zeusd(node)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
