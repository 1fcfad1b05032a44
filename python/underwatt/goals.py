"""Goals of an Optimizer as objects, and selectors, which choose from the measured curve.

E and T are energy and time of a training step; the reference is the original cap.
"""

from __future__ import annotations

import ctypes
import json
from dataclasses import dataclass

from ._errors import InvalidValue
from ._native import library


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A measured cap; halves are of the 95 % interval, NaN if unknown."""

    cap_w: float
    """In force, on each board."""
    step_s: float
    step_s_half: float
    step_j: float
    """Of all boards of the job on this node."""
    step_j_half: float
    windows: int


class Goal:
    """A goal; str() is the text that `underwatt run --goal` accepts."""

    __slots__ = ()

    def __str__(self) -> str:
        raise NotImplementedError

    def _check(self) -> None:
        _check(str(self))


@dataclass(frozen=True, slots=True)
class Energy(Goal):
    """The least energy."""

    def __str__(self) -> str:
        return "energy"


@dataclass(frozen=True, slots=True)
class Edp(Goal):
    """The least energy x time."""

    def __str__(self) -> str:
        return "edp"


@dataclass(frozen=True, slots=True)
class Eds(Goal):
    """The least (k-1)/k x E/Eref + 1/k x T/Tref."""

    k: float = 2.0

    def __post_init__(self) -> None:
        self._check()

    def __str__(self) -> str:
        return f"eds:{_figure(self.k)}"


@dataclass(frozen=True, slots=True)
class Cost(Goal):
    """The least eta x E + (1-eta) x Pmax x T, Pmax the sum of the highest limits of the job's boards."""

    eta: float = 0.5

    def __post_init__(self) -> None:
        self._check()

    def __str__(self) -> str:
        return f"cost:{_figure(self.eta)}"


@dataclass(frozen=True, slots=True)
class Slowdown(Goal):
    """The least energy with a time of at most factor times the time at the original cap."""

    factor: float = 1.05

    def __post_init__(self) -> None:
        self._check()

    def __str__(self) -> str:
        return f"slowdown:{_figure(self.factor)}"


@dataclass(frozen=True, slots=True)
class Time(Goal):
    """The least time."""

    def __str__(self) -> str:
        return "time"


class Selector:
    """Chooses a cap from what a search has measured::

        class Knee(underwatt.Selector):
            goal = "edp"

            def select(self, curve):
                return min(p.cap_w for p in curve if p.step_s < 1.1 * curve[0].step_s)

    The daemon searches by `goal`; select() is called once it has come to a cap, and the watts that select() returns are
    held in its place.  What is no cap of the boards, or an exception, leaves the daemon's own.
    """

    goal: str | Goal = "edp"

    def select(self, curve: tuple[CurvePoint, ...]) -> float:
        """curve: the measured caps, in the order of their first window: the original cap first."""
        raise NotImplementedError


def _figure(value: object) -> str:
    """A number as the library reads it; for anything else a text that the library refuses, with goal and range."""
    if isinstance(value, str):
        return json.dumps(value)
    try:
        return f"{value:.12g}"
    except (TypeError, ValueError):
        return " ".join(repr(value).split())


def _check(text: str) -> None:
    library().call("uw_goal_check", ctypes.c_char_p(text.encode()))


def goal_text(goal: object) -> str:
    """The text of "edp", Edp(), "slowdown:1.1", …; InvalidValue if it is no goal."""
    if not isinstance(goal, (str, Goal)):
        raise InvalidValue(f"goal {goal!r} is neither a text, a Goal nor a Selector")
    text = str(goal)
    if not text or "\0" in text:
        raise InvalidValue(f"goal {text!r} is none")
    _check(text)
    return text
