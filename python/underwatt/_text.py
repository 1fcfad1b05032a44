"""Figures in a readable form."""

from __future__ import annotations

import math
from collections.abc import Sequence

_STEPS = ((1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ"), (1.0, "J"))
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


def _nearest(value: float) -> float:
    """Half is rounded up, in magnitude; no -0."""
    return math.copysign(math.floor(abs(value) + 0.5), value) + 0.0


def within(value: float, half: float) -> tuple[str, str]:
    """A value and its half width, both rounded to the second significant digit of the half width, as in
    src/base/within.h; a value with four digits if the half width is 0."""
    if not 0 < half < math.inf or not math.isfinite(value):
        return _digits(value), rough(half)
    places = 1 - math.floor(math.log10(half))
    if round(half * 10.0**places) >= 100:  # 9.96 has two digits as 10
        places -= 1
    places = min(places, 6)
    unit = 10.0**-places
    text, wide = (f"{_nearest(v / unit) * unit:,.{max(places, 0)}f}" for v in (value, half))
    return text, wide


def joules(energy_j: float, half_j: float = math.nan) -> str:
    """ "1.2340 kJ ± 0.0050 kJ", in the unit of src/cli/figures.c: 999.95 J are 1.000 kJ."""
    if math.isnan(energy_j):
        return "unknown"
    factor, unit = next(((f, u) for f, u in _STEPS if abs(energy_j) >= 0.99995 * f), _STEPS[-1])
    if math.isnan(half_j):
        return f"{_digits(energy_j / factor)} {unit}"
    value, half = within(energy_j / factor, half_j / factor)
    return f"{value} {unit} ± {half} {unit}"


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
    """ "41.20 ± 0.50 mJ": with a prefix of the unit."""
    if math.isnan(value):
        return "unknown"
    factor, prefix = prefix_of(value)
    text = _digits(value / factor) if math.isnan(half) else " ± ".join(within(value / factor, half / factor))
    return f"{text} {prefix}{unit}".rstrip()


def percent(part: float, half: float = math.nan) -> str:
    """ "-61.20 ± 0.40 %", of -0.612 and 0.004."""
    if math.isnan(part):
        return "unknown"
    if 0 < half < math.inf:
        value, wide = within(100 * part, 100 * half)
        return f"{value if value.startswith('-') else f'+{value}'} ± {wide} %"
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
