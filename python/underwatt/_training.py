"""Common to the callbacks of the frameworks: energy of a training, by log interval and in total; its steps and phases.

The training thread counts and puts marks; a separate thread makes all requests, so that a daemon that hangs does not
delay the training.  A mark ends one window and begins the next one.  The energy of a window is known about 0.3 s later,
so a log entry has the steps whose energy is known by then, and the last entry has all.  When the training thread waits
for an energy, the wait is a window of its own, without a phase.
"""

from __future__ import annotations

import math
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from . import _progress
from ._errors import InvalidValue, UnderwattError
from ._frames import warn
from ._monitor import Monitor
from ._options import checked
from ._ranks import ranks_of
from ._results import Energy
from ._sync import sync_of
from ._window import Window
from .goals import Selector, goal_text

EVERY_S = 1.0  # between marks; a change of phase is a mark, too
LOOK_S = 0.1  # between checks whether a window is known
LATE_S = 0.5  # a window that the thread ends later than this after its mark does not match the counted steps
CAP_S = 2.0  # between reads of the caps
WAIT_S = 1.0  # longest wait for the energy of an evaluation, or before a checkpoint
END_WAIT_S = 10.0  # longest wait for that of the last steps
LEAVE_S = 1.0  # longest wait for the thread, which a daemon may delay


@dataclass
class Counts:
    """Counted by the training thread."""

    steps: float = 0
    samples: float = 0
    tokens: float = 0


@dataclass
class Sums:
    """Sums over known windows; training steps only from those in phase train."""

    energy_j: float = 0.0
    time_s: float = 0.0
    gco2e: float = math.nan
    train_j: float = 0.0
    counts: Counts = field(default_factory=Counts)

    def add(self, energy: Energy, phase: str, counts: Counts) -> None:
        self.energy_j += energy.total_j
        self.time_s += energy.time_s
        if energy.gco2e is not None:
            self.gco2e = energy.gco2e + (0.0 if math.isnan(self.gco2e) else self.gco2e)
        if phase != "train":
            return
        self.train_j += energy.total_j
        self.counts.steps += counts.steps
        self.counts.samples += counts.samples
        self.counts.tokens += counts.tokens

    def each(self) -> dict[str, float]:
        """Joules per step, sample and token, as far as these are known."""
        c = self.counts
        found = {"step": c.steps, "sample": c.samples, "token": c.tokens}
        return {f"energy_per_{name}_j": self.train_j / n for name, n in found.items() if n > 0}


@dataclass
class _Part:
    """A window, and the work done in it."""

    window: Window
    phase: str
    counts: Counts
    late: bool
    """Its energy is a part of the total, and of no figure of a step or a phase."""


class Recorder:
    """Energy, steps and phases of one training, which may begin again after its end.

    optimizer: an Optimizer, which its owner closes; a goal for Optimizer(); or None.
    options: of Monitor.
    """

    def __init__(self, optimizer: Any = None, options: Mapping[str, Any] | None = None) -> None:
        self._options = checked(options)
        _check_goal(optimizer)
        self._given = optimizer
        self._optimizer: Any = None
        self._session: _Session | None = None
        self._phase = ""
        self._counts = Counts()
        self._marked_s = 0.0
        self._sync = sync_of("auto")

    @property
    def running(self) -> bool:
        return bool(self._phase)

    # ---- the training thread's side ----

    def begin(self, measure: bool = True, earlier_j: float = 0.0, gpus: Iterable[int] | None = None) -> None:
        """measure: this process logs.  earlier_j: energy before the checkpoint from which training continues.
        gpus: the boards that train, as the program counts them; None: those of this node's ranks."""
        _begins(self)
        self._optimizer = _optimizer_of(self._given)
        self._counts = Counts()
        if measure:
            self._session = _open(self._options, gpus, earlier_j)
        self._phase = "train"
        _progress.phase("train")
        self._mark()

    def step(self, samples: float = 0, tokens: float = 0, steps: int = 1) -> None:
        """An optimizer's step has ended."""
        for _ in range(steps):
            (self._optimizer or _progress).step()
        if self._session is None:
            return
        self._counts.steps += steps
        self._counts.samples += samples
        self._counts.tokens += tokens
        if time.monotonic() - self._marked_s >= EVERY_S:
            self._mark()

    def epoch(self) -> None:
        if self._optimizer is not None:
            self._optimizer.epoch()

    def phase(self, name: str) -> None:
        """Sets the next phase."""
        if not self._phase or name == self._phase:
            return
        self._sync()
        self._phase = name
        _progress.phase(name)
        self._mark()

    def entry(self, wait_s: float = 0.0) -> dict[str, float]:
        """Figures for the log: since the last entry, and in total."""
        if self._session is None:
            return {}
        if wait_s:
            self._settle(wait_s)
        return self._session.entry()

    def of_phase(self, phase: str, prefix: str, wait_s: float = WAIT_S) -> dict[str, float]:
        """The energy of this phase since the last query; wait_s: longest wait for it."""
        if self._session is None:
            return {}
        if wait_s:
            self._settle(wait_s)
        return self._session.of_phase(phase, prefix)

    def whole(self, prefix: str) -> dict[str, float]:
        """The energy of this whole training; waits until it is known."""
        if self._session is None:
            return {}
        self._settle(END_WAIT_S)
        return self._session.whole(prefix)

    def total_j(self, wait: bool = True) -> float | None:
        """The total so far, for a checkpoint; None: nothing is measured.  wait: until it is known."""
        if self._session is None:
            return None
        if wait:
            self._settle(WAIT_S)
        return self._session.total_j()

    def end(self) -> None:
        """Training has ended, or has failed.  Closes the optimizer that begin() created."""
        _ends(self)
        session, self._session = self._session, None
        optimizer, self._optimizer = self._optimizer, None
        if self._phase not in ("", "train"):
            _progress.phase("train")  # a checkpoint at the end leaves another phase
        self._phase = ""
        if session is not None:
            session.end()
        if optimizer is not None and optimizer is not self._given:
            optimizer.close()

    def _settle(self, wait_s: float) -> None:
        """Waits until the energy of the work so far is known, but not longer than this.  The boards are idle then,
        in no phase."""
        if self._session is None:
            return
        self._mark("")
        self._session.settle(wait_s)
        self._mark()

    def _mark(self, phase: str | None = None) -> None:
        """Waits for the work queued on the GPUs: a counted step is done.  phase: None: the present one."""
        self._sync()
        self._marked_s = time.monotonic()
        if self._session is not None:
            self._session.mark(self._phase if phase is None else phase, self._counts)
        self._counts = Counts()


class _Session:
    """One training from start to end: the thread that makes the requests."""

    def __init__(self, monitor: Monitor, earlier_j: float) -> None:
        self._monitor = monitor
        self._earlier_j = earlier_j
        self._marks: deque[tuple[float, str, Counts]] = deque()
        self._wake = threading.Event()
        self._changed = threading.Condition()  # guards the following
        self._all, self._since = Sums(), Sums()
        self._of_phase: dict[str, Sums] = {}
        self._put = self._done = 0  # marks
        self._cap_w: float | None = None
        self._ended = False
        # used only by the thread
        self._open: _Part | None = None
        self._parts: deque[_Part] = deque()
        self._cap_s = 0.0
        self._late_s = 0.0  # a mark was handled late at this time
        self._warned = False
        self._thread = threading.Thread(target=self._run, name="underwatt-training", daemon=True)
        self._thread.start()

    # ---- the training thread's side ----

    def mark(self, phase: str, counts: Counts) -> None:
        """Assigns the counts so far to the phase before."""
        self._put += 1
        self._marks.append((time.monotonic(), phase, counts))
        self._wake.set()

    def settle(self, wait_s: float) -> None:
        """Waits until the marked windows are known, but not longer than this."""
        put = self._put
        with self._changed:
            self._changed.wait_for(lambda: self._done >= put, wait_s)

    def entry(self) -> dict[str, float]:
        with self._changed:
            since, self._since = self._since, Sums()
            return {**_entry(since), **self._totals()}

    def of_phase(self, phase: str, prefix: str) -> dict[str, float]:
        with self._changed:
            sums = self._of_phase.pop(phase, Sums())
        return {f"{prefix}{key}": value for key, value in _entry(sums).items()}

    def whole(self, prefix: str) -> dict[str, float]:
        with self._changed:
            found = {f"{prefix}{key}": value for key, value in _entry(self._all).items()}
            return {**found, **self._totals()}

    def total_j(self) -> float:
        with self._changed:
            return self._earlier_j + self._all.energy_j

    def end(self) -> None:
        """Ends it: unknown energies stay unknown."""
        self._ended = True
        self._wake.set()
        self._thread.join(LEAVE_S)

    def _totals(self) -> dict[str, float]:
        if not self._all.time_s:
            return {}
        found = {"energy_total_j": self._earlier_j + self._all.energy_j}
        if not math.isnan(self._all.gco2e):
            found["gco2e_total"] = self._all.gco2e
        if self._cap_w is not None:
            found["cap_w"] = self._cap_w
        return found

    # ---- the thread ----

    def _run(self) -> None:
        while not self._ended:
            while self._marks:
                self._cut(*self._marks.popleft())
            self._collect()
            if time.monotonic() >= self._cap_s:
                self._look_at_caps()
            self._wake.wait(LOOK_S if self._parts else CAP_S)
            self._wake.clear()
        self._monitor.close(0)

    def _cut(self, put_s: float, phase: str, counts: Counts) -> None:
        now = time.monotonic()
        late = now - put_s > LATE_S or put_s <= self._late_s
        if late:
            self._late_s = now
        before = self._open
        if before is not None:
            before.window._end(sync=False)
            before.counts = counts
            before.late = before.late or late
            self._parts.append(before)
        window = self._monitor.window("training")._start(sync=False)
        self._open = _Part(window, phase, Counts(), late)
        if before is None:
            with self._changed:
                self._done += 1
                self._changed.notify_all()

    def _collect(self) -> None:
        while self._parts and self._parts[0].window.ready:
            part = self._parts.popleft()
            energy = None
            try:
                energy = part.window.wait(0)
            except UnderwattError as e:
                self._unknown(str(e))
            with self._changed:
                if energy is not None and not math.isnan(energy.total_j):
                    self._add(energy, part)
                self._done += 1
                self._changed.notify_all()

    def _add(self, energy: Energy, part: _Part) -> None:
        phase = "" if part.late else part.phase
        for sums in (self._all, self._since, self._of_phase.setdefault(phase, Sums())):
            sums.add(energy, phase, part.counts)

    def _unknown(self, why: str) -> None:
        if not self._warned and not self._monitor._warned:
            self._warned = True
            warnings.warn(f"underwatt: a part of the training's energy is unknown: {why}", RuntimeWarning, stacklevel=1)

    def _look_at_caps(self) -> None:
        """The mean cap of the boards."""
        self._cap_s = time.monotonic() + CAP_S
        caps = []
        with suppress(UnderwattError):
            caps = [board.limits().enforced_w for board in self._monitor.boards]
        known = [w for w in caps if w is not None]
        with self._changed:
            self._cap_w = math.fsum(known) / len(known) if known and len(known) == len(caps) else None


def _entry(sums: Sums) -> dict[str, float]:
    if not sums.time_s:
        return {}
    return {"energy_j": sums.energy_j, "power_w": sums.energy_j / sums.time_s, **sums.each()}


# ---- one training per process ----

_current: list[Recorder] = []


def _begins(recorder: Recorder) -> None:
    """Ends a training that has failed without an event."""
    for before in [*_current, recorder]:
        before.end()
    _current.append(recorder)


def _ends(recorder: Recorder) -> None:
    _current[:] = [each for each in _current if each is not recorder]


os.register_at_fork(after_in_child=_current.clear)


# ---- start of a training ----


def _is_made_here(given: Any) -> bool:
    """Whether the optimizer is created here: not an Optimizer, which its owner closes, nor None."""
    return given is not None and not hasattr(given, "step")


def _check_goal(given: Any) -> None:
    """Raises InvalidValue for an invalid goal before the training begins, because later it must not stop the
    training."""
    if _is_made_here(given):
        try:
            goal_text(given.goal if isinstance(given, Selector) else given)
        except InvalidValue:
            raise
        except UnderwattError:  # the library cannot be loaded: begin() reports that
            return


def _optimizer_of(given: Any) -> Any:
    """The optimizer; None: there is none, or it cannot be created, which is warned of."""
    if not _is_made_here(given):
        return given
    from ._optimizer import Optimizer  # noqa: PLC0415 - most trainings have none

    try:
        return Optimizer(given)
    except UnderwattError as e:
        warn(f"no cap is searched for: {e}")
        return None


def _open(options: dict[str, Any], gpus: Iterable[int] | None, earlier_j: float) -> _Session | None:
    """The monitor; None: nothing can be measured here, which is warned of once."""
    try:
        monitor = Monitor(sync=None, **options)
        if options.get("gpus") is None and monitor.boards:
            wanted = _wanted(monitor, gpus)
            if len(wanted) < len(monitor.boards):
                monitor.close(0)
                monitor = Monitor(sync=None, **{**options, "gpus": wanted})
    except UnderwattError as e:
        warn(f"this training is not measured: {e}")
        return None
    return _Session(monitor, earlier_j)


def _wanted(monitor: Monitor, gpus: Iterable[int] | None) -> list[int]:
    """Boards by the driver's number: those named by the program's numbers, else one for each rank of this node, else
    all."""
    numbers = [board.index for board in monitor.boards]
    if gpus is not None:
        return [numbers[i] for i in gpus if i < len(numbers)] or numbers
    n = ranks_of(os.environ).local_world_size or len(numbers)
    if n > len(numbers):
        warn(
            f"{n} ranks of this node train, and CUDA_VISIBLE_DEVICES leaves {len(numbers)} of their boards here: "
            "energy is of those; gpus=[…] names all"
        )
    return numbers[:n]
