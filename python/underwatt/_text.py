"""Figures in a readable form."""

from __future__ import annotations

import math
from collections.abc import Sequence

_STEPS = ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"))
_PREFIXES = ((1e7, 1e6, "M"), (1e4, 1e3, "k"), (1.0, 1.0, ""), (1e-3, 1e-3, "m"), (1e-6, 1e-6, "µ"), (0.0, 1e-9, "n"))


def _digits(value: float) -> str:
    """Four significant digits, and no exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(places, 3)}f}"


def rough(value: float) -> str:
    """Two significant digits at least, and no exponent."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"


def joules(energy_j: float, half_j: float = math.nan) -> str:
    """ "1.234 kJ ± 0.005 kJ"."""
    if math.isnan(energy_j):
        return "unknown"
    factor, unit = next(((f, u) for f, u in _STEPS if abs(energy_j) >= 10 * f), _STEPS[-1])
    text = f"{_digits(energy_j / factor)} {unit}"
    return text if math.isnan(half_j) else f"{text} ± {rough(half_j / factor)} {unit}"


def watts(power_w: float) -> str:
    return "unknown" if math.isnan(power_w) else f"{_digits(power_w)} W"


def plain(value: float | None) -> float | None:
    """As in JSON: None for an unknown or non-finite number."""
    return value if value is not None and math.isfinite(value) else None


def seconds(time_s: float) -> str:
    if math.isnan(time_s):
        return "unknown"
    if time_s >= 600:
        minutes, rest = divmod(round(time_s), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{rest:02} h" if hours else f"{minutes}:{rest:02} min"
    return f"{_digits(time_s)} s"


def prefix_of(value: float) -> tuple[float, str]:
    return next(((f, p) for least, f, p in _PREFIXES if abs(value) >= least), (1.0, "")) if value else (1.0, "")


def scaled(value: float, half: float = math.nan, unit: str = "") -> str:
    """ "41.2 ± 0.5 mJ": with a prefix of the unit."""
    if math.isnan(value):
        return "unknown"
    factor, prefix = prefix_of(value)
    text = _digits(value / factor)
    return f"{text if math.isnan(half) else f'{text} ± {rough(half / factor)}'} {prefix}{unit}".rstrip()


def percent(part: float, half: float = math.nan) -> str:
    """ "-61.2 ± 0.4 %", of -0.612 and 0.004."""
    if math.isnan(part):
        return "unknown"
    text = f"{100 * part:+.1f}" if abs(part) < 9.995 else f"{100 * part:+,.0f}"
    return f"{text} %" if math.isnan(half) else f"{text} ± {rough(100 * half)} %"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; figures aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = [
        all(row[i].lstrip("+-")[:1].isdigit() or row[i] in ("", "unknown") for row in rows[1:])
        for i in range(len(widths))
    ]
    lines = (
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)
