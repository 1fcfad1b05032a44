"""PowerMonitor: power of GPUs over time."""

from __future__ import annotations

import collections
import itertools
import logging
import time as clock
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from ..device import get_gpus
from ..device.gpu.common import GPUs, ZeusGPUNotSupportedError
from ._poll import Poller

logger = logging.getLogger(__name__)

WATCH_S = 0.5  # time for which a counter is watched to learn how often it changes
LOOK_S = 0.001
PERIOD_S = (0.01, 0.1)  # the shortest and the longest period that is chosen


def infer_counter_update_period(gpu_indicies: list[int]) -> float:
    """Half the time between changes of the fastest board's power, in s, 0.01 to 0.1; watches one board of each
    model."""
    gpus = get_gpus()
    models = {gpus.get_name(index): index for index in reversed(gpu_indicies)}
    shortest = min((_between_changes(gpus, index) for index in models.values()), default=PERIOD_S[1])
    return min(max(shortest / 2, PERIOD_S[0]), PERIOD_S[1])


def _between_changes(gpus: GPUs, index: int) -> float:
    """The median; the longest period if it hardly changes."""
    changes: list[float] = []
    until, before = clock.monotonic() + WATCH_S, None
    while clock.monotonic() < until:
        power = gpus.get_instant_power_usage(index)
        if before is not None and power != before:
            changes.append(clock.monotonic())
        before = power
        clock.sleep(LOOK_S)
    intervals = sorted(b - a for a, b in itertools.pairwise(changes))
    return intervals[len(intervals) // 2] if intervals else 2 * PERIOD_S[1]


class PowerDomain(Enum):
    """The kinds of power that are measured."""

    DEVICE_INSTANT = "device_instant"
    DEVICE_AVERAGE = "device_average"
    MEMORY_AVERAGE = "memory_average"


Domain = PowerDomain | Literal["device_instant", "device_average", "memory_average"]


@dataclass
class PowerSample:
    """A change of the power reading."""

    timestamp: float
    gpu_index: int
    power_mw: float


def _methods(gpus: GPUs) -> dict[PowerDomain, Callable[[int], int]]:
    return {
        PowerDomain.DEVICE_INSTANT: gpus.get_instant_power_usage,
        PowerDomain.DEVICE_AVERAGE: gpus.get_average_power_usage,
        PowerDomain.MEMORY_AVERAGE: gpus.get_average_memory_power_usage,
    }


class PowerMonitor:
    """Reads power in a thread of this process until stop(), or until it is no longer referenced.

    gpu_indices: None: all.  update_period: s; None: infer_counter_update_period().
    max_samples_per_gpu: number of changes kept; None: all.  power_domains: None: all that the boards have.
    Times are those of time.time().
    """

    def __init__(
        self,
        gpu_indices: list[int] | None = None,
        update_period: float | None = None,
        max_samples_per_gpu: int | None = None,
        power_domains: list[PowerDomain | Literal["device_instant", "device_average", "memory_average"]] | None = None,
    ) -> None:
        for name, value in (("gpu_indices", gpu_indices), ("power_domains", power_domains)):
            if value is not None and not value:
                raise ValueError(f"{name} is empty: None stands for all")
        gpus = get_gpus(ensure_homogeneous=True)
        self.gpu_indices = list(range(len(gpus))) if gpu_indices is None else gpu_indices
        self.update_period = infer_counter_update_period(self.gpu_indices) if update_period is None else update_period
        methods = {d: m for d, m in _methods(gpus).items() if self._supported(m)}
        wanted = list(methods) if power_domains is None else list(dict.fromkeys(map(PowerDomain, power_domains)))
        for domain in wanted:
            if domain not in methods:
                raise ValueError(f"{domain.value} is not read of these boards, but {_named(methods)}")
        self.measurement_domains: list[PowerDomain] = wanted
        self._pollers = {
            domain: Poller(
                domain.value, self.gpu_indices, self.update_period, max_samples_per_gpu, _positive(methods[domain])
            )
            for domain in wanted
        }
        self._finalizer = weakref.finalize(self, _stop, list(self._pollers.values()))

    def _supported(self, method: Callable[[int], int]) -> bool:
        try:
            method(self.gpu_indices[0])
        except ZeusGPUNotSupportedError:
            return False
        return True

    def stop(self) -> None:
        """Stops reading; the readings stay."""
        self._finalizer()

    @property
    def samples(self) -> dict[PowerDomain, dict[int, collections.deque[PowerSample]]]:
        return {
            domain: {
                gpu: collections.deque(PowerSample(at, gpu, mw) for at, mw in list(series.changes))
                for gpu, series in poller.series.items()
            }
            for domain, poller in self._pollers.items()
        }

    def _poller(self, power_domain: Domain) -> Poller:
        domain = PowerDomain(power_domain)
        if domain not in self._pollers:
            raise ValueError(f"{domain.value} is not monitored, but {_named(self._pollers)}")
        return self._pollers[domain]

    def get_power_timeline(
        self,
        power_domain: PowerDomain | Literal["device_instant", "device_average", "memory_average"],
        gpu_index: int | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
    ) -> dict[int, list[tuple[float, float]]]:
        """Changes by GPU: (when, W)."""
        return {
            gpu: [(at, mw / 1000) for at, mw in series.between(start_time, end_time)]
            for gpu, series in self._poller(power_domain).series.items()
            if gpu_index is None or gpu == gpu_index
        }

    def get_all_power_timelines(
        self,
        gpu_index: int | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
    ) -> dict[str, dict[int, list[tuple[float, float]]]]:
        """The same by domain."""
        return {
            domain.value: self.get_power_timeline(domain, gpu_index, start_time, end_time)
            for domain in self.measurement_domains
        }

    def get_energy(self, start_time: float, end_time: float) -> dict[int, float] | None:
        """In J by GPU: of the instant power, else the average one, over the time in which it was read; a power is
        valid until the next one.  None: nothing was read yet."""
        device = [PowerDomain.DEVICE_INSTANT, PowerDomain.DEVICE_AVERAGE]
        domain = next((d for d in device if d in self._pollers), None)
        if domain is None:
            raise ValueError(f"energy needs device_instant or device_average; monitored: {_named(self._pollers)}")
        series = self._pollers[domain].series
        if not any(s.changes for s in series.values()):
            return None
        beyond = 2 * self.update_period
        self._pollers[domain].catch_up(end_time - beyond)
        return {gpu: s.integral(start_time, end_time, beyond) / 1000 for gpu, s in series.items()}

    def get_power(self, time: float | None = None) -> dict[int, float] | None:
        """In W by GPU: the instant power at that time, or now.  None: nothing was read yet."""
        found = {gpu: series.at(time) for gpu, series in self._poller(PowerDomain.DEVICE_INSTANT).series.items()}
        known = {gpu: mw / 1000 for gpu, mw in found.items() if mw is not None}
        return known if len(known) == len(found) else None


def _named(domains: dict[PowerDomain, Poller] | dict[PowerDomain, Callable[[int], int]]) -> str:
    return ", ".join(d.value for d in domains) or "nothing"


def _positive(method: Callable[[int], int]) -> Callable[[int], float | None]:
    """Boards that are read too often return 0 occasionally."""
    return lambda gpu: method(gpu) or None


def _stop(pollers: list[Poller]) -> None:
    for poller in pollers:
        poller.stop()
