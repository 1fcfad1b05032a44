"""Base classes of the exceptions of devices."""

from __future__ import annotations

from ..exception import ZeusBaseError


class ZeusBaseGPUError(ZeusBaseError):
    """Exceptions of GPUs."""


class ZeusBaseCPUError(ZeusBaseError):
    """Exceptions of processors."""


class ZeusBaseSoCError(ZeusBaseError):
    """Exceptions of systems on a chip."""


class ZeusdError(ZeusBaseGPUError):
    """Exceptions of zeusd, which this package does not use."""
