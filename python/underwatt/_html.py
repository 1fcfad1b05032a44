"""A measurement as shown in a notebook: a table, and a chart as inline SVG without a script."""

from __future__ import annotations

import math
from html import escape

from ._comparison import Comparison, Figure
from ._results import Device, Energy, Sample
from ._text import joules, prefix_of, scaled, seconds, watts

WIDTH, HEIGHT, LEFT, BOTTOM = 520, 140, 46, 18
RIGHT = 44  # for the labels of lines
LABELS = 12  # more lines have no labels: their titles identify them
STRETCHES = (WIDTH - LEFT - RIGHT) // 2  # stretches of a line at most: two pixels each
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e")


def _row(d: Device) -> str:
    if d.known:
        cells = [joules(d.energy_j, d.half_j), watts(d.power_w), d._how]
    else:
        cells = ["unknown", "", d.why]
    return "<tr>" + "".join(f"<td>{escape(c)}</td>" for c in (d.label, d.name, *cells)) + "</tr>"


def page_of(e: Energy) -> str:
    """The table and, below it, power over time if samples are known, else the energy of each device."""
    head = "<tr><th></th><th>device</th><th>energy</th><th>mean power</th><th>method</th></tr>"
    rows = "".join(_row(d) for d in (*e.gpus, *e.processors))
    text = f"<p><b>{escape(e.name)}</b> {escape(e.line())}</p>"
    return f"<div>{text}<table>{head}{rows}</table>{chart_of(e)}</div>"


def chart_of(e: Energy) -> str:
    sampled = [g for g in e.gpus if len(g.samples) > 1]
    devices = [d for d in (*e.gpus, *e.processors) if d.known]
    if sampled and e.time_s > 0:
        return _svg(_lines(sampled, e.time_s), f"Power of {len(sampled)} boards over {e.time_s:.3g} s")
    return _svg(_bars(devices), "Energy of each device") if devices else ""


def _svg(parts: list[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="10" fill="currentColor"><title>{escape(title)}</title>'
        + "".join(parts)
        + "</svg>"
    )


def _axis(most: float, unit: str, right: int = 0) -> list[str]:
    """Horizontal lines at 0, at the maximum and at half of it."""
    parts = []
    for part in (0.0, 0.5, 1.0):
        y = _y(part)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{most * part:,.6g} {unit}</text>')
    return parts


def _y(part: float) -> float:
    return 8 + (HEIGHT - BOTTOM - 8) * (1 - part)


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    base = 10.0 ** math.floor(math.log10(value))
    return next(base * step for step in (1, 2, 5, 10) if base * step >= value)


def means(samples: tuple[Sample, ...], least_s: float) -> list[Sample]:
    """Joins neighbours until each spans at least least_s: the mean of their energy."""
    joined: list[Sample] = []
    energy_j, over_s, began_s = 0.0, 0.0, 0.0
    for i, s in enumerate(samples):
        if over_s == 0:
            began_s = s.time_s - s.over_s
        energy_j += s.power_w * s.over_s
        over_s += s.over_s
        if (s.time_s - began_s >= least_s or i + 1 == len(samples)) and over_s > 0:
            joined.append(Sample(s.time_s, energy_j / over_s, over_s))
            energy_j, over_s = 0.0, 0.0
    return joined


def _line(samples: list[Sample], time_s: float, most: float) -> str:
    """Each mean over its time, connected to the one before; gaps that were not measured stay empty."""
    points = []
    for s in samples:
        y = f"{_y(s.power_w / most):.1f}"
        for t in (s.time_s - s.over_s, s.time_s):
            points.append(f"{LEFT + (WIDTH - LEFT - RIGHT) * min(max(t / time_s, 0), 1):.1f},{y}")
    return " ".join(points)


def _beside(wanted: list[float]) -> list[float]:
    """Heights of labels near the wanted ones, 10 pixels apart, within the chart."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    least = 10.0
    for i in order:
        placed[i] = least = max(wanted[i], least)
        least += 10
    over = max(0.0, least - 10 - (HEIGHT - BOTTOM + 4))
    return [max(y - over, 8.0) for y in placed]


def _lines(devices: list[Device], time_s: float) -> list[str]:
    drawn = [means(d.samples, time_s / STRETCHES) for d in devices]
    most = _round_up(max(s.power_w for line in drawn for s in line))
    parts = _axis(most, "W", RIGHT)
    labels = _beside([_y(line[-1].power_w / most) + 3 for line in drawn])
    for i, (d, line) in enumerate(zip(devices, drawn, strict=True)):
        colour = COLOURS[i % len(COLOURS)]
        parts.append(
            f'<polyline points="{_line(line, time_s, most)}" fill="none" stroke="{colour}" stroke-width="1.5">'
            f"<title>{escape(str(d))}</title></polyline>"
        )
        if len(devices) <= LABELS:
            parts.append(f'<text x="{WIDTH - RIGHT + 4}" y="{labels[i]:.1f}" fill="{colour}">{escape(d.label)}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 4}">0 s</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{seconds(time_s)}</text>')
    return parts


def _bars(devices: list[Device]) -> list[str]:
    factor, unit = (1e3, "kJ") if max(d.energy_j for d in devices) >= 1e4 else (1.0, "J")
    most = _round_up(max(d.energy_j for d in devices) / factor)
    parts = _axis(most, unit)
    step = (WIDTH - LEFT) / len(devices)
    for i, d in enumerate(devices):
        y = _y(max(d.energy_j, 0) / factor / most)
        x = LEFT + step * (i + 0.15)
        place = f'x="{x:.1f}" y="{y:.1f}" width="{step * 0.7:.1f}" height="{_y(0) - y:.1f}"'
        colour = COLOURS[0 if d.kind == "gpu" else 1]
        parts.append(f'<rect {place} fill="{colour}"><title>{escape(str(d))}</title></rect>')
        parts.append(f'<text x="{x + step * 0.35:.1f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(d.label)}</text>')
    return parts


# ---- comparisons ----


def comparison_page(c: Comparison) -> str:
    """The table and, below it, a bar with its interval for each variant."""
    head, *rows = c._cells()
    lines = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    title, unit, figures = c._bars()
    parts = _intervals([o.name for o in c.outcomes], figures, unit)
    chart = _svg(parts, f"{title}, and its interval of 95 %") if parts else ""
    table = f'<table style="white-space:nowrap">{"".join(lines)}</table>'
    return f"<div>{table}<p>{escape(c.line())}</p><p>{escape(title)}</p>{chart}</div>"


def _intervals(names: list[str], figures: list[Figure], unit: str) -> list[str]:
    """Bars from 0, each with its interval and its figure."""
    ends = [f.value + (0 if math.isnan(f.half) else f.half) for f in figures if f.value > 0]
    if not ends:
        return []
    factor, prefix = prefix_of(max(ends))
    most = _round_up(max(ends) / factor)
    parts = _axis(most, prefix + unit)
    step = (WIDTH - LEFT) / len(figures)
    for i, (name, f) in enumerate(zip(names, figures, strict=True)):
        middle = LEFT + step * (i + 0.5)
        parts.append(f'<text x="{middle:.1f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(name)}</text>')
        if f.value > 0:
            y = _y(f.value / factor / most)
            place = f'x="{middle - step * 0.3:.1f}" y="{y:.1f}" width="{step * 0.6:.1f}" height="{_y(0) - y:.1f}"'
            about = escape(f"{name}: {scaled(f.value, f.half, unit)}")
            parts.append(f'<rect {place} fill="{COLOURS[i % len(COLOURS)]}"><title>{about}</title></rect>')
            parts += _whisker(middle, (f.value - f.half) / factor / most, (f.value + f.half) / factor / most)
    return parts


def _whisker(x: float, low: float, high: float) -> list[str]:
    if math.isnan(low):
        return []
    y1, y2, wide = _y(max(low, 0)), _y(high), 5
    lines = ((x, x, y1, y2), (x - wide, x + wide, y1, y1), (x - wide, x + wide, y2, y2))
    return [
        f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{c:.1f}" y2="{d:.1f}" stroke="currentColor"/>' for a, b, c, d in lines
    ]
