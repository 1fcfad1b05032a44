"""One NVIDIA board by NVML, read only, and how long its calls take."""

import ctypes
import itertools
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")
# NVML_FI_DEV_POWER_INSTANT, _AVERAGE, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION
INSTANT, AVERAGE, ENERGY = 186, 185, 83
# Functions that write, some of each kind.
SETTERS = (
    "nvmlDeviceSetPowerManagementLimit",
    "nvmlDeviceSetPowerManagementLimit_v2",
    "nvmlDeviceSetGpuLockedClocks",
    "nvmlDeviceResetGpuLockedClocks",
    "nvmlDeviceSetMemoryLockedClocks",
    "nvmlDeviceSetApplicationsClocks",
    "nvmlDeviceSetPersistenceMode",
    "nvmlDeviceSetMigMode",
    "nvmlDeviceSetComputeMode",
    "nvmlDeviceClearEccErrorCounts",
    "nvmlDeviceModifyDrainState",
)
Found = dict[str, Any]


class NoBoard(Exception):
    pass


class Field(ctypes.Structure):
    _fields_ = (
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("at", ctypes.c_longlong),
        ("took", ctypes.c_longlong),
        ("type", ctypes.c_uint),
        ("result", ctypes.c_uint),
        ("value", ctypes.c_ulonglong),
    )


Fields = ctypes.Array[Field]


def library() -> ctypes.CDLL:
    name = os.environ.get("UNDERWATT_NVML", "libnvidia-ml.so.1")
    try:
        return ctypes.CDLL(name)
    except OSError as e:
        raise NoBoard(f"no NVIDIA board answers here: {name} is not found") from e


class Nvml:
    """One board.  NoBoard: says why there is none."""

    def __init__(self, gpu: int) -> None:
        self.lib = library()
        self.board = ctypes.c_void_p()
        if self.lib.nvmlInit_v2() or self.lib.nvmlDeviceGetHandleByIndex_v2(gpu, ctypes.byref(self.board)):
            raise NoBoard("no NVIDIA board answers here")
        self.w, self.j = ctypes.c_uint(), ctypes.c_ulonglong()
        self.pair, self.n, self.list = (ctypes.c_uint * 2)(), ctypes.c_uint(), (ctypes.c_byte * 4096)()
        self.samples_list = (ctypes.c_byte * 16384)()

    def text(self, function: str, *args: Any) -> str:
        buffer = ctypes.create_string_buffer(96)
        getattr(self.lib, function)(*args, buffer, 96)
        return buffer.value.decode()

    def about(self) -> Found:
        return {
            "board": self.text("nvmlDeviceGetName", self.board),
            "driver": self.text("nvmlSystemGetDriverVersion"),
        }

    @staticmethod
    def fields(*ids: int) -> Fields:
        f = (Field * len(ids))()
        for one, number in zip(f, ids, strict=True):
            one.id = number
        return f

    def read(self, f: Fields) -> int:
        return int(self.lib.nvmlDeviceGetFieldValues(self.board, len(f), f))

    def processes(self) -> int:
        self.n.value = 64
        return int(self.lib.nvmlDeviceGetComputeRunningProcesses_v3(self.board, ctypes.byref(self.n), self.list))

    def samples(self) -> int:
        """The driver's own buffer of power samples."""
        self.n.value = 512
        kind = ctypes.c_uint()
        since = ctypes.c_ulonglong(0)
        call = self.lib.nvmlDeviceGetSamples
        return int(call(self.board, 0, since, ctypes.byref(kind), ctypes.byref(self.n), self.samples_list))

    def calls(self) -> dict[str, Callable[[], int]]:
        lib, board, w, j = self.lib, self.board, ctypes.byref(self.w), ctypes.byref(self.j)
        powers, energy = self.fields(INSTANT, AVERAGE), self.fields(ENERGY)
        all_calls: dict[str, Callable[[], int]] = {
            "power fields": lambda: self.read(powers),
            "energy field": lambda: self.read(energy),
            "nvmlDeviceGetPowerUsage": lambda: int(lib.nvmlDeviceGetPowerUsage(board, w)),
            "nvmlDeviceGetTotalEnergyConsumption": lambda: int(lib.nvmlDeviceGetTotalEnergyConsumption(board, j)),
            "nvmlDeviceGetEnforcedPowerLimit": lambda: int(lib.nvmlDeviceGetEnforcedPowerLimit(board, w)),
            "nvmlDeviceGetPowerManagementLimit": lambda: int(lib.nvmlDeviceGetPowerManagementLimit(board, w)),
            "nvmlDeviceGetClockInfo": lambda: int(lib.nvmlDeviceGetClockInfo(board, 1, w)),
            "nvmlDeviceGetCurrentClocksEventReasons": lambda: int(lib.nvmlDeviceGetCurrentClocksEventReasons(board, j)),
            "nvmlDeviceGetTemperature": lambda: int(lib.nvmlDeviceGetTemperature(board, 0, w)),
            "nvmlDeviceGetUtilizationRates": lambda: int(lib.nvmlDeviceGetUtilizationRates(board, self.pair)),
            "nvmlDeviceGetComputeRunningProcesses": self.processes,
            "nvmlDeviceGetSamples": self.samples,
        }
        # A library that lacks a function (an older driver, the simulator) is asked for the others.
        return {n: c for n, c in all_calls.items() if not n.startswith("nvml") or self.has(n)}

    def has(self, name: str) -> bool:
        return any(hasattr(self.lib, n) for n in (name, f"{name}_v3"))


def timed(call: Callable[[], int], n: int) -> Found:
    """Wall time of single calls a few milliseconds apart, and processor time of many."""
    spans = []
    result = call()
    for _ in range(n):
        time.sleep(random.uniform(0.001, 0.006))
        t = time.perf_counter_ns()
        result = call()
        spans.append((time.perf_counter_ns() - t) / 1e3)
    cpu, t = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(n):
        call()
    cpu_us, wall_us = (time.process_time_ns() - cpu) / n / 1e3, (time.perf_counter_ns() - t) / n / 1e3
    spans.sort()
    return {
        "result": result,
        "p50_us": round(spans[n // 2], 1),
        "p99_us": round(spans[n * 99 // 100], 1),
        "cpu_us": round(cpu_us, 1),
        "back_to_back_us": round(wall_us, 1),
    }


def gaps(times: Sequence[float], values: Sequence[float]) -> Found | None:
    """Between the moments at which polls found another value, ms."""
    changed = [t for t, old, new in zip(times[1:], values, values[1:], strict=False) if old != new]
    spans = sorted(b - a for a, b in itertools.pairwise(changed))
    if not spans:
        return None
    return {"changes": len(changed), **{f"p{k}_ms": round(spans[len(spans) * k // 100] * 1e3, 1) for k in (5, 50, 95)}}


def response(times: Sequence[float], values: Sequence[float], edges: Sequence[float], high: bool) -> Found | None:
    """Where a reading crosses the middle after an edge of the load, ms: the median and all."""
    low, top = min(values), statistics.quantiles(values, n=10)[-1]
    crossed = []
    for edge in edges:
        after = [(t, v) for t, v in zip(times, values, strict=True) if edge <= t < edge + 1.5]
        hit = next((t - edge for t, v in after if (v > (low + top) / 2) == high), None)
        if hit is not None:
            crossed.append(round(hit * 1e3))
    return {"p50_ms": statistics.median(crossed), "all_ms": crossed} if crossed else None
