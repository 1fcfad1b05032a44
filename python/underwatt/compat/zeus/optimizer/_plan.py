"""The options of a GlobalPowerLimitOptimizer, and its boards."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

from ..device import get_gpus
from ..device.exception import ZeusBaseGPUError
from ..device.gpu import ZeusGPUNoPermissionError, ZeusGPUNotSupportedError
from ..monitor import ZeusMonitor
from ..utils.framework import get_rank
from ._choices import OptimumSelector, PowerLimitMeasurement

logger = logging.getLogger(__package__)

_BACK_S, _LOOK_S = 3.0, 0.05


@dataclass(frozen=True)
class Plan:
    monitor: ZeusMonitor
    selector: OptimumSelector
    wait_steps: int
    warmup_steps: int
    profile_steps: int
    pl_step: int  # mW
    profile_path: Path | None

    def __post_init__(self) -> None:
        for name, value, least in (
            ("wait_steps", self.wait_steps, 0),
            ("warmup_steps", self.warmup_steps, 0),
            ("profile_steps", self.profile_steps, 1),
            ("pl_step", self.pl_step, 1),
        ):
            if value < least:
                raise ValueError(f"{name} is {value}: it must be {least} or more")


class Boards:
    """The limits, in mW, of the boards that a monitor measures, which are set together."""

    def __init__(self, plan: Plan) -> None:
        gpus = get_gpus(ensure_homogeneous=True)
        self.indices = list(plan.monitor.gpu_indices)
        ranges = {gpus.get_power_management_limit_constraints(i) for i in self.indices}
        if len(ranges) != 1:
            words = ", ".join(f"{low // 1000}..{high // 1000} W" for low, high in sorted(ranges))
            raise ValueError(f"the boards' limits differ: {words}")
        self.low, self.high = ranges.pop()
        found = {i: gpus.get_power_management_limit(i) for i in self.indices}
        self.found = {i: limit for i, limit in found.items() if isinstance(limit, int)}  # a mock's are not numbers
        # If an administrator has set a lower limit, that is the highest one tried.
        top = min([self.high, *self.found.values()])
        self.limits = list(range(top, self.low - 1, -plan.pl_step))
        self.current = 0

    def open(self) -> None:
        """Keeps the driver loaded, which would otherwise lose the limit between two programs."""
        gpus = get_gpus()
        try:
            for i in self.indices:
                with contextlib.suppress(ZeusGPUNotSupportedError):
                    gpus.set_persistence_mode(i, enabled=True, block=True)
        except ZeusGPUNoPermissionError as e:
            raise RuntimeError(f"power limits cannot be set: {e}") from e

    def set(self, limit: int) -> None:
        """Does not wait for a ramp: in_force() reports its end."""
        if limit == self.current:
            return
        logger.info("limit: %d W", limit // 1000)
        for i in self.indices:
            get_gpus().set_power_management_limit(i, limit, block=False)
        self.current = limit

    def in_force(self) -> bool:
        """False: a ramp to the set limit is still under way."""
        limits = [get_gpus().get_power_management_limit(i) for i in self.indices]
        return not any(isinstance(limit, int) and limit > self.current + 500 for limit in limits)

    def wait_found(self) -> None:
        """Waits until the limits found are in force again; only briefly if others hold lower ones."""
        until = time.monotonic() + _BACK_S
        while time.monotonic() < until and any(
            get_gpus().get_power_management_limit(i) < limit for i, limit in self.found.items()
        ):
            time.sleep(_LOOK_S)

    def release(self) -> None:
        """Restores the limits found."""
        for i, limit in self.found.items():
            with contextlib.suppress(ZeusBaseGPUError):
                get_gpus().set_power_management_limit(i, limit, block=False)
        self.current = 0


def load(path: Path) -> list[PowerLimitMeasurement]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["measurements"]
        found = [PowerLimitMeasurement(**row) for row in rows]
    except (ValueError, KeyError, TypeError) as e:
        raise ValueError(f"{path} is no profile of power limits: {type(e).__name__}: {e}") from e
    if not found:
        raise ValueError(f"{path} is no profile of power limits: it has no measurement")
    logger.info("%d measurements of %s", len(found), path)
    return found


def save(path: Path, measurements: list[PowerLimitMeasurement]) -> None:
    """Saved by one rank, because all have the same."""
    if get_rank() != 0:
        return
    rows = [{"power_limit": m.power_limit, "energy": m.energy, "time": m.time} for m in measurements]
    path.write_text(json.dumps({"measurements": rows}, indent=4) + "\n", encoding="utf-8")
    logger.info("%d measurements are in %s", len(rows), path)
