"""Power limits: searches for the limit to hold while a loop trains."""

from __future__ import annotations

import atexit
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..callback import Callback
from ..device import get_gpus
from ..monitor import ZeusMonitor
from ..utils.framework import get_world_size
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
from ._plan import Boards, Plan
from ._scan import Scan

if TYPE_CHECKING:
    from ._client import Client
    from ._hf import HFGlobalPowerLimitOptimizer

SEARCHES = ("underwatt", "exhaustive")


class GlobalPowerLimitOptimizer(Callback):
    """Searches for the best limit by the selector (ZeusCost(0.5) of all GPUs by default), and holds it.

    search: "underwatt": the daemon's search, or without a daemon that of a private one; "exhaustive": each limit from
    the highest down in steps of pl_step.  None: UNDERWATT_ZEUS_SEARCH, else "underwatt".
    wait_steps, warmup_steps, profile_steps and pl_step apply to the exhaustive search.  The limits found are restored
    at the program's end.

    profile_path: if the file exists, the limit is chosen from its measurements, and nothing is measured; otherwise the
    measurements are written there.
    """

    def __init__(
        self,
        monitor: ZeusMonitor,
        optimum_selector: OptimumSelector | None = None,
        wait_steps: int = 1,
        warmup_steps: int = 10,
        profile_steps: int = 40,
        pl_step: int = 25,
        profile_path: str | Path | None = None,
        *,
        search: str | None = None,
    ) -> None:
        if not monitor.gpu_indices:
            get_gpus()  # get_gpus() reports the reason if there is none
            raise ValueError("the monitor measures no GPU")
        self.monitor = monitor
        self.optimum_selector = optimum_selector or ZeusCost(0.5, len(monitor.gpu_indices) * get_world_size())
        self.warmup_steps = warmup_steps
        self.profile_steps = profile_steps
        self.pl_step = 1000 * pl_step  # mW
        self.profile_path = Path(profile_path) if profile_path is not None else None
        plan = Plan(
            monitor, self.optimum_selector, wait_steps, warmup_steps, profile_steps, self.pl_step, self.profile_path
        )
        self.search = _search(search)
        _end_last()
        boards = Boards(plan)
        self.power_limits = boards.limits  # mW
        self._way: Scan | Client
        if self.search == "exhaustive" or (self.profile_path is not None and self.profile_path.exists()):
            self._way = Scan(plan, boards)
        else:
            from ._client import Client  # noqa: PLC0415 - the daemon's library

            self._way = Client(plan, boards)
        _begun(self._way)

    @property
    def state(self) -> State:
        return self._way.state

    @property
    def measurements(self) -> list[PowerLimitMeasurement]:
        return self._way.measurements

    @property
    def current_power_limit(self) -> int:
        """For the exhaustive search, mW; else 0."""
        return self._way.boards.current

    def on_epoch_begin(self) -> None:
        self._way.on_epoch_begin()

    def on_epoch_end(self) -> None:
        self._way.on_epoch_end()

    def on_step_begin(self) -> None:
        self._way.on_step_begin()

    def on_step_end(self) -> None:
        self._way.on_step_end()


# ---- one per process: each of two would take the other's limits for those of the boards ----

_of_process: Scan | Client | None = None


def _begun(way: Scan | Client) -> None:
    global _of_process  # noqa: PLW0603
    _of_process = way
    atexit.unregister(_end)
    atexit.register(_end)  # before the resources opened by the optimizer end


def _end() -> None:
    global _of_process
    way, _of_process = _of_process, None
    if way is not None:
        way.close()


def _in_child() -> None:
    """The optimizer, its requests and its profile belong to the parent."""
    global _of_process  # noqa: PLW0603
    _of_process = None


os.register_at_fork(after_in_child=_in_child)


def _end_last() -> None:
    """The limits found are restored, unless others hold the boards."""
    way = _of_process
    _end()
    if way is not None:
        way.boards.wait_found()


def _search(asked: str | None) -> str:
    where = "search"
    if asked is None:
        where = "UNDERWATT_ZEUS_SEARCH"
        asked = os.environ.get(where) or SEARCHES[0]
    if asked not in SEARCHES:
        raise ValueError(f"{where} is '{asked}': none of {', '.join(SEARCHES)}")
    return asked


def __getattr__(name: str) -> Any:
    if name == "HFGlobalPowerLimitOptimizer":  # imports transformers
        return importlib.import_module(f"{__package__}._hf").HFGlobalPowerLimitOptimizer
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


__all__ = [
    "Done",
    "Energy",
    "GlobalPowerLimitOptimizer",
    "HFGlobalPowerLimitOptimizer",
    "MaxSlowdownConstraint",
    "OptimumSelector",
    "PowerLimitMeasurement",
    "Profiling",
    "Ready",
    "Time",
    "Warmup",
    "ZeusCost",
]
