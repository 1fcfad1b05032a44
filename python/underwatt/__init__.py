"""Energy of training on GPUs: measured by windows, reported by steps (docs/python.md)."""

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
from ._progress import phase, step, steps
from ._version import __version__

__all__ = [
    "DaemonError",
    "IncompatibleLibrary",
    "InvalidValue",
    "NoData",
    "NoDevice",
    "NotSupported",
    "PermissionError",
    "TimeoutError",
    "UnderwattError",
    "__version__",
    "phase",
    "step",
    "steps",
]
