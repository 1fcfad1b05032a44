"""search="underwatt": the daemon searches, and a loop's steps are reported to it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from underwatt import CurvePoint, NotSupported, Optimizer, Selector, UnderwattError, goals

from ..device import get_gpus
from ._choices import (
    Done,
    Energy,
    MaxSlowdownConstraint,
    OptimumSelector,
    PowerLimitMeasurement,
    Profiling,
    Ready,
    State,
    Time,
    Warmup,
    ZeusCost,
)
from ._plan import Boards, Plan, save

logger = logging.getLogger(__package__)


class _Chosen(Selector):
    """A selector of the program, applied to the daemon's measurements."""

    def __init__(self, selector: OptimumSelector, steps: int) -> None:
        self.goal = getattr(selector, "goal", "edp")
        self._selector = selector
        self._steps = steps

    def select(self, curve: tuple[CurvePoint, ...]) -> float:
        return self._selector.select(_measurements(curve, self._steps))


def _measurements(curve: tuple[CurvePoint, ...], steps: int) -> list[PowerLimitMeasurement]:
    """Measurements over this many steps, the highest limit first."""
    return [
        PowerLimitMeasurement(power_limit=round(p.cap_w), energy=steps * p.step_j, time=steps * p.step_s)
        for p in sorted(curve, key=lambda p: -p.cap_w)
        if p.step_j > 0 and p.step_s > 0
    ]


def _goal(selector: OptimumSelector, steps: int) -> goals.Goal | Selector:
    if type(selector) is Energy:
        return goals.Energy()
    if type(selector) is Time:
        return goals.Time()
    if type(selector) is ZeusCost:
        return goals.Cost(selector.eta_knob)
    if type(selector) is MaxSlowdownConstraint:
        return goals.Slowdown(min(selector.factor, 2))
    return _Chosen(selector, steps)


class Client:
    def __init__(self, plan: Plan, boards: Boards) -> None:
        self.boards = boards
        self._steps = plan.profile_steps
        self._path: Path | None = plan.profile_path
        self._begun = False  # a step has begun
        self._last: tuple[State, list[PowerLimitMeasurement]] | None = None  # results of a closed optimizer
        self._optimizer = self._open(plan)

    def _open(self, plan: Plan) -> Optimizer:
        goal = _goal(plan.selector, plan.profile_steps)
        gpus: Any = get_gpus().gpus
        ours = [gpus[i].underwatt_gpu for i in self.boards.indices]
        try:
            return Optimizer(goal, gpus=ours)
        except NotSupported as e:
            logger.info("%s; without it", e)
            return Optimizer(goal, gpus=ours, local=True)

    # ---- the loop's side: a step ends with its end event or, without one, with the start of the next step ----

    def on_step_begin(self) -> None:
        if self._begun:
            self._optimizer.step()
        elif self._last is None:
            self._optimizer.phase("train")
        self._begun = True

    def on_step_end(self) -> None:
        if self._begun:
            self._optimizer.step()
        self._begun = False

    def on_epoch_begin(self) -> None:
        if self._last is None:
            self._optimizer.phase("train")

    def on_epoch_end(self) -> None:
        self.on_step_end()
        if self._last is not None:
            return
        self._optimizer.phase("validate")
        self._optimizer.epoch()
        self._save()

    def close(self) -> None:
        """Never raises: it is called at the program's end, and when the next optimizer is created."""
        if self._last is not None:
            return
        try:
            self._save()
        except OSError as e:
            logger.warning("the profile is not written: %s", e)
        finally:
            self._last = self.state, self.measurements
            logger.info("%s", self._optimizer.status)
            self._optimizer.close()

    # ---- results ----

    @property
    def state(self) -> State:
        """Queries the daemon."""
        if self._last is not None:
            return self._last[0]
        status = self._optimizer.status
        top = self.boards.limits[0]
        limit = round(1000 * status.cap_w) if status.cap_w else top
        if status.status == "holds":
            return Done(optimal_power_limit=limit)
        if status.status == "measures":
            return Profiling(current_power_limit=limit, steps=1)
        if status.status == "walks":
            return Warmup(current_power_limit=limit, steps=1)
        return Ready(next_power_limit=top, steps=1)

    @property
    def measurements(self) -> list[PowerLimitMeasurement]:
        """Queries the daemon; []: it does not answer."""
        if self._last is not None:
            return self._last[1]
        try:
            return _measurements(self._optimizer.curve(), self._steps)
        except UnderwattError as e:
            logger.warning("the measurements are not known: %s", e)
            return []

    def _save(self) -> None:
        if self._path is None or not isinstance(self.state, Done):
            return
        measured = self.measurements
        if measured:
            save(self._path, measured)
            self._path = None
