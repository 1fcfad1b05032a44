"""Checks of a callback's options when it is created: before a training, and without the node's boards."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ._errors import InvalidValue
from ._monitor import gco2e_of, truth_of

OPTIONS = ("gpus", "gco2e_kwh", "boards", "socket", "local", "null")
BACKENDS = ("nvml", "rapl", "replay")  # the library's backends, compared by tests/python/test-measure.py


def checked(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Raises InvalidValue for the first invalid option.  A Monitor checks whether the node has such a board."""
    found = dict(options or {})
    for name in found:
        if name not in OPTIONS:
            raise InvalidValue(f"option '{name}' is none of: {', '.join(OPTIONS)}")
    gco2e_of(found.get("gco2e_kwh"))
    _check_boards(found.get("boards"))
    socket = found.get("socket")
    if socket is not None and not (isinstance(socket, (str, os.PathLike)) and os.fspath(socket)):
        raise InvalidValue(f"socket {socket!r} is not a path")
    for name in ("local", "null"):
        truth_of(name, found.get(name, False))
    if found.get("gpus") is not None:
        found["gpus"] = _gpus(found["gpus"])
    return found


def _gpus(gpus: Any) -> list[Any]:
    wanted = list(gpus) if isinstance(gpus, Iterable) and not isinstance(gpus, str) else [gpus]
    if not wanted:
        raise InvalidValue("gpus is empty: give at least one board")
    for each in wanted:
        number = hasattr(each, "__index__") and not isinstance(each, bool) and each >= 0
        if not number and not (isinstance(each, str) and each and not each.isdecimal()):
            raise InvalidValue(f"gpus: {each!r} is not a board: give numbers (0 or above), as in gpus=[0], or UUIDs")
    return wanted


def _check_boards(boards: Any) -> None:
    """Checks entries as the library reads them: BACKEND, BACKEND=SOURCE or an absolute path."""
    if boards is not None and not isinstance(boards, str):
        raise InvalidValue(f"boards {boards!r} is not a text as for underwatt --boards")
    for entry in boards.split(",") if boards else ():
        if not entry.startswith("/") and entry.partition("=")[0] not in BACKENDS:
            raise InvalidValue(f"boards: '{entry}' is neither a backend ({', '.join(BACKENDS)}) nor an absolute path")
