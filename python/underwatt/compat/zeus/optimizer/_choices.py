"""Measurements and states of an optimizer, and selectors, which choose a limit from the measurements."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields

from ..utils.metric import zeus_cost


class _Positive:
    """Values are positive numbers."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if not value > 0:
                raise ValueError(f"{type(self).__name__}.{field.name} is {value}: it must be over 0")


@dataclass(kw_only=True)
class PowerLimitMeasurement(_Positive):
    """Energy and time of the profiled steps at one limit: W, J, s."""

    power_limit: int
    energy: float
    time: float


@dataclass(kw_only=True)
class Ready(_Positive):
    """The limit (mW) will be set after this many steps."""

    next_power_limit: int
    steps: int


@dataclass(kw_only=True)
class Warmup(_Positive):
    """The limit (mW) has been set; its window begins after this many steps."""

    current_power_limit: int
    steps: int


@dataclass(kw_only=True)
class Profiling(_Positive):
    """The window of the limit (mW) ends after this many steps."""

    current_power_limit: int
    steps: int


@dataclass(kw_only=True)
class Done(_Positive):
    """The chosen limit (mW) is held."""

    optimal_power_limit: int


State = Ready | Warmup | Profiling | Done


class OptimumSelector(ABC):
    """Chooses a limit; select() of a subclass gets all measurements, the highest limit first."""

    @abstractmethod
    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        """The limit to hold, W."""


class Energy(OptimumSelector):
    """The least energy."""

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        return min(measurements, key=lambda m: m.energy).power_limit


class Time(OptimumSelector):
    """The least time."""

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        return min(measurements, key=lambda m: m.time).power_limit


class ZeusCost(OptimumSelector):
    """The least eta_knob x energy + (1 - eta_knob) x highest limit x world_size x time.

    world_size: GPUs whose energy is in the measurements, those of all ranks.
    """

    def __init__(self, eta_knob: float, world_size: int = 1) -> None:
        if not 0 <= eta_knob <= 1:
            raise ValueError(f"eta_knob is {eta_knob}: outside 0..1")
        if world_size < 1:
            raise ValueError(f"world_size is {world_size}: it must be 1 or more")
        self.eta_knob = eta_knob
        self.world_size = world_size

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        most = self.world_size * _highest(measurements)
        return min(measurements, key=lambda m: zeus_cost(m.energy, m.time, self.eta_knob, most)).power_limit


class MaxSlowdownConstraint(OptimumSelector):
    """The lowest limit whose time is at most factor times that at the highest."""

    def __init__(self, factor: float) -> None:
        if not factor >= 1:
            raise ValueError(f"factor is {factor}: it must be 1 or more")
        self.factor = factor

    def select(self, measurements: list[PowerLimitMeasurement]) -> int:
        top = _highest(measurements)
        bound = self.factor * next(m.time for m in measurements if m.power_limit == top)
        return min(m.power_limit for m in measurements if m.time <= bound)


def _highest(measurements: Sequence[PowerLimitMeasurement]) -> int:
    return max(m.power_limit for m in measurements)
