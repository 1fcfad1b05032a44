"""Windows in parts: one for each period (an hour) that they touch, because intensities and prices are given by
period."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from .energy import Measurement, ZeusMonitor

LOOK_S = 30.0  # the longest sleep: clocks may be set, machines suspended


def now() -> datetime:
    return datetime.now(timezone.utc)


def hour_of(when: datetime, period: timedelta = timedelta(hours=1)) -> datetime:
    """The start of the period, counted from the start of the day."""
    day = when.replace(hour=0, minute=0, second=0, microsecond=0)
    return day + (when - day) // period * period


@dataclass
class Part:
    hour: datetime
    energy: Measurement


@dataclass
class _Open:
    hour: datetime
    number: int
    parts: list[Part]


class Hourly:
    """Windows of ZeusMonitor in parts of a period; hour: returns the period of a time; turned: called when a period
    has ended."""

    def __init__(self, monitor: ZeusMonitor, hour: Callable[[datetime], datetime], turned: Callable[[], None]) -> None:
        self._monitor = monitor
        self._hour = hour
        self._turned = turned
        self.keys: set[str] = set()  # open windows
        self._open: dict[str, _Open] = {}
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def _name(self, key: str, number: int) -> str:
        return f"__hour_{number}_of_{key}"

    def begin(self, key: str, sync_execution: bool) -> None:
        """ValueError: the window exists already."""
        if key in self.keys:
            raise ValueError(f"window '{key}' already exists: it was begun and has not ended")
        self._monitor.begin_window(key, sync_execution=sync_execution)
        self.keys.add(key)
        with self._lock:
            self._monitor.begin_window(self._name(key, 0), sync_execution=False)
            self._open[key] = _Open(self._hour(now()), 0, [])
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="underwatt-hours", daemon=True)
                self._thread.start()

    def end(self, key: str, sync_execution: bool) -> tuple[Measurement, list[Part]]:
        """ValueError: there is no such window."""
        if key not in self.keys:
            raise ValueError(f"window '{key}' does not exist")
        self.keys.remove(key)
        whole = self._monitor.end_window(key, sync_execution=sync_execution)
        with self._lock:
            window = self._open.pop(key)
            self._close(key, window)
            if not self._open:
                self._wake.set()
        return whole, window.parts

    def _close(self, key: str, window: _Open) -> None:
        energy = self._monitor.end_window(self._name(key, window.number), sync_execution=False)
        window.parts.append(Part(window.hour, energy))

    def turn(self) -> None:
        """Begins another part for each window whose period is over."""
        with self._lock:
            hour = self._hour(now())
            late = [(key, window) for key, window in self._open.items() if window.hour != hour]
            for key, window in late:
                self._monitor.begin_window(self._name(key, window.number + 1), sync_execution=False)
                self._close(key, window)
                window.hour, window.number = hour, window.number + 1
        if late:
            self._turned()

    def _run(self) -> None:
        while True:
            when = now()
            left = 3600.0 - (when.minute * 60 + when.second + when.microsecond / 1e6)
            self._wake.wait(min(LOOK_S, left + 0.01))
            self.turn()
            with self._lock:
                self._wake.clear()
                if not self._open:
                    self._thread = None
                    return


Factors = Callable[[datetime], float]


def _sum(whole: float, parts: list[tuple[float, float]]) -> float:
    """whole times the mean factor; parts: (energy, factor).  Parts are measured separately, so their sum may differ
    slightly from the whole."""
    if len(parts) == 1:
        return whole * parts[0][1]
    total = math.fsum(energy for energy, _ in parts)
    if not total > 0:
        return math.nan
    return whole * math.fsum(energy * factor for energy, factor in parts) / total


def weighted(whole: Measurement, parts: list[Part], per_kwh: Factors) -> list[dict[int, float]]:
    """Energy times a factor by index, of GPUs, processors and memory."""
    found = []
    for name in ("gpu_energy", "cpu_energy", "dram_energy"):
        energies: dict[int, float] = getattr(whole, name) or {}
        each = [(getattr(part.energy, name) or {}, per_kwh(part.hour) / 3.6e6) for part in parts]
        found.append({i: _sum(energy, [(e.get(i, math.nan), f) for e, f in each]) for i, energy in energies.items()})
    return found
