"""Energy of training on GPUs: measured by windows, reported by steps (docs/python.md)."""

from typing import Any

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
from ._monitor import Monitor, configure, monitor, track, window
from ._node import Board, Limits
from ._progress import phase, step, steps
from ._results import Device, Energy, Price, Sample
from ._version import __version__
from ._window import Window


def load_ipython_extension(shell: Any) -> None:
    """%load_ext underwatt: makes the magic %%energy known."""
    from ._magic import register  # noqa: PLC0415 - notebooks alone need it

    register(shell)


__all__ = [
    "Board",
    "DaemonError",
    "Device",
    "Energy",
    "IncompatibleLibrary",
    "InvalidValue",
    "Limits",
    "Monitor",
    "NoData",
    "NoDevice",
    "NotSupported",
    "PermissionError",
    "Price",
    "Sample",
    "TimeoutError",
    "UnderwattError",
    "Window",
    "__version__",
    "configure",
    "load_ipython_extension",
    "monitor",
    "phase",
    "step",
    "steps",
    "track",
    "window",
]
