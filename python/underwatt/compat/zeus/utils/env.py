"""Environment variables of a type."""

from __future__ import annotations

import os
from typing import TypeVar, cast

T = TypeVar("T")


def get_env(name: str, valtype: type[T], default: T | None = None) -> T:
    """The variable as a valtype (for bool: true or false); if it is not set, the default, or ValueError."""
    text = os.environ.get(name)
    if text is None:
        if default is None:
            raise ValueError(f"environment variable {name} is not set")
        return default
    if valtype is not bool:
        return valtype(text)  # type: ignore[call-arg]
    if text.lower() not in ("true", "false"):
        raise ValueError(f"environment variable {name} is '{text}': true or false is wanted")
    return cast(T, text.lower() == "true")
