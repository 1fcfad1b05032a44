"""A thread that reads a value of GPUs repeatedly, and keeps its changes."""

from __future__ import annotations

import logging
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from time import monotonic, time

from ..device.exception import ZeusBaseGPUError

logger = logging.getLogger(__name__)

START_S = 10.0  # for the first reading


class Series:
    """Changes of one value: (when, value); it is valid until the next one, or the last read."""

    def __init__(self, longest: int | None) -> None:
        self.changes: deque[tuple[float, float]] = deque(maxlen=longest)
        self.looked = 0.0

    def add(self, at: float, value: float) -> None:
        if at < self.looked:  # another thread has looked since
            return
        if not self.changes or self.changes[-1][1] != value:
            self.changes.append((at, value))
        self.looked = at

    def at(self, when: float | None) -> float | None:
        """The value at that time, or the newest one; None: nothing was read yet."""
        changes = list(self.changes)
        if not changes:
            return None
        found = len(changes) if when is None else bisect_right(changes, when, key=lambda change: change[0])
        return changes[max(found, 1) - 1][1]

    def between(self, start: float | None, end: float | None) -> list[tuple[float, float]]:
        return [c for c in list(self.changes) if (start is None or c[0] >= start) and (end is None or c[0] <= end)]

    def integral(self, start: float, end: float, beyond: float) -> float:
        """Value times seconds; the last one is valid until this long after the last read."""
        changes = list(self.changes)
        ends = [*(at for at, _ in changes[1:]), self.looked + beyond]
        return sum(
            value * max(0.0, min(until, end) - max(since, start))
            for (since, value), until in zip(changes, ends, strict=True)
        )


class Poller:
    """read(gpu): a value; None: none this time."""

    def __init__(
        self, name: str, gpus: list[int], period_s: float, longest: int | None, read: Callable[[int], float | None]
    ) -> None:
        self.series = {gpu: Series(longest) for gpu in gpus}
        self._name = name
        self._period_s = period_s
        self._read = read
        self._failed: set[int] = set()
        self._ended = threading.Event()
        self._begun = threading.Event()
        threading.Thread(target=self._run, name=f"underwatt-{name}", daemon=True).start()
        if not self._begun.wait(START_S):
            raise RuntimeError(f"{name}: no reading after {START_S:g} s")

    def _run(self) -> None:
        due = monotonic()
        while not self._ended.is_set():
            self._look()
            self._begun.set()
            due = max(due + self._period_s, monotonic())
            self._ended.wait(due - monotonic())

    def _look(self) -> None:
        for gpu, series in self.series.items():
            at = time()
            value = self._value(gpu)
            if value is not None:
                series.add(at, value)

    def catch_up(self, when: float) -> None:
        """Looks now where the last look was before that time: the thread was kept from running."""
        if not self._ended.is_set() and any(series.looked < when for series in self.series.values()):
            self._look()

    def _value(self, gpu: int) -> float | None:
        """A failed read is tried again; the first failure is reported."""
        try:
            return self._read(gpu)
        except ZeusBaseGPUError as e:
            if gpu not in self._failed:
                self._failed.add(gpu)
                logger.warning("%s of GPU %d: %s", self._name, gpu, e)
            return None

    def stop(self) -> None:
        self._ended.set()
