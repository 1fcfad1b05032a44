"""Energy and power for Prometheus, pushed to its gateway with prometheus_client, if that is installed."""

from __future__ import annotations

import abc
import importlib
import logging
import math
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .device.cpu import get_cpus
from .monitor.energy import Measurement, ZeusMonitor
from .monitor.power import PowerMonitor
from .utils.framework import sync_execution as wait_for_gpus

logger = logging.getLogger(__name__)

try:
    _client: Any = importlib.import_module("prometheus_client")
except ImportError:
    _client = None
CollectorRegistry, Histogram, Counter, Gauge, pushadd_to_gateway = (
    getattr(_client, name, None)
    for name in ("CollectorRegistry", "Histogram", "Counter", "Gauge", "pushadd_to_gateway")
)

LABELS = ["window", "index"]
END_S = 20.0  # longest wait of a window's end for its last push
LOOK_S = 0.1  # interval of reading the power
KINDS = ("gpu", "cpu", "dram")


def _name(kind: str) -> str:
    return f"energy_monitor_{kind}_energy_joules"


def _needed() -> None:
    if _client is None:
        raise ImportError("zeus.metric needs prometheus_client, which is not installed", name="prometheus_client")


def _push(gateway: str, job: str, registry: Any) -> None:
    """Keeps metrics that others of the job have pushed.  A gateway that does not answer stops no training."""
    try:
        pushadd_to_gateway(gateway, job=job, registry=registry)  # type: ignore[misc]
    except OSError as e:
        logger.warning("metrics of job '%s' were not pushed to %s: %s", job, gateway, e)


class _Pusher:
    """Pushes a registry from a thread.  Changes during a push are pushed with the next one."""

    def __init__(self, gateway: str, job: str, registry: Any) -> None:
        self._what = gateway, job, registry
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._thread = ThreadPoolExecutor(1, "underwatt-metric")
        self._newest: Future[None] | None = None

    def soon(self) -> None:
        if self._pid != os.getpid():  # a forked child does not have the thread
            self._begin()
        if self._newest is not None and not self._newest.running() and not self._newest.done():
            return
        try:
            self._newest = self._thread.submit(_push, *self._what)
        except RuntimeError:  # the interpreter ends
            _push(*self._what)


def _energies(measurement: Measurement) -> list[tuple[str, int, float]]:
    found = []
    for kind in KINDS:
        energies: dict[int, float] | None = getattr(measurement, f"{kind}_energy")
        found += [(kind, index, energy) for index, energy in (energies or {}).items()]
    return found


class Metric(abc.ABC):
    """Windows by name."""

    @abc.abstractmethod
    def begin_window(self, name: str, sync_execution: bool = True) -> None: ...

    @abc.abstractmethod
    def end_window(self, name: str, sync_execution: bool = True) -> None: ...


class EnergyHistogram(Metric):
    """Energies of windows in buckets (J), pushed when a window ends."""

    def __init__(
        self,
        cpu_indices: list[int],
        gpu_indices: list[int],
        pushgateway_url: str,
        job: str,
        gpu_bucket_range: Sequence[float] = [50.0, 100.0, 200.0, 500.0, 1000.0],
        cpu_bucket_range: Sequence[float] = [10.0, 50.0, 100.0, 500.0, 1000.0],
        dram_bucket_range: Sequence[float] = [5.0, 10.0, 20.0, 50.0, 150.0],
    ) -> None:
        _needed()
        self.gpu_bucket_range = gpu_bucket_range
        self.cpu_bucket_range = cpu_bucket_range
        self.dram_bucket_range = dram_bucket_range
        self._buckets = dict(zip(KINDS, (gpu_bucket_range, cpu_bucket_range, dram_bucket_range), strict=True))
        for kind, buckets in self._buckets.items():
            if not buckets:
                raise ValueError(f"{kind}_bucket_range is empty")
        self.cpu_indices = cpu_indices
        self.gpu_indices = gpu_indices
        self.pushgateway_url = pushgateway_url
        self.job = job
        self.registry = CollectorRegistry()  # type: ignore[misc]
        self._pusher = _Pusher(pushgateway_url, job, self.registry)
        if gpu_indices:
            self.gpu_histograms = self._histogram("gpu", "Energy of GPUs")
        if cpu_indices:
            self.cpu_histograms = self._histogram("cpu", "Energy of processors")
            if any(cpu.supports_get_dram_energy_consumption() for cpu in get_cpus().cpus):
                self.dram_histograms = self._histogram("dram", "Energy of memory")
        self.energy_monitor = ZeusMonitor(cpu_indices=cpu_indices, gpu_indices=gpu_indices)

    def _histogram(self, kind: str, what: str) -> Any:
        return Histogram(_name(kind), what, LABELS, buckets=self._buckets[kind], registry=self.registry)  # type: ignore[misc]

    def begin_window(self, name: str, sync_execution: bool = True) -> None:
        self.energy_monitor.begin_window(f"__EnergyHistogram_{name}", sync_execution=sync_execution)

    def end_window(self, name: str, sync_execution: bool = True) -> None:
        measurement = self.energy_monitor.end_window(f"__EnergyHistogram_{name}", sync_execution=sync_execution)
        for kind, index, energy in _energies(measurement):
            histogram = getattr(self, f"{kind}_histograms", None)
            if histogram is None or math.isnan(energy):  # unknown: a NaN would make the sum NaN permanently
                continue
            histogram.labels(window=name, index=index).observe(energy)
            low, high = min(self._buckets[kind]), max(self._buckets[kind])
            if not low <= energy <= high:
                warnings.warn(f"{kind} {index}: {energy} J is outside of the buckets {low} to {high}", stacklevel=2)
        self._pusher.soon()


class _Loops(Metric):
    """Windows with a thread each, which measures and pushes every update_period seconds, and once more at the end."""

    def __init__(self, gpu_indices: list[int], update_period: int, pushgateway_url: str, job: str) -> None:
        _needed()
        self.gpu_indices = gpu_indices
        self.update_period = update_period
        self.pushgateway_url = pushgateway_url
        self.job = job
        self.window_state: dict[str, tuple[threading.Event, threading.Thread]] = {}

    @abc.abstractmethod
    def _measuring(self, name: str, registry: Any) -> Callable[[bool], None]:
        """Called for each push; last: the window ends."""

    def begin_window(self, name: str, sync_execution: bool = False) -> None:
        """ValueError: the window exists already."""
        if name in self.window_state:
            raise ValueError(f"window '{name}' already exists: it was begun and has not ended")
        if sync_execution:
            wait_for_gpus(self.gpu_indices)
        registry = CollectorRegistry()  # type: ignore[misc]
        measure = self._measuring(name, registry)
        ended = threading.Event()

        def run() -> None:
            due = time.monotonic()
            last = False
            while not last:
                due = max(due + self.update_period, time.monotonic())
                last = ended.wait(due - time.monotonic())
                measure(last)
                _push(self.pushgateway_url, self.job, registry)

        thread = threading.Thread(target=run, name=f"underwatt-metric-{name}", daemon=True)
        self.window_state[name] = ended, thread
        thread.start()

    def end_window(self, name: str, sync_execution: bool = False) -> None:
        """ValueError: there is no such window."""
        if name not in self.window_state:
            raise ValueError(f"window '{name}' does not exist")
        if sync_execution:
            wait_for_gpus(self.gpu_indices)
        ended, thread = self.window_state.pop(name)
        ended.set()
        thread.join(END_S)


class EnergyCumulativeCounter(_Loops):
    """Energy of a window as it grows; no energy is lost between two pushes."""

    def __init__(
        self,
        cpu_indices: list[int],
        gpu_indices: list[int],
        update_period: int,
        pushgateway_url: str,
        job: str,
    ) -> None:
        super().__init__(gpu_indices, update_period, pushgateway_url, job)
        self.cpu_indices = cpu_indices

    def _measuring(self, name: str, registry: Any) -> Callable[[bool], None]:
        monitor = ZeusMonitor(cpu_indices=self.cpu_indices, gpu_indices=self.gpu_indices)
        counters: dict[str, Any] = {}
        number = 0

        def key() -> str:
            return f"__EnergyCumulativeCounter_{name}_{number}"

        def measure(last: bool) -> None:
            nonlocal number
            before = key()
            number += 1
            if not last:
                monitor.begin_window(key(), sync_execution=False)
            for kind, index, energy in _energies(monitor.end_window(before, sync_execution=False)):
                if kind not in counters:
                    counters[kind] = Counter(_name(kind), f"Energy of {kind}", LABELS, registry=registry)  # type: ignore[misc]
                if energy > 0:  # NaN: unknown
                    counters[kind].labels(window=name, index=index).inc(energy)

        monitor.begin_window(key(), sync_execution=False)
        return measure


class PowerGauge(_Loops):
    """Power of GPUs."""

    def __init__(self, gpu_indices: list[int], update_period: int, pushgateway_url: str, job: str) -> None:
        super().__init__(gpu_indices, update_period, pushgateway_url, job)

    def _measuring(self, name: str, registry: Any) -> Callable[[bool], None]:
        monitor = PowerMonitor(gpu_indices=self.gpu_indices, update_period=min(LOOK_S, self.update_period))
        gauges: Any = Gauge("power_monitor_gpu_power_watts", "Power of GPUs", LABELS, registry=registry)  # type: ignore[misc]

        def measure(last: bool) -> None:
            for gpu, power in (monitor.get_power() or {}).items():
                gauges.labels(window=name, index=gpu).set(power)
            if last:
                monitor.stop()

        return measure
