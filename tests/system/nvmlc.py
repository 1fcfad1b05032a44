"""A small client of whatever libnvidia-ml.so.1 the process finds: ctypes alone.

    python3 nvmlc.py CALL [ARG…] [; CALL …]      prints one line a call: result, values
"""
import ctypes
import sys
import time

lib = ctypes.CDLL("libnvidia-ml.so.1")
u = ctypes.c_uint


def handle(i):
    dev = ctypes.c_void_p()
    r = lib.nvmlDeviceGetHandleByIndex_v2(u(int(i)), ctypes.byref(dev))
    return r, dev


def by_bus(bus):
    dev, mw = ctypes.c_void_p(), u(0)
    r = lib.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(dev))
    return r or lib.nvmlDeviceGetPowerUsage(dev, ctypes.byref(mw)), mw.value


def index_of(uuid):
    dev, i = ctypes.c_void_p(), u(0)
    r = lib.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(dev))
    return r or lib.nvmlDeviceGetIndex(dev, ctypes.byref(i)), i.value


def get(name, i, kind=u):
    r, dev = handle(i)
    v = kind(0)
    if r == 0:
        r = getattr(lib, name)(dev, ctypes.byref(v))
    return r, v.value


def pids(i):
    class Proc(ctypes.Structure):
        _fields_ = [("pid", u), ("used", ctypes.c_ulonglong)]
    r, dev = handle(i)
    n = u(16)
    procs = (Proc * 16)()
    if r == 0:
        r = lib.nvmlDeviceGetComputeRunningProcesses(dev, ctypes.byref(n), procs)
    return r, sorted(procs[k].pid for k in range(n.value)) if r == 0 else []


def set_limit(i, mw):
    r, dev = handle(i)
    began = time.monotonic()
    if r == 0:
        r = lib.nvmlDeviceSetPowerManagementLimit(dev, u(int(mw)))
    return r, round((time.monotonic() - began) * 1000)


CALLS = {
    "init": lambda: (lib.nvmlInit_v2(), 0),
    "init-bare": lambda: (lib.nvmlInitWithFlags(u(2)), 0),  # NVML_INIT_FLAG_NO_ATTACH
    "bus": by_bus,
    "shutdown": lambda: (lib.nvmlShutdown(), 0),
    "count": lambda: (lambda n: (lib.nvmlDeviceGetCount_v2(ctypes.byref(n)), n.value))(u(0)),
    "power": lambda i: get("nvmlDeviceGetPowerUsage", i),
    "limit": lambda i: get("nvmlDeviceGetEnforcedPowerLimit", i),
    "energy": lambda i: get("nvmlDeviceGetTotalEnergyConsumption", i, ctypes.c_ulonglong),
    "minor": lambda i: get("nvmlDeviceGetMinorNumber", i),
    "index": index_of,
    "pids": pids,
    "set": set_limit,
    "lock": lambda i, a, b: (lib.nvmlDeviceSetGpuLockedClocks(handle(i)[1], u(int(a)), u(int(b))), 0),
    "sleep": lambda s: (time.sleep(float(s)), 0),
    "wait": lambda: (sys.stdin.readline() and 0, 0),
}

line = []
for word in [*sys.argv[1:], ";"]:
    if word != ";":
        line.append(word)
        continue
    if line:
        print(*CALLS[line[0]](*line[1:]), flush=True)
    line = []
