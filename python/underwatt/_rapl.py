"""Counters of the processors' energy in the kernel's powercap tree, if this process may read them."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

ROOT = Path("/sys/class/powercap")
_ZONE = re.compile(r"intel-rapl:\d+(:\d+)?$")
KINDS = {"package": "cpu", "dram": "dram"}


class Rapl:
    """Packages and their memory."""

    def __init__(self, root: Path | None = None) -> None:
        self._zones: list[tuple[str, Path, int]] = []
        found = sorted((root or ROOT).glob("intel-rapl:*"))
        for folder in found:
            try:
                kind = KINDS.get((folder / "name").read_text().strip().partition("-")[0])
                range_uj = int((folder / "max_energy_range_uj").read_text())
                if kind and _ZONE.match(folder.name) and os.access(folder / "energy_uj", os.R_OK):
                    self._zones.append((kind, folder / "energy_uj", range_uj))
            except (OSError, ValueError):  # no counter
                continue

    def __bool__(self) -> bool:
        return any(kind == "cpu" for kind, _, _ in self._zones)

    def read(self) -> list[int]:
        """The present value of each counter, in µJ; they wrap."""
        return [int(path.read_text()) for _, path, _ in self._zones]

    def between(self, a: list[int], b: list[int]) -> dict[str, float]:
        """J of "cpu" and "dram"; NaN if not counted."""
        sums: dict[str, list[float]] = {"cpu": [], "dram": []}
        for (kind, _, range_uj), first, last in zip(self._zones, a, b, strict=True):
            sums[kind].append((last - first + (range_uj if last < first else 0)) / 1e6)
        return {kind: math.fsum(parts) if parts else math.nan for kind, parts in sums.items()}
