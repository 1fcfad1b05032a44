"""Systems on a chip: none is supported."""

from __future__ import annotations

from .common import EmptySoC, SoC, SoCMeasurement, ZeusSoCInitError

_soc: SoC | None = None


def get_soc() -> SoC:
    """ZeusSoCInitError: Apple's processors and Jetson boards are out of scope."""
    if _soc is None:
        raise ZeusSoCInitError("no system on a chip is supported here (docs/zeus.md)")
    return _soc


__all__ = ["EmptySoC", "SoC", "SoCMeasurement", "ZeusSoCInitError", "get_soc"]
