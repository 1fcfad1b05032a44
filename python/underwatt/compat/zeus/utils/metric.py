"""Zeus' cost, and energy from a log of power."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path


def zeus_cost(energy: float, time: float, eta_knob: float, max_power: int | float) -> float:
    """eta x energy + (1 - eta) x highest power x time, in J."""
    return eta_knob * energy + (1 - eta_knob) * max_power * time


def integral(points: Iterable[tuple[float, float]]) -> float:
    """Integrates by trapezoids."""
    area, before = 0.0, None
    for x, y in points:
        if before is not None:
            area += (x - before[0]) * (y + before[1]) / 2
        before = (x, y)
    return area


def _samples(logfile: Path | str, start: float | None, end: float | None) -> list[tuple[float, float]]:
    """(s, W) of a log with columns Time and Power (mW), whose last line may be cut off; start, end: s since its
    start or, if negative, before its end."""
    with open(logfile, newline="", encoding="utf-8") as log:
        rows = list(csv.DictReader(log))[:-1]
    samples = [(datetime.fromisoformat(row["Time"].strip()).timestamp(), float(row["Power"]) / 1000) for row in rows]
    if not samples:
        raise ValueError(f"{logfile}: no power is logged there")
    first, last = samples[0][0], samples[-1][0]
    since = first if start is None else start + (first if start >= 0 else last)
    until = last if end is None else end + (first if end >= 0 else last)
    found = [(at, power) for at, power in samples if since <= at <= until]
    if len(found) < 2:
        raise ValueError(f"{logfile}: fewer than two samples between {start} and {end}")
    return found


def energy(logfile: Path | str, start: float | None = None, end: float | None = None) -> float:
    """In J, for a log of power or a part of it."""
    return integral(_samples(logfile, start, end))


def avg_power(logfile: Path | str, start: float | None = None, end: float | None = None) -> float:
    """In W."""
    samples = _samples(logfile, start, end)
    return integral(samples) / (samples[-1][0] - samples[0][0])
