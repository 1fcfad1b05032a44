"""TemperatureMonitor: temperature of GPUs over time."""

from __future__ import annotations

import collections
import weakref
from dataclasses import dataclass

from ..device import get_gpus
from ._poll import Poller


@dataclass
class TemperatureSample:
    """A change of the temperature reading."""

    timestamp: float
    gpu_index: int
    temperature_c: int


class TemperatureMonitor:
    """Reads temperatures in a thread of this process until stop(), or until it is no longer referenced.

    gpu_indices: None: all.  max_samples_per_gpu: number of changes kept; None: all.  Times are those of time.time().
    """

    def __init__(
        self,
        gpu_indices: list[int] | None = None,
        update_period: float = 1.0,
        max_samples_per_gpu: int | None = None,
    ) -> None:
        if gpu_indices is not None and not gpu_indices:
            raise ValueError("gpu_indices is empty: None stands for all")
        gpus = get_gpus(ensure_homogeneous=True)
        self.gpu_indices = list(range(len(gpus))) if gpu_indices is None else gpu_indices
        self.update_period = update_period
        self._poller = Poller(
            "temperature", self.gpu_indices, update_period, max_samples_per_gpu, gpus.get_gpu_temperature
        )
        self._finalizer = weakref.finalize(self, self._poller.stop)

    def stop(self) -> None:
        """Stops reading; the readings stay."""
        self._finalizer()

    @property
    def temperature_samples(self) -> dict[int, collections.deque[TemperatureSample]]:
        return {
            gpu: collections.deque(TemperatureSample(at, gpu, int(celsius)) for at, celsius in list(series.changes))
            for gpu, series in self._poller.series.items()
        }

    def get_temperature_timeline(
        self,
        gpu_index: int | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
    ) -> dict[int, list[tuple[float, int]]]:
        """Changes by GPU: (when, degrees Celsius)."""
        return {
            gpu: [(at, int(celsius)) for at, celsius in series.between(start_time, end_time)]
            for gpu, series in self._poller.series.items()
            if gpu_index is None or gpu == gpu_index
        }

    def get_temperature(self, time: float | None = None) -> dict[int, int] | None:
        """By GPU, at that time or now.  None: nothing was read yet."""
        found = {gpu: series.at(time) for gpu, series in self._poller.series.items()}
        known = {gpu: int(celsius) for gpu, celsius in found.items() if celsius is not None}
        return known if len(known) == len(found) else None
