"""search="exhaustive": each limit of a grid from the top, this many steps at each, then the chosen one."""

from __future__ import annotations

import contextlib
import logging
import math
import time
import warnings

from ..utils.framework import all_reduce
from ._choices import Done, PowerLimitMeasurement, Profiling, Ready, State, Warmup
from ._plan import Boards, Plan, load, save

logger = logging.getLogger(__package__)

_TRIES = 3  # most windows at a limit until one has an energy
_WALK_S = 120.0  # longest wait for a limit to come into force


class Scan:
    def __init__(self, plan: Plan, boards: Boards) -> None:
        self._plan = plan
        self.boards = boards
        self._path = plan.profile_path
        self._warmup, self._profile = plan.warmup_steps, plan.profile_steps
        self._epoch_steps = self._tries = 0
        self._set_at = 0.0
        self._closed = False
        self.measurements: list[PowerLimitMeasurement] = []
        self.state: State
        boards.open()
        try:
            self._start()
        except BaseException:  # limits of some boards may have been set
            boards.release()
            boards.wait_found()
            raise

    def _start(self) -> None:
        if self._path is not None and self._path.exists():
            self.measurements = load(self._path)
            self._hold()
            return
        top = self.boards.limits[0]
        self.state = Ready(next_power_limit=top, steps=self._plan.wait_steps + 1)
        self.boards.set(top)

    # ---- the loop's side ----

    def on_step_begin(self) -> None:
        self._epoch_steps += 1
        state = self.state
        if self._closed or isinstance(state, Done):
            return
        if state.steps > 1:
            state.steps -= 1
        elif isinstance(state, Ready):
            self._begin(state.next_power_limit)
        elif isinstance(state, Warmup):
            if self._walked():
                self._open_window(state.current_power_limit)
        else:
            self._close_window(state.current_power_limit)

    def on_step_end(self) -> None:
        """Steps are counted at their start."""

    def on_epoch_begin(self) -> None:
        """Ignored."""

    def on_epoch_end(self) -> None:
        steps, self._epoch_steps = self._epoch_steps, 0
        state = self.state
        if self._closed or isinstance(state, (Ready, Done)):
            return
        limit = state.current_power_limit
        logger.info("%d W: the epoch's end interrupts its %s", limit // 1000, type(state).__name__)
        if isinstance(state, Profiling):
            self._plan.monitor.end_window(_window(limit), cancel=True)
        self._fit(steps)
        self.state = Ready(next_power_limit=limit, steps=1)
        self.boards.set(self.boards.limits[0])

    def close(self) -> None:
        self._closed = True
        if isinstance(self.state, Profiling):
            with contextlib.suppress(ValueError, RuntimeError):  # the program has dropped it
                self._plan.monitor.end_window(
                    _window(self.state.current_power_limit), sync_execution=False, cancel=True
                )
        self.boards.release()

    # ---- states ----

    def _begin(self, limit: int) -> None:
        self.boards.set(limit)
        self._set_at = time.monotonic()
        if self._warmup == 0 and self._walked():
            self._open_window(limit)
        else:
            self.state = Warmup(current_power_limit=limit, steps=max(1, self._warmup))

    def _walked(self) -> bool:
        """Whether the limit is in force, or will not be; the same in all ranks, so that all open their windows at
        the same step."""
        late = time.monotonic() > self._set_at + _WALK_S
        return max(all_reduce([0 if late or self.boards.in_force() else 1], "max")) == 0

    def _open_window(self, limit: int) -> None:
        self.state = Profiling(current_power_limit=limit, steps=self._profile)
        self._plan.monitor.begin_window(_window(limit))

    def _close_window(self, limit: int) -> None:
        measured = self._plan.monitor.end_window(_window(limit))
        part = self._plan.profile_steps / self._profile
        energy = part * sum(all_reduce(list(measured.gpu_energy.values()), "sum"))
        seconds = part * max(all_reduce([measured.time], "max"))
        if math.isfinite(energy) and energy > 0 and seconds > 0:
            self.measurements.append(PowerLimitMeasurement(power_limit=limit // 1000, energy=energy, time=seconds))
        elif self._tries + 1 < _TRIES:
            self._tries += 1
            logger.info("%d W: its energy is unknown, once more", limit // 1000)
            self._begin(limit)
            return
        else:
            _warn(f"{limit // 1000} W is left out: its energy is unknown")
        self._tries = 0
        after = self.boards.limits.index(limit) + 1
        if after < len(self.boards.limits):
            self._begin(self.boards.limits[after])
            return
        self._hold()
        if self._path is not None:
            save(self._path, self.measurements)

    def _hold(self) -> None:
        """Holds the selector's limit."""
        top, low, high = self.boards.limits[0], self.boards.low, self.boards.high
        if not self.measurements:
            _warn(f"no limit was measured: {top // 1000} W stays")
            self.state = Done(optimal_power_limit=top)
            self.boards.set(top)
            return
        name = type(self._plan.selector).__name__
        limit = 1000 * self._plan.selector.select(self.measurements)
        if not low <= limit <= high:
            raise ValueError(f"{name}: {limit // 1000} W is outside {low // 1000}..{high // 1000} W")
        if limit > top:
            _warn(f"{name}: {limit // 1000} W is above the limit found, {top // 1000} W")
            limit = top
        self.state = Done(optimal_power_limit=limit)
        self.boards.set(limit)

    def _fit(self, steps: int) -> None:
        """If epochs are too short for a limit, fewer steps are profiled: otherwise the profiling would never end."""
        if steps >= 1 + self._warmup + self._profile:
            return
        if steps < 2:
            _warn(f"an epoch of {steps} steps is too short to profile a limit in")
            return
        self._warmup = min(self._warmup, (steps - 1) // 5)
        self._profile = steps - 1 - self._warmup
        _warn(f"epochs have {steps} steps: {self._warmup} warm up and {self._profile} are profiled")


def _warn(text: str) -> None:
    warnings.warn(f"GlobalPowerLimitOptimizer: {text}", RuntimeWarning, stacklevel=3)


def _window(limit: int) -> str:
    return f"__GlobalPowerLimitOptimizer_{limit // 1000}"
