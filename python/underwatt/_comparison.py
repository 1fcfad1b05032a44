"""The result of compare(): figures with their intervals, as a table, rows, a chart.  Pure: no clock, no boards."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._errors import InvalidValue
from ._results import NO_HALF, Half
from ._text import percent, plain, rough, scaled, seconds, table

NAN = math.nan
BAR = 32  # characters of the longest bar of a chart in text

# 97.5 % quantile of Student's t for 1 to 4 degrees of freedom; above these the expansion is accurate to 0.003.
_T975 = (12.7062, 4.3027, 3.1824, 2.7764)
# A sequence that ends by its own interval ends too early by chance, most of all a short one.
EARLY = 1.5

MEASURED = {
    "gpu": "energy of the GPUs",
    "rapl": "energy of the processors (RAPL) only",
    "time": "time only: no GPU is measured, and this user may not read a RAPL counter",
}


def t975(degrees: int) -> float:
    if degrees <= len(_T975):
        return _T975[degrees - 1]
    z, v = 1.959964, float(degrees)
    second, third = 5 * z**5 + 16 * z**3 + 3 * z, 3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z
    return z + (z**3 + z) / (4 * v) + second / (96 * v**2) + third / (384 * v**3)


@dataclass(frozen=True, slots=True)
class Figure:
    """A value and half of its 95 % interval; NaN if unknown."""

    value: float = NAN
    half: float = NAN

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return scaled(self.value, self.half)


@dataclass(frozen=True, slots=True)
class Change(Figure):
    """By how much a value exceeds another one, relative to that one: -0.25 is a quarter less.  Printed in percent."""

    def __str__(self) -> str:
        return percent(self.value, self.half)


def mean_of(values: Sequence[float], least_half: float = 0.0) -> Figure:
    """The mean of independent values, by Student's t; least_half: the uncertainty of the sensors."""
    if not values or any(map(math.isnan, values)):
        return Figure()
    n = len(values)
    mean = math.fsum(values) / n
    if n < 2:
        return Figure(mean)
    half = t975(n - 1) * statistics.stdev(values) / math.sqrt(n) * (1 + EARLY / n)
    return Figure(mean, max(half, least_half))


def inverse_of(figure: Figure) -> Figure:
    """1 / value, with an interval of the same relative width."""
    return Figure(1 / figure.value, figure.half / figure.value**2) if figure.value > 0 else Figure()


def change_of(values: Sequence[float], first: Sequence[float], least_half: float = 0.0) -> Change:
    """By how much values exceed those of the first variant, relative to these: pairs of the same round, whose common
    drift cancels.  least_half: of values - first."""
    base = math.fsum(first) / len(first) if first else NAN
    if not base > 0:  # also if unknown
        return Change()
    ratio = math.fsum(values) / math.fsum(first)
    rest = mean_of([v - ratio * f for v, f in zip(values, first, strict=True)], least_half)
    return Change(ratio - 1, rest.half / base)


@dataclass(frozen=True, slots=True)
class Turn:
    """One variant in one round: its windows together."""

    iterations: int
    units: float
    time_s: float
    energy_j: float = NAN
    half: Half = NO_HALF  # half width of energy_j by the sensors
    apart_j: float = 0.0  # the same, but in squares over its windows: for differences from windows of the same boards
    gpu_j: float = NAN
    cpu_j: float = NAN
    dram_j: float = NAN

    @property
    def unit_j(self) -> float:
        return self.energy_j / self.units

    @property
    def unit_s(self) -> float:
        return self.time_s / self.units


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one variant.  energy_j is of one unit (a sample, a token), latency_s the mean of an iteration,
    throughput units a second; the changes are relative to the first variant's figures (-0.25: a quarter less), None
    for the first one."""

    name: str
    iterations: int
    windows: int
    energy_j: Figure
    latency_s: Figure
    throughput: Figure
    power_w: Figure
    gpu_j: float = NAN
    cpu_j: float = NAN
    dram_j: float = NAN
    accuracy: float | None = None
    energy_difference_j: Figure | None = None
    energy_change: Change | None = None
    throughput_change: Change | None = None


def outcome_of(name: str, turns: Sequence[Turn], first: Sequence[Turn] | None, accuracy: float | None) -> Outcome:
    """The figures of a variant's turns, one a round; first: the first variant's, in the same rounds."""
    units = math.fsum(t.units for t in turns)
    sensor = _sensor_half(turns)  # of the mean; its common part does not shrink with the number of turns
    power = [t.energy_j / t.time_s for t in turns]
    mine = [t.unit_j for t in turns]
    found: dict[str, Any] = {}
    if first is not None:
        theirs = [t.unit_j for t in first]
        both = math.hypot(_apart_half(turns), _apart_half(first))
        found["energy_difference_j"] = mean_of([a - b for a, b in zip(mine, theirs, strict=True)], both)
        found["energy_change"] = change_of(mine, theirs, both)
        slower = change_of([t.unit_s for t in turns], [t.unit_s for t in first])
        faster = inverse_of(Figure(1 + slower.value, slower.half))
        found["throughput_change"] = Change(faster.value - 1, faster.half)
    for key in ("gpu_j", "cpu_j", "dram_j"):
        found[key] = math.fsum(getattr(t, key) for t in turns) / units
    return Outcome(
        name=name,
        iterations=sum(t.iterations for t in turns),
        windows=2 * len(turns),
        energy_j=mean_of(mine, sensor),
        latency_s=mean_of([t.time_s / t.iterations for t in turns]),
        throughput=inverse_of(mean_of([t.unit_s for t in turns])),
        power_w=mean_of(power, sensor * units / math.fsum(t.time_s for t in turns)),
        accuracy=accuracy,
        **found,
    )


def _sensor_half(turns: Sequence[Turn]) -> float:
    """The half width of a unit's energy over all turns.  Uses the median: windows that the sensors measure poorly show
    in the scatter."""
    fixed = statistics.median(t.half.fixed_j / t.units for t in turns)
    noise = statistics.median(t.half.noise_j / t.units for t in turns)
    return Half(fixed, noise / math.sqrt(len(turns))).half_j


def _apart_half(turns: Sequence[Turn]) -> float:
    """The same for a difference: an error in proportion to the energy, which the boards' windows share, changes no
    ratio."""
    return statistics.median(t.apart_j / t.units for t in turns) / math.sqrt(len(turns))


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """The result of compare().  measured: "gpu", "rapl" (processors), "time".  reached: whether the intervals became
    as small as requested before the time was over."""

    per: str
    outcomes: tuple[Outcome, ...]
    measured: str
    about: str  # "2 simulated GPUs (counter)"
    rounds: int
    time_s: float
    within: float
    reached: bool
    simulated: bool = False

    def __getitem__(self, name: str) -> Outcome:
        for outcome in self.outcomes:
            if outcome.name == name:
                return outcome
        raise KeyError(name)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    def __str__(self) -> str:
        return f"{self.table()}\n{self.line()}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def worst(self) -> float:
        """The widest of the intervals to which `within` applies: half of it, as a part."""
        return worst_of(self.outcomes)

    def line(self) -> str:
        """What was measured, and with which accuracy."""
        sure = f"intervals of 95 %, the widest ± {rough(100 * self.worst)} %"
        why = "" if self.reached else f" (± {rough(100 * self.within)} % was asked for: the time was over)"
        about = f": {self.about}" if self.about else ""
        return f"{MEASURED[self.measured]}{about}; {self.rounds} rounds in {seconds(self.time_s)}; {sure}{why}"

    def _cells(self) -> list[list[str]]:
        """The table: a head, and a row for each variant."""
        energy, accuracy = self.measured != "time", any(o.accuracy is not None for o in self.outcomes)
        first, rows = self.outcomes[0].name, []
        head = ["variant", *([f"energy per {self.per}"] if energy else []), "latency", f"{self.per}s per second"]
        head += [*(["power"] if energy else []), *(["accuracy"] if accuracy else [])]
        if len(self.outcomes) > 1:
            head += [*([f"energy against {first}"] if energy else []), f"throughput against {first}"]
        for o in self.outcomes:
            row = [o.name, *([scaled(o.energy_j.value, o.energy_j.half, "J")] if energy else [])]
            row += [scaled(o.latency_s.value, o.latency_s.half, "s"), str(o.throughput)]
            row += [scaled(o.power_w.value, o.power_w.half, "W")] if energy else []
            row += ["" if o.accuracy is None else f"{o.accuracy:.4g}"] if accuracy else []
            if len(self.outcomes) > 1:
                changes = [*([o.energy_change] if energy else []), o.throughput_change]
                row += ["" if c is None else str(c) for c in changes]
            rows.append(row)
        return [head, *rows]

    def table(self) -> str:
        return table(self._cells())

    def _bars(self) -> tuple[str, str, list[Figure]]:
        """The content of a chart: its title, its unit, a figure for each variant."""
        if self.measured != "time":
            return f"Energy per {self.per}", "J", [o.energy_j for o in self.outcomes]
        return "Time of an iteration", "s", [o.latency_s for o in self.outcomes]

    def chart(self) -> str:
        """Bars as text: the energy of a unit or, if that is unknown, the latency."""
        title, unit, figures = self._bars()
        most = max((f.value for f in figures if f.value > 0), default=1.0)
        wide = max(len(o.name) for o in self.outcomes)
        lines = [title]
        for o, f in zip(self.outcomes, figures, strict=True):
            bar = "█" * max(0, round(BAR * f.value / most)) if f.value > 0 else ""
            lines.append(f"{o.name.ljust(wide)}  {bar.ljust(BAR)}  {scaled(f.value, f.half, unit)}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """All figures as plain JSON types."""
        return {
            "per": self.per,
            "measured": self.measured,
            "about": self.about,
            "simulated": self.simulated,
            "rounds": self.rounds,
            "time_s": plain(self.time_s),
            "within": self.within,
            "reached": self.reached,
            "variants": [_row(o) for o in self.outcomes],
        }

    def as_rows(self) -> list[dict[str, Any]]:
        """A flat row for each variant: pandas.DataFrame(comparison.as_rows())."""
        common = {"per": self.per, "measured": self.measured, "simulated": self.simulated}
        return [{**_row(o), **common} for o in self.outcomes]

    def _repr_html_(self) -> str:
        from ._html import comparison_page  # noqa: PLC0415 - notebooks alone need it

        return comparison_page(self)


def worst_of(outcomes: Sequence[Outcome]) -> float:
    """The widest relative interval: of the differences from the first variant, or of a single variant."""
    if len(outcomes) == 1:
        o = outcomes[0]
        figure = o.latency_s if math.isnan(o.energy_j.value) else o.energy_j
        return figure.half / figure.value if figure.value > 0 else NAN
    changes = [o.throughput_change if math.isnan(o.energy_j.value) else o.energy_change for o in outcomes[1:]]
    return max((NAN if c is None else c.half for c in changes), default=NAN)


def _row(o: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"variant": o.name}
    for key in (
        "energy_j",
        "latency_s",
        "throughput",
        "power_w",
        "energy_difference_j",
        "energy_change",
        "throughput_change",
    ):
        figure = getattr(o, key) or Figure()
        row[key], row[f"{key}_half"] = plain(figure.value), plain(figure.half)
    row.update(gpu_j=plain(o.gpu_j), cpu_j=plain(o.cpu_j), dram_j=plain(o.dram_j))
    row.update(accuracy=plain(o.accuracy), iterations=o.iterations, windows=o.windows)
    return row


def check_number(name: str, value: object, least: float, most: float) -> float:
    """Checks a number above least, up to most."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least < value <= most:
        bound = "" if math.isinf(most) else f", up to {most:g},"
        raise InvalidValue(f"{name} {value!r} is not a number above {least:g}{bound}")
    return float(value)
