"""ZeusMonitor: named windows of time and energy."""

from __future__ import annotations

import csv
import logging
import math
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import time
from typing import IO, Any, Literal, SupportsIndex

from underwatt._window import Window

from ..device import get_cpus, get_gpus, get_soc
from ..device.cpu.common import CpuDramMeasurement, CPUs, EmptyCPUs, ZeusCPUInitError, ZeusCPUNoPermissionError
from ..device.gpu.common import EmptyGPUs, GPUs, ZeusGPUInitError
from ..device.soc.common import EmptySoC, SoC, SoCMeasurement, ZeusSoCInitError
from ..utils.framework import sync_execution as wait_for_gpus
from ._windows import energies, shared, wait_for_rows
from .power import PowerMonitor

logger = logging.getLogger(__name__)

NAN = math.nan


@dataclass
class Measurement:
    """The figures of a window: s, and J by index of GPU (as CUDA_VISIBLE_DEVICES numbers them) and of processor
    package; None: not measured here.  An unknown energy is NaN."""

    time: float
    gpu_energy: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None
    soc_energy: SoCMeasurement | None = None

    @cached_property
    def total_energy(self) -> float:
        """The energy of all GPUs."""
        return sum(self.gpu_energy.values())


@dataclass
class MeasurementState:
    """The state of an open window: its start time, and the counters at that time if they are read."""

    time: float
    gpu_energy: dict[int, float]
    cpu_energy: dict[int, float] | None = None
    dram_energy: dict[int, float] | None = None

    @cached_property
    def total_energy(self) -> float:
        return sum(self.gpu_energy.values())


def _field(name: str) -> Any:
    def get(self: Any) -> Any:
        return getattr(self._waited(), name)

    def put(self: Any, value: Any) -> None:
        setattr(self._waited(), name, value)

    return property(get, put)


class _Waiting(Measurement):
    """A Measurement whose energies are not known yet: reading them waits for them, after which it is a plain
    Measurement."""

    def __init__(self, seconds: float, known: Callable[[], Measurement]) -> None:
        self.time = seconds
        self._known = known

    gpu_energy = _field("gpu_energy")
    cpu_energy = _field("cpu_energy")
    dram_energy = _field("dram_energy")
    soc_energy = _field("soc_energy")

    def _waited(self) -> Measurement:
        if type(self) is _Waiting:
            known = self._known()
            self.__dict__.update(known.__dict__)
            self.__class__ = Measurement  # type: ignore[assignment]
            self.__dict__.pop("_known", None)
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Waiting):
            other._waited()
        return bool(self._waited() == other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._waited())

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return self._waited().__reduce_ex__(protocol)


@dataclass
class _Row:
    """A row of the log."""

    began: float
    key: str
    measurement: Measurement
    ready: Callable[[], bool]


@dataclass
class _Open:
    """The state of a window in addition to its MeasurementState."""

    window: Window | None = None
    began: float = 0.0
    counters: dict[int, CpuDramMeasurement] = field(default_factory=dict)


class ZeusMonitor:
    """Windows of time and energy, by name; several may be open.

    end_window() waits only for the framework: the time is known at once, and reading the energies waits for them,
    usually 0.3 s.  They are the energies of Underwatt's windows (docs/python.md), also for short windows, so
    approx_instant_energy makes no difference; with a mock of NVML they are differences of the counters.

    gpu_indices, cpu_indices: None: all.  log_file: CSV, one row for each window, in the order of their ends.
    """

    def __init__(
        self,
        gpu_indices: list[int] | None = None,
        cpu_indices: list[int] | None = None,
        approx_instant_energy: bool = False,
        log_file: str | Path | None = None,
        sync_execution_with: Literal["torch", "jax", "cupy"] = "torch",
    ) -> None:
        self.approx_instant_energy = approx_instant_energy
        self.sync_with: Literal["torch", "jax", "cupy"] = sync_execution_with
        self.gpus: GPUs
        why = ""
        try:
            self.gpus = get_gpus()
        except ZeusGPUInitError as e:
            why = f" ({e})"
            logger.info("GPUs are not measured: %s", e)
            self.gpus = EmptyGPUs()
        self._windows = shared(self.gpus)
        self.gpu_indices = list(range(len(self.gpus))) if gpu_indices is None else gpu_indices
        absent = [i for i in self.gpu_indices if not 0 <= i < len(self.gpus)]
        if absent:
            raise ValueError(f"gpu_indices: {absent[0]} is none of {len(self.gpus)} GPUs{why}")
        self._open_processors(cpu_indices)
        self.soc: SoC
        try:
            self.soc = get_soc()
            self.soc_is_present = True
        except ZeusSoCInitError:
            self.soc = EmptySoC()
            self.soc_is_present = False
        self.measurement_states: dict[str, MeasurementState] = {}
        self._open: dict[str, _Open] = {}
        self.power_monitor: PowerMonitor | None = None
        if self._windows is None:
            old = [i for i in self.gpu_indices if not self.gpus.supports_get_total_energy_consumption(i)]
            if old:
                self.power_monitor = PowerMonitor(gpu_indices=old, update_period=None)
        self._own_log()
        self.log_file: IO[str] | None = None
        if log_file is not None:
            self._open_log(log_file)

    def _open_processors(self, cpu_indices: list[int] | None) -> None:
        """Opens their counters, if this user may read them; otherwise the windows have their energies."""
        self.cpus: CPUs = EmptyCPUs()
        why = ""
        try:
            self.cpus = get_cpus()
        except (ZeusCPUInitError, ZeusCPUNoPermissionError) as e:
            why = str(e)
        self._cpus_by_windows = isinstance(self.cpus, EmptyCPUs) and self._windows is not None
        if cpu_indices and isinstance(self.cpus, EmptyCPUs) and getattr(self._windows, "source", "") != "daemon":
            raise RuntimeError(f"cpu_indices {cpu_indices}: {why} (underwattd may read them; cpu_indices=[]: none)")
        self._all_cpus = cpu_indices is None
        self.cpu_indices = list(range(len(self.cpus))) if cpu_indices is None else cpu_indices

    def _open_log(self, log_file: str | Path) -> None:
        folder = os.path.dirname(log_file)
        if folder:
            os.makedirs(folder, exist_ok=True)
        self.log_file = open(log_file, "w", encoding="utf-8")  # noqa: SIM115 - it is open as long as the monitor
        columns = ["start_time", "window_name", "elapsed_time", *(f"gpu{i}_energy" for i in self.gpu_indices)]
        self.log_file.write(",".join(columns) + "\n")
        self.log_file.flush()

    # ---- windows ----

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        """restart: drops an open window of that name.  ValueError: the window exists already."""
        if key in self.measurement_states:
            if not restart:
                raise ValueError(f"window '{key}' already exists: it was begun and has not ended")
            self._forget(key)
        if sync_execution and self.gpu_indices:
            wait_for_gpus(self.gpu_indices, sync_with=self.sync_with)
        state = MeasurementState(time=time(), gpu_energy={})
        mine = _Open()
        if self._windows is not None:
            mine.window = self._windows.window(key).begin()
        else:
            state.gpu_energy = self._counters()
        mine.counters = self._processors()
        if mine.counters:
            state.cpu_energy = {i: c.cpu_mj / 1000 for i, c in mine.counters.items()}
            state.dram_energy = _dram(mine.counters)
        if self.soc_is_present:
            self.soc.begin_window(key, restart=restart)
        self.measurement_states[key] = state
        self._open[key] = mine

    def end_window(self, key: str, sync_execution: bool = True, cancel: bool = False) -> Measurement:
        """cancel: the window is neither measured nor logged, all figures are 0.  ValueError: there is no such
        window."""
        if key not in self.measurement_states:
            raise ValueError(f"window '{key}' does not exist")
        soc = self.soc.end_window(key) if self.soc_is_present else None
        power, read_s = self._power() if self._windows is None and self.approx_instant_energy else ({}, 0.0)
        if sync_execution and self.gpu_indices:
            wait_for_gpus(self.gpu_indices, sync_with=self.sync_with)
        state, mine = self.measurement_states[key], self._open[key]
        if cancel:
            self._forget(key)
            if soc is not None:
                soc.zero_all_fields()
            return Measurement(
                0.0, dict.fromkeys(self.gpu_indices, 0.0), dict.fromkeys(self.cpu_indices, 0.0), None, soc
            )
        del self.measurement_states[key], self._open[key]
        if mine.window is not None:
            measurement, ready = self._end(mine, soc)
        else:
            measurement, ready = self._difference(state, mine, soc, power, read_s), _at_once
        if self.log_file is not None:
            if self._pid != os.getpid():
                self._own_log()
            self._rows.append(_Row(state.time, key, measurement, ready))
            self._log()
        return measurement

    def reset_windows(self) -> None:
        """Drops all open windows."""
        for key in list(self.measurement_states):
            self._forget(key)
            if self.soc_is_present:
                self.soc.end_window(key)

    def _forget(self, key: str) -> None:
        del self.measurement_states[key]
        window = self._open.pop(key).window
        if window is not None:
            window.end()

    # ---- by Underwatt's windows ----

    def _end(self, mine: _Open, soc: SoCMeasurement | None) -> tuple[Measurement, Callable[[], bool]]:
        window = mine.window
        assert window is not None
        window.end()
        cpu, dram = self._processors_since(mine)

        def known() -> Measurement:
            gpus, processors = energies(window)
            measured = Measurement(
                window.seconds, {i: gpus[i] if i < len(gpus) else NAN for i in self.gpu_indices}, cpu, dram, soc
            )
            if self._cpus_by_windows:
                measured.cpu_energy = self._by_name(processors, "package")
                measured.dram_energy = self._by_name(processors, "dram")
            return measured

        return _Waiting(window.seconds, known), lambda: window.ready

    def _by_name(self, processors: dict[str, float], kind: str) -> dict[int, float] | None:
        found = {}
        for name, energy in processors.items():
            word, _, number = name.rpartition("-")
            if word == kind and number.isdecimal() and (self._all_cpus or int(number) in self.cpu_indices):
                found[int(number)] = energy
        return found or None

    # ---- by counters ----

    def _counters(self) -> dict[int, float]:
        gpus = self.gpus
        has = [i for i in self.gpu_indices if gpus.supports_get_total_energy_consumption(i)]
        return {i: gpus.get_total_energy_consumption(i) / 1000 for i in has}

    def _processors(self) -> dict[int, CpuDramMeasurement]:
        if self._cpus_by_windows:
            return {}
        return {i: self.cpus.get_total_energy_consumption(i) for i in self.cpu_indices}

    def _processors_since(self, mine: _Open) -> tuple[dict[int, float] | None, dict[int, float] | None]:
        spent = {i: now - mine.counters[i] for i, now in self._processors().items() if i in mine.counters}
        return {i: c.cpu_mj / 1000 for i, c in spent.items()} or None, _dram(spent)

    def _power(self) -> tuple[dict[int, float], float]:
        began = time()
        power = {i: self.gpus.get_instant_power_usage(i) / 1000 for i in self.gpu_indices}
        return power, time() - began

    def _difference(
        self, state: MeasurementState, mine: _Open, soc: SoCMeasurement | None, power: dict[int, float], read_s: float
    ) -> Measurement:
        ended = time()
        elapsed = ended - state.time
        found = {i: now - state.gpu_energy[i] for i, now in self._counters().items()}
        cpu, dram = self._processors_since(mine)
        if self.power_monitor is not None:
            integrated = self.power_monitor.get_energy(state.time, ended)
            found |= integrated or dict.fromkeys(self.power_monitor.gpu_indices, NAN)
        if self.approx_instant_energy:
            short = [i for i in self.gpu_indices if not found[i] > 0]
            found |= {i: power[i] * (elapsed - read_s) for i in short}
        elif 0.0 in found.values():
            warnings.warn("a window is shorter than its counter's period: its energy is 0", stacklevel=3)
        return Measurement(elapsed, {i: found[i] for i in self.gpu_indices}, cpu, dram, soc)

    # ---- log ----

    def _own_log(self) -> None:
        """Waiting rows, and the lock; a forked child has its own, and the parent writes its rows."""
        self._rows: deque[_Row] = deque()
        self._writing = threading.RLock()
        self._pid = os.getpid()

    def _log(self) -> None:
        """Writes the known rows, in order."""
        with self._writing:
            while self.log_file is not None and self._rows and self._rows[0].ready():
                row = self._rows.popleft()
                m = row.measurement
                cells = [row.began, row.key, m.time, *(m.gpu_energy[i] for i in self.gpu_indices)]
                csv.writer(self.log_file, lineterminator="\n").writerow(cells)
                self.log_file.flush()
            wait_for_rows(self._log, bool(self._rows))


def _dram(counters: dict[int, CpuDramMeasurement]) -> dict[int, float] | None:
    return {i: c.dram_mj / 1000 for i, c in counters.items() if c.dram_mj is not None} or None


def _at_once() -> bool:
    return True
