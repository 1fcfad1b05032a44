"""Frames of the calls above a function of this package, to find the user's line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_OURS = __name__.partition(".")[0]
# Modules between a user's line and this package.
_BETWEEN = frozenset(
    (_OURS, "keras", "transformers", "trl", "accelerate", "lightning", "lightning_fabric", "pytorch_lightning", "torch")
) | frozenset(("contextlib", "functools"))


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def warn(text: str) -> None:
    """Issues a RuntimeWarning for the user's line, below which are frames of a framework and of this package."""
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and _package(frame) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(f"underwatt: {text}", RuntimeWarning, stacklevel=level if frame is not None else 1)
