"""Figures as people read them."""

from __future__ import annotations

import math

_STEPS = ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"))


def _digits(value: float) -> str:
    """Four significant digits, and no exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 3)}f}"


def _two(value: float) -> str:
    """Two significant digits at least, and no exponent."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def joules(energy_j: float, half_j: float = math.nan) -> str:
    """ "1.234 kJ ± 0.005 kJ"."""
    if math.isnan(energy_j):
        return "unknown"
    factor, unit = next(((f, u) for f, u in _STEPS if abs(energy_j) >= 10 * f), _STEPS[-1])
    text = f"{_digits(energy_j / factor)} {unit}"
    return text if math.isnan(half_j) else f"{text} ± {_two(half_j / factor)} {unit}"


def watts(power_w: float) -> str:
    return "unknown" if math.isnan(power_w) else f"{_digits(power_w)} W"


def seconds(time_s: float) -> str:
    if time_s >= 600:
        minutes, rest = divmod(round(time_s), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"
    return f"{_digits(time_s)} s"
