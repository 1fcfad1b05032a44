"""Energy of training on GPUs: measures windows, and reports steps (docs/python.md)."""

from typing import Any

from . import goals
from ._compare import Variant, compare
from ._comparison import Change, Comparison, Figure, Outcome
from ._errors import (
    DaemonError,
    IncompatibleLibrary,
    InvalidValue,
    NoData,
    NoDevice,
    NotSupported,
    PermissionError,
    TimeoutError,
    UnderwattError,
)
from ._job import JobEnergy
from ._monitor import Monitor, configure, monitor, track, window
from ._node import Board, Limits
from ._optimizer import Optimizer, OptimizerStatus
from ._progress import phase, step, steps
from ._results import Device, Energy, Price, Sample
from ._version import __version__
from ._window import Window
from .goals import CurvePoint, Goal, Selector


def load_ipython_extension(shell: Any) -> None:
    """%load_ext underwatt: adds the magic %%energy."""
    from ._magic import register  # noqa: PLC0415 - notebooks alone need it

    register(shell)


__all__ = [
    "Board",
    "Change",
    "Comparison",
    "CurvePoint",
    "DaemonError",
    "Device",
    "Energy",
    "Figure",
    "Goal",
    "IncompatibleLibrary",
    "InvalidValue",
    "JobEnergy",
    "Limits",
    "Monitor",
    "NoData",
    "NoDevice",
    "NotSupported",
    "Optimizer",
    "OptimizerStatus",
    "Outcome",
    "PermissionError",
    "Price",
    "Sample",
    "Selector",
    "TimeoutError",
    "UnderwattError",
    "Variant",
    "Window",
    "__version__",
    "compare",
    "configure",
    "goals",
    "load_ipython_extension",
    "monitor",
    "phase",
    "step",
    "steps",
    "track",
    "window",
]
