#!/usr/bin/python3
"""What Underwatt's code makes of a session's recordings: periods in power and steps in
launches, against the true steps.  Needs no board.

    replay.py OUT [--programs FOLDER]
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

from nvml import Found
from programs import BUILD, find

LABELS = ("counted plain", "norest", "accum", "busy")
POLLS_MS = (25, 15, 10, 5)
LOOK_S = 0.05  # between the daemon's readings of power in a search


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    head = lines[0].split(",")
    return [dict(zip(head, line.split(","), strict=True)) for line in lines[1:]]


def steps_of(out: pathlib.Path) -> dict[str, list[tuple[float, float]]]:
    """Begin and end of each step, by the label of its block."""
    steps: dict[str, list[tuple[float, float]]] = {}
    if (out / "steps.csv").exists():
        for line in (out / "steps.csv").read_text(encoding="utf-8").splitlines():
            label, _, x, y = line.split(",")
            steps.setdefault(label, []).append((float(x), float(y)))
    return steps


def told(*words: object) -> Found | None:
    """The JSON output of a program; None if there is none."""
    try:
        q = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, timeout=60)
        return dict(json.loads(q.stdout))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def period(program: pathlib.Path, power: list[dict[str, str]], column: str, begin: float, end: float) -> str:
    """The result of the search for a period from one column, read as often as the daemon reads it."""
    chance = random.Random(1)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
        f.write("t_s,power_w\n")
        due = begin
        for r in power:
            t = float(r["time_s"])
            if due <= t <= end:
                f.write(f"{t},{r[column]}\n")
                due = t + LOOK_S * chance.uniform(0.8, 1.2)
        f.flush()
        try:
            q = subprocess.run(
                [str(program), "--trace", f.name], capture_output=True, text=True, check=False, timeout=60
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            return str(e)
    return f"{q.stdout.strip()}{q.stderr.strip()}"


def replay(out: pathlib.Path, programs: pathlib.Path) -> list[Found]:
    """A row for every recorded block."""
    found: list[Found] = []
    power = [r for r in rows_of(out / "sensors.csv") if r["instant_w"]] if (out / "sensors.csv").exists() else []
    for label, spans in steps_of(out).items():
        if label not in LABELS:
            continue
        begin, end = spans[0][0], spans[-1][1]
        row: Found = {
            "label": label,
            "steps": len(spans),
            "step_ms": 1e3 * (end - begin) / len(spans),
            "median_ms": 1e3 * statistics.median(y - x for x, y in spans),
        }
        finder, player = find(programs, "period"), find(programs, "launch-trace")
        if finder:
            row["period"] = {c: period(finder, power, c, begin, end) for c in ("instant_w", "average_w")}
        if player and label != "busy" and (out / "launches.csv").exists():
            row["launches"] = [told(player, out / "launches.csv", poll, begin, end) for poll in POLLS_MS]
        found.append(row)
    return found


def lines_of(rows: list[Found]) -> list[str]:
    lines = []
    for r in rows:
        lines.append(
            f"{r['label']}: {r['steps']} steps, one each {r['step_ms']:.3f} ms, median {r['median_ms']:.3f} ms"
        )
        lines += [f"  period in {c}: {text}" for c, text in r.get("period", {}).items()]
        for seen in r.get("launches", []):
            if seen is None:
                lines.append("  launches: not played")
            elif seen["known"]:
                lines.append(
                    f"  launches looked at every {seen['poll_ms']} ms: steps of {seen['step_ms']:.3f} ms,"
                    f" known after {seen['known_after_s']} s"
                )
            else:
                lines.append(f"  launches looked at every {seen['poll_ms']} ms: no steps found (reason {seen['why']})")
    return lines


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--programs", type=pathlib.Path, default=BUILD)
    a = p.parse_args()
    print("\n".join(lines_of(replay(a.out, a.programs))))


if __name__ == "__main__":
    main()
