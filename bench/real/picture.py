"""The picture of a session: the board's power over time, and what ran meanwhile (SVG)."""

import pathlib
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 1200, 420, 60, 80, 30, 110
POINTS = 2400


def thinned(rows: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Every so manieth row."""
    every = max(1, len(rows) // POINTS)
    return list(rows[::every])


def draw(
    path: pathlib.Path, title: str, power: Sequence[tuple[float, float]], parts: Sequence[tuple[str, float, float]]
) -> None:
    """power: (s, W); parts: (name, begin s, end s)."""
    rows = thinned(power)
    if len(rows) < 2:
        return
    end = max(rows[-1][0], *(p[2] for p in parts)) if parts else rows[-1][0]
    top = max(w for _, w in rows) * 1.05 or 1.0

    def x(t: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * t / end

    def y(w: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * w / top

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"',
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-size="13">{escape(title)}</text>',
    ]
    for i, (name, a, b) in enumerate(parts):
        fill = "#eef3fa" if i % 2 else "#f8f4e8"
        box = f'x="{x(a):.1f}" y="{TOP}" width="{max(x(b) - x(a), 0.5):.1f}" height="{HEIGHT - BOTTOM - TOP}"'
        out.append(f'<rect {box} fill="{fill}"/>')
        if b - a < 0.01 * end:  # no room for its name
            continue
        at = x((a + b) / 2)
        out.append(f'<text transform="translate({at:.1f},{TOP - 5}) rotate(-40)">{escape(name)}</text>')
    for k in range(6):
        w = top * k / 5
        out.append(f'<text x="{LEFT - 6}" y="{y(w) + 4:.1f}" text-anchor="end">{w:.0f} W</text>')
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(w):.1f}" y2="{y(w):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{x(end * k / 5):.1f}" y="{HEIGHT - 10}" text-anchor="middle">{end * k / 5:.0f} s</text>')
    points = " ".join(f"{x(t):.1f},{y(w):.1f}" for t, w in rows)
    out.append(f'<polyline fill="none" stroke="#2458a6" stroke-width="1" points="{points}"/>')
    out.append("</svg>")
    path.write_text("\n".join(out) + "\n", encoding="utf-8")
