"""Frames of the calls above a function of this package: the user's line, and the call of a framework that trains."""

from __future__ import annotations

import inspect
import sys
import warnings
from types import FrameType

_OURS = __name__.partition(".")[0]
# What stands between a user's line and this package.
_BETWEEN = frozenset(
    (_OURS, "keras", "transformers", "trl", "accelerate", "lightning", "lightning_fabric", "pytorch_lightning", "torch")
) | frozenset(("contextlib", "functools"))


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def warn(text: str) -> None:
    """A RuntimeWarning of the user's line, below which are a framework's frames and this package's."""
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and _package(frame) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(f"underwatt: {text}", RuntimeWarning, stacklevel=level if frame is not None else 1)


def framework_call() -> FrameType | None:
    """The outermost one of the frames by which a framework has called this package, as that of fit(); None: it has not,
    or it cannot be told when that call ends."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _package(frame) == _OURS:
        frame = frame.f_back
    call = None
    while frame is not None and _package(frame) in _BETWEEN:
        call, frame = frame, frame.f_back
    suspends = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return None if call is None or call.f_code.co_flags & suspends else call


def has_ended(call: FrameType) -> bool:
    """By a return or an exception; drops the locals of one that has."""
    try:
        call.clear()
    except RuntimeError:  # it is executing
        return False
    return True
