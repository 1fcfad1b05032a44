"""compare(): measures variants of a model in turn, A B B A, until the intervals are small enough."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ._comparison import Comparison, Turn, check_number, outcome_of, worst_of
from ._errors import InvalidValue, NoDevice, UnderwattError
from ._monitor import Monitor, monitor
from ._rapl import Rapl
from ._results import NO_HALF, Energy, Half, half_of
from ._window import Window

LEAST_ROUNDS = 5  # before the intervals may end the measurement: of fewer rounds they are often too small by chance
SHORTEST_ROUNDS = 2  # that must fit into the time
WINDOW_S = (2.0, 10.0)  # a board's counter changes every 20 to 100 ms: shorter windows are inaccurate
WITHOUT_S = 0.5  # without boards
COARSE = 3.0  # times `within`: windows with a larger error are made longer
LEAD = 4  # a quarter of a window runs unmeasured before it: clock and power follow the load
FAILED = 2  # consecutive rounds with unknown energy


@dataclass(frozen=True)
class Variant:
    """call() runs one iteration.  count: samples (tokens, …) per iteration; accuracy: called once at the end, its
    result is in the table."""

    call: Callable[[], object]
    count: float = 1
    accuracy: Callable[[], float] | None = None


Given = Variant | Callable[[], object]


@dataclass
class _Run:
    """A variant while it is being measured."""

    name: str
    variant: Variant
    iterations: int = 1  # iterations of a window
    turns: list[Turn] = field(default_factory=list)
    windows: list[Reading] = field(default_factory=list)  # windows of this round


@dataclass
class Reading:
    """A window that has ended."""

    iterations: int
    window: Window
    rapl: dict[str, float] | None


def compare(
    variants: Mapping[str, Given],
    *,
    per: str = "iteration",
    within: float = 0.01,
    time_s: float = 120.0,
    window_s: float | None = None,
    device: str | None = None,
    monitor: Monitor | None = None,
) -> Comparison:
    """Compares energy, latency and throughput of variants of a model, or of batch sizes.

    variants: names, each with what runs one iteration, a callable or a Variant; the others are compared with the first.
    per: the unit of a Variant's count, "sample" or "token".
    within: the measurement ends when the half widths of the 95 % intervals of the energy differences are at most this
    part of the first variant's energy; for one variant alone, of its own energy.
    time_s: the longest time, warm-up included.
    window_s: length of a window; None: 2 s, longer if the sensors are too coarse for that; 0.5 s without a GPU.
    device: "gpu", "cpu"; None: the GPUs, if the node has any.  monitor: None: the implicit one.
    """
    runs = [_Run(name, _variant(name, given)) for name, given in _items(variants)]
    if not isinstance(per, str) or not per.strip():
        raise InvalidValue(f"per {per!r} is not one word, as in 'sample'")
    check_number("within", within, 0, 1)
    check_number("time_s", time_s, 0, math.inf)
    if window_s is not None:
        check_number("window_s", window_s, 0, time_s)
    if device not in (None, "gpu", "cpu"):
        raise InvalidValue(f"device {device!r} is none of: gpu, cpu, None")
    with _measuring(device, monitor) as gauge:
        return _Comparing(runs, gauge, within, time_s, window_s).run(per)


def _items(variants: object) -> list[tuple[str, Given]]:
    if not isinstance(variants, Mapping) or not variants:
        raise InvalidValue(f"variants: expected a dict of names and callables, got {_about(variants)}")
    for name in variants:
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue(f"variants: {name!r} is not a name")
    return list(variants.items())


def _about(value: object) -> str:
    return "an empty one" if isinstance(value, Mapping) else type(value).__name__


def _variant(name: str, given: Any) -> Variant:
    made = given if isinstance(given, Variant) else Variant(given)
    if not callable(made.call):
        raise InvalidValue(f"variant '{name}': {made.call!r} is not callable")
    if made.accuracy is not None and not callable(made.accuracy):
        raise InvalidValue(f"variant '{name}': accuracy {made.accuracy!r} is not callable")
    check_number(f"variant '{name}': count", made.count, 0, math.inf)
    return made


# ---- measuring ----


class _Gauge:
    """Windows, and the devices whose energy counts: the GPUs and processors of a monitor; only the processors, read
    by the monitor or by this process itself; or none."""

    def __init__(self, monitor: Monitor, gpus: bool, rapl: Rapl | None) -> None:
        self.monitor = monitor
        self.gpus = gpus
        self.rapl = rapl
        self.seen: Energy | None = None  # the last energy

    @contextlib.contextmanager
    def window(self, name: str, iterations: int) -> Iterator[Reading]:
        before = self.rapl.read() if self.rapl else None
        window = self.monitor.window(name)
        reading = Reading(iterations, window, None)
        with window:
            yield reading
        if self.rapl and before is not None:
            reading.rapl = self.rapl.between(before, self.rapl.read())

    def turn(self, readings: Sequence[Reading], count: float) -> Turn:
        """Sums up the windows of one variant; waits for their energies, and raises if one is unknown."""
        parts = [self._parts(r) for r in readings]
        iterations = sum(r.iterations for r in readings)
        sums = {key: math.fsum(p[key] for p, _ in parts) for key in parts[0][0]}
        half = sum((h for _, h in parts), NO_HALF)
        apart_j = math.hypot(*(h.half_j for _, h in parts))
        return Turn(iterations, iterations * count, half=half, apart_j=apart_j, **sums)

    def _parts(self, reading: Reading) -> tuple[dict[str, float], Half]:
        e = self.seen = reading.window.energy
        rest = {"gpu_j": math.nan, "cpu_j": e.cpu_j, "dram_j": e.dram_j}
        if self.gpus:
            if math.isnan(e.total_j):
                raise UnderwattError(e.line())
            # The clock of the energy: a simulated node's may be faster.
            return {**rest, "time_s": e.time_s, "energy_j": e.total_j, "gpu_j": e.gpu_j}, e._half
        rest["time_s"] = e.time_s if e.gpus else reading.window.seconds
        half = half_of(p for p in e.processors if p.known and p.kind != "other")
        if math.isnan(e.cpu_j) and reading.rapl is not None:
            rest.update(cpu_j=reading.rapl["cpu"], dram_j=reading.rapl["dram"])
        known = [j for j in (rest["cpu_j"], rest["dram_j"]) if not math.isnan(j)]
        return {**rest, "energy_j": math.fsum(known) if known else math.nan}, half

    def measured(self) -> str:
        if self.gpus:
            return "gpu"
        has = self.rapl is not None or (self.seen is not None and not math.isnan(self.seen.cpu_j))
        return "rapl" if has else "time"

    def simulated(self) -> bool:
        return self.gpus and self.seen is not None and self.seen.simulated

    def about(self) -> str:
        """Describes the last energy."""
        e, words = self.seen, []
        if e is not None and self.gpus:
            n = len(e.gpus)
            words.append(f"{n} {'simulated ' if e.simulated else ''}GPU{'s' if n != 1 else ''} ({e.method})")
            words += [what for what, j in (("CPU", e.cpu_j), ("DRAM", e.dram_j)) if not math.isnan(j)]
        return ", ".join(words)


@contextlib.contextmanager
def _measuring(device: str | None, given: Monitor | None) -> Iterator[_Gauge]:
    """Leaves a monitor of the program open."""
    try:
        found = given if given is not None else monitor()
        if found.source != "null" and device != "cpu":
            yield _Gauge(found, True, None)
            return
        if device == "gpu":
            raise NoDevice("device 'gpu': the null monitor measures no GPU")
    except NoDevice:
        if device == "gpu" or given is not None:
            raise
        found = Monitor(null=True)
    yield _Gauge(found, False, Rapl() or None)


# ---- rounds ----


class _Comparing:
    def __init__(self, runs: list[_Run], gauge: _Gauge, within: float, time_s: float, window_s: float | None) -> None:
        self.runs = runs
        self.gauge = gauge
        self.within = within
        self.given_s = time_s
        self.window_s = window_s or (WINDOW_S[0] if gauge.gpus else WITHOUT_S)
        self.longest_s = window_s or WINDOW_S[1]
        self.began = time.monotonic()
        self.iteration_s: dict[str, float] = {}

    def run(self, per: str) -> Comparison:
        self._warm_up()
        rounds = failed = 0
        took, reached = self._expected_s(), False
        self._has_room(took)
        while not reached and (rounds + failed < SHORTEST_ROUNDS or self._gone_s() + took <= self.given_s):
            began = time.monotonic()
            try:
                self._round()
                rounds, failed = rounds + 1, 0
            except UnderwattError:  # the daemon was restarted, or a board gave no reading
                failed += 1
                if failed >= FAILED:
                    raise
                continue
            finally:
                took = time.monotonic() - began
            reached = rounds >= LEAST_ROUNDS and self._worst() <= self.within
        measured_s = self._gone_s()
        return Comparison(
            per=per,
            outcomes=tuple(self._outcomes(with_accuracy=True)),
            measured=self.gauge.measured(),
            about=self.gauge.about(),
            rounds=rounds,
            time_s=measured_s,
            within=self.within,
            reached=reached,
            simulated=self.gauge.simulated(),
        )

    def _gone_s(self) -> float:
        return time.monotonic() - self.began

    def _warm_up(self) -> None:
        """Lets each variant compile its code, and determines the iterations of a window and the length of windows."""
        for run in self.runs:
            self._do(run, 1)
            self.iteration_s[run.name] = self._pace(run)
        while True:
            coarse = 0.0
            for run in self.runs:
                run.iterations = max(1, math.ceil(self.window_s / self.iteration_s[run.name]))
                with self.gauge.window(f"{run.name} (warm-up)", run.iterations) as reading:
                    self._do(run, run.iterations, sync=False)
                turn = self.gauge.turn([reading], run.variant.count)
                if turn.energy_j > 0:
                    coarse = max(coarse, turn.half.half_j / turn.energy_j)
            longer = min(2 * self.window_s, self.longest_s)
            enough = coarse <= COARSE * self.within or longer <= self.window_s
            if enough or self._gone_s() + 2 * LEAST_ROUNDS * self._expected_s() > self.given_s:
                return
            self.window_s = longer

    def _pace(self, run: _Run) -> float:
        """Seconds of an iteration, measured over a quarter of a window."""
        n = 1
        while True:
            began = time.monotonic()
            self._do(run, n)
            took = time.monotonic() - began
            if took >= self.window_s / LEAD:
                return took / n
            n = 2 * n if took <= 0 else min(2 * n, math.ceil(1.2 * n * self.window_s / LEAD / took))

    def _do(self, run: _Run, n: int, sync: bool = True) -> None:
        call = run.variant.call
        for _ in range(n):
            call()
        if sync:
            self.gauge.monitor._sync()

    def _expected_s(self) -> float:
        """The expected duration of a round."""
        each = [r.iterations * self.iteration_s[r.name] for r in self.runs]
        return 2 * (1 + 1 / LEAD) * math.fsum(each)

    def _has_room(self, round_s: float) -> None:
        needed = self._gone_s() + SHORTEST_ROUNDS * round_s
        if needed > self.given_s:
            raise InvalidValue(
                f"time_s {self.given_s:g}: warm-up and {SHORTEST_ROUNDS} rounds need {math.ceil(1.2 * needed)} s"
            )

    def _round(self) -> None:
        """Runs each variant twice, in order and in reverse, so that a drift of the boards' temperature is the same
        for all."""
        before: _Run | None = None
        for run in self.runs:
            run.windows = []
        for run in [*self.runs, *reversed(self.runs)]:
            if run is not before:
                self._do(run, math.ceil(run.iterations / LEAD))
            with self.gauge.window(run.name, run.iterations) as reading:
                self._do(run, run.iterations, sync=False)  # the end of the window waits
            run.windows.append(reading)
            before = run
        turns = [self.gauge.turn(run.windows, run.variant.count) for run in self.runs]
        for run, turn in zip(self.runs, turns, strict=True):
            run.turns.append(turn)

    def _outcomes(self, with_accuracy: bool = False) -> list[Any]:
        first = self.runs[0]
        return [
            outcome_of(run.name, run.turns, None if run is first else first.turns, _accuracy(run, with_accuracy))
            for run in self.runs
        ]

    def _worst(self) -> float:
        return worst_of(self._outcomes())


def _accuracy(run: _Run, wanted: bool) -> float | None:
    if run.variant.accuracy is None or not wanted:
        return None
    found: Any = run.variant.accuracy()
    try:
        return float(found)
    except (TypeError, ValueError):
        raise InvalidValue(f"variant '{run.name}': accuracy returned {found!r}, which is not a number") from None
